"""The compatible scorer: a hashed bag of tokens and character trigrams, compared by cosine.

The scores are those of the published algorithm to the last bit: a dot product adds its terms in the order of the
buckets, for all entries at once. Bits of a machine's vector library play no part.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from heapq import nsmallest

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 256
_TOKEN = re.compile("[A-Za-z0-9']+")
_OFFSET, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, 2**64 - 1
#: Number of entries for which there is room at first. It doubles.
_ROOM = 64


def fnv1a(text: str) -> int:
    """Return the 64-bit FNV-1a hash of a text in UTF-8.

    >>> hex(fnv1a("foobar"))
    '0x85944171f73967e8'
    """
    out = _OFFSET
    for byte in text.encode("utf-8"):
        out = ((out ^ byte) * _PRIME) & _MASK
    return out


@lru_cache(2**16)
def _bucket(feature: str) -> tuple[int, int]:
    """Return the bucket of a feature, and the sign with which it counts."""
    value = fnv1a(feature)
    return value & (DIMENSIONS - 1), 1 if value >> 63 else -1


def features(text: str) -> list[str]:
    """Return the features of a text: its tokens, and the trigrams of each.

    >>> features("I buy")
    ['i', 'buy', '^i$', '^bu', 'buy', 'uy$']
    """
    tokens = [token.lower() for token in _TOKEN.findall(text)]
    out = list(tokens)
    for token in tokens:
        framed = f"^{token}$"
        out += [framed] if len(framed) <= 3 else [framed[at : at + 3] for at in range(len(framed) - 2)]
    return out


def embed(text: str) -> NDArray[np.float64]:
    """Return the vector of a text, of length 1; zeros for a text without tokens."""
    sums = [0] * DIMENSIONS
    for bucket, sign in map(_bucket, features(text)):
        sums[bucket] += sign
    norm = math.sqrt(sum([total * total for total in sums if total]))
    out = np.array(sums, dtype=np.float64)
    return out / norm if norm else out


class HashedTrigrams:
    """Scores texts by the cosine of their vectors. See `recollect.keyed.Scorer`.

    A value that is not UTF-8 is found by its hex digits. A text is embedded when it is first searched.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._keys: list[str | None] = []  # by slot
        self._free: list[int] = []
        self._new: dict[str, bytes] = {}  # what is to be embedded
        self._vectors = np.zeros((DIMENSIONS, _ROOM))
        self._live = np.zeros(_ROOM, dtype=bool)

    def put(self, key: str, value: bytes) -> None:
        """Score this value for a key from now on."""
        self._new[key] = value

    def drop(self, key: str) -> None:
        """Score no value for a key any more."""
        self._new.pop(key, None)
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._keys[slot] = None
            self._live[slot] = False
            self._free.append(slot)

    def find(self, query: str, k: int, min_score: float) -> list[tuple[str, float]]:
        """Return the keys of the best texts, with their scores."""
        self._embed_new()
        count = len(self._keys)
        asked = embed(query)
        scores = np.zeros(count)
        for bucket in asked.nonzero()[0]:
            scores += asked[bucket] * self._vectors[bucket, :count]
        fit = np.flatnonzero(self._live[:count] & (scores >= min_score))
        if len(fit) > k:
            least = np.partition(scores[fit], len(fit) - k)[len(fit) - k]
            fit = fit[scores[fit] >= least]
        found = ((-float(scores[slot]), self._keys[slot] or "") for slot in fit)
        return [(key, -score + 0.0) for score, key in nsmallest(k, found)]

    def _embed_new(self) -> None:
        for key, value in self._new.items():
            try:
                text = value.decode("utf-8")
            except UnicodeDecodeError:
                text = value.hex()
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = self._slot()
                self._keys[slot] = key
                self._live[slot] = True
            self._vectors[:, slot] = embed(text)
        self._new.clear()

    def _slot(self) -> int:
        """Return a free slot."""
        if self._free:
            return self._free.pop()
        self._keys.append(None)
        if len(self._keys) > len(self._live):
            self._vectors = np.hstack((self._vectors, np.zeros_like(self._vectors)))
            self._live = np.hstack((self._live, np.zeros_like(self._live)))
        return len(self._keys) - 1
