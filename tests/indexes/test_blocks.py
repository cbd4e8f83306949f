"""Caches of searches for a segment, and how much a search leaves out. That its results are exact: test_segments."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.text.conversations import document

from recollect.indexes.documents.columns import NONE
from recollect.indexes.fixed_point import ONE, SHARE_BITS
from recollect.indexes.kernels import blocks, choose
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.kernels.interface import Kernels
from recollect.indexes.kernels.native import kernels as native_kernels
from recollect.indexes.kernels.types import WEIGHED_BITS, About, Extras, Near, Reached, Wanted
from recollect.indexes.parameters import NOVEL
from recollect.indexes.scoring import scores
from recollect.indexes.scoring.scores import weighed
from recollect.indexes.scoring.signals import read
from recollect.indexes.words.index import WordIndex, WordView
from recollect.indexes.words.segment import Builder, Segment
from recollect.text.answers import Kind
from recollect.text.manner import OWN, WISHES

WORDS = [f"word{at}" for at in range(300)]
NATIVE = native_kernels.NativeKernels()


def segment_of(documents: int, seed: int = 1) -> Segment:
    """Turns in sessions of thirty, with words of very different frequency."""
    draw, builder = Random(seed), Builder()
    for at in range(documents):
        text = " ".join(draw.choices(WORDS, [1 / (rank + 1) for rank in range(len(WORDS))], k=10))
        builder.add(document(f"r{at:05}", text, session=f"s{at // 30}", position=at))
    return builder.segment()


def ask(view: WordView, question: str, kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """The number of documents that a search returns, and the number that the question reaches."""
    monkeypatch.setattr(scores, "chosen", lambda: kernels)
    asked = read(question, view, date(2026, 1, 1))
    found = weighed(view, asked.asked, asked.sequence).reach_best(About(NONE, ()), Wanted(10, 10))
    return len(found.numbers), found.passed


@pytest.mark.parametrize("kernels", [NATIVE, numpy_kernels.KERNELS], ids=["native", "numpy"])
def test_a_search_computes_a_small_part_of_what_a_question_reaches(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    returned, reached = ask(WordIndex(segment_of(6000)).view(), "word2 word40 word90", kernels, monkeypatch)
    assert reached > 3000
    assert returned < reached / 2


def test_the_memory_of_a_search_goes_with_its_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    view = WordIndex(segment_of(2500)).view()
    ask(view, "word2 word3", NATIVE, monkeypatch)
    segment = view.segment
    assert segment is not None
    assert blocks.bytes_of(segment) > 0
    gone = weakref.ref(segment)
    del view, segment
    assert gone() is None  # at once: no cycle of references waits for the collector


def test_summaries_of_the_least_recently_used_terms_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_PART", 10**9)
    monkeypatch.setattr(blocks, "_LEAST_BYTES", 20_000)
    view = WordIndex(segment_of(2500)).view()
    assert view.segment is not None
    sizes = []
    for at in range(40):
        ask(view, f"{WORDS[at]} word1", NATIVE, monkeypatch)
        sizes.append(blocks.bytes_of(view.segment) - 8 * view.segment.count)
    assert max(sizes) <= 20_000
    base = blocks.base_of(view.segment, view.table)
    assert view.segment.term("word1") in base._summaries
    assert view.segment.term("word5") not in base._summaries


def test_an_evicted_summary_is_computed_again_with_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    view = WordIndex(segment_of(2500)).view()
    before = ask(view, "word2 word40", NATIVE, monkeypatch)
    assert view.segment is not None
    base = blocks.base_of(view.segment, view.table)
    first = dict(base._summaries)
    base._summaries.clear()
    assert ask(view, "word2 word40", NATIVE, monkeypatch) == before
    for number, summary in base._summaries.items():
        for name in ("blocks", "most", "sessions", "times", "reached", "bits"):
            assert np.array_equal(getattr(summary, name), getattr(first[number], name))


def by_blocks_and_of_all(
    view: WordView, question: str, about: About, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Reached]:
    """What a search finds by blocks, and what it finds if it computes all documents."""
    asked = read(question, view, date(2026, 1, 1))
    scored = weighed(view, asked.asked, asked.sequence)
    for least in (choose.LEAST, 10**9):
        with monkeypatch.context() as patched:
            patched.setattr(choose, "LEAST", least)
            reached = scored.reach_best(about, wanted)
        yield reached


@pytest.mark.parametrize("kernels", [NATIVE, numpy_kernels.KERNELS], ids=["native", "numpy"])
def test_a_search_finds_the_heaviest_documents_wherever_they_are(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, builder = Random(3), Builder()
    for at in range(4000):
        text = " ".join(draw.choices(WORDS[:40], k=draw.randrange(3, 14)))
        made = document(f"r{at:05}", text, session=f"s{at // 30}", position=at)
        manner = draw.choice([ONE] * 40 + [ONE * 3 // 5, ONE * 2])
        kinds, wish = draw.choice([0] * 40 + [Kind.TIME, Kind.PAST]), draw.choice([0] * 60 + [1])
        builder.add(made._replace(manner=manner, offers=kinds, standing=wish))
    view = WordIndex(builder.segment()).view()
    monkeypatch.setattr(scores, "chosen", lambda: kernels)
    about = About(NONE, (Kind.TIME, Kind.PAST))
    for _ in range(40):
        question = " ".join(draw.sample(WORDS[:40], 3))
        found = []
        for reached in by_blocks_and_of_all(view, question, about, Wanted(10, 5), monkeypatch):
            totals = kernels.weigh(reached, np.zeros(0, dtype=np.int64), view.table, about).tolist()
            ranked = sorted(zip(totals, reached.numbers.tolist(), strict=True), reverse=True)
            standing = [each for each in ranked if view.table.standing[each[1]]]
            found.append(([total for total, _ in ranked[:10]], [total for total, _ in standing[:5]], reached.passed))
        assert found[0] == found[1]


def test_the_weight_of_no_document_is_above_what_a_summary_can_state() -> None:
    greatest = OWN * prod(WISHES.values()) * (1 + Fraction(*NOVEL))
    assert greatest * (1 << WEIGHED_BITS) < (1 << 16) - 2


@pytest.mark.parametrize("kernels", [NATIVE, numpy_kernels.KERNELS], ids=["native", "numpy"])
def test_a_search_finds_what_is_near_in_meaning_wherever_it_is(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = Random(5)
    view = WordIndex(segment_of(4000, seed=5)).view()
    monkeypatch.setattr(scores, "chosen", lambda: kernels)
    about = About(NONE, ())
    for _ in range(20):
        shares = np.zeros(4000, dtype=np.int64)
        some = sorted(draw.sample(range(4000), draw.choice([5, 200])))
        shares[some] = [draw.randrange(1, 1 << SHARE_BITS) for _ in some]
        admitted = np.array([each for each in some if draw.random() < 0.3], dtype=np.int64)
        near = Near(shares, np.array(some, dtype=np.int64))
        nothing = np.zeros(len(admitted), dtype=np.int64)

        def bounds_in(first: Any, last: Any) -> Any:
            return np.zeros(len(first), dtype=np.int64), np.zeros(len(first), dtype=np.int64)

        extras = Extras(admitted, nothing, bounds_in, shares.__getitem__, near)
        question = " ".join(draw.sample(WORDS[:60], 3))
        found = []
        for reached in by_blocks_and_of_all(view, question, about, Wanted(10, 5, None, extras), monkeypatch):
            totals = kernels.weigh(reached, shares[reached.numbers], view.table, about).tolist()
            found.append((sorted(totals, reverse=True)[:10], reached.passed))
        assert found[0] == found[1]
