"""Mentions: which entities each record of a branch is about, derived from the log like every other index.

A record mentions the entities that its text names (`text.entities`), the one that it is a fact about, its speaker, and,
if it is a relation, both of its ends. Dates and quantities are no entities. An entity is identified by its name in
lower case (`facets.entities.graph.entity_id`); a relation of the type "same as" makes one entity of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from recollect.facets.entities.graph import NODE, RELATION, SAME_AS, Relation, entity_id, relation_of
from recollect.filters.tree import EVERYTHING, Filter
from recollect.ledger.commits import Branch
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import ReadView
from recollect.text.entities import entities

#: Approximate memory of a record in an index, and of one of its mentions.
_RECORD_BYTES, _MENTION_BYTES = 500, 150
#: The types of mentions that are entities.
ENTITY_TYPES = ("person", "organization", "place", "name", "handle", "address")
#: Maximum number of characters of a text in which entities are looked for.
_MOST_READ = 50_000
_UNNAMED = ("user", "assistant", "system", "tool")


class NamedEntity(NamedTuple):
    """An entity as one record names it.

    Attributes:
        id: The id of the entity.
        type: Its type, as in `text.entities`, or as the record states it.
    """

    id: str
    name: str
    type: str


class Noted(NamedTuple):
    """The part of a record that the index stores.

    Attributes:
        owner: The values of the fields that a scope can fix.
        micros: Its time in microseconds since 1970; None if it has none.
        expires: Its expiry; None if it has none.
        entities: The entities that it mentions, each once.
        relation: The relation that it states, between ids; None if it states none.
    """

    owner: dict[str, str | None]
    micros: int | None
    expires: int | None
    entities: tuple[NamedEntity, ...]
    relation: Relation | None


class MentionsOf(NamedTuple):
    """A key that says which records an index of mentions has: those of a branch that a filter matches.

    The cached one has all, for all scopes.
    """

    branch: Branch
    where: Filter = EVERYTHING


class MentionIndex:
    """The mentions of a branch.

    Attributes:
        records: What is kept of each record with a mention, by its id.
        of_entity: The ids of the records that mention an entity, by the id of the entity, in order of insertion.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: dict[str, Noted] = {}
        self.of_entity: dict[str, dict[str, None]] = {}
        self.same: dict[str, Relation] = {}  # the relations that make one entity of two, by the id of their record
        self.mentions = 0
        for record in records:
            self.put(record)

    def put(self, record: Record) -> None:
        """Insert a record, or replace what is kept of it."""
        self.remove(record.id)
        relation = relation_of(record) if record.kind == RELATION else None
        if relation is not None:
            relation = Relation(entity_id(relation.source), entity_id(relation.target), relation.type)
        mentioned = tuple(_mentioned(record))
        if not mentioned:
            return
        owner = {"user": record.user, "agent": record.agent, "conversation": record.conversation}
        time, expires = (None if each is None else microseconds(each) for each in (record.time, record.expires))
        self.records[record.id] = Noted(owner, time, expires, mentioned, relation)
        self.mentions += len(mentioned)
        for each in mentioned:
            self.of_entity.setdefault(each.id, {})[record.id] = None
        if relation is not None and relation.type == SAME_AS:
            self.same[record.id] = relation

    @property
    def nbytes(self) -> int:
        """The approximate memory of the index, in bytes."""
        return _RECORD_BYTES * len(self.records) + _MENTION_BYTES * self.mentions

    def remove(self, record_id: str) -> None:
        """Remove what is kept of a record, if there is anything."""
        noted = self.records.pop(record_id, None)
        if noted is None:
            return
        self.same.pop(record_id, None)
        self.mentions -= len(noted.entities)
        for each in noted.entities:
            del self.of_entity[each.id][record_id]
            if not self.of_entity[each.id]:
                del self.of_entity[each.id]


def _mentioned(record: Record) -> Iterator[NamedEntity]:
    """Yield the entities that a record mentions, each once, those that it states first."""
    found: dict[str, NamedEntity] = {}

    def note(name: str, kind: str, known: str | None = None) -> None:
        id_ = entity_id(name) if known is None else known
        if id_.strip("_"):
            found.setdefault(id_, NamedEntity(id_, name, kind))

    relation = relation_of(record) if record.kind == RELATION else None
    if relation is not None:
        note(relation.source, "name")
        note(relation.target, "name")
    elif record.entity is not None:
        name, kind = record.metadata.get("entity_name"), record.metadata.get("entity_type")
        note(
            name if isinstance(name, str) else record.entity,
            kind if isinstance(kind, str) and kind != "unknown" else "name",
            record.entity,
        )
    if record.speaker is not None and record.speaker.casefold() not in _UNNAMED:
        note(record.speaker, "person")
    if isinstance(record.content, str) and record.searchable and record.kind not in (NODE, RELATION):
        for each in entities(record.content[:_MOST_READ], speaker=record.speaker):
            if each.type in ENTITY_TYPES:
                note(each.name, each.type)
    yield from found.values()


def mentions_at(view: ReadView, key: MentionsOf, now: int) -> MentionIndex:
    """Return the mentions of the records of a branch that a key names."""
    return MentionIndex(view.select(key.branch, key.where, order="id", now=now))
