"""Drafts: records that a caller wants to remember, validated and filled in, before they are looked up in the store.

A draft is created before its transaction begins, because the caller's values may run code of the caller, which must not
run while the writer has the lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from recollect.arguments.checks import check_count
from recollect.engine.scope import Scope
from recollect.errors import InvalidArgumentError, InvalidQueryError, InvalidRecordError
from recollect.operations import Remember
from recollect.records.codec import encode_json
from recollect.records.factories import OTHER_BRANCH
from recollect.records.identity import derived_id, identified
from recollect.records.origins import Origin
from recollect.records.record import FIELD_NAMES, Record, RecordId, checked, located_fields, restored
from recollect.text.manner import MACHINE_ROLES, SAID_TAGS, WISHES, standing_tags

# Limits on the sizes of records, questions and queries. The defaults are far above normal use.


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the sizes of one record, one question and one query. Each is an integer, 1 or more.

    Attributes:
        content_bytes: A text, as UTF-8; default: 1 MiB. Indexing 1 MiB of distinct words takes about 2 s, and 140 bytes
            of memory per byte; other texts take at most twice that (`python -m bench poison`).
        media_bytes: Content that is bytes, which is not indexed; default: 10 MiB.
        metadata_bytes: The metadata, in its canonical encoding; default: 1 MiB.
        tags: The number of tags; default: 1,000. (A tag, like every name, has at most 1,000 bytes.)
        question_bytes: A question, as UTF-8; default: 64 KiB.
        query_bytes: A full-text query, as UTF-8; default: 8 KiB. (It has at most 256 words, and a phrase in it at most
            64.)

    Raises:
        InvalidArgumentError: A limit is not an integer of 1 or more.
    """

    content_bytes: int = 2**20
    media_bytes: int = 10 * 2**20
    metadata_bytes: int = 2**20
    tags: int = 1000
    question_bytes: int = 2**16
    query_bytes: int = 2**13

    def __post_init__(self) -> None:
        for each in fields(self):
            check_count(f"limits.{each.name}", getattr(self, each.name))

    def check(self, record: Record) -> None:
        """Check a record.

        Raises:
            InvalidRecordError: It exceeds a limit.
        """
        if isinstance(record.content, bytes):
            size, limit = len(record.content), self.media_bytes
        else:
            size, limit = len(record.content.encode("utf-8")), self.content_bytes
        if size > limit:
            raise InvalidRecordError(
                "content",
                record.content,
                f"is longer than the cap of {limit} bytes: remember it in parts, or open the memory with larger limits",
            )
        if len(record.tags) > self.tags:
            raise InvalidRecordError("tags", record.tags, f"has more entries than the cap of {self.tags}")
        if record.metadata and len(encode_json(record.metadata)) > self.metadata_bytes:
            raise InvalidRecordError("metadata", record.metadata, f"is over the cap of {self.metadata_bytes} bytes")

    def check_question(self, question: str) -> None:
        """Check a question.

        Raises:
            InvalidArgumentError: It exceeds the limit.
        """
        if len(question) > self.question_bytes or len(question.encode("utf-8")) > self.question_bytes:
            raise InvalidArgumentError(
                "question", question, f"is longer than the cap of {self.question_bytes} bytes: shorten it"
            )

    def check_query(self, query: str) -> None:
        """Check a full-text query.

        Raises:
            InvalidQueryError: It exceeds the limit.
        """
        if len(query) > self.query_bytes or len(query.encode("utf-8")) > self.query_bytes:
            raise InvalidQueryError(query, f"it is longer than the cap of {self.query_bytes} bytes: shorten it")


#: The kind of a turn.
CONVERSATION = "conversation"
#: Kinds with this prefix are reserved for the engine.
INTERNAL = "_"
_NO_TAGS: frozenset[str] = frozenset()
#: Kinds of records whose text no user wrote as a wish.
_OF_OTHERS = ("entity", "node", "relation", "task")
_SAID = frozenset(SAID_TAGS.values())
_ALL_FIELDS = frozenset(FIELD_NAMES) - {"id"}


@dataclass(frozen=True)
class Intake:
    """Settings of a memory for new records.

    Attributes:
        limits: Limits on their sizes.
        language: The language of records that do not state one, as a BCP 47 tag; None: detected.
        id_key: The private key on which derived ids depend (`Store.id_key`); None for none.
        zone: The time zone of dates and of times without an offset.
    """

    limits: Limits = field(default_factory=Limits)
    language: str | None = None
    id_key: bytes | None = None
    zone: tzinfo = UTC


class Draft(NamedTuple):
    """A validated record that is to be stored.

    Attributes:
        record: The record, under the id that it gets unless another record has it.
        explicit: The fields that the caller passed; the others have default values.
        own_id: Whether the caller passed an id.
        expect: See `operations.Remember`.
        if_exists: See `operations.Remember`.
        added_tags: Standing tags that were added because of the text (`text.manner`), not by the caller.
        exact: No field that the caller did not pass is filled in.
        has_ttl: `expires` was computed from the time of the call and a `ttl`.
        id_key: See `Intake`.
        keeps_origin: See `operations.Remember`.
        is_quoted: It was imported or quoted (`operations.Remember`).
        heard: The class of what a turn may repeat of tools, if it is not what its role implies.
    """

    record: Record
    explicit: frozenset[str]
    own_id: bool
    expect: str | None
    if_exists: str
    added_tags: frozenset[str]
    exact: bool = False
    has_ttl: bool = False
    id_key: bytes | None = None
    keeps_origin: bool = False
    is_quoted: bool = False
    heard: Origin | None = None

    def derived_id(self, ordinal: int = 0) -> RecordId:
        """Return the id that is derived from the record and an ordinal."""
        return derived_id(self.record, ordinal, self.id_key)

    def comparable_to(self, existing: Record) -> Record:
        """Return the record for comparison with an existing one: without added tags that were removed from that."""
        lost = self.added_tags - set(existing.tags)
        if not lost or existing.content != self.record.content:
            return self.record
        return self.record.changed(tags=[tag for tag in self.record.tags if tag not in lost])

    def with_id(self, record_id: str) -> Draft:
        """Return the draft with another id."""
        return self if self.record.id == record_id else self._replace(record=self.record.changed(id=record_id))

    def is_derived(self, record_id: str) -> bool:
        """Return whether an id is the derived one of the record, even if the caller passed it (as for a copy)."""
        return not self.own_id or record_id == self.derived_id()

    @property
    def has_position(self) -> bool:
        return "position" in self.explicit

    @property
    def is_appended(self) -> bool:
        """True if it is a turn without position and id, which is appended to its conversation."""
        return is_turn(self.record) and not self.has_position and not self.own_id and self.expect is None


def is_turn(record: Record) -> bool:
    """Return whether a record is a turn of a conversation. Unlike other facts, equal turns are separate records."""
    return record.kind == CONVERSATION and record.conversation is not None


def draft(operation: Remember, scope: Scope, now: datetime, intake: Intake) -> Draft:
    """Return the draft of a remember operation.

    Raises:
        InvalidRecordError: A field is invalid or exceeds a limit.
        ScopeError: A field lies outside the scope.
    """
    stated = {name: value for name, value in operation.fields.items() if value is not None}
    fields = scope.fill(located_fields(stated, intake.zone))
    if operation.exact:
        record = restored(id=operation.id, content=operation.content, **fields)
        check_limits(record, intake)
        return Draft(
            record,
            _ALL_FIELDS,
            True,
            operation.expect,
            operation.if_exists,
            _NO_TAGS,
            exact=True,
            id_key=intake.id_key,
            keeps_origin=operation.keep_origin,
        )
    explicit = frozenset(fields)
    if "kind" not in fields and operation.fields.get("conversation") is not None:
        fields["kind"] = CONVERSATION  # what names its conversation is a turn of it
    fields.setdefault("time", now)
    if operation.ttl is not None:
        fields["expires"] = now + timedelta(seconds=operation.ttl)
        explicit |= {"expires"}
    if intake.language is not None:
        fields.setdefault("language", intake.language)
    tags = fields.get("tags", ())
    fields["tags"] = _with_standing_tags(operation.content, fields, tags, stands=operation.standing)
    added_tags = frozenset(fields["tags"]) - frozenset(tags) if fields["tags"] is not tags else _NO_TAGS
    if operation.id is None:
        record = identified(intake.id_key, content=operation.content, **fields)
    else:
        record = checked(id=operation.id, content=operation.content, **fields)
    check_limits(record, intake)
    own_id, has_ttl = operation.id is not None, operation.ttl is not None
    return Draft(
        record,
        explicit,
        own_id,
        operation.expect,
        operation.if_exists,
        added_tags,
        has_ttl=has_ttl,
        id_key=intake.id_key,
        is_quoted=not operation.standing,
    )


def _with_standing_tags(content: object, fields: Mapping[str, Any], tags: Any, *, stands: bool = True) -> Any:
    """Return the tags, with a tag added if a person states an instruction or preference in the text.

    It is a standing tag unless the text was imported or quoted (`stands` is false).
    """
    # A record with a source is a document, a fact about an entity was extracted, and a task has the outcome of a tool:
    # their instructions are not wishes of the user.
    if not isinstance(content, str) or fields.get("role") in MACHINE_ROLES or fields.get("source") is not None:
        return tags
    kind = fields.get("kind")
    if isinstance(kind, str) and kind.casefold() in _OF_OTHERS:
        return tags
    if isinstance(tags, (list, tuple)) and OTHER_BRANCH in tags:  # an iterator would be read by that
        return tags
    found = standing_tags(content)
    if not stands:
        found = tuple(SAID_TAGS[tag] for tag in found)
    # Anything but a list of tags is refused later, by the record.
    return (*tags, *(tag for tag in found if tag not in tags)) if found and _is_list(tags) else tags


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


def retagged(existing: Record, record: Record, *, tags_given: bool) -> Record:
    """Return a changed record with the standing tags of its new text instead of those of the old text.

    It is returned unchanged if the text is the same or the caller passed tags.
    """
    if tags_given or existing.content == record.content:
        return record
    kept = [tag for tag in record.tags if tag not in WISHES]
    stands = _SAID.isdisjoint(existing.tags)
    return record.changed(tags=_with_standing_tags(record.content, _facts_of(record), kept, stands=stands))


def on_branch(record: Record, *, other: bool) -> Record:
    """Return a turn as one of an abandoned branch, or of the conversation again."""
    kept = [tag for tag in record.tags if tag != OTHER_BRANCH]
    return record.changed(tags=[*kept, OTHER_BRANCH] if other else kept)


def _facts_of(record: Record) -> dict[str, Any]:
    return {"role": record.role, "source": record.source, "kind": record.kind}


def check_limits(record: Record, intake: Intake) -> None:
    """Check a record against the limits and the reserved kinds.

    Raises:
        InvalidRecordError: It exceeds a limit, or its kind is reserved.
    """
    if record.kind.startswith(INTERNAL):
        raise InvalidRecordError("kind", record.kind, f"may not begin with {INTERNAL!r}: such kinds are internal")
    intake.limits.check(record)
