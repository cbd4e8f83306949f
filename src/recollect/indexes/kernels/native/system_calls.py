"""Calls of the system that replace those of SQLite for the index of a WAL, whose locks then last (`shm_locks.c`)."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.indexes.kernels.native.library import check, ffi, lib

#: The names that SQLite has for the calls that are replaced.
NAMES = ("open", "close", "fcntl", "mmap", "munmap", "fstat", "stat")


def replacing(pointers: Sequence[int]) -> list[int] | None:
    """Return what replaces the calls of NAMES, which it calls itself; None where the system has no such locks."""
    found = ffi.new("uintptr_t[]", len(NAMES))
    return list(map(int, found)) if lib.rc_replace_calls(ffi.new("uintptr_t[]", list(pointers)), found) else None


def register(path: bytes) -> None:
    """Let the locks on a file that SQLite opens under this path last. It must not have it open already."""
    check(lib.rc_register_index(path))


def has_lasting_locks(path: bytes) -> bool:
    """Return whether SQLite has a file open with locks that last."""
    return bool(lib.rc_has_lasting_locks(path))
