"""The documents whose vectors are nearest to that of a question, without reading all vectors.

The signs of the components of a vector are a small part of it, and say roughly where it points. With them the cosine of
each document is estimated, and exact cosines are computed of the best estimates only. Up to `ALL_COMPARED` documents
all are exact. So which documents are compared is a function of the vectors, and the same on every machine.

An estimate is the sum of the question's components, those counted negatively where the sign of the document is
negative. The question's components have `PLANES` bits, so each plane takes one AND and a count of bits for every 64
components. Source: J. Gao and C. Long, RaBitQ: quantizing high-dimensional vectors, SIGMOD 2024, without its rotation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import Ints, Numbers
from recollect.indexes.kernels.choose import native, uses_native
from recollect.indexes.parameters import NEAREST, NEAREST_PART, PLANES

#: The signs of vectors: a row of bits for each, 64 to an element; and the number of positive components of each.
Signs = tuple[Ints, Numbers]
_LEVELS = (1 << PLANES) - 1
#: The width of a level in terms of the mean magnitude of the components: for normal ones that of least distortion.
_STEP = (5, 4)
#: Number of rows that are estimated at a time in NumPy.
_BLOCK = 4096


def signs_of(vectors: NDArray[np.int16]) -> Signs:
    """Return the signs of vectors.

    >>> bits, positive = signs_of(np.array([[3, -1, 0, 7]], dtype=np.int16))
    >>> bits.view(np.uint8).tolist(), positive.tolist()
    ([[144, 0, 0, 0, 0, 0, 0, 0]], [2])
    """
    positive = vectors > 0
    return _packed(positive), positive.sum(axis=1, dtype=np.int32)


def _packed(flags: NDArray[np.bool_]) -> Ints:
    out = np.zeros((len(flags), -(-flags.shape[1] // 64) * 8), dtype=np.uint8)
    packed = np.packbits(flags, axis=1)
    out[:, : packed.shape[1]] = packed
    return out.view(np.int64)


class Nearest(NamedTuple):
    """The rows that are compared exactly with a question, and what the others say.

    Attributes:
        places: The places of the rows among those that may be compared, ascending.
        products: Their products with the question.
        median: The median of the products of all, as their estimates say; 0 if it is negative.
    """

    places: Ints
    products: Ints
    median: int


def nearest(matrix: NDArray[np.int16], question: NDArray[np.int16], signs: Signs, rows: Ints) -> Nearest:
    """Return which of some rows of a matrix are compared with a question: at least `NEAREST` and a part of all.

    Rows with equal estimates are all compared, or none of them.

    Args:
        signs: The signs of all rows (`signs_of`).
        rows: The rows that may be compared, at least one.

    Cost:
        O(rows of the matrix x components / 64), and O(components) for each row that is compared.
    """
    levels = _levels(question)
    wanted = max(NEAREST, len(rows) // NEAREST_PART)
    if uses_native():
        planes = _packed(np.stack([levels >> each & 1 for each in range(PLANES)]) > 0).reshape(-1)
        found: tuple[Ints, Ints, Numbers, Ints] = native("vectors").nearest(
            matrix, question, signs, planes, rows, wanted
        )
        places, products, estimates, counts = found
    else:
        estimates = _estimates(signs, levels)[rows]
        counts = np.bincount(estimates)
        places = np.flatnonzero(estimates >= _greatest(counts, wanted))
        # Integers far below 2^53, for which float64 is exact in any order.
        products = (matrix[rows[places]].astype(np.float64) @ question.astype(np.float64)).astype(np.int64)
        estimates = estimates[places]
    # How much a product is for each unit of a sum of values (`_estimates`) is known from those that are compared.
    offset = 2 * _LEVELS * len(question) + int((2 * levels - _LEVELS).sum())
    middle = 2 * _greatest(counts, len(rows) // 2 + 1) - offset
    units = 2 * int(estimates.sum(dtype=np.int64)) - offset * len(places)
    return Nearest(places, products, max(int(products.sum()) * middle // units, 0) if units > 0 else 0)


def _greatest(counts: Ints, wanted: int) -> int:
    """Return the least of the `wanted` greatest values, by how many have each."""
    at_least = np.cumsum(counts[::-1])[::-1]  # how many have each value or a greater one
    return int(np.flatnonzero(at_least >= wanted)[-1])


def _levels(question: NDArray[np.int16]) -> Ints:
    """Return the level of each component, from 0 to `_LEVELS`."""
    of, out_of = _STEP
    components = question.astype(np.int64)
    step = max(int(np.abs(components).sum()) * of // (out_of * len(question)), 1)
    levels: Ints = np.clip(components // step + (1 << PLANES - 1), 0, _LEVELS)
    return levels


def _estimates(signs: Signs, levels: Ints) -> Numbers:
    """Return a number for each vector that grows with the estimate of its cosine, 0 or more.

    A level stands for the value 2 level - `_LEVELS`, and the sum of values with their signs is twice that of the
    positive ones, less that of all. So the number is half of it, and made positive.
    """
    bits, positive = signs
    sums: Numbers = np.empty(len(bits), dtype=np.int32)
    fine = levels.astype(np.float32)  # integers far below 2^24
    for start in range(0, len(bits), _BLOCK):
        some = np.unpackbits(bits[start : start + _BLOCK].view(np.uint8), axis=1, count=len(levels))
        sums[start : start + len(some)] = some.astype(np.float32) @ fine
    return 2 * sums - _LEVELS * positive + np.int32(_LEVELS * len(levels))
