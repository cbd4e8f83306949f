"""The word index: which documents have which words, and where.

A term's postings are its occurrences, document number and position. Most lie in a segment, whose arrays never change;
what came since is the tail, whose columns grow at their end. A view is what both were at one moment, less the documents
that are dead there: immutable, and a pure function of the records that it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from recollect.indexes.documents.columns import NONE, Document, Flags, Ints
from recollect.indexes.documents.table import Documents, Table
from recollect.indexes.fixed_point import ONE, log_ratio
from recollect.indexes.words.fuzzy import Similar, Vocabulary
from recollect.indexes.words.postings import LAST_POSITION, POSITION_BITS, Postings, lengths_of, live
from recollect.indexes.words.segment import Segment
from recollect.indexes.words.surface_forms import comparable, form
from recollect.text.words import stem

_MOST_ASKED = 15
_NOTHING: Ints = np.zeros(0, dtype=np.int64)
#: What a document, each of its terms, and a term that is new take in a tail.
_DOCUMENT_BYTES, _TERM_BYTES, _NEW_TERM_BYTES = 1000, 32, 500
_NO_LENGTHS = np.zeros(0, dtype=np.uint16)


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


class _Tail:
    """Occurrences of a term in one rising column that grows at its end."""

    __slots__ = ("column", "count")

    def __init__(self, column: Ints | None = None) -> None:
        self.column: Ints = np.zeros(2, dtype=np.int64) if column is None else column
        self.count = 0 if column is None else len(column)

    def append(self, number: int, position: int) -> None:
        if self.count == len(self.column):
            self.column = np.concatenate([self.column, np.zeros_like(self.column)])
        self.column[self.count] = number << POSITION_BITS | min(position, LAST_POSITION)
        self.count += 1

    def all(self) -> Ints:
        """The occurrences of this moment."""
        column = self.column  # before the count: another thread may append meanwhile
        return column[: self.count]

    def until(self, number: int) -> Ints:
        """The occurrences in documents before a number."""
        held = self.all()
        if len(held) and held[-1] >> POSITION_BITS >= number:
            held = held[: held.searchsorted(number << POSITION_BITS)]
        return held


class WordView:
    """The index of one moment."""

    def __init__(
        self,
        table: Table,
        segment: Segment | None,
        tails: dict[str, _Tail],
        vocabulary: Vocabulary,
        borrowed: Mapping[str, int],
    ) -> None:
        self.table = table
        self.segment = segment
        self._tails = tails
        self._vocabulary = vocabulary
        self._borrowed = borrowed

    def at(self, now: int) -> WordView:
        """The view without the records that are due at `now`."""
        return self._of(self.table.at(now))

    def narrowed(self, name: Hashable, kept: Callable[[], Flags]) -> WordView:
        """The view of some documents, by a name under which it is kept for the next who asks (`Table.narrowed`)."""
        return self._of(self.table.narrowed(name, kept))

    def _of(self, table: Table) -> WordView:
        if table is self.table:
            return self
        return WordView(table, self.segment, self._tails, self._vocabulary, self._borrowed)

    # Where terms occur

    def _base(self, term: str) -> int:
        """The number of a term in the segment, or NONE."""
        return NONE if self.segment is None else self.segment.term(term)

    def _tail(self, term: str) -> Ints:
        tail = self._tails.get(term)
        if tail is None:
            return _NOTHING
        return tail.until(min(self.table.count, self._borrowed.get(term, self.table.count)))

    def _parts(self, term: str) -> tuple[Ints, Ints]:
        """The occurrences in the segment and in the tail, those of dead documents too."""
        number = self._base(term)
        if number == NONE:
            return _NOTHING, self._tail(term)
        assert self.segment is not None
        begin, end = self.segment.span(number)
        return self.segment.occurrences[begin:end], self._tail(term)

    def known(self, term: str) -> bool:
        """Whether a live document has a term."""
        if self.table.live_count == self.table.count and self._base(term) != NONE:
            return True
        alive = self.table.alive
        for part in self._parts(term):
            for at in range(0, len(part), 64):  # the first are mostly live
                if alive[part[at : at + 64] >> POSITION_BITS].any():
                    return True
        return False

    def occurrences(self, term: str) -> Ints:
        """Where a term stands in live documents: number << 16 | position, rising. Cost: O(occurrences)."""
        return live(np.concatenate(self._parts(term)), self.table)

    def gathered(self, terms: Sequence[str]) -> tuple[Postings, list[tuple[int, int]] | None]:
        """The postings of terms, for the kernels; and how many documents have each and how often, where it is known.

        It is known where all documents are live and nothing is in the tail. Cost: O(log terms) each, and O(tail).
        """
        segment, has_tails = self.segment, bool(self._tails)
        spans: list[tuple[int, int, int, int]] = []
        counts: list[tuple[int, int]] = []
        tails: list[Ints] = []
        begin = 0
        for term in terms:
            number = self._base(term)
            first = last = 0
            if number == NONE:
                counts.append((0, 0))
            else:
                assert segment is not None
                first, last = segment.span(number)
                counts.append(segment.counts(number))
            end = begin
            if has_tails and len(tail := self._tail(term)):
                end += len(tail)
                tails.append(tail)
            spans.append((first, last, begin, end))
            begin = end
        base, lengths = (_NOTHING, _NO_LENGTHS) if segment is None else (segment.occurrences, segment.lengths)
        places = np.array(spans, dtype=np.int64).reshape(-1, 4)
        known = not tails and self.table.live_count == self.table.count
        if not tails:
            return Postings(base, _NOTHING, places, lengths, _NO_LENGTHS), counts if known else None
        tail = tails[0] if len(tails) == 1 else np.concatenate(tails)
        return Postings(base, tail, places, lengths, lengths_of(self.table.length, tail)), None

    def having(self, terms: Iterable[str]) -> Flags:
        """Which documents have one of some terms, dead ones too. Cost: O(documents) bytes, O(occurrences)."""
        out: Flags = np.zeros(self.table.count, dtype=np.bool_)
        for term in terms:
            for part in self._parts(term):
                out[part >> POSITION_BITS] = True
        return out

    def tail_occurrences(self) -> tuple[list[str], Ints, Ints]:
        """The terms in the tail, how often each occurs there, and where, term after term: in dead documents too, and in
        those that came after this view.
        """
        borrowed = dict(self._borrowed)  # before the tails: one that is no longer borrowed is already its own there
        tails = self._tails.copy()  # as it may grow meanwhile
        held = [tail.until(borrowed[term]) if term in borrowed else tail.all() for term, tail in tails.items()]
        sizes = np.fromiter(map(len, held), dtype=np.int64, count=len(held))
        return list(tails), sizes, np.concatenate([_NOTHING, *held])

    # Words and names

    def speaks(self, term: str) -> bool:
        """Whether a term is part of a speaker's name."""
        return bool(self.table.speakers_named(term))

    def speakers(self, term: str) -> set[int]:
        """The speakers (numbers of `Table.speaker`) whose names have a term."""
        return set(self.table.speakers_named(term))

    def similar(self, word: str) -> list[Similar]:
        """Known words that resemble an unknown one."""
        return self._vocabulary.similar(word, lambda known, stem: self.known(form(known, stem)))

    def idf(self, documents: int, occurrences: int) -> int:
        """The mean of two inverse frequencies, with 16 bits of fraction.

        ln(1 + (N - df + 1/2) / (df + 1/2)) over documents and ln(1 + T / (cf + 1)) over tokens. The second keeps
        telling words apart where messages are so long that each holds most words.
        """
        count, tokens = self.table.live_count, self.table.tokens
        by_document = log_ratio(2 * count + 2, 2 * documents + 1)
        by_token = log_ratio(tokens + occurrences + 1, occurrences + 1)
        return (by_document + by_token) // 2


class WordIndex:
    """The index as it is built: one writer, any number of views.

    segment   what it begins with
    """

    def __init__(self, segment: Segment | None = None) -> None:
        self.segment = segment
        self.documents = Documents(segment)
        self._tails: dict[str, _Tail] = {}
        self._vocabulary = Vocabulary(segment)
        # Terms whose tails belong to the index that this one was forked from -> the first document not ours there.
        self._borrowed: dict[str, int] = {}
        #: About how much memory what is not in the segment takes.
        self.tail_bytes = 0

    def fork(self) -> WordIndex:
        """A copy that can go its own way: for a batch that wants to find what it has not yet committed.

        Cost: one copy of the columns, and of what is not in the segment; tails are copied only when they grow.
        """
        copy = WordIndex()
        copy.segment = self.segment
        copy.documents = self.documents.fork()
        copy._tails = dict(self._tails)
        copy._vocabulary = self._vocabulary  # only ever grows, and words without documents are passed over
        copy._borrowed = dict.fromkeys(self._tails, self.documents.count) | self._borrowed
        return copy

    def apply(self, removed: Iterable[str], added: Iterable[Document]) -> None:
        """Take records out and put records in; one that changed is in both. Views are not touched.

        Cost: in proportion to the terms added, and one copy of three columns where something is removed.
        """
        for record_id in removed:
            self.documents.remove(record_id)
        for document in added:
            number = self.documents.add(document)
            self.tail_bytes += _DOCUMENT_BYTES + len(document.payload) + _TERM_BYTES * len(document.terms)
            self.tail_bytes += _TERM_BYTES * len(document.filter_terms)
            for position, (term, _) in enumerate(document.terms):
                self._tail(term, number).append(number, position)
            for mark in document.filter_terms:
                self._tail(mark, number).append(number, 0)
            for word, term in {word: term for term, word in document.terms if comparable(word)}.items():
                self._tail(form(word, term), number).append(number, 0)
                self._vocabulary.add(word, term)

    def _tail(self, term: str, number: int) -> _Tail:
        """The tail of a term, ready for `number` to be appended."""
        tail = self._tails.get(term)
        if tail is None:
            tail = self._tails[term] = _Tail()
            self.tail_bytes += _NEW_TERM_BYTES + len(term)
        elif term in self._borrowed:
            # What the other index appended since the fork is not ours.
            tail = self._tails[term] = _Tail(tail.until(self._borrowed[term]).copy())
            del self._borrowed[term]
        return tail

    def view(self) -> WordView:
        """The index of this moment."""
        return WordView(self.documents.view(), self.segment, self._tails, self._vocabulary, self._borrowed)


def query_terms(view: WordView, wanted: Sequence[tuple[str, str]]) -> list[QueryTerm]:
    """The terms of a question: (term, word) pairs counted, and for each unknown word those that resemble it.

    The unknown word stays, with its full weight: what the memory does not know lowers every score. The names of
    speakers are left out where other words remain: they stand in the turns of others, not in what they say themselves.
    """
    if view.table.speakers.known:
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
