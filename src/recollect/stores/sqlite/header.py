"""Whether a file may be opened as a store, told by its first bytes and its rights, before SQLite sees it."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from recollect.errors import DamagedStoreError, NotAStoreError, StoreIOError, StoreMissingError
from recollect.stores import files
from recollect.stores.sqlite.pages import Pages
from recollect.stores.sqlite.schema import APPLICATION_ID

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
#: Where SQLite locks a file: the page with this byte is never written.
_LOCK_BYTE = 2**30


@contextmanager
def _file_errors(path: str) -> Iterator[None]:
    """The operating system's errors as ours."""
    try:
        yield
    except OSError as error:
        raise StoreIOError(path, str(error)) from error


def must_not_write(path: str, read_only: bool) -> str:
    """Why the file must not be written; "" where it may be."""
    if read_only:
        return "it was opened for reading only"
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return ""
    # Root may write anything; a file that nobody may write was marked so for a reason.
    if stat.S_ISREG(mode) and (not mode & 0o222 or not os.access(path, os.W_OK)):
        return "the file is marked read-only"
    return ""


def stands_still(path: str) -> bool:
    """Whether nobody at all can write to the file: its file system is read-only, and no log lies beside it."""
    try:
        read_only = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False
    return read_only and not os.path.exists(wal_path(path))


def wal_path(path: str) -> str:
    """Where SQLite has the log of a file: beside the file itself, where the path is a link to it."""
    return os.path.realpath(path) + "-wal"


def has_wal(path: str) -> bool:
    """Whether a log with something in it lies beside a place."""
    try:
        return os.path.getsize(wal_path(path)) > 0
    except OSError:
        return False


def admit(path: str, create: bool) -> bool:
    """Whether the file is new (made here, or empty). Looks at its first bytes without opening it as a database.

    Raises: StoreMissingError, NotAStoreError, DamagedStoreError, StoreIOError.
    """
    if os.path.isdir(path):
        raise NotAStoreError(path, "it is a folder")
    logged = has_wal(path)  # before the file is looked at: one that is being made has its first page before its log
    if not os.path.exists(path):
        if logged:
            raise DamagedStoreError(path, f"the file is missing, but its log is there: {wal_path(path)}")
        if not os.path.isdir(os.path.dirname(path)):
            raise StoreMissingError(path, f"the folder {os.path.dirname(path)} does not exist")
        if not create:
            raise StoreMissingError(path)
        with _file_errors(path), suppress(FileExistsError):
            files.create(path, exclusive=True)
    if not os.path.isfile(path):
        raise NotAStoreError(path, "it is not a regular file")
    with _file_errors(path), Path(path).open("rb") as file:
        beginning = file.read(_HEADER_BYTES)
    if not beginning and logged:
        raise DamagedStoreError(path, f"the file is empty, but its log is there: {wal_path(path)}")
    if not beginning:
        if not create:
            raise NotAStoreError(path, "it is empty")
        return True
    if create and not any(beginning) and os.path.exists(path + "-journal"):
        return True  # a power cut came while it was made: by its journal SQLite knows that it is empty
    header = header_of(path)
    application = int.from_bytes(header[68:72], "big")
    if application != APPLICATION_ID:
        raise NotAStoreError(path, f"it is an SQLite file of another application (id {application:#010x})")
    return False


def header_of(path: str) -> bytes:
    """The first bytes of an SQLite file. Raises: NotAStoreError for any other; StoreIOError."""
    with _file_errors(path), Path(path).open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise NotAStoreError(path, "it is not an SQLite file; if it was a store, `recollect rescue` finds what is left")
    return header


def check_size(path: str, header: bytes, pages: int) -> None:
    """Compare the size of a file with the pages that SQLite finds in it and its WAL.

    SQLite reads what lies beyond the end of a file as zeros, so a copy that broke off would be read as an empty store.
    Each page must be in the file or in the WAL; and as a store never shrinks but where all of it was written anew, a
    WAL that says so belongs to another moment of the file.

    header  the first bytes of the file, read before `pages` was
    pages   how many there are, by a read transaction that is still open

    Raises: DamagedStoreError; StoreIOError.
    Cost: a system call, unless the newest pages are in the WAL alone: then the WAL is read.
    """
    page_bytes = int.from_bytes(header[16:18], "big")
    page_bytes = 65536 if page_bytes == 1 else page_bytes
    before = int.from_bytes(header[28:32], "big")  # pages when the file itself was last brought up to date
    with _file_errors(path):
        size = os.path.getsize(path)
        if size >= pages * page_bytes and before <= pages:
            return
        try:
            wal = Path(wal_path(path)).read_bytes()
        except FileNotFoundError:
            wal = b""
        size = os.path.getsize(path)  # again: what is not in the WAL any more has been carried over
    first = 1 if before > pages else size // page_bytes + 1
    lacking = set(range(first, pages + 1)) - Pages(header, wal).in_wal - {_LOCK_BYTE // page_bytes + 1}
    if lacking:
        detail = f"{pages} pages of {page_bytes} bytes" if first > 1 else f"fewer pages than the {before} it says"
        raise DamagedStoreError(
            path, f"the file has {size} bytes, its WAL and header want {detail}: it was cut, or copied in part"
        )


def part_beside(path: str) -> str:
    """A name beside a path for what is written before it is put there: nobody else has it, also after a crash."""
    return f"{path}.{secrets.token_hex(8)}.part"


def replace_durably(part: str, path: str) -> None:
    """Let a file that was written beside a place be there, durably: all of it or, after a power cut, the one before.

    Raises: StoreIOError.
    """
    with _file_errors(path):
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
        sync_folder(path)


def sync_folder(path: str) -> None:
    """Make durable which files lie beside a path, where the system can do that. Raises: OSError."""
    try:
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
    except PermissionError:  # Windows does not open folders
        return
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
