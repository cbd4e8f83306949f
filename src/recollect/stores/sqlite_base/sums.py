"""The two sums with which SQLite verifies pages and the frames of a WAL.

Source:
    https://www.sqlite.org/fileformat2.html, section 4.2.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

_WORD = 0xFFFFFFFF


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
