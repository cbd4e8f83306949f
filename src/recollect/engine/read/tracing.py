"""Tracing: what a record was made from (its lineage), and what was made from some records (their taint).

The links are `derived_from` and, upwards, `supersedes`. A link names an id as the scope of its writer showed it, so an
id that was chosen in a scope is looked for in the forms in which it may be stored. A record that was forgotten, as the
sources of a merge are, still links what derives from it with what it derived from: its last version says so.

A taint reads the links of all records of the index once, as arrays that stay with the index (`links`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from recollect.common.deadlines import check, checked
from recollect.engine.history_results import Lineage, LinkedRecord, Taint
from recollect.engine.read.filter_bounds import of_scope
from recollect.engine.read.links import LinkSearch, stored_ids
from recollect.engine.read.log import last_effect
from recollect.engine.read.queries import Reading
from recollect.engine.read.record_loader import Records
from recollect.errors import UnknownRecordError
from recollect.filters.tree import AnyOf, Filter, Is
from recollect.indexes.documents.columns import Flags
from recollect.operations import Find
from recollect.operations.trust import TraceLineage, TraceTaint
from recollect.records.documents import is_piece
from recollect.records.origins import Origin
from recollect.records.record import Record


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
        scope = self._reading.scope
        if record is None:  # whose it was is not known any more
            return state == "erased" and not scope.fixed
        return scope.admits(record)

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
        if scoped:  # a commit may be about the records of others, too
            seq, actor, reason = 0, None, None
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
        found = last_effect(view, branch, stored)
        about = (0, None, None) if found is None else (found[0].seq, found[0].actor, found[0].reason)
        if live is not None:
            return Record.load(live.payload), "live", *about
        if found is None:
            return None, "unknown", *about
        version = found[1].after or found[1].before
        payload = None if version is None else view.payload(branch, version)
        return (None, "erased", *about) if payload is None else (Record.load(payload), "former", *about)


def taint(reading: Reading, operation: TraceTaint) -> Taint:
    """Return what was made from some records, breadth first: these at depth 0, also if they are not live any more."""
    search = _Tainting(reading)
    level = search.started(operation)
    by_depth: list[tuple[str, ...]] = []
    shown = reading.scope.shown_id if reading.scope.fixed else str
    count, truncated = 0, False
    while level:
        if count + len(level) > operation.limit:
            level, truncated = level[: operation.limit - count], True
        count += len(level)
        by_depth.append(tuple(map(shown, level)))
        if truncated:
            break
        level = search.next(level)
    return Taint(by_depth=tuple(by_depth), truncated=truncated)


class _Tainting:
    """A breadth-first search downwards. Every record is found once, so circles end."""

    def __init__(self, reading: Reading) -> None:
        assert reading.words is not None
        self._reading, self._former = reading, _Former(reading)
        words = reading.words.at(reading.now)
        self._table = table = words.table
        visible: Flags = table.alive[: table.count].copy()
        if reading.scope.fixed:
            visible &= of_scope(reading.scope, table)
        self._search = LinkSearch(words, Records(reading.view, reading.branch, table), visible)
        self._ids: set[str] = set()  # the stored ids that were found

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
        for _, ids in self._search.to_former():
            lasts = {each: self._former.last(each) for each in ids}
            start |= dict.fromkeys(each for each, last in lasts.items() if last is not None and where.matches(last))
        # A document is stored in pieces, which are one text.
        sources = {last.source for each in start if (last := self._former.last(each)) is not None and is_piece(last)}
        if sources:
            pieces = self._matching(Is("source", tuple(str(each) for each in sorted(map(str, sources)))))
            start |= dict.fromkeys(each.id for each in pieces if is_piece(each))
        self._search.close(start)
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
        """Return the stored ids of the records that derive from those of a level, sorted."""
        through = [record_id for record_id, ids in self._search.to_former() if self._leads(ids)]
        self._search.close(through)
        return self._taken(sorted({*self._search.children(level), *through}))

    def _taken(self, ids: Iterable[str]) -> list[str]:
        """Return those ids that were not found before, and note them."""
        new = [each for each in ids if each not in self._ids]
        self._ids.update(new)
        return new

    def _is_live(self, stored: str) -> bool:
        return self._table.number(stored) >= 0

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
