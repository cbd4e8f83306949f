"""Stores whose page checksums another SQLite has not written: they are verified as a whole, and renewed in place.

The checksum of a page is written on its way from the WAL into the file, which any SQLite does that checkpoints: a shell
that looked at the store of a process that was killed, DB Browser, Litestream. It leaves pages with the checksum of a
former state, or none; so do copies by `.backup` and `VACUUM INTO`. Such a page looks like a damaged one. It is intact

- if it is the same as in a frame of the WAL, whose own chained sums are verified; or
- if SQLite's integrity check passes, and every hash and root of the whole store verifies (`integrity`).

A page that differs from one with its checksum by a byte or two was probably damaged: a commit changes more in most
pages that it writes, and adds a whole row of the log to one of them. So it is damage if all pages that mismatch are
such pages, or if it is one of settings or snapshots, which no hash covers.

Only the bytes of checksums are overwritten, so a process that dies meanwhile leaves a store that is verified again.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import apsw

from recollect.errors import DamagedStoreError, StoreError, StoreIOError
from recollect.stores.sqlite.header import wal_path
from recollect.stores.sqlite.integrity import examined
from recollect.stores.sqlite.pages import Pages
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.checksums import BYTES, checksum
from recollect.stores.sqlite_base.descriptors import FileBytes
from recollect.stores.sqlite_base.errors import translated

_log = logging.getLogger("recollect")
#: The b-trees whose rows are not covered by a hash of the ledger.
_WITHOUT_HASH = ("meta", "snapshots", "snapshots_by_name")
#: Number of bytes of the file that are read at once.
_AT_ONCE = 2**20


class Renewed(NamedTuple):
    """What was found.

    Attributes:
        pages: Number of pages whose checksum did not match. It was renewed, if the file may be written.
        verified: Whether the whole store was verified, and not only these pages by the WAL.
    """

    pages: int
    verified: bool

    def __str__(self) -> str:
        whole = "every record and root was verified (quotas, policies and names of snapshots have no hash)"
        by = whole if self.verified else "they are the same in its WAL"
        return f"{self.pages} of its pages were written by another SQLite, without their checksums; {by}"


class Renewal:
    """The renewal of the pages of one open store.

    Args:
        path: The file.
        key: The store's key.
        unverified: Opens a connection that does not verify checksums, and returns with it whether it may write.

    Attributes:
        verifies: Whether checksums are to be verified. It becomes false when a file that must not be written turns out
            to have intact pages without them.
        found: What was found of such pages, for the caller; "" if there were none.
    """

    def __init__(
        self, path: str, key: bytes, unverified: Callable[[], AbstractContextManager[tuple[apsw.Connection, bool]]]
    ) -> None:
        self._path = path
        self._key = key
        self._unverified = unverified
        self._lock = threading.Lock()
        self._damaged = False
        self.verifies = True
        self.found = ""

    def run(self) -> int:
        """Renew the checksums of pages that another SQLite has written, once everything is verified.

        Returns:
            The number of pages.

        Raises:
            DamagedStoreError: Something does not verify.
            StoreError: The file cannot be used, as when it is opened.
        """
        with self._unverified() as (connection, writing):
            found = renew(connection, self._path, self._key, writing=writing)
        if found.pages:
            done = "their checksums were renewed" if writing else "their checksums are not verified while it is open"
            self.found = f"{os.path.basename(self._path)}: {found}, and {done} (docs/backup.md, Other SQLite tools)"
            _log.warning("%s", self.found)
        self.verifies = self.verifies and writing
        return found.pages

    def attempt(self, alone: AbstractContextManager[None]) -> int | None:
        """Run it in a store that is in use.

        Args:
            alone: Keeps other threads from writing meanwhile.

        Returns:
            The number of pages; None if not everything verifies, now or the last time, or the file cannot be used now.
        """
        with self._lock:
            if self._damaged or not self.verifies:
                return None
            try:
                with alone:
                    return self.run()
            except DamagedStoreError as damage:
                self._damaged = True  # so that not every call reads everything
                _log.error("%s", damage)
            except StoreError as failure:
                _log.warning("the checksums of pages could not be renewed: %s", failure)
            return None


def renew(connection: apsw.Connection, path: str, key: bytes, *, writing: bool) -> Renewed:
    """Verify a store of which pages do not match their checksums, and renew these, if that is all that is wrong.

    Args:
        connection: A connection that does not verify checksums.
        path: The file.
        key: The store's key.
        writing: Whether to renew them; otherwise the file is not changed.

    Raises:
        DamagedStoreError: Something else is wrong. The file is not changed.
        StoreError: It cannot be read, or written.

    Cost:
        Reads the file. Unless the WAL has the pages, reads and hashes everything in it.
    """
    with translated(path):
        connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")  # so that no other process adds to the WAL
        connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        try:
            try:
                with FileBytes(path, writing=writing) as data:
                    return _renew(connection, path, key, data, writing=writing)
            except OSError as error:
                raise StoreIOError(path, error.strerror or str(error)) from error
        finally:
            if connection.in_transaction:  # SQLite itself ends it after some errors
                connection.execute("ROLLBACK")


def _renew(connection: apsw.Connection, path: str, key: bytes, data: FileBytes, *, writing: bool) -> Renewed:
    pages = Pages(data, _wal(path))
    if not pages.has_checksums:
        return Renewed(0, False)
    mismatching = [number for number in _mismatching(data, pages.size) if not _is_newer_in_wal(pages, number)]
    unexplained = [number for number in mismatching if number not in pages.in_wal]
    if unexplained:
        if problems := examined(connection, path, key):
            raise DamagedStoreError(path, f"a page does not match its checksum, and {problems[0]}")
        nearly = [number for number in unexplained if _is_nearly_intact(pages, number)]
        damaged = nearly if len(nearly) == len(unexplained) else filter(pages.is_damaged, _without_hash(pages))
        for number in damaged:
            raise DamagedStoreError(path, f"page {number} does not match its checksum")
    if writing:
        for number in mismatching:
            page = pages.in_file(number)
            data.write(checksum(page[:-BYTES]), number * pages.size - BYTES)
        data.sync()
    return Renewed(len(mismatching), bool(unexplained))


def _is_nearly_intact(pages: Pages, number: int) -> bool:
    """Return whether a byte or two of a page were changed, and not by a copy, which changes the header."""
    page = pages.in_file(number)
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


def _is_newer_in_wal(pages: Pages, number: int) -> bool:
    """Return whether the WAL has another state of a page: then SQLite does not read that in the file."""
    return number in pages.in_wal and pages.page(number)[:-BYTES] != pages.in_file(number)[:-BYTES]


def _without_hash(pages: Pages) -> Iterator[int]:
    """Yield the pages of settings and snapshots."""
    trees = pages.trees()
    for name in _WITHOUT_HASH:
        for number in pages.below(trees[name]):
            yield number
            for first in pages.overflows(number):
                yield from pages.chain(first)
