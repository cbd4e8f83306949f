"""Results of calls on entities: summaries, the view of one entity, and graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from recollect.arguments.checks import json_form
from recollect.reprs import ShownTable, line, shows_itself, table


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class EntitySummary:
    """An entity.

    Attributes:
        id: Its id: its name in lower case, with "_" for blanks.
        name: The name that most records use.
        type: Its type: that which most records state, such as "person"; "name" if no rule decides.
        records: The number of records that mention it.
        aliases: Its other ids, from relations "same as".
    """

    id: str
    name: str
    type: str
    records: int
    aliases: tuple[str, ...] = ()

    def _table(self) -> ShownTable:
        return ShownTable(f"Entity {line(self.name)} ({self.type}) in {self.records} records", ())

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "aliases": list(self.aliases)}

    @classmethod
    @json_form("an entity")
    def from_json(cls, data: Mapping[str, Any]) -> EntitySummary:
        """Rebuild an entity from its JSON form."""
        return cls(data["id"], data["name"], data["type"], data["records"], tuple(data["aliases"]))


class Mentioning(NamedTuple):
    """A record that mentions an entity.

    Attributes:
        id: The id of the record.
        time: Its time; None if it has none.
    """

    id: str
    time: datetime | None


class Edge(NamedTuple):
    """What connects two entities.

    Attributes:
        source: The id of the entity where a relation starts; without a type, the one that comes first by id.
        target: The id of the other entity.
        type: The type of the relation; "" if they only occur in the same records.
        records: The number of records that say so.
    """

    source: str
    target: str
    type: str
    records: int


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class EntityView:
    """What a memory knows about an entity.

    Attributes:
        entity: The entity.
        timeline: The records that mention it, oldest first, those without a time last: the newest ones, if there are
            more than the limit.
        together: The entities that occur in the same records, and in how many, most first.
        relations: Its relations.
    """

    entity: EntitySummary
    timeline: tuple[Mentioning, ...]
    together: tuple[tuple[str, int], ...]
    relations: tuple[Edge, ...]

    def _table(self) -> ShownTable:
        rows = [(each, str(count)) for each, count in self.together]
        title = f"{line(self.entity.name)} ({self.entity.type})"
        return table(title, ("together with", "records"), rows, lambda row: row)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "entity": self.entity.to_json(),
            "timeline": [{"id": each.id, "time": each.time and each.time.isoformat()} for each in self.timeline],
            "together": [list(each) for each in self.together],
            "relations": [each._asdict() for each in self.relations],
        }

    @classmethod
    @json_form("the view of an entity")
    def from_json(cls, data: Mapping[str, Any]) -> EntityView:
        """Rebuild the view from its JSON form."""
        return cls(
            EntitySummary.from_json(data["entity"]),
            tuple(
                Mentioning(each["id"], None if each["time"] is None else datetime.fromisoformat(each["time"]))
                for each in data["timeline"]
            ),
            tuple((name, count) for name, count in data["together"]),
            tuple(Edge(**each) for each in data["relations"]),
        )


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class EntityGraph:
    """Entities and what connects them.

    Attributes:
        nodes: The entities, nearest first.
        edges: What connects them.
    """

    nodes: tuple[EntitySummary, ...]
    edges: tuple[Edge, ...]

    def _table(self) -> ShownTable:
        def row(each: Edge) -> tuple[str, ...]:
            return line(each.source, 40), each.type or "together", line(each.target, 40), str(each.records)

        title = f"{len(self.nodes)} entities, {len(self.edges)} connections"
        return table(title, ("entity", "connection", "entity", "records"), self.edges, row)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which is also the form of an export."""
        return {"nodes": [each.to_json() for each in self.nodes], "edges": [each._asdict() for each in self.edges]}

    @classmethod
    @json_form("a graph of entities")
    def from_json(cls, data: Mapping[str, Any]) -> EntityGraph:
        """Rebuild a graph from its JSON form."""
        return cls(tuple(map(EntitySummary.from_json, data["nodes"])), tuple(Edge(**each) for each in data["edges"]))
