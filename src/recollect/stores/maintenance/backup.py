"""Backups of a store, and putting one back.

A backup is a store of one file, of one moment, copied while writers go on; it has the store's uuid. It is written
beside its place and put there when it is whole and durable. Putting one back keeps what was there aside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from recollect.arguments import file_path, named
from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    NotAStoreError,
    StoreBusyError,
    StoreError,
    StoreIOError,
    StoreMissingError,
    WrongKeyError,
)
from recollect.ledger.commits import Line
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.base import Backup, Held
from recollect.stores.root_check import disagreements, held
from recollect.stores.sqlite import checksums
from recollect.stores.sqlite.errors import translated
from recollect.stores.sqlite.header import has_log, header_of, part_beside, put_in_place, sync_folder
from recollect.stores.sqlite.salvage import Salvage
from recollect.stores.sqlite.schema import APPLICATION_ID
from recollect.stores.sqlite.store import SqliteStore

#: How long a writer is waited for where its store is to be replaced.
BUSY_MS = 10_000
_BESIDE = ("-wal", "-shm")
_OR_FORCE = "give another path, or force it (--force, force=True)"
_ROLLBACK_JOURNAL = 1  # in a header, of a file that stands alone: nobody has opened it for writing since it was made


def back_up(store: SqliteStore, path: str, *, verify: bool = False, force: bool = False) -> Backup:
    """Copy the store as it is now to `path`; writers go on meanwhile.

    verify  open the copy, check all of it, and compute every root again from the records, before it is put there.
            So it is in any case where it takes the place of an older backup, which may be the last good one
    force   replace whatever file is there; else only an older backup of the same store is replaced

    Raises: InvalidArgumentError, DamagedStoreError, StoreError; what was at `path` is still there then.
    """
    target = path
    _check_target(store, target, force)
    verify = verify or os.path.lexists(target)
    part = part_beside(target)
    try:
        copy(store, part)
        lines = verified(part, store.key, store.path) if verify else {}
        size = os.stat(part).st_size
        for suffix in _BESIDE:  # of a file that is replaced by force: they would be taken for the backup's
            with suppress(FileNotFoundError):
                os.unlink(target + suffix)
        put_in_place(part, target)
    except OSError as error:
        raise StoreIOError(target, error.strerror or str(error)) from error
    finally:
        _remove(part)
    return Backup(path=target, bytes=size, verified=verify, lines=lines)


def _check_target(store: SqliteStore, target: str, force: bool) -> None:
    source = store.path
    real, place = os.path.realpath(source), os.path.realpath(target)
    for suffix in ("", *_BESIDE):
        if place == real + suffix or _same(target, real + suffix):
            raise InvalidArgumentError("path", target, "is the store itself: give another path")
    _check_beside(target, source, "is the store itself")
    if not os.path.lexists(target):
        return
    if not os.path.isfile(target):
        raise InvalidArgumentError("path", target, "is not a regular file: give another path")
    if force:
        return
    if not is_backup(target):
        raise InvalidArgumentError("path", target, f"is there and is no backup: {_OR_FORCE}")
    if _uuid_of(target, store.key) not in (None, store.facts()["uuid"]):
        raise InvalidArgumentError("path", target, f"is a backup of another store: {_OR_FORCE}")


def _uuid_of(path: str, key: bytes) -> str | None:
    """Whose backup a file is; None where it is hurt, "" where it has another key."""
    try:
        store = SqliteStore(path, create=False, read_only=True, key=key)
    except WrongKeyError:
        return ""
    except StoreError:
        return None
    try:
        return str(store.facts()["uuid"])
    finally:
        store.close()


def _check_beside(target: str, source: str, what: str) -> None:
    """What lies beside a place under the names of a log is taken away: that must not be the source."""
    for suffix in _BESIDE:
        if os.path.realpath(target + suffix) == os.path.realpath(source):
            raise InvalidArgumentError("path", target, f"with {suffix} {what}: give another path")


def is_backup(path: str) -> bool:
    """Whether a file is a store that nobody has opened for writing since it was copied."""
    try:
        header = header_of(path)
    except StoreError:
        return False
    return int.from_bytes(header[68:72], "big") == APPLICATION_ID and header[18] == _ROLLBACK_JOURNAL


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def copy(store: SqliteStore, part: str) -> None:
    """Copy a store, of one moment, into a file of its own at `part`. Raises: StoreError."""
    with translated(part):
        try:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreIOError(part, error.strerror or str(error)) from error
        with store.reading() as source:
            source.execute("SELECT name FROM meta").fetchall()  # now it is known whether pages have checksums
            target = checksums.connect(part)
            try:
                if checksums.kept(source):
                    checksums.begin(target)
                # The header says that there are checksums, so it has to be there before the pages that have them.
                target.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                target.close()
                target = checksums.connect(part)
                target.execute("SELECT name FROM sqlite_schema").fetchall()
                with target.backup("main", source, "main") as work:
                    work.step(-1)
                target.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, without a log
            finally:
                target.close()


def verified(path: str, key: bytes, source: str = "") -> dict[Line, Held]:
    """What a store holds that is whole. Raises: DamagedStoreError naming what is not; other StoreErrors.

    source  of which the file is a copy, for the message
    """
    store = SqliteStore(path, read_only=True, key=key)
    try:
        problems = store.check() + disagreements(store)
        if problems:
            raise DamagedStoreError(source or path, "; ".join(" ".join(each.split()) for each in problems[:5]))
        return held(store)
    finally:
        store.close()


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
    if target == origin or _same(target, origin):
        raise InvalidArgumentError("path", target, "is the backup itself: give another path")
    _check_beside(target, origin, "is the backup itself")
    there = _what_is_there(target, secret)
    if there and not force:
        raise InvalidArgumentError("path", target, f"{there}: {_OR_FORCE}; it is kept aside then")
    part = part_beside(target)
    try:
        store = SqliteStore(origin, read_only=True, key=secret)
        try:
            copy(store, part)
        finally:
            store.close()
        lines = verified(part, secret, origin)
        kept = _exchanged(part, target)
        return Backup(path=target, bytes=os.stat(target).st_size, verified=True, lines=lines, kept=kept)
    except OSError as error:
        raise StoreIOError(target, error.strerror or str(error)) from error
    finally:
        _remove(part)


def _what_is_there(target: str, key: bytes) -> str:
    """What would be lost at a place, in words; "" where nothing would. Raises: NotAStoreError for a foreign file."""
    if has_log(target) and (not os.path.exists(target) or not os.path.getsize(target)):
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
            return "is a store that holds something" if view.lines() else ""
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
        if has_log(target) or (there and os.path.getsize(target)):
            kept = _free_name(target)
            if there:
                os.link(target, kept)
        moved = []
        try:
            for suffix in _BESIDE:
                if os.path.lexists(target + suffix):
                    if kept is None:
                        os.unlink(target + suffix)
                    else:  # whoever has it open goes on with all three
                        os.rename(target + suffix, kept + suffix)
                        moved.append(suffix)
            sync_folder(target)
            put_in_place(part, target)
        except BaseException:
            if kept is not None and (not there or _same(target, kept)):  # it stays the store, and needs its log
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


def _remove(part: str) -> None:
    for suffix in ("", "-journal", *_BESIDE):
        with suppress(OSError):
            os.unlink(part + suffix)
