"""Stores whose page checksums another SQLite has not written: they are verified as a whole, and renewed in place.

The checksum of a page is written on its way from the WAL into the file, which any SQLite does that checkpoints: a shell
that looked at the store of a process that was killed, DB Browser, Litestream. It leaves pages with the checksum of a
former state, or none; so do copies by `.backup` and `VACUUM INTO`. Such a page looks like a damaged one. It is intact

- if it is the same as in a frame of the WAL, whose own chained sums are verified; or
- if SQLite's integrity check passes, and every hash and root of the whole store verifies (`integrity`).

A page that differs from one with its checksum by a byte or two was probably damaged: a commit changes more in most
pages that it writes, and adds a whole row of the log to one of them. So it is damage if all pages that mismatch are
such pages, or if it is one of settings or snapshots, which no hash covers.

Others read and write meanwhile. Only to overwrite checksums, of pages that are still the same, is the write lock taken.
Nothing but the bytes of checksums is overwritten, so a process that dies meanwhile leaves a store that is verified
again.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import apsw

from recollect.common.deadlines import within
from recollect.errors import DamagedStoreError, StoreError, StoreIOError
from recollect.stores.sqlite.header import wal_path
from recollect.stores.sqlite.integrity import examined
from recollect.stores.sqlite.pages import FilePages
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.checksums import BYTES, checksum
from recollect.stores.sqlite_base.descriptors import FileBytes
from recollect.stores.sqlite_base.errors import translated

_Unverified = Callable[[], AbstractContextManager[tuple[apsw.Connection, bool]]]
_Alone = Callable[[], AbstractContextManager[None]]
_log = logging.getLogger("recollect")
#: The b-trees whose rows are not covered by a hash of the ledger.
_WITHOUT_HASH = ("meta", "snapshots", "snapshots_by_name")
#: Number of bytes of the file that are read at once.
_AT_ONCE = 2**20


class Renewed(NamedTuple):
    """The pages that another SQLite has written.

    Attributes:
        sums: By number, the right checksum of each intact page whose checksum did not match.
        size: The size of a page, in bytes.
        verified: Whether the whole store was verified, and not only these pages by the WAL.
    """

    sums: Mapping[int, bytes]
    size: int
    verified: bool

    def __str__(self) -> str:
        whole = "every record and root was verified (quotas, policies and names of snapshots have no hash)"
        by = whole if self.verified else "they are the same in its WAL"
        return f"{len(self.sums)} of its pages were written by another SQLite, without their checksums; {by}"


class Renewal:
    """The renewal of the pages of one open store.

    It has no reference to the store: a store that is not closed is freed as soon as nothing refers to it.

    Args:
        path: The file.
        key: The store's key.

    Attributes:
        verifies: Whether checksums are to be verified. It becomes false when a file that must not be written turns out
            to have intact pages without them.
        found: What was found of such pages, for the caller; "" if there were none.
    """

    def __init__(self, path: str, key: bytes) -> None:
        self._path = path
        self._key = key
        self._lock = threading.Lock()
        self._damaged = False
        self.verifies = True
        self.found = ""

    def run(self, unverified: _Unverified, alone: _Alone = nullcontext) -> int:
        """Renew the checksums of pages that another SQLite has written, once everything is verified.

        Args:
            unverified: Opens a connection that does not verify checksums, and returns with it whether it may write.
            alone: Keeps other threads of this process from writing, and from checkpointing.

        Returns:
            The number of pages.

        Raises:
            DamagedStoreError: Something does not verify.
            StoreError: The file cannot be used, as when it is opened.

        Cost:
            Reads the file. Unless the WAL has the pages, reads and hashes everything in it. It has no deadline: each
            call that meets such a page would otherwise begin again.
        """
        path = self._path
        with (
            within(None),
            unverified() as (connection, writing),
            _file_errors(path),
            FileBytes(path, writing=writing) as data,
        ):
            with _transaction(connection, path, "BEGIN"):
                found = _verified(connection, path, self._key, data)
            if writing and found.sums:
                with alone(), _transaction(connection, path, "BEGIN IMMEDIATE"):
                    _overwrite(data, found)
        if found.sums:
            done = "their checksums were renewed" if writing else "their checksums are not verified while it is open"
            self.found = f"{os.path.basename(self._path)}: {found}, and {done} (docs/backup.md, Other SQLite tools)"
            _log.warning("%s", self.found)
        self.verifies = self.verifies and writing
        return len(found.sums)

    def attempt(self, unverified: _Unverified, alone: _Alone) -> int | None:
        """Run it in a store that is in use. The arguments are those of `run`.

        Returns:
            The number of pages; None if not everything verifies, now or the last time, or the file cannot be used now.
        """
        with self._lock:
            if self._damaged:
                return None
            if not self.verifies:  # it was found before, while the connection that met a page was in use
                return 0
            try:
                return self.run(unverified, alone)
            except DamagedStoreError as damage:
                self._damaged = True  # so that not every call reads everything
                _log.error("%s", damage)
            except StoreError as failure:
                _log.warning("the checksums of pages could not be renewed: %s", failure)
            return None


@contextmanager
def _file_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreIOError(path, error.strerror or str(error)) from error


@contextmanager
def _transaction(connection: apsw.Connection, path: str, begin: str) -> Iterator[None]:
    """Run a block in a transaction, which is undone at its end."""
    with translated(path):
        connection.execute(begin)
        try:
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()  # the snapshot begins
            yield
        finally:
            if connection.in_transaction:  # SQLite itself ends it after some errors
                connection.execute("ROLLBACK")


def _verified(connection: apsw.Connection, path: str, key: bytes, data: FileBytes) -> Renewed:
    """Verify a store of which pages do not match their checksums.

    Args:
        connection: A connection that does not verify checksums, with a snapshot. So the pages in the file are those of
            the snapshot, or are just being copied from the WAL.
        path: The file.
        key: The store's key.
        data: Its bytes.

    Raises:
        DamagedStoreError: Something else is wrong than that another SQLite has written these pages.
    """
    pages = FilePages(data, _wal(path))
    if not pages.has_checksums:
        return Renewed({}, pages.size, False)
    sums: dict[int, bytes] = {}
    unexplained: list[int] = []
    nearly: list[int] = []
    for number in _mismatching(data, pages.size):
        page = pages.in_file(number)
        right = checksum(page[:-BYTES])
        if page[-BYTES:] == right or _is_newer_in_wal(pages, number):
            continue  # another process has just renewed it, or SQLite does not read it
        sums[number] = right
        if number not in pages.in_wal:
            unexplained.append(number)
            nearly += [number] * _is_nearly_intact(page, number)
    if unexplained:
        if problems := examined(connection, path, key):
            raise DamagedStoreError(path, f"a page does not match its checksum, and {problems[0]}")
        damaged = nearly[0] if nearly == unexplained else next(filter(pages.is_damaged, _without_hash(pages)), None)
        if damaged is not None:
            raise DamagedStoreError(path, f"page {damaged} does not match its checksum")
    return Renewed(sums, pages.size, bool(unexplained))


def _overwrite(data: FileBytes, found: Renewed) -> None:
    """Write the checksums of pages that are as they were when they were verified."""
    for number, verified in found.sums.items():
        end = number * found.size
        if checksum(data[end - found.size : end - BYTES]) == verified:
            data.write(verified, end - BYTES)
        # A checkpoint of another process may have written the page and its checksum meanwhile.
        page = data[end - found.size : end]
        if (now := checksum(page[:-BYTES])) != verified and page[-BYTES:] == verified:
            data.write(now, end - BYTES)
    data.sync()


def _is_nearly_intact(page: bytes, number: int) -> bool:
    """Return whether a byte or two of a page were changed, and not by a copy, which changes the header."""
    return not (number == 1 and checksums.matches_before_copying(page)) and checksums.nearly_matches(page)


def _wal(path: str) -> bytes:
    try:
        return Path(wal_path(path)).read_bytes()  # SQLite has no locks on it that this could drop
    except FileNotFoundError:
        return b""


def _mismatching(data: FileBytes, size: int) -> Iterator[int]:
    """Yield the numbers of the complete pages in the file that do not match their checksums, counted from 1."""
    at_once = max(_AT_ONCE // size, 1) * size
    for begin in range(0, len(data) // size * size, at_once):
        part = data[begin : min(begin + at_once, len(data) // size * size)]
        for number in checksums.mismatching(part, size):
            yield begin // size + number + 1


def _is_newer_in_wal(pages: FilePages, number: int) -> bool:
    """Return whether the WAL has another state of a page: then SQLite does not read that in the file."""
    return number in pages.in_wal and pages.page(number)[:-BYTES] != pages.in_file(number)[:-BYTES]


def _without_hash(pages: FilePages) -> Iterator[int]:
    """Yield the pages of settings and snapshots."""
    trees = pages.trees()
    for name in _WITHOUT_HASH:
        for number in pages.below(trees[name]):
            yield number
            for first in pages.overflows(number):
                yield from pages.chain(first)
