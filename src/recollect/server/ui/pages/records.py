"""Records: those that match a filter, one with everything about it, and what would be forgotten with a filter."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from recollect import Memory, Record, RecordVersion
from recollect import filters as f
from recollect.errors import UnknownRecordError
from recollect.filters import Filter
from recollect.server.ui.pages.overview import values_of
from recollect.server.ui.visit import RECORDS, Visit
from recollect.wire import record_json

#: The fields by whose values records can be narrowed down, and the filters that do it.
FACETS: dict[str, Callable[[str], Filter]] = {
    "kind": f.kind,
    "user": f.user,
    "agent": f.agent,
    "conversation": f.conversation,
    "tag": f.tag,
}
ORDERS = ("newest", "oldest", "importance", "id")
_ROWS, _MOST_ROWS = 25, 200
#: Number of turns before and after a turn that are shown with it, and of records that link to one.
_NEAR, _LINKED = 2, 20
#: Number of records that are shown of those that would be forgotten.
_SAMPLE = 5


def condition(visit: Visit) -> Filter:
    """Return the filter of a request: its text, and the facets that were chosen."""
    stated = [kind(visit.text(name)) for name, kind in FACETS.items() if visit.text(name)]
    if visit.text("where").strip():
        stated.append(f.parse(visit.text("where")))
    if visit.text("contains"):
        stated.append(f.contains(visit.text("contains")))
    return f.all_of(*stated)


def records(visit: Visit) -> dict[str, Any]:
    """Return a page of the records that match, and the values by which they can be narrowed down."""
    where = condition(visit)
    memory = visit.part(visit.memory)
    order: Any = visit.text("order") or ORDERS[0]
    found = memory.find(where, visit.number("limit", _ROWS, _MOST_ROWS), order, after=visit.text("after") or None)
    is_records = (visit.text("part") or RECORDS) == RECORDS
    return {
        **found.to_json(),
        "count": memory.count(where),
        "part": visit.text("part") or RECORDS,
        "parts": visit.memory.stats()["parts"],
        "facets": {name: values_of(visit, name, where) for name in FACETS} if is_records else {},
        "chosen": visit.given(*FACETS),
    }


def record(visit: Visit) -> dict[str, Any]:
    """Return one record, what it is connected with, its versions up to the moment, and how two of them differ.

    Raises:
        UnknownRecordError: There has never been a record with this id.
    """
    record_id = visit.text("id")
    memory = visit.part(visit.memory)
    found = memory.get(record_id)
    versions = [each.to_json() for each in _versions(visit, record_id)]
    if found is None and not versions:
        raise UnknownRecordError(record_id, visit.namespace)
    live = [each for each in versions if each["record"] is not None]
    number = visit.number("v", len(versions), max(len(versions), 1)) if versions else 0
    earlier = [each["record"] for each in versions[: max(number - 1, 0)] if each["record"] is not None]
    return {
        "id": record_id,
        "part": visit.text("part") or RECORDS,
        "record": None if found is None else record_json(found),
        "versions": versions,
        "v": number,
        "chosen": versions[number - 1] if versions else None,
        "before": earlier[-1] if earlier else None,
        "last": live[-1]["record"] if live else None,
        "around": [record_json(each) for each in turns_around(memory, found)],
        "links": _links(memory, record_id, found),
    }


def _versions(visit: Visit, record_id: str) -> list[RecordVersion]:
    """Return the versions that a record had until the moment that is looked at."""
    versions = visit.part(visit.present()).history(record_id)
    if visit.moment is None:
        return versions
    if isinstance(visit.moment, datetime):
        return [each for each in versions if each.commit.time <= visit.moment]
    last = visit.memory.log(1)
    return [each for each in versions if last and each.commit.time <= last[0].time]


def turns_around(memory: Memory, record: Record | None) -> list[Record]:
    """Return the turns next to a turn, in their order, and the turn itself between them."""
    if record is None or record.conversation is None or record.position is None:
        return []
    turns = memory.find(f.conversation(record.conversation), order="position")
    at = next((number for number, each in enumerate(turns) if each.id == record.id), None)
    return [] if at is None else list(turns[max(at - _NEAR, 0) : at + _NEAR + 1])


def _links(memory: Memory, record_id: str, record: Record | None) -> dict[str, list[str]]:
    """Return the ids of the records that a record names, and of those that name it, by the field."""
    out: dict[str, list[str]] = {}
    if record is not None:
        out |= {"supersedes": list(record.supersedes), "derived_from": list(record.derived_from)}
        out["parent"] = [] if record.parent is None else [record.parent]
    for name, kind in (("superseded_by", f.supersedes), ("source_of", f.derived_from), ("parent_of", f.parent)):
        out[name] = [each.id for each in memory.find(kind(record_id), _LINKED)]
    return {name: ids for name, ids in out.items() if ids}


def content(visit: Visit) -> bytes:
    """Return the content of a record as bytes.

    Raises:
        UnknownRecordError: There is no such record.
    """
    record_id = visit.text("id")
    found = visit.part(visit.memory).get(record_id)
    if found is None:
        raise UnknownRecordError(record_id, visit.namespace)
    return found.content if isinstance(found.content, bytes) else found.content.encode("utf-8")


def forget(visit: Visit) -> dict[str, Any]:
    """Return how many records a filter selects, and some of them, before they are forgotten."""
    where = condition(visit)
    memory = visit.part(visit.memory)
    found = memory.find(where, _SAMPLE)
    return {
        **found.to_json(),
        "count": memory.count(where),
        "part": visit.text("part") or RECORDS,
        "chosen": visit.given(*FACETS, "where", "contains"),
        "expect": digest(memory.find(where, order="id")),
    }


def digest(found: Iterable[Record]) -> str:
    """Return a hash of records, so that only those are forgotten that were shown."""
    return hashlib.sha256("\n".join(f"{each.id} {each.hash}" for each in found).encode()).hexdigest()
