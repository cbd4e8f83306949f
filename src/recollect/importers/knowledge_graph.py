"""The file of the reference MCP memory server: a knowledge graph as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from recollect import filters as f
from recollect.facets.entities.graph import GRAPH_KINDS, Graph, Relation, node, observation, relation
from recollect.importers.base import Damage, Item, check_memory, format_error, parse_json, read_text
from recollect.records.messages.values import UnreadableError, kind_of

if TYPE_CHECKING:
    from recollect.memory import Memory


class KnowledgeGraph:
    """`{"type": "entity", "name", "entityType", "observations"}` and `{"type": "relation", "from", "to", ...}`."""

    name = "mcp-memory"
    summary = "MCP memory server: the JSON lines of its knowledge graph; entities, observations and relations"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        lines = [(number, line) for number, line in enumerate(read_text(path).split("\n"), 1) if line.strip()]
        values = [(f"line {number}", _parsed(line)) for number, line in lines]
        if not any(isinstance(value, dict) and value.get("type") in _READERS for _, value in values):
            raise format_error(path, "", 'contains no line with the "type" "entity" or "relation"')
        seen: set[str] = set()
        for place, value in values:
            try:
                if isinstance(value, UnreadableError):
                    raise value
                for number, fields in enumerate(_records(value)):
                    content = fields["content"]
                    if not content.strip():
                        yield Damage(f"{place}, observation {number}", "is blank")
                    elif fields["id"] not in seen:  # of what is stated twice, the first counts
                        seen.add(fields["id"])
                        yield Item(namespace=None, fields=fields, place=place)
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


def _parsed(line: str) -> Any:
    try:
        return parse_json(line)
    except UnreadableError as error:
        return error


def _records(value: Any) -> list[dict[str, Any]]:
    """Return the fields of the records that a line states.

    Raises:
        UnreadableError: The line is not an entity or a relation.
    """
    if not isinstance(value, dict):
        raise UnreadableError(f"is {kind_of(value)}, not an object")
    reader = _READERS.get(str(value.get("type")))
    if reader is None:
        raise UnreadableError('its "type" is neither "entity" nor "relation"')
    return reader(value)


def _entity(value: dict[str, Any]) -> list[dict[str, Any]]:
    name, entity_type = _text(value, "name"), _text(value, "entityType")
    texts = value.get("observations")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise UnreadableError('its "observations" is not a list of texts')
    return [node(name, entity_type), *(observation(name, entity_type, text) for text in texts)]


def _relation(value: dict[str, Any]) -> list[dict[str, Any]]:
    return [relation(Relation(_text(value, "from"), _text(value, "to"), _text(value, "relationType")))]


_READERS = {"entity": _entity, "relation": _relation}


def _text(value: dict[str, Any], key: str) -> str:
    text = value.get(key)
    if not isinstance(text, str):
        raise UnreadableError(f'its "{key}" is {kind_of(text)}, not text')
    return text
