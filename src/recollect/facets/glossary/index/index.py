"""The terms of one glossary, scored for a question by BM25, with names that the question contains above words.

The text of a term is its key, value, aliases and description together. A score is BM25's (Robertson and Zaragoza, 2009)
with k1 = 1.2, b = 0.75 and the IDF ln(1 + (N - n + 0.5) / (n + 0.5)), over the terms of this index only. A key or an
alias that occurs in the question adds the most that words could give, so that it is ranked above every term that only
shares words, and is never scored below `EXACT`. Logarithms are exact and sums have one order, so every machine computes
the same scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import ahocorasick_rs
import numpy as np
from numpy.typing import NDArray

from recollect.common.regexes import regex
from recollect.indexes.fixed_point import ONE, log_ratio
from recollect.indexes.words.fuzzy import Vocabulary
from recollect.text.folding import IGNORABLE, POINTS, same_letters

#: BM25's constants.
K1, B = 1.2, 0.75
#: The least score of a term whose key or alias occurs in the question.
EXACT = 3.0

#: A function from a text to its tokens, as the index compares them.
Tokenize = Callable[[str], Sequence[str]]


class Term(NamedTuple):
    """The part of a term that the index stores.

    Attributes:
        names: Its key and its aliases.
        counts: How often each token occurs in its text.
        length: The number of these tokens.
        slot: Its number in the postings.
    """

    key: str
    names: tuple[str, ...]
    counts: dict[str, int]
    length: int
    slot: int


class Scored(NamedTuple):
    """A term that answers a question.

    Attributes:
        id: The id of the term.
        exact: The names of it that occur in the question.
        words: The tokens that both share.
    """

    id: str
    score: float
    exact: tuple[str, ...]
    words: tuple[str, ...]


class Mention(NamedTuple):
    """An occurrence of a term in a text.

    Attributes:
        start: The offset of its first character.
        end: The offset after its last one.
        ids: The terms that have this name, those with this key first, then by key.
    """

    start: int
    end: int
    ids: tuple[str, ...]
    name: str


class TermIndex:
    """The terms of a glossary. Changed in place: a caller locks it.

    Args:
        tokenize: Returns the tokens of a text.
    """

    def __init__(self, tokenize: Tokenize) -> None:
        self._tokenize = tokenize
        self.terms: dict[str, Term] = {}
        self._ids: list[str] = []  # of each slot; a free one has a term no more
        self._free: list[int] = []
        self._lengths = np.zeros(0)  # of the term in each slot
        self._postings: dict[str, dict[int, int]] = {}  # token -> slot -> count
        self._arrays: dict[str, _Postings] = {}  # of the tokens that questions had
        self._named: dict[tuple[str, ...], dict[str, str]] = {}  # the tokens of a name -> the terms, and its spelling
        self._trie = NameTrie()  # of the same names
        self._length = self._tokens = 0
        self._vocabulary = Vocabulary()
        self._names: tuple[Names, list[tuple[str, ...]]] | None = None

    @property
    def tokens(self) -> int:
        """The number of pairs of a term and a token of it."""
        return self._tokens

    def __len__(self) -> int:
        return len(self.terms)

    def put(self, term_id: str, key: str, aliases: Sequence[str], text: str) -> None:
        """Insert a term, or replace it.

        Args:
            term_id: Its id.
            aliases: Its other names.
            text: All of its text, the names included.
        """
        self.remove(term_id)
        counts = Counter(self._tokenize(text))
        term = Term(key, (key, *aliases), dict(counts), counts.total(), self._new_slot(term_id))
        self.terms[term_id] = term
        self._lengths[term.slot] = term.length
        self._length += term.length
        self._tokens += len(term.counts)
        for token, count in term.counts.items():
            self._postings.setdefault(token, {})[term.slot] = count
            self._arrays.pop(token, None)
            self._vocabulary.add(token, token)
        for name in term.names:
            spelt = tuple(tokens(name))
            if spelt and term_id not in self._named.setdefault(spelt, {}):
                if not self._named[spelt]:
                    self._trie.add(spelt)
                self._named[spelt][term_id] = name

    def remove(self, term_id: str) -> None:
        """Remove a term, if it is there."""
        self._names = None
        term = self.terms.pop(term_id, None)
        if term is None:
            return
        self._free.append(term.slot)
        self._length -= term.length
        self._tokens -= len(term.counts)
        for token in term.counts:
            self._arrays.pop(token, None)
            del self._postings[token][term.slot]
            if not self._postings[token]:
                del self._postings[token]
        for spelt in {tuple(tokens(name)) for name in term.names} - {()}:
            del self._named[spelt][term_id]
            if not self._named[spelt]:
                del self._named[spelt]
                self._trie.remove(spelt)

    def _new_slot(self, term_id: str) -> int:
        if self._free:
            slot = self._free.pop()
            self._ids[slot] = term_id
            return slot
        self._ids.append(term_id)
        if len(self._ids) > len(self._lengths):
            self._lengths = np.concatenate((self._lengths, np.zeros(max(64, len(self._lengths)))))
        return len(self._ids) - 1

    def search(self, question: str, k: int | None = None, *, typos: bool = False) -> list[Scored]:
        """Return the terms that share a token or a name with a question, best first, ties by key and id.

        Args:
            k: Maximum number of terms; None: no limit.
            typos: Whether a token that is in no term stands for the known ones that resemble it, with a lower weight.

        Cost:
            In proportion to the terms that share a token with the question.
        """
        if not self.terms:
            return []
        weights = self._weights(question, typos=typos)
        factors = {token: weight * self._idf(token) * (K1 + 1) for token, weight in weights.items()}
        scores = np.zeros(len(self._ids))
        norms = K1 * (1 - B + B * self._lengths[: len(self._ids)] / max(self._length / len(self.terms), 1e-9))
        for token, factor in factors.items():
            slots, counts = self._array(token)
            scores[slots] += factor * counts / (counts + norms[slots])
        exact = self._exact(question)
        ceiling = sum(factors.values())
        for term_id in exact:
            slot = self.terms[term_id].slot
            scores[slot] = max(EXACT, scores[slot] + ceiling)
        found = np.flatnonzero(scores)
        if k is not None and 0 < k < len(found):
            least = np.partition(scores[found], len(found) - k)[len(found) - k]
            found = found[scores[found] >= least]
        best = sorted((-scores[slot].item(), self.terms[self._ids[slot]].key, self._ids[slot]) for slot in found)
        return [
            Scored(term_id, -score, tuple(exact.get(term_id, ())), self._shared(term_id, factors))
            for score, _, term_id in best[:k]
        ]

    def mentions(self, text: str) -> list[Mention]:
        """Return where terms occur in a text, in order, without overlaps; of names at one place the longest.

        Cost:
            Linear in the text; after a change also in the names of all terms.
        """
        if self._names is None:
            known = list(self._named)
            self._names = Names(known), known
        names, known = self._names
        out: list[Mention] = []
        for start, end, number in names.find(text):
            named = self._named[known[number]]
            ids = list(named)
            if len(ids) > 1:
                ids.sort(key=lambda each: (named[each] != self.terms[each].key, self.terms[each].key, each))
            out.append(Mention(start, end, tuple(ids), named[ids[0]]))
        return out

    def shared_names(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the names that several terms have, sorted, each with the ids of the terms, sorted by key."""
        shared = [
            (min(named.values()), tuple(sorted(named, key=lambda each: (self.terms[each].key, each))))
            for named in self._named.values()
            if len(named) > 1
        ]
        return sorted(shared)

    def _weights(self, question: str, *, typos: bool) -> dict[str, float]:
        """Return the weight of each token of a question that terms have: its number of occurrences."""
        weights: dict[str, float] = {}
        for token, count in Counter(self._tokenize(question)).items():
            if token in self._postings:
                weights[token] = weights.get(token, 0.0) + count
            elif typos:
                for similar in self._vocabulary.similar(token, token, lambda word, _: word in self._postings):
                    weights[similar.word] = weights.get(similar.word, 0.0) + count * (similar.dice / ONE)
        return dict(sorted(weights.items()))

    def _idf(self, token: str) -> float:
        count = len(self._postings[token])
        return log_ratio(2 * len(self.terms) + 2, 2 * count + 1) / ONE

    def _array(self, token: str) -> _Postings:
        found = self._arrays.get(token)
        if found is None:
            postings = self._postings[token]
            found = _Postings(np.array(list(postings), dtype=np.int64), np.array(list(postings.values()), dtype=float))
            self._arrays[token] = found
        return found

    def _exact(self, question: str) -> dict[str, list[str]]:
        """Return the names that a question contains, by the id of the term."""
        found: dict[str, list[str]] = {}
        for spelt in sorted(self._trie.within(list(tokens(question))), key=len):
            for term_id, name in self._named[spelt].items():
                if name not in found.setdefault(term_id, []):
                    found[term_id].append(name)
        return found

    def _shared(self, term_id: str, factors: dict[str, float]) -> tuple[str, ...]:
        counts = self.terms[term_id].counts
        return tuple(token for token in factors if token in counts)


class _Postings(NamedTuple):
    """The terms that have a token: their slots, and how often they have it."""

    slots: NDArray[np.int64]
    counts: NDArray[np.float64]


# The names that occur in a question, all of them: also those within others, which the automaton leaves out.
#
# A trie over tokens, changed with each term, so that a question after a change costs no more than any other.

#: Depth of the trie, in tokens. A longer name whose beginning occurs is searched for as a whole.
DEPTH = 32
#: The key of the names that end at a node, or that are longer. No token is empty.
_HERE = ""

Spelt = tuple[str, ...]


class NameTrie:
    """Names, as sequences of tokens. Changed in place: a caller locks it.

    >>> names = NameTrie()
    >>> names.add(("private", "data"))
    >>> names.add(("data",))
    >>> sorted(names.within(["my", "private", "data"]))
    [('data',), ('private', 'data')]
    """

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self._numbers: dict[Spelt, int] = {}  # as a tuple computes its hash each time that it is looked up
        self._next = 0

    def add(self, name: Spelt) -> None:
        """Insert a name of at least one token."""
        node = self._root
        for token in name[:DEPTH]:
            node = node.setdefault(token, {})
        node.setdefault(_HERE, {})[self._next] = name
        self._numbers[name] = self._next
        self._next += 1

    def remove(self, name: Spelt) -> None:
        """Remove a name that was inserted."""
        path = [self._root]
        for token in name[:DEPTH]:
            path.append(path[-1][token])
        del path[-1][_HERE][self._numbers.pop(name)]
        if not path[-1][_HERE]:
            del path[-1][_HERE]
        for token, above, node in zip(reversed(name[:DEPTH]), reversed(path[:-1]), reversed(path[1:]), strict=True):
            if node:
                return
            del above[token]

    def within(self, tokens: Sequence[str]) -> list[Spelt]:
        """Return the names that occur in a sequence of tokens, each once.

        Cost:
            `DEPTH` steps for each token at most, and one search of the tokens for each longer name that may occur.
        """
        said = tuple(tokens)
        found: dict[int, Spelt] = {}
        for start in range(len(said)):
            node = self._root
            for token in said[start : start + DEPTH]:
                node = node.get(token)  # type: ignore[assignment]
                if node is None:
                    break
                if _HERE in node:
                    found |= node[_HERE]
        longer = [name for name in found.values() if len(name) > DEPTH]
        return [name for name in found.values() if len(name) <= DEPTH] + _occurring(longer, said)


def _occurring(names: list[Spelt], said: Spelt) -> list[Spelt]:
    """Return those of some names that occur in tokens: as texts of one character for each token, which are searched."""
    symbols: dict[str, str] = {}
    written = ["".join(symbols.setdefault(token, chr(len(symbols) + 1)) for token in name) for name in names]
    text = "".join(symbols.get(token, "\0") for token in said)
    return [name for name, symbol in zip(names, written, strict=True) if symbol in text]


# Finds where known names occur in a text: the longest name at each place, at word boundaries, in linear time.
#
# A text is read as tokens: a run of letters and digits, a single character of a script that writes without spaces, or a
# single other character that is not white space. Each token that occurs in a name is one symbol of an alphabet, all
# others are another, and an Aho-Corasick automaton over these symbols finds the names. So a name can only begin and end
# where a token does: "cat" is not found in "category", and "C" not in "C++" if "C++" is a name, too.
#
# Tokens are equal if they have the same letters (`text.folding`): without regard to case, compatibility variants and
# points that writers leave out; accents count. A plus, a sharp or a full stop that is part of a name belongs to its
# token: "C" is not found in "C#" or "C++", nor "NET" in ".NET". White space between tokens makes no difference.

#: Scripts that write words without spaces: Thai, Lao, Myanmar, Khmer, kana and Han.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_LETTER = f"[^\\W_{_UNSPACED}]"
#: Combining marks of Latin, points of Arabic and Hebrew, the scripts of India, whose vowel signs are no letters, and
#: what is no part of a word, such as a joiner.
_MARK = f"[\u0300-\u036f\u0900-\u0dff{POINTS}{IGNORABLE}]"
#: Signs that are part of a name at its end, and at its begin.
_SIGNS, _POINT = r"(?:(?:\+\+|#)(?![^\W\d]|[+#])|\+(?![\w+#]))", rf"(?<![\w.])\.(?={_LETTER})"
#: White space with the token after it. Only at the end of a text is there none.
_TOKEN = regex(
    rf"\s*+(?:(?:{_POINT})?+{_LETTER}++(?:{_MARK}++{_LETTER}*+)*+(?:{_SIGNS})?+"
    rf"|{_MARK}++(?:{_LETTER}++{_MARK}*+)*+|\S[{IGNORABLE}]*+)?+",
)
#: The symbol of tokens that occur in no name, and the first symbol of those that do.
_UNKNOWN, _FIRST = "\x00", 1
_SURROGATES = range(0xD800, 0xE000)


class NameSpan(NamedTuple):
    """An occurrence of a name in a text.

    Attributes:
        start: The offset of its first character.
        end: The offset after its last character.
        name: The number of the name.
    """

    start: int
    end: int
    name: int


class Names:
    """Names to be found in texts.

    Args:
        names: The tokens of each name. One without a token is never found, and of equal ones the first is.

    Cost:
        Linear in the names.
    """

    def __init__(self, names: Iterable[Iterable[str]]) -> None:
        symbols = _Symbols()
        known: dict[str, int] = {}
        for number, name in enumerate(names):
            spelt = "".join(map(symbols.added, name))
            if spelt:
                known.setdefault(spelt, number)
        symbols.clear()  # of the tokens as they are written; those of folded tokens stay
        self._symbols = symbols
        self._numbers = list(known.values())
        self._automaton = ahocorasick_rs.AhoCorasick(list(known), matchkind=ahocorasick_rs.MatchKind.LeftmostLongest)

    def find(self, text: str) -> list[NameSpan]:
        """Return the occurrences in a text, in order, without overlaps; of those that begin at a place the longest.

        Cost:
            Linear in the text, whatever the names are: about 7 milliseconds for 100 KB.
        """
        pieces = _TOKEN.findall(text)
        ends = list(accumulate(map(len, pieces)))
        symbols = list(map(self._symbols.__getitem__, pieces))
        if "" in symbols:  # pieces of nothing but ignorable characters
            kept = [at for at, symbol in enumerate(symbols) if symbol]
            pieces, ends = [pieces[at] for at in kept], [ends[at] for at in kept]
        spelt = "".join(symbols)
        return [
            NameSpan(ends[start] - len(pieces[start].lstrip()), ends[end - 1], self._numbers[number])
            for number, start, end in self._automaton.find_matches_as_indexes(spelt)
        ]


class _Symbols(dict[str, str]):
    """The symbol of each token as it is written, with the white space before it, for those that were read lately."""

    #: Maximum number of tokens that are kept.
    _MOST = 1 << 16

    def __init__(self) -> None:
        super().__init__()
        self._of_folded: dict[str, str] = {}

    def added(self, folded: str) -> str:
        """Return the symbol of a folded token; a new one if it has none."""
        return self._of_folded.setdefault(folded, _symbol(len(self._of_folded)))

    def __missing__(self, token: str) -> str:
        if len(self) >= self._MOST:
            self.clear()
        folded = same_letters(token.lstrip())
        symbol = self[token] = self._of_folded.get(folded, _UNKNOWN) if folded or not token.strip() else ""
        return symbol


def tokens(text: str) -> Iterator[str]:
    """Yield the folded tokens of a text, except those of nothing but ignorable characters.

    >>> list(tokens("The C++ of 2026: 猫と Résumé"))
    ['the', 'c++', 'of', '2026', ':', '猫', 'と', 'résumé']
    """
    return filter(None, map(same_letters, map(str.lstrip, _TOKEN.findall(text))))


def _symbol(number: int) -> str:
    """Return a character for each number, without surrogates."""
    point = _FIRST + number
    return chr(point if point < _SURROGATES.start else point + len(_SURROGATES))
