"""Memories of mem0: the answer of `get_all` or `search`, saved as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any

from recollect.importers.base import Damage, Item, SeenIds, format_error, load_json
from recollect.records.messages.parts import NOTHING
from recollect.records.messages.values import UnreadableError, instant, kind_of

#: Key of a memory -> field of a record.
_FIELDS = {
    "memory": "content",
    "user_id": "user",
    "agent_id": "agent",
    "run_id": "session",
    "categories": "tags",
    "created_at": "time",
}


class Mem0:
    """`{"results": [{"id", "memory", "user_id", ...}]}`, or only the list; each memory is a fact about a user."""

    name = "mem0"
    summary = "mem0: the JSON of get_all, an object with results or the list alone; memories as facts of a user"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        data = load_json(path)
        memories = data.get("results") if isinstance(data, dict) else data
        if not isinstance(memories, list):
            raise format_error(path, "", 'must be a list of memories, or an object with the list "results"')
        if memories and not any(isinstance(each, dict) and "memory" in each for each in memories):
            raise format_error(path, "", 'contains no object with a "memory"')
        ids = SeenIds()
        for number, memory in enumerate(memories, 1):
            place = f"memory {number}"
            try:
                yield Item(namespace=None, fields=_fields(memory, ids, zone), place=place)
            except UnreadableError as error:
                yield Damage(place, str(error))
        if isinstance(data, dict) and data.get("next"):
            yield Damage("next", "the file is one page of several: import the others too")
        if isinstance(data, dict) and data.get("relations"):
            yield Damage("relations", "relations of a graph are not imported")


def _fields(memory: Any, ids: SeenIds, zone: tzinfo) -> dict[str, Any]:
    if not isinstance(memory, dict):
        raise UnreadableError(f"is {kind_of(memory)}, not an object")
    rest = {key: value for key, value in memory.items() if value not in NOTHING}
    fields = {field: rest.pop(key) for key, field in _FIELDS.items() if key in rest}
    if not isinstance(fields.get("content"), str):
        raise UnreadableError(f'its "memory" is {kind_of(fields.get("content"))}, not text')
    if "time" in fields:
        fields["time"] = instant(fields["time"], zone)
    stated = rest.pop("metadata", {})
    if not isinstance(stated, dict):
        raise UnreadableError(f"its metadata is {kind_of(stated)}, not an object")
    return {**fields, **ids.own(rest.pop("id", None)), "kind": "user_fact", "metadata": {**rest, **stated}}
