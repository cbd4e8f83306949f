"""Where a text has the words that a search matched, so that they can be marked.

The index counts folded and stemmed words, which have no place in the text any more. So the words of the text are read
again, each by itself, and compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from recollect.common.regexes import regex
from recollect.text.folding import folded
from recollect.text.words import is_unspaced, language_of, terms

#: Letters and digits, with apostrophes between them.
_WORD = regex(r"\w+(?:['\u2019\u02bc]\w+)*")
#: Maximum number of characters of a text that are searched.
_MOST = 100_000


def marks(text: str, words: Iterable[str], language: str | None = None) -> tuple[tuple[int, int], ...]:
    """Return the start and the end of each place where a text has one of some words, in characters.

    Args:
        words: The words, in any form.
        language: The language of the text, as a tag; None: it is detected.

    >>> text = "She moved to Oslo; I'm moving, too."
    >>> [text[start:end] for start, end in marks(text, ["move", "oslo"])]
    ['moved', 'Oslo', 'moving']
    >>> marks("我喜欢猫", ["喜欢"])
    ((1, 3),)
    """
    text, words = text[:_MOST], list(words)
    spoken = language_of(text, language)
    wanted = {term for word in words for term, _ in terms(word, spoken)} | {folded(word) for word in words}
    out: list[tuple[int, int]] = []
    for found in _WORD.finditer(text):
        word = folded(found[0])
        if is_unspaced(word) and len(word) == len(found[0]):
            out += [(found.start() + at, found.start() + end) for at, end in _within(word, wanted)]
        elif word in wanted or not wanted.isdisjoint(_terms_of(found[0], spoken)):
            out.append(found.span())
    return tuple(out)


@lru_cache(maxsize=8192)  # the hits of a question have many words in common
def _terms_of(word: str, language: str) -> frozenset[str]:
    return frozenset(term for term, _ in terms(word, language))


def _within(run: str, wanted: set[str]) -> list[tuple[int, int]]:
    """Return the places in a run of a script without spaces that have wanted characters, joined where they meet."""
    is_marked = [False] * len(run)
    for each in wanted:
        at = run.find(each) if each else -1
        while at >= 0:
            is_marked[at : at + len(each)] = [True] * len(each)
            at = run.find(each, at + 1)
    edges = [at for at in range(len(run) + 1) if (at < len(run) and is_marked[at]) != (at > 0 and is_marked[at - 1])]
    return list(zip(edges[::2], edges[1::2], strict=True))
