"""Entities: those that records mention, and one of them with what it is connected with, as a graph and as a list."""

from __future__ import annotations

import math
from typing import Any

from recollect import filters as f
from recollect.errors import UnknownRecordError
from recollect.server.ui.visit import Visit
from recollect.wire import record_json

_ENTITIES, _NEIGHBOURS, _MENTIONS = 60, 24, 20
#: The graph: width, height, and the radius of the ellipse on which the neighbours are.
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 800, 480, 290, 190


def entities(visit: Visit) -> dict[str, Any]:
    """Return the entities that most records mention."""
    kind = visit.text("type") or None
    found = visit.memory.entities(kind, visit.number("limit", _ENTITIES, 1000))
    return {"entities": [each.to_json() for each in found], "type": kind}


def entity(visit: Visit) -> dict[str, Any]:
    """Return one entity, its neighbours with their places in a drawing, and the records that mention it last.

    Raises:
        UnknownRecordError: No record mentions it.
    """
    name = visit.text("id")
    found = visit.memory.entity(name, _MENTIONS) if name else None
    if found is None:
        raise UnknownRecordError(name, visit.namespace)
    graph = visit.memory.neighbours(name, 1, _NEIGHBOURS).to_json()
    ids = [each.id for each in reversed(found.timeline)]
    mentions = [record_json(each) for each in visit.memory.get_all(ids) if each is not None]
    facts = visit.memory.find(f.entity(found.entity.id), _MENTIONS)
    return {
        **found.to_json(),
        "graph": _drawn(graph, found.entity.id),
        "mentions": mentions,
        "facts": [record_json(each) for each in facts],
    }


def _drawn(graph: dict[str, Any], centre: str) -> dict[str, Any]:
    """Return a graph with places: one entity in the middle, the others around it."""
    others = [each for each in graph["nodes"] if each["id"] != centre]
    places = {centre: (_WIDTH // 2, _HEIGHT // 2)}
    for number, each in enumerate(others):
        turn = 2 * math.pi * number / len(others) - math.pi / 2
        x, y = _WIDTH / 2 + _ACROSS * math.cos(turn), _HEIGHT / 2 + _DOWN * math.sin(turn)
        places[each["id"]] = (round(x), round(y))
    nodes = [{**each, "x": places[each["id"]][0], "y": places[each["id"]][1]} for each in graph["nodes"]]
    names = {each["id"]: each["name"] for each in nodes}
    edges = []
    for each in graph["edges"]:
        ends = (each["source"], each["target"])
        if centre in ends:
            start, end = (places[end] for end in ends)
            edges.append({**each, "names": [names[end] for end in ends], "from": start, "to": end})
    return {"width": _WIDTH, "height": _HEIGHT, "nodes": nodes, "edges": edges}
