"""Compilation of kernels by another process, which stores them in numba's cache.

A process cannot interrupt the compiler, so if it compiled by itself, its end would have to wait. The other process has
a low priority, discards its output and ends by itself once it has compiled, whether or not the one that started it
still runs. One process compiles at a time for each cache folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

from recollect.locks import lock_now

#: The exit status if another process is compiling.
BUSY = 75
_CODE = f"""
import sys
sys.path[:] = sys.argv[2:]
from {__name__} import compile_all
sys.exit(compile_all(sys.argv[1]))
"""


def start(module: str) -> subprocess.Popen[bytes]:
    """Start a process that compiles the kernels of a module.

    Its exit status is 0 if all are in the cache, or `BUSY` if another process is compiling them.

    Raises:
        RuntimeError: This process does not run in a Python interpreter that could be started again.
        OSError: The process cannot be started.
    """
    # In a frozen or embedding application, this is the application, which must not be started a second time.
    name = os.path.basename(sys.executable or "").lower()
    if getattr(sys, "frozen", False) or not name.startswith("python"):
        raise RuntimeError(
            f"the program {sys.executable!r} is no Python interpreter that could compile them in another process; "
            "RECOLLECT_KERNELS=numba compiles them in this one"
        )
    folders = [os.path.abspath(each) for each in sys.path if isinstance(each, str)]
    return subprocess.Popen(
        [sys.executable, "-c", _CODE, module, *folders],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # an interrupt from the terminal is not for this process
        creationflags=getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0),
    )


def compile_all(module: str) -> int:
    """Compile the kernels of a module and return the exit status. Run in the process that `start` starts."""
    if hasattr(os, "nice"):
        os.nice(19)
    kernels = import_module(module)
    folder = import_module("recollect.indexes.kernels.numba.compiling").cache_folder
    with open(os.path.join(folder, "recollect.lock"), "wb") as lock:  # released when this process ends
        if not lock_now(lock.fileno()):
            return BUSY
        kernels.loaded()
    return 0
