"""The encoding of lists of page numbers in the table `commits`: ascending, each as the difference to the one before.

Every difference is above 0, so that an overflow page that was replaced by zeros is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable

from recollect.records.codec import read_varint, varint


def encode_pages(pages: Iterable[int]) -> bytes:
    """Encode page numbers, in any order.

    >>> encode_pages([300, 2]).hex()
    '02aa02'
    """
    out = bytearray()
    last = 0
    for page in sorted(pages):
        out += varint(page - last)
        last = page
    return bytes(out)


def decode_pages(data: bytes) -> list[int]:
    """Decode the bytes of `encode_pages`.

    >>> decode_pages(bytes.fromhex("02aa02"))
    [2, 300]

    Raises:
        ValueError: They are not such bytes.
    """
    out: list[int] = []
    at = last = 0
    while at < len(data):
        difference, at = read_varint(data, at)
        if not difference:
            raise ValueError("a list of pages contains a zero")
        last += difference
        out.append(last)
    return out
