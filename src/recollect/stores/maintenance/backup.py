"""Backups of a store, and putting one back.

A backup is a store of one file, of one moment, copied while writers go on; it has the store's uuid. It is written
beside its place and put there when it is whole and durable. Putting one back keeps what was there aside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from recollect.arguments import file_path, named
from recollect.errors import (
    InvalidArgumentError,
    NotAStoreError,
    StoreBusyError,
    StoreError,
    StoreIOError,
    StoreMissingError,
)
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.base import Backup
from recollect.stores.sqlite import checksums
from recollect.stores.sqlite.copying import BESIDE, OR_FORCE, check_beside, copy, remove_part, same_file, verified
from recollect.stores.sqlite.header import has_wal, header_of, part_beside, replace_durably, sync_folder
from recollect.stores.sqlite.salvage import Salvage
from recollect.stores.sqlite.schema import APPLICATION_ID
from recollect.stores.sqlite.store import SqliteStore

#: How long a writer is waited for where its store is to be replaced.
BUSY_MS = 10_000


@named
def restore(
    source: str | os.PathLike[str], path: str | os.PathLike[str], *, force: bool = False, key: bytes | None = None
) -> Backup:
    """Verify a backup, and let a copy of it be the store at `path`.

    force  also where a store is there that holds something. It is kept aside, whole, under the name that is told

    A memory that has the store at `path` open should be closed before: it gets StoreReplacedError from then on.
    What is in `FILE.index` is left: it is used only as far as it belongs to what is there now.

    Raises: DamagedStoreError, NotAStoreError, InvalidArgumentError, StoreBusyError, other StoreErrors; what was at
    `path` is still there then.
    """
    origin, target, secret = file_path("source", source), file_path("path", path), key or PUBLIC_KEY
    if not os.path.exists(origin):
        raise StoreMissingError(origin)
    if target == origin or same_file(target, origin):
        raise InvalidArgumentError("path", target, "is the backup itself: give another path")
    check_beside(target, origin, "is the backup itself")
    there = _what_is_there(target, secret)
    if there and not force:
        raise InvalidArgumentError("path", target, f"{there}: {OR_FORCE}; it is kept aside then")
    part = part_beside(target)
    try:
        store = SqliteStore(origin, read_only=True, key=secret)
        try:
            copy(store, part)
        finally:
            store.close()
        branches = verified(part, SqliteStore, secret, origin)
        kept = _exchanged(part, target)
        return Backup(path=target, bytes=os.stat(target).st_size, verified=True, branches=branches, kept=kept)
    except OSError as error:
        raise StoreIOError(target, error.strerror or str(error)) from error
    finally:
        remove_part(part)


def _what_is_there(target: str, key: bytes) -> str:
    """What would be lost at a place, in words; "" where nothing would. Raises: NotAStoreError for a foreign file."""
    if has_wal(target) and (not os.path.exists(target) or not os.path.getsize(target)):
        return "is the place of a store whose log is there"
    if not os.path.lexists(target):
        return ""
    if not os.path.isfile(target):
        raise InvalidArgumentError("path", target, "is not a regular file: give another path")
    if not os.path.getsize(target):
        return ""
    try:
        if not _was_a_store(target, key):
            raise NotAStoreError(target, "something else is there")
    except OSError as error:
        raise StoreIOError(target, error.strerror or str(error)) from error
    try:
        store = SqliteStore(target, create=False, read_only=True, key=key)
    except StoreError:
        return "is a store that cannot be opened"
    try:
        with store.read() as view:
            return "is a store that holds something" if view.branches() else ""
    except StoreError:
        return "is a store that cannot be read"
    finally:
        store.close()


def _was_a_store(path: str, key: bytes) -> bool:
    """Whether a file is a store, or was one before its first page was hurt."""
    try:
        return int.from_bytes(header_of(path)[68:72], "big") == APPLICATION_ID
    except NotAStoreError:
        return not Salvage(path, key).empty


def _exchanged(part: str, target: str) -> str | None:
    """Put a file in the place of a store; where the store is now, with its log.

    A log that lay beside its place would be taken for the new one's, so it goes with the store that it belongs to.
    """
    with _locked(target):
        kept = None
        there = os.path.lexists(target)
        if has_wal(target) or (there and os.path.getsize(target)):
            kept = _free_name(target)
            if there:
                os.link(target, kept)
        moved = []
        try:
            for suffix in BESIDE:
                if os.path.lexists(target + suffix):
                    if kept is None:
                        os.unlink(target + suffix)
                    else:  # whoever has it open goes on with all three
                        os.rename(target + suffix, kept + suffix)
                        moved.append(suffix)
            sync_folder(target)
            replace_durably(part, target)
        except BaseException:
            if kept is not None and (not there or same_file(target, kept)):  # it stays the store, and needs its log
                for suffix in moved:
                    os.rename(kept + suffix, target + suffix)
                if there:
                    os.unlink(kept)
            raise
    return kept


@contextmanager
def _locked(target: str) -> Iterator[None]:
    """Hold the lock of the store at a place, so that no writer is half-way; of none where it cannot be had at all."""
    if not os.path.exists(target) or not os.path.getsize(target):
        yield
        return
    connection = checksums.connect(target, apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(BUSY_MS)
        # Or it would carry the log over, and delete it by its name, when it is closed.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        try:
            connection.execute("SELECT name FROM sqlite_schema").fetchall()  # now it knows of the log
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError as error:  # what is only in the log would be gone, if we died before all is exchanged
            raise StoreBusyError(target, str(error)) from error
        except apsw.Error:
            pass
        try:
            connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError as error:
            raise StoreBusyError(target, str(error)) from error
        except apsw.Error:
            pass  # it is hurt: nobody writes to it either
        yield
    finally:
        connection.close()


def _free_name(target: str) -> str:
    number = 1
    while os.path.lexists(f"{target}.replaced-{number}"):
        number += 1
    return f"{target}.replaced-{number}"
