"""The table of documents: what every signal needs to know of a record, by document number.

Numbers are given in order of arrival and never again: a record that changes gets a new number and its old one dies.
Columns only grow at their end, so a view that remembers how many documents there were sees the same table for ever.
What must change in the middle (a death, a turn put between two others) is done on copies, and views keep the old ones.

Turns of a session are linked to the turn before and after; that is all that context needs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.fixed import ONE
from recollect.text.words import Term, folded

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Place = tuple[int, int, str]
NEVER = 2**63 - 1
NONE = -1


class Document(NamedTuple):
    """A record as indexes see it.

    session   what context stays within: (conversation, session), or None for a record that is no turn
    place     the order within the session: position, time, id
    asks      whether it ends with a question, which the next turn answers
    micros, expires   in microseconds of 1970; `expires` NEVER where it does not
    speaker   who said it: a name, or "" and the role ("\0user"); "" where nobody is named
    names     the terms of the speaker's name
    weight    what its kind of text counts for, with 16 bits of fraction (`text.manner`)
    civil     its local date (`civil_of`); 0 where it has no time
    offers    the kinds of answers that it has (`text.answers.Kind`)
    language  in which its words were read (`text.languages.CODES`)
    standing  the marks that make it govern other questions (`text.manner.MARKS`), as bits
    text      the digest that its text's vectors are kept under; b"" where there is no text
    """

    id: str
    terms: list[Term]
    session: tuple[str, str] | None
    place: Place
    asks: bool
    micros: int
    expires: int
    speaker: str = ""
    names: tuple[str, ...] = ()
    weight: int = ONE
    civil: int = 0
    offers: int = 0
    language: int = 0
    standing: int = 0
    text: bytes = b""


def civil_of(day: date) -> int:
    """A day as one number that rises with it.

    >>> civil_of(date(2026, 1, 31)) < civil_of(date(2026, 2, 1))
    True
    """
    return day.year << 9 | day.month << 5 | day.day


@dataclass(frozen=True)
class Table:
    """The documents of one moment. Arrays are at least `count` long; what lies beyond is not part of the view."""

    count: int
    live_count: int
    tokens: int
    length: Ints
    asks: Flags
    micros: Ints
    expires: Ints
    session: Ints
    speaker: Ints
    weight: Ints
    civil: Ints
    offers: Ints
    language: Ints
    standing: Ints
    alive: Flags
    before: Ints
    after: Ints
    ids: list[str]
    texts: list[bytes]
    first_due: int
    speakers: dict[str, int]
    _numbers: dict[str, int]
    _earlier: list[int]

    def number(self, record_id: str) -> int:
        """The document of a live record, or NONE."""
        number = self._numbers.get(record_id, NONE)
        while number >= self.count:  # given after this view
            number = self._earlier[number]
        return number if number != NONE and self.alive[number] else NONE

    def mask(self, record_ids: Iterable[str]) -> Flags:
        """Which documents belong to these records."""
        out: Flags = np.zeros(self.count, dtype=np.bool_)
        numbers = [self.number(record_id) for record_id in record_ids]
        out[[number for number in numbers if number != NONE]] = True
        return out

    def at(self, now: int) -> Table:
        """The table without the records that are due at `now`."""
        return self if now < self.first_due else self.only(self.expires[: self.count] > now)

    def only(self, kept: Flags) -> Table:
        """The table of some of its documents, as if there were no others: turns are linked past those between them.

        Cost: O(documents).
        """
        alive = self.alive.copy()
        alive[: self.count] &= kept
        live = alive[: self.count]
        lost = self.alive[: self.count] & ~live
        return replace(
            self,
            live_count=int(np.count_nonzero(live)),
            tokens=int(self.length[: self.count][live].sum()),
            alive=alive,
            before=_past(self.before, lost),
            after=_past(self.after, lost),
            first_due=int(self.expires[: self.count][live].min(initial=NEVER)),
        )

    @cached_property
    def languages(self) -> Ints:
        """How many live documents were read in each language, by its number."""
        return np.bincount(self.language[: self.count][self.alive[: self.count]])

    @cached_property
    def spoken_by(self) -> dict[int, str]:
        """The names of those who speak in live documents, folded, by number."""
        names = {number: name for name, number in self.speakers.copy().items() if not name.startswith("\0")}
        live = np.unique(self.speaker[: self.count][self.alive[: self.count]])
        return {number: folded(names[number]) for number in map(int, live) if number in names}

    @cached_property
    def session_lengths(self) -> Ints:
        """The number of tokens in each session, by its number; 0 for one that has no live document."""
        numbers = np.flatnonzero(self.alive[: self.count] & (self.session[: self.count] != NONE))
        sessions = int(self.session[: self.count].max(initial=NONE)) + 1  # those of dead documents too
        return np.bincount(self.session[numbers], self.length[numbers], sessions).astype(np.int64)


def _past(links: Ints, lost: Flags) -> Ints:
    """Links that lead past what is lost. Cost: O(links), times the logarithm of the longest run of lost turns."""
    out = links.copy()
    own = out[: len(lost)]
    while True:
        inside = (own != NONE) & (own < len(lost))
        leap = np.flatnonzero(inside)[lost[own[inside]]]
        if not len(leap):
            return out
        own[leap] = own[own[leap]]


def _unlink(number: int, before: Ints, after: Ints, count: int) -> None:
    left, right = int(before[number]), int(after[number])
    if left != NONE:
        after[left] = right
    if right != NONE and right < count:
        before[right] = left


_COLUMNS = (
    "_length",
    "_micros",
    "_expires",
    "_session",
    "_speaker",
    "_weight",
    "_civil",
    "_offers",
    "_language",
    "_standing",
    "_before",
    "_after",
)


class Documents:
    """The table as it is built: one writer, any number of views."""

    _length: Ints
    _micros: Ints
    _expires: Ints
    _session: Ints
    _speaker: Ints
    _weight: Ints
    _civil: Ints
    _offers: Ints
    _language: Ints
    _standing: Ints
    _before: Ints
    _after: Ints

    def __init__(self) -> None:
        self.count = 0
        self._live_count = 0
        self._tokens = 0
        self._first_due = NEVER
        self._ids: list[str] = []
        self._texts: list[bytes] = []
        self._numbers: dict[str, int] = {}
        self._sessions: dict[tuple[str, str], list[tuple[Place, int]]] = {}
        self._session_of: dict[int, tuple[tuple[str, str], Place]] = {}
        self._earlier: list[int] = []  # document -> the one that its record had before
        self._session_numbers: dict[tuple[str, str], int] = {}
        self._speakers: dict[str, int] = {}
        for name in _COLUMNS:
            setattr(self, name, np.zeros(16, dtype=np.int64))
        self._asks, self._alive = np.zeros(16, dtype=np.bool_), np.zeros(16, dtype=np.bool_)
        self._shared = False  # whether a view holds the columns that deaths and insertions change

    def fork(self) -> Documents:
        """A copy that can go its own way."""
        copy = Documents()
        copy.__dict__.update(self.__dict__)
        copy._ids, copy._numbers, copy._session_of = list(self._ids), dict(self._numbers), dict(self._session_of)
        copy._earlier, copy._texts = list(self._earlier), list(self._texts)
        copy._sessions = {session: list(turns) for session, turns in self._sessions.items()}
        copy._session_numbers, copy._speakers = dict(self._session_numbers), dict(self._speakers)
        for name in (*_COLUMNS, "_asks", "_alive"):
            setattr(copy, name, getattr(self, name).copy())
        copy._shared = False
        return copy

    def add(self, document: Document) -> int:
        """Give a document its number. The record's former document must have been removed."""
        number = self.count
        if number == len(self._length):
            self._grow()
        self._length[number] = len(document.terms)
        self._asks[number] = document.asks
        self._micros[number] = document.micros
        self._weight[number] = document.weight
        self._civil[number] = document.civil
        self._offers[number] = document.offers
        self._language[number] = document.language
        self._standing[number] = document.standing
        self._speaker[number] = NONE
        if document.speaker:
            self._speaker[number] = self._speakers.setdefault(document.speaker, len(self._speakers))
        self._session[number] = NONE
        if document.session is not None:
            numbers = self._session_numbers
            self._session[number] = numbers.setdefault(document.session, len(numbers))
        self._expires[number] = document.expires
        self._alive[number] = True
        self._before[number] = self._after[number] = NONE
        self._earlier.append(self._numbers.get(document.id, NONE))
        self._numbers[document.id] = number
        self._ids.append(document.id)
        self._texts.append(document.text)
        self._first_due = min(self._first_due, document.expires)
        self.count += 1
        self._live_count += 1
        self._tokens += len(document.terms)
        if document.session is not None:
            self._link(number, document.session, document.place)
        return number

    def _link(self, number: int, session: tuple[str, str], place: Place) -> None:
        turns = self._sessions.setdefault(session, [])
        self._session_of[number] = (session, place)
        if not turns or turns[-1][0] < place:
            if turns:
                # In place: a view that does not know the new number takes the link for the end of the session.
                self._after[turns[-1][1]] = number
                self._before[number] = turns[-1][1]
            turns.append((place, number))
            return
        self._own()
        insort(turns, (place, number))
        at = bisect_left(turns, (place, number))
        if at > 0:
            left = turns[at - 1][1]
            self._after[left], self._before[number] = number, left
        if at + 1 < len(turns):
            right = turns[at + 1][1]
            self._before[right], self._after[number] = number, right

    def remove(self, record_id: str) -> None:
        """Let the record have no document. One that has none is passed over."""
        number = self._numbers.get(record_id, NONE)
        if number == NONE or not self._alive[number]:
            return
        self._own()
        self._alive[number] = False
        self._live_count -= 1
        self._tokens -= int(self._length[number])
        if number in self._session_of:
            session, place = self._session_of.pop(number)
            turns = self._sessions[session]
            del turns[bisect_left(turns, (place, number))]
            if not turns:
                del self._sessions[session]
            _unlink(number, self._before, self._after, self.count)

    def view(self) -> Table:
        """The table of this moment."""
        self._shared = True
        return Table(
            count=self.count,
            live_count=self._live_count,
            tokens=self._tokens,
            length=self._length,
            asks=self._asks,
            micros=self._micros,
            expires=self._expires,
            session=self._session,
            speaker=self._speaker,
            weight=self._weight,
            civil=self._civil,
            offers=self._offers,
            language=self._language,
            standing=self._standing,
            speakers=self._speakers,
            alive=self._alive,
            before=self._before,
            after=self._after,
            ids=self._ids,
            texts=self._texts,
            first_due=self._first_due,
            _numbers=self._numbers,
            _earlier=self._earlier,
        )

    def _own(self) -> None:
        """Before a change in the middle: leave the columns that it touches to the views that hold them."""
        if self._shared:
            self._alive, self._before, self._after = self._alive.copy(), self._before.copy(), self._after.copy()
            self._shared = False

    def _grow(self) -> None:
        def doubled(column: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([column, np.zeros_like(column)])

        for name in (*_COLUMNS, "_asks", "_alive"):
            setattr(self, name, doubled(getattr(self, name)))
        self._shared = False
