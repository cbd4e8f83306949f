"""A load: how many records each namespace has, how often each is asked, and what a cache of a size can do with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: The exponent of the Pareto distribution of sizes. The largest of a million namespaces then has some thousand
#: times as many records as the mean, and the largest fifth of them have more than half of all.
SIZE_EXPONENT = 1.5
_STEPS = 100


def sizes_of(records: int, namespaces: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return numbers of records, at least one for each namespace, with a heavy tail and an exact sum.

    Args:
        records: Their sum; at least `namespaces`.
    """
    weights = (1.0 - rng.random(namespaces)) ** (-1.0 / SIZE_EXPONENT)
    reached = np.cumsum(weights)
    steps = np.rint(reached / reached[-1] * (records - namespaces)).astype(np.int64)
    return np.asarray(np.diff(steps, prepend=0) + 1, np.int64)


def zipf(namespaces: int, exponent: float) -> NDArray[np.float64]:
    """Return the share of the load that each namespace has, the greatest first: the n-th has 1 / n^exponent of it.

    >>> [round(float(share), 3) for share in zipf(3, 1.0)]
    [0.545, 0.273, 0.182]
    """
    weights = np.arange(1, namespaces + 1, dtype=np.float64) ** -exponent
    return np.asarray(weights / weights.sum(), np.float64)


def drawn(shares: NDArray[np.float64], count: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Return the numbers of the namespaces that are asked, independently of each other."""
    reached = np.cumsum(shares)
    found = np.searchsorted(reached, rng.random(count) * reached[-1], side="right")
    return np.asarray(np.minimum(found, len(shares) - 1), np.int32)


def cached_for(shares: NDArray[np.float64], hit_rate: float) -> float:
    """Return how many namespaces of equal size a least recently used cache must have, for a rate of hits (0 to 1).

    Source: Che, Tung and Wang, Hierarchical Web caching systems, 2002: a namespace is cached if it was asked within a
    time that is nearly the same for all.
    """
    low, high = 0.0, 1.0
    while _hits(shares, high) < hit_rate and high < 1e18:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _hits(shares, middle) < hit_rate else (low, middle)
    return float(np.sum(-np.expm1(-shares * high)))


def hits_of(shares: NDArray[np.float64], sizes: NDArray[np.int64], budget: float) -> float:
    """Return the rate of hits of a least recently used cache with a budget, by the same approximation."""
    if float(np.sum(sizes)) <= budget:
        return 1.0
    low, high = 0.0, 1.0
    while float(np.sum(sizes * -np.expm1(-shares * high))) < budget:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        fits = float(np.sum(sizes * -np.expm1(-shares * middle))) < budget
        low, high = (middle, high) if fits else (low, middle)
    return _hits(shares, high)


def _hits(shares: NDArray[np.float64], within: float) -> float:
    return float(np.sum(shares * -np.expm1(-shares * within)))
