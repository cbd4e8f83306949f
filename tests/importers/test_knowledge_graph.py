"""Knowledge graphs of MCP memory servers, the reference server's and those of servers made from it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recollect import Memory
from recollect.errors import ImportFormatError
from recollect.importers import ImportReport, write_graph

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]

ANA = {"type": "entity", "name": "Ana", "entityType": "person", "observations": ["plays chess", "lives in Porto"]}
BOB = {"type": "entity", "name": "Bob", "entityType": "person", "observations": []}
KNOWS = {"type": "relation", "from": "Ana", "to": "Bob", "relationType": "knows"}


def graph(memory: Memory) -> list[dict[str, Any]]:
    file = io.StringIO()
    write_graph(memory, file)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def without(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key not in keys}


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(map(json.dumps, (ANA, BOB, KNOWS))),
        json.dumps(ANA) + json.dumps(BOB) + "\n" + json.dumps(KNOWS),
        json.dumps(ANA) + "  " + json.dumps(BOB) + json.dumps(KNOWS) + "\n",
        "\n".join(json.dumps(each, indent=2) for each in (ANA, BOB, KNOWS)),
        json.dumps({"entities": [ANA, BOB], "relations": [KNOWS]}),
        json.dumps({"entities": [without(ANA, "type"), without(BOB, "type", "observations")], "relations": [KNOWS]}),
        json.dumps([ANA, BOB, KNOWS]),
        "\n".join(map(json.dumps, (without(ANA, "type"), without(BOB, "observations"), without(KNOWS, "type")))),
        "\n".join(
            map(
                json.dumps,
                (
                    {**without(ANA, "type"), "observations": [{"text": each} for each in ANA["observations"]]},
                    {**without(BOB, "entityType"), "entity_type": "person"},
                    {"source": "Ana", "target": "Bob", "relation_type": "knows"},
                ),
            )
        ),
        "\n".join(
            map(
                json.dumps,
                (
                    {"type": "person", "name": "Ana", "observations": ANA["observations"]},
                    {"type": "person", "name": "Bob"},
                    KNOWS,
                ),
            )
        ),
    ],
)
def test_one_graph_is_read_in_the_forms_of_several_servers(run: Run, write: Write, memory: Memory, text: str) -> None:
    path = write("memory.jsonl", text)
    report = run("mcp-memory", path)
    assert (report.created, report.damaged) == (5, ())
    assert graph(memory) == [ANA, BOB, KNOWS]
    assert run("mcp-memory", path).unchanged == 5


def test_the_validity_of_a_relation_is_that_of_its_record(run: Run, write: Write, memory: Memory) -> None:
    ended = {**KNOWS, "_type": "relation", "validFrom": 1767225600, "validTo": 1769904000}
    run("mcp-memory", write("memory.jsonl", json.dumps(without(ended, "type"))))
    (record,) = memory.find()
    assert (record.valid_from, record.valid_to) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    assert record.metadata == {"from": "Ana", "to": "Bob", "relation_type": "knows"}


def test_times_and_everything_else_stay(run: Run, write: Write, memory: Memory) -> None:
    said = {"content": "plays chess", "timestamp": "2026-03-01T09:00:00Z", "confidence": 0.5}
    entity = {**ANA, "observations": [said], "createdAt": "2025-01-01", "tags": ["friend"], "updatedAt": "never"}
    run("mcp-memory", write("memory.jsonl", json.dumps(entity)))
    node, fact = memory.find(order="oldest")
    assert (node.time, fact.time) == (datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, 9, tzinfo=UTC))
    assert (node.metadata["tags"], node.metadata["updatedAt"]) == (["friend"], "never")
    assert (fact.metadata["confidence"], fact.metadata["entity_name"]) == (0.5, "Ana")


def test_what_is_neither_is_reported_with_its_place_and_the_rest_is_imported(
    run: Run, write: Write, memory: Memory
) -> None:
    lines = [
        json.dumps(ANA) + '{"name": 7, "entityType": "x"}',
        '{"type": "entity", "name": ',
        json.dumps({"type": "entity", "name": "Cy", "entityType": "cat", "observations": ["sleeps", 7, " "]}),
        json.dumps({"hello": 1}),
        "5",
    ]
    report = run("mcp-memory", write("memory.jsonl", "\n".join(lines)))
    assert [each.place for each in report.damaged] == [
        "line 1, object 2",
        "line 2",
        "line 3, observation 2",
        "line 3, observation 3",
        "line 4",
        "line 5",
    ]
    assert [each["name"] for each in graph(memory)] == ["Ana", "Cy"]
    assert report.files == {"memory.jsonl": {"created": 5, "damaged": 6}}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"entities": []}', '[{"a": 1}]', "{", '"x"'])
def test_a_file_without_a_graph_is_refused(run: Run, write: Write, text: str) -> None:
    with pytest.raises(ImportFormatError, match="contains neither an entity nor a relation"):
        run("mcp-memory", write("memory.jsonl", text))
