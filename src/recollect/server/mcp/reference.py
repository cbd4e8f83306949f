"""The tools of the reference memory server, by their names: a knowledge graph of entities, observations and relations.

Names, titles, schemas, annotations, results and error texts are those that its clients expect. Answers that exceed the
budget are shortened, and a second text says what was left out. The entities of a graph are records, so `recall` finds
them, and their former versions are in the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from recollect.arguments.tools import Schema, array, boolean, mapping, result, string
from recollect.facets.entities.graph import Entity, Graph, Relation, one_form
from recollect.filters.tree import ValidAt
from recollect.operations import Now
from recollect.server.mcp.budget import tokens_of
from recollect.server.mcp.tools import McpTool, ToolCall, ToolError, ToolResult, indented

#: The address of the resource with the whole graph.
RESOURCE = "memory://knowledge-graph"
#: The share of the budget that is for entities, if entities and relations exceed it together.
_FOR_ENTITIES = 0.75

_NAMES = ("name", "entityType", "observations")
_ENDS = ("from", "to", "relationType")


def _entity_schema(*, closed: bool) -> Schema:
    properties = {
        "name": string("Unique name of the entity"),
        "entityType": string('Its type, such as "person" or "project"'),
        "observations": array(string(), "Facts about the entity, one in each text"),
    }
    return mapping(properties, required=_NAMES, closed=closed)


def _relation_schema(*, closed: bool) -> Schema:
    properties = {
        "from": string("Name of the entity where the relation starts"),
        "to": string("Name of the entity where it ends"),
        "relationType": string('The relation in active voice, such as "works_at"'),
    }
    return mapping(properties, required=_ENDS, closed=closed)


_ENTITIES = array(_entity_schema(closed=True))
_RELATIONS = array(_relation_schema(closed=True))
_GRAPH = result(entities=_ENTITIES, relations=_RELATIONS)
_DONE = result(success=boolean(), message=string())
_ADDED = result(entityName=string(), addedObservations=array(string()))


def _create_entities(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    wanted = [
        Entity(one_form(each["name"]), each["entityType"], tuple(each["observations"]))
        for each in arguments["entities"]
    ]
    for each in wanted:
        _check_observations(each.name, each.observations)
    with call.commit() as batch:
        writer = call.graph.writer(batch)
        created = list(map(entity_json, writer.create_entities(wanted)))
    return ToolResult({"entities": created}, indented(created))


def _create_relations(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    wanted = _relations(arguments["relations"])
    with call.commit() as batch:
        writer = call.graph.writer(batch)
        created = list(map(relation_json, writer.create_relations(wanted)))
    return ToolResult({"relations": created}, indented(created))


def _add_observations(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    results = []
    for each in arguments["observations"]:
        _check_observations(each["entityName"], each["contents"])
    with call.commit() as batch:
        writer = call.graph.writer(batch)
        for each in arguments["observations"]:
            name = one_form(each["entityName"])
            added = writer.add_observations(name, each["contents"])
            if added is None:
                raise ToolError(f"Entity with name {name} not found")
            results.append({"entityName": name, "addedObservations": added})
    return ToolResult({"results": results}, indented(results))


def _delete_entities(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    with call.commit() as batch:
        writer = call.graph.writer(batch)
        writer.delete_entities(map(one_form, arguments["entityNames"]))
    return _done("Entities deleted successfully")


def _delete_observations(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    with call.commit() as batch:
        writer = call.graph.writer(batch)
        for each in arguments["deletions"]:
            writer.delete_observations(one_form(each["entityName"]), each["observations"])
    return _done("Observations deleted successfully")


def _delete_relations(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    with call.commit() as batch:
        writer = call.graph.writer(batch)
        writer.delete_relations(_relations(arguments["relations"]))
    return _done("Relations deleted successfully")


def _read_graph(call: ToolCall, _arguments: dict[str, Any]) -> ToolResult:
    with call.graph.reading() as graph:
        return shown(_valid(call, graph, graph.entities()), graph.relations(), call.access.graph_tokens)


def _search_nodes(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    with call.graph.reading() as graph:
        return _with_relations(call, graph, graph.search(arguments["query"]))


def _open_nodes(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    names = set(map(one_form, arguments["names"]))
    with call.graph.reading() as graph:
        return _with_relations(call, graph, [entity for entity in graph.entities() if entity.name in names])


def _with_relations(call: ToolCall, graph: Graph, entities: list[Entity]) -> ToolResult:
    """Return entities with the relations that start or end at one of them."""
    relations = graph.relations(entity.name for entity in entities)
    return shown(_valid(call, graph, entities), relations, call.access.graph_tokens)


def _valid(call: ToolCall, graph: Graph, entities: list[Entity]) -> list[Entity]:
    """Return entities without the observations that are not valid, or that another observation replaces.

    Cost:
        O(observations): no index is needed.
    """
    now = call.memory.execute(Now())
    records = {entity.name: graph.entity_records(entity.name) for entity in entities}
    every = [each for some in records.values() for each in some]
    replaced = {
        each for record in every if (record.valid_from or record.time or now) <= now for each in record.supersedes
    }
    ended = {record.id for record in every if not ValidAt(now).matches(record)} | replaced
    if not ended:
        return entities
    out = []
    for entity in entities:
        texts = {record.content for record in records[entity.name] if record.id not in ended}
        out.append(entity._replace(observations=tuple(text for text in entity.observations if text in texts)))
    return out


def _done(message: str) -> ToolResult:
    return ToolResult({"success": True, "message": message}, message)


def _check_observations(name: str, texts: Iterable[str]) -> None:
    """Refuse blank observations.

    Raises:
        ToolError: A text is blank.
    """
    if any(not text.strip() for text in texts):
        raise ToolError(f"An observation of {name!r} is blank: leave it out; nothing was changed")


def _relations(values: list[dict[str, Any]]) -> list[Relation]:
    return [Relation(one_form(each["from"]), one_form(each["to"]), each["relationType"]) for each in values]


def entity_json(entity: Entity) -> dict[str, Any]:
    """Return an entity in the form of the reference server."""
    return {"name": entity.name, "entityType": entity.type, "observations": list(entity.observations)}


def relation_json(relation: Relation) -> dict[str, Any]:
    """Return a relation in the form of the reference server."""
    return {"from": relation.source, "to": relation.target, "relationType": relation.type}


class _Shown(NamedTuple):
    values: list[dict[str, Any]]
    observations: int


def shown(entities: list[Entity], relations: list[Relation], max_tokens: int) -> ToolResult:
    """Return a graph, or what a budget has room for and a text about the rest."""
    if _least_size(entities, relations, max_tokens) <= max_tokens:
        whole = {"entities": list(map(entity_json, entities)), "relations": list(map(relation_json, relations))}
        text = indented(whole)
        if tokens_of(text) <= max_tokens:
            return ToolResult(whole, text)
    of_relations = 0
    for each in relations:
        of_relations += _size(relation_json(each))
        if of_relations > max_tokens:
            break
    fitting = _fitting(entities, max(max_tokens - of_relations, int(max_tokens * _FOR_ENTITIES)))
    names = {each["name"] for each in fitting.values}
    rest = max_tokens - tokens_of(indented({"entities": fitting.values, "relations": []}))
    part = {"entities": fitting.values, "relations": []}
    for each in relations:
        if each.source in names or each.target in names:
            rest -= _size(relation_json(each))
            if rest < 0:
                break
            part["relations"].append(relation_json(each))
    note = (
        f"Incomplete: this shows {len(fitting.values)} of {len(entities)} entities, {fitting.observations} of "
        f"{sum(len(each.observations) for each in entities)} observations and {len(part['relations'])} of "
        f"{len(relations)} relations, because the answer is limited to {max_tokens} tokens. "
        "Call search_nodes with a narrower query, or open_nodes with fewer names; "
        "the option --graph-tokens of the server raises the limit."
    )
    return ToolResult(part, indented(part), (note,))


def _least_size(entities: list[Entity], relations: list[Relation], enough: int) -> int:
    """Return a lower bound of the tokens of a graph as JSON; it is computed until it exceeds `enough`."""
    size = 0
    for each in chain(entities, relations):
        texts = (each.name, each.type, *each.observations) if isinstance(each, Entity) else each
        size += sum(map(len, texts))
        if size > 4 * enough:
            break
    return size // 4


def _fitting(entities: list[Entity], max_tokens: int) -> _Shown:
    """Return the first entities that fit. Of one that does not, return the first observations, in half of the room."""
    values: list[dict[str, Any]] = []
    observations = 0
    rest = max_tokens
    for entity in entities:
        size = _size(entity_json(entity))
        if size > rest:
            entity = _beginning(entity, rest // 2)
            size = _size(entity_json(entity))
            if size > rest:
                break
        values.append(entity_json(entity))
        observations += len(entity.observations)
        rest -= size
    return _Shown(values, observations)


def _beginning(entity: Entity, max_tokens: int) -> Entity:
    """Return an entity with the first observations that fit."""
    rest = max_tokens - _size(entity_json(entity._replace(observations=())))
    part: list[str] = []
    for text in entity.observations:
        rest -= _size(text)
        if rest < 0:
            break
        part.append(text)
    return entity._replace(observations=tuple(part))


def _size(value: object) -> int:
    """Return an upper bound of the tokens that a value adds to an indented list within the graph."""
    lines = json.dumps(value, ensure_ascii=False, indent=2)
    # Each line is indented by up to eight more spaces, and ends with a comma.
    return tokens_of(lines) + tokens_of(" " * 9) * (lines.count("\n") + 1)


_tool = partial(McpTool, graph=True, closed=False)

TOOLS = (
    _tool(
        name="create_entities",
        title="Create Entities",
        description=(
            "Create entities of the knowledge graph, each with a name, a type and observations. An entity whose name "
            "exists already is left as it is: use add_observations for it. Returns the entities that are new."
        ),
        inputs={"entities": array(_entity_schema(closed=False))},
        required=("entities",),
        outputs=result(entities=_ENTITIES),
        run=_create_entities,
        idempotent=False,
    ),
    _tool(
        name="create_relations",
        title="Create Relations",
        description=(
            "Create relations between entities of the knowledge graph, in active voice. A relation that exists already "
            "is left as it is. Returns the relations that are new."
        ),
        inputs={"relations": array(_relation_schema(closed=False))},
        required=("relations",),
        outputs=result(relations=_RELATIONS),
        run=_create_relations,
        idempotent=False,
    ),
    _tool(
        name="add_observations",
        title="Add Observations",
        description=(
            "Add observations to entities that exist. Returns those that are new. If one of the entities does not "
            "exist, nothing is added: create it with create_entities."
        ),
        inputs={
            "observations": array(
                mapping(
                    {
                        "entityName": string("Name of the entity"),
                        "contents": array(string(), "Facts about the entity, one in each text"),
                    },
                    required=("entityName", "contents"),
                )
            )
        },
        required=("observations",),
        outputs=result(results=array(_ADDED)),
        run=_add_observations,
        idempotent=False,
    ),
    _tool(
        name="delete_entities",
        title="Delete Entities",
        description=(
            "Delete entities with their observations, and the relations that start or end at them. "
            "Names that do not exist are ignored."
        ),
        inputs={"entityNames": array(string(), "Names of the entities")},
        required=("entityNames",),
        outputs=_DONE,
        run=_delete_entities,
        destructive=True,
    ),
    _tool(
        name="delete_observations",
        title="Delete Observations",
        description="Delete observations of entities, by their exact texts. What does not exist is ignored.",
        inputs={
            "deletions": array(
                mapping(
                    {
                        "entityName": string("Name of the entity"),
                        "observations": array(string(), "Texts of the observations to delete"),
                    },
                    required=("entityName", "observations"),
                )
            )
        },
        required=("deletions",),
        outputs=_DONE,
        run=_delete_observations,
        destructive=True,
    ),
    _tool(
        name="delete_relations",
        title="Delete Relations",
        description="Delete relations. What does not exist is ignored.",
        inputs={"relations": array(_relation_schema(closed=False), "The relations to delete")},
        required=("relations",),
        outputs=_DONE,
        run=_delete_relations,
        destructive=True,
    ),
    _tool(
        name="read_graph",
        title="Read Graph",
        description=(
            "Read the whole knowledge graph. A large graph is shortened, and a second text says so: "
            "prefer search_nodes."
        ),
        inputs={},
        outputs=_GRAPH,
        run=_read_graph,
        reads=True,
    ),
    _tool(
        name="search_nodes",
        title="Search Nodes",
        description=(
            "Find the entities whose name, type or an observation contains a text, ignoring case, with their "
            "relations. The text must occur as it is: search for single words, not for a question."
        ),
        inputs={"query": string("The text to find")},
        required=("query",),
        outputs=_GRAPH,
        run=_search_nodes,
        reads=True,
    ),
    _tool(
        name="open_nodes",
        title="Open Nodes",
        description="Read entities by their exact names, with the relations that start or end at them.",
        inputs={"names": array(string(), "Names of the entities")},
        required=("names",),
        outputs=_GRAPH,
        run=_open_nodes,
        reads=True,
    ),
)
