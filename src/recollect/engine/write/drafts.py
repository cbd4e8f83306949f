"""Drafts: what a caller asks to remember, checked and filled in, before anything is looked up.

A draft is made before its transaction begins: what was given may be the caller's code, which nobody should wait for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from recollect.engine.scope import Scope
from recollect.engine.write.limits import Limits
from recollect.errors import InvalidRecordError
from recollect.operations import Remember
from recollect.records.identity import derived_id, identified
from recollect.records.record import FIELD_NAMES, Record, checked
from recollect.text.manner import MACHINE_ROLES, STANDING_TAGS, standing_tags

#: Kinds whose names begin so are the engine's own.
INTERNAL = "_"
_NO_TAGS: frozenset[str] = frozenset()
_ALL_FIELDS = frozenset(FIELD_NAMES) - {"id"}


@dataclass(frozen=True)
class Intake:
    """How a memory takes what it is told.

    limits     how large it may be
    language   a BCP 47 tag: what records are written in that do not say so; None: what they seem to be
    """

    limits: Limits = field(default_factory=Limits)
    language: str | None = None


class Draft(NamedTuple):
    """A record as it was asked for, checked, under the id that it gets unless another has it.

    given   the fields that the caller named; the others are defaults
    earned  the marks among its tags that the caller did not give (`text.manner`)
    exact   nothing that the caller did not give is filled in
    lasts   `expires` follows from the time of the call (`ttl`)
    """

    record: Record
    explicit: frozenset[str]
    own_id: bool
    expect: str | None
    if_exists: str
    added_tags: frozenset[str]
    exact: bool = False
    has_ttl: bool = False

    def comparable_to(self, existing: Record) -> Record:
        """The record as it is compared with what is held: a mark that was taken away there is not asked for again."""
        lost = self.added_tags - set(existing.tags)
        if not lost or existing.content != self.record.content:
            return self.record
        return self.record.changed(tags=[tag for tag in self.record.tags if tag not in lost])

    def with_id(self, record_id: str) -> Draft:
        """The same under another id."""
        return self if self.record.id == record_id else self._replace(record=self.record.changed(id=record_id))

    def is_derived(self, record_id: str) -> bool:
        """Whether an id follows from what is said; also where the caller gave it, as a copy does."""
        return not self.own_id or record_id == derived_id(self.record)

    @property
    def has_position(self) -> bool:
        return "position" in self.explicit

    @property
    def is_appended(self) -> bool:
        """A turn without a place or an id of its own: it comes after those that are there."""
        return is_turn(self.record) and not self.has_position and not self.own_id and self.expect is None


def is_turn(record: Record) -> bool:
    """Whether a record is a turn of a conversation: what is said twice there was said twice."""
    return record.kind == "conversation" and record.conversation is not None


def draft(operation: Remember, scope: Scope, now: datetime, intake: Intake) -> Draft:
    """The draft of a remember operation. Raises: InvalidRecordError, ScopeError."""
    fields = scope.fill({name: value for name, value in operation.fields.items() if value is not None})
    if operation.exact:
        record = checked(id=operation.id, content=operation.content, **fields)
        check_limits(record, intake)
        return Draft(record, _ALL_FIELDS, True, operation.expect, operation.if_exists, _NO_TAGS, exact=True)
    explicit = frozenset(fields)
    fields.setdefault("time", now)
    if operation.ttl is not None:
        fields["expires"] = now + timedelta(seconds=operation.ttl)
        explicit |= {"expires"}
    if intake.language is not None:
        fields.setdefault("language", intake.language)
    told = fields.get("tags", ())
    fields["tags"] = _with_standing_tags(operation.content, fields, told)
    added_tags = frozenset(fields["tags"]) - frozenset(told) if fields["tags"] is not told else _NO_TAGS
    if operation.id is None:
        record = identified(content=operation.content, **fields)
    else:
        record = checked(id=operation.id, content=operation.content, **fields)
    check_limits(record, intake)
    own_id, has_ttl = operation.id is not None, operation.ttl is not None
    return Draft(record, explicit, own_id, operation.expect, operation.if_exists, added_tags, has_ttl=has_ttl)


def _with_standing_tags(content: object, fields: Mapping[str, Any], tags: Any) -> Any:
    """The tags with the marks of a standing instruction or preference, where a person states one."""
    # What has a source is a document: what it instructs is not the wish of whoever told of it.
    if not isinstance(content, str) or fields.get("role") in MACHINE_ROLES or fields.get("source") is not None:
        return tags
    found = standing_tags(content)
    # What is no list of tags is the record's to refuse.
    return (*tags, *(tag for tag in found if tag not in tags)) if found and _is_list(tags) else tags


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


def retagged(existing: Record, record: Record, *, tags_given: bool) -> Record:
    """A record whose text has changed, with the marks of the new text in place of those of the old."""
    if tags_given or existing.content == record.content:
        return record
    kept = [tag for tag in record.tags if tag not in STANDING_TAGS]
    fields = {"role": record.role, "source": record.source}
    return record.changed(tags=_with_standing_tags(record.content, fields, kept))


def check_limits(record: Record, intake: Intake) -> None:
    """Raises: InvalidRecordError for what is over a cap, or of a kind that is the engine's own."""
    if record.kind.startswith(INTERNAL):
        raise InvalidRecordError("kind", record.kind, f"may not begin with {INTERNAL!r}: those are internal")
    intake.limits.check(record)
