"""The file of the reference MCP memory server, and of servers that were made from it: a knowledge graph as JSON.

The reference server writes an object in each line, sometimes two. Others leave out "type", state the entities and the
relations in one object, or have observations that are objects with a text and a time. What states a name or two ends is
read; what an object states beside goes to the metadata of its record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from recollect import filters as f
from recollect.arguments.checks import is_number
from recollect.facets.entities.graph import GRAPH_KINDS, Graph, Relation, node, observation, relation
from recollect.importers.base import Damage, Item, JsonValue, check_memory, format_error, json_values, read_text
from recollect.records.messages.parts import NOTHING
from recollect.records.messages.values import UnreadableError, instant, kind_of

if TYPE_CHECKING:
    from recollect.memory import Memory

#: The keys under which servers state the same, the best first.
_KINDS = ("type", "_type")
_TYPES = ("entityType", "entity_type", "type")
_TEXTS = ("text", "content", "observation", "value")
#: Field of a record -> the keys of an object that state it.
_TIMES = {
    "time": ("timestamp", "createdAt", "created_at", "time", "date"),
    "valid_from": ("validFrom", "valid_from"),
    "valid_to": ("validTo", "valid_to"),
}
_SOURCES, _TARGETS = ("from", "source"), ("to", "target")
_RELATIONS = ("relationType", "relation_type", "relation", "label", "type")
#: A number from this on is a time in milliseconds: in seconds, it would be after the year 5000.
_LEAST_MS, _MOST_MS = 10**11, 10**16
#: The type of an entity that states none.
_UNTYPED = "entity"


class KnowledgeGraph:
    """`{"type": "entity", "name", "entityType", "observations"}` and `{"type": "relation", "from", "to", ...}`."""

    name = "mcp-memory"
    origin = "document"
    summary = "MCP memory server: its knowledge graph as JSON or JSON lines; entities, observations and relations"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        values = list(_values(read_text(path)))
        if not any(_is_entity(each.value) or _is_relation(each.value) for each in values):
            raise format_error(path, "", "contains neither an entity nor a relation")
        seen: set[str] = set()
        for place, value in values:
            try:
                for inner, fields in _records(value, zone):
                    at = f"{place}{inner}"
                    if isinstance(fields, UnreadableError):
                        yield Damage(at, str(fields))
                    elif not fields["content"].strip():
                        yield Damage(at, "is blank")
                    elif fields["id"] not in seen:  # of what is stated twice, the first counts
                        seen.add(fields["id"])
                        yield Item(namespace=None, fields=fields, place=at)
            except UnreadableError as error:
                yield Damage(place, str(error))


def write_graph(memory: Memory, file: TextIO) -> int:
    """Write the knowledge graph of a memory in this format, and return the number of lines.

    Args:
        file: A UTF-8 text file without newline translation.
    """
    check_memory(memory)
    graph = Graph(memory.find(f.kind(*GRAPH_KINDS), order="oldest"))
    lines: list[dict[str, Any]] = [
        {"type": "entity", "name": each.name, "entityType": each.type, "observations": list(each.observations)}
        for each in graph.entities()
    ]
    lines += [
        {"type": "relation", "from": each.source, "to": each.target, "relationType": each.type}
        for each in graph.relations()
    ]
    for line in lines:
        file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    return len(lines)


def _values(text: str) -> Iterator[JsonValue]:
    """Yield the JSON values of a text, and those that one of them lists."""
    for place, value in json_values(text):
        yield from _listed(value, place)


def _listed(value: Any, place: str) -> Iterator[JsonValue]:
    """Yield the entities and relations that a value lists, or the value itself."""
    lists: list[tuple[str, list[Any]]] = []
    if isinstance(value, list):
        lists = [("item", value)]
    elif isinstance(value, dict) and not _is_entity(value):
        names = (("entity", "entities"), ("relation", "relations"))
        lists = [(word, value[key]) for word, key in names if isinstance(value.get(key), list)]
    if not lists:
        yield JsonValue(place, value)
    for word, each in lists:
        yield from (JsonValue(f"{place}, {word} {number}", part) for number, part in enumerate(each, 1))


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if value.get(key) is not None), None)


def _states(value: dict[str, Any], kind: str) -> bool:
    return any(value.get(key) == kind for key in _KINDS)


def _is_relation(value: Any) -> bool:
    if not isinstance(value, dict) or _states(value, "entity"):
        return False
    ends = _first(value, _SOURCES) is not None and _first(value, _TARGETS) is not None
    return _states(value, "relation") or (ends and "observations" not in value)


def _is_entity(value: Any) -> bool:
    if not isinstance(value, dict) or _is_relation(value):
        return False
    return _states(value, "entity") or ("name" in value and any(key in value for key in (*_TYPES, "observations")))


def _records(value: Any, zone: tzinfo) -> Iterator[tuple[str, dict[str, Any] | UnreadableError]]:
    """Yield the fields of the records that a value states, each with its place in it, or why there are none.

    Raises:
        UnreadableError: The value is not an entity or a relation.
    """
    if isinstance(value, UnreadableError):
        raise value
    if not isinstance(value, dict):
        raise UnreadableError(f"is {kind_of(value)}, not an object")
    if _is_relation(value):
        yield "", _relation(value, zone)
    elif _is_entity(value):
        yield from _entity(value, zone)
    else:
        raise UnreadableError('its "type" is neither "entity" nor "relation"')


def _entity(value: dict[str, Any], zone: tzinfo) -> Iterator[tuple[str, dict[str, Any] | UnreadableError]]:
    name = _text(value, ("name",))
    typed = _first({**value, "type": None} if value.get("type") == "entity" else value, _TYPES)
    entity_type = _UNTYPED if typed is None else _text(value, (typed,))
    stated = value.get("observations")
    if typed is None and stated is None:
        raise UnreadableError('has neither an "entityType" nor "observations"')
    observations = [stated] if isinstance(stated, str) else [] if stated is None else stated
    if not isinstance(observations, list):
        raise UnreadableError('its "observations" is not a list of texts')
    used = {"name", *_KINDS, typed, "observations"}
    entity = _with_rest(node(name, entity_type), value, used, zone)
    yield "", entity
    when = {"time": entity["time"]} if "time" in entity else {}  # of observations that state none
    for number, each in enumerate(observations, 1):
        place = f", observation {number}"
        key = _first(each, _TEXTS) if isinstance(each, dict) else None
        said = each if key is None else each[key]
        if not isinstance(said, str):
            yield place, UnreadableError(f"is {kind_of(said)}, not text")
            continue
        fields = observation(name, entity_type, said)
        fields = fields if key is None else _with_rest(fields, each, {key}, zone)
        yield place, {**when, **fields}


def _relation(value: dict[str, Any], zone: tzinfo) -> dict[str, Any]:
    kind = _first({**value, "type": None} if value.get("type") == "relation" else value, _RELATIONS)
    stated = Relation(_text(value, _SOURCES), _text(value, _TARGETS), _text(value, (kind or _RELATIONS[0],)))
    return _with_rest(relation(stated), value, {*_KINDS, kind, *_SOURCES, *_TARGETS}, zone)


def _with_rest(fields: dict[str, Any], value: dict[str, Any], used: set[str | None], zone: tzinfo) -> dict[str, Any]:
    """Return fields with the times that an object states, and with everything else that it states as metadata."""
    rest = {key: each for key, each in value.items() if key not in used and each not in NOTHING}
    for name, keys in _TIMES.items():
        if (key := _first(rest, keys)) is not None:
            value_in_s = rest[key] / 1000 if is_number(rest[key], _LEAST_MS, _MOST_MS) else rest[key]
            with suppress(UnreadableError):  # then it stays in the metadata
                fields = {**fields, name: instant(value_in_s, zone)}
                del rest[key]
    return {**fields, "metadata": {**rest, **fields["metadata"]}} if rest else fields


def _text(value: dict[str, Any], keys: tuple[str, ...]) -> str:
    key = _first(value, keys) or keys[0]
    text = value.get(key)
    if not isinstance(text, str):
        raise UnreadableError(f'its "{key}" is {kind_of(text)}, not text')
    return text
