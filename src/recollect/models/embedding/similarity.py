"""Vector arithmetic: cosine, distance, normalisation, and the nearest vectors of a collection.

These are plain functions of sequences of floats, for callers with their own vectors. Sums are correctly rounded
(`math.fsum`), so results do not depend on the order of addition, on a BLAS or on the machine. Components are scaled
before they are squared, so neither very large nor very small ones overflow or underflow.

A vector without a direction (empty, all zeros, or with a component that is not finite) has the cosine 0 with any other.
Recall uses `scoring.dense`, which handles many thousands of vectors and agrees with this module within its
rounding.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from operator import mul
from typing import TypeVar

from recollect.arguments.checks import check_count
from recollect.errors import InvalidArgumentError

T = TypeVar("T")


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors, in [-1, 1]; 0 if one has no direction.

    >>> cosine([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), cosine([3.0, 4.0], [6.0, 8.0]), cosine([1.0], [-2.0])
    (0.0, 1.0, -1.0)
    >>> cosine([], []), cosine([0.0, 0.0], [1.0, 2.0]), cosine([float("nan"), 1.0], [1.0, 1.0])
    (0.0, 0.0, 0.0)

    Raises:
        InvalidArgumentError: The lengths differ.

    Cost:
        O(n).
    """
    _same_length(a, b)
    one, other = _scaled(a), _scaled(b)
    if one is None or other is None:
        return 0.0
    lengths = math.sqrt(_dot(one, one)) * math.sqrt(_dot(other, other))
    return min(1.0, max(-1.0, _dot(one, other) / lengths))


def similarity_score(of_cosine: float) -> float:
    """Return a cosine as a score in [0, 1]: 0 for opposite vectors, 0.5 for unrelated ones, 1 for the same direction.

    >>> [similarity_score(cosine([1, 0, 0], each)) for each in ([1, 0, 0], [0, 1, 0], [-1, 0, 0])]
    [1.0, 0.5, 0.0]
    """
    return (of_cosine + 1.0) / 2.0


def euclidean_distance(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the Euclidean distance between two points; infinite if a component is not finite.

    >>> euclidean_distance([0.0, 0.0], [3.0, 4.0]), euclidean_distance([], [])
    (5.0, 0.0)
    >>> euclidean_distance([float("nan")], [1.0])
    inf

    Raises:
        InvalidArgumentError: The lengths differ.

    Cost:
        O(n).
    """
    _same_length(a, b)
    if not (_finite(a) and _finite(b)):
        return math.inf
    return math.dist(a, b)


def normalize(vector: Sequence[float]) -> list[float]:
    """Return the vector of length 1 in the same direction, or zeros if there is no direction.

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
    """Return the `k` candidates with the greatest cosine to the query, greatest first; ties keep their order.

    >>> top_k_by_similarity([1, 0], [("up", [0, 1]), ("right", [2, 0]), ("bad", [1, 2, 3]), ("left", [-1, 0])], 2)
    [('right', 1.0), ('up', 0.0)]

    Args:
        query: The vector to compare with.
        candidates: (name, vector) pairs. Vectors of another size or with a component that is not finite are skipped.
        k: Maximum number of candidates to return.

    Raises:
        InvalidArgumentError: `k` is not an integer of at least 0.

    Cost:
        O(n d + n log k).
    """
    check_count("k", k, least=0)
    sized = ((name, vector) for name, vector in candidates if len(vector) == len(query) and _finite(vector))
    ranked = ((cosine(query, vector), -index, name) for index, (name, vector) in enumerate(sized))
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
    """Return the vector scaled so that its greatest absolute component is 1; None if it has no direction."""
    values = [float(each) for each in vector]
    greatest = max(map(abs, values), default=0.0)
    if not greatest or not _finite(values):
        return None
    return [each / greatest for each in values]
