"""Memories as records and back.

Six names of the metadata are fields of a record, which filters, scopes and quotas use: `FIELD_OF` lists them. A memory
shows the field under the name; the rest of its metadata is that of the record, with values that are not texts as JSON.
"""

from __future__ import annotations

from typing import Any

from recollect import Record
from recollect.compat.llm4s.types import Memory, MemoryId, MemoryType, as_text
from recollect.compat.llm4s.vectors import EMBEDDING, encoded, vector_of
from recollect.errors import InvalidRecordError

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
        name: as_text(value) for name, value in record.metadata.items() if name not in FIELD_OF and name != EMBEDDING
    }
    for name, field in FIELD_OF.items():
        value = getattr(record, field)
        if value is not None:
            metadata[name] = value
    return Memory(
        MemoryId(record.id),
        record.text,
        MemoryType(record.kind),
        metadata,
        record.time,
        record.importance,
        vector_of(record),
    )


def fields_of(memory: Memory) -> dict[str, Any]:
    """Return the fields of a memory's record, without id and content. The value of an absent field is None.

    Raises:
        InvalidRecordError: The metadata has the name under which vectors are stored.
    """
    if EMBEDDING in memory.metadata:
        raise InvalidRecordError("metadata", EMBEDDING, "is the name under which vectors are stored: use another")
    metadata: dict[str, Any] = dict(memory.metadata)
    if memory.embedding is not None:
        metadata[EMBEDDING] = encoded(memory.embedding)
    fields = {field: memory.metadata.get(name) for name, field in FIELD_OF.items()}
    return {
        "kind": memory.memory_type.name,
        "time": memory.timestamp,
        "importance": memory.importance,
        "metadata": metadata,
        **fields,
    }


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
