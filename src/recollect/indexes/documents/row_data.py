"""Row data in addition to the columns: ids, payloads, digests, interned strings and counters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Ints, Session
from recollect.indexes.documents.string_table import Pieces, Strings
from recollect.text.folding import folded
from recollect.text.likeness import LEAST_LETTERS, one_edit
from recollect.text.words import MAX_WORD

#: Maximum number of looked-up texts of a segment that are cached.
_MAX_CACHED = 10_000
#: Approximate memory of an entry of the index of misspelt names.
_SHORTENED_BYTES = 400


class First(Protocol):
    """The documents that a table begins with, which are stored in a segment."""

    @property
    def values(self) -> Strings: ...
    @property
    def ids(self) -> Strings: ...
    @property
    def payloads(self) -> Pieces: ...

    count: int
    columns: dict[str, NDArray[Any]]
    speakers: list[tuple[str, tuple[str, ...]]]
    session_count: int

    def id(self, number: int) -> str: ...
    def number(self, record_id: str) -> int: ...
    def text(self, number: int) -> bytes: ...
    def session(self, session: Session) -> int: ...


class Counts:
    """Counters by index. A view of them does not change with later additions."""

    def __init__(self, values: Ints | None = None) -> None:
        self._values: Ints = np.zeros(8, dtype=np.int64) if values is None else values
        self._shared = values is not None

    def add(self, index: int, amount: int) -> None:
        if index >= len(self._values):
            grown = np.zeros(index + index // 4 + 8, dtype=np.int64)
            grown[: len(self._values)] = self._values
            self._values, self._shared = grown, False
        elif self._shared:
            self._values, self._shared = self._values.copy(), False
        self._values[index] += amount

    def view(self) -> Ints:
        self._shared = True
        return self._values


class Rows:
    """The data of each document that is not in columns: the id and payload of its record, and the digest of its text.

    Attributes:
        kept: Data that a user of the index caches by name, for the lifetime of these rows.
    """

    def __init__(self, first: First | None = None) -> None:
        self._first = first
        self._ids: list[str] = []
        self._texts: list[bytes] = []
        self._payloads: list[bytes] = []
        self.kept: dict[str, Any] = {}

    def fork(self) -> Rows:
        copy = Rows(self._first)
        copy._ids, copy._texts, copy._payloads = list(self._ids), list(self._texts), list(self._payloads)
        return copy

    def append(self, record_id: str, text: bytes, payload: bytes) -> None:
        self._ids.append(record_id)
        self._texts.append(text)
        self._payloads.append(payload)

    def id(self, number: int) -> str:
        """Return the id of a document's record."""
        if self._first is None:
            return self._ids[number]
        count = self._first.count
        return self._first.id(number) if number < count else self._ids[number - count]

    def ids(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return the ids of the records of some documents, by their numbers."""
        early, later = self._parted(numbers)
        ids = {} if self._first is None else dict(zip(early, self._first.ids.several(early), strict=True))
        return ids | {number: self._ids[at] for number, at in later.items()}

    def payload(self, number: int) -> bytes:
        """Return the payload of a document's record; b"" if only the store has it."""
        if self._first is None:
            return self._payloads[number]
        count = self._first.count
        return self._first.payloads[number] if number < count else self._payloads[number - count]

    def payloads(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """Return the payloads of the records of some documents, by their numbers; b"" if only the store has one."""
        early, later = self._parted(numbers)
        found = () if self._first is None else map(bytes, self._first.payloads.several(early))
        return dict(zip(early, found, strict=True)) | {number: self._payloads[at] for number, at in later.items()}

    def _parted(self, numbers: Iterable[int]) -> tuple[list[int], dict[int, int]]:
        """Return which of some documents are in the segment, and the indexes of the others in the lists here."""
        count = 0 if self._first is None else self._first.count
        some = dict.fromkeys(numbers)
        early = [number for number in some if number < count]
        return early, {} if len(early) == len(some) else {each: each - count for each in some if each >= count}

    def text(self, number: int) -> bytes:
        """Return the digest that the vectors of a document's text are stored under."""
        if self._first is None:
            return self._texts[number]
        count = self._first.count
        return self._first.text(number) if number < count else self._texts[number - count]


class Values:
    """The texts of record fields by number. Texts are only added, never removed.

    Args:
        first: The texts that the table begins with.
    """

    def __init__(self, first: Strings | None) -> None:
        self._first = first
        self._count = 0 if first is None else len(first)
        self._numbers: dict[str, int] = {}
        self._later: list[str] = []

    def fork(self) -> Values:
        copy = Values(self._first)
        copy._numbers, copy._later = dict(self._numbers), list(self._later)
        return copy

    def add(self, text: str | None) -> int:
        """Return the number of a text, assigning one if it is new; NONE for None."""
        if text is None:
            return NONE
        number = self.find(text)
        if number == NONE:
            number = len(self)
            self._later.append(text)
            self._numbers[text] = number
        return number

    def find(self, text: str) -> int:
        """Return the number of a text, or NONE."""
        number = self._numbers.get(text)
        if number is None:
            number = NONE if self._first is None else self._first.find(text)
            if number != NONE and len(self._numbers) < _MAX_CACHED:
                self._numbers[text] = number
        return number

    def __len__(self) -> int:
        return self._count + len(self._later)

    def __getitem__(self, number: int) -> str:
        if number >= self._count or self._first is None:
            return self._later[number - self._count]
        return self._first[number]


_EMPTY: set[str] = set()


class Speakers:
    """Speakers by number: names and roles, and the terms of the names. Speakers are only added, never removed."""

    def __init__(self, known: Iterable[tuple[str, tuple[str, ...]]] = ()) -> None:
        self.number: dict[str, int] = {}
        self.known: list[tuple[str, tuple[str, ...]]] = []
        self.folded: list[str] = []  # "" for a role
        self.by_term: dict[str, list[int]] = {}
        self._words: dict[str, set[int]] = {}  # word of a name -> the speakers that have it
        self._shortened: dict[str, set[str]] = {}  # a word of a name, or one without one of its letters -> these words
        self._indexed = 0
        for name, terms in known:
            self.add(name, terms)

    def fork(self) -> Speakers:
        return Speakers(self.known)

    def add(self, name: str, terms: tuple[str, ...]) -> int:
        """Return the number of a speaker, assigning one if it is new."""
        number = self.number.get(name)
        if number is None:
            number = len(self.known)
            self.known.append((name, terms))
            self.folded.append("" if name.startswith("\0") else folded(name))
            for term in terms:
                self.by_term.setdefault(term, []).append(number)
            self.number[name] = number
        return number

    def almost(self, word: str) -> set[int]:
        """Return the speakers of whose name a word is a misspelling: one edit makes it a word of the name.

        Words of less than LEAST_LETTERS letters have no misspellings.

        Cost:
            O(letters), and once O(letters of all names).
        """
        self._index()
        # One edit of a word lets both lose a letter and be the same.
        near = {name for short in _shortened(word) for name in self._shortened.get(short, _EMPTY).copy()}
        return {number for name in near if one_edit(word, name) for number in self._words[name].copy()}

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes of what `almost` has computed."""
        return _SHORTENED_BYTES * len(self._shortened)

    def _index(self) -> None:
        """Index the words of the names that were added since.

        Threads may do so at the same time: entries are only added. A set is copied before it is read, since other
        threads can add to it. `copy` is atomic; to make a tuple of it is not, since that may collect garbage meanwhile.
        """
        for number in range(self._indexed, len(self.folded)):
            for each in self.folded[number].split():
                if LEAST_LETTERS <= len(each) <= MAX_WORD + 1:  # a question has no longer words
                    self._words.setdefault(each, set()).add(number)
                    for short in _shortened(each):
                        self._shortened.setdefault(short, set()).add(each)
            self._indexed = number + 1


def _shortened(word: str) -> set[str]:
    """Return a word, and it without each of its letters."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}
