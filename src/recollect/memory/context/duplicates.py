"""Near-duplicates: texts that add nothing to one that is chosen already.

A text is folded into another if the other has all of its words, and nearly all of its sequences of three words. So a
restated sentence is folded, but never one with another number, another name, or a "not" that the other lacks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain

from recollect.text.words import runs

#: Share of common shingles (Jaccard) from which on a text is a near-duplicate.
_ALIKE = 0.8
_SHINGLE = 3


@dataclass(slots=True)
class Chosen:
    """The texts that are chosen, by their shingles."""

    _ids: list[str] = field(default_factory=list)
    _words: list[frozenset[str]] = field(default_factory=list)
    _counts: list[int] = field(default_factory=list)
    _having: dict[tuple[str, ...], list[int]] = field(default_factory=dict)

    def add(self, record_id: str, text: str) -> str | None:
        """Add the text of a record, unless it is a near-duplicate: then return the id of the record that it repeats.

        >>> chosen = Chosen()
        >>> chosen.add("a", "Ana moved to Oslo in May 2021."), chosen.add("b", "Ana moved to Oslo in May 2022.")
        (None, None)
        >>> chosen.add("c", "ana moved to Oslo, in May 2021!")
        'a'
        """
        words = [run for run, _ in runs(text)]
        distinct = frozenset(words)
        padded = ["", *words, ""]
        shingles = frozenset(zip(*(padded[at:] for at in range(_SHINGLE)), strict=False))
        common = Counter(chain.from_iterable(filter(None, map(self._having.get, shingles))))
        for number, shared in sorted(common.items()):
            union = len(shingles) + self._counts[number] - shared
            if shared >= _ALIKE * union and distinct <= self._words[number]:
                return self._ids[number]
        number = len(self._ids)
        self._ids.append(record_id)
        self._words.append(distinct)
        self._counts.append(len(shingles))
        for shingle in shingles:
            self._having.setdefault(shingle, []).append(number)
        return None
