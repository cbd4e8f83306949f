"""Recording of all operations on the files of a store, and failures on purpose.

While `recorded` runs, SQLite's default file system is one that inherits from the system's, so every connection uses it:
the writer's, the readers', the checkpointer's, those of full-text search and of vectors. Operations outside SQLite go
through `recollect.stores.files`, whose functions are replaced. Shared memory is passed through and not recorded, since
no power cut leaves any of it. Files elsewhere are not affected, so other stores may be in use.
"""

from __future__ import annotations

import errno
import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from recollect.stores import files
from recollect.stores.sqlite_base import checksums
from torture.disk import FOLDER, Event

_BASE = apsw.vfs_names()[0]  # the system's own
_numbers = itertools.count()
_INJECTED = "injected: "
#: The files whose folder SQLite syncs with their first sync after it may have made them (os_unix.c: UNIXFILE_DIRSYNC).
_NEW_IN_FOLDER = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
#: SQLite's own words for an operation that the system refused.
_REFUSED = {
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "size": apsw.SQLITE_IOERR_FSTAT,
    "remove": apsw.SQLITE_IOERR_DELETE,
    "access": apsw.SQLITE_IOERR_ACCESS,
}

#: The functions of `recollect.stores.files` that are replaced.
_FUNCTIONS = ("create", "write", "read", "replace", "link", "remove", "make_folder", "sync_folder")

#: Told of each operation before it is done (its kind and path): an errno lets it fail, None lets it happen. The kinds
#: are read, write, sync, truncate, size, open, access, remove, create, replace and make_folder.
Before = Callable[[str, str], int | None]


class Recorder:
    """What was done to the files in a folder.

    events  in their order
    before  decides what fails
    """

    def __init__(self, folder: Path, before: Before | None = None) -> None:
        self.folder = os.path.realpath(folder)
        self.events: list[Event] = []
        self.before = before
        self._lock = threading.RLock()
        self._now: dict[str, int] = {}  # which file is where
        self._count = itertools.count(1)

    def within(self, path: str) -> str | None:
        """The path inside the folder; None for one elsewhere."""
        folder, name = os.path.split(path)
        inside = os.path.relpath(os.path.join(os.path.realpath(folder), name), self.folder)
        return None if inside.startswith("..") else inside

    def number(self, path: str) -> int:
        """The number of the file that is at a path, given now where it is new."""
        with self._lock:
            if path not in self._now:
                self.name((path, next(self._count)))
            return self._now[path]

    def name(self, *names: tuple[str, int | None]) -> None:
        """Note which file is at each of some paths now."""
        with self._lock:
            for path, number in names:
                if number is None:
                    self._now.pop(path, None)
                else:
                    self._now[path] = number
            self.note(Event("name", names=names))

    def note(self, event: Event) -> None:
        with self._lock:
            self.events.append(event)

    def note_there(self) -> None:
        """Note what the folder has by now, all of it durable."""
        for path in sorted(Path(self.folder).rglob("*")):
            name = os.path.relpath(path, self.folder)
            if path.is_dir():
                self.name((name, FOLDER))
            else:
                number = self.number(name)
                self.note(Event("write", number, data=path.read_bytes()))
                self.note(Event("sync", number, len(self.events)))
            self.note_synced_folder(name)

    def note_synced_folder(self, path: str) -> None:
        """Note that it is durable what the folder of a path has."""
        with self._lock:
            self.note(Event("sync_folder", at=len(self.events), path=os.path.dirname(path)))

    def acknowledge(self, seq: int = 0, record_id: str = "") -> None:
        """Note that a commit, or that of a record, was told to be durable."""
        self.note(Event("acknowledge", at=seq, path=record_id))

    def refused(self, kind: str, path: str) -> int | None:
        """The errno with which an operation is to fail."""
        return None if self.before is None else self.before(kind, path)


class _System(apsw.VFS):
    """The system's file system, through which all that is done in the recorder's folder is told to it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.label = f"recollect-recording-{next(_numbers)}"
        super().__init__(self.label, _BASE, makedefault=True)
        checksums.put_on_default()

    def excepthook(self, *raised: Any) -> bool:
        """SQLite was told, and has nobody to tell in its turn."""
        return True

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        inside = None if path is None else self._recorder.within(path)
        if inside is None:
            return apsw.VFSFile(_BASE, name, flags)
        code = self._recorder.refused("open", inside)
        if code is not None:
            raise _error(apsw.SQLITE_CANTOPEN, "open", code)
        return _File(self._recorder, inside, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        inside = self._recorder.within(filename)
        if inside is not None:
            _refuse(self._recorder, "remove", inside)
        super().xDelete(filename, syncdir)
        if inside is not None:
            self._recorder.name((inside, None))
            if syncdir:
                self._recorder.note_synced_folder(inside)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        inside = self._recorder.within(pathname)
        if inside is not None:
            _refuse(self._recorder, "access", inside)
        return super().xAccess(pathname, flags)


class _File(apsw.VFSFile):
    def __init__(self, recorder: Recorder, path: str, name: Any, flags: list[int]) -> None:
        super().__init__(_BASE, name, flags)
        self._recorder = recorder
        self._path = path
        self._number = recorder.number(path)
        self._syncs_folder = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _NEW_IN_FOLDER)

    def excepthook(self, *raised: Any) -> bool:
        return True

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        _refuse(self._recorder, "read", self._path)
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        code = self._recorder.refused("write", self._path)
        if code is not None:  # some of it was done
            self._write(bytes(data)[: len(data) // 2], offset)
            full = code == errno.ENOSPC
            raise _error(apsw.SQLITE_FULL if full else apsw.SQLITE_IOERR_WRITE, "write", code)
        self._write(bytes(data), offset)

    def _write(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._recorder.note(Event("write", self._number, offset, data))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        _refuse(self._recorder, "truncate", self._path)
        super().xTruncate(newsize)
        self._recorder.note(Event("truncate", self._number, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        _refuse(self._recorder, "sync", self._path)
        begun = len(self._recorder.events)  # what another thread writes meanwhile need not be durable after it
        super().xSync(flags)
        self._recorder.note(Event("sync", self._number, begun))
        if self._syncs_folder:
            self._syncs_folder = False
            self._recorder.note_synced_folder(self._path)

    def xFileSize(self) -> int:  # noqa: N802
        _refuse(self._recorder, "size", self._path)
        return super().xFileSize()


def _refuse(recorder: Recorder, kind: str, path: str) -> None:
    code = recorder.refused(kind, path)
    if code is not None:
        raise _error(_REFUSED[kind], kind, code)


def _error(result: int, kind: str, code: int) -> apsw.Error:
    kinds = {apsw.SQLITE_FULL: apsw.FullError, apsw.SQLITE_CANTOPEN: apsw.CantOpenError}
    error = kinds.get(result, apsw.IOError)(f"{_INJECTED}{kind}: {os.strerror(code)}")
    told: Any = error
    told.result, told.extendedresult = result & 0xFF, result
    return error


def _is_injected(error: BaseException) -> bool:
    return isinstance(error, apsw.Error) and str(error).startswith(_INJECTED)


@contextmanager
def recorded(folder: Path, before: Before | None = None) -> Iterator[Recorder]:
    """Record what is done to files in a folder, which should be empty at first. Stores must be closed within."""
    recorder = Recorder(folder, before)
    kept = {name: getattr(files, name) for name in _FUNCTIONS}
    system = _System(recorder)
    hook = sys.excepthook
    # SQLite makes do without some of what fails: then nobody is there to be told, and apsw asks this hook to print it.
    sys.excepthook = lambda kind, value, trace: None if _is_injected(value) else hook(kind, value, trace)
    try:
        for name, function in _replacements(recorder, kept).items():
            setattr(files, name, function)
        yield recorder
    finally:
        for name, function in kept.items():
            setattr(files, name, function)
        sys.excepthook = hook
        apsw.set_default_vfs(_BASE)
        checksums.put_on_default()
        system.unregister()


def _replacements(recorder: Recorder, real: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """The functions of `recollect.stores.files`, telling the recorder."""

    def inside(kind: str, path: str) -> str | None:
        found = recorder.within(path)
        code = None if found is None else recorder.refused(kind, found)
        if code is not None:
            raise OSError(code, os.strerror(code), path)
        return found

    def create(path: str, *, exclusive: bool = False) -> None:
        name = inside("create", path)
        real["create"](path, exclusive=exclusive)
        if name is not None:
            recorder.number(name)

    def write(path: str, parts: Iterable[bytes | memoryview], *, lasting: bool = False) -> None:
        name = inside("create", path)
        at = 0

        def told() -> Iterator[bytes]:
            nonlocal at
            for part in parts:
                inside("write", path)
                data = bytes(part)
                if name is not None:
                    recorder.note(Event("write", recorder.number(name), at, data))
                at += len(data)
                yield data

        real["write"](path, told(), lasting=lasting)
        if lasting and name is not None:
            recorder.note(Event("sync", recorder.number(name), len(recorder.events)))

    def read(path: str, most: int = -1) -> NDArray[np.uint8]:
        inside("read", path)
        data: NDArray[np.uint8] = real["read"](path, most)
        return data

    def replace(path: str, by: str) -> None:
        name, former = inside("replace", path), recorder.within(by)
        real["replace"](path, by)
        if name is not None and former is not None:
            recorder.name((name, recorder.number(former)), (former, None))

    def link(path: str, source: str) -> None:
        name, former = inside("replace", path), recorder.within(source)
        real["link"](path, source)
        if name is not None and former is not None:
            recorder.name((name, recorder.number(former)))

    def sync_folder(path: str) -> None:
        real["sync_folder"](path)
        name = recorder.within(os.path.join(path, "any"))
        if name is not None:
            recorder.note_synced_folder(name)

    def remove(path: str) -> None:
        name = inside("remove", path)
        real["remove"](path)
        if name is not None:
            recorder.name((name, None))

    def make_folder(path: str, *, lasting: bool = False) -> None:
        name = inside("make_folder", path)
        new = not os.path.isdir(path)
        real["make_folder"](path, lasting=lasting)
        if name is not None and new:
            recorder.name((name, FOLDER))
            if lasting:
                recorder.note_synced_folder(name)

    return {
        "create": create,
        "write": write,
        "read": read,
        "replace": replace,
        "link": link,
        "sync_folder": sync_folder,
        "remove": remove,
        "make_folder": make_folder,
    }
