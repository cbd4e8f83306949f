"""Forms: words as they were written, among the terms of a segment, found by the trigrams that they share with others.

They tell which words a view knows, and lead unknown words to known ones. They lie in arrays, so that those of a segment
go over into the next without being read through again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Flags, Ints, Numbers
from recollect.text.words import trigrams

#: Before a term that is a word as it was written, stem and all: which words a view knows.
_FORM = "="
#: Shorter words share too little with others for likeness to mean anything.
LEAST_LETTERS = 4
#: A letter of a trigram takes so many bits: there are that many code points.
_LETTER_BITS = 21
#: A pair of a trigram and a form is one number, with the form's in so many bits.
_FORM_BITS = 32


def comparable(word: str) -> bool:
    """Whether a word takes part where unknown words are led to known ones: letters only, and enough of them."""
    return len(word) >= LEAST_LETTERS and word.isalpha()


def form(word: str, stem: str) -> str:
    """The term under which a word is kept as it was written, with its stem: in another language it may have another."""
    return f"{_FORM}{word}{_FORM}{stem}"


def form_parts(term: str) -> tuple[str, str] | None:
    """The word and stem of a `form`; None for another term."""
    if not term.startswith(_FORM):
        return None
    word, _, stem = term[1:].partition(_FORM)
    return word, stem


def trigram_keys(word: str) -> list[int]:
    """The distinct character trigrams of `#word#`, each as a number.

    >>> len(trigram_keys("cat")), len(trigram_keys("aaaa"))
    (3, 3)
    """
    first, second = 2 * _LETTER_BITS, _LETTER_BITS
    return [ord(gram[0]) << first | ord(gram[1]) << second | ord(gram[2]) for gram in trigrams(word)]


class Forms(NamedTuple):
    """The forms among terms, by trigram.

    terms   the numbers of the terms that are forms, rising
    sizes   how many trigrams each has
    grams   the trigrams of all of them, rising
    ends    of each trigram: the forms that have it are `owners[ends[at - 1]:ends[at]]`
    owners  by their places in `terms`, rising for each trigram
    """

    terms: Numbers
    sizes: Numbers
    grams: NDArray[np.uint64]
    ends: Ints
    owners: Numbers

    @classmethod
    def of(cls, names: Sequence[str]) -> Forms:
        """Those among terms that are numbered as they stand. Cost: in proportion to their letters."""
        formed = [(number, parts[0]) for number, name in enumerate(names) if (parts := form_parts(name)) is not None]
        grams, owners = _trigrams_of([word for _, word in formed])
        order = np.argsort(grams, kind="stable")
        grams, owners = grams[order], owners[order]
        once = firsts(grams) | firsts(owners)  # a word may have a trigram twice
        sizes = np.bincount(owners[once], minlength=len(formed))
        return cls._grouped(np.array([number for number, _ in formed]), sizes, grams[once], owners[once])

    @classmethod
    def joined(cls, parts: Sequence[tuple[Forms, Ints]]) -> Forms:
        """Those of several, none of which has a form of another, by the numbers that their terms get: NONE of one that
        is left out. Terms keep their order.

        Cost: one pass over the arrays.
        """
        numbers = [number[forms.terms] for forms, number in parts]
        terms = np.sort(np.concatenate(numbers))
        terms = terms[terms.searchsorted(0) :]
        grams = np.unique(np.concatenate([forms.grams for forms, _ in parts]))
        sizes = np.zeros(len(terms), dtype=np.int32)
        pairs = []
        for (forms, _), number in zip(parts, numbers, strict=True):
            kept, place = number != NONE, terms.searchsorted(number)
            sizes[place[kept]] = forms.sizes[kept]
            of_gram = np.repeat(grams.searchsorted(forms.grams), np.diff(forms.ends, prepend=0))
            live = kept[forms.owners]
            pairs.append(of_gram[live] << _FORM_BITS | place[forms.owners[live]])
        paired = np.concatenate(pairs)
        paired.sort(kind="stable")  # which makes one pass over parts that rise
        return cls._grouped(terms, sizes, grams[paired >> _FORM_BITS], paired & (1 << _FORM_BITS) - 1)

    @classmethod
    def _grouped(cls, terms: Ints, sizes: NDArray[Any], grams: NDArray[np.uint64], owners: NDArray[Any]) -> Forms:
        """From pairs of a trigram and a form, in their order."""
        begins = np.flatnonzero(firsts(grams))
        ends = np.append(begins[1:], len(grams))[: len(begins)].astype(np.int64)
        return cls(terms.astype(np.int32), sizes.astype(np.int32), grams[begins], ends, owners.astype(np.int32))

    def shared(self, grams: Sequence[int]) -> Ints:
        """How many of some trigrams each form has."""
        found = [self.owners[:0]]
        for gram in grams:
            at = int(self.grams.searchsorted(np.uint64(gram)))
            if at < len(self.grams) and int(self.grams[at]) == gram:
                found.append(self.owners[int(self.ends[at - 1]) if at else 0 : int(self.ends[at])])
        return np.bincount(np.concatenate(found), minlength=len(self.terms))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by the names that they are kept under."""
        return dict(zip(_NAMES, self, strict=True))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Forms:
        """The forms that `arrays` gave."""
        return cls(*(arrays[name] for name in _NAMES))


_NAMES = ("forms", "form_sizes", "grams.keys", "grams.ends", "grams.forms")


def firsts(column: NDArray[Any]) -> Flags:
    """Where a column has another value than the place before."""
    out = np.ones(len(column), dtype=np.bool_)
    out[1:] = column[1:] != column[:-1]
    return out


def _trigrams_of(words: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """The trigrams of words, as `trigram_keys` has them but for their order and those that a word has twice; and of
    which word each is."""
    points = np.frombuffer("".join([f"#{word}#" for word in words]).encode("utf-32-le"), dtype=np.uint32)
    owners = np.repeat(
        np.arange(len(words), dtype=np.int32), np.array([len(word) + 2 for word in words], dtype=np.int64)
    )
    whole = owners[2:] == owners[:-2]  # none reaches into the next word
    points = points.astype(np.uint64)
    keys = points[:-2] << np.uint64(2 * _LETTER_BITS) | points[1:-1] << np.uint64(_LETTER_BITS) | points[2:]
    return keys[whole], owners[:-2][whole]
