"""The knowledge graph of a memory, cached by a server and kept up to date from the log, and the changes to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from recollect import Batch, Memory, Outcome
from recollect import filters as f
from recollect.facets.entities.graph import (
    GRAPH_KINDS,
    OBSERVATION,
    Entity,
    Graph,
    Relation,
    node,
    observation,
    relation,
)
from recollect.operations import Now, Remember
from recollect.records.record import Record

#: Commits that are read from the log at a time.
_PAGE = 1000
#: If more records changed than this, and than the graph has, it is read again instead.
_MANY = 1000
#: How often the log is read again, because there were commits meanwhile.
_MOST_ROUNDS = 100
#: Entities and observations are later than those before them, except than what is dated further in the future.
_FUTURE = timedelta(minutes=1)


class SharedGraph:
    """The graph of a memory. Thread-safe.

    Args:
        reading: Returns the memory.
    """

    def __init__(self, reading: Callable[[], Memory]) -> None:
        self._reading = reading
        self._lock = threading.RLock()
        self._memory: Memory | None = None
        self._graph = Graph()
        self._cursor: int | str = 0
        self._changed = False

    def refresh(self) -> Graph:
        """Return the graph as of the newest commit.

        Cost:
            The first call reads the graph, later ones the records that changed.
        """
        with self._lock:
            memory = self._reading()
            if memory is not self._memory:
                self._load(memory)
            self._catch_up(memory)
            self._changed = self._graph.expire(memory.execute(Now())) or self._changed
            return self._graph

    def take_changed(self) -> bool:
        """Return whether the graph has changed since the last call."""
        with self._lock:
            self.refresh()
            changed, self._changed = self._changed, False
            return changed

    @contextmanager
    def reading(self) -> Iterator[Graph]:
        """Yield the graph as of the newest commit. It does not change within the block."""
        with self._lock:
            yield self.refresh()

    def writer(self, batch: Batch) -> GraphWriter:
        """Return a writer of changes that are part of a batch. The log has them once the batch is committed."""
        with self._lock:
            graph, memory = self.refresh(), self._reading()
            newest = memory.changes(limit=1, newest_first=True)
            # Times of commits rise even if the clock does not.
            now = max(memory.execute(Now()), newest[0].time) if newest else memory.execute(Now())
            return GraphWriter(graph, self._lock, batch, now)

    def _load(self, memory: Memory) -> None:
        newest = memory.changes(limit=1, newest_first=True)
        # What is committed between the two reads is read again, which changes nothing.
        self._cursor = newest[0].cursor if newest else 0
        before = len(self._graph)
        self._graph = Graph(memory.find(f.kind(*GRAPH_KINDS), order="oldest"))
        self._memory = memory
        self._changed = self._changed or bool(before or len(self._graph))

    def _catch_up(self, memory: Memory) -> None:
        # Records are read after the log, so they may be newer than it: the graph is that of one moment if nothing
        # was committed meanwhile.
        for _ in range(_MOST_ROUNDS):
            ids: set[str] = set()
            while commits := memory.changes(self._cursor, limit=_PAGE):
                ids.update(change.id for commit in commits for change in commit.changes)
                if len(ids) > max(_MANY, len(self._graph)):
                    self._load(memory)
                    ids.clear()
                else:
                    self._cursor = commits[-1].cursor
            if not ids:
                return
            found = {record.id: record for record in memory.find(f.id(*ids) & f.kind(*GRAPH_KINDS))}
            for each in ids:
                record = found.get(each)
                changed = self._graph.remove(each) if record is None else self._graph.put(record)
                self._changed = self._changed or changed


class GraphWriter:
    """Changes to the graph, as part of a batch. It sees its own changes, and other readers of the graph do not.

    Args:
        graph: The graph, as of the beginning of the batch, which holds the write lock: no other writer changes it.
        lock: The lock of the graph.
        now: The time of the memory's clock.
    """

    def __init__(self, graph: Graph, lock: threading.RLock, batch: Batch, now: datetime) -> None:
        self._committed = graph
        self._lock = lock
        self._batch = batch
        self._graph = Graph()  # copies of the entities and relations that are needed, with the changes
        self._copied: set[str | Relation] = set()
        # Entities and observations are ordered by their times, so each is later than all before it.
        newest = graph.newest(now + _FUTURE)
        self._time = now if newest is None else max(now, newest + timedelta.resolution)

    def create_entities(self, entities: Iterable[Entity]) -> list[Entity]:
        """Create the entities whose name is new, and return them."""
        created = []
        for each in entities:
            if self._entity(each.name) is None:
                self._remember(node(each.name, each.type))
                self._add(each.name, each.type, each.observations)
                created.append(self._existing(each.name))
        return created

    def create_relations(self, relations: Iterable[Relation]) -> list[Relation]:
        """Create the relations that are new, and return them."""
        created = []
        for each in relations:
            self._copy(each)
            if not self._graph.has_relation(each):
                self._remember(relation(each))
                created.append(each)
        return created

    def add_observations(self, name: str, texts: Sequence[str]) -> list[str] | None:
        """Add the observations that an entity lacks, and return them; None if there is no entity of this name."""
        entity = self._entity(name)
        return None if entity is None else self._add(name, entity.type, texts)

    def delete_entities(self, names: Iterable[str]) -> None:
        """Forget entities, their observations, and the relations that start or end at them."""
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            self._copy(name)
            self._forget(self._graph.entity_records(name))
        with self._lock:
            ending = self._committed.relations(wanted)
        for each in ending:
            self._copy(each)
        self.delete_relations(self._graph.relations(wanted))

    def delete_observations(self, name: str, texts: Iterable[str]) -> None:
        """Forget observations of an entity."""
        removed = set(texts)
        if removed and (entity := self._entity(name)) is not None:
            records = self._graph.entity_records(name)
            wanted = [each for each in records if each.kind == OBSERVATION and each.content in removed]
            if len(wanted) == len(records):
                self._remember(node(name, entity.type))  # only its facts stated that there is this entity
            self._forget(wanted)

    def delete_relations(self, relations: Iterable[Relation]) -> None:
        """Forget relations."""
        for each in relations:
            self._copy(each)
            self._forget(self._graph.relation_records(each))

    def _entity(self, name: str) -> Entity | None:
        self._copy(name)
        return self._graph.entity(name)

    def _existing(self, name: str) -> Entity:
        entity = self._entity(name)
        assert entity is not None
        return entity

    def _copy(self, key: str | Relation) -> None:
        """Copy the records of an entity or relation, unless that was done before."""
        if key in self._copied:
            return
        self._copied.add(key)
        with self._lock:
            find = self._committed.entity_records if isinstance(key, str) else self._committed.relation_records
            records = find(key)  # type: ignore[arg-type]
        for record in records:
            self._graph.put(record)

    def _add(self, name: str, entity_type: str, texts: Iterable[str]) -> list[str]:
        known = set(self._existing(name).observations)
        added = [text for text in dict.fromkeys(texts) if text not in known]
        for text in added:
            self._remember(observation(name, entity_type, text))
        return added

    def _remember(self, fields: dict[str, Any]) -> None:
        content, record_id = fields.pop("content"), fields.pop("id")
        operation = Remember(content=content, id=record_id, fields={**fields, "time": self._time})
        outcome: Outcome = self._batch.execute(operation).checked()
        assert outcome.record is not None
        self._graph.put(outcome.record)
        self._time += timedelta.resolution

    def _forget(self, records: Iterable[Record]) -> None:
        for each in records:
            self._batch.forget(each.id)
            self._graph.remove(each.id)
