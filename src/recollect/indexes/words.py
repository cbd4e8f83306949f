"""The word index: BM25 with conversation context, in integers.

For each term there are postings (document, position). A document's mass of a term is its own count plus what the turns
around it lend: their counts at decaying weight, where a long turn lends no more than a short one would. The mass is
saturated against the document's length, both in absolute tokens, and weighted by how rare the term is among documents
and among tokens. Lengths are absolute, so nothing stored depends on an average, and a new turn changes no other's
postings: context is applied while a term's postings are walked.

Everything is fixed-point integer arithmetic (`indexes.fixed`), so a score is the exact sum of its shares and does not
depend on the order of adding. docs/architecture.md has the formulas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from recollect.indexes.documents import NONE, Document, Documents, Flags, Ints, Table
from recollect.indexes.fixed import BITS, ONE, SHARE_BITS, log_ratio
from recollect.indexes.vocabulary import Similar, Vocabulary, comparable
from recollect.text.words import stem

#: What the turns around lend, in tenths, nearest first; the turn right before lends more where it asked a question.
FROM_BEFORE = (4, 3, 1, 1)
FROM_AFTER = (2, 2, 1, 1)
AFTER_QUESTION = 6
#: A turn lends at most about so many tokens.
DONOR_CAP = 12
#: K = 1.5 (0.4 + 0.6 length / 40), as 0.6 + 0.0225 length.
PIVOT_CONSTANT, PIVOT_SLOPE = 6 * ONE // 10, 225
#: The saturated mass is at most k1 + 1 = 2.5, as a fraction.
TOP = (5, 2)
#: Before a term that is a speaker's name: no word begins so.
_SPEAKER = "@"
#: Before a term that is a word as it was written, stem and all: which words a view knows.
_WORD = "="
_PLACE_BITS = 16
#: Positions beyond are all the last; two below the end, so that "the place after next" stays in the document.
_LAST_PLACE = (1 << _PLACE_BITS) - 3
_MOST_COUNT = (1 << 15) - 1
_MOST_ASKED = 15


def _known_word(word: str, stem: str) -> str:
    return f"{_WORD}{word}={stem}"


class QueryTerm(NamedTuple):
    """A term that is asked for.

    word     as the asker wrote it
    weight   how much it counts, with 16 bits of fraction: how often it was asked, or how alike it is to what was asked
    like     the known word that stands in for an unknown one; "" where the word itself is meant
    """

    term: str
    word: str
    weight: int
    like: str = ""


class Match(NamedTuple):
    """A word of the question in a hit.

    share   of the score, with SHARE_BITS of fraction
    own     the part of it that the record's own text has; the rest comes from the turns in `lent_by`
    """

    word: str
    like: str
    share: int
    own: int
    lent_by: tuple[str, ...]


class _Postings:
    """Occurrences of a term, document number and position packed in one rising column that grows at its end."""

    __slots__ = ("column", "count")

    def __init__(self, column: Ints | None = None) -> None:
        self.column: Ints = np.zeros(2, dtype=np.int64) if column is None else column
        self.count = 0 if column is None else len(column)

    def append(self, number: int, position: int) -> None:
        if self.count == len(self.column):
            self.column = np.concatenate([self.column, np.zeros_like(self.column)])
        self.column[self.count] = number << _PLACE_BITS | min(position, _LAST_PLACE)
        self.count += 1


class Found(NamedTuple):
    """A term of a question with what the index has of it: its idf (16 bits), documents (rising) and counts."""

    asked: QueryTerm
    idf: int
    numbers: Ints
    counts: Ints


@dataclass
class _Weighed:
    """One term's part in the scores: the documents that it reaches, and their mass."""

    asked: QueryTerm
    numbers: Ints  # rising
    own: Ints
    mass: Ints
    share: Ints


@dataclass
class Scores:
    """What the words of a question give to each document.

    shares   signal -> one number for each document, with SHARE_BITS of fraction; the score is their sum
    mass     of the question: 2.5 times the sum of its terms' weights, with 16 bits of fraction
    """

    shares: dict[str, Ints]
    mass: int
    found: list[Found]
    _weighed: list[_Weighed] = field(default_factory=list)
    _table: Table | None = None
    #: What each document's manner and speaker multiply its shares by (16 bits); None before they are applied.
    factor: Ints | None = None

    def total(self) -> Ints:
        """The score of each document, with SHARE_BITS of fraction."""
        total: Ints = np.sum(list(self.shares.values()), axis=0, dtype=np.int64)
        return total

    def matches(self, numbers: Sequence[int]) -> list[list[Match]]:
        """For each document, the words of the question that it has or is lent, greatest share first."""
        hits = np.array(numbers, dtype=np.int64)
        around = self._around(hits)
        out: list[list[Match]] = [[] for _ in numbers]
        for part in self._weighed:
            if not len(part.numbers):
                continue
            places, there = _places(part.numbers, hits)
            lends = _has(part, around)
            for at in np.flatnonzero(there & (part.share[places] != 0)).tolist():
                place = places[at]
                share, own, mass = int(part.share[place]), int(part.own[place]), int(part.mass[place])
                if self.factor is not None:
                    share = share * int(self.factor[hits[at]]) >> BITS
                lenders = self._ids(around[lends[:, at], at]) if mass > own else ()
                out[at].append(Match(part.asked.word, part.asked.like, share, share * own // mass, lenders))
        for found in out:
            found.sort(key=lambda match: (-match.share, match.word, match.like))
        return out

    def _ids(self, numbers: Ints) -> tuple[str, ...]:
        assert self._table is not None
        return tuple(self._table.ids[number] for number in numbers.tolist())

    def _around(self, hits: Ints) -> Ints:
        """The turns around each document, a row for each step, nearest before first; NONE where there is none."""
        table = self._table
        assert table is not None
        rows = []
        for links, steps in ((table.before, len(FROM_BEFORE)), (table.after, len(FROM_AFTER))):
            at = hits
            for _ in range(steps):
                at = np.where(at == NONE, NONE, links[at])
                at = np.where(at >= table.count, NONE, at)
                rows.append(at)
        return np.stack(rows)


def _places(numbers: Ints, wanted: Ints) -> tuple[Ints, Flags]:
    """Where the wanted stand in rising numbers, of which there are some, and whether they do."""
    places = np.minimum(numbers.searchsorted(wanted), len(numbers) - 1)
    return places, numbers[places] == wanted


def _has(part: _Weighed, wanted: Ints) -> Flags:
    """Which documents have the term themselves."""
    places, there = _places(part.numbers, wanted)
    found: Flags = there & (part.own[places] != 0)
    return found


class WordView:
    """The index of one moment: immutable, and a pure function of the records that it holds."""

    def __init__(
        self, table: Table, postings: dict[str, _Postings], vocabulary: Vocabulary, borrowed: Mapping[str, int]
    ) -> None:
        self.table = table
        self._postings = postings
        self._vocabulary = vocabulary
        self._borrowed = borrowed

    def at(self, now: int) -> WordView:
        """The view without the records that are due at `now`."""
        return self._of(self.table.at(now))

    def only(self, record_ids: Iterable[str]) -> WordView:
        """The view of some records, as if there were no others. Cost: O(documents)."""
        return self._of(self.table.only(self.table.mask(record_ids)))

    def _of(self, table: Table) -> WordView:
        return self if table is self.table else WordView(table, self._postings, self._vocabulary, self._borrowed)

    def known(self, term: str) -> bool:
        """Whether a live document has a term."""
        return len(self.occurrences(term)) > 0

    def occurrences(self, term: str) -> Ints:
        """Where a term stands in live documents: number << 16 | position, rising. Cost: O(occurrences)."""
        end = min(self.table.count, self._borrowed.get(term, self.table.count))
        held = self._postings.get(term)
        if held is None:
            return np.zeros(0, dtype=np.int64)
        column, count = held.column, held.count
        packed = column[: min(count, len(column))]
        packed = packed[: int(np.searchsorted(packed, end << _PLACE_BITS))]
        live: Ints = packed[self.table.alive[packed >> _PLACE_BITS]]
        return live

    def postings(self, term: str) -> tuple[Ints, Ints]:
        """Live documents (rising) and counts of a term. Cost: O(occurrences)."""
        numbers = self.occurrences(term) >> _PLACE_BITS
        starts = np.flatnonzero(np.diff(numbers, prepend=NONE))
        counts = np.diff(starts, append=len(numbers))
        return numbers[starts], np.minimum(counts, _MOST_COUNT)

    def speaks(self, term: str) -> bool:
        """Whether a term is part of a speaker's name."""
        return self.known(_SPEAKER + term)

    def speakers(self, term: str) -> set[int]:
        """The speakers (numbers of `Table.speaker`) whose names have a term."""
        numbers = self.occurrences(_SPEAKER + term) >> _PLACE_BITS
        return set(np.unique(self.table.speaker[numbers]).tolist())

    def similar(self, word: str) -> list[Similar]:
        """Known words that resemble an unknown one."""
        return self._vocabulary.similar(word, lambda known, stem: self.known(_known_word(known, stem)))

    def idf(self, documents: int, occurrences: int) -> int:
        """The mean of two inverse frequencies, with 16 bits of fraction.

        ln(1 + (N - df + 1/2) / (df + 1/2)) over documents and ln(1 + T / (cf + 1)) over tokens. The second keeps
        telling words apart where messages are so long that each holds most words.
        """
        live, tokens = self.table.live_count, self.table.tokens
        by_document = log_ratio(2 * live + 2, 2 * documents + 1)
        by_token = log_ratio(tokens + occurrences + 1, occurrences + 1)
        return (by_document + by_token) // 2

    def score(self, asked: Sequence[QueryTerm]) -> Scores:
        """The shares of every document for a question.

        Cost: in proportion to the postings of the terms, times the nine places of a context.
        """
        found = []
        for query in asked:
            numbers, counts = self.postings(query.term)
            found.append(Found(query, self.idf(len(numbers), int(counts.sum())), numbers, counts))
        weights = [each.asked.weight * each.idf >> BITS for each in found]
        top, below = TOP
        whole = sum(top * weight // below for weight in weights)
        shares: dict[str, Ints] = {
            name: np.zeros(self.table.count, dtype=np.int64) for name in ("words", "trigram", "context")
        }
        scores = Scores(shares, whole, found, _table=self.table)
        if not whole:
            return scores
        for (query, _, numbers, counts), weight in zip(found, weights, strict=True):
            if not len(numbers):
                continue
            own, mass = self._masses(numbers, counts)
            reached = np.flatnonzero(mass)
            own, mass = own[reached], mass[reached]
            saturated = weight * top * mass // (below * (mass + self._pivot(reached)))
            share = (saturated << SHARE_BITS) // whole
            part_own = share * own // mass
            shares["trigram" if query.like else "words"][reached] += part_own
            shares["context"][reached] += share - part_own
            scores._weighed.append(_Weighed(query, reached, own, mass, share))
        return scores

    def _masses(self, numbers: Ints, counts: Ints) -> tuple[Ints, Ints]:
        """For every document: its own mass of a term, and that with what its neighbours lend."""
        table = self.table
        own: Ints = np.zeros(table.count, dtype=np.int64)
        own[numbers] = counts << BITS
        mass = own.copy()
        lent = (counts * DONOR_CAP << BITS) // np.maximum(table.length[numbers], DONOR_CAP)
        asked = np.where(table.asks[numbers], AFTER_QUESTION, 0)
        # A turn lends forward what it gives to those it stands before, and backward likewise. The documents at one
        # distance are all different, so adding by index loses nothing.
        for links, tenths in ((table.after, FROM_BEFORE), (table.before, FROM_AFTER)):
            at = numbers
            amount = lent
            for step, weight in enumerate(tenths):
                at = links[at]
                there = (at != NONE) & (at < table.count)
                at, amount = at[there], amount[there]
                if not len(at):
                    break
                extra = asked if step == 0 and links is table.after else 0
                lending = weight + (extra[there] if isinstance(extra, np.ndarray) else 0)
                mass[at] += amount * lending // 10
        return own, mass

    def _pivot(self, numbers: Ints) -> Ints:
        """K of each document: how much mass is half of enough, by its length and what is lent to it."""
        table = self.table
        length = table.length[numbers] << BITS
        for links, tenths in ((table.before, FROM_BEFORE), (table.after, FROM_AFTER)):
            at = numbers
            places = np.arange(len(numbers))
            for step, weight in enumerate(tenths):
                at = links[at]
                there = (at != NONE) & (at < table.count)
                at, places = at[there], places[there]
                if not len(at):
                    break
                lending: Ints = np.full(len(at), weight, dtype=np.int64)
                if step == 0 and links is table.before:
                    lending += np.where(table.asks[at], AFTER_QUESTION, 0)
                length[places] += (np.minimum(table.length[at], DONOR_CAP) * lending << BITS) // 10
        return PIVOT_CONSTANT + length * PIVOT_SLOPE // 10_000


class WordIndex:
    """The index as it is built: one writer, any number of views."""

    def __init__(self) -> None:
        self._documents = Documents()
        self._postings: dict[str, _Postings] = {}
        self._vocabulary = Vocabulary()
        # Terms whose postings belong to the index that this one was forked from -> the first document not ours there.
        self._borrowed: dict[str, int] = {}

    def fork(self) -> WordIndex:
        """A copy that can go its own way: for a batch that wants to find what it has not yet committed.

        Cost: O(number of records and terms); postings are copied only when they grow.
        """
        copy = WordIndex()
        copy._documents = self._documents.fork()
        copy._postings = dict(self._postings)
        copy._vocabulary = self._vocabulary  # only ever grows, and words without documents are passed over
        copy._borrowed = dict.fromkeys(self._postings, self._documents.count) | self._borrowed
        return copy

    def apply(self, removed: Iterable[str], added: Iterable[Document]) -> None:
        """Take records out and put records in; one that changed is in both. Views are not touched.

        Cost: in proportion to the terms added, and one copy of three columns where something is removed.
        """
        for record_id in removed:
            self._documents.remove(record_id)
        for document in added:
            number = self._documents.add(document)
            for position, (term, _) in enumerate(document.terms):
                self._posted(term, number).append(number, position)
            for name in document.names:
                self._posted(_SPEAKER + name, number).append(number, 0)
            for word, term in {each.word: each.term for each in document.terms if comparable(each.word)}.items():
                self._posted(_known_word(word, term), number).append(number, 0)
                self._vocabulary.add(word, term)

    def _posted(self, term: str, number: int) -> _Postings:
        """The postings of a term, ready for `number` to be appended."""
        postings = self._postings.get(term)
        if postings is None:
            postings = self._postings[term] = _Postings()
        elif term in self._borrowed:
            column = postings.column[: postings.count]
            # What the other index appended since the fork is not ours.
            ours = int(np.searchsorted(column, self._borrowed[term] << _PLACE_BITS))
            postings = self._postings[term] = _Postings(column[:ours].copy())
            del self._borrowed[term]
        return postings

    def view(self) -> WordView:
        """The index of this moment."""
        return WordView(self._documents.view(), self._postings, self._vocabulary, self._borrowed)


def asked_terms(view: WordView, wanted: Sequence[tuple[str, str]]) -> list[QueryTerm]:
    """The terms of a question: (term, word) pairs counted, and for each unknown word those that resemble it.

    The unknown word stays, with its full weight: what the memory does not know lowers every score. The names of
    speakers are left out where other words remain: they stand in the turns of others, not in what they say themselves.
    """
    wanted = [each for each in wanted if not view.speaks(stem(each[1]) if each[1] else each[0])] or wanted
    counts = Counter(term for term, _ in wanted)
    words = dict(reversed(wanted))  # the first word of each term
    asked = {
        term: QueryTerm(term, words[term] or term, min(count, _MOST_ASKED) * ONE) for term, count in counts.items()
    }
    for term, word in list(dict.fromkeys(wanted)):
        if not word or view.known(term):
            continue
        for like in view.similar(word):
            known = asked.get(like.stem)
            if known is None or known.weight < like.dice:
                asked[like.stem] = QueryTerm(like.stem, word, like.dice, like.word)
    return list(asked.values())
