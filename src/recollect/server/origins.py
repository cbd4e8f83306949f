"""Requests that web pages of other origins make: how they are recognised, and what keeps answers from such pages.

A browser says with each request where it comes from: `Origin` if a script reads the answer or the request writes, and
`Sec-Fetch-Site` always, also for what a page loads as a script, an image or a frame. Pages of other origins cannot read
what they load so, but learn by it whether there is an answer, and each request takes room. So they are refused unless
their origin is named; a link to a page of ours is followed. Programs other than browsers send neither header.

Source: W3C, Fetch Metadata Request Headers (the resource isolation policy).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

#: What every answer says to browsers: its type is the one that it states, and no page of another origin embeds it.
SAFE_HEADERS = (
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
)
#: Where a request comes from if no page of another origin made it: the user, or a page of ours.
_OWN_SITES = frozenset(("none", "same-origin"))
#: The paths of our pages, to which other pages may link.
PAGES = frozenset(("/",))


def foreign_page(
    method: str, path: str, headers: Iterable[tuple[bytes, bytes]], own: str, origins: Collection[str]
) -> str | None:
    """Return the page of another origin that made a request, for a message; None if it is allowed.

    Args:
        method: The method of the request.
        path: Its path.
        headers: Its headers, with names in lower case.
        own: The origin of the server, as the request names it.
        origins: The origins whose pages may send requests.
    """
    found: dict[bytes, list[str]] = {}
    for name, value in headers:
        if name == b"origin" or name.startswith(b"sec-fetch-"):
            found.setdefault(name, []).append(value.decode("latin-1"))
    stated = found.get(b"origin", [])
    for origin in stated:
        if origin not in origins and origin != own:
            return f"{origin!r:.80}"
    sites = found.get(b"sec-fetch-site", [])
    if _OWN_SITES.issuperset(sites) or any(origin in origins for origin in stated):
        return None
    follows_link = found.get(b"sec-fetch-mode") == ["navigate"] and found.get(b"sec-fetch-dest") == ["document"]
    if follows_link and method in ("GET", "HEAD") and path in PAGES and not stated:
        return None
    return f"another site (Sec-Fetch-Site: {', '.join(sites)!r:.80})"
