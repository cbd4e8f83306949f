"""Many strings in few arrays: found by number, and by what they are, without an object for each.

What comes from a file can be looked up at once: nothing has to be read through and put into a dict first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Flags, Ints, Numbers, renumbered

Keys = NDArray[np.uint64]
#: So many pieces are taken at once: what says which bytes are theirs stays in the processor's cache.
_TAKEN = 4096


def key_of(text: str) -> int:
    """A number of 64 bits that hardly any other string has, the same on every machine."""
    return int.from_bytes(_digest(text.encode("utf-8", "surrogatepass")), "big")


def _digest(encoded: bytes) -> bytes:
    return hashlib.blake2b(encoded, digest_size=8).digest()


class Pieces:
    """Byte strings by number, in two arrays.

    blob, ends  all of them, one after the other, and where each ends
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
        begin = int(self.ends[number - 1]) if number else 0
        return self.blob[begin : int(self.ends[number])].tobytes()

    @property
    def sizes(self) -> Ints:
        """How long each is."""
        return np.diff(self.ends, prepend=0)

    def taken(self, kept: Ints, more: Pieces) -> Pieces:
        """Those of some rising numbers, and then all of `more`. Cost: one copy, which holds up no other thread."""
        sizes = self.sizes
        stays = np.zeros(len(self), dtype=np.bool_)
        stays[kept] = True
        ends = np.cumsum(np.concatenate([sizes[kept], more.sizes]))
        blob = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
        begin = filled = 0
        for at in range(0, len(self), _TAKEN):
            some = slice(at, at + _TAKEN)
            end = int(self.ends[some][-1])
            part = self.blob[begin:end][np.repeat(stays[some], sizes[some])]
            blob[filled : filled + len(part)] = part
            begin, filled = end, filled + len(part)
        blob[filled:] = more.blob
        return Pieces(blob, ends)

    def picked(self, numbers: Ints | Numbers) -> Pieces:
        """Those of some numbers, in their order. Cost: one copy, and as much again for each byte's place."""
        sizes = self.sizes[numbers]
        ends = np.cumsum(sizes)
        moved = self.ends[numbers] - ends
        return Pieces(self.blob[np.arange(sizes.sum()) + np.repeat(moved, sizes)], ends)

    def same(self, numbers: Ints | Numbers, other: Pieces, others: Ints | Numbers) -> Flags:
        """Whether each of some pieces is the one of another that stands beside it."""
        out: Flags = self.sizes[numbers] == other.sizes[others]
        one, two = self.picked(numbers[out]), other.picked(others[out])
        unlike = one.ends.searchsorted(np.flatnonzero(one.blob != two.blob), side="right")
        out[np.flatnonzero(out)[unlike]] = False
        return out


class Strings:
    """Strings by number, and their numbers by what they are.

    pieces  the UTF-8 of each
    keys    the rising `key_of` of each
    order   the number of the string that has the key at this place
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
        """Those of some rising numbers, and then all of `more`, none of which is among them. Cost: some copies."""
        order = renumbered(kept, len(self))[self.order].astype(np.int32)
        stays = order != NONE
        keys = np.concatenate([self.keys[stays], more.keys])
        order = np.concatenate([order[stays], more.order + np.int32(len(kept))])
        by_key = np.argsort(keys, kind="stable")  # which makes one pass over two columns that rise
        return Strings(self.pieces.taken(kept, more.pieces), keys[by_key], order[by_key])

    def by_key(self) -> Strings:
        """The same strings, numbered in the order of their keys: each by its rank."""
        return Strings(self.pieces.picked(self.order), self.keys, np.arange(len(self), dtype=np.int32))

    def ranks(self) -> Ints:
        """The place of each in the order of keys."""
        out = np.empty(len(self), dtype=np.int64)
        out[self.order] = np.arange(len(self))
        return out

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, number: int) -> str:
        return self.pieces[number].decode("utf-8", "surrogatepass")

    def find(self, text: str) -> int:
        """The number of a string, or NONE. Cost: O(log n)."""
        key = key_of(text)
        at = int(self.keys.searchsorted(np.uint64(key)))
        while at < len(self.keys) and int(self.keys[at]) == key:
            number = int(self.order[at])
            if self[number] == text:
                return number
            at += 1
        return NONE

    def numbers_of(self, others: Strings) -> Ints:
        """The number here of each of others, or NONE. Cost: one search, but for strings that share a key."""
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
        """The arrays by the names that they are kept under."""
        parts: list[NDArray[Any]] = [self.pieces.blob, self.pieces.ends, self.keys, self.order]
        return {f"{name}.{part}": array for part, array in zip(_PARTS, parts, strict=True)}

    @classmethod
    def from_arrays(cls, name: str, arrays: dict[str, NDArray[Any]]) -> Strings:
        """The strings that `arrays` gave."""
        blob, ends, keys, order = (arrays[f"{name}.{part}"] for part in _PARTS)
        return cls(Pieces(blob, ends), keys, order)


_PARTS = ("blob", "ends", "keys", "order")


def session_name(session: tuple[str, str]) -> str:
    """A session as one string, which no other session gives."""
    conversation, name = session
    return f"{len(conversation)}:{conversation}{name}"
