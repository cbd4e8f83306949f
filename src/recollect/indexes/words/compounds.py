"""Compounds: "Fahrradschloss" finds "das Schloss vom Fahrrad", and the other way round.

German, Dutch and the Scandinavian languages write compounds as one word, sometimes with letters between the parts. A
compound is read as its parts only if both are words of the namespace, and words are joined only if the namespace has
the compound. So no dictionary is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from recollect.text.words import stem

#: The letters between the parts of a compound, by language, the most first.
_BETWEEN = {
    "de": ("ens", "en", "er", "es", "e", "n", "s", ""),
    "nl": ("en", "er", "e", "s", ""),
    "sv": ("e", "o", "s", ""),
    "da": ("e", "s", ""),
    "no": ("e", "s", ""),
}
#: Minimum letters of a part.
_LEAST_PART = 3
#: At most this many words of a question are joined with each other.
_MOST_JOINED = 6


class Related(NamedTuple):
    """A known word that a question means by another.

    Attributes:
        term: Its index term.
        word: The word of the question: a compound, or the first part of one.
        known: The known word.
    """

    term: str
    word: str
    known: str


def related(words: Sequence[str], language: str, in_use: Callable[[str], bool]) -> Iterator[Related]:
    """Yield the parts of the compounds among some words, and the compounds of which they are parts.

    Args:
        words: The folded words of a question, each once.
        in_use: Returns whether a document has a term.

    Cost:
        A look-up for each place at which a word could be divided and each way to join two words.
    """
    between = _BETWEEN.get(language)
    if between is None:
        return
    for word in words:
        for part in _parts(word, between, language, in_use):
            yield Related(stem(part, language), word, part)
    able = [word for word in words if len(word) >= _LEAST_PART and word.isalpha()][:_MOST_JOINED]
    for one, other in permutations(able, 2):
        for letters in between:
            joined = f"{one}{letters}{other}"
            if in_use(term := stem(joined, language)):
                yield Related(term, one, joined)


def _parts(word: str, between: Sequence[str], language: str, in_use: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the two parts of a compound, the second one as long as possible; none if they are not in use."""
    if not word.isalpha():
        return ()
    for at in range(_LEAST_PART, len(word) - _LEAST_PART + 1):
        second = word[at:]
        if not in_use(stem(second, language)):
            continue
        for letters in between:
            first = word[: at - len(letters)]
            if word[:at].endswith(letters) and len(first) >= _LEAST_PART and in_use(stem(first, language)):
                return first, second
    return ()
