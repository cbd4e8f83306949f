"""Builders of records of the five usual kinds, with the fields and metadata of each kind.

Each returns a dict of fields for `memory.remember(**...)` or `remember_all`; the memory assigns the id. They clamp
importance to [0, 1], whereas `Record` rejects a value outside of it. Other keyword arguments are fields of the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.errors import InvalidRecordError
from recollect.records.record import EntityId, Record
from recollect.text.unicode import fold

#: The default importance of messages, facts and tasks; knowledge has none.
DEFAULT_IMPORTANCE = 0.5
#: The type of an entity whose type was not stated.
UNKNOWN_TYPE = "unknown"


def conversation(
    content: str,
    *,
    role: str,
    conversation: str | None = None,
    importance: float | None = DEFAULT_IMPORTANCE,
    **fields: Any,
) -> dict[str, Any]:
    """Build one message of a conversation. Its metadata has role and conversation_id."""
    names = {"role": role, "conversation_id": conversation}
    return _fields("conversation", content, importance, names, fields, role=role, conversation=conversation)


def entity(
    content: str,
    *,
    name: str,
    entity: str | None = None,
    entity_type: str = UNKNOWN_TYPE,
    importance: float | None = DEFAULT_IMPORTANCE,
    **fields: Any,
) -> dict[str, Any]:
    """Build a fact about an entity. Metadata: entity_id (by default from the name), entity_name, entity_type."""
    entity_id = EntityId(entity) if entity is not None else EntityId.from_name(name)
    names = {"entity_id": str(entity_id), "entity_name": name, "entity_type": entity_type}
    return _fields("entity", content, importance, names, fields, entity=str(entity_id))


def knowledge(
    content: str | bytes,
    *,
    source: str | None = None,
    chunk_index: int | None = None,
    importance: float | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Build a piece of a document. Its metadata has source and chunk_index."""
    names = {"source": source, "chunk_index": chunk_index}
    return _fields("knowledge", content, importance, names, fields, source=source)


def user_fact(
    content: str, *, user: str | None = None, importance: float | None = DEFAULT_IMPORTANCE, **fields: Any
) -> dict[str, Any]:
    """Build a fact about a user. Its metadata has user_id."""
    return _fields("user_fact", content, importance, {"user_id": user}, fields, user=user)


def task(
    description: str, outcome: str, *, success: bool, importance: float | None = DEFAULT_IMPORTANCE, **fields: Any
) -> dict[str, Any]:
    """Build a task that succeeded or failed. Its metadata has success.

    >>> task("book a seat", "12A, window", success=True)["content"]
    'Task: book a seat\\nOutcome: 12A, window'
    """
    return _fields("task", f"Task: {description}\nOutcome: {outcome}", importance, {"success": success}, fields)


def _fields(
    kind: str,
    content: str | bytes,
    importance: float | None,
    names: Mapping[str, Any],
    extra: dict[str, Any],
    **own: Any,
) -> dict[str, Any]:
    metadata = {name: value for name, value in names.items() if value is not None}
    passed = extra.pop("metadata", None)
    if passed is not None:
        if not isinstance(passed, Mapping):
            raise InvalidRecordError("metadata", passed, "must be an object (a dict)")
        metadata.update(passed)
    out: dict[str, Any] = {"kind": kind, "content": content, **own, **extra, "metadata": metadata}
    out["importance"] = clamped(importance)
    return {name: value for name, value in out.items() if value is not None}


def clamped(importance: float | None) -> float | None:
    """Return an importance as a number in [0, 1].

    >>> clamped(-0.5), clamped(1.5), clamped(None)
    (0.0, 1.0, None)
    """
    if importance is None:
        return None
    if not isinstance(importance, (int, float)) or importance != importance:
        raise InvalidRecordError("importance", importance, "must be a number")
    return float(min(1, max(0, importance)))  # clamped first: an integer may be too great for a float


# Marks: of turns of a branch that was abandoned, of the summary that stands for turns of its conversation, and of kinds
# whose case matters.

#: The tag of turns that an edited message or another answer has replaced. No text for a model has them.
OTHER_BRANCH = "other-branch"
#: The kind and the role of a summary that was passed in the place of turns. The role is that of a system prompt: it is
#: no one's word.
SUMMARY, SUMMARY_ROLE = "summary", "system"


#: The name in the metadata under which a kind of one's own is stored as it was written: `Record.kind` is folded.
KIND_NAME = "recollect.kind"


def kind_name(record: Record) -> str:
    """Return the kind of a record as it was written, if that is stored with it, or else folded."""
    written = record.metadata.get(KIND_NAME)
    return written if isinstance(written, str) and fold(written) == record.kind else record.kind


def is_summary(record: Record) -> bool:
    """Return whether a record is a summary of turns of its conversation."""
    return record.kind == SUMMARY and record.role == SUMMARY_ROLE and record.conversation is not None


def title_of_chat(record: Record) -> str | None:
    """Return the title of the conversation that a turn begins, as its source has it; None if it states none."""
    about = record.metadata.get("conversation")
    if not isinstance(about, Mapping):
        return None
    titles = (about.get(key) for key in ("title", "name"))
    return next((title for title in titles if isinstance(title, str) and title.strip()), None)
