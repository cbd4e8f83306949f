"""Socket activation and notifications of systemd: sockets that it has opened, and the state that it is sent."""

from __future__ import annotations

import os
import socket

from recollect.errors import InvalidArgumentError

#: The first descriptor that it passes.
_FIRST = 3


def activated() -> list[socket.socket]:
    """Return the listening sockets that systemd has opened for this process (sd_listen_fds), and clear the variables.

    Raises:
        InvalidArgumentError: What it passed is not a listening stream socket.
    """
    process, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if process != str(os.getpid()) or not count.isascii() or not count.isdigit():
        return []
    out: list[socket.socket] = []
    for descriptor in range(_FIRST, _FIRST + int(count)):
        os.set_inheritable(descriptor, False)
        try:
            each = socket.socket(fileno=descriptor)
            listens = each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        except OSError as error:
            raise InvalidArgumentError("LISTEN_FDS", count, f"names a descriptor that is no socket: {error}") from None
        if each.type != socket.SOCK_STREAM or not listens:
            raise InvalidArgumentError("LISTEN_FDS", count, "names a socket that is not a listening stream socket")
        each.setblocking(False)
        out.append(each)
    return out


def notify(state: str) -> bool:
    """Tell systemd the state of the service (sd_notify), such as "READY=1". Return whether it wants to know."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)) as channel:
        try:
            channel.sendto(state.encode(), "\0" + path[1:] if path[0] == "@" else path)
        except OSError:
            return False
    return True
