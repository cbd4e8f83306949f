"""The dense index: exact cosines in integers, the same in any order and on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.indexes import parameters
from recollect.indexes.documents.columns import NONE, Document
from recollect.indexes.documents.table import Table, TableBuilder
from recollect.indexes.fixed_point import SHARE_BITS
from recollect.indexes.kernels.native import vectors as native_vectors
from recollect.indexes.scoring import dense, nearest
from recollect.indexes.scoring.dense import COSINE_BITS, DenseIndex, DenseView, Products, products, quantised
from recollect.models.embedding.similarity import cosine

WHOLE = 1 << COSINE_BITS
COMPILED: Products = native_vectors.products
floats = st.floats(-(2.0**100), 2.0**100, width=32).filter(lambda each: each == 0.0 or abs(each) > 1e-30)
rows = st.lists(st.lists(floats, min_size=5, max_size=5), min_size=1, max_size=20)


def matrix(values: Any) -> Any:
    return np.array(values, dtype=np.float32)


def table(*digests: bytes) -> tuple[TableBuilder, Table]:
    documents = TableBuilder()
    for number, digest in enumerate(digests):
        documents.add(Document(str(number), [], None, (0, 0, str(number)), False, 0, 2**63 - 1, text=digest))
    return documents, documents.view()


@given(rows)
def test_a_cosine_is_that_of_the_vectors_within_the_rounding(vectors: list[list[float]]) -> None:
    given_rows = matrix(vectors)
    units = quantised(given_rows)
    found = DenseView(units, np.arange(len(units))).cosines(units[0])
    for each, row in zip(found, given_rows.tolist(), strict=True):
        assert each / WHOLE == pytest.approx(cosine(given_rows[0].tolist(), row), abs=5e-4)


@given(rows, st.randoms(use_true_random=False))
def test_a_cosine_is_the_exact_sum_of_integer_products_whatever_stands_beside(
    vectors: list[list[float]], random: Any
) -> None:
    units = quantised(matrix(vectors))
    exact = [min(WHOLE, sum(int(a) * int(b) for a, b in zip(units[0], row, strict=True))) for row in units]
    assert DenseView(units, np.arange(len(units))).cosines(units[0]).tolist() == exact
    order = list(range(len(units)))
    random.shuffle(order)
    alone = [quantised(matrix([vectors[each]]))[0].tolist() for each in order]
    assert alone == units[order].tolist()


@pytest.mark.parametrize("multiplied", [products, COMPILED])
def test_large_blocks_give_what_small_ones_do(multiplied: Products) -> None:
    units = quantised(np.random.default_rng(7).normal(size=(10_000, 64)).astype(np.float32))
    found = DenseView(units, np.arange(len(units)), multiplied).cosines(units[3])
    assert found.tolist() == (units.astype(np.int64) @ units[3].astype(np.int64)).clip(None, WHOLE).tolist()


@given(rows, st.integers(0, 40))
def test_compiled_and_not_products_are_the_same_bits(vectors: list[list[float]], longer: int) -> None:
    """As long vectors as any model's, and all their weight in one component: where sums are greatest."""
    units = quantised(np.pad(matrix(vectors), ((0, 0), (0, 100 * longer))))
    wanted = np.stack([units[0], -units[0], np.full_like(units[0], 1 << 14 >> 6)])
    for each in wanted:
        assert COMPILED(units, each).tolist() == products(units, each).tolist()


def test_a_document_without_a_vector_has_no_cosine() -> None:
    units = quantised(matrix([[1.0, 0.0], [0.0, 1.0]]))
    for multiplied in (products, COMPILED):
        assert DenseView(units, np.array([NONE, 0, NONE, 1]), multiplied).cosines(units[1]).tolist() == [
            -WHOLE,
            0,
            -WHOLE,
            WHOLE,
        ]
    assert DenseView(units[:0], np.array([NONE])).cosines(units[1]).tolist() == [-WHOLE]


def test_extreme_vectors_keep_their_direction() -> None:
    vectors = matrix([[3e38, 3e38], [1e-45, 0.0], [0.0, 0.0], [1.0, 1e-38]])
    assert quantised(vectors).tolist() == [[11585, 11585], [16384, 0], [0, 0], [16384, 0]]


def test_shares_are_what_lies_above_the_floor_and_only_of_the_living_and_visible() -> None:
    documents, _ = table(b"a", b"b", b"c", b"", b"a")
    documents.remove("4")
    stored = documents.view()
    index = DenseIndex(stored.rows, 2)
    index.add({b"a": matrix([1, 0]), b"b": matrix([3, 4]), b"c": matrix([0, 1])})
    asked = quantised(matrix([[1, 0]]))[0]
    dense = index.view(stored).score(asked, stored, 0.2, 0.6, 0.25)
    expected = [0.25 * 0.8, 0.25 * 0.4, 0.0, 0.0, 0.0]
    assert (dense.shares / (1 << SHARE_BITS)).tolist() == pytest.approx(expected, abs=1e-4)
    assert dense.admitted.tolist() == [0, 1][: 1 + bool(quantised(matrix([[3, 4]]))[0][0] >= 0.6 * 16384)]
    visible = np.array([False, True, True, True, True])
    scoped = index.view(stored).score(asked, stored.only(visible, lambda table, stale: table), 0.2, 0.5, 0.25)
    assert (scoped.shares > 0).tolist() == [False, True, False, False, False]
    assert scoped.admitted.tolist() == [1]


def test_a_cosine_at_the_floor_counts_for_nothing_and_admits_nothing() -> None:
    _, stored = table(b"a", b"b")
    index = DenseIndex(stored.rows, 2)
    index.add({b"a": matrix([0, 1]), b"b": matrix([-1, 0])})
    dense = index.view(stored).score(quantised(matrix([[1, 0]]))[0], stored, 0.0, 0.0, 0.25)
    assert (dense.shares.tolist(), dense.admitted.tolist()) == ([0, 0], [])


def test_a_view_stays_as_it_was_while_vectors_and_documents_arrive() -> None:
    documents, first = table(b"a", b"b")
    index = DenseIndex(first.rows, 2)
    index.add({b"a": matrix([1, 0])})
    asked = quantised(matrix([[1, 0]]))[0]
    early = index.view(first)
    before = early.cosines(asked).tolist()
    for number in range(40):
        documents.add(Document(f"n{number}", [], None, (0, 0, ""), False, 0, 2**63 - 1, text=b"b"))
        index.add({b"b": matrix([1, number]), b"%d" % number: matrix([0, 1]), b"a": matrix([0, 1])})
        later = documents.view()
        assert len(index.view(later).cosines(asked)) == later.count
    assert early.cosines(asked).tolist() == before == [WHOLE, -WHOLE]
    now = index.view(first).cosines(asked).tolist()
    assert now[0] == 0
    assert now[1] == index.view(documents.view()).cosines(asked)[2] > 0


def many(count: int, dimension: int, seed: int = 1) -> Any:
    draw = np.random.default_rng(seed)
    return quantised((draw.normal(size=(count, dimension)) + 0.2 * draw.normal(size=dimension)).astype(np.float32))


@pytest.mark.parametrize("dimension", [40, 64, 100, 384])
def test_compiled_or_not_the_same_vectors_are_nearest(dimension: int, monkeypatch: pytest.MonkeyPatch) -> None:
    units = many(5000, dimension)
    rows = np.random.default_rng(2).permutation(5000)[:4000].astype(np.int64)
    found = []
    for native in (True, False):
        monkeypatch.setattr(nearest, "uses_native", lambda native=native: native)
        found.append([nearest.nearest(units, units[at], nearest.signs_of(units), rows) for at in (0, 7)])
    for (places, products_of, median), (others, same, estimated) in zip(*found, strict=True):
        assert places.tolist() == others.tolist()
        assert products_of.tolist() == same.tolist()
        assert median == estimated
        assert parameters.NEAREST <= len(places) < 2000


def test_what_is_close_is_among_the_nearest() -> None:
    """A question between two vectors of many is compared with both; without estimates it would not be."""
    units = many(20_000, 384)
    numbers = np.arange(20_000, dtype=np.int64)
    for one, other in ((3, 19_000), (777, 12_345)):
        asked = quantised((units[one].astype(np.float32) + units[other])[None, :])[0]
        places, cosines, _ = nearest.nearest(units, asked, nearest.signs_of(units), numbers)
        assert {one, other} <= set(places.tolist())
        assert cosines[np.searchsorted(places, one)] > WHOLE // 2
    assert len(places) < 2000  # the control: not all are compared


@pytest.mark.parametrize("towards", [0.0, 0.5, 1.5])
def test_the_median_of_many_cosines_is_estimated(towards: float) -> None:
    """Within eight hundredths (too low, since the best estimates are too high), and 0 where it is negative."""
    draw = np.random.default_rng(5)
    direction = draw.normal(size=384)
    units = quantised((draw.normal(size=(5000, 384)) + towards * direction).astype(np.float32))
    asked = quantised((direction + 0.3 * draw.normal(size=384)).astype(np.float32)[None, :])[0]
    found = nearest.nearest(units, asked, nearest.signs_of(units), np.arange(5000, dtype=np.int64))
    exact = float(np.median(products(units, asked))) / WHOLE
    assert abs(found.median / WHOLE - max(exact, 0.0)) < 0.08
    assert (exact > 0.3) == (towards > 0)  # the control: the three differ
    away = nearest.nearest(units, -asked, nearest.signs_of(units), np.arange(5000, dtype=np.int64))
    assert away.median < WHOLE // 20


def test_compiled_or_not_turns_lend_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    documents = TableBuilder()
    for number in range(300):
        session = ("c", f"s{number // 20}") if number % 7 else None
        terms = [("t", "t")] * int(draw.integers(1, 40))
        key = (number, 0, str(number))
        documents.add(Document(str(number), terms, session, key, bool(number % 5), 0, 2**63 - 1, text=b"a"))
    for number in range(0, 300, 11):
        documents.remove(str(number))
    stored = documents.view()
    numbers = np.flatnonzero(stored.alive[: stored.count] & (draw.random(stored.count) < 0.3))
    above = draw.integers(1, WHOLE, size=len(numbers))
    found = []
    for native in (True, False):
        monkeypatch.setattr(dense, "uses_native", lambda native=native: native)
        found.append([each.tolist() for each in dense.lent(stored, numbers, above, (12_345, 10_000))])
    assert found[0] == found[1]
    assert len(found[0][1]) > len(numbers)  # the control: something is lent
