"""The first page: how much a memory has, of what and of whom, and what changed last."""

from __future__ import annotations

from typing import Any

from recollect.server.ui.visit import Visit

#: Number of commits, and of values of a field.
_COMMITS, _VALUES = 10, 8


def overview(visit: Visit) -> dict[str, Any]:
    """Return counts, the largest values of some fields, and the newest commits."""
    memory = visit.memory
    stats = memory.stats()
    return {
        "stats": stats,
        "namespace": visit.namespace,
        "namespaces": visit.namespaces,
        "branch": visit.branch,
        "branches": [each.to_json() for each in visit.branches],
        "kinds": _largest(stats["kinds"]),
        "users": values_of(visit, "user"),
        "conversations": values_of(visit, "conversation"),
        "commits": [{**each.to_json(), "cursor": each.cursor} for each in memory.log(_COMMITS)],
    }


def values_of(visit: Visit, field: str, where: Any = None) -> list[dict[str, Any]]:
    """Return the values of a field that most records have, and in how many."""
    return _largest({each.value: each.records for each in visit.memory.values(field, where=where)})


def _largest(counts: dict[Any, int]) -> list[dict[str, Any]]:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], str(each[0])))
    return [{"value": value, "records": records} for value, records in ordered[:_VALUES]]
