"""FNV-1a, a hash of bytes that is the same on every machine and short enough to reimplement in any language."""

from __future__ import annotations

OFFSET, PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


def fnv1a(data: bytes) -> int:
    """Return the 64-bit FNV-1a hash of `data`.

    >>> hex(fnv1a(b"")), hex(fnv1a(b"a")), hex(fnv1a(b"foobar"))
    ('0xcbf29ce484222325', '0xaf63dc4c8601ec8c', '0x85944171f73967e8')

    Source:
        Fowler, Noll and Vo; RFC 9923.
    """
    out = OFFSET
    for byte in data:
        out = (out ^ byte) * PRIME & _MASK
    return out
