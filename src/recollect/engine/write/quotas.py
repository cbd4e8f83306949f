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
_MOST = 16


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

    def leaving(self, group: str | None, start: int = 0) -> Iterator[str]:
        """The ids of a group that may go, in the order in which they would, from a place in it on."""
        found = self._groups.get(group)
        ranked = [] if found is None else found.ranked
        return (ranked[place][1] for place in range(start, len(ranked)))


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
        then, fill = self._kept.pop(branch, (Head(), UsageTotals(quota.when_full, quota.per)))
        goes_on = then == head or (0 < then.seq < head.seq and transaction.root_at(branch, then.seq) == then.root.hash)
        if (fill.when_full, fill.per) != (quota.when_full, quota.per) or not goes_on:
            then, fill = Head(), UsageTotals(quota.when_full, quota.per)
        if then != head:
            # Written is used: the log knows when that was, for whoever has not seen it, or was not there.
            written = transaction.last_touched(branch, then.seq)
            if then.seq:
                held = transaction.several(branch, list(written))
                for record_id in written:
                    if record_id not in held:
                        fill.put(record_id, None)
            else:
                held = dict(transaction.versions(branch))
            for record_id, stored in held.items():
                fill.put(record_id, fill.entry(Record.load(stored.payload), written.get(record_id, head.micros)))
        if not then.seq:
            for record_id, micros in self._uses.of(branch).items():
                fill.used(record_id, micros)
            self._uses.keep_only(branch, fill)
        for record_id, micros in self._uses.new(branch).items():
            fill.used(record_id, micros)
        if clean and self._uses.known(branch) > 2 * len(fill) + STEP:
            self._uses.keep_only(branch, fill)
        if clean or then == head:
            self.keep(branch, head, fill)
        return fill

    def drop(self, branch: Branch) -> None:
        """Let what a line holds be counted anew, unless it is kept again."""
        self._kept.pop(branch, None)

    def keep(self, branch: Branch, head: Head, fill: UsageTotals) -> None:
        """Keep a fill for whoever follows this commit."""
        self._kept.pop(branch, None)
        self._kept[branch] = (head, fill)
        if len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]


class _More(NamedTuple):
    """How many records and bytes are held more than before; below 0: fewer."""

    records: int
    nbytes: int


_NO_MORE = _More(0, 0)


class Room:
    """What a transaction may still write.

    due      gives the ids that are due, the longest due first
    visible  whether whoever writes may see all that the quota is about, and so its figures in an error
    """

    def __init__(
        self,
        branch: Branch,
        quota: Quota,
        fill: UsageTotals,
        micros: int,
        due: Callable[[], list[str]],
        *,
        visible: bool = True,
    ) -> None:
        self.fill = fill
        self._branch = branch
        self._quota = quota
        self._micros = micros
        self._due = due
        self._visible = visible
        self._changed: dict[str, _Entry | None] = {}
        self._passed: Counter[str | None] = (
            Counter()
        )  # of each group, the first of those that may go are changed already
        self._more: dict[str | None, _More] = {}  # since the commit

    def make(self, record: Record) -> list[tuple[str, str]]:
        """What must go for a record to come: ids, each with the cause.

        What this transaction wrote itself stays. A record that makes its group hold no more than it did may come in
        any case. Raises: QuotaError, where nothing that may go makes room enough.
        """
        group = self.fill.group_of(record)
        before = self._entry(record.id)
        if before is not None and before.group != group:
            before = None  # to this group it is a new one
        more = _More(int(before is None), len(record.to_bytes()) - (before.nbytes if before else 0))
        over = self._over(group, more)
        if not over:
            return []
        gone: list[tuple[str, str]] = []
        for record_id, cause in self._leaving(group):
            entry = self.fill.get(record_id)
            if record_id == record.id or record_id in self._changed or entry is None or entry.group != group:
                continue
            gone.append((record_id, cause))
            more = _More(more.records - 1, more.nbytes - entry.nbytes)
            if not self._over(group, more) or len(gone) == STEP:
                break
        over = self._over(group, more)
        if over and (more.records > 0 or more.nbytes > 0):
            what, limit, held = over if self._visible else (over[0], None, None)
            per = self._quota.per
            owner = "" if per is None else f"what has no {per}" if group is None else f"{per} {group!r}"
            raise QuotaError(self._branch.namespace, what, limit, held, self._quota.when_full, owner)
        return gone

    def _over(self, group: str | None, more: _More) -> tuple[str, int, int] | None:
        """Which limit is broken with so much more, with the limit and what would be held; None for none."""
        records, nbytes = self.fill.size(group)
        so_far = self._more.get(group, _NO_MORE)
        for what, limit, held in (
            ("records", self._quota.records, records + so_far.records + more.records),
            ("bytes", self._quota.bytes, nbytes + so_far.nbytes + more.nbytes),
        ):
            if limit is not None and held > limit:
                return what, limit, held
        return None

    def _leaving(self, group: str | None) -> Iterator[tuple[str, str]]:
        due = self._due()
        yield from ((record_id, "expired") for record_id in due)
        if self._quota.when_full != REFUSE:
            gone = set(due)
            for record_id in self.fill.leaving(group, self._passed[group]):
                if record_id not in self._changed:
                    break
                self._passed[group] += 1
            left = (each for each in self.fill.leaving(group, self._passed[group]) if each not in gone)
            yield from ((record_id, "evicted") for record_id in islice(left, STEP + len(self._changed)))

    def _entry(self, record_id: str) -> _Entry | None:
        return self._changed[record_id] if record_id in self._changed else self.fill.get(record_id)

    def note(self, record_id: str, record: Record | None) -> None:
        """A record was put, or (None) dropped."""
        entry = None if record is None else self.fill.entry(record, self._micros)
        for each, sign in ((self._entry(record_id), -1), (entry, 1)):
            if each is not None:
                more = self._more.get(each.group, _NO_MORE)
                self._more[each.group] = _More(more.records + sign, more.nbytes + sign * each.nbytes)
        self._changed[record_id] = entry

    def committed(self, micros: int) -> UsageTotals:
        """The fill after the commit, which has this time: the one by which whoever counts anew goes, too."""
        for record_id, entry in self._changed.items():
            if entry is not None and entry.rank is not None:
                entry = entry._replace(rank=(*entry.rank[:-1], micros))
            self.fill.put(record_id, entry)
        self._changed.clear()
        return self.fill
