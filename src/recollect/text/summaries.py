"""An extractive summary: the sentences of some texts that together say most, word for word and in their order.

It needs no model and invents nothing. Each word of the texts has a weight, which grows with the number of texts that
have it, and more so for names and numbers; a sentence is worth the words that no chosen sentence has. The sentence with
the most worth, squared, for its length is chosen until the room is used up. Sums are of integers, so the result is the
same on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from recollect.common.regexes import regex
from recollect.text.pieces import SENTENCE_END
from recollect.text.signs import distinct_signs
from recollect.text.words import language_of, marked_runs, runs, terms

#: Maximum number of characters of a summary.
LONGEST = 2000
#: Maximum number of characters of each text that are considered, and of one sentence.
_MOST_READ, _LONGEST_SENTENCE = 20_000, 500
#: The weight of a word beyond that of one that a single text has, for each doubling of the texts that have it.
_SHARED = 2
#: How much more a word with a digit, and a name, weigh.
_NUMBER, _NAME = 2, 2
_LINE = regex(r"[^\r\n]+")
#: The factor by which worth is multiplied before it is divided by a length, to compare integers.
_SCALE = 1 << 20


class _Sentence(NamedTuple):
    """A sentence.

    Attributes:
        text: The sentence.
        words: Its words, each once.
    """

    text: str
    words: frozenset[str]


def sentences(text: str) -> list[str]:
    """Divide a text into sentences; a line end also ends one.

    >>> sentences("It rained. We stayed in!\\nNext day: sun")
    ['It rained.', 'We stayed in!', 'Next day: sun']
    """
    found = []
    for line in _LINE.findall(text):
        start = 0
        for end in SENTENCE_END.finditer(line):
            found.append(line[start : end.end()].strip())
            start = end.end()
        found.append(line[start:].strip())
    return [each for each in found if each]


def extractive(texts: Sequence[str], limit: int = LONGEST) -> str:
    """Return the sentences of some texts that together say most, in their order, one on a line.

    >>> extractive(["Ana moved to Oslo. Hello!", "Ana moved to Oslo.", "She works at the harbour."], 46)
    'Ana moved to Oslo.\\nShe works at the harbour.'

    Args:
        texts: The texts, in the order of the summary.
        limit: Maximum number of characters.

    Returns:
        The summary; "" if no text has a word, or none of the sentences fits.

    Cost:
        O(n log n) for n words. Of each text the first 20,000 characters are considered.
    """
    found: list[_Sentence] = []
    counts: Counter[str] = Counter()
    boosts: dict[str, int] = {}
    for text in texts:
        language = language_of(text[:_MOST_READ])
        of_text: set[str] = set()
        for sentence in sentences(text[:_MOST_READ]):
            words = frozenset(term for term, _ in terms(sentence, language)) or frozenset(_bare(sentence))
            found.append(_Sentence(sentence, words))
            of_text |= words
            for name in names_in(sentence):
                boosts.update((term, _NAME) for term, _ in terms(name, language))
        counts.update(of_text)
    weights = {
        word: (1 + _SHARED * (count.bit_length() - 1))
        * boosts.get(word, 1)
        * (_NUMBER if any(map(str.isdigit, word)) else 1)
        for word, count in counts.items()
    }
    chosen = _chosen(found, weights, limit)
    return "\n".join(found[at].text for at in sorted(chosen))


def _bare(sentence: str) -> list[str]:
    """Return the words of a sentence that has only stop words."""
    return [run for run, _ in runs(sentence)]


def _chosen(found: Sequence[_Sentence], weights: dict[str, int], limit: int) -> list[int]:
    """Return the indexes of sentences, by lazy greedy choice: worth only decreases as more words are covered."""

    def worth(at: int) -> int:
        new = sum(weights[word] for word in found[at].words if word not in covered)
        return new * new * _SCALE // (len(found[at].text) + 1)  # squared, so that scraps do not use up the room

    covered: set[str] = set()
    room = limit + 1  # the last sentence needs no line end
    queue = [
        (-worth(at), at)
        for at, each in enumerate(found)
        if each.words and len(each.text) <= min(limit, _LONGEST_SENTENCE)
    ]
    heapify(queue)
    chosen: list[int] = []
    while queue:
        _, at = heappop(queue)
        if len(found[at].text) + 1 > room:
            continue
        now = -worth(at)
        if now == 0:
            continue
        if queue and (now, at) > queue[0]:
            heappush(queue, (now, at))
            continue
        chosen.append(at)
        covered |= found[at].words
        room -= len(found[at].text) + 1
    return chosen


# What a text states apart from its words: numbers, negations and names. Texts that differ in one of them differ.
#
# Two texts can share nearly all words and still say opposite things. What compares texts by their words (duplicates,
# echoes) compares these exactly.

#: Words that negate or limit. A text with one of them says something else than the same text without it.
_NEGATIONS = frozenset(
    "no not never none nothing neither nor without cannot can't don't doesn't didn't isn't aren't wasn't weren't won't "
    "wouldn't shouldn't couldn't hasn't haven't hadn't nicht kein keine keinen nie ohne pas jamais sans non sin nunca "
    "nao niet geen".split()
)
#: A word that does not begin a sentence.
_INNER_WORD = regex(r"(?<=[^.!?…\s]\s)[^\W\d_][\w'’-]*")
_LIST_NUMBER = regex(r"[+-]?\d[\d.,:/-]*")


class Statement(NamedTuple):
    """The statements of a text.

    Attributes:
        words: Its words, folded, in order.
        stems: The stems of its content words, in order.
        numbers: Its numbers, in ascending order as texts.
        negations: How many words negate it.
        names: Its words with a capital letter, folded, except those that begin a sentence.
        marked: Its words with their accents.
        signs: Its tokens whose signs say something.
    """

    words: tuple[str, ...]
    stems: tuple[str, ...]
    numbers: tuple[str, ...]
    negations: int
    names: frozenset[str]
    marked: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()


def statement(text: str, language: str | None = None) -> Statement:
    """Return what a text states.

    >>> said = statement("She never pays Ana 20.5 euros.")
    >>> said.numbers, said.negations, sorted(said.names), said.stems
    (('20.5',), 1, ['ana'], ('never', 'pay', 'ana', '20', '5', 'euro'))

    Args:
        language: Its language, as a BCP 47 tag; None: detected.
    """
    words = tuple(run for run, _ in runs(text))
    stems = tuple(term for term, _ in terms(text, language_of(text, language)))
    numbers = tuple(sorted(number.rstrip(".,:/-") for number in _LIST_NUMBER.findall(text)))
    negations = sum(word in _NEGATIONS for word in words)
    marked = words if text.isascii() else tuple(marked_runs(text))
    return Statement(words, stems, numbers, negations, names_in(text), marked, distinct_signs(text))


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
