"""Tracing: what a record was made from (its lineage), and what was made from some records (their taint).

The links are `derived_from` and, upwards, `supersedes`. A link names an id as the scope of its writer showed it, so an
id that was chosen in a scope is looked for in the forms in which it may be stored. A record that was forgotten, as the
sources of a merge are, still links what derives from it with what it derived from: its last version says so.

The index finds the records that name an id. So a taint costs a look-up for each record of it, and, for the records that
derive from others than those, a look at their links, which are kept with the index.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

import numpy as np

from recollect.common.deadlines import check, checked
from recollect.engine.history_results import Lineage, LinkedRecord, Taint
from recollect.engine.index.filter_terms import link_term, links_term
from recollect.engine.read.filter_bounds import of_scope
from recollect.engine.read.queries import Reading
from recollect.engine.read.record_loader import Records
from recollect.engine.scope import linked_id, scopes_of, unqualified
from recollect.errors import InvalidRecordError, UnknownRecordError
from recollect.filters.tree import AnyOf, Filter, Is
from recollect.indexes.documents.columns import Flags
from recollect.indexes.words.segment import POSITION_BITS
from recollect.operations import Find
from recollect.operations.trust import TraceLineage, TraceTaint
from recollect.records.documents import is_piece
from recollect.records.origins import Origin
from recollect.records.record import Record

#: An id that was made from the content of a record: no scope can have chosen it.
_MADE = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: The name under which links are cached with the rows of an index.
_CACHE = "derived from"


def lineage(reading: Reading, operation: TraceLineage) -> Lineage:
    """Return what a record was made from, breadth first.

    Raises:
        UnknownRecordError: There has never been such a record.
    """
    former = _Former(reading)
    first = former.shown(operation.id)
    if first is None:
        raise UnknownRecordError(operation.id, reading.branch.owner.namespace)
    out: list[LinkedRecord] = []
    seen = {first}
    level: list[tuple[str, int, str, str]] = [(first, 0, "", "")]
    truncated = False
    while level:
        below: list[tuple[str, int, str, str]] = []
        for stored, depth, link, child in checked(level):
            record, entry = former.described(stored, depth, link, child)
            out.append(entry)
            if record is None:
                continue
            for name, targets in _links(record):
                for target in targets:
                    ids = [each for each in stored_ids(record, target) if former.known(each)]
                    found = ids[0] if ids else target
                    if found in seen:
                        continue
                    truncated = truncated or len(seen) >= operation.limit
                    if not truncated:
                        seen.add(found)
                        below.append((found, depth + 1, name, entry.id))
        level = below
    return Lineage(records=tuple(out), truncated=truncated)


def _links(record: Record) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return ("derived_from", record.derived_from), ("supersedes", record.supersedes)


def stored_ids(record: Record, target: str) -> Iterator[str]:
    """Yield the ids under which a record may be stored that another one names, most likely first."""
    if _MADE.fullmatch(target):
        yield target
        return
    own = linked_id(record.id, target)
    out = [] if own is None else [own]
    for scope in scopes_of(record):
        with suppress(InvalidRecordError):  # it is too long for an id of that scope, or is one of a scope itself
            out.append(scope.qualified(target))
    yield from dict.fromkeys((*out, target))


class _Former:
    """The last versions of records, live or not, each read once."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._found: dict[str, tuple[Record | None, str, int, str | None, str | None]] = {}

    def shown(self, record_id: str) -> str | None:
        """Return the stored id that the scope shows as an id; None if there was never one."""
        scope = self._reading.scope
        for each in scope.stored_ids(record_id, lambda each: self._reading.view.known(self._reading.branch, each)):
            if self.known(each):
                return each
        return None

    def known(self, stored: str) -> bool:
        """Return whether the scope sees a record under a stored id, or saw one."""
        record, state, *_ = self._of(stored)
        return state == "erased" if record is None else self._reading.scope.admits(record)

    def last(self, stored: str) -> Record | None:
        """Return the last version of a record that the scope sees; None if it was erased, or there is none."""
        record = self._of(stored)[0]
        return record if record is not None and self._reading.scope.admits(record) else None

    def described(self, stored: str, depth: int, link: str, child: str) -> tuple[Record | None, LinkedRecord]:
        """Return a record, and its entry in a lineage."""
        record, state, seq, actor, reason = self._of(stored)
        if record is not None and not self._reading.scope.admits(record):
            record, state, seq, actor, reason = None, "unknown", 0, None, None
        scoped = bool(self._reading.scope.fixed)
        shown = self._reading.scope.shown_id(stored)
        origin: Origin = "unknown" if record is None else record.effective_origin
        text = "" if record is None else record.text
        seq = 0 if scoped else seq
        return record, LinkedRecord(shown, depth, origin, state, text, link, child, seq, actor, reason)

    def _of(self, stored: str) -> tuple[Record | None, str, int, str | None, str | None]:
        found = self._found.get(stored)
        if found is None:
            check()
            found = self._found[stored] = self._read(stored)
        return found

    def _read(self, stored: str) -> tuple[Record | None, str, int, str | None, str | None]:
        view, branch = self._reading.view, self._reading.branch
        live = view.get(branch, stored)
        newest = next(iter(view.commits(branch, record_id=stored, newest_first=True, limit=1)), None)
        about = (0, None, None) if newest is None else (newest.seq, newest.actor, newest.reason)
        if live is not None:
            return Record.load(live.payload), "live", *about
        if newest is None:
            return None, "unknown", *about
        for change in newest.changes:
            version = change.before if change.after is None else change.after
            if change.id == stored and version is not None:
                payload = view.payload(branch, version)
                return (None, "erased", *about) if payload is None else (Record.load(payload), "former", *about)
        return None, "erased", *about


def taint(reading: Reading, operation: TraceTaint) -> Taint:
    """Return what was made from some records, breadth first: these at depth 0, also if they are not live any more."""
    search = _Tainting(reading)
    level = search.started(operation)
    by_depth: list[tuple[str, ...]] = []
    count, truncated = 0, False
    while level:
        if count + len(level) > operation.limit:
            level, truncated = level[: operation.limit - count], True
        count += len(level)
        by_depth.append(tuple(map(reading.scope.shown_id, level)))
        if truncated:
            break
        level = search.next(level)
    return Taint(by_depth=tuple(by_depth), truncated=truncated)


class _Tainting:
    """A breadth-first search downwards. Every record is found once, so circles end."""

    def __init__(self, reading: Reading) -> None:
        assert reading.words is not None
        self._reading, self._former = reading, _Former(reading)
        self._words = reading.words.at(reading.now)
        table = self._words.table
        self._table, self._records = table, Records(reading.view, reading.branch, table)
        self._open: Flags = table.alive[: table.count].copy()
        if reading.scope.fixed:
            self._open &= of_scope(reading.scope, table)
        self._ids: set[str] = set()  # the stored ids that were found
        self._others: dict[int, tuple[tuple[str, ...], ...]] | None = None

    def started(self, operation: TraceTaint) -> list[str]:
        """Return the stored ids of the first level."""
        start: dict[str, None] = {}
        for each in operation.ids:
            stored = self._former.shown(each)
            if stored is not None:
                start[stored] = None
        conditions = [operation.where, *([] if operation.source is None else [Is("source", (operation.source,))])]
        where = AnyOf.of(*conditions)
        start |= dict.fromkeys(each.id for each in self._matching(where))
        # What a live record derives from may match and be forgotten: a page that was merged into another text.
        for targets in self._links().values():
            for ids in targets:
                if not any(map(self._is_live, ids)):
                    start |= dict.fromkeys(
                        each for each in ids if (last := self._former.last(each)) is not None and where.matches(last)
                    )
        # A document is stored in pieces, which are one text.
        sources = {last.source for each in start if (last := self._former.last(each)) is not None and is_piece(last)}
        if sources:
            pieces = self._matching(Is("source", tuple(str(each) for each in sorted(map(str, sources)))))
            start |= dict.fromkeys(each.id for each in pieces if is_piece(each))
        return self._taken(start)

    def _matching(self, where: Filter) -> Iterable[Record]:
        scope = self._reading.scope
        found = self._reading.find(Find(where=where, limit=None, order="id"))
        if not scope.fixed:
            return found
        stored = {scope.shown_id(each.id): each for each in map(self._former.last, self._stored(found)) if each}
        return stored.values()

    def _stored(self, found: Iterable[Record]) -> Iterator[str]:
        for each in found:
            if (stored := self._former.shown(each.id)) is not None:
                yield stored

    def next(self, level: Collection[str]) -> list[str]:
        """Return the stored ids of the records that derive from those of a level."""
        words, table = self._words, self._table
        flags = words.having([link_term("derived_from", unqualified(each)) for each in level]) & self._open
        numbers = np.flatnonzero(flags)
        if not all(map(_MADE.fullmatch, level)):
            parents = set(level)
            numbers = np.array(
                [
                    number
                    for number, record in self._records.all(numbers)
                    if any(not parents.isdisjoint(stored_ids(record, each)) for each in record.derived_from)
                ],
                dtype=np.int64,
            )
        ids = list(map(table.id, numbers.tolist()))
        return self._taken(dict.fromkeys((*ids, *self._through_former())))

    def _taken(self, ids: dict[str, None]) -> list[str]:
        """Return those ids that were not found before, and note them."""
        new = [each for each in ids if each not in self._ids]
        self._ids.update(new)
        numbers = [number for each in new if (number := self._table.number(each)) >= 0]
        self._open[numbers] = False
        return new

    def _is_live(self, stored: str) -> bool:
        return self._table.number(stored) >= 0

    def _links(self) -> dict[int, tuple[tuple[str, ...], ...]]:
        """Return the links of the records that are not found yet: the stored ids that each may name."""
        numbers = np.unique(self._words.occurrences(links_term("derived_from")) >> POSITION_BITS)
        numbers = numbers[(numbers < self._table.count) & self._open[np.minimum(numbers, self._table.count - 1)]]
        known: dict[int, tuple[tuple[str, ...], ...]] = self._table.rows.kept.setdefault(_CACHE, {})
        missing = [number for number in numbers.tolist() if number not in known]
        for number, record in self._records.all(np.array(missing, dtype=np.int64)):
            known[number] = tuple(tuple(stored_ids(record, each)) for each in record.derived_from)
        return {number: known[number] for number in numbers.tolist()}

    def _through_former(self) -> Iterator[str]:
        """Yield the records that derive from something forgotten which derives from what was found."""
        remaining = np.unique(self._words.occurrences(links_term("derived_from")) >> POSITION_BITS)
        if not self._open[remaining[remaining < len(self._open)]].any():
            return
        for number, targets in self._links().items():
            if any(not any(map(self._is_live, ids)) and self._leads(ids) for ids in targets):
                yield self._table.id(number)

    def _leads(self, ids: Iterable[str]) -> bool:
        """Return whether a forgotten record derives from what was found, directly or through other forgotten ones."""
        waiting, passed = list(ids), set[str]()
        while waiting:
            stored = waiting.pop()
            if stored in self._ids:
                return True
            if stored in passed or self._is_live(stored):
                continue
            passed.add(stored)
            last = self._former.last(stored)
            if last is not None:
                waiting += [each for target in last.derived_from for each in stored_ids(last, target)]
        return False
