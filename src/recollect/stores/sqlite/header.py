"""Checks of a file's header and permissions before SQLite opens it, and durable replacement of files."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from recollect.errors import DamagedStoreError, NotAStoreError, StoreIOError, StoreMissingError
from recollect.stores import files
from recollect.stores.sqlite.pages import FilePages
from recollect.stores.sqlite.schema import APPLICATION_ID, ENCRYPTED_ID
from recollect.stores.sqlite_base.descriptors import read

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
#: The byte at offset 18 of a file in WAL mode.
_WAL_MODE = 2
#: The byte that SQLite uses for file locks. The page that contains it is never written.
_LOCK_BYTE = 2**30


@contextmanager
def _file_errors(path: str) -> Iterator[None]:
    """Turn errors of the operating system into StoreIOError."""
    try:
        yield
    except OSError as error:
        raise StoreIOError(path, str(error)) from error


#: How long an empty file that is not to be created is waited for, and in which steps, in seconds: another process may
#: be creating it.
_CREATION_S, _PAUSE_S = 0.25, 0.005


def must_not_write(path: str, read_only: bool) -> str:
    """Return why the file must not be written; "" if it may be."""
    if read_only:
        return "it was opened for reading only"
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return ""
    # Root may write to any file, but a file without any write permission was protected on purpose.
    if stat.S_ISREG(mode) and (not mode & 0o222 or not os.access(path, os.W_OK)):
        return "the file is marked read-only"
    if not os.access(os.path.dirname(os.path.realpath(path)), os.W_OK) and not os.path.exists(wal_path(path)):
        return "its folder cannot be written to"
    return ""


def is_immutable(path: str) -> bool:
    """Return whether a file that this process only reads must be opened as immutable.

    To share a file in WAL mode with writers, SQLite needs the WAL and its index (`-shm`) next to it. In a folder that
    this process cannot write to, they are there only while the file's owner has it open.

    Raises:
        StoreIOError: The WAL has commits that this process cannot read.
    """
    if os.access(os.path.dirname(os.path.realpath(path)), os.W_OK) or header_of(path)[18] != _WAL_MODE:
        return False
    if os.path.exists(wal_path(path)) and os.access(os.path.realpath(path) + "-shm", os.R_OK):
        return False
    if has_wal(path):
        detail = (
            "its WAL has commits, and reading them needs a file that cannot be created in this folder: let its owner "
            "open and close it (recollect stats), or copy it with its WAL to a folder of your own"
        )
        raise StoreIOError(path, detail)
    return True


def wal_path(path: str) -> str:
    """Return the path of a file's WAL. If the path is a symbolic link, the WAL is next to the file it points to."""
    return os.path.realpath(path) + "-wal"


def has_wal(path: str) -> bool:
    """Return whether there is a non-empty WAL for a path."""
    return _has_bytes(wal_path(path))


def _has_bytes(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except OSError:
        return False


class Admitted(NamedTuple):
    """A file that may be opened as a store.

    Attributes:
        new: Whether it was created here, or is empty.
        encrypted: Whether its header says that it is encrypted.
    """

    new: bool
    encrypted: bool


def admit(path: str, create: bool) -> Admitted:
    """Check that a file may be opened as a store.

    Reads the header only; SQLite does not open the file.

    Args:
        path: The file.
        create: Whether to create a missing file.

    Raises:
        StoreMissingError: There is no file, and `create` is false or its folder is missing.
        NotAStoreError: The file is something else.
        DamagedStoreError: There is a WAL, but its file is missing or empty.
        StoreIOError: The file cannot be read or created.
    """
    if os.path.isdir(path):
        raise NotAStoreError(path, "it is a folder")
    real = os.path.realpath(path)
    wal_exists = _has_bytes(f"{real}-wal")  # read before the file: a new store gets its first page before its WAL
    if not os.path.exists(path):
        if wal_exists:
            raise DamagedStoreError(path, f"the file is missing, but its WAL exists: {wal_path(path)}")
        if not os.path.isdir(os.path.dirname(path)):
            raise StoreMissingError(path, f"the folder {os.path.dirname(path)} does not exist")
        if not create:
            raise StoreMissingError(path)
        with _file_errors(path), suppress(FileExistsError):
            files.create(path, exclusive=True)
    if not os.path.isfile(path):
        raise NotAStoreError(path, "it is not a regular file")
    with _file_errors(path):
        start = read(path, _HEADER_BYTES, real=real)
        until = time.monotonic() + _CREATION_S
        while not start and not create and not wal_exists and time.monotonic() < until:
            time.sleep(_PAUSE_S)
            start = read(path, _HEADER_BYTES, real=real)
    if not start and wal_exists:
        raise DamagedStoreError(path, f"the file is empty, but its WAL exists: {wal_path(path)}")
    if not start:
        if not create:
            raise NotAStoreError(path, "it is empty")
        return Admitted(new=True, encrypted=False)
    if create and not any(start) and os.path.exists(path + "-journal"):
        # A power cut interrupted its creation; SQLite will roll it back to empty with the journal.
        return Admitted(new=True, encrypted=False)
    application = application_of(_checked(path, start))
    if application not in (APPLICATION_ID, ENCRYPTED_ID):
        raise NotAStoreError(path, f"it is an SQLite file of another application (id {application:#010x})")
    return Admitted(new=False, encrypted=application == ENCRYPTED_ID)


def application_of(header: bytes) -> int:
    """Return the application id in a header: `APPLICATION_ID` for a store, `ENCRYPTED_ID` for an encrypted one."""
    return int.from_bytes(header[68:72], "big")


def header_of(path: str, real: str = "") -> bytes:
    """Return the header of an SQLite file. Raise NotAStoreError for any other file, StoreIOError if reading fails."""
    with _file_errors(path):
        header = read(path, _HEADER_BYTES, real=real)
    return _checked(path, header)


def _checked(path: str, header: bytes) -> bytes:
    """Return a header if it is that of an SQLite file."""
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise NotAStoreError(path, "it is not an SQLite file; if it was a store, run `recollect rescue`")
    return header


def has_all_pages(path: str) -> bool:
    """Return whether a file has the pages that its header states. The last ones may still be only in the WAL.

    A checkpoint writes the header before the pages that it adds.

    Raises:
        NotAStoreError: The file is not an SQLite database.
        StoreIOError: Reading failed.
    """
    header = header_of(path)
    page_bytes, pages = _page_bytes(header), int.from_bytes(header[28:32], "big")
    with _file_errors(path):
        size = os.path.getsize(path)
        return size >= pages * page_bytes or not _not_in_wal(path, header, size // page_bytes + 1, pages)


def _not_in_wal(path: str, header: bytes, first: int, last: int) -> set[int]:
    """Return which of these pages the WAL does not contain. Raise OSError if it cannot be read."""
    try:
        wal = Path(wal_path(path)).read_bytes()
    except FileNotFoundError:
        wal = b""
    return set(range(first, last + 1)) - FilePages(header, wal).in_wal - {_LOCK_BYTE // _page_bytes(header) + 1}


def _page_bytes(header: bytes) -> int:
    size = int.from_bytes(header[16:18], "big")
    return 65536 if size == 1 else size


def check_size(path: str, header: bytes, pages: int) -> None:
    """Compare the size of a file with the number of pages that SQLite counts in it and its WAL.

    SQLite reads pages beyond the end of a file as zeros, so a truncated copy would be read as an empty store. Each page
    must be in the file or in the WAL. A store shrinks only when all of its pages are rewritten; so if the WAL has fewer
    pages than the header states and does not contain all of them, it belongs to another state of the file.

    Args:
        path: The file.
        header: Its header, read before `pages`.
        pages: The number of pages, from a read transaction that is still open.

    Raises:
        DamagedStoreError: The file or its WAL lacks pages.
        StoreIOError: Reading failed.

    Cost:
        One system call, unless the newest pages are only in the WAL: then the WAL is read.
    """
    page_bytes = _page_bytes(header)
    before = int.from_bytes(header[28:32], "big")  # number of pages at the last checkpoint
    with _file_errors(path):
        size = os.path.getsize(path)
        if size >= pages * page_bytes and before <= pages:
            return
        first = 1 if before > pages else size // page_bytes + 1
        missing = _not_in_wal(path, header, first, pages)
        size = os.path.getsize(path)  # again: a checkpoint may have copied pages from the WAL into the file
        if before <= pages:
            missing = {page for page in missing if page > size // page_bytes}
    if missing:
        detail = (
            f"its header and WAL require {pages} pages of {page_bytes} bytes"
            if first > 1
            else f"its WAL has fewer pages than the {before} that its header says"
        )
        raise DamagedStoreError(path, f"the file has {size} bytes, and {detail}: it was cut, or copied in part")


def part_path(path: str) -> str:
    """Return a unique name next to a path, for a file that is written there before it replaces the one at the path."""
    return f"{path}.{secrets.token_hex(8)}.part"


def replace_durably(part: str, path: str) -> None:
    """Rename `part` to `path` atomically and durably: after a power cut, either the old or the new file is there.

    Raises:
        StoreIOError: That failed.
    """
    with _file_errors(path):
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
        sync_folder(path)


def sync_folder(path: str) -> None:
    """Make the directory entries next to a path durable, if the system can do that. Raise OSError if it fails."""
    try:
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
    except PermissionError:  # Windows cannot open folders
        return
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
