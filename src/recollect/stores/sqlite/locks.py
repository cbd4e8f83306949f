"""Locks on a store's file that another library of this process cannot drop, and turns between processes that write.

SQLite uses POSIX locks. The system drops all that a process has on a file as soon as the process closes any descriptor
of it, such as that of Python's `sqlite3`, of `open()` or of `shutil.copy`; and the POSIX locks of one process never
conflict with each other. SQLite of another library, or of another process, then takes itself for the last user of the
store: it deletes the WAL that is in use. So an open store also has locks of open file descriptions, which conflict with
POSIX locks of every process, this one included, and last as long as the description:

- a shared lock on the bytes that SQLite locks in a file that is in use: no other connection gets the exclusive lock
  that the last user takes before it deletes the WAL;
- a shared lock on the byte of the index of the WAL (`-shm`) that says that it is in use: no process truncates it;
- the locks that SQLite itself sets in the index of the WAL, for its snapshots, checkpoints and writes: the calls that
  set them are replaced (`indexes.kernels.native`), where the package was compiled;
- while it writes, an exclusive lock on a byte that only Recollect uses. Writers wait for it in a gate, one at a time,
  and a process that has released it must pass the gate again: so one that writes all the time starves no other.

Where the package was not compiled, a POSIX lock on a byte of its own in the index of the WAL tells whether the others
there were dropped: what was read meanwhile may be of two moments, if other processes use the file.

Systems without such locks (Windows, macOS) have none of this: there, `identity` notices a deleted WAL.

Source:
    https://www.sqlite.org/howtocorrupt.html, section 2.2; "Open file description locks" in fcntl(2); the offsets are
    those of os_unix.c in SQLite, which its file format fixes.
"""

from __future__ import annotations

import logging
import os
import secrets
import struct
import sys
import threading
import time
import weakref
from functools import cache
from typing import Any

import apsw

from recollect.errors import ForkedError
from recollect.indexes.kernels.choose import missing, native

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger("recollect")
#: The bytes of a file, and that of the index of its WAL, that are locked while it is in use: first, and number.
_IN_USE, _INDEX_IN_USE = (0x40000002, 510), (128, 1)
#: Bytes after all that a file can have: the gate before the lock for writing, that lock, and one for each process, by a
#: number that it has drawn (containers can have equal process ids).
_GATE, _WRITING, _FIRST, _MOST = (2**42, 1), (2**42 + 1, 1), 2**42 + 2, 2**31
#: What a writer locks one after the other; the last is what it keeps.
_TURN = (_GATE, _WRITING)
_ALL = (0, 0)
#: `struct flock` of 64-bit Linux: type, whence, start, length, process.
_FLOCK = struct.Struct("hhqqixxxx")
#: How long a process waits before it tries again to get a lock, in seconds: at first, and at most.
_SHORT_S, _LONG_S = 0.0002, 0.002
#: The beginning of what is returned where there is no lock.
_UNLOCKED = b"" if fcntl is None else struct.pack("h", fcntl.F_UNLCK)
SUPPORTED = hasattr(fcntl, "F_OFD_SETLK") and sys.maxsize > 2**32


class _File:
    """The descriptors that this process has open for one store's file and for the index of its WAL.

    To close one of its descriptors drops all POSIX locks of this process on it, those of a store that is just being
    opened, too. So none is closed as long as a store uses the file, from before SQLite opens it until SQLite has closed
    it.
    """

    def __init__(self) -> None:
        self.users = 0
        self.every: list[int] = []
        self.free: dict[tuple[str, bool], list[int]] = {}  # by the end of the path, and whether they can write
        self.drops = 0  # how many times locks were dropped while others used the file

    def close(self) -> None:
        for descriptor in self.every:
            try:
                os.close(descriptor)
            except OSError as error:
                _log.debug("a descriptor could not be closed: %s", error)


#: Reentrant: the garbage collector may give back a store that was not closed, in a thread that has it.
_lock = threading.RLock()
_open: dict[tuple[int, int], _File] = {}
_own = secrets.randbelow(_MOST)
#: The files that the process was forked with, and the process that had them open.
_inherited: dict[tuple[int, int], int] = {}
#: The paths of stores whose index of the WAL has locks that last, and what they were without symbolic links.
_registered: dict[str, str] = {}


@cache
def _calls() -> Any:
    """Replace the calls with which SQLite locks the index of a WAL. Return the module; None where that cannot be."""
    if not SUPPORTED or missing():
        return None
    calls = native("system_calls")
    vfs = apsw.VFS("recollect-calls", "unix")
    try:
        pointers = [pointer for name in calls.NAMES if (pointer := vfs.xGetSystemCall(name)) is not None]
        replacing = calls.replacing(pointers) if len(pointers) == len(calls.NAMES) else None
        for name, pointer in zip(calls.NAMES, replacing or (), strict=False):
            vfs.xSetSystemCall(name, pointer)
    finally:
        vfs.unregister()
    return None if replacing is None else calls


def _close_unused() -> None:
    """Close the descriptors of files that no store uses. The caller has the lock."""
    for key in [key for key, file in _open.items() if not file.users]:
        _open.pop(key).close()


def _forget_all() -> None:
    """Close the descriptors in a fork, which would otherwise keep the locks of its parent beyond the parent's end."""
    global _lock, _own
    _lock, _own = threading.RLock(), secrets.randbelow(_MOST)
    _inherited.update(dict.fromkeys((key for key, file in _open.items() if file.users), os.getppid()))
    for locks in _stores:
        locks.forget()
    for file in _open.values():
        file.close()
    _open.clear()


class _Locked:
    """A descriptor with locks of an open file description of its own.

    Args:
        file: The file of the store.
        end: What follows it in the path that is opened.
        writing: Whether to open it for writing.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, file: _File, path: str, end: str, *, writing: bool) -> None:
        self.file = file
        self._kind = end, writing
        with _lock:
            free = file.free.get(self._kind, [])
            while free:
                self.descriptor = free.pop()
                if os.path.samestat(os.fstat(self.descriptor), os.stat(path + end)):  # and not one deleted since
                    return
            self.descriptor = os.open(path + end, (os.O_RDWR if writing else os.O_RDONLY) | os.O_CLOEXEC)
            file.every.append(self.descriptor)

    def set(self, kind: int, part: tuple[int, int]) -> bool:
        """Set a lock (F_RDLCK, F_WRLCK). Return False if another one prevents that."""
        try:
            fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, 0, *part, 0))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unset(self, part: tuple[int, int]) -> None:
        """Remove locks. If the system refuses that, it has none."""
        try:
            fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, 0, *part, 0))
        except OSError as error:
            _log.debug("a file cannot be unlocked: %s", error)

    def owner_of(self, part: tuple[int, int]) -> int:
        """Return the process that has a lock there, -1 for another description, of any process; 0 if none has."""
        found = fcntl.fcntl(self.descriptor, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, *part, 0))
        kind, _, _, _, process = _FLOCK.unpack(found)
        return 0 if kind == fcntl.F_UNLCK else int(process)

    def is_locked(self, part: tuple[int, int]) -> bool:
        """Return whether there is a lock, apart from those of this description."""
        return self.owner_of(part) != 0

    def mark(self, part: tuple[int, int]) -> None:
        """Set a shared POSIX lock, which is dropped with all others of this process."""
        fcntl.fcntl(self.descriptor, fcntl.F_SETLK, _FLOCK.pack(fcntl.F_RDLCK, 0, *part, 0))

    def give_back(self) -> None:
        """Remove all locks, and let another store use the descriptor."""
        self.unset(_ALL)
        with _lock:
            self.file.free.setdefault(self._kind, []).append(self.descriptor)


if fcntl is not None:
    os.register_at_fork(after_in_child=_forget_all)


class _Use:
    """The use of a file by one store, which ends once."""

    def __init__(self, file: _File) -> None:
        self.file = file
        self.locked: list[_Locked] = []

    def end(self) -> None:
        for each in self.locked:
            each.give_back()
        with _lock:
            self.file.users -= 1


class FileLocks:
    """The locks of one open store, or none where the system or the file has no such locks.

    Args:
        path: The file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._use: _Use | None = None
        self._files: tuple[_Locked, ...] = ()
        self._last = False  # whether the locks of SQLite cannot be dropped

    def enter(self) -> None:
        """Note that SQLite is going to open the file. `close` must follow, when SQLite has closed it.

        Raises:
            ForkedError: This process is a fork of one that had the file open, and SQLite cannot be made to forget what
                it noted of the locks there. It would write beside others, and commits would be lost.
        """
        if fcntl is None:
            return
        calls = _calls()
        with _lock:
            if self._path not in _registered and calls is not None:
                real = os.path.realpath(self._path)
                calls.register(os.fsencode(f"{real}-shm"))
                _registered[self._path] = real
        try:
            facts = os.stat(self._path)
        except OSError as error:  # SQLite says what that means
            _log.debug("%s cannot be read: %s", self._path, error)
            return
        key = facts.st_dev, facts.st_ino
        if calls is None and key in _inherited:
            raise ForkedError(self._path, _inherited[key], again=True)
        with _lock:
            _close_unused()
            file = _open[key] = _open.get(key) or _File()
            file.users += 1
        self._use = _Use(file)
        self._end = weakref.finalize(self, self._use.end)  # of a store that is not closed
        self._end.atexit = False
        _stores.add(self)

    def begin(self, real: str, *, writing: bool) -> None:
        """Set the locks. The store must be open in SQLite, with its WAL.

        Args:
            real: The path of the file itself, where that of the store is a symbolic link.
            writing: Whether the store writes.
        """
        if self._use is None or not SUPPORTED:
            return
        shared, locked = False, self._use.locked
        calls = _calls()
        self._last = calls is not None and calls.has_lasting_locks(os.fsencode(f"{real}-shm"))
        if _registered.get(self._path) != real:  # it is a symbolic link that names another file now
            _registered.pop(self._path, None)
        try:
            for end in ("", "-shm"):
                locked.append(_Locked(self._use.file, real, end, writing=writing))
            shared = locked[0].set(fcntl.F_RDLCK, _IN_USE) and locked[1].set(fcntl.F_RDLCK, _INDEX_IN_USE)
            self._mark = _FLOCK.pack(fcntl.F_WRLCK, 0, _FIRST + _own, 1, 0)
            locked[1].mark((_FIRST + _own, 1))
        except OSError as error:  # the file system has no locks, or what is read only has no index of a WAL
            shared = False
            _log.debug("%s has no locks besides those of SQLite: %s", self._path, error)
        if shared:
            self._files = tuple(locked)
        else:
            for each in locked:  # their descriptors stay: to close one would drop the locks of SQLite
                each.unset(_ALL)

    def take_turn(self, timeout_s: float) -> bool:
        """Wait for the lock for writing. Return False if the time is over."""
        if not self._files:
            return True
        file, until, pause = self._files[0], time.monotonic() + timeout_s, _SHORT_S
        try:
            for part in _TURN:
                while not file.set(fcntl.F_WRLCK, part):
                    if time.monotonic() >= until:
                        return False
                    time.sleep(pause)
                    pause = min(2 * pause, _LONG_S)
            return True
        except OSError as error:  # the file system has no locks any more: SQLite says what that means
            _log.debug("%s cannot be locked: %s", self._path, error)
            return True
        finally:
            file.unset(_GATE)

    def end_turn(self) -> None:
        """Release the lock for writing, if this store has it."""
        if self._files:
            self._files[0].unset(_WRITING)

    def drops(self) -> int:
        """Return how many times POSIX locks of this process were dropped while others used the file.

        If that changes while something is read, SQLite's lock on it was dropped, and others may have overwritten it.
        """
        if not self._files or self._last:
            return 0
        index = self._files[1]
        try:
            found = fcntl.fcntl(index.descriptor, fcntl.F_OFD_GETLK, self._mark)
            if found[:2] == _UNLOCKED:
                self._note_drop(index)
        except OSError as error:
            _log.debug("it is not known whether %s is locked: %s", self._path, error)
        return index.file.drops

    def _note_drop(self, index: _Locked) -> None:
        below, above = (_FIRST, _own), (_FIRST + _own + 1, _MOST - _own)
        others = any(part[1] and index.is_locked(part) for part in (below, above))  # marks of other processes
        others = others or self._files[0].owner_of(_IN_USE) not in (-1, 0, os.getpid())  # SQLite's own in one of them
        index.file.drops += others
        index.mark((_FIRST + _own, 1))
        _log.info(
            "another library of this process has closed %s, which dropped SQLite's locks; %s",
            self._path,
            "what was being read must be read again" if others else "nothing was lost: no other process uses the file",
        )

    def forget(self) -> None:
        """Forget the locks, in a fork, which has none of them."""
        self._files, self._use = (), None
        self._end.detach()

    def release(self) -> None:
        """Remove the locks, so that the last connection to close can delete the WAL.

        Another library may have dropped SQLite's own lock on the file. It is set again first: otherwise another process
        could delete the WAL before all connections are closed.
        """
        if self._files:
            try:
                self._files[0].mark(_IN_USE)
            except OSError as error:
                _log.debug("%s cannot be locked: %s", self._path, error)
        for each in self._files:
            each.unset(_ALL)

    def close(self) -> None:
        """End the use of the file. All connections must be closed."""
        if self._use is not None:
            self._files, self._use = (), None
            self._end()
            with _lock:
                _close_unused()


_stores: weakref.WeakSet[FileLocks] = weakref.WeakSet()
