"""Meaning in C: products of vectors, the nearest ones, and what turns lend. `scoring` has the same in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import Ints, Numbers
from recollect.indexes.documents.table import Table
from recollect.indexes.kernels.native.kernels import table_of
from recollect.indexes.kernels.native.library import check, ints, lib, numbers, passed
from recollect.indexes.parameters import FROM_AFTER, FROM_BEFORE, PLANES


def products(matrix: NDArray[np.int16], vector: NDArray[np.int16]) -> Ints:
    """Return the dot product of each row with a vector, as `dense.products`.

    Raises:
        ValueError: The vector has another number of components.
    """
    if matrix.shape[1] != len(vector):
        raise ValueError(f"vectors of {matrix.shape[1]} components and one of {len(vector)}")
    out: Ints = np.empty(len(matrix), dtype=np.int64)
    lib.rc_products(passed("components", matrix), passed("components", vector), ints(out))
    return out


def nearest(
    matrix: NDArray[np.int16],
    vector: NDArray[np.int16],
    signs: tuple[Ints, Numbers],
    planes: Ints,
    rows: Ints,
    wanted: int,
) -> tuple[Ints, Ints, Numbers, Ints]:
    """Return the places of the `wanted` greatest estimates and of all that tie, their products and estimates.

    Args:
        planes: The bits of the levels of the components of the vector, a row of signs for each, the lowest bit first.

    Returns:
        These, and how many of all rows have each estimate.
    """
    bits, positive = signs
    estimates: Numbers = np.empty(len(matrix), dtype=np.int32)
    counts = np.zeros(((1 << PLANES) - 1) * 3 * len(vector) + 1, dtype=np.int64)
    places, out = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
    given = passed("components", matrix), passed("components", vector), ints(bits.reshape(-1)), numbers(positive)
    found = lib.rc_nearest(
        *given, ints(planes), ints(rows), wanted, numbers(estimates), ints(counts), ints(places), ints(out)
    )
    places = places[:found]
    return places, out[:found], estimates[rows[places]], counts


def lent(table: Table, documents: Ints, above: Ints, unit: tuple[int, int]) -> tuple[Ints, Ints, Ints]:
    """Return what `scoring.dense.lent` does."""
    shares: Ints = np.zeros(table.count, dtype=np.int64)
    most = min(table.count, len(documents) * (1 + len(FROM_BEFORE) + len(FROM_AFTER)))
    near, context = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    out = ints(shares), ints(near), ints(context)
    found = check(lib.rc_lend(table_of(table), ints(documents), ints(above), *unit, *out))
    return shares, near[:found], context[:found]
