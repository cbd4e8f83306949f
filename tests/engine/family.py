"""A memory with something in each of its parts, and what each part has, for the tests of calls on all parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from recollect import Memory
from recollect import filters as f
from recollect.ledger.commits import Commit
from recollect.operations import Find
from recollect.testing.loopback import beside

#: The parts of a memory in the order in which calls name them.
PARTS = ("records", "keys", "nodes", "sdrs", "terms")
#: What is not known, what is no list of names, and what names nothing.
WRONG: dict[str, Any] = {"unknown": ["keys", "outlines"], "empty": [], "a text": "keys", "a number": 7}

Call = Callable[[Memory, Any], Any]
#: Each call on a memory that takes `parts`, except for importing.
CALLS: dict[str, Call] = {
    "stats": lambda memory, parts: memory.stats(parts=parts),
    "changes": lambda memory, parts: memory.changes(parts=parts),
    "log": lambda memory, parts: memory.log(parts=parts),
    "listen": lambda memory, parts: memory.listen(print, parts=parts).close(),
    "subscribe": lambda memory, parts: memory.subscribe(parts=parts).close(),
    "diff": lambda memory, parts: memory.diff(0, parts=parts),
    "rollback": lambda memory, parts: memory.rollback(0, parts=parts),
    "forget_where": lambda memory, parts: memory.forget_where("tag=none", parts=parts),
    "clear": lambda memory, parts: memory.clear(parts=parts),
    "erase": lambda memory, parts: memory.erase(f.tag("none"), parts=parts),
    "open_export": lambda memory, parts: memory.open_export(parts=parts).close(),
}


def write(memory: Memory, part: str, name: str = "a") -> None:
    """Write something new, called by a name, to a part. In a scope, it belongs to that."""
    match part:
        case "records":
            memory.remember(f"{name} is moored at the quay", id=name)
        case "keys":
            memory.keyed.write(name, name.encode())
        case "nodes":
            memory.outline.ingest({"type": "HEADLINE", "properties": {"ID": f"node {name}"}})
        case "sdrs":
            memory.sdr.store(f"{name} is a sloop")
        case _:
            memory.glossary.memorize(f"term {name}", f"what {name} means", "of boats", agent_id="bot")


def fill(memory: Memory, name: str = "a", parts: Iterable[str] = PARTS) -> None:
    """Write something to each part."""
    for part in parts:
        write(memory, part, name)


def ids(memory: Memory, part: str) -> list[str]:
    """Return the ids in a part, sorted, without the counter of the sparse codes."""
    found = memory if part == "records" else beside(memory, part)
    return sorted(each.id for each in found.execute(Find()) if each.kind != "sdr_counter")


def counts(memory: Memory) -> dict[str, int]:
    """Return how many records each part has, counted one by one."""
    return {part: len(ids(memory, part)) for part in PARTS}


def roots(memory: Memory) -> dict[str, str]:
    """Return the root of each part."""
    return dict(memory.head().parts)


def changed(commits: Iterable[Commit]) -> list[tuple[str, ...]]:
    """Return the parts that each commit changed: its own and those that it follows."""
    return [tuple(each.part for each in (commit, *commit.part_commits) if each.changes) for commit in commits]
