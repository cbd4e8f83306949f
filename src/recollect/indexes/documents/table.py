"""The document table: the properties of each indexed record that the signals need, by document number.

Numbers are assigned in order of insertion and never reused: a record that changes gets a new number, and its old one
becomes dead. Columns grow only at their end, so a view that stores the number of documents always sees the same table.
Changes in the middle (a deletion, a turn inserted between two others, a counter) are made on copies; views keep the old
arrays. A table may begin with the documents of a segment, whose columns then form its first part.

The turns of a session are linked to the previous and the next turn; context needs nothing else.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import (
    COLUMNS,
    FIELDS,
    GROUPED,
    NEVER,
    NO_TIME,
    NONE,
    Document,
    Flags,
    Ints,
    Numbers,
    Session,
    SortKey,
    values_of,
)
from recollect.indexes.documents.row_data import Counts, First, Rows, Speakers, Values
from recollect.indexes.fixed_point import ONE
from recollect.indexes.parameters import SESSION_CONSTANT, SESSION_SLOPE
from recollect.text.manner import MACHINE_ROLES

#: The columns that change in the middle.
_CHANGING = ("alive", "before", "after", "weight")
#: The columns that are the same where a turn replaces one at the same place.
_OF_PLACE = (*(FIELDS[at] for at in GROUPED), "micros", "position", "length", "manner", "alive")
#: Maximum number of narrowed tables that are cached with a table.
_MAX_NARROWED = 8
#: With this many stale groups, it is not looked up which turns are the last of others that are removed.
_FEW_STALE = 16
#: Columns grow by a quarter, and by at least this many rows.
_MIN_GROWTH = 1024


@dataclass(frozen=True)
class Table:
    """An immutable view of the documents. Arrays have at least `count` elements; those beyond are not part of the view.

    Attributes:
        count: Number of documents, dead ones included.
        live_count: Number of live documents.
        tokens: Number of tokens of all live documents.
        has_turns: Whether any document, live or dead, is a turn.
        first_due: The earliest expiry, or NEVER.
        session_lengths: Number of tokens of the live documents of each session, by session number.
        languages: Number of live documents in each language, by language number.
        spoken: Number of live documents of each speaker, by speaker number.
        later_sessions: Returns the sessions that are not in the segment, by number; also those added after this view.
        derived: What a user of the index computes from this view, by name.
    """

    count: int
    live_count: int
    tokens: int
    has_turns: bool
    length: Numbers
    micros: Ints
    expires: Ints
    position: Ints
    session: Numbers
    speaker: Numbers
    manner: Numbers
    weight: Numbers
    group: Numbers
    civil: Numbers
    offers: NDArray[np.int8]
    language: NDArray[np.int8]
    standing: NDArray[np.int8]
    asks: Flags
    alive: Flags
    before: Numbers
    after: Numbers
    importance: NDArray[np.float64]
    valid_from: Ints
    valid_to: Ints
    kind: Numbers
    role: Numbers
    user: Numbers
    agent: Numbers
    conversation: Numbers
    entity: Numbers
    source: Numbers
    rows: Rows
    first_due: int
    speakers: Speakers
    values: Values
    session_lengths: Ints
    languages: Ints
    spoken: Ints
    later_sessions: Callable[[], list[Session]]
    _governing: tuple[list[int], int]
    _bounded: tuple[list[int], int]
    _numbers: dict[str, int]
    _earlier: dict[int, int]
    _first: First | None
    _unexpired: list[tuple[int, Table]] = field(default_factory=list)
    _narrowed: dict[Hashable, Table] = field(default_factory=dict)
    derived: dict[str, Any] = field(default_factory=dict)

    def id(self, number: int) -> str:
        """Return the id of a document's record."""
        return self.rows.id(number)

    def number(self, record_id: str) -> int:
        """Return the document number of a live record, or NONE."""
        number = self._numbers.get(record_id, NONE)
        while number >= self.count:  # assigned after this view
            number = self._earlier.get(number, NONE)
        if number == NONE and self._first is not None:
            number = self._first.number(record_id)
        return number if number != NONE and self.alive[number] else NONE

    def mask(self, record_ids: Iterable[str]) -> Flags:
        """Return which documents belong to these records."""
        out: Flags = np.zeros(self.count, dtype=np.bool_)
        numbers = [self.number(record_id) for record_id in record_ids]
        out[[number for number in numbers if number != NONE]] = True
        return out

    def having(self, field: str, texts: Iterable[str]) -> Flags:
        """Return which documents have one of these texts in a field of `columns.FIELDS`.

        Cost:
            O(documents).
        """
        column = getattr(self, field)[: self.count]
        numbers = [number for text in texts if (number := self.values.find(text)) != NONE]
        out: Flags = column == numbers[0] if len(numbers) == 1 else np.isin(column, numbers)
        return out

    def present(self, field: str) -> Flags:
        """Return which documents have a field of `columns.FIELDS`, whatever its value."""
        numbers: Ints = getattr(self, field)[: self.count]
        out: Flags = numbers != NONE
        return out

    @cached_property
    def pivots(self) -> Ints:
        """K of each document (`scores`), or 0 if not yet computed. Kernels fill it in, always with the same values."""
        return np.zeros(self.count, dtype=np.int64)

    @cached_property
    def governing(self) -> Ints:
        """The live documents with standing tags (`text.manner.STANDING_TAGS`), ascending."""
        numbers, count = self._governing
        tagged = np.array(numbers[:count], dtype=np.int64)
        return tagged[self.alive[tagged]]

    def lapsed(self, begin: int, end: int) -> Ints:
        """Return the live documents that are valid at no time from `begin` to before `end`, ascending.

        Args:
            begin: In microseconds since 1970.
            end: The same; excluded.

        Cost:
            O(documents with a start or an end of validity).
        """
        numbers, count = self._bounded
        if not count:
            return np.zeros(0, dtype=np.int64)
        bounded = np.array(numbers[:count], dtype=np.int64)
        apart = (self.valid_to[bounded] <= begin) | (self.valid_from[bounded] >= end)
        return bounded[apart & self.alive[bounded]]

    def at(self, now: int, renewed: Renewed) -> Table:
        """Return the table without the records that are due at `now`. The latest such table is cached.

        Args:
            renewed: Returns the table with the weights that it has without the dropped documents (`only`).
        """
        if now < self.first_due:
            return self
        for since, table in self._unexpired:
            if since <= now < table.first_due:
                return table
        table = self.only(self.expires[: self.count] > now, renewed)
        self._unexpired[:] = [(now, table)]
        return table

    def only(self, kept: Flags, renewed: Renewed) -> Table:
        """Return the table as if only these documents existed: links between turns skip the others.

        Args:
            kept: Whether each document remains.
            renewed: Returns the table with the weights of those turns whose group has lost others (`words.novelty`).

        Cost:
            O(documents).
        """
        alive = self.alive.copy()
        alive[: self.count] &= kept
        live = alive[: self.count]
        dropped = self.alive[: self.count] & ~live
        table = replace(
            self,
            live_count=int(np.count_nonzero(live)),
            tokens=int(self.length[: self.count][live].sum(dtype=np.int64)),
            alive=alive,
            before=_relinked(self.before, dropped),
            after=_relinked(self.after, dropped),
            first_due=int(self.expires[: self.count][live].min(initial=NEVER)),
            session_lengths=counted(self.session, live, len(self.session_lengths), self.length),
            languages=counted(self.language, live, len(self.languages)),
            spoken=counted(self.speaker, live, len(self.spoken)),
            _unexpired=[],
            _narrowed={},
            derived={},
        )
        lost = np.unique(self.group[: self.count][dropped])
        stale = live & np.isin(self.group[: self.count], lost[lost != NONE])
        return renewed(table, np.flatnonzero(stale)) if stale.any() else table

    def with_weights(self, numbers: Ints, weights: Ints) -> Table:
        """Return the table with other weights of some documents."""
        weight = self.weight.copy()
        weight[numbers] = weights
        return replace(self, weight=weight)

    def narrowed(self, name: Hashable, kept: Callable[[], Flags], renewed: Renewed) -> Table:
        """Return the table of some documents (`only`), cached by name. The latest few are cached.

        Args:
            name: Must identify the same documents for all callers.
            kept: Returns whether each document remains; called if the table is not cached.
            renewed: As in `only`.
        """
        table = self._narrowed.get(name)
        if table is None:
            table = self.only(kept(), renewed)
            while len(self._narrowed) >= _MAX_NARROWED:
                self._narrowed.pop(next(iter(self._narrowed), None), None)
            self._narrowed[name] = table
        return table

    def speakers_named(self, term: str) -> list[int]:
        """Return the speakers of live documents whose names contain a term."""
        return [number for number in self.speakers.by_term.get(term, ()) if self.is_live_speaker(number)]

    @cached_property
    def written_in(self) -> list[int]:
        """The languages of live documents by number in `text.languages.CODES`, the most frequent first."""
        return sorted(np.flatnonzero(self.languages).tolist(), key=lambda code: (-int(self.languages[code]), code))

    @cached_property
    def session_totals(self) -> tuple[int, int]:
        """Number of sessions with live tokens, and the total of these tokens.

        Cost:
            O(sessions).
        """
        return int(np.count_nonzero(self.session_lengths)), int(self.session_lengths.sum())

    @cached_property
    def session_pivots(self) -> Ints:
        """The mass at which a term of each session is half saturated, if any session has tokens.

        Cost:
            O(sessions).
        """
        count, tokens = self.session_totals
        rise = SESSION_SLOPE * count * ONE // 10
        pivots: Ints = SESSION_CONSTANT * ONE // 10 + self.session_lengths * rise // max(tokens, 1)
        return pivots

    @cached_property
    def has_speakers(self) -> bool:
        """True if any live document has a speaker."""
        return bool(self.spoken.any())

    def by_machine(self, numbers: Ints) -> Flags:
        """Return which documents have a role whose texts are not written by a person."""
        roles = [number for role in MACHINE_ROLES if (number := self.values.find(role)) != NONE]
        return np.isin(self.role[numbers], roles)

    def is_live_speaker(self, speaker: int) -> bool:
        """Return whether a live document has this speaker."""
        return speaker < len(self.spoken) and bool(self.spoken[speaker])

    @cached_property
    def speaker_names(self) -> dict[int, str]:
        """The folded names of the speakers of live documents, by number.

        Cost:
            O(speakers).
        """
        names = self.speakers.folded
        return {number: names[number] for number in np.flatnonzero(self.spoken).tolist() if names[number]}


#: Returns a table with the weights of some of its turns counted again.
Renewed = Callable[[Table, Ints], Table]


def counted(column: NDArray[Any], live: Flags, size: int, amounts: NDArray[Any] | None = None) -> Ints:
    """Return the number of live documents, or the sum of their `amounts`, for each value of a column."""
    values = column[: len(live)][live]
    known = values >= 0
    if amounts is None:
        return np.bincount(values[known], minlength=size).astype(np.int64)
    # Sums in floating point are exact: integers far below 2^53.
    return np.bincount(values[known], amounts[: len(live)][live][known], size).astype(np.int64)


def _relinked(links: Numbers, dropped: Flags) -> Numbers:
    """Return links that skip the dropped documents.

    Cost:
        O(links), times the logarithm of the longest run of dropped turns.
    """
    out = links.copy()
    own = out[: len(dropped)]
    while True:
        inside = (own != NONE) & (own < len(dropped))
        leap = np.flatnonzero(inside)[dropped[own[inside]]]
        if not len(leap):
            return out
        own[leap] = own[own[leap]]


class TableBuilder:
    """The table under construction: one writer, any number of views.

    Args:
        first: The documents that it begins with, all of them live.
    """

    def __init__(self, first: First | None = None) -> None:
        self.count = self.live_count = 0 if first is None else first.count
        self._first = first
        self._columns: dict[str, NDArray[Any]] = {}
        self.rows = Rows(first)
        self.speakers = Speakers(() if first is None else first.speakers)
        self.values = Values(None if first is None else first.values)
        self._numbers: dict[str, int] = {}
        self._earlier: dict[int, int] = {}  # document -> the previous document of its record
        self._session_numbers: dict[Session, int] = {}
        self._session_count = 0
        self._groups: dict[tuple[int, ...], int] = {}  # the values of the fields of a group -> its number
        self._group_count = 0
        self._first_of: dict[int, int] = {}  # group -> its first document, if it was looked up
        self._last_of: dict[int, int] = {}  # group -> its last live turn, or NONE, if it was looked up
        #: Groups that have turns whose weights must be counted again (`words.novelty`).
        self.stale: set[int] = set()
        # Session -> its last live document, and, if it was needed, the list of all its turns in order.
        self._last: dict[int, int] = {}
        self._turns: dict[int, list[tuple[SortKey, int]]] = {}
        self._governing: list[int] = []
        self._bounded: list[int] = []  # documents with a start or an end of validity
        self._due: list[tuple[int, int]] = []  # a heap of (expires, document); dead ones leave at the top
        self._tokens = 0
        self._session_lengths, self._languages, self._spoken, self._in_group = (Counts() for _ in range(4))
        self._shared = False  # whether a view shares the columns that change in the middle
        if first is None:
            for name, kind in COLUMNS.items():
                self._columns[name] = np.zeros(16, dtype=kind)
        else:
            self._begin_with(first)

    def _begin_with(self, first: First) -> None:
        self._columns = dict(first.columns)
        self._shared = True
        self._session_count = first.session_count
        self._group_count = int(self._columns["group"].max(initial=NONE)) + 1
        live = self._columns["alive"]
        length, session = self._columns["length"], self._columns["session"]
        self._tokens = int(length.sum(dtype=np.int64))
        self._session_lengths = Counts(counted(session, live, first.session_count, length))
        self._languages = Counts(counted(self._columns["language"], live, 0))
        self._in_group = Counts(counted(self._columns["group"], live, self._group_count))
        self._spoken = Counts(counted(self._columns["speaker"], live, len(first.speakers)))
        self._governing = np.flatnonzero(self._columns["standing"]).tolist()
        bounded = (self._columns["valid_from"] != NO_TIME) | (self._columns["valid_to"] != NEVER)
        self._bounded = np.flatnonzero(bounded).tolist()
        ends = np.flatnonzero((session != NONE) & (self._columns["after"] == NONE))
        self._last = dict(zip(session[ends].tolist(), ends.tolist(), strict=True))
        due = np.flatnonzero(self._columns["expires"] != NEVER)
        self._due = sorted(zip(self._columns["expires"][due].tolist(), due.tolist(), strict=True))

    def fork(self) -> TableBuilder:
        """Return an independent copy.

        Cost:
            One copy of the columns, and of the rows added after the segment.
        """
        copy = TableBuilder()
        copy.__dict__.update(self.__dict__)
        copy._columns = {name: column.copy() for name, column in self._columns.items()}
        copy.rows, copy.speakers, copy.values = self.rows.fork(), self.speakers.fork(), self.values.fork()
        copy._numbers, copy._earlier = dict(self._numbers), dict(self._earlier)
        copy._session_numbers, copy._last = dict(self._session_numbers), dict(self._last)
        copy._turns = {session: list(turns) for session, turns in self._turns.items()}
        copy._groups, copy._last_of, copy.stale = dict(self._groups), dict(self._last_of), set(self.stale)
        copy._first_of = dict(self._first_of)
        copy._governing, copy._bounded, copy._due = list(self._governing), list(self._bounded), list(self._due)
        for name in ("_session_lengths", "_languages", "_spoken", "_in_group"):
            setattr(copy, name, Counts(getattr(self, name).view()))
        copy._shared = False
        return copy

    def add(self, document: Document) -> int:
        """Insert a document and return its number. The previous document of the record must have been removed."""
        number = self._add(document)
        group = int(self._columns["group"][number])
        if group != NONE:
            self._follow(number, group)
        return number

    def in_place_of(self, document: Document) -> int:
        """Return the live turn that this turn replaces at the same place in its group and with as many words, or NONE.

        The order of turns is that of their times, positions and ids.
        """
        number = self._number(document.id)
        if number == NONE or document.session is None or self._columns["session"][number] == NONE:
            return NONE
        row = {name: int(self._columns[name][number]) for name in _OF_PLACE}
        for at in GROUPED:
            text, value = document.fields[at], row.pop(FIELDS[at])
            if (value == NONE) != (text is None) or (text is not None and self.values.find(text) != value):
                return NONE
        alike = {
            "micros": document.micros,
            "position": document.sort_key[0],
            "length": len(document.terms),
            "manner": document.manner,
            "alive": True,
        }
        return number if row == alike else NONE

    def replace(self, document: Document) -> int:
        """Insert a turn in place of the one that `in_place_of` returns: no turn of its group has other new words.

        Its own weight is kept, too. Return its number.
        """
        before = self._number(document.id)
        group, weight = (int(self._columns[name][before]) for name in ("group", "weight"))
        self._remove(before)
        number = self._add(document)
        self._columns["weight"][number] = weight
        if self._last_of.get(group) == before:
            self._last_of[group] = number
        return number

    def _add(self, document: Document) -> int:
        number = self.count
        if number == len(self._columns["length"]):
            self._grow()
        session = NONE if document.session is None else self._session_number(document.session)
        speaker = self.speakers.add(document.speaker, document.names) if document.speaker else NONE
        length = len(document.terms)
        fields = [self.values.add(text) for text in document.fields]
        group = NONE if session == NONE else self._group_number(tuple([fields[at] for at in GROUPED]))
        values = values_of(document, session, group, speaker, fields)
        for column, value in zip(self._columns.values(), values, strict=True):
            column[number] = value
        earlier = self._numbers.get(document.id, NONE)
        if earlier != NONE:
            self._earlier[number] = earlier
        self._numbers[document.id] = number
        self.rows.append(document.id, document.text, document.payload)
        self.count += 1
        self.live_count += 1
        self._tokens += length
        self._languages.add(document.language, 1)
        if document.standing:
            self._governing.append(number)
        if document.valid_from != NO_TIME or document.valid_to != NEVER:
            self._bounded.append(number)
        if document.expires != NEVER:
            heapq.heappush(self._due, (document.expires, number))
        if speaker != NONE:
            self._spoken.add(speaker, 1)
        if session != NONE:
            self._session_lengths.add(session, length)
            self._link(number, session, document.sort_key)
            self._in_group.add(group, 1)
        return number

    def _follow(self, number: int, group: int) -> None:
        """Note whether a new turn is the last of its group; otherwise the weights of later ones become stale."""
        if group in self.stale:
            return
        last = self.last_of(group)
        if last in (NONE, number) or self._time_key(last) < self._time_key(number):
            self._last_of[group] = number
        else:
            self.stale.add(group)

    def take_stale(self) -> Ints:
        """Return the turns whose weights must be counted again, ascending; from now on none are."""
        group, alive = self.columns_of("group", "alive")
        for each in self.stale:
            self._last_of.pop(each, None)
        found = np.flatnonzero(alive & np.isin(group, list(self.stale)))
        self.stale.clear()
        return found

    def has_others(self, group: int) -> bool:
        """Return whether a group has more than one live turn."""
        return int(self._in_group.view()[group]) > 1

    def _group_number(self, values: tuple[int, ...]) -> int:
        """Return the number of the group of turns with these values in the fields of GROUPED."""
        number = self._groups.get(values)
        if number is None:
            number = NONE
            if self._first is not None and max(values) < len(self._first.values):  # others are in no document of it
                of_group = self._first.columns["group"] != NONE
                for name, value in zip((FIELDS[at] for at in GROUPED), values, strict=True):
                    of_group &= self._first.columns[name] == value
                number = int(self._first.columns["group"][of_group].max(initial=NONE))
            if number == NONE:
                number, self._group_count = self._group_count, self._group_count + 1
                self._last_of[number] = NONE
            self._groups[values] = number
        return number

    def last_of(self, group: int) -> int:
        """Return the last live turn of a group in the order of times, or NONE.

        Cost:
            O(documents), unless it was looked up before.
        """
        last = self._last_of.get(group)
        if last is None:
            group_of, alive = self.columns_of("group", "alive")
            live = np.flatnonzero((group_of == group) & alive)
            last = self._last_of[group] = max(live.tolist(), key=self._time_key, default=NONE)
        return last

    def first_of(self, group: int) -> int:
        """Return a document before which there is none of a group: its first one when this was first asked.

        Cost:
            O(documents), unless it was looked up before.
        """
        first = self._first_of.get(group)
        if first is None:
            [group_of] = self.columns_of("group")
            first = self._first_of[group] = int((group_of == group).argmax())
        return first

    def _time_key(self, number: int) -> tuple[int, int, str]:
        columns = self._columns
        return int(columns["micros"][number]), int(columns["position"][number]), self.rows.id(number)

    def set_weights(self, numbers: Ints, weights: Ints) -> None:
        """Set the weights of turns, of which views may have others."""
        self._unshare()
        self._columns["weight"][numbers] = weights

    def set_weight(self, number: int, weight: int) -> None:
        """Set the weight of a turn that no view has yet."""
        self._columns["weight"][number] = weight

    def columns_of(self, *names: str) -> list[NDArray[Any]]:
        """Return columns of all documents so far."""
        return [self._columns[name][: self.count] for name in names]

    def _session_number(self, session: Session) -> int:
        number = self._session_numbers.get(session, NONE)
        if number == NONE and self._first is not None:
            number = self._first.session(session)
        if number == NONE:
            number, self._session_count = self._session_count, self._session_count + 1
        self._session_numbers[session] = number
        return number

    def _sort_key(self, number: int) -> SortKey:
        columns = self._columns
        return int(columns["position"][number]), int(columns["micros"][number]), self.rows.id(number)

    def _link(self, number: int, session: int, key: SortKey) -> None:
        last = self._last.get(session, NONE)
        before, after = self._columns["before"], self._columns["after"]
        if last == NONE or self._sort_key(last) < key:
            if last != NONE:
                # In place: a view that does not contain the new number treats the link as the end of the session.
                after[last], before[number] = number, last
            self._last[session] = number
            if session in self._turns:
                self._turns[session].append((key, number))
            return
        self._unshare()
        before, after = self._columns["before"], self._columns["after"]
        turns = self._turns_of(session, last)
        insort(turns, (key, number))
        at = bisect_left(turns, (key, number))
        if at > 0:
            left = turns[at - 1][1]
            after[left], before[number] = number, left
        right = turns[at + 1][1]
        before[right], after[number] = number, right

    def _turns_of(self, session: int, last: int) -> list[tuple[SortKey, int]]:
        """Return the turns of a session in order. The list is built when a turn is first inserted between others."""
        turns = self._turns.get(session)
        if turns is None:
            turns = self._turns[session] = []
            while last != NONE:
                turns.append((self._sort_key(last), last))
                last = int(self._columns["before"][last])
            turns.reverse()
        return turns

    def remove(self, record_id: str) -> None:
        """Remove the document of a record. A record without a document is ignored."""
        number = self._number(record_id)
        if number == NONE or not self._columns["alive"][number]:
            return
        group = int(self._columns["group"][number])
        if group != NONE and group not in self.stale:
            # Without the last turn of a group, no other has other new words.
            if len(self.stale) < _FEW_STALE and self.last_of(group) == number:
                del self._last_of[group]
            else:
                self.stale.add(group)
        self._remove(number)

    def _number(self, record_id: str) -> int:
        """Return the last document of a record, or NONE."""
        number = self._numbers.get(record_id, NONE)
        if number == NONE and self._first is not None:
            number = self._first.number(record_id)
        return number

    def _remove(self, number: int) -> None:
        self._unshare()
        columns = self._columns
        group = int(columns["group"][number])
        columns["alive"][number] = False
        length, session, speaker = (int(columns[name][number]) for name in ("length", "session", "speaker"))
        self.live_count -= 1
        self._tokens -= length
        self._languages.add(int(columns["language"][number]), -1)
        if speaker != NONE:
            self._spoken.add(speaker, -1)
        if session == NONE:
            return
        self._in_group.add(group, -1)
        self._session_lengths.add(session, -length)
        if session in self._turns:
            turns = self._turns[session]
            del turns[bisect_left(turns, (self._sort_key(number), number))]
        left, right = int(columns["before"][number]), int(columns["after"][number])
        if left != NONE:
            columns["after"][left] = right
        if right != NONE:
            columns["before"][right] = left
        else:
            self._last[session] = left

    def view(self) -> Table:
        """Return an immutable view of the current table."""
        self._shared = True
        alive = self._columns["alive"]
        while self._due and not alive[self._due[0][1]]:
            heapq.heappop(self._due)
        return Table(
            count=self.count,
            live_count=self.live_count,
            tokens=self._tokens,
            has_turns=self._session_count > 0,
            **self._columns,  # type: ignore[arg-type]
            rows=self.rows,
            first_due=self._due[0][0] if self._due else NEVER,
            speakers=self.speakers,
            values=self.values,
            session_lengths=self._session_lengths.view(),
            languages=self._languages.view(),
            spoken=self._spoken.view(),
            later_sessions=self.later_sessions,
            _governing=(self._governing, len(self._governing)),
            _bounded=(self._bounded, len(self._bounded)),
            _numbers=self._numbers,
            _earlier=self._earlier,
            _first=self._first,
        )

    def later_sessions(self) -> list[Session]:
        """Return the sessions that are not in the segment, by number."""
        count = 0 if self._first is None else self._first.session_count
        # Iterate over a copy of the dict, since another thread may add to it.
        return [session for session, number in self._session_numbers.copy().items() if number >= count]

    def _unshare(self) -> None:
        """Copy the columns that change in the middle if a view shares them. Must be called before such a change."""
        if self._shared:
            for name in _CHANGING:
                self._columns[name] = self._columns[name].copy()
            self._shared = False

    def _grow(self) -> None:
        size = self.count + max(self.count // 4, _MIN_GROWTH)
        for name, column in self._columns.items():
            grown = np.zeros(size, dtype=column.dtype)
            grown[: self.count] = column[: self.count]
            self._columns[name] = grown
        self._shared = False
