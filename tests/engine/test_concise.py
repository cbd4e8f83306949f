"""Concise answers: what adds to the hits before it is kept, and the rest is listed with the reasons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect import Memory
from recollect.cli.app import app
from recollect.engine.read.concise import concise
from recollect.engine.results import Hit, Hits, Why, Word
from recollect.errors import InvalidArgumentError
from recollect.records.record import Record

FACTS = [
    "Ana prefers window seats",
    "The seat belongs to Ana",
    "Ana flies to Rome",
    "Ana likes tea",
    "Ana has a cat",
    "Bob prefers the aisle",
    "We rent a truck",
    "Window cleaning on Monday",
]
QUESTION = "Which seat does Ana prefer?"


@pytest.fixture(params=["memory", "file", "loopback"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    from recollect.stores.memory import MemoryStore
    from recollect.stores.sqlite.store import SqliteStore
    from recollect.testing import memory_on

    store = SqliteStore(tmp_path / "a.db") if request.param == "file" else MemoryStore()
    with memory_on(store, loopback=request.param == "loopback") as opened:
        opened.remember_all(FACTS)
        yield opened


def hit(score: float, **words: float) -> Hit:
    parts = tuple(Word(word, "", share, share, ()) for word, share in words.items())
    return Hit(Record(content="x", id=f"{score}", kind="knowledge"), score, 0.5, Why({"words": score}, parts))


def kept(*hits: Hit) -> list[float]:
    return [each.score for each in concise(hits)[0]]


def test_a_hit_far_below_the_first_is_left_out_and_one_that_is_near_it_is_kept() -> None:
    # 0.5 weighs an eighth of 1, so the first has 8 of 9 parts: more than 86 in a hundred.
    assert kept(hit(1.0, seat=1.0), hit(0.5, seat=0.5)) == [1.0]
    # 0.6 weighs 0.216: 1 of 1.216 is 82 in a hundred.
    assert kept(hit(1.0, seat=1.0), hit(0.6, seat=0.6)) == [1.0, 0.6]


def test_a_hit_that_covers_another_word_is_kept_where_one_that_repeats_is_not() -> None:
    # 96 in a hundred before the second; another word of a third of the question allows 86 + 30 / 4.
    assert kept(hit(1.0, seat=1.0), hit(0.35, seat=0.35)) == [1.0]
    assert kept(hit(1.0, seat=0.5, ana=0.5), hit(0.35, rome=0.35)) == [1.0]
    assert kept(hit(1.0, seat=0.4, ana=0.4), hit(0.4, rome=0.4)) == [1.0, 0.4]


def test_the_reasons_say_what_is_missing() -> None:
    _, left_out = concise((hit(1.0, seat=1.0), hit(0.3, seat=0.3), hit(0.2, seat=0.1, rome=0.1)))
    assert [(each.id, each.reason) for each in left_out] == [
        ("0.3", "the hits before it cover what it does"),
        ("0.2", "it adds little to the hits before it"),
    ]


@given(st.lists(st.floats(0.001, 2.0), max_size=12))
def test_nothing_is_lost_and_the_first_is_always_kept(scores: list[float]) -> None:
    hits = tuple(hit(score, seat=score) for score in sorted(scores, reverse=True))
    some, left_out = concise(hits)
    assert some[:1] == hits[:1]
    assert sorted([each.record.id for each in some] + [each.id for each in left_out]) == sorted(
        each.record.id for each in hits
    )


def test_equal_hits_are_all_kept() -> None:
    assert len(kept(*[hit(0.5, seat=0.5)] * 6)) == 6


def test_recall_lists_what_it_leaves_out(memory: Memory) -> None:
    every, some = memory.recall(QUESTION), memory.recall(QUESTION, concise=True)
    assert 0 < len(some) < len(every)
    assert every.left_out == ()
    assert list(some) == list(every)[: len(some)]
    assert {each.id for each in some.left_out} == {each.record.id for each in every} - {each.record.id for each in some}
    assert [each.score for each in some.left_out] == [each.score for each in list(every)[len(some) :]]
    assert f"{len(some.left_out)} left out" in repr(some)
    assert Hits.from_json(json.loads(json.dumps(some.to_json()))) == some


def test_a_concise_answer_has_a_receipt_and_replays(memory: Memory) -> None:
    receipt = memory.recall(QUESTION, concise=True).receipt
    memory.remember("Ana prefers to stand")
    assert memory.replay(receipt).status == "same"


def test_a_scope_and_a_batch_answer_concisely(memory: Memory) -> None:
    scoped = memory.scoped(user="ana")
    scoped.remember_all(FACTS)
    left_out = scoped.recall(QUESTION, concise=True).left_out
    assert all(scoped.get(each.id) for each in left_out)
    assert len(left_out) > 1
    with memory.batch() as batch:
        assert batch.recall(QUESTION, concise=True).left_out


def test_another_value_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidArgumentError, match="concise"):
        memory.recall(QUESTION, concise=1)  # type: ignore[arg-type]


def test_a_concise_context_says_which_hits_add_little(memory: Memory) -> None:
    context = memory.context(QUESTION, concise=True)
    outcomes = {item.record.content: item.outcome for item in context.items}
    assert outcomes["Ana prefers window seats"] == "whole"
    assert outcomes["Ana has a cat"] == "adds little"
    assert "has a cat" not in context
    assert "has a cat" in memory.context(QUESTION)


def test_the_command_line_counts_what_it_leaves_out(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with recollect.open(path) as memory:
        memory.remember_all(FACTS)
    shown = CliRunner().invoke(app, ["recall", QUESTION, "--concise", "--db", path])
    assert shown.exit_code == 0, shown.output
    assert "left out: 4 hits that add little; without --concise they are shown" in shown.output
    assert "a cat" not in shown.output
    context = CliRunner().invoke(app, ["context", QUESTION, "--concise", "--db", path])
    assert "a cat" not in context.output


def test_what_no_longer_holds_takes_the_place_of_nothing_that_does() -> None:
    with recollect.open(":memory:") as memory:
        for number, colour in enumerate(("red", "blue", "green", "grey")):
            memory.remember(f"Ana's favourite colour: {colour}", id=f"old{number}", valid_to="2020-01-01")
            memory.remember(f"Ana wears {colour}", id=f"new{number}")
        question = "What is Ana's favourite colour?"
        assert [hit.record.id[:3] for hit in memory.recall(question)] == ["old"] * 4 + ["new"] * 4
        found = memory.tools().call("recall", {"question": question})
        context = memory.context(question, concise=True)
    assert {each["id"] for each in found} == {"new0", "new1", "new2", "new3"}
    assert {item.record.id for item in context.items if item.outcome == "adds little"} == set()
