"""The compatible scorer: a hashed bag of tokens and character trigrams, compared by cosine.

The scores are those of the published algorithm to the last bit: a dot product adds its terms in the order of the
buckets, for all entries at once. Bits of a machine's vector library play no part.
"""

from __future__ import annotations

from heapq import nsmallest

import numpy as np

from recollect.models.embedding.hashed import DIMENSION, hashed_vector

#: Number of entries for which there is room at first. It doubles.
_ROOM = 64


class HashedTrigrams:
    """Scores texts by the cosine of their vectors. See `recollect.keyed.Scorer`.

    A value that is not UTF-8 is found by its hex digits. A text is embedded when it is first searched.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._keys: list[str | None] = []  # by slot
        self._free: list[int] = []
        self._new: dict[str, bytes] = {}  # what is to be embedded
        self._vectors = np.zeros((DIMENSION, _ROOM))
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
        asked = np.array(hashed_vector(query))
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
            self._vectors[:, slot] = hashed_vector(text)
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
