"""Addresses of a server over HTTP: those that it listens on, and the web pages that may send requests.

A browser says with each request where it comes from: `Origin` if a script reads the answer or the request writes, and
`Sec-Fetch-Site` always, also for what a page loads as a script, an image or a frame. Pages of other origins cannot read
what they load so, but learn by it whether there is an answer, and each request takes room. So they are refused unless
their origin is named; a link to a page of ours is followed. Programs other than browsers send neither header.

Source: W3C, Fetch Metadata Request Headers (the resource isolation policy).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError

#: Names by which this machine reaches itself.
_OWN_NAMES = frozenset(("localhost", "127.0.0.1", "[::1]"))
_HOST = regex(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]", re.ASCII)
#: An origin as browsers send it.
_ORIGIN = regex(r"[a-z][a-z0-9+.-]*://([\w.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.ASCII)


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of "HOST:PORT"; the host of IPv6 may be in brackets.

    Raises:
        InvalidArgumentError: It does not have this form.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise InvalidArgumentError("http", text, "must be HOST:PORT with a port up to 65535, such as 127.0.0.1:8321")
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


#: What every answer says to browsers: its type is the one that it states, and no page of another origin embeds it.
SAFE_HEADERS = (
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
)
#: Where a request comes from if no page of another origin made it: the user, or a page of ours.
_OWN_SITES = frozenset(("none", "same-origin"))
#: The origin that a browser states for a form of a page whose policy is to send no referrer.
_HIDDEN = "null"
#: The paths of our pages, to which other pages may link.
PAGES = frozenset(("/",))


def foreign_page(
    method: str,
    path: str,
    headers: Iterable[tuple[bytes, bytes]],
    own: str,
    origins: Collection[str],
    linked: str = "",
) -> str | None:
    """Return the page of another origin that made a request, for a message; None if it is allowed.

    Args:
        method: The method of the request.
        headers: Its headers, with names in lower case.
        own: The origin of the server, as the request names it.
        origins: The origins whose pages may send requests.
        linked: The beginning of the paths of further pages of ours.
    """
    found: dict[bytes, list[str]] = {}
    for name, value in headers:
        if name == b"origin" or name.startswith(b"sec-fetch-"):
            found.setdefault(name, []).append(value.decode("latin-1"))
    sites, stated = found.get(b"sec-fetch-site", []), found.get(b"origin", [])
    is_ours = linked != "" and path.startswith(linked)
    if is_ours and stated == [_HIDDEN] and sites == ["same-origin"]:
        stated = [own]
    for origin in stated:
        if origin not in origins and origin != own:
            return f"{origin!r:.80}"
    if _OWN_SITES.issuperset(sites) or any(origin in origins for origin in stated):
        return None
    follows_link = found.get(b"sec-fetch-mode") == ["navigate"] and found.get(b"sec-fetch-dest") == ["document"]
    if follows_link and method in ("GET", "HEAD") and (path in PAGES or is_ours) and not stated:
        return None
    return f"another site (Sec-Fetch-Site: {', '.join(sites)!r:.80})"
