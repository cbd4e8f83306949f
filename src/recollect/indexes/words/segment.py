"""Segments: the index of many documents in contiguous arrays that never change.

All occurrences of all terms stand in one column, term after term, each `number << 16 | position` and rising within its
term; the terms are found by a hash. A segment can be written to a file as it stands, and read from there. What comes
later gathers in a small tail beside it (`indexes.words`), until segment and tail are merged into a new one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from recollect.indexes.documents.columns import COLUMNS, FIELDS, NONE, Document, Ints, Session, values_of
from recollect.indexes.documents.string_table import Pieces, Strings, session_name
from recollect.indexes.words.postings import LAST_POSITION, MOST_COUNT, POSITION_BITS, lengths_of
from recollect.indexes.words.surface_forms import Forms, comparable, firsts, form, form_parts
from recollect.text.languages import CODES
from recollect.text.words import Term

_DIGEST_BYTES = 32
#: So many terms that were looked up stay at hand.
_MOST_AT_HAND = 10_000
_NO_DIGEST = bytes(_DIGEST_BYTES)


class Segment:
    """The index of documents, all of them live when it was made.

    columns      `documents.COLUMNS` of each document
    ids          of their records
    texts        a digest each, in 32 bytes; without a row where none was asked for
    payloads     the bytes of their records; b"" of those that only the store has
    sessions     by number
    speakers     by number, with the terms of their names
    values       of the fields of records, by number
    terms        by number; the occurrences of term t are `occurrences[offsets[t]:offsets[t + 1]]`
    lengths      of the document of each occurrence (`lengths_of`): so that walking occurrences looks nothing up
    frequencies  of each term, how many documents have it
    totals       of each term, how often it occurs, in no document more than MOST_COUNT times
    """

    def __init__(self, arrays: dict[str, NDArray[Any]], speakers: Sequence[tuple[str, Sequence[str]]]) -> None:
        self.arrays = arrays
        self.speakers = [(name, tuple(terms)) for name, terms in speakers]
        self.columns = {name: arrays[name] for name in COLUMNS}
        self.count = len(self.columns["length"])
        self.ids = Strings.from_arrays("ids", arrays)
        self.sessions = Strings.from_arrays("sessions", arrays)
        self.terms = Strings.from_arrays("terms", arrays)
        self.values = Strings.from_arrays("values", arrays)
        self.texts = arrays["texts"]
        self.payloads = Pieces(arrays["payloads.blob"], arrays["payloads.ends"])
        self.offsets: Ints = arrays["offsets"]
        self.occurrences: Ints = arrays["occurrences"]
        self.lengths: NDArray[np.uint16] = arrays["lengths"]
        self.frequencies: Ints = arrays["frequencies"]
        self.totals: Ints = arrays["totals"]
        self.session_count = len(self.sessions)
        self._asked: dict[str, int] = {}
        self.forms = Forms.from_arrays(arrays)

    @cached_property
    def nbytes(self) -> int:
        """How much memory its arrays take."""
        return sum(each.nbytes for each in self.arrays.values())

    def id(self, number: int) -> str:
        return self.ids[number]

    def number(self, record_id: str) -> int:
        return self.ids.find(record_id)

    def text(self, number: int) -> bytes:
        digest = self.texts[number].tobytes() if len(self.texts) else _NO_DIGEST
        return b"" if digest == _NO_DIGEST else digest

    @property
    def digests(self) -> NDArray[np.uint8]:
        """The digests as rows, all zeros where there is none."""
        return self.texts if len(self.texts) else np.zeros((self.count, _DIGEST_BYTES), dtype=np.uint8)

    def payload(self, number: int) -> bytes:
        return self.payloads[number]

    def session(self, session: Session) -> int:
        return self.sessions.find(session_name(session))

    def term(self, term: str) -> int:
        """The number of a term, or NONE. Cost: O(log terms); those that were asked for lately are at hand."""
        number = self._asked.get(term)
        if number is None:
            if len(self._asked) >= _MOST_AT_HAND:
                self._asked.clear()
            number = self._asked[term] = self.terms.find(term)
        return number

    def span(self, term: int) -> tuple[int, int]:
        """Where the occurrences of a term, by its number, begin and end."""
        return int(self.offsets[term]), int(self.offsets[term + 1])

    def counts(self, term: int) -> tuple[int, int]:
        """How many documents have a term, by its number, and how often all of them do."""
        return int(self.frequencies[term]), int(self.totals[term])

    def alike(self, grams: Sequence[int], least: int) -> Iterator[tuple[str, str, int, int]]:
        """Words that share trigrams with others: (word, stem, trigrams, trigrams that are shared).

        least   the least Dice coefficient, in hundredths
        """
        shared, sizes = self.forms.shared(grams), self.forms.sizes
        for at in np.flatnonzero(200 * shared >= least * (len(grams) + sizes)).tolist():
            parts = form_parts(self.terms[int(self.forms.terms[at])])
            assert parts is not None
            yield *parts, int(sizes[at]), int(shared[at])


#: The arrays beside the columns of the documents, and how each is kept.
_KINDS: dict[str, DTypeLike] = {
    **{
        f"{name}.{part}": kind
        for name in ("ids", "sessions", "terms", "values")
        for part, kind in (("blob", np.uint8), ("ends", np.int64), ("keys", np.uint64), ("order", np.int32))
    },
    "texts": np.uint8,
    "payloads.blob": np.uint8,
    "payloads.ends": np.int64,
    "offsets": np.int64,
    "occurrences": np.int64,
    "lengths": np.uint16,
    "frequencies": np.int64,
    "totals": np.int64,
    "forms": np.int32,
    "form_sizes": np.int32,
    "grams.keys": np.uint64,
    "grams.ends": np.int64,
    "grams.forms": np.int32,
}


def check_arrays(arrays: Mapping[str, NDArray[Any]], speakers: Sequence[Any]) -> None:
    """Raises: ValueError where arrays that somebody else made are no segment: kernels do not look where they step."""
    kinds = {**COLUMNS, **_KINDS}
    if arrays.keys() != kinds.keys():
        raise ValueError("it has other columns")
    for name, kind in kinds.items():
        if arrays[name].dtype != kind or arrays[name].ndim != (2 if name == "texts" else 1):
            raise ValueError(f"its column {name} is of another type")
    for name, terms in speakers:
        if not isinstance(name, str) or not all(isinstance(term, str) for term in terms):
            raise ValueError("its speakers have no names")
    count, terms = len(arrays["length"]), len(arrays["terms.ends"])
    sizes = {
        **dict.fromkeys(COLUMNS, count),
        "ids.ends": count,
        "payloads.ends": count,
        "frequencies": terms,
        "totals": terms,
    }
    for name in ("ids", "sessions", "terms", "values"):
        sizes[f"{name}.keys"] = sizes[f"{name}.order"] = len(arrays[f"{name}.ends"])
    sizes |= {"lengths": len(arrays["occurrences"]), "offsets": terms + 1, "form_sizes": len(arrays["forms"])}
    sizes |= {"grams.ends": len(arrays["grams.keys"])}
    if any(len(arrays[name]) != size for name, size in sizes.items()) or arrays["texts"].shape not in (
        (0, _DIGEST_BYTES),
        (count, _DIGEST_BYTES),
    ):
        raise ValueError("its columns are not equally long")
    # Column -> the least and the greatest (but for the last) that may stand in it.
    bounds = {
        "session": (NONE, len(arrays["sessions.ends"])),
        "speaker": (NONE, len(speakers)),
        "before": (NONE, count),
        "after": (NONE, count),
        "length": (0, 1 << 31),
        "language": (0, len(CODES)),
        "occurrences": (0, count << POSITION_BITS),
        "forms": (0, terms),
        "grams.forms": (0, len(arrays["forms"])),
        "ids.order": (0, count),
        "sessions.order": (0, len(arrays["sessions.ends"])),
        "terms.order": (0, terms),
        "values.order": (0, len(arrays["values.ends"])),
        **dict.fromkeys(FIELDS, (NONE, len(arrays["values.ends"]))),
    }
    for name, (least, end) in bounds.items():
        column = arrays[name]
        if len(column) and (column.min() < least or column.max() >= end):
            raise ValueError(f"its column {name} refers to what is not there")
    ends = {f"{name}.ends": len(arrays[f"{name}.blob"]) for name in ("ids", "sessions", "terms", "values")}
    ends |= {"offsets": len(arrays["occurrences"]), "grams.ends": len(arrays["grams.forms"])}
    ends |= {"payloads.ends": len(arrays["payloads.blob"])}
    for name, end in ends.items():
        column = arrays[name]
        last = column[-1] if len(column) else 0
        if last != end or (len(column) and column[0] < 0) or (np.diff(column) < 0).any():
            raise ValueError(f"its column {name} does not rise to its end")
    for name in ("ids", "sessions", "terms", "values"):
        if not _is_text(arrays[f"{name}.blob"], arrays[f"{name}.ends"]):
            raise ValueError(f"its {name} are not all text")
    for name in ("ids", "sessions", "values"):
        order = arrays[f"{name}.order"]
        if (np.bincount(order, minlength=len(order)) != 1).any():
            raise ValueError(f"its {name} are not all in their order")
    keys, order = arrays["terms.keys"], arrays["terms.order"]
    if (keys[1:] < keys[:-1]).any() or (order != np.arange(terms)).any():
        raise ValueError("its terms are not in the order of their keys")
    if arrays["offsets"][0] != 0:
        raise ValueError("its occurrences do not begin with those of a term")
    rising = arrays["occurrences"][1:] >= arrays["occurrences"][:-1]
    begins = arrays["offsets"]
    rising[begins[(begins > 0) & (begins <= len(rising))] - 1] = True  # from one term to the next
    if not rising.all():
        raise ValueError("its occurrences do not rise")
    if not arrays["alive"].all():
        raise ValueError("it has dead documents")


def _is_text(blob: NDArray[np.uint8], ends: NDArray[np.int64]) -> bool:
    """Whether each piece of a blob is UTF-8: all of it is, and no piece begins within a character."""
    if not len(blob) or blob.max() < 0x80:  # ASCII, as most is: a tenth of the time
        return True
    try:
        str(blob.data, "utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    begins = ends[ends < len(blob)]
    return bool(((blob[begins] & 0xC0) != 0x80).all())


class Gathered(NamedTuple):
    """Documents and their words, as a segment is made of them.

    texts        a digest each, all zeros where there is none
    terms        numbered in the order of their keys, so that neighbours among them are neighbours in the column
    sizes        how often each term occurs
    occurrences  of all terms, one after the other
    """

    columns: dict[str, NDArray[Any]]
    ids: Strings
    texts: NDArray[np.uint8]
    payloads: Pieces
    sessions: Strings
    speakers: Sequence[tuple[str, tuple[str, ...]]]
    values: Strings
    terms: Strings
    forms: Forms
    sizes: Ints
    occurrences: Ints


def made(gathered: Gathered) -> Segment:
    """The segment of what was gathered. Cost: some passes over the occurrences."""
    packed, sizes, texts = gathered.occurrences, gathered.sizes, gathered.texts
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    first = firsts(packed >> POSITION_BITS)
    first[offsets[:-1][sizes > 0]] = True
    runs = np.flatnonzero(first)  # one for each document of a term
    excess = np.maximum(np.diff(runs, append=len(packed)) - MOST_COUNT, 0)
    of_term = runs.searchsorted(offsets)
    arrays: dict[str, NDArray[Any]] = {
        **{name: gathered.columns[name] for name in COLUMNS},
        **gathered.ids.arrays("ids"),
        **gathered.sessions.arrays("sessions"),
        **gathered.values.arrays("values"),
        **gathered.terms.arrays("terms"),
        "texts": texts if texts.any() else digests(()),
        "payloads.blob": gathered.payloads.blob,
        "payloads.ends": gathered.payloads.ends,
        "offsets": offsets,
        "occurrences": packed,
        "lengths": lengths_of(gathered.columns["length"], packed),
        "frequencies": np.diff(of_term),
        "totals": sizes - np.diff(np.concatenate([[0], np.cumsum(excess)])[of_term]),
        **gathered.forms.arrays(),
    }
    return Segment(arrays, gathered.speakers)


def in_order(terms: Ints, occurrences: Ints) -> Ints:
    """Occurrences by term, and rising within each.

    terms   of each of them
    """
    bits = int(occurrences.max(initial=0)).bit_length()
    if bits + int(terms.max(initial=0)).bit_length() < 64:
        keys = terms << bits | occurrences
        keys.sort()
        return keys & (1 << bits) - 1
    return occurrences[np.lexsort((occurrences, terms))]


def digests(texts: Sequence[bytes]) -> NDArray[np.uint8]:
    """The digests of documents as rows, all zeros where there is none."""
    joined = b"".join([text or _NO_DIGEST for text in texts])
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, _DIGEST_BYTES)


#: So many documents are put into the columns at once.
_ROWS = 1000


class Builder:
    """Documents one by one, and the segment of them all."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._texts: list[bytes] = []
        self._payloads: list[bytes] = []
        self._sessions: dict[Session, int] = {}
        self._speakers: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._values: dict[str, int] = {}
        self._fields: dict[tuple[str | None, ...], tuple[int, ...]] = {}  # as many records have the same
        self._terms: dict[str, int] = {}
        self._known: dict[Term, int] = {}
        self._term, self._form = array("i"), array("i")  # of each known word; no form: NONE
        self._said = array("i")  # the words of all documents, one after the other
        # Documents, in the order of coming, and beside each a mark that it has.
        self._marked, self._marks = array("i"), array("i")
        self._rows: list[tuple[Any, ...]] = []  # of the last documents, which are not in the columns yet
        self._columns = {name: array(_CODES[np.dtype(kind).char]) for name, kind in COLUMNS.items()}

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, document: Document) -> None:
        self._ids.append(document.id)
        self._texts.append(document.text)
        self._payloads.append(document.payload)
        session = speaker = NONE
        if document.session is not None:
            session = self._sessions.setdefault(document.session, len(self._sessions))
        if document.speaker:
            speaker = self._speakers.setdefault(document.speaker, (len(self._speakers), document.names))[0]
        fields = self._fields.get(document.fields)
        if fields is None:
            values = self._values
            fields = tuple([NONE if text is None else values.setdefault(text, len(values)) for text in document.fields])
            self._fields[document.fields] = fields
        self._rows.append(values_of(document, session, speaker, fields))
        if len(self._rows) == _ROWS:
            self._unroll()
        for mark in document.filter_terms:
            self._marked.append(len(self._ids) - 1)
            self._marks.append(self._number(mark))
        known = self._known
        try:
            found = [known[term] for term in document.terms]
        except KeyError:
            found = [known[term] if term in known else self._learnt(term) for term in document.terms]
        self._said.extend(found)

    def _unroll(self) -> None:
        """Put the rows at the ends of the columns, which takes half the time for many at once."""
        for column, values in zip(self._columns.values(), zip(*self._rows, strict=True), strict=False):
            column.extend(values)
        self._rows.clear()

    def _learnt(self, term: Term) -> int:
        """The number of a new word."""
        stem, word = term
        self._form.append(self._number(form(word, stem)) if comparable(word) else NONE)
        self._term.append(self._number(stem))
        return self._known.setdefault(term, len(self._known))

    def _number(self, term: str) -> int:
        return self._terms.setdefault(term, len(self._terms))

    def segment(self) -> Segment:
        """The segment of the documents so far, the turns of a session side by side."""
        self._unroll()
        columns: dict[str, NDArray[Any]] = {
            name: np.frombuffer(self._columns[name], dtype=_KEPT[np.dtype(kind).char]).astype(kind)
            if len(self)
            else np.zeros(0, dtype=kind)
            for name, kind in COLUMNS.items()
        }
        order = _in_order(columns, self._ids)
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        lengths = columns["length"].astype(np.int64)
        said = np.array(self._said, dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        places = np.arange(len(said), dtype=np.int64) - np.repeat(starts, lengths)
        owners = np.repeat(number, lengths)
        formed_in, formed = self._forms(owners, said)
        marked_in, filter_terms = number[np.array(self._marked, dtype=np.int64)], np.array(self._marks, dtype=np.int64)
        names = list(self._terms)
        terms = Strings.of(names)
        of_term = terms.ranks()[np.concatenate([np.array(self._term, dtype=np.int64)[said], formed, filter_terms])]
        places = np.concatenate(
            [np.minimum(places, LAST_POSITION), np.zeros(len(formed) + len(filter_terms), dtype=np.int64)]
        )
        columns = {name: column[order] for name, column in columns.items()}
        _link(columns)
        return made(
            Gathered(
                columns,
                Strings.of([self._ids[at] for at in order.tolist()]),
                digests([self._texts[at] for at in order.tolist()]),
                Pieces.of([self._payloads[at] for at in order.tolist()]),
                Strings.of([session_name(session) for session in self._sessions]),
                [(name, of_name) for name, (_, of_name) in self._speakers.items()],
                Strings.of(list(self._values)),
                terms.by_key(),
                Forms.of([names[number] for number in terms.order.tolist()]),
                np.bincount(of_term, minlength=len(names)),
                in_order(of_term, np.concatenate([owners, formed_in, marked_in]) << POSITION_BITS | places),
            )
        )

    def _forms(self, owners: Ints, said: Ints) -> tuple[Ints, Ints]:
        """The documents and the forms of the words that they have, each form of a document once."""
        forms = np.array(self._form, dtype=np.int64)[said]
        has_form = forms != NONE
        pairs = owners[has_form] * len(self._terms) + forms[has_form]
        pairs.sort()
        pairs = pairs[firsts(pairs)]
        return pairs // max(len(self._terms), 1), pairs % max(len(self._terms), 1)


#: How an `array` holds what a column holds.
_CODES = {"i": "i", "l": "q", "q": "q", "b": "b", "?": "b", "d": "d"}
_KEPT = {"i": np.int32, "l": np.int64, "q": np.int64, "b": np.int8, "?": np.int8, "d": np.float64}


def _in_order(columns: dict[str, NDArray[Any]], ids: Sequence[str]) -> NDArray[np.int64]:
    """The documents by session and place."""
    keys = [columns[name] for name in ("micros", "position", "session")]
    order = np.lexsort(keys)
    same = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    same &= columns["session"][order[1:]] != NONE
    at = 0
    ties = np.flatnonzero(same).tolist()
    while at < len(ties):  # of one place and time: by id
        begin = end = ties[at]
        while at < len(ties) and ties[at] == end:
            end, at = end + 1, at + 1
        order[begin : end + 1] = sorted(order[begin : end + 1].tolist(), key=lambda number: ids[number])
    return order.astype(np.int64)


def _link(columns: dict[str, NDArray[Any]]) -> None:
    """Link each turn, which stand in order, to those before and after it."""
    session = columns["session"]
    together = np.flatnonzero((session[1:] == session[:-1]) & (session[1:] != NONE)).astype(np.int32)
    columns["after"][together] = together + 1
    columns["before"][together + 1] = together
