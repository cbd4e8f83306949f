"""Connections to SQLite files whose pages carry checksums.

SQLite's checksum VFS, which comes with apsw, keeps eight bytes at the end of each page and compares them whenever a
page is read, so that a page that was hurt on its way is an error and never an answer. It acts on files that reserve
those bytes and lets all others pass. Where it is not there (an apsw that was built without it, or a file system of
somebody's own below), files are made without checksums, and those that have them are only read.
"""

from __future__ import annotations

import threading
from functools import cache

import apsw

#: What a page with a checksum reserves for it.
BYTES = 8
_VFS = "cksmvfs"
_turn = threading.Lock()


def connect(path: str, flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE) -> apsw.Connection:
    """Open a file, with its checksums compared where it has them. Raises: apsw.Error."""
    return apsw.Connection(path, flags=flags, vfs=_VFS if available() else None)


def available() -> bool:
    """Whether checksums can be kept and compared here."""
    with _turn:
        below = _below()
        return below is not None and apsw.vfs_names()[0] == below


@cache
def _below() -> str | None:
    """The file system on which the checksums lie, once they are loaded; None where there are none to load."""
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
    except (ImportError, AttributeError, LookupError, OSError, ValueError, apsw.Error):
        return None
    except Exception as error:
        if type(error).__name__ == "NotAvailable":
            return None
        raise
    return below


def begin(connection: apsw.Connection) -> None:
    """Let a file that is yet to be written, or to be vacuumed, have checksums, where they can be kept."""
    if available():
        connection.reserve_bytes("main", BYTES)


def kept(connection: apsw.Connection) -> bool:
    """Whether the file reserves room for checksums. (It must have been read from.)"""
    return int(connection.reserve_bytes("main")) == BYTES


def checksum(page: bytes) -> bytes:
    """The checksum of a page without its last eight bytes, as SQLite's checksum VFS defines it.

    Two sums of the page's 32-bit words, least byte first, each taking in the other. Slow: for looking at single pages.
    """
    one = two = 0
    words = memoryview(page).cast("B")
    for at in range(0, len(page), 8):
        one = (one + int.from_bytes(words[at : at + 4], "little") + two) & 0xFFFFFFFF
        two = (two + int.from_bytes(words[at + 4 : at + 8], "little") + one) & 0xFFFFFFFF
    return one.to_bytes(4, "little") + two.to_bytes(4, "little")
