"""The words that a namespace uses, findable by trigram: where a misspelt or unknown word is led to those it resembles.

Words are only ever added. One that no record of the reader's view uses, in just this form, is passed over when it is
looked up; so a reader of an older view gets that view's answer, and an index made anew gives the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from recollect.indexes.documents.columns import NONE
from recollect.indexes.fixed_point import ONE
from recollect.indexes.parameters import LEAST_DICE, MOST_STEMS
from recollect.indexes.words.segment import Segment
from recollect.indexes.words.surface_forms import comparable, form, trigram_keys


class Similar(NamedTuple):
    """A known word that resembles an unknown one. `dice`: 2|a&b| / (|a|+|b|) over trigrams, 16 bits of fraction."""

    word: str
    stem: str
    dice: int


class _Known:
    """A word that was added. Compared by identity, so that it is counted as fast as a number."""

    __slots__ = ("stem", "trigrams", "word")

    def __init__(self, word: str, stem: str, trigrams: int) -> None:
        self.word, self.stem, self.trigrams = word, stem, trigrams


class Vocabulary:
    """Folded words with their stems: those of a segment, and those that came later."""

    def __init__(self, segment: Segment | None = None) -> None:
        self._segment = segment
        # An index and its forks share one vocabulary, without a lock: each step is thread-safe, and where two threads
        # add the same word at once it is there twice, which changes no answer.
        self._known: set[tuple[str, str]] = set()
        self._by_trigram: dict[int, list[_Known]] = {}

    def add(self, word: str, stem: str) -> None:
        """Add a word with a stem, once: in another language it may have another. Cost: O(length of the word)."""
        if (word, stem) in self._known or not comparable(word):
            return
        if self._segment is None or self._segment.term(form(word, stem)) == NONE:  # else it is found there
            grams = trigram_keys(word)
            added = _Known(word, stem, len(grams))
            for gram in grams:
                self._by_trigram.setdefault(gram, []).append(added)
        self._known.add((word, stem))  # last: whoever finds it known finds it by all of its trigrams

    def similar(self, word: str, in_use: Callable[[str, str], bool]) -> list[Similar]:
        """The best words, of `MOST_STEMS` different stems, that resemble `word`; most alike first, ties alphabetical.

        in_use   whether a word has a document in the reader's view that gives it this stem

        Cost: in proportion to the words that share a trigram.
        """
        if not comparable(word):
            return []
        grams = trigram_keys(word)
        alike = []
        for candidate, stem, size, common in self._alike(grams):
            alike.append(Similar(candidate, stem, 2 * common * ONE // (len(grams) + size)))
        alike.sort(key=lambda item: (-item.dice, item.word, item.stem))
        best: dict[str, Similar] = {}
        for item in alike:
            if item.stem not in best and in_use(item.word, item.stem):
                best[item.stem] = item
                if len(best) == MOST_STEMS:
                    break
        return list(best.values())

    def _alike(self, grams: list[int]) -> Iterator[tuple[str, str, int, int]]:
        if self._segment is not None:
            yield from self._segment.alike(grams, LEAST_DICE)
        shared: Counter[_Known] = Counter()
        for gram in grams:
            shared.update(self._by_trigram.get(gram, ()))
        for known, common in shared.items():
            if 200 * common >= LEAST_DICE * (len(grams) + known.trigrams):
                yield known.word, known.stem, known.trigrams, common
