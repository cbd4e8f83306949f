"""The word index: which documents contain which terms, and at which positions.

The postings of a term are its occurrences, each a document number and a position. Most of them are in a segment, whose
arrays never change; those of later documents are in the tail, whose columns grow at their end. A view is the state of
both at one time, without dead documents: it is immutable, and a pure function of the live records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from recollect.indexes.documents.columns import COLUMNS, NONE, Document, Flags, Ints, Numbers
from recollect.indexes.documents.table import Table, TableBuilder
from recollect.indexes.ending import Ending
from recollect.indexes.fixed_point import ONE, log_ratio
from recollect.indexes.parameters import COMPOUND_WEIGHT
from recollect.indexes.words.compounds import related
from recollect.indexes.words.fuzzy import SimilarWord, Vocabulary
from recollect.indexes.words.novelty import by_time, new_words, novel_weights
from recollect.indexes.words.postings import Postings, live
from recollect.indexes.words.segment import LAST_POSITION, POSITION_BITS, Segment
from recollect.indexes.words.surface_forms import comparable, form
from recollect.indexes.words.titles import ANY_TITLE, other_terms, title_term
from recollect.text.background import SCALE, TEXTS, WORDS, Expected, background_of
from recollect.text.languages import ENGLISH
from recollect.text.words import stem

#: Maximum number of occurrences of a term in a question that increase its weight.
_MAX_QUERY_COUNT = 15
_NOTHING: Ints = np.zeros(0, dtype=np.int64)
_NO_LENGTHS = np.zeros(0, dtype=np.uint16)
#: Estimated bytes in a tail for a document, for each of its terms, and for a term that is new.
_DOCUMENT_BYTES, _TERM_BYTES, _NEW_TERM_BYTES = 1150, 36, 500


class QueryTerm(NamedTuple):
    """A term of a question.

    Attributes:
        term: The index term.
        word: The word as it was written in the question.
        weight: The number of its occurrences in the question, or the similarity to the original word, with 16 bits of
            fraction.
        like: The known word that replaces an unknown one; "" for the word itself.
        expected: How often it is expected in general language; None where that is not known (`text.background`).
    """

    term: str
    word: str
    weight: int
    like: str = ""
    expected: Expected | None = None


class _Tail:
    """The occurrences of a term in one ascending column that grows at its end.

    Attributes:
        number: The number of the term, in the segment or after those there.
    """

    __slots__ = ("column", "count", "number")

    def __init__(self, number: int, column: Ints | None = None) -> None:
        self.number = number
        self.column: Ints = np.zeros(2, dtype=np.int64) if column is None else column
        self.count = 0 if column is None else len(column)

    def append(self, number: int, position: int) -> None:
        if self.count == len(self.column):
            self.column = np.concatenate([self.column, np.zeros_like(self.column)])
        self.column[self.count] = number << POSITION_BITS | min(position, LAST_POSITION)
        self.count += 1

    def all(self) -> Ints:
        """Return the occurrences at this time."""
        column = self.column  # read before the count: another thread may append meanwhile
        return column[: self.count]

    def until(self, number: int) -> Ints:
        """Return the occurrences in documents below a number."""
        out = self.all()
        if len(out) and out[-1] >> POSITION_BITS >= number:
            out = out[: out.searchsorted(number << POSITION_BITS)]
        return out


class WordView:
    """An immutable view of the index.

    Attributes:
        table: The documents.
        segment: The segment; None if there is none.
        ending: When work on the view must end; None for no limit.
    """

    def __init__(
        self,
        table: Table,
        segment: Segment | None,
        tails: dict[str, _Tail],
        words: Sequence[Numbers],
        vocabulary: Vocabulary,
        borrowed: Mapping[str, int],
        ending: Ending | None = None,
    ) -> None:
        self.ending = ending
        self.table = table
        self.segment = segment
        self._tails = tails
        self._words = words
        self._vocabulary = vocabulary
        self._borrowed = borrowed

    def at(self, now: int) -> WordView:
        """Return the view without the records that are due at `now`."""
        return self._of(self.table.at(now, self._renewed))

    def narrowed(self, name: Hashable, kept: Callable[[], Flags]) -> WordView:
        """Return the view of some documents, cached by name (`Table.narrowed`)."""
        return self._of(self.table.narrowed(name, kept, self._renewed))

    def _renewed(self, table: Table, stale: Ints) -> Table:
        """Return a table of some of these documents with the weights of those turns counted again."""
        return table.with_weights(stale, self.counted_again(stale))

    def counted_again(self, turns: Ints) -> Ints:
        """Return the weights of turns by their new words, if no others of their groups exist (`words.novelty`).

        Args:
            turns: The turns, ascending.

        Cost:
            Proportional to the words of the turns, and if some are in the segment, to its frequent terms and to the
            occurrences of the others.
        """
        terms, numbers = self._words_in(turns)
        order = by_time({name: getattr(self.table, name) for name in COLUMNS}, turns, self.table.id)
        new = np.zeros(self.table.count, dtype=np.int64)
        new[order] = new_words(terms, numbers, order, self.table.group)
        return novel_weights(self.table.manner[turns], new[turns])

    def _words_in(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return the occurrences of words in documents, which ascend: a number for each term, and the documents."""
        terms, owners = [_NOTHING], [_NOTHING]
        segment, first = self.segment, 0
        if segment is not None:
            first = int(numbers.searchsorted(segment.count))
            if first:
                places = segment.places_in(numbers[:first])
                of = segment.offsets.searchsorted(places, side="right") - 1
                words = segment.are_words(of)
                terms.append(of[words])
                owners.append(segment.occurrences[places[words]] >> POSITION_BITS)
        later = numbers[first:]
        in_tail = [self._words[number] for number in (later - (0 if segment is None else segment.count)).tolist()]
        terms.extend(in_tail)
        owners.append(np.repeat(later, list(map(len, in_tail))))
        return np.concatenate(terms), np.concatenate(owners)

    def _of(self, table: Table) -> WordView:
        if table is self.table:
            return self
        return WordView(table, self.segment, self._tails, self._words, self._vocabulary, self._borrowed, self.ending)

    def until(self, ending: Ending) -> WordView:
        """Return the view for work that ends by a limit: the kernels look at it, and `check` does."""
        return WordView(self.table, self.segment, self._tails, self._words, self._vocabulary, self._borrowed, ending)

    def check(self) -> None:
        """Raise the error of the limit if the work is over. Called between the parts of a question."""
        if self.ending is not None:
            self.ending.check()

    # Occurrences of terms

    def _base(self, term: str) -> int:
        """Return the number of a term in the segment, or NONE."""
        return NONE if self.segment is None else self.segment.term(term)

    def _tail(self, term: str) -> Ints:
        tail = self._tails.get(term)
        if tail is None:
            return _NOTHING
        return tail.until(min(self.table.count, self._borrowed.get(term, self.table.count)))

    def _parts(self, term: str) -> tuple[Ints, Ints]:
        """Return the occurrences in the segment and in the tail, those in dead documents included."""
        number = self._base(term)
        if number == NONE:
            return _NOTHING, self._tail(term)
        assert self.segment is not None
        begin, end = self.segment.span(number)
        return self.segment.occurrences[begin:end], self._tail(term)

    def known(self, term: str) -> bool:
        """Return whether a live document contains a term, in its text or in a title."""
        return self.in_use(term) or self.in_titles(term)

    def in_titles(self, term: str) -> bool:
        """Return whether a live document has a term in a title."""
        return self.has_titles and self.in_use(title_term(term))

    @cached_property
    def has_titles(self) -> bool:
        """True if a live document has a title: without any, a question looks up none."""
        return self.in_use(ANY_TITLE)

    def in_use(self, term: str) -> bool:
        """Return whether a live document contains exactly this index term."""
        if self.table.live_count == self.table.count and self._base(term) != NONE:
            return True
        alive = self.table.alive
        for part in self._parts(term):
            for at in range(0, len(part), 64):  # the first block mostly contains a live one
                if alive[part[at : at + 64] >> POSITION_BITS].any():
                    return True
        return False

    def occurrences(self, term: str) -> Ints:
        """Return the occurrences of a term in live documents: number << 16 | position, ascending.

        Cost:
            O(occurrences).
        """
        base, tail = self._parts(term)
        return live(base if not len(tail) else tail if not len(base) else np.concatenate((base, tail)), self.table)

    def in_many(self, terms: Collection[str], least: int) -> bool:
        """Return whether `least` live documents or more contain any of some terms.

        Cost:
            O(log terms) for each, and O(occurrences) if there are as many.
        """
        if sum(len(part) for term in terms for part in self._parts(term)) < least:
            return False
        numbers = np.concatenate([self.occurrences(term) >> POSITION_BITS for term in terms])
        return len(np.unique(numbers)) >= least

    def gathered(self, terms: Sequence[str]) -> tuple[Postings, list[tuple[int, int]] | None]:
        """Return the postings of terms for the kernels, and the document and occurrence counts of each term, if known.

        They are known if all documents are live and none of the terms is in the tail.

        Cost:
            O(log terms) for each term, and O(tail).
        """
        segment, has_tails = self.segment, bool(self._tails)
        spans: list[tuple[int, int, int, int]] = []
        counts: list[tuple[int, int]] = []
        tails: list[Ints] = []
        numbers = []
        begin = 0
        for term in terms:
            number = self._base(term)
            numbers.append(number)
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
        rows = np.array(spans, dtype=np.int64).reshape(-1, 4)
        tail = _NOTHING if not tails else tails[0] if len(tails) == 1 else np.concatenate(tails)
        known = not tails and self.table.live_count == self.table.count
        return Postings(base, tail, rows, lengths, segment, tuple(numbers), self.ending), counts if known else None

    def having(self, terms: Iterable[str]) -> Flags:
        """Return which documents contain any of some terms, dead documents included.

        Cost:
            O(documents) bytes, O(occurrences).
        """
        out: Flags = np.zeros(self.table.count, dtype=np.bool_)
        for term in terms:
            for part in self._parts(term):
                out[part >> POSITION_BITS] = True
        return out

    def tail_occurrences(self) -> tuple[list[str], Ints, Ints]:
        """Return the terms in the tail, the number of occurrences of each, and the occurrences, term after term.

        They include occurrences in dead documents and in documents added after this view.
        """
        # Copied before the tails: a term that leaves `_borrowed` meanwhile already has its own tail there.
        borrowed = dict(self._borrowed)
        tails = self._tails.copy()  # another thread may add to it meanwhile
        columns = [tail.until(borrowed[term]) if term in borrowed else tail.all() for term, tail in tails.items()]
        sizes = np.fromiter(map(len, columns), dtype=np.int64, count=len(columns))
        return list(tails), sizes, np.concatenate([_NOTHING, *columns])

    # Words and names

    def is_speaker_name(self, term: str) -> bool:
        """Return whether a term is part of a speaker's name."""
        return bool(self.table.speakers_named(term))

    def speakers(self, term: str) -> set[int]:
        """Return the speakers (numbers of `Table.speaker`) whose names contain a term."""
        return set(self.table.speakers_named(term))

    def similar(self, word: str, stem: str) -> list[SimilarWord]:
        """Return known words that resemble an unknown one."""
        return self._vocabulary.similar(word, stem, lambda known, stem: self.in_use(form(known, stem)))

    def idf(self, documents: int, occurrences: int, expected: Expected | None) -> int:
        """Return the mean of two inverse frequencies, with 16 bits of fraction.

        They are ln(1 + (N - df + 1/2) / (df + 1/2)) over documents and ln(1 + T / (cf + 1)) over tokens. The second
        still distinguishes words if each message is long enough to contain most words. All four numbers include the
        background.

        Args:
            documents: The number of documents with the word.
            occurrences: Its number of occurrences in them.
            expected: The same in the background, if there is one.
        """
        count, tokens, texts, more, scale = self.table.live_count, self.table.tokens, 0, 0, 1
        if expected is not None:
            count, tokens, scale = count + TEXTS, tokens + TEXTS * WORDS, SCALE
            texts, more = expected
        by_document = log_ratio(scale * (2 * count + 2), scale * (2 * documents + 1) + 2 * texts)
        said = scale * (occurrences + 1) + more
        return (by_document + log_ratio(scale * tokens + said, said)) // 2


class WordIndex:
    """The index under construction: one writer, any number of views.

    Args:
        segment: The segment that it begins with.
    """

    def __init__(self, segment: Segment | None = None) -> None:
        self.segment = segment
        self.documents = TableBuilder(segment)
        self._tails: dict[str, _Tail] = {}
        #: The words of the text of each document after the segment, each once, by the number of its term.
        self._words: list[Numbers] = []
        self._vocabulary = Vocabulary(segment)
        # Term -> the first foreign document number, for terms whose tail belongs to the index from which this one was
        # forked.
        self._borrowed: dict[str, int] = {}
        #: Approximate memory in bytes of the rows and terms that are not in the segment.
        self.tail_bytes = 0

    def fork(self) -> WordIndex:
        """Return an independent copy, for a batch that reads its own uncommitted writes.

        Cost:
            One copy of the columns, and of the rows that are not in the segment; tails are copied only when they grow.
        """
        copy = WordIndex()
        copy.segment = self.segment
        copy.documents = self.documents.fork()
        copy._tails, copy._words = dict(self._tails), list(self._words)
        copy._vocabulary = self._vocabulary  # it only grows, and words without documents are skipped
        copy._borrowed = dict.fromkeys(self._tails, self.documents.count) | self._borrowed
        return copy

    def apply(self, removed: Iterable[str], added: Iterable[Document]) -> None:
        """Remove and add records; a record that changed is in both. Existing views do not change.

        Cost:
            O(terms added), and one copy of three columns if a record is removed.
        """
        added = list(added)
        alike = {document.id for document in added if self._has_alike(document)}
        for record_id in removed:
            if record_id not in alike:
                self.documents.remove(record_id)
        # First those that keep their weights: new turns of their groups are compared with them.
        for document in sorted(added, key=lambda each: each.id not in alike):
            if document.id in alike:
                number = self.documents.replace(document)
            else:
                number = self.documents.add(document)
                if document.session is not None:
                    self._weigh(number, document)
            self.tail_bytes += _DOCUMENT_BYTES + len(document.payload) + _TERM_BYTES * len(document.terms)
            words = set()
            for position, (term, word) in enumerate(document.terms):
                tail = self._tail(term, number)
                tail.append(number, position)
                if word:
                    words.add(tail.number)
            self._words.append(np.fromiter(words, dtype=np.int32, count=len(words)))
            for term in other_terms(document):
                self._tail(term, number).append(number, 0)
                self.tail_bytes += _TERM_BYTES
            for term, word in document.titles:
                if comparable(word):
                    self._vocabulary.add(word, term)
            for word, term in {word: term for term, word in document.terms if comparable(word)}.items():
                self._tail(form(word, term), number).append(number, 0)
                self._vocabulary.add(word, term)

    def _has_alike(self, document: Document) -> bool:
        """Return whether the record has a document already, with the same words at the same place in its group."""
        if len(document.terms) > LAST_POSITION:
            return False  # those behind the last position share it, so their order and number are not known
        number = self.documents.in_place_of(document)
        return number != NONE and all(
            self._occurs(term, number << POSITION_BITS | position) for position, (term, _) in enumerate(document.terms)
        )

    def _occurs(self, term: str, occurrence: int) -> bool:
        """Return whether a term has an occurrence."""
        segment = self.segment
        if segment is not None and occurrence >> POSITION_BITS < segment.count:
            number = segment.term(term)
            if number == NONE:
                return False
            begin, end = segment.span(number)
            column = segment.occurrences[begin:end]
        elif (tail := self._tails.get(term)) is None:
            return False
        else:
            column = tail.until(self._borrowed.get(term, self.documents.count))
        at = int(column.searchsorted(occurrence))
        return at < len(column) and bool(column[at] == occurrence)

    def _weigh(self, number: int, document: Document) -> None:
        """Set the weight of a new turn by its new words, unless its group is counted again in any case."""
        [groups, alive] = self.documents.columns_of("group", "alive")
        group = int(groups[number])
        if group in self.documents.stale:
            return
        words = {term for term, word in document.terms if word}
        new = len(words)
        if self.documents.has_others(group):
            first = self.documents.first_of(group)
            parts = [part for term in words if len(part := self._occurrences(term, first))]
            if parts:
                owners = np.concatenate(parts) >> POSITION_BITS
                begins = np.cumsum([0, *map(len, parts[:-1])])
                new -= int(np.logical_or.reduceat((groups[owners] == group) & alive[owners], begins).sum())
        self.documents.set_weight(number, int(novel_weights(np.array([document.manner]), np.array([new]))[0]))

    def _occurrences(self, term: str, first: int) -> Ints:
        """Return the occurrences of a term from a document on, those in dead documents included."""
        tail, base = self._tails.get(term), NONE if self.segment is None else self.segment.term(term)
        least = first << POSITION_BITS
        later = _NOTHING if tail is None else tail.until(self._borrowed.get(term, self.documents.count))
        if self.segment is None or base == NONE or first >= self.segment.count:
            return later[later.searchsorted(least) :]
        begin, end = self.segment.span(base)
        earlier = self.segment.occurrences[begin:end]
        earlier = earlier[earlier.searchsorted(least) :]
        return earlier if not len(later) else np.concatenate((earlier, later))

    def _tail(self, term: str, number: int) -> _Tail:
        """Return the tail of a term, ready to append to for the document `number`."""
        tail = self._tails.get(term)
        if tail is None:
            tail = self._tails[term] = _Tail(self._number(term))
            self.tail_bytes += _NEW_TERM_BYTES + len(term)
        elif term in self._borrowed:
            # Occurrences that the other index appended since the fork are excluded.
            tail = self._tails[term] = _Tail(tail.number, tail.until(self._borrowed[term]).copy())
            del self._borrowed[term]
        return tail

    def _number(self, term: str) -> int:
        """Return the number of a term that has no tail yet."""
        segment = self.segment
        if segment is None:
            return len(self._tails)
        number = segment.term(term)
        return len(segment.frequencies) + len(self._tails) if number == NONE else number

    def view(self) -> WordView:
        """Return an immutable view of the current index.

        Cost:
            O(1); that of `WordView.counted_again` after a turn was removed or inserted before others of its
            conversation.
        """
        if self.documents.stale:
            view, stale = self._viewed(), self.documents.take_stale()
            self.documents.set_weights(stale, view.counted_again(stale))
        return self._viewed()

    def _viewed(self) -> WordView:
        return WordView(self.documents.view(), self.segment, self._tails, self._words, self._vocabulary, self._borrowed)


def query_terms(view: WordView, terms: Sequence[tuple[str, str]], language: str = ENGLISH) -> list[QueryTerm]:
    """Return the terms of a question with their weights, and for each unknown word the known words that resemble it.

    The unknown word remains with its full weight, so that a word without any match lowers every score. Names of
    speakers are omitted if other words remain: they occur in the turns of others rather than in those of the speaker.

    Args:
        view: The view to search.
        terms: The question as (term, word) pairs.
        language: Its language, which decides how compounds are read, and which words are frequent in general.
    """
    if view.table.speakers.known:
        terms = [each for each in terms if not view.is_speaker_name(stem(each[1]) if each[1] else each[0])] or terms
    counts = Counter(term for term, _ in terms)
    words = dict(reversed(terms))  # the first word of each term
    background = background_of(language)

    def made(term: str, word: str, weight: int, like: str = "") -> QueryTerm:
        """Return a term; the background knows words, and no n-grams of scripts without spaces."""
        expected = background.expected(term) if word and background is not None else None
        return QueryTerm(term, word or term, weight, like, expected)

    out = {term: made(term, words[term], min(count, _MAX_QUERY_COUNT) * ONE) for term, count in counts.items()}
    for term, word in list(dict.fromkeys(terms)):
        if not word or view.known(term):
            continue
        if view.ending is not None:
            view.ending.check()
        for like in view.similar(word, term):
            known = out.get(like.stem)
            if known is None or known.weight < like.dice:
                out[like.stem] = made(like.stem, word, like.dice, like.word)
    for part in related([word for word in words.values() if word], language, view.in_use):
        if part.term not in out:
            out[part.term] = made(part.term, part.word, COMPOUND_WEIGHT, part.known)
    return list(out.values())
