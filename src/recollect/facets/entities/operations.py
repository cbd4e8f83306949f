"""The operations that ask about entities, the people, places and things that records mention."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.arguments.checks import check_count, check_text
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
