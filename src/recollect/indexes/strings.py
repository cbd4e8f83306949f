"""Many strings in few arrays: found by number, and by what they are, without an object for each.

What comes from a file can be looked up at once: nothing has to be read through and put into a dict first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.columns import NONE, Ints

Keys = NDArray[np.uint64]


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

    @classmethod
    def joined(cls, one: Pieces, other: Pieces) -> Pieces:
        """Those of one, and then those of the other."""
        return cls(np.concatenate([one.blob, other.blob]), np.concatenate([one.ends, other.ends + len(one.blob)]))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> bytes:
        begin = int(self.ends[number - 1]) if number else 0
        return self.blob[begin : int(self.ends[number])].tobytes()

    def taken(self, kept: Ints) -> Pieces:
        """Those of some rising numbers. Cost: one copy, in as many steps as there are gaps between them."""
        if len(kept) == len(self):
            return self
        starts = np.concatenate([[0], self.ends])
        sizes = np.diff(starts)[kept]
        firsts = np.flatnonzero(np.diff(kept, prepend=NONE - 1) != 1)
        lasts = np.append(firsts[1:], len(kept))[: len(firsts)] - 1
        runs = zip(starts[kept[firsts]].tolist(), self.ends[kept[lasts]].tolist(), strict=True)
        parts = [self.blob[begin:end] for begin, end in runs]
        return Pieces(np.concatenate(parts) if parts else self.blob[:0], np.cumsum(sizes))


class Strings:
    """Strings by number, and their numbers by what they are.

    blob, ends  the UTF-8 of all of them, and where each ends
    keys        the rising `key_of` of each
    order       the number of the string that has the key at this place
    """

    def __init__(self, blob: NDArray[np.uint8], ends: NDArray[np.int64], keys: Keys, order: NDArray[np.int32]) -> None:
        self.blob, self.ends, self.keys, self.order = blob, ends, keys, order

    @classmethod
    def of(cls, texts: Sequence[str]) -> Strings:
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        keys = np.frombuffer(b"".join(map(_digest, encoded)), dtype=">u8").astype(np.uint64)
        order = np.argsort(keys, kind="stable").astype(np.int32)
        ends = np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)))
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends, keys[order], order)

    def by_key(self) -> Strings:
        """The same strings, numbered in the order of their keys."""
        sizes = np.diff(self.ends, prepend=0)
        starts = (self.ends - sizes)[self.order]
        sizes = sizes[self.order]
        ends = np.cumsum(sizes)
        blob = self.blob[np.arange(len(self.blob)) + np.repeat(starts - (ends - sizes), sizes)]
        return Strings(blob, ends, self.keys, np.arange(len(self), dtype=np.int32))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> str:
        begin = int(self.ends[number - 1]) if number else 0
        return self.blob[begin : int(self.ends[number])].tobytes().decode("utf-8", "surrogatepass")

    def all(self) -> list[str]:
        """Every string, in the order of their numbers."""
        blob, begin, out = self.blob.tobytes(), 0, []
        for end in self.ends.tolist():
            out.append(blob[begin:end].decode("utf-8", "surrogatepass"))
            begin = end
        return out

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

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays by the names that they are kept under."""
        return {f"{name}.{part}": getattr(self, part) for part in ("blob", "ends", "keys", "order")}

    @classmethod
    def from_arrays(cls, name: str, arrays: dict[str, NDArray[Any]]) -> Strings:
        """The strings that `arrays` gave."""
        return cls(*(arrays[f"{name}.{part}"] for part in ("blob", "ends", "keys", "order")))


def session_name(session: tuple[str, str]) -> str:
    """A session as one string, which no other session gives."""
    conversation, name = session
    return f"{len(conversation)}:{conversation}{name}"


def session_of(name: str) -> tuple[str, str]:
    """The session that `session_name` gave."""
    size, _, rest = name.partition(":")
    return rest[: int(size)], rest[int(size) :]
