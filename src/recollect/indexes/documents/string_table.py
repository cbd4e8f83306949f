"""Tables of strings in a few arrays, without an object for each string. They map numbers to strings and back.

Arrays that were read from a file can be used at once, without building a dict first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Flags, Ints, Numbers, renumbered

Keys = NDArray[np.uint64]
#: Number of pieces that are copied at a time, so that the selection of their bytes remains in the processor's cache.
_CHUNK = 4096


def key_of(text: str) -> int:
    """Return a 64-bit hash of a string, the same on every machine. Collisions are possible, but rare."""
    return int.from_bytes(_digest(text.encode("utf-8", "surrogatepass")), "big")


def _digest(encoded: bytes) -> bytes:
    return hashlib.blake2b(encoded, digest_size=8).digest()


class Pieces:
    """Byte strings by number, in two arrays.

    Attributes:
        blob: All strings, one after the other.
        ends: The end of each string in `blob`.
    """

    def __init__(self, blob: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self.blob, self.ends = blob, ends

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> Pieces:
        ends = np.cumsum(np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces)))
        return cls(np.frombuffer(b"".join(pieces), dtype=np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> bytes:
        ends = self.ends
        return self.blob[ends.item(number - 1) if number else 0 : ends.item(number)].tobytes()

    def several(self, numbers: Sequence[int]) -> list[memoryview]:
        """Return the pieces with some numbers, without copying them: much faster than one after the other."""
        at, view = np.array(numbers, dtype=np.int64), self._view
        ends, begins = self.ends[at], self.ends[at - 1]
        begins[at == 0] = 0
        return [view[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]

    @cached_property
    def _view(self) -> memoryview:
        return memoryview(self.blob)  # type: ignore[arg-type]

    @property
    def sizes(self) -> Ints:
        """The length of each piece."""
        return np.diff(self.ends, prepend=0)

    def taken(self, kept: Ints, more: Pieces) -> Pieces:
        """Return the pieces with some ascending numbers, followed by all of `more`.

        Cost:
            One copy, in steps that do not block other threads.
        """
        sizes = self.sizes
        remains = np.zeros(len(self), dtype=np.bool_)
        remains[kept] = True
        ends = np.cumsum(np.concatenate([sizes[kept], more.sizes]))
        blob = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
        begin = filled = 0
        for at in range(0, len(self), _CHUNK):
            some = slice(at, at + _CHUNK)
            end = int(self.ends[some][-1])
            part = self.blob[begin:end][np.repeat(remains[some], sizes[some])]
            blob[filled : filled + len(part)] = part
            begin, filled = end, filled + len(part)
        blob[filled:] = more.blob
        return Pieces(blob, ends)

    def picked(self, numbers: Ints | Numbers) -> Pieces:
        """Return the pieces with some numbers, in their order.

        Cost:
            One copy, and an index of each byte.
        """
        sizes = self.sizes[numbers]
        ends = np.cumsum(sizes)
        shift = self.ends[numbers] - ends
        return Pieces(self.blob[np.arange(sizes.sum()) + np.repeat(shift, sizes)], ends)

    def same(self, numbers: Ints | Numbers, other: Pieces, others: Ints | Numbers) -> Flags:
        """Return for each pair of pieces, `numbers` here and `others` in `other`, whether the two are equal."""
        out: Flags = self.sizes[numbers] == other.sizes[others]
        one, two = self.picked(numbers[out]), other.picked(others[out])
        unlike = one.ends.searchsorted(np.flatnonzero(one.blob != two.blob), side="right")
        out[np.flatnonzero(out)[unlike]] = False
        return out


class Strings:
    """Strings by number, and their numbers by string.

    Attributes:
        pieces: The UTF-8 of each string.
        keys: The `key_of` of all strings, ascending.
        order: The number of the string for each key.
    """

    def __init__(self, pieces: Pieces, keys: Keys, order: NDArray[np.int32]) -> None:
        self.pieces, self.keys, self.order = pieces, keys, order

    @classmethod
    def of(cls, texts: Sequence[str]) -> Strings:
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        keys = np.frombuffer(b"".join(map(_digest, encoded)), dtype=">u8").astype(np.uint64)
        order = np.argsort(keys, kind="stable").astype(np.int32)
        return cls(Pieces.of(encoded), keys[order], order)

    def taken(self, kept: Ints, more: Strings) -> Strings:
        """Return the strings with some ascending numbers, followed by all of `more`, which contains none of them.

        Cost:
            Several copies of the arrays.
        """
        order = renumbered(kept, len(self))[self.order].astype(np.int32)
        remains = order != NONE
        keys = np.concatenate([self.keys[remains], more.keys])
        order = np.concatenate([order[remains], more.order + np.int32(len(kept))])
        by_key = np.argsort(keys, kind="stable")  # merges two ascending columns in one pass
        return Strings(self.pieces.taken(kept, more.pieces), keys[by_key], order[by_key])

    def by_key(self) -> Strings:
        """Return the same strings, numbered in the order of their keys."""
        return Strings(self.pieces.picked(self.order), self.keys, np.arange(len(self), dtype=np.int32))

    def ranks(self) -> Ints:
        """Return the rank of each string in the order of keys."""
        out = np.empty(len(self), dtype=np.int64)
        out[self.order] = np.arange(len(self))
        return out

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, number: int) -> str:
        ends = self.pieces.ends  # read here and not by `Pieces`, since a recall reads many ids
        begin = ends.item(number - 1) if number else 0
        return self.pieces.blob[begin : ends.item(number)].tobytes().decode("utf-8", "surrogatepass")

    def several(self, numbers: Sequence[int]) -> list[str]:
        """Return the strings with some numbers: much faster than one after the other."""
        return [str(piece, "utf-8", "surrogatepass") for piece in self.pieces.several(numbers)]

    def find(self, text: str) -> int:
        """Return the number of a string, or NONE.

        Cost:
            O(log n).
        """
        key = key_of(text)
        at = int(self.keys.searchsorted(np.uint64(key)))
        while at < len(self.keys) and int(self.keys[at]) == key:
            number = int(self.order[at])
            if self[number] == text:
                return number
            at += 1
        return NONE

    def numbers_of(self, others: Strings) -> Ints:
        """Return the number in this table of each string of another one, or NONE.

        Cost:
            One vectorised search, and one `find` for each string whose key belongs to another string here.
        """
        out = np.full(len(others), NONE, dtype=np.int64)
        at = self.keys.searchsorted(others.keys)
        found = np.flatnonzero(at < len(self))
        found = found[self.keys[at[found]] == others.keys[found]]
        here, there = self.order[at[found]], others.order[found]
        same = self.pieces.same(here, others.pieces, there)
        out[there[same]] = here[same]
        for number in there[~same].tolist():
            out[number] = self.find(others[number])
        return out

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the arrays by the names that they are stored under."""
        parts: list[NDArray[Any]] = [self.pieces.blob, self.pieces.ends, self.keys, self.order]
        return {f"{name}.{part}": array for part, array in zip(_PARTS, parts, strict=True)}

    @classmethod
    def from_arrays(cls, name: str, arrays: dict[str, NDArray[Any]]) -> Strings:
        """Return the strings of `arrays`."""
        blob, ends, keys, order = (arrays[f"{name}.{part}"] for part in _PARTS)
        return cls(Pieces(blob, ends), keys, order)


_PARTS = ("blob", "ends", "keys", "order")


def session_name(session: tuple[str, str]) -> str:
    """Return a session as one string, different for each session."""
    conversation, name = session
    return f"{len(conversation)}:{conversation}{name}"
