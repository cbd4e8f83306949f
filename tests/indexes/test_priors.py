"""Recency and importance: shares of a score that a question may ask for, which admit nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.errors import InvalidArgumentError
from recollect.indexes.fixed_point import SHARE_BITS, halved

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with recollect.open(":memory:", clock=lambda: NOW) as opened:
        for age, importance in ((0, None), (30, 1.0), (60, 0.5), (400, 0.25)):
            opened.remember(f"the ferry leaves pier {age}", id=f"d{age}", time=NOW - age * DAY, importance=importance)
        opened.remember("nothing of that", id="new", time=NOW, importance=1.0)
        opened.remember("the ferry of the future", id="future", time=NOW + 5 * DAY)
        yield opened


def shares(memory: Memory, name: str, **asked: Any) -> dict[str, float]:
    return {hit.record.id: hit.why.shares.get(name, 0.0) for hit in memory.recall("ferry pier", **asked)}


def test_recency_is_halved_with_each_half_life(memory: Memory) -> None:
    found = shares(memory, "recency", recency=0.4, recency_half_life=30 * DAY)
    assert found == pytest.approx(
        {"d0": 0.4, "d30": 0.2, "d60": 0.1, "d400": 0.4 * 2 ** (-400 / 30), "future": 0.4}, abs=1e-7
    )


def test_importance_is_a_share_in_proportion_and_may_fade(memory: Memory) -> None:
    assert shares(memory, "importance", importance=0.4) == pytest.approx(
        {"d0": 0, "d30": 0.4, "d60": 0.2, "d400": 0.1, "future": 0}, abs=1e-7
    )
    faded = shares(memory, "importance", importance=0.4, importance_half_life=30 * DAY)
    assert faded["d30"] == pytest.approx(0.2, abs=1e-7)
    assert faded["d60"] == pytest.approx(0.05, abs=1e-7)


def test_the_shares_add_up_to_the_score_and_the_order_follows(memory: Memory) -> None:
    hits = memory.recall("ferry pier", recency=0.3, importance=0.9, importance_half_life=90 * DAY)
    for hit in hits:
        assert sum(map(Fraction, hit.why.shares.values())) == Fraction(hit.score)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[0].record.id == "d30"


def test_neither_makes_a_record_a_hit_nor_changes_a_confidence(memory: Memory) -> None:
    plain = {hit.record.id: hit.confidence for hit in memory.recall("ferry pier")}
    weighted = {hit.record.id: hit.confidence for hit in memory.recall("ferry pier", recency=1.0, importance=1.0)}
    assert weighted == plain
    assert "new" not in weighted
    least = sorted(plain.values())[2]
    some = memory.recall("ferry pier", recency=1.0, min_confidence=least)
    assert {hit.record.id for hit in some} == {each for each, value in plain.items() if value >= least}


def test_off_they_leave_no_trace(memory: Memory) -> None:
    assert all(not {"recency", "importance"} & hit.why.shares.keys() for hit in memory.recall("ferry pier"))
    assert "recency" not in str(memory.recall("ferry pier").hits[0].why)


def test_a_filter_changes_no_score(memory: Memory) -> None:
    whole = {hit.record.id: hit.score for hit in memory.recall("ferry pier", recency=0.5)}
    for hit in memory.recall("ferry pier", recency=0.5, k=1, where=f.id("d60") | f.id("d400")):
        assert hit.score == whole[hit.record.id]


def test_records_without_a_time_are_not_recent() -> None:
    with recollect.open(":memory:", clock=lambda: NOW) as memory:
        memory.remember_all([recollect.Record(id="timeless", content="the ferry", importance=1.0)])
        (hit,) = memory.recall("ferry", recency=1.0, importance=0.5, importance_half_life=1)
        assert "recency" not in hit.why.shares
        assert hit.why.shares["importance"] == pytest.approx(0.5)


def test_the_past_and_receipts_have_them_too(memory: Memory) -> None:
    hits = memory.recall("ferry pier", recency=0.5, importance=0.5)
    receipt = hits.receipt
    memory.remember("the ferry is gone, pier and all", importance=1.0)
    assert memory.replay(receipt).status == "same"
    again = memory.at(hits.watermark).recall("ferry pier", recency=0.5, importance=0.5, reference=hits.reference)
    assert [(hit.record.id, hit.score) for hit in again] == [(hit.record.id, hit.score) for hit in hits]


@pytest.mark.parametrize(
    "asked",
    [
        {"recency": -0.1},
        {"recency": 1.1},
        {"recency": math.nan},
        {"importance": True},
        {"importance": "high"},
        {"recency": 0.5, "recency_half_life": 0},
        {"recency": 0.5, "recency_half_life": None},
        {"importance_half_life": -1},
    ],
)
def test_invalid_weights_are_errors(asked: dict[str, Any], memory: Memory) -> None:
    with pytest.raises(InvalidArgumentError):
        memory.recall("ferry", **asked)


@given(age=st.integers(0, 2**53), half_life=st.integers(1, 3_155_760_000_000_000))
def test_halving_is_accurate_in_any_range(age: int, half_life: int) -> None:
    (got,) = halved(np.array([age]), half_life).tolist()
    exact = 2.0 ** -(age / half_life) if age / half_life < 1000 else 0.0
    assert got / 2**SHARE_BITS == pytest.approx(exact, abs=2e-5)
