"""Quotas: how much a namespace may hold, and what goes where it would hold more.

A quota is kept in the store and every writer is held to it, inside the transaction that writes. What is held is counted
once, and then kept up to date by what is written, as the trie is: `UsageTotalsCache` has it of one commit, and catches
up from the log where others wrote meanwhile. A `Room` is that with what a transaction has written so far.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, NamedTuple

from recollect.errors import DamagedStoreError, InvalidArgumentError, QuotaError
from recollect.ledger.commits import Branch, Head
from recollect.operations import SCOPED, WHEN_FULL
from recollect.records.record import Record
from recollect.stores.base import Transaction, View
from recollect.stores.derived.usage import Uses

REFUSE, LEAST_RECENT, LEAST_IMPORTANT = WHEN_FULL
#: So many records go for one that comes, at most: where a quota was lowered, what is over it goes in steps.
STEP = 1000
#: So many namespaces have what they hold counted at a time.
_MAX_CACHED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much a namespace may hold.

    records     how many live records; None: as many as there is room for
    bytes       of their canonical bytes together; None: as many as there is room for
    when_full   what comes of a write that needs more: "refuse" it with a QuotaError; or let others go, those that were
                used (written, got or recalled) the longest ago ("least recent"), or the least important and of those
                the longest unused ("least important"). What is due goes first, what is pinned never.
    per         whom it is for: each "user", "agent" or "conversation" may have so much (and so may all records
                without one, together); None: the namespace as a whole

    Raises: InvalidArgumentError.
    """

    records: int | None = None
    bytes: int | None = None
    when_full: str = REFUSE
    per: str | None = None

    def __post_init__(self) -> None:
        for name in ("records", "bytes"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**62):
                raise InvalidArgumentError(name, value, "must be a whole number, 1 or more, or None for no limit")
        if self.when_full not in WHEN_FULL:
            raise InvalidArgumentError("when_full", self.when_full, f"must be one of {', '.join(WHEN_FULL)}")
        if self.per is not None and self.per not in SCOPED:
            raise InvalidArgumentError("per", self.per, f"must be one of {', '.join(SCOPED)}, or None")


def _setting(branch: Branch) -> str:
    return f"quota/{branch.namespace}"


def quota_of(view: View, branch: Branch) -> Quota | None:
    """The quota of a line's namespace; None where it has none. Raises: DamagedStoreError."""
    text = view.setting(_setting(branch))
    if text is None:
        return None
    try:
        return Quota(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise DamagedStoreError("the store", f"the quota of {branch.namespace!r} cannot be read: {error}") from None


def set_quota(transaction: Transaction, branch: Branch, quota: Quota | None) -> None:
    """Keep a quota; None takes it away."""
    text = None if quota is None or (quota.records is quota.bytes is None) else json.dumps(asdict(quota))
    transaction.set_setting(_setting(branch), text)


class _Entry(NamedTuple):
    """A record as it counts.

    group  whose quota it counts for: the value of the quota's field `per`; None where all share one
    rank   its place among those that may go, the lowest first; None where it may not
    """

    group: str | None
    nbytes: int
    rank: tuple[Any, ...] | None


class _Group:
    """What the records of one group come to, and those that may go by rank."""

    def __init__(self) -> None:
        self.records = 0
        self.nbytes = 0
        self.ranked: list[tuple[tuple[Any, ...], str]] = []


class UsageTotals:
    """What a namespace holds, as it counts, at one commit.

    when_full, per  of the quota

    Cost: a change is O(log n) and the shift of a list's tail.
    """

    def __init__(self, when_full: str, per: str | None = None) -> None:
        self.when_full = when_full
        self.per = per
        self._entries: dict[str, _Entry] = {}
        self._groups: dict[str | None, _Group] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, record_id: object) -> bool:
        return record_id in self._entries

    def get(self, record_id: str) -> _Entry | None:
        """How a record counts; None where it is not held."""
        return self._entries.get(record_id)

    def size(self, group: str | None) -> tuple[int, int]:
        """How many records a group has, and bytes."""
        found = self._groups.get(group)
        return (0, 0) if found is None else (found.records, found.nbytes)

    def entry(self, record: Record, used: int) -> _Entry:
        """How a record counts that was last used then (microseconds of 1970)."""
        rank: tuple[Any, ...] | None = None
        if not record.pinned:
            least = -1.0 if record.importance is None else record.importance
            rank = (used,) if self.when_full == LEAST_RECENT else (least, used)
        return _Entry(self.group_of(record), len(record.to_bytes()), rank)

    def group_of(self, record: Record) -> str | None:
        """The group that a record counts for."""
        return None if self.per is None else getattr(record, self.per)

    def put(self, record_id: str, entry: _Entry | None) -> None:
        """Let a record count so, or (None) not at all."""
        before = self._entries.pop(record_id, None)
        if before is not None:
            group = self._groups[before.group]
            group.records -= 1
            group.nbytes -= before.nbytes
            if before.rank is not None:
                del group.ranked[bisect_left(group.ranked, (before.rank, record_id))]
            if not group.records:
                del self._groups[before.group]
        if entry is not None:
            self._entries[record_id] = entry
            group = self._groups.setdefault(entry.group, _Group())
            group.records += 1
            group.nbytes += entry.nbytes
            if entry.rank is not None:
                insort(group.ranked, (entry.rank, record_id))

    def used(self, record_id: str, micros: int) -> None:
        """Note a use."""
        entry = self._entries.get(record_id)
        if entry is not None and entry.rank is not None and micros > entry.rank[-1]:
            self.put(record_id, entry._replace(rank=(*entry.rank[:-1], micros)))

    def evictable(self, group: str | None, start: int = 0) -> Iterator[str]:
        """The ids of a group that may go, in the order in which they would, from a place in it on."""
        found = self._groups.get(group)
        ranked = [] if found is None else found.ranked
        return (ranked[index][1] for index in range(start, len(ranked)))


class UsageTotalsCache:
    """The fills of a store's lines, each of one commit. Used by whoever's turn it is to write."""

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._kept: dict[Branch, tuple[Head, UsageTotals]] = {}

    def at(self, transaction: Transaction, branch: Branch, quota: Quota, *, clean: bool) -> UsageTotals:
        """The fill at the newest commit. Cost: at first, reads all that is held, and the log.

        clean  whether the transaction has changed nothing since that commit: else what is read may yet be undone, so
               nobody else goes on from it
        """
        head = transaction.head(branch)
        as_of, totals = self._kept.pop(branch, (Head(), UsageTotals(quota.when_full, quota.per)))
        is_continuation = as_of == head or (
            0 < as_of.seq < head.seq and transaction.root_at(branch, as_of.seq) == as_of.root.hash
        )
        if (totals.when_full, totals.per) != (quota.when_full, quota.per) or not is_continuation:
            as_of, totals = Head(), UsageTotals(quota.when_full, quota.per)
        if as_of != head:
            # Written is used: the log knows when that was, for whoever has not seen it, or was not there.
            written = transaction.last_touched(branch, as_of.seq)
            if as_of.seq:
                held = transaction.several(branch, list(written))
                for record_id in written:
                    if record_id not in held:
                        totals.put(record_id, None)
            else:
                held = dict(transaction.versions(branch))
            for record_id, stored in held.items():
                totals.put(record_id, totals.entry(Record.load(stored.payload), written.get(record_id, head.micros)))
        if not as_of.seq:
            for record_id, micros in self._uses.of(branch).items():
                totals.used(record_id, micros)
            self._uses.keep_only(branch, totals)
        for record_id, micros in self._uses.new(branch).items():
            totals.used(record_id, micros)
        if clean and self._uses.known(branch) > 2 * len(totals) + STEP:
            self._uses.keep_only(branch, totals)
        if clean or as_of == head:
            self.keep(branch, head, totals)
        return totals

    def drop(self, branch: Branch) -> None:
        """Let what a line holds be counted anew, unless it is kept again."""
        self._kept.pop(branch, None)

    def keep(self, branch: Branch, head: Head, totals: UsageTotals) -> None:
        """Keep a fill for whoever follows this commit."""
        self._kept.pop(branch, None)
        self._kept[branch] = (head, totals)
        if len(self._kept) > _MAX_CACHED:
            del self._kept[next(iter(self._kept))]


class _Delta(NamedTuple):
    """How many records and bytes are held more than before; below 0: fewer."""

    records: int
    nbytes: int


_NO_CHANGE = _Delta(0, 0)


class Room:
    """What a transaction may still write.

    due      gives the ids that are due, the longest due first
    visible  whether whoever writes may see all that the quota is about, and so its figures in an error
    """

    def __init__(
        self,
        branch: Branch,
        quota: Quota,
        totals: UsageTotals,
        micros: int,
        due: Callable[[], list[str]],
        *,
        visible: bool = True,
    ) -> None:
        self.totals = totals
        self._branch = branch
        self._quota = quota
        self._micros = micros
        self._due = due
        self._visible = visible
        self._changed: dict[str, _Entry | None] = {}
        self._skipped: Counter[str | None] = (
            Counter()
        )  # of each group, the first of those that may go are changed already
        self._deltas: dict[str | None, _Delta] = {}  # since the commit

    def to_evict(self, record: Record) -> list[tuple[str, str]]:
        """What must go for a record to come: ids, each with the cause.

        What this transaction wrote itself stays. A record that makes its group hold no more than it did may come in
        any case. Raises: QuotaError, where nothing that may go makes room enough.
        """
        group = self.totals.group_of(record)
        before = self._entry(record.id)
        if before is not None and before.group != group:
            before = None  # to this group it is a new one
        delta = _Delta(int(before is None), len(record.to_bytes()) - (before.nbytes if before else 0))
        over = self._over(group, delta)
        if not over:
            return []
        evictions: list[tuple[str, str]] = []
        for record_id, cause in self._removable(group):
            entry = self.totals.get(record_id)
            if record_id == record.id or record_id in self._changed or entry is None or entry.group != group:
                continue
            evictions.append((record_id, cause))
            delta = _Delta(delta.records - 1, delta.nbytes - entry.nbytes)
            if not self._over(group, delta) or len(evictions) == STEP:
                break
        over = self._over(group, delta)
        if over and (delta.records > 0 or delta.nbytes > 0):
            what, limit, held = over if self._visible else (over[0], None, None)
            per = self._quota.per
            owner = "" if per is None else f"what has no {per}" if group is None else f"{per} {group!r}"
            raise QuotaError(self._branch.namespace, what, limit, held, self._quota.when_full, owner)
        return evictions

    def _over(self, group: str | None, delta: _Delta) -> tuple[str, int, int] | None:
        """Which limit is broken with so much more, with the limit and what would be held; None for none."""
        records, nbytes = self.totals.size(group)
        so_far = self._deltas.get(group, _NO_CHANGE)
        for what, limit, held in (
            ("records", self._quota.records, records + so_far.records + delta.records),
            ("bytes", self._quota.bytes, nbytes + so_far.nbytes + delta.nbytes),
        ):
            if limit is not None and held > limit:
                return what, limit, held
        return None

    def _removable(self, group: str | None) -> Iterator[tuple[str, str]]:
        due = self._due()
        yield from ((record_id, "expired") for record_id in due)
        if self._quota.when_full != REFUSE:
            evictions = set(due)
            for record_id in self.totals.evictable(group, self._skipped[group]):
                if record_id not in self._changed:
                    break
                self._skipped[group] += 1
            left = (each for each in self.totals.evictable(group, self._skipped[group]) if each not in evictions)
            yield from ((record_id, "evicted") for record_id in islice(left, STEP + len(self._changed)))

    def _entry(self, record_id: str) -> _Entry | None:
        return self._changed[record_id] if record_id in self._changed else self.totals.get(record_id)

    def note(self, record_id: str, record: Record | None) -> None:
        """A record was put, or (None) dropped."""
        entry = None if record is None else self.totals.entry(record, self._micros)
        for each, sign in ((self._entry(record_id), -1), (entry, 1)):
            if each is not None:
                delta = self._deltas.get(each.group, _NO_CHANGE)
                self._deltas[each.group] = _Delta(delta.records + sign, delta.nbytes + sign * each.nbytes)
        self._changed[record_id] = entry

    def committed(self, micros: int) -> UsageTotals:
        """The fill after the commit, which has this time: the one by which whoever counts anew goes, too."""
        for record_id, entry in self._changed.items():
            if entry is not None and entry.rank is not None:
                entry = entry._replace(rank=(*entry.rank[:-1], micros))
            self.totals.put(record_id, entry)
        self._changed.clear()
        return self.totals
