"""The compiled C functions, and NumPy arrays as their arguments.

A call gives the interpreter's lock back while it runs. Arrays are passed as a pointer with a number of elements, so
their types must be exactly those of the C declarations, which is checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.ending import Ending
from recollect.indexes.kernels.native.sources import fingerprint

_native = import_module("recollect.indexes.kernels.native._native")
ffi: Any = _native.ffi
lib: Any = _native.lib


def check_sources(expected: str) -> None:
    """Check that the functions were compiled from the sources with a fingerprint ("": whatever they are).

    Raises:
        ImportError: They were not.
    """
    compiled = ffi.string(lib.rc_sources()).decode() if hasattr(lib, "rc_sources") else "older sources"
    if expected and compiled != expected:
        raise ImportError("they were compiled from other sources than those in this folder")


check_sources(fingerprint(Path(__file__).parent))

#: The attribute under which the structure of an object is kept with it.
_KEPT = "_native"
#: Structures, which hold nothing but pointers, and what these point to.
_REFERENCES: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
#: Each type of array in `interface.h`: its name, its elements in C, and in NumPy.
_KINDS = {
    kind: (f"{element}[]", np.dtype(numpy))
    for kind, element, numpy in (
        ("flags", "uint8_t", np.bool_),
        ("bytes", "int8_t", np.int8),
        ("octets", "uint8_t", np.uint8),
        ("shorts", "uint16_t", np.uint16),
        ("components", "int16_t", np.int16),
        ("numbers", "int32_t", np.int32),
        ("places", "uint32_t", np.uint32),
        ("ints", "int64_t", np.int64),
    )
}


def passed(kind: str, array: NDArray[Any]) -> tuple[Any, int]:
    """Return an array as an argument of the kind `rc_<kind>`.

    Raises:
        TypeError: Its elements are of another type.
        ValueError: It is not contiguous.
    """
    element, dtype = _KINDS[kind]
    if array.dtype != dtype:
        raise TypeError(f"an array of {dtype} is needed here, not of {array.dtype}")
    return ffi.from_buffer(element, array), array.size


flags = partial(passed, "flags")
numbers = partial(passed, "numbers")
ints = partial(passed, "ints")
octets = partial(passed, "octets")


def struct(name: str, **fields: Any) -> Any:
    """Return a structure of C, as a pointer to it, which keeps its arrays and other structures alive."""
    made = ffi.new(f"{name} *", fields)
    if fields:
        _REFERENCES[made] = fields
    return made


def kept(owner: Any, make: Callable[[], Any]) -> Any:
    """Return the structure of an object that never changes; it is made once, and kept with the object."""
    made = owner.__dict__.get(_KEPT)
    if made is None:
        made = owner.__dict__[_KEPT] = make()
    return made


def check(status: int, ending: Ending | None = None) -> int:
    """Return the result of a function that allocates memory, or that looks at a limit on its time.

    Raises:
        MemoryError: It could not.
        Exception: That of the limit: the time is over.
    """
    if status == lib.RC_NO_MEMORY:
        raise MemoryError
    if status == lib.RC_LATE and ending is not None:
        ending.end()
    return status
