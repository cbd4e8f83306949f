"""Enforcement of quotas: usage totals, and the eviction of records that exceed a quota.

A quota (`engine.settings`) is kept in the store and enforced for every writer, inside the transaction that writes. The
records are counted once; the totals are then updated by each write, and caught up from the log if other processes wrote
meanwhile (`UsageTotalsCache`). A `Room` adds the changes of the current transaction to them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from recollect.engine.follower import Follower
from recollect.engine.settings import LEAST_RECENT, OLDEST, REFUSE, Quota, merges_of, quota_of, sharing
from recollect.errors import QuotaError
from recollect.ledger.commits import Branch, Head
from recollect.records.record import Record
from recollect.stores.base import Transaction, View
from recollect.stores.derived.usage import UsageFile

#: Maximum number of records that one new record evicts while a limit is exceeded. After a quota was lowered, eviction
#: takes several. Below the limit, it goes on to the low-water mark.
STEP = 1000
#: The sort key of a record without a time, before all others.
_NO_TIME = datetime.min.replace(tzinfo=UTC)
#: The cause of an eviction in the log.
EVICTED = "evicted"
#: Memory limit of the cached totals, and the approximate memory of a record in them.
_CACHED_BYTES, _ENTRY_BYTES = 2**28, 400


class _Entry(NamedTuple):
    """A record in the totals.

    Attributes:
        group: The group whose quota it counts towards: its value of the quota's field `per`; None if all share one.
        nbytes: The size of its canonical bytes.
        rank: The sort key among the evictable records, lowest first; None if it cannot be evicted.
    """

    group: str | None
    nbytes: int
    rank: tuple[Any, ...] | None


class _Group:
    """The totals of one group, and its evictable records ordered by rank."""

    def __init__(self) -> None:
        self.records = 0
        self.nbytes = 0
        self.ranked: list[tuple[tuple[Any, ...], str]] = []


class UsageTotals:
    """The number and size of the records of a namespace at one commit, per group.

    Args:
        when_full: As in the quota.
        per: As in the quota.

    Cost:
        O(log n) per change, plus shifting the tail of a list.
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
        """Return the entry of a record; None if it is not counted."""
        return self._entries.get(record_id)

    def size(self, group: str | None) -> tuple[int, int]:
        """Return the number of records of a group and their size in bytes."""
        found = self._groups.get(group)
        return (0, 0) if found is None else (found.records, found.nbytes)

    def entry(self, record: Record, used: int) -> _Entry:
        """Return the entry of a record that was last used at a time (microseconds since 1970)."""
        rank = None if record.pinned and record.has_authority else (*self._first(record), used)
        return _Entry(self.group_of(record), len(record.to_bytes()), rank)

    def _first(self, record: Record) -> tuple[Any, ...]:
        """Return what decides about the eviction of a record before its last use does."""
        if self.when_full == LEAST_RECENT:
            return ()
        if self.when_full == OLDEST:
            return (record.time or _NO_TIME,)
        return (-1.0 if record.importance is None else record.importance,)

    def group_of(self, record: Record) -> str | None:
        """Return the group of a record."""
        return None if self.per is None else getattr(record, self.per)

    def put(self, record_id: str, entry: _Entry | None) -> None:
        """Set the entry of a record; None removes it."""
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
        """Update the time of a record's last use, if it is later."""
        entry = self._entries.get(record_id)
        if entry is not None and entry.rank is not None and micros > entry.rank[-1]:
            self.put(record_id, entry._replace(rank=(*entry.rank[:-1], micros)))

    def evictable(self, group: str | None, start: int = 0) -> Iterator[str]:
        """Return the ids of a group's evictable records in the order of eviction, from an index on."""
        found = self._groups.get(group)
        ranked = [] if found is None else found.ranked
        return (ranked[index][1] for index in range(start, len(ranked)))


class UsageTotalsCache(Follower[Branch, UsageTotals]):
    """Usage totals per branch. The caller must hold the write lock."""

    def __init__(self, uses: UsageFile) -> None:
        super().__init__(_CACHED_BYTES)
        self._uses = uses
        self._of_branches = _OwnTotals()

    def start(self, view: View, branch: Branch, key: Branch) -> UsageTotals:
        """Count all records. Writing is a use; the log has its time."""
        quota = quota_of(view, branch) or Quota()
        totals = UsageTotals(quota.when_full, quota.per)
        written, last = view.last_touched(branch, 0), view.head(branch).micros
        for record_id, stored in view.versions(branch):
            totals.put(record_id, totals.entry(Record.load(stored.payload), written.get(record_id, last)))
        for record_id, micros in self._uses.of(branch).items():
            totals.used(record_id, micros)
        self._uses.keep_only(branch, totals)
        return totals

    def catch_up(
        self, value: UsageTotals, view: View, branch: Branch, key: Branch, tag: tuple[int, bytes]
    ) -> UsageTotals:
        """Count the records that were changed, also by other processes."""
        written = view.last_touched(branch, tag[0])
        live = view.several(branch, list(written))
        for record_id, micros in written.items():
            stored = live.get(record_id)
            entry = None if stored is None else value.entry(Record.load(stored.payload), micros)
            value.put(record_id, entry)
        return value

    def nbytes(self, value: UsageTotals) -> int:
        """Return the approximate memory of the totals."""
        return _ENTRY_BYTES * len(value)

    def of_family(self, transaction: Transaction, branch: Branch, quota: Quota) -> list[UsageTotals]:
        """Return the totals of the other branches that share a quota, at their newest commits."""
        sharing_it = sharing(transaction, branch)
        others = [each for each in sharing_it if transaction.head(each).seq]
        totals = [self.current(transaction, each, quota, clean=True) for each in others]
        return totals + self._of_branches.of_others(transaction, branch, [branch, *sharing_it], quota)

    def committed(self, branch: Branch, room: Room, head: Head) -> None:
        """Cache the totals after a commit."""
        self.drop(branch)  # first, so that an interruption leaves no partly updated totals
        used = self._uses.committed(branch, room.written, head.micros)
        self.put(branch, room.committed(used), head)

    def current(self, transaction: Transaction, branch: Branch, quota: Quota, *, clean: bool) -> UsageTotals:
        """Return the totals at the newest commit.

        Args:
            clean: Whether the transaction has changed nothing yet. Otherwise the totals may include changes that are
                undone later, so they are not cached.

        Cost:
            At first, reads all records and the log; later, the changes since the cached commit.
        """
        head = transaction.head(branch)
        unchanged = self.entry(branch).reflects(head)
        totals = self.take(transaction, branch, branch)
        if (totals.when_full, totals.per) != (quota.when_full, quota.per):
            unchanged, totals = False, self.start(transaction, branch, branch)
        for record_id, micros in self._uses.new(branch).items():
            totals.used(record_id, micros)
        if clean and self._uses.known(branch) > 2 * len(totals) + STEP:
            self._uses.keep_only(branch, totals)
        if clean or unchanged:
            self.put(branch, totals, head)
        return totals


class _OwnTotals(Follower[tuple[Branch, str], UsageTotals]):
    """Usage totals of what branches have changed and the branches that they continue do not have.

    The key is a branch with the merges of the memory: with each, the records are compared again.
    """

    def __init__(self) -> None:
        super().__init__(_CACHED_BYTES)
        self._per: str | None = None

    def of_others(
        self, transaction: Transaction, branch: Branch, parts: Sequence[Branch], quota: Quota
    ) -> list[UsageTotals]:
        """Return the totals of what only other branches have, of parts of a memory that share a quota.

        Cost:
            One query, and the changes of each branch since the last call.
        """
        if quota.per != self._per:
            self.entries.clear()
            self._per = quota.per
        found, merges = [], str(sorted(merges_of(transaction, branch.owner).items()))
        for part in parts:
            for each in transaction.continuing(part.namespace):
                if each.branch != part and each.seq > each.base.seq:
                    entry = self.at(transaction, each.branch, (each.branch, merges), newest=True)
                    assert entry is not None
                    assert entry.value is not None
                    found.append(entry.value)
        return found

    def start(self, view: View, branch: Branch, key: tuple[Branch, str]) -> UsageTotals:
        """Count the records that the branch has changed since it began."""
        base = view.base(branch)
        totals = UsageTotals(REFUSE, self._per)
        changed = view.net_changes(branch, 0 if base is None else base.seq, view.head(branch).seq)
        return self._counted(totals, view, branch, list(changed))

    def catch_up(
        self, value: UsageTotals, view: View, branch: Branch, key: tuple[Branch, str], tag: tuple[int, bytes]
    ) -> UsageTotals:
        """Count the records that were changed."""
        return self._counted(value, view, branch, view.changed(branch, tag[0]))

    @staticmethod
    def _counted(totals: UsageTotals, view: View, branch: Branch, changed: Sequence[str]) -> UsageTotals:
        live, base = view.several(branch, changed), view.base(branch)
        there = {} if base is None else view.several(base.branch, changed)
        for record_id in changed:
            stored = live.get(record_id)
            own = None if stored is None or stored == there.get(record_id) else Record.load(stored.payload)
            totals.put(record_id, None if own is None else totals.entry(own, 0))
        return totals

    def nbytes(self, value: UsageTotals) -> int:
        """Return the approximate memory of the totals."""
        return _ENTRY_BYTES * len(value)


class _Delta(NamedTuple):
    """A change in the number of records and in their size in bytes."""

    records: int
    nbytes: int


_NO_CHANGE = _Delta(0, 0)


class _Total(NamedTuple):
    """A total that a quota limits.

    Attributes:
        what: "records" or "bytes".
        mark: The low-water mark of the limit.
        total: The total after a change.
    """

    what: str
    limit: int
    mark: int
    total: int
    change: int


class Room:
    """The room that a quota leaves to a transaction.

    Args:
        totals: The totals at the newest commit.
        others: The totals of the other parts that share the quota, and of what only other branches have. Their records
            are never evicted.
        micros: The time of the transaction (microseconds since 1970).
        due: Returns the ids of expired records, in order of expiry.
        visible: Whether the caller may see all records that the quota covers, and so the figures in a QuotaError.
    """

    def __init__(
        self,
        branch: Branch,
        quota: Quota,
        totals: UsageTotals,
        others: Sequence[UsageTotals],
        micros: int,
        due: Callable[[], list[str]],
        *,
        visible: bool = True,
    ) -> None:
        self.totals = totals
        self._others = others
        self._branch = branch
        self._quota = quota
        self._micros = micros
        self._due = due
        self._visible = visible
        self._records_mark = quota.mark(quota.records or 0)
        self._bytes_mark = quota.mark(quota.bytes or 0)
        self._changed: dict[str, _Entry | None] = {}
        # Per group, the number of evictable records at the beginning that the transaction has changed already.
        self._skipped: Counter[str | None] = Counter()
        self._deltas: dict[str | None, _Delta] = {}  # since the commit

    def to_evict(self, record: Record) -> list[tuple[str, str]]:
        """Return the ids that must be removed before a record is written, each with the cause.

        Once a record must be evicted, eviction goes on to the low-water mark of the limits that are exceeded. Records
        that this transaction wrote are never evicted. A record that does not increase the total of a limit that is
        exceeded is always allowed.

        Raises:
            QuotaError: Evicting all evictable records would not make enough room.
        """
        group = self.totals.group_of(record)
        before = self._entry(record.id)
        if before is not None and before.group != group:
            before = None  # it is new to this group
        delta = _Delta(int(before is None), len(record.to_bytes()) - (before.nbytes if before else 0))
        exceeded = [each.what for each in self._totals_after(group, delta) if each.total > each.limit]
        if not exceeded:
            return []
        evictions: list[tuple[str, str]] = []
        must_evict = False
        for record_id, cause in self._removable(group):
            entry = self.totals.get(record_id)
            if record_id == record.id or record_id in self._changed or entry is None or entry.group != group:
                continue
            if cause == EVICTED and not must_evict:
                must_evict = self._over(group, delta) is not None
                if not must_evict:
                    break  # the expired records made enough room
            evictions.append((record_id, cause))
            delta = _Delta(delta.records - 1, delta.nbytes - entry.nbytes)
            if self._is_at_mark(group, delta, exceeded):
                break
            if len(evictions) >= STEP and self._over(group, delta):
                break
        over = self._over(group, delta, increased=True)
        if over:
            what, limit, total = (over.what, over.limit, over.total) if self._visible else (over.what, None, None)
            per = self._quota.per
            owner = "" if per is None else f"records with no {per}" if group is None else f"{per} {group!r}"
            raise QuotaError(self._branch.owner.namespace, what, limit, total, self._quota.when_full, owner)
        return evictions

    def _over(self, group: str | None, delta: _Delta, *, increased: bool = False) -> _Total | None:
        """Return the total that a change would raise above its limit; None if there is none.

        With `increased`, only a total that the change increases: an update adds no record, and may be made where a
        quota of records was lowered below what there is.
        """
        for each in self._totals_after(group, delta):
            if each.total > each.limit and (each.change > 0 or not increased):
                return each
        return None

    def _is_at_mark(self, group: str | None, delta: _Delta, exceeded: list[str]) -> bool:
        """Return whether a change leaves no limit exceeded, and those that were at their low-water marks."""
        return all(
            each.total <= (each.mark if each.what in exceeded else each.limit)
            for each in self._totals_after(group, delta)
        )

    def _totals_after(self, group: str | None, delta: _Delta) -> Iterator[_Total]:
        """Yield the totals of a group after a change, for which there is a limit."""
        sizes = [totals.size(group) for totals in (self.totals, *self._others)]
        records, nbytes = map(sum, zip(*sizes, strict=True))
        so_far = self._deltas.get(group, _NO_CHANGE)
        if self._quota.records is not None:
            total = records + so_far.records + delta.records
            yield _Total("records", self._quota.records, self._records_mark, total, delta.records)
        if self._quota.bytes is not None:
            total = nbytes + so_far.nbytes + delta.nbytes
            yield _Total("bytes", self._quota.bytes, self._bytes_mark, total, delta.nbytes)

    def _removable(self, group: str | None) -> Iterator[tuple[str, str]]:
        """Yield the ids of expired records of all groups, then of evictable records of a group, with the cause."""
        due = self._due()
        yield from ((record_id, "expired") for record_id in due)
        if self._quota.when_full != REFUSE:
            expired = set(due)
            for record_id in self.totals.evictable(group, self._skipped[group]):
                if record_id not in self._changed:
                    break
                self._skipped[group] += 1
            left = (each for each in self.totals.evictable(group, self._skipped[group]) if each not in expired)
            yield from ((record_id, EVICTED) for record_id in left)

    def _entry(self, record_id: str) -> _Entry | None:
        return self._changed[record_id] if record_id in self._changed else self.totals.get(record_id)

    def note(self, record_id: str, record: Record | None) -> None:
        """Note that the transaction wrote a record, or (None) removed it."""
        entry = None if record is None else self.totals.entry(record, self._micros)
        for each, sign in ((self._entry(record_id), -1), (entry, 1)):
            if each is not None:
                delta = self._deltas.get(each.group, _NO_CHANGE)
                self._deltas[each.group] = _Delta(delta.records + sign, delta.nbytes + sign * each.nbytes)
        self._changed[record_id] = entry

    def take_over(self, record: Record) -> None:
        """Count a record, which another branch has and this one is about to have, once for both."""
        entry = self.totals.entry(record, self._micros)
        counted = (each.get(record.id) for each in self._others)
        if any(each is not None and (each.group, each.nbytes) == (entry.group, entry.nbytes) for each in counted):
            delta = self._deltas.get(entry.group, _NO_CHANGE)
            self._deltas[entry.group] = _Delta(delta.records - 1, delta.nbytes - entry.nbytes)

    @property
    def written(self) -> list[str]:
        """The ids of the evictable records that the transaction wrote."""
        return [record_id for record_id, entry in self._changed.items() if entry is not None and entry.rank is not None]

    def committed(self, micros: int) -> UsageTotals:
        """Return the totals after the commit. Its time becomes the last use of the written records, as in a recount."""
        for record_id, entry in self._changed.items():
            if entry is not None and entry.rank is not None:
                entry = entry._replace(rank=(*entry.rank[:-1], micros))
            self.totals.put(record_id, entry)
        self._changed.clear()
        return self.totals
