"""Copying an SQLite store, of one moment, into a file of its own while writers go on."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, suppress
from typing import Protocol

import apsw

from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    StoreError,
    StoreIOError,
    WrongKeyError,
)
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores.base import Backup, BranchSummary, Store
from recollect.stores.root_check import branch_summaries, disagreements
from recollect.stores.sqlite import checksums
from recollect.stores.sqlite.errors import translated
from recollect.stores.sqlite.header import header_of, part_beside, replace_durably
from recollect.stores.sqlite.schema import APPLICATION_ID

BESIDE = ("-wal", "-shm")
OR_FORCE = "give another path, or force it (--force, force=True)"
_ROLLBACK_JOURNAL = 1  # in a header, of a file that stands alone: nobody has opened it for writing since it was made


class Copied(Store, Protocol):
    """What copying needs of an SQLite store. Its class opens the copy, to verify it."""

    def __init__(self, path: str, *, create: bool = True, read_only: bool = False, key: bytes = PUBLIC_KEY) -> None: ...

    def reading(self) -> AbstractContextManager[apsw.Connection]:
        """A connection to the file that only reads."""
        ...


def back_up(store: Copied, path: str, *, verify: bool = False, force: bool = False) -> Backup:
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
        branches = verified(part, type(store), store.key, store.path) if verify else {}
        size = os.stat(part).st_size
        for suffix in BESIDE:  # of a file that is replaced by force: they would be taken for the backup's
            with suppress(FileNotFoundError):
                os.unlink(target + suffix)
        replace_durably(part, target)
    except OSError as error:
        raise StoreIOError(target, error.strerror or str(error)) from error
    finally:
        remove_part(part)
    return Backup(path=target, bytes=size, verified=verify, branches=branches)


def _check_target(store: Copied, target: str, force: bool) -> None:
    source = store.path
    real, place = os.path.realpath(source), os.path.realpath(target)
    for suffix in ("", *BESIDE):
        if place == real + suffix or same_file(target, real + suffix):
            raise InvalidArgumentError("path", target, "is the store itself: give another path")
    check_beside(target, source, "is the store itself")
    if not os.path.lexists(target):
        return
    if not os.path.isfile(target):
        raise InvalidArgumentError("path", target, "is not a regular file: give another path")
    if force:
        return
    if not is_backup(target):
        raise InvalidArgumentError("path", target, f"is there and is no backup: {OR_FORCE}")
    if _uuid_of(target, type(store), store.key) not in (None, store.facts()["uuid"]):
        raise InvalidArgumentError("path", target, f"is a backup of another store: {OR_FORCE}")


def _uuid_of(path: str, kind: type[Copied], key: bytes) -> str | None:
    """Whose backup a file is; None where it is hurt, "" where it has another key."""
    try:
        store = kind(path, create=False, read_only=True, key=key)
    except WrongKeyError:
        return ""
    except StoreError:
        return None
    try:
        return str(store.facts()["uuid"])
    finally:
        store.close()


def check_beside(target: str, source: str, what: str) -> None:
    """What lies beside a place under the names of a log is taken away: that must not be the source."""
    for suffix in BESIDE:
        if os.path.realpath(target + suffix) == os.path.realpath(source):
            raise InvalidArgumentError("path", target, f"with {suffix} {what}: give another path")


def is_backup(path: str) -> bool:
    """Whether a file is a store that nobody has opened for writing since it was copied."""
    try:
        header = header_of(path)
    except StoreError:
        return False
    return int.from_bytes(header[68:72], "big") == APPLICATION_ID and header[18] == _ROLLBACK_JOURNAL


def same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def copy(store: Copied, part: str) -> None:
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


def verified(path: str, kind: type[Copied], key: bytes, source: str = "") -> dict[Branch, BranchSummary]:
    """What a store holds that is whole. Raises: DamagedStoreError naming what is not; other StoreErrors.

    kind    the class that opens it
    source  of which the file is a copy, for the message
    """
    store = kind(path, read_only=True, key=key)
    try:
        problems = store.check() + disagreements(store)
        if problems:
            raise DamagedStoreError(source or path, "; ".join(" ".join(each.split()) for each in problems[:5]))
        return branch_summaries(store)
    finally:
        store.close()


def remove_part(part: str) -> None:
    for suffix in ("", "-journal", *BESIDE):
        with suppress(OSError):
            os.unlink(part + suffix)
