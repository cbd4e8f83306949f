"""The operations that ask about entities, the people, places and things that records mention."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from recollect.arguments.checks import check_count, check_text
from recollect.arguments.json_form import JsonForm
from recollect.common.reprs import ShownTable, line, shows_itself, table
from recollect.operations.base import READ, SCOPED, Operation


@dataclass(frozen=True, kw_only=True)
class Entities(Operation, name="entities", right=READ, result="list[EntitySummary]"):
    """List the entities that records mention. The result is a list of `EntitySummary`.

    Attributes:
        type: Only entities of this type.
        limit: Maximum number of entities.
        user: Only what records of this user and those without a user mention; None: of all users.
        agent: The same for an agent.
        conversation: The same for a conversation.
    """

    type: str | None = None
    limit: int = 50
    user: str | None = None
    agent: str | None = None
    conversation: str | None = None

    def __post_init__(self) -> None:
        for name in ("type", *SCOPED):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        check_count("limit", self.limit)


@dataclass(frozen=True, kw_only=True)
class EntityOf(Operation, name="entity", right=READ, result="EntityView | None"):
    """Read what is known about an entity. The result is an `EntityView`, or None.

    Attributes:
        entity: Its id, name or an alias.
        limit: Maximum number of records in the timeline, and of other entities.
    """

    entity: str
    limit: int = 20

    def __post_init__(self) -> None:
        check_text("entity", self.entity)
        check_count("limit", self.limit)


@dataclass(frozen=True, kw_only=True)
class Neighbours(Operation, name="neighbours", right=READ, result="EntityGraph"):
    """Read the entities around one. The result is an `EntityGraph`.

    Attributes:
        entity: Its id, name or an alias.
        depth: Maximum number of steps from it.
        limit: Maximum number of other entities.
    """

    entity: str
    depth: int = 1
    limit: int = 50

    def __post_init__(self) -> None:
        check_text("entity", self.entity)
        check_count("depth", self.depth)
        check_count("limit", self.limit)


@dataclass(frozen=True, kw_only=True)
class Paths(Operation, name="paths", right=READ, result="list[list[str]]"):
    """Find the paths between two entities. The result is a list of lists of ids.

    Attributes:
        source: The id, name or an alias of the first entity.
        target: That of the last one.
        longest: Maximum number of steps of a path.
        limit: Maximum number of paths.
    """

    source: str
    target: str
    longest: int = 3
    limit: int = 10

    def __post_init__(self) -> None:
        check_text("source", self.source)
        check_text("target", self.target)
        check_count("longest", self.longest)
        check_count("limit", self.limit)


# Results of calls on entities: summaries, the view of one entity, and graphs.


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class EntitySummary(JsonForm, what="an entity"):
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


class Mentioning(NamedTuple):
    """A record that mentions an entity.

    Attributes:
        id: The id of the record.
        time: Its time; None if it has none.
    """

    id: str
    time: datetime | None


class Edge(NamedTuple):
    """A connection of two entities.

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
class EntityView(JsonForm, what="the view of an entity"):
    """The knowledge of a memory about an entity.

    Attributes:
        timeline: The records that mention it, oldest first, those without a time last: the newest ones, if there are
            more than the limit.
        together: The entities that occur in the same records, and in how many, most first.
    """

    entity: EntitySummary
    timeline: tuple[Mentioning, ...]
    together: tuple[tuple[str, int], ...]
    relations: tuple[Edge, ...]

    def _table(self) -> ShownTable:
        rows = [(each, str(count)) for each, count in self.together]
        title = f"{line(self.entity.name)} ({self.entity.type})"
        return table(title, ("together with", "records"), rows, lambda row: row)


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class EntityGraph(JsonForm, what="a graph of entities"):
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
