"""Selection of the kernels that search SDRs, by the same rules as for words."""

from __future__ import annotations

from functools import cache

from recollect.facets.sdr.index.types import SdrKernels
from recollect.indexes.kernels.choose import uses_native


@cache
def chosen() -> SdrKernels:
    """Return the kernels for SDRs."""
    if uses_native():
        from recollect.facets.sdr.index import with_native as native_sdr

        return native_sdr.NativeSdr()
    from recollect.facets.sdr.index import with_numpy as numpy_sdr

    return numpy_sdr.KERNELS
