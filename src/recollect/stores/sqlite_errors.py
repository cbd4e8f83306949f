"""SQLite's errors as ours: the one place where the two meet.

Every statement runs inside `translated`, so that whoever catches one of our errors in the middle of a transaction
catches those too.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def ours(path: str, error: Exception) -> RecollectError:
    """Our error for one of `SQLITE_ERRORS`."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusyError(path, str(error))
        case apsw.FullError():
            return StoreFullError(path, str(error))
        case apsw.NoMemError():
            return NoMemoryError(path, str(error))
        case apsw.NotADBError() | apsw.FormatError():
            return NotAStoreError(path, str(error))
        case apsw.CorruptError() | UnicodeDecodeError():  # a text of ours is valid UTF-8
            return DamagedStoreError(path, str(error))
        case apsw.IOError() if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:
            return DamagedStoreError(path, "a page does not have its checksum")
        case apsw.ReadOnlyError():
            return ReadOnlyStoreError(path, str(error))
        case apsw.IOError() | apsw.CantOpenError() | apsw.PermissionsError():
            return StoreIOError(path, str(error))
        case apsw.ConnectionClosedError():
            return ClosedError("the memory")
        case apsw.SQLError() | apsw.MismatchError() | apsw.ConstraintError() | apsw.SchemaChangeError():
            # Our own statements are right on our own tables, so the tables are not ours any more.
            return DamagedStoreError(path, str(error))
    return StoreIOError(path, str(error))


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except SQLITE_ERRORS as error:
        raise ours(path, error) from error
