"""Translation of SQLite's errors to Recollect's. Only this module knows both.

Every statement's errors are translated at once, so code that catches Recollect's errors in the middle of a transaction
catches SQLite's too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import apsw

from recollect.common.deadlines import overdue
from recollect.common.regexes import regex
from recollect.errors import (
    ClosedError,
    DamagedStoreError,
    NoMemoryError,
    NotAStoreError,
    ReadOnlyStoreError,
    RecollectError,
    StoreBusyError,
    StoreFullError,
    StoreIOError,
)

#: The errors to translate. Catching them and raising `ours` is equivalent to `translated`, without its cost.
SQLITE_ERRORS = (apsw.Error, UnicodeDecodeError)


_Kind = Callable[[str, str], RecollectError]
#: The error for each class of apsw, which has one for each of SQLite's result codes. All others become StoreIOError.
_KINDS: dict[type[Exception], _Kind] = {
    apsw.BusyError: StoreBusyError,
    apsw.LockedError: StoreBusyError,
    apsw.ProtocolError: StoreBusyError,  # too many connections opened the WAL at the same time
    apsw.SchemaChangeError: StoreBusyError,  # another program changes the tables repeatedly
    apsw.FullError: StoreFullError,
    apsw.NoMemError: NoMemoryError,
    apsw.NotADBError: NotAStoreError,
    apsw.FormatError: NotAStoreError,
    apsw.CorruptError: DamagedStoreError,
    UnicodeDecodeError: DamagedStoreError,  # all text in a store is valid UTF-8
    # The statements of this package violate no constraint of an intact store.
    apsw.ConstraintError: DamagedStoreError,
    apsw.MismatchError: DamagedStoreError,
    apsw.ReadOnlyError: ReadOnlyStoreError,
    # Without a deadline, only statements that run while a file is opened are interrupted (`connections.few_steps`).
    apsw.InterruptError: lambda path, detail: DamagedStoreError(path, "a statement that opens it takes too long"),
}
#: How close to the limit on the size of a file a write fails at it, in bytes: SQLite writes several pages at once.
_CLOSE = 2**20


def _write_failed(path: str, detail: str) -> RecollectError:
    """Return the error of a write that failed: SQLite has no code of its own for a file that may not grow (EFBIG)."""
    try:
        import resource
    except ImportError:  # not on Windows
        return StoreIOError(path, detail)
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY:
        for suffix in ("", "-wal"):
            with suppress(OSError):
                if os.stat(path + suffix).st_size + _CLOSE > limit:
                    return StoreFullError(path, f"a file may have {limit} bytes (ulimit -f)")
    return StoreIOError(path, detail)


#: The error for an extended result code that is more specific than the class.
_EXTENDED: dict[int, _Kind] = {
    apsw.SQLITE_IOERR_DATA: lambda path, detail: DamagedStoreError(path, "a page does not match its checksum"),
    apsw.SQLITE_IOERR_CORRUPTFS: DamagedStoreError,
    apsw.SQLITE_IOERR_NOMEM: NoMemoryError,
    apsw.SQLITE_IOERR_WRITE: _write_failed,
}
#: apsw.SQLError is an error of the statement. Usually the statement is too large or needs a missing resource; only
#: these messages mean that the tables are not those of a store.
_NOT_OUR_TABLES = regex(
    r"no such (table|column|index|view)|table .* has no column|has \d+ columns? but \d+ values|"
    r"cannot modify .* because it is a view|malformed|ON CONFLICT clause does not match|foreign key mismatch|"
    r"unsafe use of|access to view .* prohibited|is circularly defined|"
    r"no such (module|function)|vtable constructor failed"
)


def ours(path: str, error: Exception) -> RecollectError:
    """Return the error for one of `SQLITE_ERRORS`.

    DamagedStoreError means that SQLite reports corruption, or that the tables are not those of a store. A statement
    that fails because of its size, or for lack of memory, says nothing about the file.
    """
    if isinstance(error, apsw.ConnectionClosedError):
        return ClosedError("the memory")
    if isinstance(error, apsw.CursorClosedError):
        return ClosedError("the view")
    if isinstance(error, apsw.InterruptError) and (late := overdue()) is not None:
        return late
    extended = getattr(error, "extendedresult", 0)
    kind, detail = _EXTENDED.get(extended), str(error)
    if kind is None and isinstance(error, apsw.IOError) and extended in apsw.mapping_extended_result_codes:
        detail = f"{detail}, {apsw.mapping_extended_result_codes[extended]}"  # says which call of the system failed
    if kind is None and isinstance(error, apsw.SQLError) and _NOT_OUR_TABLES.search(str(error)):
        kind = DamagedStoreError
    return (kind or _KINDS.get(type(error), StoreIOError))(path, detail)


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Translate SQLite's errors."""
    try:
        yield
    except SQLITE_ERRORS as error:
        raise ours(path, error) from error
