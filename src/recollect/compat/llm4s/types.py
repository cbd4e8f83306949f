"""The value types: `Memory`, its id, its type, and a memory with a score."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import recollect
from recollect import Record
from recollect.compat.llm4s.vectors import EMBEDDING, Vector, VectorLike, as_vector, encoded, vector_of
from recollect.errors import InvalidArgumentError, InvalidRecordError
from recollect.operations import check_text
from recollect.records import factories
from recollect.records.factories import KIND_NAME, kind_name


class MemoryId(str):
    """The id of a memory: text of 1 to 255 bytes. It equals a text with the same value, and no `EntityId`."""

    __slots__ = ()

    @classmethod
    def generate(cls) -> MemoryId:
        """Return a new random id (UUID 4)."""
        return cls(uuid.uuid4())

    @property
    def value(self) -> str:
        """The id as a plain text."""
        return str(self)


@dataclass(frozen=True, eq=False)
class EntityId:
    """The id of an entity. It equals a text with the same value, and no `MemoryId`.

    It is no text itself, so that a type checker and the calls that take the id of a memory refuse it. `value` is what
    the metadata has, and what `recollect` takes.

    Raises:
        InvalidArgumentError: The value is not text.
    """

    value: str

    def __post_init__(self) -> None:
        check_text("value", self.value)

    @classmethod
    def generate(cls) -> EntityId:
        """Return a new random id (UUID 4)."""
        return cls(str(uuid.uuid4()))

    @classmethod
    def from_name(cls, name: str) -> EntityId:
        """Return the id of the entity called `name`: in lower case, with each run of white space as one `_`.

        >>> EntityId.from_name("Ada Lovelace").value
        'ada_lovelace'
        """
        check_text("name", name)
        return cls(str(recollect.EntityId.from_name(name)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, EntityId):
            return self.value == other.value
        return isinstance(other, str) and not isinstance(other, MemoryId) and self.value == other

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return self.value


def memory_id_text(value: MemoryId | str, argument: str = "id") -> str:
    """Return the id of a memory as a text.

    Raises:
        InvalidArgumentError: It is the id of an entity.
    """
    if isinstance(value, EntityId):
        raise InvalidArgumentError(argument, value, "must be the id of a memory, a MemoryId or a text")
    return value


def entity_id_text(value: EntityId | str, argument: str = "entity_id") -> str:
    """Return the id of an entity as a text.

    Raises:
        InvalidArgumentError: It is the id of a memory.
    """
    if isinstance(value, MemoryId):
        raise InvalidArgumentError(argument, value, "must be the id of an entity, an EntityId or a text")
    return value.value if isinstance(value, EntityId) else value


class MemoryType(str):
    """The type of a memory. It has the rules of the kind of a record; an unknown name is custom, and stays as written.

    Names that differ in case only are equal. As a key of a dict or in a set, use a `MemoryType` and not a text.

    >>> MemoryType("User_Fact") == MemoryType.USER_FACT, MemoryType("Recipe").is_custom, MemoryType("Recipe").name
    (True, True, 'Recipe')

    Attributes:
        kind: The kind of its records: the name in folded case.

    Raises:
        InvalidRecordError: The name is not the name of a kind: it is empty, too long, or has a control character.
    """

    __slots__ = ("kind",)
    kind: str

    CONVERSATION: ClassVar[MemoryType]
    ENTITY: ClassVar[MemoryType]
    KNOWLEDGE: ClassVar[MemoryType]
    USER_FACT: ClassVar[MemoryType]
    TASK: ClassVar[MemoryType]
    BUILT_IN: ClassVar[frozenset[MemoryType]]

    def __new__(cls, name: str) -> MemoryType:
        if isinstance(name, cls):
            return name
        kind = Record(id="-", content="-", kind=name).kind
        made = super().__new__(cls, kind if kind in _BUILT_IN else str.__str__(name))
        made.kind = kind
        return made

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MemoryType):
            return self.kind == other.kind
        return isinstance(other, str) and (str.__eq__(self, other) or self.kind == other.casefold())

    def __ne__(self, other: object) -> bool:  # that of str does not use __eq__
        return not self == other

    def __hash__(self) -> int:
        return hash(self.kind)

    @classmethod
    def from_string(cls, name: str) -> MemoryType:
        """Return the type with a name: the same as `MemoryType(name)`."""
        return cls(name)

    @property
    def name(self) -> str:
        """The name as it was written; of a built-in type, in lower case."""
        return str.__str__(self)

    @property
    def is_custom(self) -> bool:
        """True if it is not one of the five built-in types."""
        return self.kind not in _BUILT_IN


_BUILT_IN = ("conversation", "entity", "knowledge", "user_fact", "task")
MemoryType.CONVERSATION = MemoryType("conversation")
MemoryType.ENTITY = MemoryType("entity")
MemoryType.KNOWLEDGE = MemoryType("knowledge")
MemoryType.USER_FACT = MemoryType("user_fact")
MemoryType.TASK = MemoryType("task")
MemoryType.BUILT_IN = frozenset(map(MemoryType, _BUILT_IN))


@dataclass(frozen=True)
class Memory:
    """One memory. Immutable: the `with_...` methods return changed copies.

    Attributes:
        content: The text.
        memory_type: The type.
        metadata: Names and texts.
        timestamp: An aware datetime; default: now. None if the record was copied without a time.
        importance: 0 to 1; None if there is none.
        embedding: The vector of the content, rounded to float32; None if there is none.

    Raises:
        InvalidRecordError: A value is invalid.
    """

    id: MemoryId
    content: str
    memory_type: MemoryType
    metadata: Mapping[str, str] = field(default_factory=dict)
    timestamp: datetime | None = field(default_factory=lambda: datetime.now(UTC))
    importance: float | None = None
    embedding: Vector | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.content, str):
            raise InvalidRecordError("content", self.content, "must be text")
        if not isinstance(self.metadata, Mapping):
            raise InvalidRecordError("metadata", self.metadata, "must be an object (a dict)")
        for name, value in self.metadata.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise InvalidRecordError("metadata", {name: value}, "must have texts as names and as values")
        # The record's own checks.
        checked = Record(id=self.id, content="-", time=self.timestamp, importance=self.importance)
        object.__setattr__(self, "id", MemoryId(checked.id))
        object.__setattr__(self, "memory_type", MemoryType(self.memory_type))
        object.__setattr__(self, "metadata", dict(self.metadata))
        object.__setattr__(self, "timestamp", checked.time)
        object.__setattr__(self, "importance", checked.importance)
        if self.embedding is not None:
            object.__setattr__(self, "embedding", as_vector(self.embedding))

    def __hash__(self) -> int:
        return hash((self.id, self.content, self.timestamp))

    def __repr__(self) -> str:
        shown = {each.name: repr(getattr(self, each.name)) for each in fields(self)}
        if self.embedding is not None:
            shown["embedding"] = f"<{len(self.embedding)} components>"
        return f"Memory({', '.join(f'{name}={value}' for name, value in shown.items())})"

    @classmethod
    def from_conversation(cls, content: str, role: str, conversation_id: str | None = None) -> Memory:
        """Return a message. Its metadata has role and conversation_id."""
        return _built(factories.conversation(content, role=role, conversation=conversation_id))

    @classmethod
    def for_entity(cls, entity_id: EntityId | str, entity_name: str, fact: str, entity_type: str = "unknown") -> Memory:
        """Return a fact about an entity. Its metadata has entity_id, entity_name and entity_type."""
        return _built(
            factories.entity(fact, name=entity_name, entity=entity_id_text(entity_id), entity_type=entity_type)
        )

    @classmethod
    def from_knowledge(cls, content: str, source: str, chunk_index: int | None = None) -> Memory:
        """Return a piece of a document, without importance. Its metadata has source and chunk_index."""
        return _built(factories.knowledge(content, source=source, chunk_index=chunk_index))

    @classmethod
    def user_fact(cls, fact: str, user_id: str | None = None) -> Memory:
        """Return a fact about a user. Its metadata has user_id."""
        return _built(factories.user_fact(fact, user=user_id))

    @classmethod
    def from_task(cls, task_description: str, outcome: str, success: bool) -> Memory:
        """Return a task with its outcome. Its metadata has success, "true" or "false"."""
        return _built(factories.task(task_description, outcome, success=success))

    def with_metadata(self, key: str | Mapping[str, str], value: str | None = None) -> Memory:
        """Return a copy with one value of the metadata set, or with those of a mapping."""
        added: Mapping[str, Any] = key if isinstance(key, Mapping) else {key: value}
        return replace(self, metadata={**self.metadata, **added})

    def with_importance(self, score: float) -> Memory:
        """Return a copy with an importance, which is clamped to [0, 1].

        Raises:
            InvalidRecordError: It is not a number.
        """
        if score is None or isinstance(score, bool):
            raise InvalidRecordError("importance", score, "must be a number")
        return replace(self, importance=factories.clamped(score))

    def with_embedding(self, vector: VectorLike) -> Memory:
        """Return a copy with a vector."""
        return replace(self, embedding=as_vector(vector))

    def get_metadata(self, key: str) -> str | None:
        """Return a value of the metadata; None if there is none."""
        return self.metadata.get(key)

    @property
    def is_embedded(self) -> bool:
        """True if it has a vector."""
        return self.embedding is not None

    @property
    def source(self) -> str | None:
        """The source in the metadata."""
        return self.metadata.get("source")

    @property
    def conversation_id(self) -> str | None:
        """The conversation in the metadata."""
        return self.metadata.get("conversation_id")

    @property
    def agent_id(self) -> str | None:
        """The agent in the metadata."""
        return self.metadata.get("agent_id")


@dataclass(frozen=True)
class ScoredMemory:
    """A memory that a search found.

    Attributes:
        score: 0 to 1, higher is better: by vector (cosine + 1) / 2, by words the confidence of recall.
        note: Why the search was made by words although there is an embedder or a vector, or which memories it could not
            compare; otherwise "".
    """

    memory: Memory
    score: float
    note: str = ""


def as_text(value: Any) -> str:
    """Return a value of a record's metadata as a text: itself, or its JSON form.

    >>> as_text("x"), as_text(True), as_text(3), as_text([1, "a"])
    ('x', 'true', '3', '[1, "a"]')
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _built(fields: Mapping[str, Any]) -> Memory:
    """Return a memory with the fields that a factory of records returns."""
    metadata = {name: as_text(value) for name, value in fields["metadata"].items()}
    return Memory(
        MemoryId.generate(),
        fields["content"],
        MemoryType(fields["kind"]),
        metadata,
        importance=fields.get("importance"),
    )


# Memories as records and back.
#
# Six names of the metadata are fields of a record, which filters, scopes and quotas use: `FIELD_OF` lists them. A
# memory shows the field under the name; the rest of its metadata is that of the record, with values that are not texts
# as JSON.

#: Names in the metadata of a record that are no metadata of its memory.
RESERVED = (EMBEDDING, KIND_NAME)
#: Name in the metadata of a memory -> field of its record.
FIELD_OF = {
    "role": "role",
    "conversation_id": "conversation",
    "entity_id": "entity",
    "source": "source",
    "user_id": "user",
    "agent_id": "agent",
}


def memory_of(record: Record) -> Memory:
    """Return a record as a memory. Content that is not text is shown as an empty text."""
    metadata = {
        name: as_text(value) for name, value in record.metadata.items() if name not in FIELD_OF and name not in RESERVED
    }
    for name, field_name in FIELD_OF.items():
        value = getattr(record, field_name)
        if value is not None:
            metadata[name] = value
    return Memory(
        MemoryId(record.id),
        record.text,
        MemoryType(kind_name(record)),
        metadata,
        record.time,
        record.importance,
        vector_of(record),
    )


def fields_of(memory: Memory) -> dict[str, Any]:
    """Return the fields of a memory's record, without id and content. The value of an absent field is None.

    Raises:
        InvalidRecordError: The metadata has a reserved name.
    """
    for name in RESERVED:
        if name in memory.metadata:
            raise InvalidRecordError("metadata", name, "is reserved for vectors and types: use another name")
    metadata: dict[str, Any] = dict(memory.metadata)
    if memory.embedding is not None:
        metadata[EMBEDDING] = encoded(memory.embedding)
    if memory.memory_type.name != memory.memory_type.kind:
        metadata[KIND_NAME] = memory.memory_type.name
    fields = {field: memory.metadata.get(name) for name, field in FIELD_OF.items()}
    return {
        "kind": memory.memory_type.kind,
        "time": memory.timestamp,
        "importance": memory.importance,
        "metadata": metadata,
        **fields,
    }


def record_of(memory: Memory) -> Record:
    """Return the record as which a memory is stored.

    Raises:
        InvalidRecordError: It cannot be stored: its content is empty, or a value of its metadata is invalid.
    """
    fields = {name: value for name, value in fields_of(memory).items() if value is not None}
    return Record(id=memory.id, content=memory.content, **fields)


def changed(record: Record, before: Memory, after: Memory) -> Record:
    """Return a record with the changes from one memory to another. What a memory does not show stays as it is.

    Raises:
        InvalidRecordError: A value is invalid. (An `update` of a memory refuses another id.)
    """
    old, new = fields_of(before), fields_of(after)
    changes = {name: value for name, value in new.items() if value != old[name]}
    changes |= {
        name: getattr(after, name) for name in ("id", "content") if getattr(after, name) != getattr(before, name)
    }
    if "metadata" in changes:
        stays = {
            name: value
            for name, value in record.metadata.items()
            if name not in old["metadata"] or as_text(value) == new["metadata"].get(name)
        }
        changes["metadata"] = {**new["metadata"], **stays}
    return record.changed(**changes)
