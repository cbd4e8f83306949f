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
    NotAStoreError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreFullError,
    StoreIOError,
)


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusyError(path, str(error)) from error
    except apsw.FullError as error:
        raise StoreFullError(path, str(error)) from error
    except (apsw.NotADBError, apsw.FormatError) as error:
        raise NotAStoreError(path, str(error)) from error
    except (apsw.CorruptError, UnicodeDecodeError) as error:  # a text of ours is valid UTF-8
        raise DamagedStoreError(path, str(error)) from error
    except apsw.ReadOnlyError as error:
        raise ReadOnlyStoreError(path, str(error)) from error
    except (apsw.IOError, apsw.CantOpenError, apsw.PermissionsError) as error:
        raise StoreIOError(path, str(error)) from error
    except apsw.ConnectionClosedError as error:
        raise ClosedError("the memory") from error
    except (apsw.SQLError, apsw.MismatchError, apsw.ConstraintError, apsw.SchemaChangeError) as error:
        # Our own statements are right on our own tables, so the tables are not ours any more.
        raise DamagedStoreError(path, str(error)) from error
    except apsw.Error as error:
        raise StoreIOError(path, str(error)) from error
