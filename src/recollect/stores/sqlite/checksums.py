"""Connections to SQLite files whose pages carry checksums.

SQLite's checksum VFS, which comes with apsw, keeps eight bytes at the end of each page and compares them whenever a
page is read, so that a page that was hurt on its way is an error and never an answer. It acts on files that reserve
those bytes and lets all others pass. Where it is not there (an apsw that was built without it, or a file system of
somebody's own below), files are made without checksums, and those that have them are only read.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Literal

import apsw
import numpy as np
from numpy.typing import NDArray

#: What a page with a checksum reserves for it.
BYTES = 8
_VFS = "cksmvfs"
#: SQLite's own file systems.
_SYSTEMS = ("unix", "win32")
_NOWHERE = ""
#: The file system on which the checksums lie; `_NOWHERE` where there are none to load, None before they are loaded.
_lie_on: str | None = None
_lock = threading.Lock()


def connect(path: str, flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE) -> apsw.Connection:
    """Open a file, with its checksums compared where it has them. Raises: apsw.Error.

    Our files have neither views nor triggers. Those that somebody has put there are not run: they may never end.
    """
    connection = apsw.Connection(path, flags=flags, vfs=_VFS if available() else None)
    for known in (
        apsw.SQLITE_DBCONFIG_ENABLE_VIEW,
        apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER,
        apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA,
    ):
        connection.config(known, 0)
    return connection


def available() -> bool:
    """Whether checksums can be kept and compared here."""
    with _lock:
        default = apsw.vfs_names()[0]
        # Never of their own accord upon a file system of somebody's own, which may be taken away again while they
        # still lie on it.
        if _lie_on is None and default in _SYSTEMS:
            _load()
        return default == _lie_on


def put_on_default() -> None:
    """Let the checksums lie on what is SQLite's default file system now: `testing.recording` puts its own there.

    No file may be open through them.
    """
    with _lock:
        if _lie_on:
            apsw.unregister_vfs(_VFS)
        _load()


def _load() -> None:
    """Load the checksums, or note that there are none to load."""
    global _lie_on
    _lie_on = _NOWHERE
    try:
        from apsw import sqlite_extra

        below = apsw.vfs_names()[0]
        with_extension = apsw.Connection(":memory:")
        try:
            sqlite_extra.load(with_extension, "cksumvfs")
        finally:
            with_extension.close()
        # It has made itself the default; other users of apsw in this process have not asked for it.
        apsw.set_default_vfs(below)
        _lie_on = below
    except (ImportError, AttributeError, LookupError, OSError, ValueError, apsw.Error):
        pass
    except Exception as error:
        if type(error).__name__ != "NotAvailable":
            raise


def begin(connection: apsw.Connection) -> None:
    """Let a file that is yet to be written, or to be vacuumed, have checksums, where they can be kept."""
    if available():
        connection.reserve_bytes("main", BYTES)


def kept(connection: apsw.Connection) -> bool:
    """Whether the file reserves room for checksums. (It must have been read from.)"""
    return int(connection.reserve_bytes("main")) == BYTES


def checksum(page: bytes) -> bytes:
    """The checksum of a page without its last eight bytes, as SQLite's checksum VFS defines it."""
    one, two = summed(page, 0, 0)
    return one.to_bytes(4, "little") + two.to_bytes(4, "little")


def summed(data: bytes, one: int, two: int, order: Literal["little", "big"] = "little") -> tuple[int, int]:
    """The two sums that SQLite checks pages and its log with, taken on over more data.

    For the 32-bit words `a`, `b` of each eight bytes: one += a + two; two += b + one. Source: fileformat2.html, 4.2.
    That is linear in the words, so a product of vectors, modulo 2**32, gives it.
    """
    words = np.frombuffer(data, dtype="<u4" if order == "little" else ">u4").astype(np.uint32)
    of_one, of_two, start = _factors(len(words))
    return (
        (int(words @ of_one) + one * start[0] + two * start[1]) & 0xFFFFFFFF,
        (int(words @ of_two) + one * start[1] + two * start[2]) & 0xFFFFFFFF,
    )


@cache
def _factors(count: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32], tuple[int, int, int]]:
    """What each word counts for in either sum, and what the sums at the start do: the powers of ((1, 1), (1, 2))."""
    of_one, of_two = np.zeros(count, dtype=np.uint32), np.zeros(count, dtype=np.uint32)
    p, q, r = 1, 0, 1  # the symmetric matrix ((p, q), (q, r)), at first that which changes nothing
    for at in range(count - 2, -1, -2):
        of_one[at], of_two[at] = (p + q) & 0xFFFFFFFF, (q + r) & 0xFFFFFFFF
        of_one[at + 1], of_two[at + 1] = q, r
        p, q, r = (p + q) & 0xFFFFFFFF, (p + 2 * q) & 0xFFFFFFFF, (q + 2 * r) & 0xFFFFFFFF
    return of_one, of_two, (p, q, r)
