"""Arithmetic on vectors: cosine, distance, length, and the nearest of many.

Plain functions of sequences of floats, for those who bring vectors of their own. Sums are correctly rounded
(`math.fsum`), so a result does not depend on the order of adding, on a BLAS or on the machine; and components are
scaled before they are squared, so that neither very great nor very small ones are lost.

A vector that has no direction (empty, all zeros, or with a component that is not finite) is like nothing: its cosine
with anything is 0. Recall uses `scoring.dense`, for many thousands; it agrees with this within its rounding.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from operator import mul
from typing import TypeVar

from recollect.errors import InvalidArgumentError

T = TypeVar("T")


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """The cosine of the angle between two vectors, in [-1, 1]; 0 where one has no direction.

    >>> cosine([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), cosine([3.0, 4.0], [6.0, 8.0]), cosine([1.0], [-2.0])
    (0.0, 1.0, -1.0)
    >>> cosine([], []), cosine([0.0, 0.0], [1.0, 2.0]), cosine([float("nan"), 1.0], [1.0, 1.0])
    (0.0, 0.0, 0.0)

    Raises: InvalidArgumentError for unequal lengths.
    Cost:   O(n).
    """
    _same_length(a, b)
    one, other = _scaled(a), _scaled(b)
    if one is None or other is None:
        return 0.0
    lengths = math.sqrt(_dot(one, one)) * math.sqrt(_dot(other, other))
    return min(1.0, max(-1.0, _dot(one, other) / lengths))


def similarity_score(of_cosine: float) -> float:
    """A cosine as the score of a hit, in [0, 1]: opposite 0, unrelated a half, alike 1.

    >>> [similarity_score(cosine([1, 0, 0], each)) for each in ([1, 0, 0], [0, 1, 0], [-1, 0, 0])]
    [1.0, 0.5, 0.0]
    """
    return (of_cosine + 1.0) / 2.0


def euclidean_distance(a: Sequence[float], b: Sequence[float]) -> float:
    """The straight-line distance between two points, 0 or more; infinite where a component is not finite.

    >>> euclidean_distance([0.0, 0.0], [3.0, 4.0]), euclidean_distance([], [])
    (5.0, 0.0)
    >>> euclidean_distance([float("nan")], [1.0])
    inf

    Raises: InvalidArgumentError for unequal lengths.
    Cost:   O(n).
    """
    _same_length(a, b)
    if not (_finite(a) and _finite(b)):
        return math.inf
    return math.dist(a, b)


def normalize(vector: Sequence[float]) -> list[float]:
    """The vector of length 1 in the same direction; zeros where there is no direction.

    >>> normalize([3.0, 4.0]), normalize([0.0, 0.0]), normalize([])
    ([0.6, 0.8], [0.0, 0.0], [])
    """
    scaled = _scaled(vector)
    if scaled is None:
        return [0.0] * len(vector)
    length = math.sqrt(_dot(scaled, scaled))
    return [each / length for each in scaled]


def top_k_by_similarity(
    query: Sequence[float], candidates: Iterable[tuple[T, Sequence[float]]], k: int
) -> list[tuple[T, float]]:
    """The `k` candidates whose cosine with the query is greatest, greatest first; equal ones keep their order.

    >>> top_k_by_similarity([1, 0], [("up", [0, 1]), ("right", [2, 0]), ("bad", [1, 2, 3]), ("left", [-1, 0])], 2)
    [('right', 1.0), ('up', 0.0)]

    Args:    candidates: (name, vector) pairs. Vectors of another size, and those with a component that is not finite,
             are passed over.
    Raises:  InvalidArgumentError: `k` is not a whole number, 0 or more.
    Cost:    O(n d + n log k).
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 0:
        raise InvalidArgumentError("k", k, "must be an integer of at least 0")
    sized = ((name, vector) for name, vector in candidates if len(vector) == len(query) and _finite(vector))
    ranked = ((cosine(query, vector), -place, name) for place, (name, vector) in enumerate(sized))
    best = heapq.nlargest(k, ranked, key=lambda each: each[:2])
    return [(name, similarity) for similarity, _, name in best]


def _same_length(a: Sequence[float], b: Sequence[float]) -> None:
    if len(a) != len(b):
        raise InvalidArgumentError("b", f"a vector of {len(b)}", f"must have as many components as a, {len(a)}")


def _finite(vector: Sequence[float]) -> bool:
    return all(map(math.isfinite, vector))


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(map(mul, a, b))


def _scaled(vector: Sequence[float]) -> list[float] | None:
    """The vector with 1 as its greatest component; None where it has no direction."""
    values = [float(each) for each in vector]
    greatest = max(map(abs, values), default=0.0)
    if not greatest or not _finite(values):
        return None
    return [each / greatest for each in values]
