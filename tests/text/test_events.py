"""Events that a question names as a time, and the records that are of that time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import recollect
from recollect import Memory
from recollect.text.events import NamedEvent, events


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did we buy after the move to Oslo?", NamedEvent("after", "move to Oslo")),
        ("Before Ana's wedding, who was ill?", NamedEvent("before", "wedding")),
        ("Who called around the fire did they say", NamedEvent("around", "fire")),
        ("Was war nach dem Umzug?", NamedEvent("after", "Umzug")),
        ("Was war vor unserer Hochzeit?", NamedEvent("before", "Hochzeit")),
        ("Qu'avons-nous acheté après le déménagement ?", NamedEvent("after", "déménagement")),
        ("Qui est venu avant l'incendie ?", NamedEvent("before", "incendie")),
        ("¿Qué compramos después de la mudanza?", NamedEvent("after", "mudanza")),
        ("Che cosa abbiamo comprato dopo il trasloco?", NamedEvent("after", "trasloco")),
        ("O que compramos depois da mudança?", NamedEvent("after", "mudança")),
        ("Wat kochten we na de verhuizing?", NamedEvent("after", "verhuizing")),
        ("搬家之后我们买了什么", NamedEvent("after", "搬家")),
        ("引っ越しの後に何を買いましたか", NamedEvent("after", "引っ越し")),
    ],
)
def test_an_event_is_named_as_a_time_in_nine_languages(question: str, expected: NamedEvent) -> None:
    assert events(question) == (expected,)


@pytest.mark.parametrize("question", ["What comes after tea?", "Who is after me?", "after the did", "Before", ""])
def test_what_has_no_name_is_no_event(question: str) -> None:
    assert events(question) == ()


@pytest.fixture
def memory() -> Iterator[Memory]:
    with recollect.open(":memory:") as opened:
        for day, text in enumerate(
            ("We bought a lamp", "Nothing new", "Today is the move to Oslo", "Still nothing", "We bought a chair")
        ):
            opened.remember(text, id=f"{day}", time=datetime(2026, 3, 1, tzinfo=UTC) + timedelta(10 * day))
        yield opened


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What was bought after the move?", "4"),
        ("What was bought before the move?", "0"),
        ("What was bought before the move to Oslo?", "0"),
        ("What was bought?", "4"),
    ],
)
def test_the_time_of_an_event_is_that_of_the_record_which_tells_of_it(
    memory: Memory, question: str, first: str
) -> None:
    bought = [hit for hit in memory.recall(question) if "bought" in str(hit.record.content)]
    assert bought[0].record.id == first
    assert ("date" in bought[0].why.shares) == ("move" in question)


def test_an_event_that_was_not_mentioned_is_no_time(memory: Memory) -> None:
    assert all("date" not in hit.why.shares for hit in memory.recall("What was bought after the wedding?"))
