"""Addresses that servers listen on: their parts, and whether only this machine reaches them."""

from __future__ import annotations

import ipaddress

from recollect.errors import InvalidArgumentError

#: Names by which this machine reaches itself.
_OWN_NAMES = frozenset(("localhost", "127.0.0.1", "[::1]"))


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of "HOST:PORT"; the host of IPv6 may be in brackets.

    Raises:
        InvalidArgumentError: It does not have this form.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise InvalidArgumentError("http", text, "must be HOST:PORT, such as 127.0.0.1:8321")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def allowed_hosts(host: str, named: tuple[str, ...]) -> frozenset[str] | None:
    """Return the names that the header Host may have, in lower case; None for any.

    On the loopback interface these are the names of this machine, and those that are named. Elsewhere those that are
    named, or any: clients then need a token, which a web page does not have.
    """
    names = frozenset(each.lower() for each in named)
    if is_loopback(host):
        shown = f"[{host}]" if ":" in host else host
        return names | _OWN_NAMES | {shown.lower()}
    return names or None
