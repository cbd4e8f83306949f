"""Segments: the index of many documents in contiguous arrays that never change.

All occurrences of all terms are in one column, term after term, each `number << 16 | position` and ascending within its
term; terms are found by a hash. The arrays can be written to a file and read back without conversion. Later documents
are collected in a small tail (`words.index`) until segment and tail are merged into a new segment.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from recollect.indexes.documents.columns import COLUMNS, FIELDS, GROUPED, NONE, Document, Ints, Session, values_of
from recollect.indexes.documents.string_table import Pieces, Strings, session_name
from recollect.indexes.words.novelty import by_time, new_words, novel_weights
from recollect.indexes.words.surface_forms import Forms, comparable, firsts, form, form_parts
from recollect.indexes.words.titles import is_word, other_terms
from recollect.text.languages import CODES
from recollect.text.words import Term

POSITION_BITS = 16
#: The last position; later ones are stored as this one. It is two below the maximum, so that adding 2 to a position
#: does not reach the next document.
LAST_POSITION = (1 << POSITION_BITS) - 3
#: For a document of at least this length, the exact length is read from the table.
LONGEST = (1 << 15) - 1
#: A flag above the length: the term occurs, or may occur, again in the same document. One read thus identifies the
#: frequent case of a single occurrence.
MORE = LONGEST + 1
#: Maximum count of a term in a document.
MOST_COUNT = (1 << 15) - 1

_DIGEST_BYTES = 32
#: Maximum number of looked-up terms that are cached.
_MAX_CACHED = 10_000
_NO_DIGEST = bytes(_DIGEST_BYTES)


def lengths_of(length: NDArray[np.int32], occurrences: Ints) -> NDArray[np.uint16]:
    """Return the document length of each occurrence, at most LONGEST, and the flag MORE.

    MORE is set if the next occurrence is in the same document. Terms are not distinguished, so it may also be set at
    the last occurrence of a term.
    """
    numbers = occurrences >> POSITION_BITS
    out: NDArray[np.uint16] = np.minimum(length, LONGEST).astype(np.uint16)[numbers]
    out[:-1][numbers[1:] == numbers[:-1]] |= MORE
    return out


#: Number of occurrences from which a term is searched by bisection instead of compared element by element.
_FREQUENT = 4096
#: Number of occurrences that are compared at a time: they fit into a cache of the processor.
_PART = 2**16
#: Documents whose numbers differ by at most this are in one range: between turns of a session are removed ones.
_NEAR = 256
#: With more ranges of documents than this, each occurrence is looked up in a table of documents instead.
_MOST_RANGES = 8
#: In the cache of which terms are words: not computed yet.
_UNKNOWN = -1


class Segment:
    """The index of documents that were all live when it was built.

    Attributes:
        columns: The columns of the documents (`documents.columns.COLUMNS`).
        ids: The ids of their records.
        texts: A 32-byte digest for each document; no rows if digests were not requested.
        payloads: The payloads of their records; b"" for those that only the store has.
        sessions: The sessions by number.
        speakers: The speakers by number, with the terms of their names.
        values: The values of record fields by number.
        terms: The terms by number; the occurrences of term t are `occurrences[offsets[t]:offsets[t + 1]]`.
        lengths: The length of the document of each occurrence (`lengths_of`), so that a kernel need not look it up.
        frequencies: The number of documents of each term.
        totals: The number of occurrences of each term, counting at most MOST_COUNT in a document.
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
        self._term_numbers: dict[str, int] = {}
        self.forms = Forms.from_arrays(arrays)

    @cached_property
    def nbytes(self) -> int:
        """The memory of its arrays in bytes."""
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
        """The digests as rows, all zeros if there is none."""
        return self.texts if len(self.texts) else np.zeros((self.count, _DIGEST_BYTES), dtype=np.uint8)

    def session(self, session: Session) -> int:
        return self.sessions.find(session_name(session))

    def term(self, term: str) -> int:
        """Return the number of a term, or NONE.

        Cost:
            O(log terms); recently looked-up terms are cached.
        """
        number = self._term_numbers.get(term)
        if number is None:
            if len(self._term_numbers) >= _MAX_CACHED:
                self._term_numbers.clear()
            number = self._term_numbers[term] = self.terms.find(term)
        return number

    def span(self, term: int) -> tuple[int, int]:
        """Return the begin and end of the occurrences of a term number."""
        return int(self.offsets[term]), int(self.offsets[term + 1])

    def places_in(self, numbers: Ints) -> Ints:
        """Return the places in `occurrences` of the occurrences in some documents, in any order.

        Args:
            numbers: The documents, ascending. Those of a session are adjacent or nearly so: they are few ranges.

        Cost:
            For each range, two look-ups for each frequent term, and a comparison for each occurrence of the others.
        """
        edges = np.flatnonzero(np.diff(numbers) > _NEAR)
        if len(edges) >= _MOST_RANGES:
            return self._places_of(numbers)
        begins = numbers[np.concatenate([[0], edges + 1])].tolist()
        ends = numbers[np.concatenate([edges, [len(numbers) - 1]])].tolist()
        frequent, parts = self._frequent_and_others
        out = []
        for first, last in zip(begins, ends, strict=True):
            least, most = first << POSITION_BITS, last + 1 << POSITION_BITS
            for begin, end in frequent:
                found = self.occurrences[begin:end].searchsorted((least, most)).tolist()
                out.append(np.arange(begin + found[0], begin + found[1]))
            for begin, end in parts:
                part = self.occurrences[begin:end]
                out.append(np.flatnonzero((part >= least) & (part < most)) + begin)
        if not out:
            return np.zeros(0, dtype=np.int64)
        places = np.concatenate(out)
        wanted: Ints = places[self._marked(numbers)[self.occurrences[places] >> POSITION_BITS]]
        return wanted

    def _places_of(self, numbers: Ints) -> Ints:
        wanted = self._marked(numbers)
        begins = range(0, len(self.occurrences), _PART)
        out = [np.flatnonzero(wanted[self.occurrences[at : at + _PART] >> POSITION_BITS]) + at for at in begins]
        return np.concatenate(out) if out else np.zeros(0, dtype=np.int64)

    def _marked(self, numbers: Ints) -> NDArray[np.bool_]:
        out = np.zeros(self.count, dtype=np.bool_)
        out[numbers] = True
        return out

    @cached_property
    def _frequent_and_others(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The spans of terms with many occurrences, and the parts of `occurrences` between them."""
        sizes = np.diff(self.offsets)
        frequent = [self.span(term) for term in np.flatnonzero(sizes >= _FREQUENT).tolist()]
        ends = [0, *(end for _, end in frequent)]
        between = zip(ends, [*(begin for begin, _ in frequent), len(self.occurrences)], strict=True)
        parts = [(at, min(at + _PART, end)) for begin, end in between for at in range(begin, end, _PART)]
        return frequent, parts

    def are_words(self, terms: Ints) -> NDArray[np.bool_]:
        """Return whether terms, by their numbers, are words of texts (`titles.is_word`)."""
        known = self._are_words
        for term in np.unique(terms[known[terms] == _UNKNOWN]).tolist():
            known[term] = is_word(self.terms[term])
        found: NDArray[np.bool_] = known[terms] == 1
        return found

    @cached_property
    def _are_words(self) -> NDArray[np.int8]:
        """A cache for `are_words`: 1 or 0 for each term, or _UNKNOWN."""
        return np.full(len(self.frequencies), _UNKNOWN, dtype=np.int8)

    def counts(self, term: int) -> tuple[int, int]:
        """Return the number of documents of a term number, and its total number of occurrences."""
        return int(self.frequencies[term]), int(self.totals[term])

    def alike(self, grams: Sequence[int], first: int, least: int, changed: int) -> Iterator[tuple[str, str, int, int]]:
        """Yield words that share trigrams with another one: (word, stem, trigrams, shared trigrams).

        Args:
            grams: The trigrams of the other word.
            first: The trigram at its beginning.
            least: The minimum Dice coefficient, in hundredths.
            changed: Words that have not the same beginning share all trigrams but this many.
        """
        shared, sizes = self.forms.shared(grams), self.forms.sizes
        near = shared >= np.maximum(sizes, len(grams)) - changed
        near[self.forms.having(first)] = True
        for at in np.flatnonzero(near & (200 * shared >= least * (len(grams) + sizes))).tolist():
            parts = form_parts(self.terms[int(self.forms.terms[at])])
            assert parts is not None
            yield *parts, int(sizes[at]), int(shared[at])


#: The arrays other than the columns of documents, and their types.
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
    """Check that arrays from a file form a valid segment. The kernels do not check bounds.

    Raises:
        ValueError: They do not.
    """
    kinds = {**COLUMNS, **_KINDS}
    if arrays.keys() != kinds.keys():
        raise ValueError("its columns are not those of a segment")
    for name, kind in kinds.items():
        if arrays[name].dtype != kind or arrays[name].ndim != (2 if name == "texts" else 1):
            raise ValueError(f"its column {name} has the wrong type")
    for name, terms in speakers:
        if not isinstance(name, str) or not all(isinstance(term, str) for term in terms):
            raise ValueError("its speakers are not names with terms")
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
        raise ValueError("its columns differ in length")
    # Column -> the minimum of its values, and the exclusive maximum.
    bounds = {
        "session": (NONE, len(arrays["sessions.ends"])),
        "speaker": (NONE, len(speakers)),
        "group": (NONE, count),
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
            raise ValueError(f"its column {name} has a value out of range")
    ends = {f"{name}.ends": len(arrays[f"{name}.blob"]) for name in ("ids", "sessions", "terms", "values")}
    ends |= {"offsets": len(arrays["occurrences"]), "grams.ends": len(arrays["grams.forms"])}
    ends |= {"payloads.ends": len(arrays["payloads.blob"])}
    for name, end in ends.items():
        column = arrays[name]
        last = column[-1] if len(column) else 0
        if last != end or (len(column) and column[0] < 0) or (np.diff(column) < 0).any():
            raise ValueError(f"its column {name} does not ascend to the end of its data")
    for name in ("ids", "sessions", "terms", "values"):
        if not _is_text(arrays[f"{name}.blob"], arrays[f"{name}.ends"]):
            raise ValueError(f"its {name} are not all text")
    for name in ("ids", "sessions", "values"):
        order = arrays[f"{name}.order"]
        if (np.bincount(order, minlength=len(order)) != 1).any():
            raise ValueError(f"the order of its {name} is not a permutation")
    keys, order = arrays["terms.keys"], arrays["terms.order"]
    if (keys[1:] < keys[:-1]).any() or (order != np.arange(terms)).any():
        raise ValueError("its terms are not in the order of their keys")
    if arrays["offsets"][0] != 0:
        raise ValueError("its offsets do not begin at 0")
    rising = arrays["occurrences"][1:] >= arrays["occurrences"][:-1]
    begins = arrays["offsets"]
    rising[begins[(begins > 0) & (begins <= len(rising))] - 1] = True  # from one term to the next
    if not rising.all():
        raise ValueError("its occurrences do not ascend")
    if not arrays["alive"].all():
        raise ValueError("it contains dead documents")


def _is_text(blob: NDArray[np.uint8], ends: NDArray[np.int64]) -> bool:
    """Return whether each piece of a blob is UTF-8: all of it is, and no piece begins within a character."""
    if not len(blob) or blob.max() < 0x80:  # ASCII, the most frequent case: a tenth of the time
        return True
    try:
        str(blob.data, "utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    begins = ends[ends < len(blob)]
    return bool(((blob[begins] & 0xC0) != 0x80).all())


class GatheredTerms(NamedTuple):
    """Documents and their terms, from which a segment is built.

    Attributes:
        columns: The columns of the documents.
        ids: The ids of their records.
        texts: A digest for each document, all zeros if there is none.
        payloads: The payloads of their records.
        sessions: The sessions by number.
        speakers: The speakers by number, with the terms of their names.
        values: The values of record fields by number.
        terms: The terms, numbered in the order of their keys, so that they are in the same order in `occurrences`.
        forms: The surface forms among the terms.
        sizes: The number of occurrences of each term.
        occurrences: The occurrences of all terms, term after term.
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


def build(gathered: GatheredTerms) -> Segment:
    """Build a segment.

    Cost:
        Several passes over the occurrences.
    """
    packed, sizes, texts = gathered.occurrences, gathered.sizes, gathered.texts
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    frequencies, totals = _counts(packed, offsets)
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
        "frequencies": frequencies,
        "totals": totals,
        **gathered.forms.arrays(),
    }
    return Segment(arrays, gathered.speakers)


def _counts(packed: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    """Return the number of documents of each term, and of its occurrences, of which a document counts MOST_COUNT.

    Args:
        packed: The occurrences of all terms, term after term.
        offsets: Where those of each term begin, and where the last ones end.
    """
    first = firsts(packed >> POSITION_BITS)
    sizes = np.diff(offsets)
    first[offsets[:-1][sizes > 0]] = True
    runs = np.flatnonzero(first)  # one for each document of a term
    of_term = runs.searchsorted(offsets)
    excess = np.diff(runs, append=len(packed))
    del first, runs  # as large as what they are of
    excess -= MOST_COUNT
    np.maximum(excess, 0, out=excess)
    before = np.concatenate([[0], np.cumsum(excess, out=excess)])[of_term]
    return np.diff(of_term), sizes - np.diff(before)


def in_order(terms: Ints, occurrences: Ints) -> Ints:
    """Return occurrences sorted by term, ascending within each term.

    Args:
        terms: The term of each occurrence.
    """
    bits = int(occurrences.max(initial=0)).bit_length()
    if bits + int(terms.max(initial=0)).bit_length() < 64:
        keys = terms.astype(np.int64)
        keys <<= bits
        keys |= occurrences
        keys.sort()
        keys &= (1 << bits) - 1
        return keys
    return occurrences[np.lexsort((occurrences, terms))]


def digests(texts: Sequence[bytes]) -> NDArray[np.uint8]:
    """Return the digests of documents as rows, all zeros if there is none."""
    joined = b"".join([text or _NO_DIGEST for text in texts])
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, _DIGEST_BYTES)


#: Number of documents that are added to the columns at a time.
_ROWS = 1000


class Builder:
    """Collects documents one by one and builds a segment of them."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._texts: list[bytes] = []
        self._payloads: list[bytes] = []
        self._sessions: dict[Session, int] = {}
        self._groups: dict[tuple[int, ...], int] = {}
        self._speakers: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._values: dict[str, int] = {}
        self._fields: dict[tuple[str | None, ...], tuple[int, ...]] = {}  # many records share them
        self._terms: dict[str, int] = {}
        self._known: dict[Term, int] = {}
        self._term, self._form = array("i"), array("i")  # by word number; NONE without a form
        self._is_word = array("b")  # by word number: whether it is a word, not an n-gram
        self._word_numbers = array("i")  # the word numbers of all documents, one after the other
        # Pairs of a document and one of its terms that are not words of its text, in the order of insertion.
        self._other_owners, self._other_terms = array("i"), array("i")
        self._rows: list[tuple[Any, ...]] = []  # rows not yet in the columns
        self._columns = {name: array(_CODES[np.dtype(kind).char]) for name, kind in COLUMNS.items()}

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, document: Document) -> None:
        self._ids.append(document.id)
        self._texts.append(document.text)
        self._payloads.append(document.payload)
        session = group = speaker = NONE
        if document.speaker:
            speaker = self._speakers.setdefault(document.speaker, (len(self._speakers), document.names))[0]
        fields = self._fields.get(document.fields)
        if fields is None:
            values = self._values
            fields = tuple([NONE if text is None else values.setdefault(text, len(values)) for text in document.fields])
            self._fields[document.fields] = fields
        if document.session is not None:
            session = self._sessions.setdefault(document.session, len(self._sessions))
            group = self._groups.setdefault(tuple([fields[at] for at in GROUPED]), len(self._groups))
        self._rows.append(values_of(document, session, group, speaker, fields))
        if len(self._rows) == _ROWS:
            self._flush_rows()
        for term in other_terms(document):
            self._other_owners.append(len(self._ids) - 1)
            self._other_terms.append(self._number(term))
        known = self._known
        try:
            found = [known[each] for each in document.terms]
        except KeyError:
            found = [known[each] if each in known else self._new_word(each) for each in document.terms]
        self._word_numbers.extend(found)

    def _flush_rows(self) -> None:
        """Append the rows to the columns; in batches this takes half the time."""
        for column, values in zip(self._columns.values(), zip(*self._rows, strict=True), strict=False):
            column.extend(values)
        self._rows.clear()

    def _new_word(self, term: Term) -> int:
        """Assign a number to a new word and return it."""
        stem, word = term
        self._form.append(self._number(form(word, stem)) if comparable(word) else NONE)
        self._term.append(self._number(stem))
        self._is_word.append(bool(word))
        return self._known.setdefault(term, len(self._known))

    def _number(self, term: str) -> int:
        return self._terms.setdefault(term, len(self._terms))

    def segment(self) -> Segment:
        """Build the segment of the documents. The turns of a session become adjacent.

        The builder cannot be used afterwards: payloads are discarded once they are copied.
        """
        self._flush_rows()
        columns: dict[str, NDArray[Any]] = {
            name: np.frombuffer(self._columns[name], dtype=_READ_AS[np.dtype(kind).char]).astype(kind)
            if len(self)
            else np.zeros(0, dtype=kind)
            for name, kind in COLUMNS.items()
        }
        order = _in_order(columns, self._ids)
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        # A large segment has some twenty occurrences for each document: no array of them is wider or lives longer than
        # is needed.
        lengths = columns["length"].astype(np.int64)
        words = np.asarray(self._word_numbers)
        owners = np.repeat(number.astype(np.int32), lengths)
        form_owners, forms = self._forms(owners, words)
        other_owners, others = number[np.asarray(self._other_owners)], np.asarray(self._other_terms)
        names = list(self._terms)
        terms = Strings.of(names)
        ranks = terms.ranks().astype(np.int32)
        of_words = ranks[np.asarray(self._term)][words]
        columns = {name: column[order] for name, column in columns.items()}
        ids = [self._ids[at] for at in order.tolist()]
        _link(columns)
        spaced = np.array(self._is_word, dtype=np.bool_)[words]
        _weigh(columns, ids, of_words[spaced], owners[spaced])
        occurrences = np.concatenate([owners, form_owners, other_owners], dtype=np.int64)
        occurrences <<= POSITION_BITS
        occurrences[: len(words)] |= _positions(lengths)
        of_term = np.concatenate([of_words, ranks[forms], ranks[others]])
        del words, owners, form_owners, forms, other_owners, others, of_words, spaced
        payloads = Pieces.of([self._payloads[at] for at in order.tolist()])
        self._payloads.clear()
        sizes, occurrences = np.bincount(of_term, minlength=len(names)), in_order(of_term, occurrences)
        del of_term
        return build(
            GatheredTerms(
                columns,
                Strings.of(ids),
                digests([self._texts[at] for at in order.tolist()]),
                payloads,
                Strings.of([session_name(session) for session in self._sessions]),
                [(name, of_name) for name, (_, of_name) in self._speakers.items()],
                Strings.of(list(self._values)),
                terms.by_key(),
                Forms.of([names[number] for number in terms.order.tolist()]),
                sizes,
                occurrences,
            )
        )

    def _forms(self, owners: NDArray[np.int32], words: NDArray[np.int32]) -> tuple[Ints, Ints]:
        """Return parallel columns of documents and the surface forms of their words, each form of a document once."""
        forms = np.asarray(self._form)[words]
        has_form = forms != NONE
        pairs = owners[has_form].astype(np.int64)
        pairs *= len(self._terms)
        pairs += forms[has_form]
        pairs.sort()
        pairs = pairs[firsts(pairs)]
        return pairs // max(len(self._terms), 1), pairs % max(len(self._terms), 1)


#: The type codes of `array` for the types of columns, and the NumPy types that they are read back with.
_CODES = {"i": "i", "l": "q", "q": "q", "b": "b", "?": "b", "d": "d"}
_READ_AS = {"i": np.int32, "l": np.int64, "q": np.int64, "b": np.int8, "?": np.int8, "d": np.float64}


def _positions(lengths: Ints) -> NDArray[np.int32]:
    """Return the position of each word in its document, for documents of some lengths, one after the other."""
    starts = np.cumsum(lengths) - lengths
    positions = np.arange(int(lengths.sum()), dtype=np.int32)
    positions -= np.repeat(starts.astype(np.int32), lengths)
    return np.minimum(positions, LAST_POSITION, out=positions)


def _in_order(columns: dict[str, NDArray[Any]], ids: Sequence[str]) -> NDArray[np.int64]:
    """Return the documents sorted by session, position, time and id."""
    keys = [columns[name] for name in ("micros", "position", "session")]
    order = np.lexsort(keys)
    same = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    same &= columns["session"][order[1:]] != NONE
    at = 0
    ties = np.flatnonzero(same).tolist()
    while at < len(ties):  # equal position and time: sort by id
        begin = end = ties[at]
        while at < len(ties) and ties[at] == end:
            end, at = end + 1, at + 1
        order[begin : end + 1] = sorted(order[begin : end + 1].tolist(), key=lambda number: ids[number])
    return order.astype(np.int64)


def _weigh(columns: dict[str, NDArray[Any]], ids: Sequence[str], terms: Ints, numbers: Ints) -> None:
    """Set the weight of each turn by its new words, given the term and the document of each word."""
    turns = np.flatnonzero(columns["group"] != NONE)
    order = by_time(columns, turns, ids.__getitem__)
    of_turns = columns["group"][numbers] != NONE
    new = new_words(terms[of_turns], numbers[of_turns], order, columns["group"])
    columns["weight"][order] = novel_weights(columns["manner"][order], new)


def _link(columns: dict[str, NDArray[Any]]) -> None:
    """Link each turn to the previous and the next one. The documents must be sorted by session."""
    session = columns["session"]
    together = np.flatnonzero((session[1:] == session[:-1]) & (session[1:] != NONE)).astype(np.int32)
    columns["after"][together] = together + 1
    columns["before"][together + 1] = together
