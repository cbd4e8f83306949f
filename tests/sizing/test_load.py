"""Sizes have the sum that is asked for and a heavy tail, loads are Zipf's, and the cache evicts as the engine does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.engine.follower import Budget
from recollect.sizing.cache import Cache, finished
from recollect.sizing.load import cached_for, drawn, hits_of, sizes_of, zipf


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@pytest.mark.parametrize(("records", "namespaces"), [(10_000_000, 10_000), (10_000, 10_000), (7, 1)])
def test_sizes_have_the_sum_and_no_namespace_is_empty(records: int, namespaces: int) -> None:
    sizes = sizes_of(records, namespaces, generator())
    assert (len(sizes), sizes.sum(), sizes.min() >= 1) == (namespaces, records, True)


def test_sizes_have_the_tail_of_their_distribution() -> None:
    sizes = np.sort(sizes_of(10**9, 10**6, generator()))[::-1]
    # Of a Pareto distribution with exponent 1.5, the largest fifth has 0.2 ** (1 - 1 / 1.5) = 58 per cent of the sum.
    assert sizes[:200_000].sum() / sizes.sum() == pytest.approx(0.585, abs=0.02)


def test_the_load_is_drawn_in_proportion_to_the_shares() -> None:
    shares = zipf(1000, 1.1)
    counts = np.bincount(drawn(shares, 400_000, generator()), minlength=1000) / 400_000
    assert np.abs(counts - shares)[:20].max() < 0.003


@dataclass
class Sized:
    nbytes: int


@given(
    st.lists(st.integers(1, 50), min_size=8, max_size=8),
    st.lists(st.integers(0, 7), max_size=60),
    st.integers(1, 120),
)
def test_the_cache_evicts_as_that_of_the_engine(sizes: list[int], keys: list[int], budget: int) -> None:
    real: Budget[int, Sized] = Budget(budget)
    missed = []
    for key in keys:
        missed.append(real.get(key) is None)
        if missed[-1]:
            real.put(key, Sized(sizes[key]))
    cache = Cache(budget, sizes)
    assert cache.use(keys).tolist() == missed
    assert (cache.keys.tolist(), cache.nbytes) == (list(real), real.nbytes)


def test_a_cache_of_one_queue_would_be_noticed() -> None:
    # The control: first in, first out would evict 0, which was used last.
    cache = Cache(20, [10, 10, 10])
    assert cache.use([0, 1, 0, 2, 0]).tolist() == [True, True, False, True, False]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), max_size=30), st.integers(0, 60))
def test_calls_are_served_one_after_the_other(calls: list[tuple[int, int]], free_at: int) -> None:
    arrivals = sorted(arrival for arrival, _ in calls)
    services = [service for _, service in calls]
    expected, now = [], free_at
    for arrival, service in zip(arrivals, services, strict=True):
        now = max(now, arrival) + service
        expected.append(now)
    assert finished(np.array(arrivals, float), np.array(services, float), float(free_at)).tolist() == expected


def test_ches_approximation_is_the_rate_of_the_cache_itself() -> None:
    shares, sizes = zipf(5000, 1.0), sizes_of(500_000, 5000, generator(3))
    budget = 150_000
    cache = Cache(budget, sizes.tolist())
    asked = drawn(shares, 400_000, generator(4)).tolist()
    cache.use(asked[:200_000])
    assert 1 - cache.use(asked[200_000:]).mean() == pytest.approx(hits_of(shares, sizes, budget), abs=0.01)


def test_the_namespaces_for_a_rate_of_hits_give_that_rate() -> None:
    shares = zipf(20_000, 1.1)
    needed = cached_for(shares, 0.9)
    assert hits_of(shares, np.ones(20_000, np.int64), needed) == pytest.approx(0.9, abs=1e-6)
