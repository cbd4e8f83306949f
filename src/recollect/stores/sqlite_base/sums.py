"""The two sums with which SQLite verifies pages and the frames of a WAL.

Source:
    https://www.sqlite.org/fileformat2.html, section 4.2.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.kernels.choose import native, uses_native

_WORD = 0xFFFFFFFF
_SUMS = struct.Struct(">II")


def summed(data: bytes, one: int, two: int, order: Literal["little", "big"] = "little") -> tuple[int, int]:
    """Return the two sums with which SQLite verifies pages and WAL frames, updated with more data.

    For the 32-bit words `a`, `b` of each eight bytes: one += a + two; two += b + one. This is linear in the words, so
    it is computed as a dot product modulo 2**32.
    """
    words = np.frombuffer(data, dtype="<u4" if order == "little" else ">u4").astype(np.uint32)
    factors_one, factors_two, start = factors(len(words))
    return (
        (int(words @ factors_one) + one * start[0] + two * start[1]) & _WORD,
        (int(words @ factors_two) + one * start[1] + two * start[2]) & _WORD,
    )


def of_frame(head: bytes, page: bytes, before: bytes, *, highest_first: bool) -> bytes:
    """Return the sums of a frame of a WAL as they are in its header.

    Args:
        head: At least the first 8 bytes of its header.
        page: Its page.
        before: The sums of the frame before, or those in the header of the WAL.
        highest_first: Whether the sums are those of words with the highest byte first, as the magic of the WAL says.
    """
    compiled = _compiled()
    if compiled is not None:
        out: bytes = compiled(head, page, before, highest_first)
        return out
    return of_frame_with_numpy(head, page, before, highest_first)


@cache
def _compiled() -> Callable[[bytes, bytes, bytes, bool], bytes] | None:
    """Return the compiled form of `of_frame`, if the package was compiled."""
    return native("wal_sums").of_frame if uses_native() else None


def of_frame_with_numpy(head: bytes, page: bytes, before: bytes, highest_first: bool) -> bytes:
    """Return the same as `of_frame`."""
    order: Literal["little", "big"] = "big" if highest_first else "little"
    one, two = _SUMS.unpack(before)
    return big(summed(head[:8] + page, one, two, order))


def big(sums: tuple[int, int]) -> bytes:
    """Return sums as they are in a WAL: of either order of bytes, they are stored with the highest byte first."""
    return sums[0].to_bytes(4, "big") + sums[1].to_bytes(4, "big")


@cache
def factors(count: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32], tuple[int, int, int]]:
    """Return each word's factor in both sums, and the factors of the initial sums: powers of ((1, 1), (1, 2))."""
    factors_one, factors_two = np.zeros(count, dtype=np.uint32), np.zeros(count, dtype=np.uint32)
    p, q, r = 1, 0, 1  # the symmetric matrix ((p, q), (q, r)), initially the identity
    for at in range(count - 2, -1, -2):
        factors_one[at], factors_two[at] = (p + q) & _WORD, (q + r) & _WORD
        factors_one[at + 1], factors_two[at + 1] = q, r
        p, q, r = (p + q) & _WORD, (p + 2 * q) & _WORD, (q + 2 * r) & _WORD
    return factors_one, factors_two, (p, q, r)
