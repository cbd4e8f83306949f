"""What a text states apart from its words: numbers, negations and names. Texts that differ in one of them differ.

Two texts can share nearly all words and still say opposite things. What compares texts by their words (duplicates,
echoes) compares these exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from recollect.text.words import language_of, runs, terms

#: Words that negate or limit. A text with one of them says something else than the same text without it.
_NEGATIONS = frozenset(
    "no not never none nothing neither nor without cannot can't don't doesn't didn't isn't aren't wasn't weren't won't "
    "wouldn't shouldn't couldn't hasn't haven't hadn't nicht kein keine keinen nie ohne pas jamais sans non sin nunca "
    "nao niet geen".split()
)
#: A word that does not begin a sentence.
_INNER_WORD = re.compile(r"(?<=[^.!?…\s]\s)[^\W\d_][\w'’-]*")
_NUMBER = re.compile(r"[+-]?\d[\d.,:/-]*")


class Statement(NamedTuple):
    """What a text states.

    Attributes:
        words: Its words, folded, in order.
        stems: The stems of its content words, in order.
        numbers: Its numbers, in ascending order as texts.
        negations: How many words negate it.
        names: Its words with a capital letter, folded, except those that begin a sentence.
    """

    words: tuple[str, ...]
    stems: tuple[str, ...]
    numbers: tuple[str, ...]
    negations: int
    names: frozenset[str]


def statement(text: str, language: str | None = None) -> Statement:
    """Return what a text states.

    >>> said = statement("She never pays Ana 20.5 euros.")
    >>> said.numbers, said.negations, sorted(said.names), said.stems
    (('20.5',), 1, ['ana'], ('never', 'pay', 'ana', '20', '5', 'euro'))

    Args:
        text: The text.
        language: Its language, as a BCP 47 tag; None: detected.
    """
    words = tuple(run for run, _ in runs(text))
    stems = tuple(term for term, _ in terms(text, language_of(text, language)))
    numbers = tuple(sorted(number.rstrip(".,:/-") for number in _NUMBER.findall(text)))
    return Statement(words, stems, numbers, sum(word in _NEGATIONS for word in words), names_in(text))


def names_in(text: str) -> frozenset[str]:
    """Return the words of a text that begin with a capital letter, folded, except those that begin a sentence."""
    found = (word for word in _INNER_WORD.findall(text) if word[0].isupper())
    return frozenset(run for word in found for run, _ in runs(word))


def shingles(stems: Sequence[str]) -> frozenset[tuple[str, ...]]:
    """Return the pairs of adjacent stems of a text; of a text with one stem, that stem.

    >>> sorted(shingles(("ana", "live", "oslo"))), sorted(shingles(("oslo",)))
    ([('ana', 'live'), ('live', 'oslo')], [('oslo',)])
    """
    return frozenset(pairwise(stems)) if len(stems) > 1 else frozenset((stem,) for stem in stems)
