"""Vectors of memories: their form in a record, and arithmetic under the names of LLM4S.

A vector that a caller passes cannot be computed again, so it is stored in the record itself, with its history and its
backups: as base64 of its float32 components in one value of the metadata, which is exact and a sixth of the size of
JSON numbers.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect import Record
from recollect.errors import InvalidArgumentError, InvalidRecordError
from recollect.models.embedding import similarity

T = TypeVar("T")
Floats = NDArray[np.float32]
Vector = tuple[float, ...]
VectorLike = Sequence[float] | NDArray[np.floating[Any]]
#: The name in the metadata of a record under which its vector is stored. Memories cannot use it.
EMBEDDING = "recollect.embedding"
_COMPONENT_BYTES = 4


def as_vector(value: object) -> Vector:
    """Return numbers as a vector: rounded to float32. Components may be NaN or infinite; searches skip such vectors.

    Raises:
        InvalidRecordError: They are not a list of numbers with at least one component.
    """
    try:
        numbers = np.asarray(value)
    except ValueError:  # lists of different lengths
        numbers = np.zeros((0, 0))
    if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "fiu":
        raise InvalidRecordError("embedding", value, "must be a list of at least one number")
    with np.errstate(over="ignore"):  # too great a number becomes infinite
        return tuple(numbers.astype("<f4").tolist())


def encoded(vector: VectorLike) -> str:
    """Return the form in which a vector is stored.

    >>> encoded([1.0, 0.5])
    'AACAPwAAAD8='
    """
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")


def floats_of(record: Record) -> Floats | None:
    """Return the vector of a record as an array; None if it has none, or one that this module did not write."""
    value = record.metadata.get(EMBEDDING)
    if not isinstance(value, str):
        return None
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    return np.frombuffer(data, dtype="<f4") if data and not len(data) % _COMPONENT_BYTES else None


def vector_of(record: Record) -> Vector | None:
    """Return the vector of a record; None if it has none."""
    floats = floats_of(record)
    return None if floats is None else struct.unpack(f"<{len(floats)}f", floats.tobytes())


class VectorOps:
    """Arithmetic on vectors. Results are the same on every machine (`recollect.models.embedding.similarity`)."""

    @staticmethod
    def cosine_similarity(a: Sequence[float], b: Sequence[float]) -> float:
        """Return the cosine of two vectors, -1 to 1; 0 if one is empty, zero or not finite.

        Raises:
            InvalidArgumentError: The lengths differ.
        """
        return similarity.cosine(a, b)

    @staticmethod
    def euclidean_distance(a: Sequence[float], b: Sequence[float]) -> float:
        """Return the distance of two points; infinite if a component is not finite.

        Raises:
            InvalidArgumentError: The lengths differ.
        """
        return similarity.euclidean_distance(a, b)

    @staticmethod
    def normalize(v: Sequence[float]) -> list[float]:
        """Return the vector of length 1 in the same direction; zeros if there is no direction."""
        return similarity.normalize(v)

    @staticmethod
    def top_k_by_similarity(
        query: Sequence[float], candidates: Iterable[tuple[Sequence[float], T]], k: int
    ) -> list[tuple[T, float]]:
        """Return the `k` candidates with the greatest cosine to the query, greatest first; ties keep their order.

        Args:
            query: The vector to compare with.
            candidates: (vector, value) pairs. Vectors of another size or with a component that is not finite are
                skipped.
            k: Maximum number of candidates, 0 or more.

        Raises:
            InvalidArgumentError: `k` is invalid, or `candidates` are not such pairs.
        """
        return similarity.top_k_by_similarity(query, _pairs(candidates), k)


def _pairs(candidates: Iterable[tuple[Sequence[float], T]]) -> Iterator[tuple[T, Sequence[float]]]:
    """Yield the values of (vector, value) pairs with their vectors."""
    rule = "must be (vector, value) pairs, in this order"
    if isinstance(candidates, Mapping):
        raise InvalidArgumentError("candidates", candidates, rule)
    for pair in candidates:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not _is_vector(pair[0]):
            raise InvalidArgumentError("candidates", pair, rule)
        yield pair[1], pair[0]


def _is_vector(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "fiu"
    return isinstance(value, (list, tuple)) and all(isinstance(each, (int, float, np.number)) for each in value)
