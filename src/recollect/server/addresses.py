"""Addresses that servers listen on: their parts, and whether only this machine reaches them."""

from __future__ import annotations

import ipaddress
import re

from recollect.errors import InvalidArgumentError

#: Names by which this machine reaches itself.
_OWN_NAMES = frozenset(("localhost", "127.0.0.1", "[::1]"))
_HOST = re.compile(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]", re.ASCII)
#: An origin as browsers send it.
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([\w.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.ASCII)


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

    Raises:
        InvalidArgumentError: One that is named is no name of a host.
    """
    for each in named:
        if not _HOST.fullmatch(each):
            raise InvalidArgumentError("allow_host", each, "must be the name of a host, without a port")
    names = frozenset(each.lower() for each in named)
    if is_loopback(host):
        shown = f"[{host}]" if ":" in host else host
        return names | _OWN_NAMES | {shown.lower()}
    return names or None


def allowed_origins(named: tuple[str, ...]) -> frozenset[str]:
    """Return the origins of web pages that may send requests.

    Raises:
        InvalidArgumentError: One is no origin.
    """
    for each in named:
        if not _ORIGIN.fullmatch(each):
            rule = "must be an origin as browsers send it: scheme and host, such as https://app.example"
            raise InvalidArgumentError("allow_origin", each, rule)
    return frozenset(named)
