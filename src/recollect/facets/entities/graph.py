"""Knowledge graphs as records: entities with observations, and the relations between them.

An entity is a record of the kind "node", which states a name and a type. An observation is a fact about it, built by
`factories.entity` (kind "entity"), so facts that were recorded by other means are observations too. A relation is a
record of the kind "relation". Names are compared exactly, and each record has an id that is derived from what it
states, so stating it again changes nothing. `Graph` is the view of such records as a graph.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from recollect import filters as f
from recollect.errors import InvalidRecordError
from recollect.filters.tree import Filter
from recollect.records import factories
from recollect.records.record import EntityId, Record
from recollect.text.unicode import nfc

NODE, OBSERVATION, RELATION = "node", "entity", "relation"
#: The kinds of the records of a graph.
GRAPH_KINDS = (NODE, OBSERVATION, RELATION)
#: The type of a relation that says that two names are of one entity: its source is an alias of its target.
SAME_AS = "same as"
#: The key of the metadata of a fact with the ids of the other entities that it is about.
ALSO_ABOUT = "also_about"
_FIRST = datetime(2, 1, 1, tzinfo=UTC)
#: By what entities, observations and relations are ordered.
_Age = tuple[datetime, str]


class Entity(NamedTuple):
    """An entity with its observations, oldest first."""

    name: str
    type: str
    observations: tuple[str, ...]


class Relation(NamedTuple):
    """A directed relation between two names. There need not be entities of these names."""

    source: str
    target: str
    type: str


def node(name: str, entity_type: str) -> dict[str, Any]:
    """Build the record of an entity, as fields for `memory.remember`."""
    name = nfc(name)
    metadata = {"entity_id": entity_id(name), "entity_name": name, "entity_type": entity_type}
    return {
        "id": _id(NODE, name),
        "kind": NODE,
        "content": f"{name}: {entity_type}",
        "entity": entity_id(name),
        "metadata": metadata,
    }


def observation(name: str, entity_type: str, text: str) -> dict[str, Any]:
    """Build the record of an observation about an entity, as fields for `memory.remember`."""
    name = nfc(name)
    fields = factories.entity(text, name=name, entity=entity_id(name), entity_type=entity_type)
    return {"id": _id("observation", name, text), **fields}


def relation(value: Relation) -> dict[str, Any]:
    """Build the record of a relation, as fields for `memory.remember`. It is about the entity where it starts."""
    value = Relation(nfc(value.source), nfc(value.target), value.type)
    return {
        "id": _id(RELATION, *value),
        "kind": RELATION,
        "content": f"{value.source} {value.type} {value.target}",
        "entity": entity_id(value.source),
        "metadata": {"from": value.source, "to": value.target, "relation_type": value.type},
    }


def entity_id(name: str) -> str:
    """Return the id of the entity of this name: `EntityId.from_name`, or a digest if that is not a valid id."""
    wanted = EntityId.from_name(name)
    try:
        return Record(id="any", content="any", entity=wanted).entity or wanted
    except InvalidRecordError:
        return _id(NODE, name)


def _id(kind: str, *parts: str) -> str:
    # A lone surrogate is refused later, by the record.
    stated = json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return f"{kind}-{hashlib.sha256(stated).hexdigest()[:24]}"


class Graph:
    """The graph that a set of records describes, ordered by their times. Records that describe no part are ignored."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._newest: datetime | None = None  # the latest time of a record that was ever in it
        self._records: dict[str, Record] = {}
        self._of_entity: dict[str, dict[str, Record]] = {}  # name -> its nodes and observations, by id
        self._expiring: dict[str, datetime] = {}
        self._built: dict[str, tuple[_Age, Entity]] = {}  # name -> its entity, until its records change
        self._of_relation: dict[Relation, dict[str, Record]] = {}
        for record in records:
            self.put(record)

    def __len__(self) -> int:
        return len(self._records)

    def put(self, record: Record) -> bool:
        """Add a record, or replace the one with its id, and return whether this changes the graph."""
        if self._records.get(record.id) == record:
            return False
        removed = self.remove(record.id)
        if record.kind == RELATION:
            stated = relation_of(record)
            if stated is None:
                return removed
            self._of_relation.setdefault(stated, {})[record.id] = record
        elif record.kind in (NODE, OBSERVATION):
            name = _name_of(record)
            if name is None or not isinstance(record.content, str):
                return removed
            self._of_entity.setdefault(name, {})[record.id] = record
            self._built.pop(name, None)
        else:
            return removed
        self._records[record.id] = record
        if record.expires is not None:
            self._expiring[record.id] = record.expires
        if record.time is not None and (self._newest is None or record.time > self._newest):
            self._newest = record.time
        return True

    def remove(self, record_id: str) -> bool:
        """Remove the record with this id, and return whether it was in the graph."""
        record = self._records.pop(record_id, None)
        if record is None:
            return False
        self._expiring.pop(record_id, None)
        stated = relation_of(record) if record.kind == RELATION else None
        if stated is not None:
            _remove(self._of_relation, stated, record_id)
        else:
            name = _name_of(record)
            assert name is not None
            _remove(self._of_entity, name, record_id)
            self._built.pop(name, None)
        return True

    def newest(self, until: datetime) -> datetime | None:
        """Return the latest time of a record that is not later than `until`; None if there is no such record."""
        if self._newest is None or self._newest <= until:
            return self._newest
        times = (record.time for record in self._records.values())
        return max((time for time in times if time is not None and time <= until), default=None)

    def expire(self, now: datetime) -> bool:
        """Remove the records that have expired, and return whether there were any."""
        expired = [each for each, expires in self._expiring.items() if expires <= now]
        for record_id in expired:
            self.remove(record_id)
        return bool(expired)

    def entity(self, name: str) -> Entity | None:
        """Return the entity of this name, or None."""
        return self._aged(name)[1] if name in self._of_entity else None

    def entities(self) -> list[Entity]:
        """Return all entities, the oldest first."""
        return [entity for _, entity in sorted(map(self._aged, self._of_entity), key=lambda each: each[0])]

    def _aged(self, name: str) -> tuple[_Age, Entity]:
        """Return the entity of a name, and the age of its oldest record."""
        built = self._built.get(name)
        if built is None:
            ordered = sorted(self._of_entity[name].values(), key=_age)
            built = self._built[name] = (_age(ordered[0]), _entity(name, ordered))
        return built

    def relations(self, names: Iterable[str] | None = None) -> list[Relation]:
        """Return the relations that start or end at one of these names, or all, the oldest first."""
        wanted = None if names is None else set(names)
        found = [
            (min(map(_age, records.values())), stated)
            for stated, records in self._of_relation.items()
            if wanted is None or stated.source in wanted or stated.target in wanted
        ]
        return [stated for _, stated in sorted(found)]

    def has_relation(self, stated: Relation) -> bool:
        """Return whether there is this relation."""
        return stated in self._of_relation

    def entity_records(self, name: str) -> list[Record]:
        """Return the records of the entity of this name."""
        return list(self._of_entity.get(name, {}).values())

    def relation_records(self, stated: Relation) -> list[Record]:
        """Return the records that state a relation."""
        return list(self._of_relation.get(stated, {}).values())

    def search(self, query: str) -> list[Entity]:
        """Return the entities whose name, type or an observation contains a text, ignoring case, the oldest first."""
        wanted, in_names = query.lower(), nfc(query).lower()
        return [
            entity
            for entity in self.entities()
            if in_names in entity.name.lower() or any(wanted in text.lower() for text in _texts(entity))
        ]


def one_form(name: str) -> str:
    """Return a name in the Unicode form in which names are stored and compared: all forms of a name are one name."""
    return nfc(name)


def _texts(entity: Entity) -> Iterator[str]:
    yield entity.type
    yield from entity.observations


def _entity(name: str, ordered: list[Record]) -> Entity:
    types = [record.metadata.get("entity_type") for record in sorted(ordered, key=lambda each: each.kind != NODE)]
    stated = (each for each in types if isinstance(each, str) and each != factories.UNKNOWN_TYPE)
    texts = dict.fromkeys(str(record.content) for record in ordered if record.kind == OBSERVATION)
    return Entity(name, next(stated, factories.UNKNOWN_TYPE), tuple(texts))


def _name_of(record: Record) -> str | None:
    name = record.metadata.get("entity_name")
    return name if isinstance(name, str) else record.entity


def relation_of(record: Record) -> Relation | None:
    """Return the relation that a record states; None if it states none."""
    stated = [record.metadata.get(key) for key in ("from", "to", "relation_type")]
    return Relation(*stated) if all(isinstance(each, str) for each in stated) else None  # type: ignore[arg-type]


def _age(record: Record) -> _Age:
    return record.time or _FIRST, record.id


def _remove(groups: dict[Any, dict[str, Record]], key: Any, record_id: str) -> None:
    del groups[key][record_id]
    if not groups[key]:
        del groups[key]


def of_entity(*entities: str) -> Filter:
    """Match the facts about at least one of some entities, by their ids."""
    return f.any_of(f.entity(*entities), *(f.meta(ALSO_ABOUT, contains=each) for each in entities))
