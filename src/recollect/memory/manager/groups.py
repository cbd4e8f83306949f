"""The groups that consolidation summarises: records of one kind that belong together.

Turns belong together by their conversation, facts about entities by their entity, facts about users by their user,
knowledge by its source, and tasks by their success. Records without that belong to no group. Other kinds are never
grouped, nor are pinned records and standing instructions, which recall returns by themselves, nor turns that were
abandoned and facts that are not true any more, which a summary would state as if they were.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from recollect.records.record import Record
from recollect.records.turns import OTHER_BRANCH
from recollect.text.manner import STANDING_TAGS

#: Kind -> what its records are grouped by.
GROUPED_BY = {
    "conversation": "conversation",
    "entity": "entity",
    "user_fact": "user",
    "knowledge": "source",
    "task": "success",
}
#: Maximum number of records of a group that are summarised at a time.
LARGEST = 50
#: Records of different owners are never summarised together.
_OWNERS = ("user", "agent")
_LEFT_OUT = frozenset((*STANDING_TAGS, OTHER_BRANCH))


class Group(NamedTuple):
    """Records that belong together.

    Attributes:
        kind: Their kind.
        key: What they have in common, such as the name of the conversation.
        records: The records, oldest first.
    """

    kind: str
    key: str
    records: tuple[Record, ...]


def groups_of(records: Iterable[Record], min_count: int, now: datetime) -> list[Group]:
    """Return the groups of records, ordered by kind, key and owner.

    A group is cut to `LARGEST` records, its newest, of a conversation its oldest, and then needs `min_count`.

    Args:
        records: The records.
        min_count: Minimum number of records of a group after the cut.
        now: Records whose validity ended at or before this time are left out.
    """
    found: dict[tuple[str, str, Hashable], list[Record]] = {}
    for record in records:
        key = _key(record)
        ended = record.valid_to is not None and record.valid_to <= now
        if key is not None and not ended and not record.pinned and _LEFT_OUT.isdisjoint(record.tags):
            owner = tuple(getattr(record, name) or "" for name in _OWNERS)
            found.setdefault((record.kind, key, owner), []).append(record)
    groups = [
        Group(kind, key, _cut(kind, members)) for (kind, key, _), members in sorted(found.items(), key=lambda it: it[0])
    ]
    return [group for group in groups if len(group.records) >= min_count]


def _key(record: Record) -> str | None:
    name = GROUPED_BY.get(record.kind)
    if name is None or isinstance(record.content, bytes):
        return None
    if name == "success":
        success = record.metadata.get(name)
        return str(success).lower() if isinstance(success, (bool, str)) else None
    value: str | None = getattr(record, name)
    return value


def _cut(kind: str, records: Sequence[Record]) -> tuple[Record, ...]:
    if kind == "conversation":
        return tuple(sorted(records, key=lambda each: (each.position or 0, *_age(each)))[:LARGEST])
    return tuple(sorted(records, key=_age)[-LARGEST:])


def _age(record: Record) -> tuple[float, str]:
    return (record.time.timestamp() if record.time is not None else float("-inf"), record.id)
