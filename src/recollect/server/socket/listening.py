"""The socket of the daemon in the file system: made for its owner only, and safe to start again after a crash.

A socket file whose server is gone is replaced; one with a server, and any other file, is not. A lock beside it decides
between two that start at the same time.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import struct
from pathlib import Path
from typing import Any

from recollect.errors import InvalidArgumentError

#: Length of the queue of connections that are not accepted yet.
BACKLOG = 1024
#: The longest path that every system can bind a socket to, in bytes.
_MAX_PATH_BYTES = 103


class SocketFile:
    """A listening socket with a file.

    Raises:
        InvalidArgumentError: There is another file or another server at the path, or it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if len(os.fsencode(path)) > _MAX_PATH_BYTES:
            raise _unusable(path, f"is longer than {_MAX_PATH_BYTES} bytes, the limit of the system")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                self.socket, self._identity = self._bound()
            except BaseException:
                os.close(self._lock)
                raise
        except OSError as error:
            raise _unusable(path, f"cannot be used: {error.strerror or error}") from None

    def _bound(self) -> tuple[socket.socket, tuple[int, int]]:
        from filelock import lock_descriptor

        if not lock_descriptor(self._lock, blocking=False):
            raise _unusable(self.path, "has a server already: stop it, or choose another path")
        self._remove_stale()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            before = os.umask(0o177)
            try:
                listening.bind(os.fspath(self.path))
            finally:
                os.umask(before)
            listening.listen(BACKLOG)
            listening.setblocking(False)
            found = os.lstat(self.path)
        except BaseException:
            listening.close()
            raise
        return listening, (found.st_dev, found.st_ino)

    def _remove_stale(self) -> None:
        """Remove a socket file that no server listens on."""
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(found.st_mode):
            raise _unusable(self.path, "is a file that is no socket: it was not replaced")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            try:
                probe.connect(os.fspath(self.path))
            except ConnectionRefusedError:
                os.unlink(self.path)
                return
            except FileNotFoundError:
                return
        raise _unusable(self.path, "has a server already: stop it, or choose another path")

    def drop(self) -> None:
        """Close it in a fork, and leave the file and the lock to the process that made them."""
        self.socket.close()
        os.close(self._lock)

    def close(self) -> None:
        """Close it, remove the file, unless it is another one by now, and release the path. Does nothing again."""
        self.socket.close()
        if self._lock < 0:
            return
        try:
            found = os.lstat(self.path)
            if (found.st_dev, found.st_ino) == self._identity:
                os.unlink(self.path)
        except OSError:
            pass
        finally:
            os.close(self._lock)
            self._lock = -1


def refused_peer(transport: Any) -> str:
    """Return why a client of a Unix socket is refused; "" if it is this user, or root."""
    connected = transport.get_extra_info("socket")
    if connected is None or not hasattr(socket, "SO_PEERCRED"):
        return ""
    _, user, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return "" if user in (os.geteuid(), 0) else f"the user {user}"


def has_hung_up(transport: Any) -> bool:
    """Return whether a client of a Unix socket is gone, and not just done with sending."""
    connected = transport.get_extra_info("socket")
    if connected is None or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(connected.fileno(), 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def _unusable(path: Path, rule: str) -> InvalidArgumentError:
    return InvalidArgumentError("socket", str(path), rule)
