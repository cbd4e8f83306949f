"""SQLite's errors as ours: the one place where the two meet.

Every statement runs inside `translated`, so that whoever catches one of our errors in the middle of a transaction
catches those too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

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

#: Whoever catches these and raises `ours` of them does what `translated` does, without its cost.
SQLITE_ERRORS = (apsw.Error, UnicodeDecodeError)


_Kind = Callable[[str, str], RecollectError]
#: What each of SQLite's result codes becomes, by the name that apsw gives it. Others are StoreIOError.
_KINDS: dict[type[Exception], _Kind] = {
    apsw.BusyError: StoreBusyError,
    apsw.LockedError: StoreBusyError,
    apsw.ProtocolError: StoreBusyError,  # too many at once began to use a log
    apsw.SchemaChangeError: StoreBusyError,  # another program changes the tables, again and again
    apsw.FullError: StoreFullError,
    apsw.NoMemError: NoMemoryError,
    apsw.NotADBError: NotAStoreError,
    apsw.FormatError: NotAStoreError,
    apsw.CorruptError: DamagedStoreError,
    UnicodeDecodeError: DamagedStoreError,  # a text of ours is valid UTF-8
    # No statement of ours breaks a rule of our own tables, as long as what is in them is what we wrote.
    apsw.ConstraintError: DamagedStoreError,
    apsw.MismatchError: DamagedStoreError,
    apsw.ReadOnlyError: ReadOnlyStoreError,
    # Only what is read while a file is opened is interrupted (`structure.few_steps`).
    apsw.InterruptError: lambda path, detail: DamagedStoreError(path, "what is read to open it does not end"),
}
#: The same, by the extended code, where it says more than the name.
_EXTENDED: dict[int, _Kind] = {
    apsw.SQLITE_IOERR_DATA: lambda path, detail: DamagedStoreError(path, "a page does not have its checksum"),
    apsw.SQLITE_IOERR_CORRUPTFS: DamagedStoreError,
    apsw.SQLITE_IOERR_NOMEM: NoMemoryError,
}
#: The plain error is one of the statement. Most often it is too large, or needs what is not there; only these say that
#: our tables are not ours any more.
_NOT_OUR_TABLES = re.compile(
    r"no such (table|column|index|view)|table .* has no column|has \d+ columns? but \d+ values|"
    r"cannot modify .* because it is a view|malformed|ON CONFLICT clause does not match|foreign key mismatch|"
    r"unsafe use of|access to view .* prohibited|is circularly defined|"
    r"no such (module|function)|vtable constructor failed"
)


def ours(path: str, error: Exception) -> RecollectError:
    """Our error for one of `SQLITE_ERRORS`.

    DamagedStoreError is for what SQLite calls corrupt, and for tables that are not as we made them: a statement that
    fails for its size, or for want of memory, says nothing about the file.
    """
    if isinstance(error, apsw.ConnectionClosedError):
        return ClosedError("the memory")
    kind = _EXTENDED.get(getattr(error, "extendedresult", 0))
    if kind is None and isinstance(error, apsw.SQLError) and _NOT_OUR_TABLES.search(str(error)):
        kind = DamagedStoreError
    return (kind or _KINDS.get(type(error), StoreIOError))(path, str(error))


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except SQLITE_ERRORS as error:
        raise ours(path, error) from error
