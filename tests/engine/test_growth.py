"""The cost of an input grows with its length, whatever it repeats: measured exactly, at small sizes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import date
from typing import Any

import pytest
from tests.examples import FULL
from torture.growth import FORMS, MOST_GROWTH, SURFACES, a_memory, growth_of
from torture.repeats import TOKENS

from recollect.errors import RecollectError
from recollect.text import dates
from recollect.text.dates import naming
from recollect.text.words import language_of

SIZE = 1024
_OTHERS = [name for name in SURFACES if name != "recall"]
#: Every kind is a question, and is passed to one of the other calls: each of these gets several kinds.
CASES = [("recall", kind) for kind in TOKENS] + [
    (_OTHERS[number % len(_OTHERS)], kind) for number, kind in enumerate(TOKENS)
]


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Make once what is made once for all inputs, such as compiled patterns. The measure would slow that down."""
    with a_memory() as reading:
        for call, _, is_write in SURFACES.values():
            for kind in ("word", "Chinese", "sentence"):
                for bytes_ in (64, 128):
                    with a_memory() if is_write else nullcontext(reading) as memory, suppress(RecollectError):
                        call(memory, FORMS["distinct"](TOKENS[kind], bytes_))


@pytest.mark.promise("input.linear")
@pytest.mark.parametrize(("surface", "kind"), CASES[:: 1 if FULL else 3])
def test_twice_the_tokens_cost_about_twice_as_much(surface: str, kind: str) -> None:
    for form in FORMS if FULL else ("alike",):
        assert growth_of(surface, kind, form, SIZE).growth < MOST_GROWTH


def test_control_work_on_the_whole_question_for_each_date_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop as it was: it detected the language of the question for each date in it."""
    accepted = naming._accepted

    def with_language(words: Any, text: str, *rest: Any) -> Any:
        language_of(text)
        return accepted(words, text, *rest)

    monkeypatch.setattr(naming, "_accepted", with_language)
    monkeypatch.setattr(naming, "MOST_DATES", 10**6)
    # At twice the size, where what is done once for a question counts less.
    assert growth_of("recall", "ISO date", "alike", 2 * SIZE).growth > MOST_GROWTH


@pytest.mark.parametrize("count", [dates.MOST_DATES, dates.MOST_DATES + 1, 1000])
def test_the_first_dates_of_a_question_count(count: int) -> None:
    written: dict[str, Callable[[int], str]] = {
        "iso": lambda at: f"{1950 + at % 60}-03-{1 + at % 28:02}",
        "numeric": lambda at: f"{1 + at % 28}.03.{1950 + at % 60}",
        "in words": lambda at: f"on {1 + at % 28} March {1950 + at % 60}",
    }
    for each in written.values():
        found = dates.named(" ".join(map(each, range(count))), date(2026, 1, 1))
        expected = dates.named(" ".join(map(each, range(min(count, dates.MOST_DATES)))), date(2026, 1, 1))
        assert found == expected
