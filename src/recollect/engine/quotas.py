"""Quotas: how much a namespace may hold, and what goes where it would hold more.

A quota is kept in the store and every writer is held to it, inside the transaction that writes. What is held is counted
once, and then kept up to date by what is written, as the trie is: `Fills` has it of one commit, and catches up from the
log where others wrote meanwhile. A `Room` is that with what a transaction has written so far.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, NamedTuple

from recollect.errors import DamagedStoreError, InvalidArgumentError, QuotaError
from recollect.operations import WHEN_FULL
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import Head, Line, Transaction, View
from recollect.stores.usage import Uses

REFUSE, LEAST_RECENT, LEAST_IMPORTANT = WHEN_FULL
#: So many records go for one that comes, at most: where a quota was lowered, what is over it goes in steps.
STEP = 1000
#: So many namespaces have what they hold counted at a time.
_MOST = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much a namespace may hold.

    records     how many live records; None: as many as there is room for
    bytes       of their canonical bytes together; None: as many as there is room for
    when_full   what comes of a write that needs more: "refuse" it with a QuotaError; or let others go, those that were
                used (written, got or recalled) the longest ago ("least recent"), or the least important and of those
                the longest unused ("least important"). What is due goes first, what is pinned never.

    Raises: InvalidArgumentError.
    """

    records: int | None = None
    bytes: int | None = None
    when_full: str = REFUSE

    def __post_init__(self) -> None:
        for name in ("records", "bytes"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**62):
                raise InvalidArgumentError(name, value, "must be a whole number, 1 or more, or None for no limit")
        if self.when_full not in WHEN_FULL:
            raise InvalidArgumentError("when_full", self.when_full, f"must be one of {', '.join(WHEN_FULL)}")


def _setting(line: Line) -> str:
    return f"quota/{line.namespace}"


def quota_of(moment: View, line: Line) -> Quota | None:
    """The quota of a line's namespace; None where it has none. Raises: DamagedStoreError."""
    text = moment.setting(_setting(line))
    if text is None:
        return None
    try:
        return Quota(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise DamagedStoreError("the store", f"the quota of {line.namespace!r} cannot be read: {error}") from None


def set_quota(transaction: Transaction, line: Line, quota: Quota | None) -> None:
    """Keep a quota; None takes it away."""
    text = None if quota is None or (quota.records is quota.bytes is None) else json.dumps(asdict(quota))
    transaction.set_setting(_setting(line), text)


class _Entry(NamedTuple):
    """A record as it counts. `rank` is its place among those that may go, the lowest first; None where it may not."""

    nbytes: int
    rank: tuple[Any, ...] | None


class Fill:
    """What a namespace holds, as it counts, at one commit.

    Cost: a change is O(log n) and the shift of a list's tail.
    """

    def __init__(self, when_full: str) -> None:
        self.when_full = when_full
        self.nbytes = 0
        self._entries: dict[str, _Entry] = {}
        self._ranked: list[tuple[tuple[Any, ...], str]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, record_id: object) -> bool:
        return record_id in self._entries

    def nbytes_of(self, record_id: str) -> int | None:
        """None where it is not held."""
        entry = self._entries.get(record_id)
        return None if entry is None else entry.nbytes

    def entry(self, record: Record, used: int) -> _Entry:
        """How a record counts that was last used then."""
        rank: tuple[Any, ...] | None = None
        if not record.pinned:
            least = -1.0 if record.importance is None else record.importance
            rank = (used,) if self.when_full == LEAST_RECENT else (least, used)
        return _Entry(len(record.to_bytes()), rank)

    def put(self, record_id: str, entry: _Entry | None) -> None:
        """Let a record count so, or (None) not at all."""
        before = self._entries.pop(record_id, None)
        if before is not None:
            self.nbytes -= before.nbytes
            if before.rank is not None:
                del self._ranked[bisect_left(self._ranked, (before.rank, record_id))]
        if entry is not None:
            self._entries[record_id] = entry
            self.nbytes += entry.nbytes
            if entry.rank is not None:
                insort(self._ranked, (entry.rank, record_id))

    def used(self, record_id: str, micros: int) -> None:
        """Note a use."""
        entry = self._entries.get(record_id)
        if entry is not None and entry.rank is not None and micros > entry.rank[-1]:
            self.put(record_id, entry._replace(rank=(*entry.rank[:-1], micros)))

    def leaving(self, start: int = 0) -> Iterator[str]:
        """The ids that may go, in the order in which they would, from a place in it on."""
        return (self._ranked[place][1] for place in range(start, len(self._ranked)))


class Fills:
    """The fills of a store's lines, each of one commit. Used by whoever's turn it is to write."""

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._kept: dict[Line, tuple[Head, Fill]] = {}

    def at(self, transaction: Transaction, line: Line, when_full: str, *, clean: bool) -> Fill:
        """The fill at the newest commit. Cost: at first, reads all that is held.

        clean  whether the transaction has changed nothing since that commit: else what is read may yet be undone, so
               nobody else goes on from it
        """
        head = transaction.head(line)
        then, fill = self._kept.pop(line, (Head(), Fill(when_full)))
        goes_on = then == head or (0 < then.seq < head.seq and transaction.root_at(line, then.seq) == then.root.hash)
        if fill.when_full != when_full or not goes_on:
            then, fill = Head(), Fill(when_full)
        if not then.seq:
            uses = self._uses.of(line)
            for record_id, stored in transaction.versions(line):
                record = Record.load(stored.payload)
                fill.put(record_id, fill.entry(record, uses.get(record_id) or _told(record)))
            self._uses.keep_only(line, fill)
        elif then != head:
            changed = transaction.changed(line, then.seq)
            held = transaction.several(line, changed)
            for record_id in changed:
                record_ = Record.load(held[record_id].payload) if record_id in held else None
                entry = None if record_ is None else fill.entry(record_, head.micros)
                fill.put(record_id, entry)
        for record_id, micros in self._uses.new(line).items():
            fill.used(record_id, micros)
        if clean and self._uses.known(line) > 2 * len(fill) + STEP:
            self._uses.keep_only(line, fill)
        if clean or then == head:
            self.keep(line, head, fill)
        return fill

    def drop(self, line: Line) -> None:
        """Let what a line holds be counted anew, unless it is kept again."""
        self._kept.pop(line, None)

    def keep(self, line: Line, head: Head, fill: Fill) -> None:
        """Keep a fill for whoever follows this commit."""
        self._kept.pop(line, None)
        self._kept[line] = (head, fill)
        if len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]


def _told(record: Record) -> int:
    return -(2**63) if record.time is None else microseconds(record.time)


class _More(NamedTuple):
    """How many records and bytes are held more than before; below 0: fewer."""

    records: int
    nbytes: int


class Room:
    """What a transaction may still write.

    due   gives the ids that are due, the longest due first
    """

    def __init__(self, line: Line, quota: Quota, fill: Fill, micros: int, due: Callable[[], list[str]]) -> None:
        self.fill = fill
        self._line = line
        self._quota = quota
        self._micros = micros
        self._due = due
        self._changed: dict[str, _Entry | None] = {}
        self._passed = 0  # so many of those that may go, from the first on, are changed already
        self._records = len(fill)
        self._nbytes = fill.nbytes

    def make(self, record: Record) -> list[tuple[str, str]]:
        """What must go for a record to come: ids, each with the cause.

        What this transaction wrote itself stays. A record that makes the namespace hold no more than it did may come in
        any case. Raises: QuotaError, where nothing that may go makes room enough.
        """
        before = self._nbytes_of(record.id)
        more = _More(int(before is None), len(record.to_bytes()) - (before or 0))
        over = self._over(more)
        if not over:
            return []
        gone: list[tuple[str, str]] = []
        for record_id, cause in self._leaving():
            if record_id == record.id or record_id in self._changed:
                continue
            gone.append((record_id, cause))
            more = _More(more.records - 1, more.nbytes - (self.fill.nbytes_of(record_id) or 0))
            if not self._over(more) or len(gone) == STEP:
                break
        over = self._over(more)
        if over and (more.records > 0 or more.nbytes > 0):
            raise QuotaError(self._line.namespace, *over, self._quota.when_full)
        return gone

    def _over(self, more: _More) -> tuple[str, int, int] | None:
        """Which limit is broken with so much more, with the limit and what would be held; None for none."""
        for what, limit, held in (
            ("records", self._quota.records, self._records + more.records),
            ("bytes", self._quota.bytes, self._nbytes + more.nbytes),
        ):
            if limit is not None and held > limit:
                return what, limit, held
        return None

    def _leaving(self) -> Iterator[tuple[str, str]]:
        due = self._due()
        yield from ((record_id, "expired") for record_id in due)
        if self._quota.when_full != REFUSE:
            gone = set(due)
            for record_id in self.fill.leaving(self._passed):
                if record_id not in self._changed:
                    break
                self._passed += 1
            left = (record_id for record_id in self.fill.leaving(self._passed) if record_id not in gone)
            yield from ((record_id, "evicted") for record_id in islice(left, STEP + len(self._changed)))

    def _nbytes_of(self, record_id: str) -> int | None:
        if record_id in self._changed:
            entry = self._changed[record_id]
            return None if entry is None else entry.nbytes
        return self.fill.nbytes_of(record_id)

    def note(self, record_id: str, record: Record | None) -> None:
        """A record was put, or (None) dropped."""
        before = self._nbytes_of(record_id)
        entry = None if record is None else self.fill.entry(record, self._micros)
        self._changed[record_id] = entry
        self._records += (entry is not None) - (before is not None)
        self._nbytes += (entry.nbytes if entry else 0) - (before or 0)

    def committed(self) -> Fill:
        """The fill after the commit."""
        for record_id, entry in self._changed.items():
            self.fill.put(record_id, entry)
        self._changed.clear()
        return self.fill
