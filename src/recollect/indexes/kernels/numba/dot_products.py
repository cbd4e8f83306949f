"""Multiplying vectors, compiled: see `indexes.scoring.dense`, where the same is done in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect.indexes.documents.columns import Ints
from recollect.indexes.kernels.numba.compiling import compiled


@compiled
def _products(matrix: Any, wanted: Any, out: Any) -> None:
    # Unsigned indexes and sums of 32 bits, which the vectors' length keeps far from their end: so the processor
    # multiplies many components at a time, as fast as it can read them.
    for row in range(len(matrix)):
        total = np.int32(0)
        for at in range(matrix.shape[1]):
            place = np.uintp(at)
            total = np.int32(total + np.int32(matrix[row, place]) * np.int32(wanted[place]))
        out[row] = total


def products(matrix: Any, wanted: Any) -> Ints:
    """`dense.products`."""
    if matrix.shape[1] != len(wanted):  # a kernel does not look where it steps
        raise ValueError(f"vectors of {matrix.shape[1]} components and one of {len(wanted)}")
    out: Ints = np.empty(len(matrix), dtype=np.int64)
    _products(matrix, wanted, out)
    return out


def loaded() -> Any:
    """The kernel, compiled for the types that it is called with."""
    products(np.zeros((1, 1), dtype=np.int16), np.zeros(1, dtype=np.int16))
    return products
