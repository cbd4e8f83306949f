"""Questions about entities, answered from an index of mentions as a scope sees it at a time."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from recollect.engine.facets import Execution
from recollect.engine.reader import Reader
from recollect.engine.scope import Scope
from recollect.facets.entities.graph import SAME_AS, entity_id
from recollect.facets.entities.mentions import MentionIndex, MentionsOf, Noted, mentions_at
from recollect.facets.entities.operations import (
    Edge,
    Entities,
    EntityGraph,
    EntityOf,
    EntitySummary,
    EntityView,
    Mentioning,
    Neighbours,
    Paths,
)
from recollect.operations import SCOPED
from recollect.records.codec import datetime_of

#: Maximum number of paths that are returned, and of steps that are tried to find them.
MOST_PATHS, _MOST_STEPS = 100, 1_000_000
_NO_TIME = 2**63
NO_OWNERS: Mapping[str, str] = MappingProxyType({})


class Mentions:
    """An index of mentions as a scope sees it.

    Args:
        scope: The scope of the caller.
        now: Records that expire at or before this time (microseconds since 1970) are ignored.
        owners: Only records of these owners, by field, and those without one are seen.
    """

    def __init__(self, index: MentionIndex, scope: Scope, now: int, owners: Mapping[str, str] = NO_OWNERS) -> None:
        self._index = index
        self._scope = scope
        self._now = now
        self._owners = owners

    def entities(self, operation: Entities) -> list[EntitySummary]:
        """Return the entities, those that most records mention first."""
        owners: dict[str, str] = {name: value for name in SCOPED if (value := getattr(operation, name)) is not None}
        if owners:
            of_all = Entities(type=operation.type, limit=operation.limit)
            return Mentions(self._index, self._scope, self._now, owners).entities(of_all)
        found = [self._summary(id_) for id_ in self._all()]
        kept = [each for each in found if each.records and operation.type in (None, each.type)]
        return sorted(kept, key=lambda each: (-each.records, each.id))[: operation.limit]

    def entity(self, operation: EntityOf) -> EntityView | None:
        """Return what is known about an entity; None if no record mentions it."""
        id_ = self._canonical_of(operation.entity)
        records = self._records(id_)
        if not records:
            return None
        ordered = sorted(records, key=lambda each: (_time(each[1]), each[0]))
        timeline = tuple(
            Mentioning(self._scope.shown_id(record), None if noted.micros is None else datetime_of(noted.micros))
            for record, noted in ordered[-operation.limit :]
        )
        together = Counter(other for _, noted in records for other in self._ids(noted) if other != id_)
        ranked = sorted(together.items(), key=lambda each: (-each[1], each[0]))[: operation.limit]
        return EntityView(self._summary(id_), timeline, tuple(ranked), tuple(self._relations(id_)))

    def neighbours(self, operation: Neighbours) -> EntityGraph:
        """Return the entities within some steps of one, nearest first, and what connects them."""
        start = self._canonical_of(operation.entity)
        if not self._records(start):
            return EntityGraph((), ())
        depth = {start: 0}
        queue = deque([start])
        while queue and len(depth) <= operation.limit:
            at = queue.popleft()
            if depth[at] == operation.depth:
                break
            for other in self._near(at):
                if other not in depth and len(depth) <= operation.limit:
                    depth[other] = depth[at] + 1
                    queue.append(other)
        edges = {edge for id_ in depth for edge in self._edges(id_) if edge.source in depth and edge.target in depth}
        return EntityGraph(tuple(map(self._summary, depth)), tuple(sorted(edges)))

    def paths(self, operation: Paths) -> list[list[str]]:
        """Return the paths between two entities of at most some steps, shortest first."""
        source, target = self._canonical_of(operation.source), self._canonical_of(operation.target)
        if not self._records(source) or not self._records(target):
            return []
        found: list[list[str]] = [[source]] if source == target else []
        paths = deque([[source]])
        steps = 0
        while paths and len(found) < operation.limit and source != target:
            path = paths.popleft()
            for other in self._near(path[-1]):
                steps += 1
                if other == target:
                    found.append([*path, other])
                elif len(path) < operation.longest and other not in path and steps < _MOST_STEPS:
                    paths.append([*path, other])
        return found[: operation.limit]

    # Parts

    @cached_property
    def _canonical(self) -> dict[str, str]:
        """The entity that each alias stands for."""
        target = {
            relation.source: relation.target
            for record, relation in sorted(self._index.same.items())
            if self._sees(self._index.records[record]) and relation.source != relation.target
        }
        out = {}
        for alias in target:
            seen, at = {alias}, alias
            while at in target and target[at] not in seen:
                at = target[at]
                seen.add(at)
            # Of a circle, in which each stands for another, the first by id stands for all.
            out[alias] = min(seen) if at in target else at
        return out

    @cached_property
    def _aliases(self) -> dict[str, list[str]]:
        out: dict[str, list[str]] = {}
        for alias, id_ in sorted(self._canonical.items()):
            if alias != id_:
                out.setdefault(id_, []).append(alias)
        return out

    def _canonical_of(self, name: str) -> str:
        """Return the id of an entity from its id or its name."""
        known = name if name in self._index.of_entity else entity_id(name)
        return self._canonical.get(known, known)

    def _all(self) -> Iterator[str]:
        yield from dict.fromkeys(self._canonical.get(each, each) for each in self._index.of_entity)

    def _sees(self, noted: Noted) -> bool:
        in_time = noted.expires is None or noted.expires > self._now
        in_scope = all(noted.owner[name] == value for name, value in self._scope.fixed)
        return in_time and in_scope and all(noted.owner[name] in (value, None) for name, value in self._owners.items())

    def _records(self, id_: str) -> list[tuple[str, Noted]]:
        """Return the records that mention an entity or an alias of it, except those that only say what it is called."""
        ids = dict.fromkeys(
            record for each in (id_, *self._aliases.get(id_, ())) for record in self._index.of_entity.get(each, ())
        )
        found = ((record, self._index.records[record]) for record in ids)
        return [(record, noted) for record, noted in found if self._sees(noted) and not _names_an_alias(noted)]

    def _ids(self, noted: Noted) -> list[str]:
        return list(dict.fromkeys(self._canonical.get(each.id, each.id) for each in noted.entities))

    def _summary(self, id_: str) -> EntitySummary:
        records = self._records(id_)
        names: Counter[str] = Counter()
        types: Counter[str] = Counter()
        for _, noted in records:
            for each in noted.entities:
                if self._canonical.get(each.id, each.id) == id_:
                    types[each.type] += each.type != "name"
                    names[each.name] += each.id == id_  # an alias is not its name
        name = min(names, key=lambda each: (-names[each], each), default=id_)
        kind = min((each for each in types if types[each]), key=lambda each: (-types[each], each), default="name")
        return EntitySummary(id_, name, kind, len(records), tuple(self._aliases.get(id_, ())))

    def _relations(self, id_: str) -> list[Edge]:
        counts: Counter[tuple[str, str, str]] = Counter()
        for _, noted in self._records(id_):
            if noted.relation is not None:
                source, target, kind = noted.relation
                counts[self._canonical.get(source, source), self._canonical.get(target, target), kind] += 1
        return [Edge(*each, count) for each, count in sorted(counts.items()) if id_ in each[:2]]

    def _edges(self, id_: str) -> list[Edge]:
        """Return what connects an entity with others: its relations, and the records that mention both."""
        together: Counter[str] = Counter()
        for _, noted in self._records(id_):
            if noted.relation is None:
                together.update(other for other in self._ids(noted) if other != id_)
        pairs = [Edge(min(id_, other), max(id_, other), "", count) for other, count in together.items()]
        return [*self._relations(id_), *pairs]

    def _near(self, id_: str) -> list[str]:
        """Return the entities that are connected with one, the best connected first."""
        weights: Counter[str] = Counter()
        for edge in self._edges(id_):
            for other in (edge.source, edge.target):
                if other != id_:
                    weights[other] += edge.records
        return sorted(weights, key=lambda each: (-weights[each], each))


def _names_an_alias(noted: Noted) -> bool:
    return noted.relation is not None and noted.relation.type == SAME_AS


def _time(noted: Noted) -> int:
    return _NO_TIME if noted.micros is None else noted.micros


def _on_mentions(query: Callable[[Mentions, Any], Any]) -> Callable[[Reader, Any], Any]:
    """Return what executes an operation on the mentions that a scope sees."""

    def read(reader: Reader, operation: Any) -> Any:
        return reader.followed(
            "mentions",
            MentionsOf(reader.branch),
            lambda index, now: query(Mentions(index, reader.scope, now), operation),
            own=MentionsOf(reader.branch, reader.scope.filter),
        )

    return read


EXECUTION = Execution(
    {
        Entities: _on_mentions(Mentions.entities),
        EntityOf: _on_mentions(Mentions.entity),
        Neighbours: _on_mentions(Mentions.neighbours),
        Paths: _on_mentions(Mentions.paths),
    },
    mentions_at,
)
