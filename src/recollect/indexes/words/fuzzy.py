"""The vocabulary of a namespace, searchable by trigram, which replaces misspelt or unknown words by similar known ones.

Words are only added, never removed. A lookup skips words that no record of the view uses in exactly this form. A reader
of an older view therefore gets the result for that view, and a rebuilt index gives the same results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from recollect.indexes.documents.columns import NONE
from recollect.indexes.fixed_point import ONE
from recollect.indexes.parameters import CHANGED_TRIGRAMS, LEAST_DICE, MOST_STEMS
from recollect.indexes.words.segment import Segment
from recollect.indexes.words.surface_forms import comparable, first_trigram, form, trigram_keys
from recollect.text.likeness import may_stand_for


class SimilarWord(NamedTuple):
    """A known word that resembles an unknown one.

    Attributes:
        word: The known word.
        dice: The Dice coefficient 2|a&b| / (|a|+|b|) of the two sets of trigrams, with 16 bits of fraction.
    """

    word: str
    stem: str
    dice: int


class _Known:
    """A word of the vocabulary. Compared by identity, so that counting it is as fast as counting an integer."""

    __slots__ = ("stem", "trigrams", "word")

    def __init__(self, word: str, stem: str, trigrams: int) -> None:
        self.word, self.stem, self.trigrams = word, stem, trigrams


class Vocabulary:
    """Folded words with their stems: those of a segment, and those added later."""

    def __init__(self, segment: Segment | None = None) -> None:
        self._segment = segment
        # An index and its forks share one vocabulary without a lock. Each step is thread-safe, and if two threads add
        # the same word at once, it is stored twice, which changes no result.
        self._known: set[tuple[str, str]] = set()
        self._by_trigram: dict[int, list[_Known]] = {}

    def add(self, word: str, stem: str) -> None:
        """Add a word with a stem, if this pair is new: in another language the word may have another stem.

        Cost:
            O(length of the word).
        """
        if (word, stem) in self._known or not comparable(word):
            return
        if self._segment is None or self._segment.term(form(word, stem)) == NONE:  # else the segment finds it
            grams = trigram_keys(word)
            added = _Known(word, stem, len(grams))
            for gram in grams:
                self._by_trigram.setdefault(gram, []).append(added)
        self._known.add((word, stem))  # last: a word in `_known` can be found by all of its trigrams

    def similar(self, word: str, stem: str, in_use: Callable[[str, str], bool]) -> list[SimilarWord]:
        """Return the words that are most similar to `word` and that it may stand for (`text.likeness`), best first.

        They have at most `MOST_STEMS` different stems. Ties are in alphabetical order.

        Args:
            word: The unknown word.
            in_use: Whether the reader's view has a document that uses a word with this stem.

        Cost:
            O(words that share a trigram).
        """
        if not comparable(word):
            return []
        grams = trigram_keys(word)
        alike = []
        for known, its_stem, size, common in self._alike(word, grams):
            if may_stand_for(known, word) or may_stand_for(its_stem, stem):
                alike.append((-(2 * common * ONE // (len(grams) + size)), known, its_stem))
        alike.sort()
        best: dict[str, SimilarWord] = {}
        for dice, known, its_stem in alike:
            if its_stem not in best and in_use(known, its_stem):
                best[its_stem] = SimilarWord(known, its_stem, -dice)
                if len(best) == MOST_STEMS:
                    break
        return list(best.values())

    def _alike(self, word: str, grams: list[int]) -> Iterator[tuple[str, str, int, int]]:
        """Yield words that share enough trigrams with a word, and its first two letters or all trigrams but a few."""
        if self._segment is not None:
            yield from self._segment.alike(grams, first_trigram(word), LEAST_DICE, CHANGED_TRIGRAMS)
        shared: Counter[_Known] = Counter()
        for gram in grams:
            shared.update(self._by_trigram.get(gram, ()))
        for known, common in shared.items():
            near = known.word[:2] == word[:2] or common >= max(known.trigrams, len(grams)) - CHANGED_TRIGRAMS
            if near and 200 * common >= LEAST_DICE * (len(grams) + known.trigrams):
                yield known.word, known.stem, known.trigrams, common
