"""Connections to SQLite files whose pages have checksums.

SQLite's checksum VFS, which is part of apsw, stores eight bytes at the end of each page and verifies them whenever the
page is read, so that a corrupt page raises an error. It acts on files that reserve those bytes and ignores all others.
If it is not available (apsw was built without it, or another library has changed SQLite's default VFS), files are
created without checksums, and files with checksums are opened read-only.
"""

from __future__ import annotations

import threading
from functools import cache

import apsw
import numpy as np
from numpy.typing import NDArray

from recollect.stores.sealing.pages import BYTES as ENCRYPTED_BYTES
from recollect.stores.sealing.pages import PageCipher
from recollect.stores.sqlite_base.sealed import vfs_of
from recollect.stores.sqlite_base.sums import factors, summed

#: Bytes that a page reserves for its checksum.
BYTES = 8
#: The name of the checksum VFS in SQLite.
NAME = "cksmvfs"
#: SQLite's own default VFSs.
_SYSTEMS = ("unix", "win32")
_NOWHERE = ""
#: The size of the cache of each connection to an encrypted file, in KiB: what is in it need not be decrypted again.
_CACHE_KIB = 16 * 1024
_WORD = 0xFFFFFFFF
#: Number of bytes in one word by which a damaged page differs from what its checksum was computed of.
_NEARLY = 2
#: The VFS on top of which the checksum VFS is loaded; `_NOWHERE` if it is not available, None before it is loaded.
_loaded_on: str | None = None
_lock = threading.Lock()
#: Words of an SQLite header: page size and journal mode, counter of changes, that of the schema, that of changes again,
#: and the version of SQLite.
_JOURNAL, _COUNTER, _SCHEMA, _COUNTER_AGAIN, _VERSION = 4, 6, 10, 23, 24
#: Values of the counter of the schema in a store: a compaction adds one; and the limit of that of changes.
_SCHEMAS, _COUNTERS = range(15, 47), 64


def connect(
    path: str,
    flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE,
    *,
    verify: bool = True,
    cipher: PageCipher | None = None,
) -> apsw.Connection:
    """Open a file whose pages are verified when they are read, if they have checksums. Raise apsw.Error if that fails.

    A store has neither views nor triggers. Any that the file contains are not run, because they may never end.

    Args:
        path: The file.
        flags: How to open it.
        verify: Whether to verify checksums. They are written in any case.
        cipher: The cipher of an encrypted file.
    """
    if cipher is not None:
        vfs = vfs_of(cipher)  # which would be gone if nothing referred to it
        connection = apsw.Connection(path, flags=flags, vfs=vfs.name)
    else:
        connection = apsw.Connection(path, flags=flags, vfs=NAME if available() else None)
    if not verify:
        connection.execute("PRAGMA checksum_verification = OFF").fetchall()
    for option in (
        apsw.SQLITE_DBCONFIG_ENABLE_VIEW,
        apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER,
        apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA,
    ):
        connection.config(option, 0)
    if cipher is not None:
        try:
            connection.execute(f"PRAGMA temp_store = MEMORY; PRAGMA cache_size = -{_CACHE_KIB}").fetchall()
        except BaseException:
            connection.close()
            raise
    return connection


def available() -> bool:
    """Return whether checksums can be written and verified here."""
    with _lock:
        default = apsw.vfs_names()[0]
        # Never loaded on top of another VFS by default: it may be unregistered while it is still in use.
        if _loaded_on is None and default in _SYSTEMS:
            _load()
        return default == _loaded_on


def put_on_default() -> None:
    """Load the checksum VFS on top of SQLite's current default VFS, for tests that install their own.

    No file may be open through the checksum VFS.
    """
    with _lock:
        if _loaded_on:
            apsw.unregister_vfs(NAME)
        _load()


def _load() -> None:
    """Load the checksum VFS, or record that it is not available."""
    global _loaded_on
    _loaded_on = _NOWHERE
    try:
        from apsw import sqlite_extra

        below = apsw.vfs_names()[0]
        with_extension = apsw.Connection(":memory:")
        try:
            sqlite_extra.load(with_extension, "cksumvfs")
        finally:
            with_extension.close()
        # It registers itself as the default VFS, which would affect other users of apsw in this process.
        apsw.set_default_vfs(below)
        _loaded_on = below
    except (ImportError, AttributeError, LookupError, OSError, ValueError, apsw.Error):
        pass
    except Exception as error:
        if type(error).__name__ != "NotAvailable":
            raise


def begin(connection: apsw.Connection, cipher: PageCipher | None = None) -> None:
    """Reserve space in the pages of a file that is not yet written, or will be vacuumed.

    An encrypted file needs it for the tags of its pages, another one for checksums, if they are available.
    """
    if cipher is not None:
        connection.reserve_bytes("main", ENCRYPTED_BYTES)
    elif available():
        connection.reserve_bytes("main", BYTES)


def reserved(connection: apsw.Connection) -> bool:
    """Return whether the file reserves space for checksums. The connection must have read from it before."""
    return int(connection.reserve_bytes("main")) == BYTES


def is_fault(error: BaseException) -> bool:
    """Return whether an error, or its cause, says that a page does not match its checksum."""
    return any(
        getattr(each, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA for each in (error, error.__cause__) if each
    )


def mismatching(data: bytes, size: int) -> list[int]:
    """Return which pages do not match their checksums, counted from 0.

    Args:
        data: Complete pages.
        size: The size of a page in bytes.
    """
    pages = np.frombuffer(data, dtype="<u4").reshape(-1, size // 4)
    factors_one, factors_two, _ = factors(size // 4 - 2)
    words = pages[:, :-2]
    wrong = (words @ factors_one != pages[:, -2]) | (words @ factors_two != pages[:, -1])
    return [int(number) for number in np.flatnonzero(wrong)]


def nearly_matches(page: bytes) -> bool:
    """Return whether a page differs from one with its checksum by at most two bytes of one word, or of the checksum.

    The sums are linear in each word w of the page: there must be a d with f1 * d = e1 and f2 * d = e2 modulo 2**32 for
    the errors e of both sums and the factors f of the word. At least one factor is odd, so it has an inverse.
    """
    words, (error_one, error_two) = _errors(page)
    stored = page[-BYTES:]
    computed = checksum(page[:-BYTES])
    halves = [sum(a != b for a, b in zip(stored[at : at + 4], computed[at : at + 4], strict=True)) for at in (0, 4)]
    if 0 in halves and sum(halves) <= _NEARLY:
        return True
    factors_one, factors_two, _ = factors(len(words) - 2)
    odd_one, inverses = _inverses(len(words) - 2)
    changes = inverses * np.where(odd_one, error_one, error_two)
    solving = np.flatnonzero((factors_one * changes == error_one) & (factors_two * changes == error_two))
    before = words[solving] - changes[solving]
    differing = ((words[solving] ^ before).view("<u1").reshape(-1, 4) != 0).sum(axis=1)
    return bool((differing <= _NEARLY).any())


def matches_before_copying(page: bytes) -> bool:
    """Return whether the first page of a file is one with its checksum, but for what a copy writes into the header.

    SQLite's backup changes the counter of the schema, which is then too small for a store, and PRAGMA journal_mode the
    mode. Both change the counter of changes, which is there twice, and the version of SQLite. Likely former values of
    the others are tried, and the counter of changes is solved for: it is small in a file with a WAL.
    """
    words, (error_one, error_two) = _errors(page)
    schema_now, mode_now = int.from_bytes(page[40:44], "big"), page[18:20]
    copied, has_other_mode = schema_now < _SCHEMAS.start, mode_now == b"\1\1"
    if words[_COUNTER] != words[_COUNTER_AGAIN] or not (copied or has_other_mode):
        return False
    errors = np.array([error_one, error_two], dtype=np.uint32)
    sums_of = np.array(factors(len(words) - 2)[:2], dtype=np.uint32)

    def effects(word: int, before: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return what each former value of a word changes in both sums."""
        effect: NDArray[np.uint32] = sums_of[:, word, None] * (words[word] - before)
        return effect

    modes = page[16:18] + b"\2\2" + (page[16:20] if copied else b"")
    schemas = np.array(_SCHEMAS if copied else [schema_now], dtype=">u4").view("<u4")
    versions = np.array([int.from_bytes(page[96:100], "big"), apsw.SQLITE_VERSION_NUMBER], dtype=">u4").view("<u4")
    journal = effects(_JOURNAL, np.frombuffer(modes, dtype="<u4"))
    schema, version = effects(_SCHEMA, schemas), effects(_VERSION, versions)
    left = errors[:, None, None, None] - (
        journal[:, :, None, None] + schema[:, None, :, None] + version[:, None, None, :]
    )
    counter = sums_of[:, _COUNTER] + sums_of[:, _COUNTER_AGAIN]
    odd = int(counter[0] % 2 == 0)  # the number of a sum whose factor has an inverse
    change = left[odd] * np.uint32(pow(int(counter[odd]), -1, 2**32))
    before = (words[_COUNTER] - change).byteswap()
    matches = (counter[1 - odd] * change == left[1 - odd]) & (change != 0) & (before < _COUNTERS)
    return bool(matches.any())


def _errors(page: bytes) -> tuple[NDArray[np.uint32], tuple[np.uint32, np.uint32]]:
    """Return the words of a page, and by how much each sum of it exceeds that of its checksum."""
    words, (one, two) = np.frombuffer(page, dtype="<u4"), summed(page[:-BYTES], 0, 0)
    return words, (np.uint32((one - int(words[-2])) & _WORD), np.uint32((two - int(words[-1])) & _WORD))


def checksum(page: bytes) -> bytes:
    """Return the checksum of a page without its last eight bytes, as SQLite's checksum VFS defines it."""
    one, two = summed(page, 0, 0)
    return one.to_bytes(4, "little") + two.to_bytes(4, "little")


@cache
def _inverses(count: int) -> tuple[NDArray[np.bool_], NDArray[np.uint32]]:
    """Return whether each word's factor in the first sum is odd, and the inverse modulo 2**32 of the odd one."""
    factors_one, factors_two, _ = factors(count)
    odd_one = factors_one % 2 == 1
    odd = np.where(odd_one, factors_one, factors_two)
    inverses = odd.copy()  # correct in three bits; each step of Newton's method doubles them
    for _ in range(4):
        inverses *= np.uint32(2) - odd * inverses
    return odd_one, inverses
