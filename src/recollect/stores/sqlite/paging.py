"""The rest of an order as SQL: the records that follow a sort key, for a page that begins where another one ended.

The conditions select by value instead of counting rows, so a page costs the same wherever it begins, and a record that
is inserted or removed before it shifts nothing. Records in order of time are read from an index on time, which a range
of it bounds; the other orders are sorted for each page.
"""

from __future__ import annotations

from recollect.stores.ordering import NO_IMPORTANCE, NO_POSITION, NO_TIME, SortKey
from recollect.stores.sqlite.filters import TRUE, Sql

_TIME = f"coalesce(h.time, {NO_TIME})"
_POSITION = f"coalesce(h.position, {NO_POSITION})"
_IMPORTANCE = f"coalesce(h.importance, {NO_IMPORTANCE})"


def rest(order: str, after: SortKey | None) -> list[Sql]:
    """Return conditions on `heads h`, under which the rows that follow `after` are found one condition after the other.

    Args:
        order: One of `operations.ORDERS`.
        after: The sort key (`stores.ordering.sort_key`); None: the whole order follows.
    """
    if after is None:
        return [TRUE]
    if order == "newest":
        time, position, record_id = after
        ties = Sql(f"(-{_POSITION}, h.id) > (-?, ?)", (position, record_id))
        if time == NO_TIME:
            return [Sql(f"h.time IS NULL AND {ties.text}", ties.parameters)]
        earlier = Sql(f"h.time <= ? AND (h.time < ? OR {ties.text})", (time, time, *ties.parameters))
        return [earlier, Sql("h.time IS NULL")]  # one statement of both could not use the range of the index
    if order == "oldest":
        later = Sql(f"({_TIME}, {_POSITION}, h.id) > (?, ?, ?)", after)
        return [later if after[0] == NO_TIME else Sql(f"h.time >= ? AND {later.text}", (after[0], *after))]
    if order == "importance":
        return [Sql(f"(-{_IMPORTANCE}, h.id) > (-?, ?)", after)]
    if order == "position":
        return [Sql(f"(coalesce(h.conversation, ''), {_POSITION}, {_TIME}, h.id) > (?, ?, ?, ?)", after)]
    return [Sql("h.id > ?", after)]
