"""Selection of the kernels that search SDRs, by the same rules as for words."""

from __future__ import annotations

from functools import cache

from recollect.indexes.kernels.choose import uses_native
from recollect.indexes.sdr.types import SdrKernels


@cache
def chosen() -> SdrKernels:
    """Return the kernels for SDRs."""
    if uses_native():
        from recollect.indexes.sdr import with_native as native_sdr

        return native_sdr.NativeSdr()
    from recollect.indexes.sdr import with_numpy as numpy_sdr

    return numpy_sdr.KERNELS
