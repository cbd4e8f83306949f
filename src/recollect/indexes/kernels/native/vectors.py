"""Dot products of vectors in C: see `scoring.dense` for the same in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import Ints
from recollect.indexes.kernels.native.library import ints, lib, passed


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
