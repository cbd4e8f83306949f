"""What every store computes alike: the orders of records, net changes, expiry and tallies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, TypeAlias

from recollect.ledger.commits import Commit, Head
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.values import Tally

#: The values by which an order sorts a record, the id last: no two records of a branch have the same (`sort_key`).
SortKey: TypeAlias = tuple[int | float | str, ...]


#: In the sort key of a record without a time, a position or an importance.
NO_TIME = -(2**63)


NO_POSITION = -1


NO_IMPORTANCE = -1.0


#: For each order, whether its first values, all but the id, are sorted in ascending (1) or descending (-1) order.
_DIRECTIONS = {"newest": (-1, -1), "oldest": (1, 1), "importance": (-1,), "position": (1, 1, 1), "id": ()}


def sort_key(record: Record, order: str) -> SortKey:
    """Return the values by which one of `operations.ORDERS` sorts a record."""
    time = NO_TIME if record.time is None else microseconds(record.time)
    position = NO_POSITION if record.position is None else record.position
    if order in ("newest", "oldest"):
        return (time, position, record.id)
    if order == "importance":
        return (NO_IMPORTANCE if record.importance is None else record.importance, record.id)
    return (record.conversation or "", position, time, record.id) if order == "position" else (record.id,)


def in_order(records: Iterable[Record], order: str, after: SortKey | None = None) -> list[Record]:
    """Sort records in one of `operations.ORDERS`: the reference that every store's `select` follows.

    With `after`, only the records that follow this sort key are returned.
    """
    directions = (*_DIRECTIONS[order], 1)

    def ascending(key: SortKey) -> tuple[Any, ...]:
        pairs = zip(key, directions, strict=True)
        return tuple(each.encode("utf-8") if isinstance(each, str) else each * way for each, way in pairs)

    keyed = [(ascending(sort_key(record, order)), record) for record in records]
    if after is not None:
        first = ascending(after)
        keyed = [each for each in keyed if each[0] > first]
    keyed.sort(key=itemgetter(0))
    return [record for _, record in keyed]


def net(
    changes: Iterable[tuple[str, bytes | None, bytes | None]],
) -> dict[str, tuple[bytes | None, bytes | None]]:
    """Return the net effect of changes (id, before, after) in the order of the log: the result of `net_changes`."""
    out: dict[str, tuple[bytes | None, bytes | None]] = {}
    for record_id, before, after in changes:
        out[record_id] = (out[record_id][0] if record_id in out else before, after)
    return {record_id: (before, after) for record_id, (before, after) in out.items() if before != after}


def expired(record: Record, now: int) -> bool:
    """Return whether the record has expired at `now` (microseconds since 1970)."""
    return record.expires is not None and microseconds(record.expires) <= now


def check_seq(commit: Commit, head: Head) -> None:
    """Assert what every `append` requires: the log has no gaps, and time increases."""
    assert commit.seq == head.seq + 1, "a commit must follow the head"
    assert commit.micros > head.micros, "a commit must be later than the head"


def tally_of(records: Iterable[Record]) -> Tally:
    """Return the tally of records: the reference that every store's `tally` follows."""

    records = list(records)
    times = [microseconds(record.time) for record in records if record.time is not None]
    return Tally(
        kinds=dict(sorted(Counter(record.kind for record in records).items())),
        users=len({record.user for record in records} - {None}),
        conversations=len({record.conversation for record in records} - {None}),
        entities=len({record.entity for record in records} - {None}),
        oldest=min(times, default=None),
        newest=max(times, default=None),
    )
