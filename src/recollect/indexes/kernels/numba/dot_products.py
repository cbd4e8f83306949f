"""Dot products of vectors, compiled: see `indexes.scoring.dense` for the same in NumPy."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from recollect.indexes.documents.columns import Ints
from recollect.indexes.kernels.numba.compiling import compiled, finished


@compiled
def _products(matrix: Any, wanted: Any, out: Any) -> None:
    # Unsigned indexes and 32-bit sums, which vectors of length 1 cannot overflow, let the processor multiply many
    # components at a time, as fast as it can read them.
    for row in range(len(matrix)):
        total = np.int32(0)
        for at in range(matrix.shape[1]):
            place = np.uintp(at)
            total = np.int32(total + np.int32(matrix[row, place]) * np.int32(wanted[place]))
        out[row] = total


def products(matrix: Any, wanted: Any) -> Ints:
    """Return the dot product of each row with a vector, as `dense.products`."""
    if matrix.shape[1] != len(wanted):  # kernels do not check bounds
        raise ValueError(f"vectors of {matrix.shape[1]} components and one of {len(wanted)}")
    out: Ints = np.empty(len(matrix), dtype=np.int64)
    _products(matrix, wanted, out)
    return out


def loaded() -> Any:
    """Return the kernel, compiled for the types that it is called with."""
    return finished(loading())


def loading() -> Generator[None, None, Any]:
    """Do as `loaded`, in a single step."""
    products(np.zeros((1, 1), dtype=np.int16), np.zeros(1, dtype=np.int16))
    yield
    return products
