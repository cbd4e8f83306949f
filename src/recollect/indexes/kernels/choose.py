"""Selection of kernels: those in C if the package was built with them, NumPy otherwise, with the same results.

The package is built with them where there is a C compiler, and its wheels contain them. The selection is made once for
a process. RECOLLECT_KERNELS=numpy or =native overrides it; if the native kernels are requested but missing, a warning
says so, and so does `recollect doctor`.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from importlib import import_module
from typing import Any

from recollect.indexes.kernels.interface import Kernels

_log = logging.getLogger("recollect")
#: What to do without native kernels.
INSTALL = (
    "install a C compiler (Debian: apt install gcc python3-dev) and then the package again, with pip's options "
    "--force-reinstall and --no-cache-dir"
)
#: The values of RECOLLECT_KERNELS.
CHOICES = "auto", "native", "numpy"
_NATIVE = "recollect.indexes.kernels.native."


@cache
def missing() -> str:
    """Return why this process cannot use native kernels; "" if it can."""
    try:
        import_module(f"{_NATIVE}library")
    except ModuleNotFoundError as error:
        return f"the package was built without them ({error})"
    except ImportError as error:
        return f"they cannot be used ({error})"
    return ""


def requested() -> str:
    """Return what RECOLLECT_KERNELS requests, "auto" if it is not set or empty."""
    return os.environ.get("RECOLLECT_KERNELS") or "auto"


@cache
def uses_native() -> bool:
    """Return whether this process uses native kernels."""
    wanted = requested()
    if wanted not in CHOICES:
        _log.warning("RECOLLECT_KERNELS=%s is ignored: it is none of auto, native and numpy", wanted)
    if wanted == "native" and missing():
        _log.warning("RECOLLECT_KERNELS=native, but %s: NumPy gives the same results, slower; %s", missing(), INSTALL)
    return wanted != "numpy" and not missing()


def native(module: str) -> Any:
    """Import a module of `kernels.native`, if this process uses native kernels."""
    return import_module(_NATIVE + module)


@cache
def chosen() -> Kernels:
    """Return the kernels for words."""
    if uses_native():
        kernels: Kernels = native("kernels").NativeKernels()
        return kernels
    from recollect.indexes.kernels import with_numpy as numpy_kernels

    return numpy_kernels.KERNELS
