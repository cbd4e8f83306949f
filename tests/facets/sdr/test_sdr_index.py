"""The SDR index gives the exact best, with either kernels and however it came to be."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.examples import some
from tests.facets.sdr.test_sdr import LONG

from recollect.facets.sdr.index import with_native as native_sdr
from recollect.facets.sdr.index import with_numpy as numpy_sdr
from recollect.facets.sdr.index.encoding import BITS, RULE, WHOLE, Encoder, encoded, encoded_all, grams
from recollect.facets.sdr.index.index import FoundRow, SdrIndex
from recollect.facets.sdr.index.types import BestRows, Query, SdrBase, SdrKernels, SdrRows
from recollect.indexes.fixed_point import SHARE_BITS

COMPILED = native_sdr.NativeSdr()
KERNELS: list[SdrKernels] = [numpy_sdr.KERNELS, COMPILED]

#: Few different bits, so that rows share many and often tie.
ROWS = st.frozensets(st.integers(0, 24) | st.sampled_from([4094, 4095]), max_size=12)


def score_of(asked: frozenset[int], row: frozenset[int], rows: list[frozenset[int]]) -> Fraction:
    """The overlap as the index's page has it, with logarithms from libm, before anything is rounded."""

    def weigh(bit: int) -> int:
        having = sum(bit in each for each in rows)
        return max(1, math.floor(math.log((2 * len(rows) + 2) / (2 * having + 1)) * 2**14))

    share = Fraction(sum(map(weigh, asked & row)), sum(map(weigh, asked)))
    return share * 1024 / (1024 + max(0, len(row) - len(asked)))


def brute(stored: dict[int, frozenset[int]], asked: frozenset[int], wanted: int) -> list[tuple[int, int]]:
    """The nearest by Hamming, all rows read: number and distance."""
    distances = sorted((len(asked ^ row), number) for number, row in stored.items())
    return [(number, distance) for distance, number in distances[:wanted]]


def index_of(stored: dict[int, frozenset[int]], kernels: SdrKernels) -> SdrIndex:
    index = SdrIndex(kernels)
    for number, row in stored.items():
        index.add(number, row)
    return index


@pytest.fixture
def merging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bases are made of few rows already."""
    monkeypatch.setattr("recollect.facets.sdr.index.index._TAIL", 3)


HELD = st.dictionaries(st.integers(-5, 40), ROWS, max_size=20)


@pytest.mark.usefixtures("merging")
class TestIndex:
    @given(HELD, ROWS, st.integers(0, 25))
    def test_the_nearest_are_those_of_reading_all_rows(
        self, stored: dict[int, frozenset[int]], asked: frozenset[int], wanted: int
    ) -> None:
        for kernels in KERNELS:
            hits = index_of(stored, kernels).nearest(asked, wanted)
            assert [(hit.number, hit.hamming) for hit in hits] == brute(stored, asked, wanted)
            assert all(Fraction(hit.score, 1 << SHARE_BITS) == 1 - Fraction(hit.hamming, BITS) for hit in hits)

    @given(HELD, ROWS, st.integers(0, 25))
    def test_the_best_by_overlap_are_those_of_reading_all_rows(
        self, stored: dict[int, frozenset[int]], asked: frozenset[int], wanted: int
    ) -> None:
        for kernels in KERNELS:
            index = index_of(stored, kernels)
            everything = index.overlapping(asked, 100)
            assert {hit.number for hit in everything} == {number for number, row in stored.items() if row & asked}
            assert everything == sorted(everything, key=lambda hit: (-hit.score, hit.number))
            assert index.overlapping(asked, wanted) == everything[:wanted]
            for hit in everything:
                exact = score_of(asked, stored[hit.number], list(stored.values()))
                # Each of two roundings takes less than one unit, and a weight may be one off where libm is.
                assert abs(exact - Fraction(hit.score, 1 << SHARE_BITS)) < Fraction(1, 1 << 12)
                assert hit.hamming == len(asked ^ stored[hit.number])
                assert 0 < hit.score <= 1 << SHARE_BITS
                assert (hit.score == 1 << SHARE_BITS) == (stored[hit.number] == asked)

    @given(HELD, st.lists(ROWS, max_size=4), st.data())
    def test_growing_merging_and_removing_leave_the_bits_of_an_index_made_at_once(
        self, stored: dict[int, frozenset[int]], questions: list[frozenset[int]], data: st.DataObject
    ) -> None:
        gone = data.draw(st.lists(st.sampled_from(sorted(stored)), unique=True)) if stored else []
        left = {number: row for number, row in stored.items() if number not in gone}
        for kernels in KERNELS:
            index, made = index_of(stored, kernels), index_of(left, kernels)
            for number in gone:
                index.remove(number)
            assert len(index) == len(left)
            for asked in questions:
                assert index.overlapping(asked, 9) == made.overlapping(asked, 9)
                assert index.nearest(asked, 9) == made.nearest(asked, 9)

    def test_what_cannot_be_added_changes_nothing(self) -> None:
        index = SdrIndex(COMPILED)
        index.add_all([1, 2], encoded_all(["one", "two"]))
        for numbers, texts in (([2], ["x"]), ([3, 3], ["x", "y"]), ([3], ["x", "y"])):
            with pytest.raises(ValueError, match="nothing was added"):
                index.add_all(numbers, encoded_all(texts))
        found = encoded_all(["many bits"])
        with pytest.raises(ValueError, match="ascending"):
            index.add_all([3], found._replace(bits=found.bits[::-1].copy()))
        for bits in ([4096], [-1]):
            with pytest.raises(ValueError, match="4096"):
                index.add(3, bits)
            with pytest.raises(ValueError, match="4096"):
                index.nearest(bits, 1)
        with pytest.raises(KeyError):
            index.remove(3)
        assert (len(index), 3 in index, 2 in index) == (2, False, True)
        assert index.bits(2).tolist() == encoded("two")

    def test_a_number_can_be_used_again(self) -> None:
        for kernels in KERNELS:
            index = index_of({number: frozenset([number]) for number in range(9)}, kernels)
            index.remove(2)
            index.add(2, [7, 8])
            assert [hit.number for hit in index.overlapping([7, 8], 9)] == [2, 7, 8]
            assert index.bits(2).tolist() == [7, 8]

    def test_equal_scores_rank_by_the_lowest_number_though_it_came_last(self) -> None:
        for kernels in KERNELS:
            index = index_of({number: frozenset([5]) for number in range(30, 0, -1)}, kernels)
            assert [hit.number for hit in index.overlapping([5], 4)] == [1, 2, 3, 4]
            assert [hit.number for hit in index.nearest([6], 4)] == [1, 2, 3, 4]

    def test_a_wrong_kernel_would_be_noticed(self) -> None:
        class Wrong(numpy_sdr.NumpySdr):
            def best(self, base: SdrBase, tail: SdrRows, asked: Query, wanted: int) -> BestRows:
                postings = np.roll(base.postings, 1)
                return super().best(base._replace(postings=postings), tail, asked, wanted)

        stored = {number: frozenset([number, number + 9]) for number in range(17)}
        wrong, right = index_of(stored, Wrong()), index_of(stored, COMPILED)
        assert wrong.overlapping([3, 4], 5) != right.overlapping([3, 4], 5)


def many_texts() -> list[str]:
    """Enough for blocks, heaps, common bits and postings at once."""
    words = "pool timeout database replica alarm queue drain retry minute outage primary second".split()
    return [f"{a} {b} {c}" for a in words for b in words for c in words]


def test_with_many_rows_numpy_and_c_agree_to_the_bit_and_so_does_reading_all_rows() -> None:
    texts = many_texts()
    sdrs = encoded_all(texts)
    one, other = SdrIndex(KERNELS[0]), SdrIndex(KERNELS[1])
    for index in (one, other):
        index.add_all(range(len(texts)), sdrs)
        for number in range(0, len(texts), 7):
            index.remove(number)
    stored = {at: frozenset(sdrs.row(at).tolist()) for at in range(len(texts)) if at % 7}
    assert (one._base.common >= 0).any()
    assert len(one._base.postings)
    for question in ("timeout of the replica", "queue queue", "alarm", "nothing known", texts[8]):
        asked = encoded(question)
        for wanted in (1, 10, 300):
            assert one.overlapping(asked, wanted) == other.overlapping(asked, wanted)
            assert one.nearest(asked, wanted) == other.nearest(asked, wanted)
        assert [(hit.number, hit.hamming) for hit in other.nearest(asked, 50)] == brute(stored, frozenset(asked), 50)


class Model(RuleBasedStateMachine):
    """Any order of adding, removing and asking, beside a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[int, frozenset[int]] = {}
        self.real = [SdrIndex(kernels) for kernels in KERNELS]

    @rule(number=st.integers(0, 30), row=ROWS)
    def put(self, number: int, row: frozenset[int]) -> None:
        for index in self.real:
            if number in self.stored:
                index.remove(number)
            index.add(number, row)
        self.stored[number] = row

    @rule(number=st.integers(0, 30))
    def remove(self, number: int) -> None:
        if self.stored.pop(number, None) is not None:
            for index in self.real:
                index.remove(number)

    @rule(asked=ROWS, wanted=st.integers(1, 6))
    def ask(self, asked: frozenset[int], wanted: int) -> None:
        one, other = (index.overlapping(asked, wanted) for index in self.real)
        assert one == other == index_of(self.stored, COMPILED).overlapping(asked, wanted)
        for index in self.real:
            assert [(hit.number, hit.hamming) for hit in index.nearest(asked, wanted)] == brute(
                self.stored, asked, wanted
            )

    @invariant()
    def counts(self) -> None:
        for index in self.real:
            assert len(index) == len(self.stored)


@pytest.mark.usefixtures("merging")
def test_in_any_order_an_index_is_as_a_dict_that_is_read_through() -> None:
    run_state_machine_as_test(Model, settings=settings(max_examples=some(40), stateful_step_count=25))


class TestRanking:
    MEMORIES = (
        "Error 500",
        "DNS timeout was the root cause of the outage",
        "Database connection pool exhausted",
        "Deploy finished",
    )

    def found(self, texts: tuple[str, ...], question: str, encoder: Encoder) -> list[FoundRow]:
        index = SdrIndex(COMPILED)
        index.add_all(range(len(texts)), encoded_all(texts, encoder))
        return index.overlapping(encoded(question, encoder), 10)

    def test_what_shares_words_ranks_before_what_is_merely_short(self) -> None:
        assert {hit.number for hit in self.found(self.MEMORIES, "database timeout", WHOLE)[:2]} == {1, 2}
        index = SdrIndex(COMPILED)
        index.add_all(range(4), encoded_all(self.MEMORIES))
        # By Hamming the short ones win, which is why it is not what ranks.
        assert index.nearest(encoded("database timeout"), 1)[0].number in (0, 3)

    def test_a_long_text_that_has_the_question_literally_is_first(self) -> None:
        question = "the queue drain and the alarms stop"
        texts = (LONG, *self.MEMORIES, "the queue", "drain the alarms", "stop and the drain")
        assert len(grams(LONG)) > 150
        assert self.found(texts, question, WHOLE)[0].number == 0
        # The lowest 80 bits of it hardly know the question: what the better encoder is for.
        assert self.found(texts, question, RULE)[0].number != 0
