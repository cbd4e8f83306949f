"""Checks of what some systems lack: what needs it fails with an error that says what to use instead."""

from __future__ import annotations

import os
import socket

from recollect.errors import UnsupportedError


def check_unix_sockets(what: str, instead: str) -> None:
    """Raise UnsupportedError if this system has no Unix sockets that Python can use, as Windows.

    Args:
        what: What needs them, for the message.
        instead: What to do without them.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise UnsupportedError(what, f"this system has no Unix sockets: {instead}")


def check_server(what: str) -> None:
    """Raise UnsupportedError if a server cannot run on this system: it needs Unix sockets and signals of POSIX."""
    instead = "run it on Linux, in WSL or in a container; `recollect mcp` and recollect.open() work here"
    check_unix_sockets(what, instead)
    if os.name == "nt":
        raise UnsupportedError(what, f"this system has no signals that end it in order: {instead}")
