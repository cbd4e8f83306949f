"""New words: the weight of a turn is a function of the live turns of its group, however the index came to be."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.indexes.test_segments import agreed_on_the_best_of, built
from tests.text.conversations import advance, made_of

import recollect
from recollect.indexes.documents.columns import FIELDS, NEVER, NONE, Document, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import ONE
from recollect.indexes.kernels import choose
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.kernels.types import About, Wanted
from recollect.indexes.scoring.scores import weighed
from recollect.indexes.words.index import QueryTerm, WordIndex, WordView
from recollect.indexes.words.merge import merged
from recollect.indexes.words.segment import LAST_POSITION
from recollect.text.words import terms

IDS = [f"r{number}" for number in range(12)]
WORDS = "boat tea harbour stove roof mast lamp kettle 我喜欢猫".split()


def turn(
    record_id: str,
    text: str,
    micros: int = 0,
    position: int = 0,
    conversation: str | None = "c",
    user: str | None = None,
    expires: int = NEVER,
    manner: int = ONE,
) -> Document:
    fields = {"conversation": conversation, "user": user}
    return Document(
        id=record_id,
        terms=list(terms(text)),
        session=None if conversation is None else (conversation, str(micros // 2)),
        sort_key=(position, micros, record_id),
        asks=False,
        micros=micros,
        expires=expires,
        fields=tuple(fields.get(name) for name in FIELDS),
        manner=manner,
        titles=(("boat", "boats"),) if conversation is None else (),
    )


turns = st.builds(
    turn,
    st.sampled_from(IDS),
    st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
    st.integers(0, 3),
    st.integers(0, 1),
    st.sampled_from(["c", "c", "c", "d", None]),
    st.sampled_from([None, None, "ana"]),
    st.sampled_from([NEVER, NEVER, 10, 20]),
    st.sampled_from([ONE, ONE * 3 // 5]),
)
some_turns = st.lists(turns, max_size=12, unique_by=lambda each: each.id)
histories = st.lists(
    st.tuples(st.lists(st.sampled_from(IDS), max_size=2), st.lists(turns, max_size=3, unique_by=lambda each: each.id)),
    max_size=8,
)


def expected(stored: Iterable[Document]) -> dict[str, int]:
    """The weights as the page says them, one turn after the other."""
    said: dict[tuple[str | None, ...], set[str]] = {}
    out = {}
    for each in sorted(stored, key=lambda each: (each.micros, each.sort_key[0], each.id)):
        out[each.id] = each.manner
        if each.session is not None:
            own = {term for term, word in each.terms if word}
            known = said.setdefault(tuple(each.fields[FIELDS.index(name)] for name in ("user", "conversation")), set())
            out[each.id] += int(Fraction(3, 10) * each.manner * min(16, len(own - known)) / 16)
            known |= own
    return out


def weights(table: Table) -> dict[str, int]:
    live = np.flatnonzero(table.alive[: table.count]).tolist()
    return {table.id(number): int(table.weight[number]) for number in live}


@pytest.mark.parametrize(
    ("new", "factor"), [(4, 1.075), (3, 1.05625), (1, 1.01875), (5, 1.09375), (16, 1.3), (40, 1.3)]
)
def test_the_golden_values_of_the_specification(new: int, factor: float) -> None:
    words = ["".join(letters) for letters in product("bdfglmnprt", "ao", "kz")][:new]
    assert weights(made_of([turn("a", " ".join(words * 2))]).view().table)["a"] / ONE == pytest.approx(factor, abs=2e-5)


@settings(max_examples=some(300))
@given(some_turns, histories, st.sampled_from([0, 10, 15, 20]))
def test_a_weight_is_that_of_the_live_turns_whatever_happened_to_the_index(
    first: list[Document], history: list[tuple[list[str], list[Document]]], now: int
) -> None:
    index, stored = WordIndex(built(first)), {each.id: each for each in first}
    assert weights(index.view().table) == expected(first)
    fork, forked = index.fork(), dict(stored)
    views = []
    for step in history:
        advance(index, stored, step)
        advance(fork, forked, step)
        views.append((index.view(), expected(stored.values())))
    for view, right in views:  # also after the later steps
        assert weights(view.table) == right
    assert weights(fork.view().table) == expected(forked.values())
    view = index.view()
    assert weights(WordIndex(merged(view)).view().table) == expected(stored.values())
    assert weights(view.at(now).table) == expected(each for each in stored.values() if each.expires > now)
    kept = sorted(stored)[::2]
    some_of = view.narrowed("half", lambda: view.table.mask(kept))
    assert weights(some_of.table) == expected(stored[each] for each in kept)


@settings(max_examples=some(100))
@given(some_turns, some_turns, st.lists(st.tuples(st.sampled_from(IDS), turns), max_size=8))
def test_a_turn_that_only_gets_another_importance_keeps_all_weights_of_its_group(
    first: list[Document], later: list[Document], changes: list[tuple[str, Document]]
) -> None:
    """In one step with a new turn, in the segment or after it."""
    index, stored = WordIndex(built(first)), {each.id: each for each in first}
    advance(index, stored, ([], later))
    index.view()
    for record_id, new in changes:
        touched = [stored[record_id]._replace(importance=0.5)] if record_id in stored and record_id != new.id else []
        advance(index, stored, ([], [new, *touched]))
        assert weights(index.view().table) == expected(stored.values())


@pytest.mark.parametrize("in_segment", [True, False])
def test_only_what_changes_the_words_or_the_order_of_a_group_has_it_counted_again(
    in_segment: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = [turn(f"r{at}", f"boat {word} tea", at) for at, word in enumerate(WORDS)]
    index = WordIndex(built(stored)) if in_segment else made_of(stored)
    index.view()
    counted: list[int] = []
    count_again = WordView.counted_again

    def noted(self: WordView, turns: Ints) -> Ints:
        counted.append(len(turns))
        return count_again(self, turns)

    monkeypatch.setattr(WordView, "counted_again", noted)

    def replaced(new: Document) -> bool:
        counted.clear()
        index.apply([new.id], [new])
        index.view()
        return bool(counted)

    assert not replaced(stored[2]._replace(importance=0.5, session=("c", "other")))
    assert not replaced(stored[-1]._replace(importance=0.5))
    assert not replaced(stored[-1]._replace(importance=0.7))
    assert replaced(turn("r2", f"tea {WORDS[2]} boat", 2))  # other positions count as other words
    assert replaced(turn("r2", f"boat {WORDS[2]} lamp", 2))
    assert replaced(turn("r3", WORDS[3], 3))
    assert replaced(turn("r4", f"boat {WORDS[4]} tea", 9))
    assert replaced(turn("r5", f"boat {WORDS[5]} tea", 5, user="ana"))
    assert replaced(turn("r6", f"boat {WORDS[6]} tea", 6, manner=ONE // 2))
    assert replaced(turn("r1", f"boat {WORDS[1]} tea", 1, conversation=None))


@pytest.mark.parametrize("in_segment", [True, False])
def test_words_behind_the_last_position_may_have_changed(in_segment: bool) -> None:
    many = [("boat", "boat")] * LAST_POSITION
    stored = {
        "a": turn("a", "")._replace(terms=[*many, ("tea", "tea"), ("lamp", "lamp")]),
        "b": turn("b", "lamp", 1),
    }
    index = WordIndex(built(list(stored.values()))) if in_segment else made_of(stored.values())
    index.view()
    advance(index, stored, ([], [stored["a"]._replace(terms=[*many, ("tea", "tea"), ("tea", "tea")])]))
    assert weights(index.view().table) == expected(stored.values())


def test_what_is_left_out_of_a_view_and_what_is_removed_must_be_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the test above."""
    stored = {each.id: each for each in (turn("a", "boat", 0, expires=10), turn("b", "boat tea", 1))}
    index = made_of(stored.values())
    monkeypatch.setattr(WordView, "_renewed", lambda self, table, stale: table)
    monkeypatch.setattr(WordView, "counted_again", lambda self, turns: self.table.weight[turns])
    assert weights(index.view().at(10).table) != expected([stored["b"]])
    index.apply(["a"], [])
    assert weights(index.view().table) != expected([stored["b"]])


def test_a_search_by_blocks_sees_the_weights_of_turns_that_have_lost_an_earlier_one() -> None:
    """In the segment, a later turn had fewer new words, and the bounds of its block are those of the segment."""
    common = " ".join(WORDS)
    stored = [turn(f"r{at:04}", f"{common} lighthouse" if at in (0, 3000) else "sail", at) for at in range(4000)]
    index = WordIndex(built(stored))
    index.view()
    index.apply(["r0000"], [])
    view = index.view()
    assert view.table.weight[view.table.number("r3000")] > ONE * 11 // 10
    wanted = [QueryTerm("lighthous", "lighthouse", ONE), QueryTerm("sail", "sail", ONE)]
    asked = weighed(view, wanted, ["lighthous", "sail"])
    for kernels in (numpy_kernels.KERNELS, choose.chosen()):
        whole = kernels.reach(asked.postings, view.table, asked.weights, np.zeros(0, dtype=np.int64))
        agreed_on_the_best_of(kernels, asked, whole, About(NONE, ()), Wanted(3, 3))


def test_a_turn_that_comes_first_is_the_first_to_say_something_until_it_is_forgotten(tmp_path: Path) -> None:
    memory = recollect.open(tmp_path / "a.db")

    def asked() -> dict[str, float]:
        return {hit.record.id: hit.score for hit in memory.recall("ferry pier")}

    memory.remember("The ferry leaves pier 7", id="late", conversation="c", kind="conversation", time="2026-02-01")
    alone = asked()["late"]
    memory.remember("The ferry leaves pier 7", id="early", conversation="c", kind="conversation", time="2026-01-01")
    both = asked()
    assert both["early"] > both["late"]
    memory.forget("early")
    assert asked() == {"late": alone}
    assert {hit.record.id: hit.score for hit in memory.at(2).recall("ferry pier")} == both
    memory.close()
