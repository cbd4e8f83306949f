"""Surface forms: words as they were written, stored as terms of a segment and searchable by trigram.

They determine which words a view contains, and find known words that resemble unknown ones. They are stored in arrays,
so that merging a segment into a new one need not process each word again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Flags, Ints, Numbers
from recollect.text.likeness import LEAST_LETTERS
from recollect.text.words import trigrams

#: Prefix of the terms that are surface forms, which record the words that a view contains.
FORM = "="
#: Bits of a letter in a trigram key, enough for any code point.
_LETTER_BITS = 21
#: Bits of a form's number in a key that combines a trigram and a form.
_FORM_BITS = 32


def comparable(word: str) -> bool:
    """Return whether a word takes part in similarity matching: it has only letters, and enough of them."""
    return len(word) >= LEAST_LETTERS and word.isalpha()


def form(word: str, stem: str) -> str:
    """Return the surface form of a word: a term that contains the word and its stem.

    In another language the word may have another stem, and then another form.
    """
    return f"{FORM}{word}{FORM}{stem}"


def form_parts(term: str) -> tuple[str, str] | None:
    """Return the word and stem of a surface form; None for another term."""
    if not term.startswith(FORM):
        return None
    word, _, stem = term[1:].partition(FORM)
    return word, stem


def first_trigram(word: str) -> int:
    """Return the trigram at the beginning of a word, which words share if their first two letters are the same."""
    return ord("#") << 2 * _LETTER_BITS | ord(word[0]) << _LETTER_BITS | ord(word[1])


def trigram_keys(word: str) -> list[int]:
    """Return the distinct character trigrams of `#word#`, each as an integer.

    >>> len(trigram_keys("cat")), len(trigram_keys("aaaa"))
    (3, 3)
    """
    first, second = 2 * _LETTER_BITS, _LETTER_BITS
    return [ord(gram[0]) << first | ord(gram[1]) << second | ord(gram[2]) for gram in trigrams(word)]


class Forms(NamedTuple):
    """The surface forms among the terms of a segment, indexed by trigram.

    Attributes:
        terms: The numbers of the terms that are surface forms, ascending.
        sizes: The number of trigrams of each form.
        grams: The trigrams of all forms, ascending.
        ends: The forms with the trigram at index `at` are `owners[ends[at - 1]:ends[at]]`.
        owners: Forms as indexes into `terms`, ascending within each trigram.
    """

    terms: Numbers
    sizes: Numbers
    grams: NDArray[np.uint64]
    ends: Ints
    owners: Numbers

    @classmethod
    def of(cls, names: Sequence[str]) -> Forms:
        """Return the surface forms among `names`, the terms in the order of their numbers.

        Cost:
            O(letters).
        """
        formed = [(number, parts[0]) for number, name in enumerate(names) if (parts := form_parts(name)) is not None]
        grams, owners = _trigrams_of([word for _, word in formed])
        order = np.argsort(grams, kind="stable")
        grams, owners = grams[order], owners[order]
        once = firsts(grams) | firsts(owners)  # a word may contain a trigram twice
        sizes = np.bincount(owners[once], minlength=len(formed))
        return cls._grouped(np.array([number for number, _ in formed]), sizes, grams[once], owners[once])

    @classmethod
    def joined(cls, parts: Sequence[tuple[Forms, Ints]]) -> Forms:
        """Return the forms of several tables that have no form in common.

        Args:
            parts: Each table with the new number of each of its terms, NONE for a term that is dropped. The numbers
                keep the order of the terms.

        Cost:
            One pass over the arrays.
        """
        numbers = [number[forms.terms] for forms, number in parts]
        terms = np.sort(np.concatenate(numbers))
        terms = terms[terms.searchsorted(0) :]
        grams = np.unique(np.concatenate([forms.grams for forms, _ in parts]))
        sizes = np.zeros(len(terms), dtype=np.int32)
        pairs = []
        for (forms, _), number in zip(parts, numbers, strict=True):
            kept, index = number != NONE, terms.searchsorted(number)
            sizes[index[kept]] = forms.sizes[kept]
            of_gram = np.repeat(grams.searchsorted(forms.grams), np.diff(forms.ends, prepend=0))
            live = kept[forms.owners]
            pairs.append(of_gram[live] << _FORM_BITS | index[forms.owners[live]])
        paired = np.concatenate(pairs)
        paired.sort(kind="stable")  # merges ascending parts in one pass
        return cls._grouped(terms, sizes, grams[paired >> _FORM_BITS], paired & (1 << _FORM_BITS) - 1)

    @classmethod
    def _grouped(cls, terms: Ints, sizes: NDArray[Any], grams: NDArray[np.uint64], owners: NDArray[Any]) -> Forms:
        """Build the table from parallel columns of trigrams and forms, sorted by both."""
        begins = np.flatnonzero(firsts(grams))
        ends = np.append(begins[1:], len(grams))[: len(begins)].astype(np.int64)
        return cls(terms.astype(np.int32), sizes.astype(np.int32), grams[begins], ends, owners.astype(np.int32))

    def shared(self, grams: Sequence[int]) -> Ints:
        """Return how many of some trigrams each form has."""
        found = [self.owners[:0], *map(self.having, grams)]
        return np.bincount(np.concatenate(found), minlength=len(self.terms))

    def having(self, gram: int) -> Numbers:
        """Return the forms that have a trigram, ascending."""
        at = int(self.grams.searchsorted(np.uint64(gram)))
        if at == len(self.grams) or int(self.grams[at]) != gram:
            return self.owners[:0]
        return self.owners[int(self.ends[at - 1]) if at else 0 : int(self.ends[at])]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by the names that they are stored under."""
        return dict(zip(_NAMES, self, strict=True))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Forms:
        """Return the forms of `arrays`."""
        return cls(*(arrays[name] for name in _NAMES))


_NAMES = ("forms", "form_sizes", "grams.keys", "grams.ends", "grams.forms")


def firsts(column: NDArray[Any]) -> Flags:
    """Return where a column differs from the element before it."""
    out = np.ones(len(column), dtype=np.bool_)
    out[1:] = column[1:] != column[:-1]
    return out


def _trigrams_of(words: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return the trigrams of words, and the index of the word of each.

    They are those of `trigram_keys`, but in order of appearance and with duplicates.
    """
    points = np.frombuffer("".join([f"#{word}#" for word in words]).encode("utf-32-le"), dtype=np.uint32)
    owners = np.repeat(
        np.arange(len(words), dtype=np.int32), np.array([len(word) + 2 for word in words], dtype=np.int64)
    )
    inside = owners[2:] == owners[:-2]  # excludes trigrams that extend into the next word
    points = points.astype(np.uint64)
    keys = points[:-2] << np.uint64(2 * _LETTER_BITS) | points[1:-1] << np.uint64(_LETTER_BITS) | points[2:]
    return keys[inside], owners[:-2][inside]
