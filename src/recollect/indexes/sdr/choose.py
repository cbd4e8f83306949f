"""Selection of the kernels that search SDRs, by the same rules as for words."""

from __future__ import annotations

from recollect.indexes.kernels.choose import Choice
from recollect.indexes.sdr.types import SdrKernels


def _by_numpy() -> SdrKernels:
    from recollect.indexes.sdr import with_numpy as numpy_sdr

    return numpy_sdr.KERNELS


serving = Choice(_by_numpy, "recollect.indexes.sdr.with_numba").serving
