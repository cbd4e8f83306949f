"""The operations that change records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, get_args

from recollect.arguments.checks import check_choice, check_count, check_label, check_seconds, check_text
from recollect.errors import InvalidArgumentError, InvalidOperationError
from recollect.filters.text_form import check_filter
from recollect.filters.tree import Filter
from recollect.operations.base import ABSENT, RIGHTS, WRITE, Operation, Right, checked_ids, checked_parts, expectation
from recollect.records.messages import Turn
from recollect.records.origins import ORIGINS, OWNER, Origin, check_origin
from recollect.records.record import Record, check_field, check_instant, record_id
from recollect.text.languages import check_tag

#: What can happen to a fact that is stored already.
IfExists: TypeAlias = Literal["keep", "update", "error"]
IF_EXISTS: tuple[IfExists, ...] = get_args(IfExists)
#: What can happen to an item that cannot be stored.
OnError: TypeAlias = Literal["report", "raise"]
ON_ERROR: tuple[OnError, ...] = get_args(OnError)
#: What an id means that no record has or had.
Missing: TypeAlias = Literal["raise", "ignore"]
MISSING_IDS: tuple[Missing, ...] = get_args(Missing)
#: The fields that `AddMessages` gives to new turns.
MESSAGE_FIELDS = ("user", "agent", "conversation", "session", "time", "tags", "importance")
#: The classes of origin that what a tool returns can have: a tool may also be a form that the user fills in.
_OF_TOOLS = tuple(each for each in ORIGINS if each != OWNER)


@dataclass(frozen=True, kw_only=True)
class Remember(Operation, name="remember", right=WRITE, result="Outcome"):
    """Store a record. The result is an `Outcome`.

    Attributes:
        content: The text, or bytes of a `media_type`.
        id: The id of the record. None: it is derived from the content (`records.identity`).
        fields: The other fields of the record, by name.
        expect: Write only if the current record of that id has this hash, or is "absent"; otherwise ConflictError.
        if_exists: If the same fact is stored already: "keep" it, "update" the given fields, or "error".
        ttl: Seconds from now until the record expires. None: it expires at `expires`, or never.
        exact: Store exactly these fields under `id`, as for a copy of a record: the memory does not fill in a time, a
            language, a position or standing tags.
        standing: Whether the text may be a standing instruction or preference of its user. False for what was imported
            or quoted: of this, a class of origin above the writer's is lowered, too, and no error.
        keep_origin: With `exact`, store the class of origin that the copied record states, however trusted what it
            derives from is: the copy is of a memory of one's own. It is never above that of the writer.
    """

    content: str | bytes
    id: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    expect: str | None = None
    if_exists: IfExists = "keep"
    ttl: float | None = None
    exact: bool = False
    standing: bool = True
    keep_origin: bool = False

    def __post_init__(self) -> None:
        check_choice("if_exists", self.if_exists, IF_EXISTS)
        if self.exact is not False and self.exact is not True:
            raise InvalidArgumentError("exact", self.exact, "must be true or false")
        if self.standing is not False and self.standing is not True:
            raise InvalidArgumentError("standing", self.standing, "must be true or false")
        if self.keep_origin is not False and (self.keep_origin is not True or not self.exact):
            raise InvalidArgumentError("keep_origin", self.keep_origin, "must be true or false, and requires exact")
        if self.exact and (self.id is None or self.ttl is not None):
            raise InvalidArgumentError("exact", self.exact, "requires the id of the record, and excludes ttl")
        if self.expect is not None:
            object.__setattr__(self, "expect", expectation(self.expect))
        if self.id is not None:
            object.__setattr__(self, "id", record_id(self.id))
        if type(self.fields) is not dict and not isinstance(self.fields, Mapping):
            raise InvalidArgumentError("fields", self.fields, "must be a mapping of fields by name")
        for name in ("id", "content"):
            if name in self.fields:
                raise InvalidArgumentError("fields", name, "is an argument of its own, not one of the fields")
        for name in self.fields:
            if name != "unknown":
                check_field(name, "remember()")
        if not self.exact and self.fields.get("language") is not None:
            check_tag(self.fields["language"])
        if self.ttl is not None:
            if isinstance(self.ttl, timedelta):
                object.__setattr__(self, "ttl", self.ttl.total_seconds())
            check_seconds("ttl", self.ttl)
            if self.fields.get("expires") is not None:
                raise InvalidArgumentError("ttl", self.ttl, "cannot be combined with expires: pass one of them")


@dataclass(frozen=True, kw_only=True)
class RememberAll(Operation, name="remember_all", right=WRITE, result="Report"):
    """Store many records. The result is a `Report`.

    Attributes:
        items: What to store.
        on_error: "report": store the valid items, one commit for each thousand, and report the others; "raise": raise
            the first error and store nothing.
    """

    items: tuple[Remember, ...]
    on_error: OnError = "report"

    def __post_init__(self) -> None:
        check_choice("on_error", self.on_error, ON_ERROR)
        if not isinstance(self.items, (list, tuple)):
            raise InvalidArgumentError("items", self.items, "must be a list of remember operations")
        for item in self.items:
            if not isinstance(item, Remember):
                raise InvalidOperationError(item, "the items of remember_all are remember operations")


@dataclass(frozen=True, kw_only=True)
class AddMessages(Operation, name="add_messages", right=WRITE, result="Report"):
    """Store the turns of a conversation that are not stored yet. The result is a `Report`, one outcome per turn.

    Attributes:
        turns: The turns, in order: all of the conversation, its end, or only new ones.
        fields: Fields of the new turns: those in `MESSAGE_FIELDS`. Without a conversation, it is derived from the user,
            the agent and the first turn that is not a system prompt.
        tool_origins: The classes of origin of what tools return, by the names of the tools. What others return is of
            the class "web" if their names say so ("web_search", "fetch"), and else "tool".
    """

    turns: tuple[Turn, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    tool_origins: Mapping[str, Origin] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.tool_origins, Mapping):
            rule = 'must map names of tools to classes of origin, as {"search": "web"}'
            raise InvalidArgumentError("tool_origins", self.tool_origins, rule)
        for name, origin in self.tool_origins.items():
            check_text("tool_origins", name)
            check_origin("tool_origins", origin, _OF_TOOLS)
        if not isinstance(self.turns, (list, tuple)) or not all(map(_is_turn, self.turns)):
            raise InvalidOperationError(self.turns, "the turns of add_messages have a role and a content, both text")
        if not isinstance(self.fields, Mapping):
            raise InvalidArgumentError("fields", self.fields, "must be a mapping of fields by name")
        for name in self.fields:
            if name not in MESSAGE_FIELDS:
                raise InvalidArgumentError("fields", name, f"must be one of {', '.join(MESSAGE_FIELDS)}")


def _is_turn(turn: object) -> bool:
    if type(turn) is not Turn:
        return False
    role, speaker, content, _, metadata = turn
    return (
        type(role) is str
        and type(content) is str
        and (speaker is None or type(speaker) is str)
        and isinstance(metadata, Mapping)
    )


@dataclass(frozen=True, kw_only=True)
class Update(Operation, name="update", right=WRITE, result="Outcome"):
    """Change fields of a record. The result is an `Outcome`.

    Attributes:
        id: The record.
        changes: The new values by field, or a function from the current record to the changed one.
        expect: Write only if the current record has this hash; otherwise ConflictError.
    """

    id: str
    changes: Mapping[str, Any] | Callable[[Record], Record]
    expect: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", record_id(self.id))
        object.__setattr__(self, "expect", expectation(self.expect))
        if callable(self.changes):
            return
        if not isinstance(self.changes, Mapping):
            raise InvalidArgumentError("changes", self.changes, "must map fields to values, or be a function")
        for name in self.changes:
            check_field(name, "update()")
        if self.changes.get("language") is not None:
            check_tag(self.changes["language"])
        if "id" in self.changes:
            raise InvalidArgumentError("id", self.changes["id"], "cannot change: remember the content under the new id")
        if not self.changes:
            raise InvalidArgumentError("changes", {}, "must name at least one field")


@dataclass(frozen=True, kw_only=True)
class Supersede(Operation, name="supersede", right=WRITE, result="Outcome"):
    """Store a fact that replaces another one from a time on. The result is the `Outcome` of the new record.

    Attributes:
        id: The record to replace. It stays, with the end of its validity at `at`.
        content: The text, or bytes of a `media_type`, of the new record.
        at: The time from which the new record is valid, and until which the old one is; None: the time of the call.
        fields: Fields of the new record, by name. The others are those of the old record, except what belongs to its
            text (`engine.write.replacing`); None: the field is not carried over.
    """

    id: str
    content: str | bytes
    at: datetime | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", record_id(self.id))
        if self.at is not None:
            object.__setattr__(self, "at", check_instant("at", self.at))
        if not isinstance(self.fields, Mapping):
            raise InvalidArgumentError("fields", self.fields, "must be a mapping of fields by name")
        for name in self.fields:
            check_field(name, "supersede()")
        for name in ("id", "content", "supersedes", "valid_from"):
            if name in self.fields:
                raise InvalidArgumentError("fields", name, "follows from the other arguments")
        if self.fields.get("language") is not None:
            check_tag(self.fields["language"])


@dataclass(frozen=True, kw_only=True)
class Merge(Operation, name="merge", right=WRITE, result="Outcome"):
    """Replace records by one that is derived from them. The result is the `Outcome` of the new record.

    Attributes:
        content: The text, or bytes of a `media_type`, of the new record.
        sources: The ids of the records to replace, each with the hash that it must have, otherwise ConflictError; None:
            any.
        fields: The other fields of the new record, by name. Its `derived_from` has the ids of all sources.
    """

    content: str | bytes
    sources: Mapping[str, str | None]
    fields: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.sources, Mapping) or not self.sources:
            raise InvalidArgumentError("sources", self.sources, "must map the ids of records to their hashes")
        sources = {record_id(each): expectation(expected) for each, expected in self.sources.items()}
        if ABSENT in sources.values():
            raise InvalidArgumentError("sources", self.sources, "must map the ids of records to their hashes")
        object.__setattr__(self, "sources", sources)
        if not isinstance(self.fields, Mapping):
            raise InvalidArgumentError("fields", self.fields, "must be a mapping of fields by name")
        for name in self.fields:
            check_field(name, "merge()")
        for name in ("id", "content", "derived_from"):
            if name in self.fields:
                raise InvalidArgumentError("fields", name, "follows from the other arguments")
        if self.fields.get("language") is not None:
            check_tag(self.fields["language"])


@dataclass(frozen=True, kw_only=True)
class Touch(Operation, name="touch", right=WRITE, result="int"):
    """Let records expire later: a time from now. The result is how many of the ids have a live record.

    A record whose end would move by less than a tenth of the time is left as it is, so that not every use is a commit.

    Attributes:
        ids: The ids of the records.
        ttl: Seconds from now until they expire.
    """

    ids: tuple[str, ...]
    ttl: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", checked_ids(self.ids))
        if isinstance(self.ttl, timedelta):
            object.__setattr__(self, "ttl", self.ttl.total_seconds())
        check_seconds("ttl", self.ttl)


@dataclass(frozen=True, kw_only=True)
class Forget(Operation, name="forget", right=WRITE, result="Outcome"):
    """Forget a record; its history stays. The result is an `Outcome`.

    Attributes:
        id: Its id.
        expect: The hash that it must have.
        missing: What an id without any record, now or before, means: "raise" an error, or "ignore" it.
    """

    id: str
    expect: str | None = None
    missing: Missing = "raise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", record_id(self.id))
        object.__setattr__(self, "expect", expectation(self.expect))
        check_choice("missing", self.missing, MISSING_IDS)


@dataclass(frozen=True, kw_only=True)
class ForgetAll(Operation, name="forget_all", right=WRITE, result="int"):
    """Forget the records of several ids, as far as there are any. The result is how many were forgotten."""

    ids: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", checked_ids(self.ids))


@dataclass(frozen=True, kw_only=True)
class ForgetWhere(Operation, name="forget_where", right=WRITE, result="PartCounts"):
    """Forget every record that matches. The result is a `PartCounts`.

    Attributes:
        where: Which records.
        parts: The parts of the memory that are concerned, by name: "records", or what a facet keeps. None: all.
    """

    where: Filter
    parts: Collection[str] | None = None

    def __post_init__(self) -> None:
        check_filter(self.where)
        object.__setattr__(self, "parts", checked_parts(self.parts))


@dataclass(frozen=True, kw_only=True)
class Clear(Operation, name="clear", right=WRITE, result="PartCounts"):
    """Forget every record. The result is a `PartCounts`.

    Attributes:
        parts: The parts of the memory that are concerned, by name: "records", or what a facet keeps. None: all.
    """

    parts: Collection[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", checked_parts(self.parts))


@dataclass(frozen=True, kw_only=True)
class Sweep(Operation, name="sweep", right=WRITE, result="int"):
    """Remove expired records in a commit, at most `limit`, the longest expired first. The result is their number."""

    limit: int = 1000

    def __post_init__(self) -> None:
        check_count("limit", self.limit)


@dataclass(frozen=True, kw_only=True)
class ExecuteBatch(Operation, name="batch", right=WRITE, in_batch=False, can_have_key=True):
    """Perform operations as one atomic commit. The result is the list of their results.

    Attributes:
        operations: The operations, in order: those whose `in_batch` is true.
        actor: Who performs them; recorded in the commit.
        reason: Why; recorded in the commit.
        expect_head: Commit only if the newest commit has this seq; otherwise ConflictError.
    """

    operations: tuple[Operation, ...]
    actor: str | None = None
    reason: str | None = None
    expect_head: int | None = None

    def __post_init__(self) -> None:
        check_count("expect_head", self.expect_head, least=0, optional=True)
        for name in ("actor", "reason"):
            if getattr(self, name) is not None:
                check_label(name, getattr(self, name))
        for item in self.operations:
            if not isinstance(item, Operation) or not item.in_batch:
                raise InvalidOperationError(item, "cannot be part of a batch")

    @property
    def needs(self) -> Right:
        """The greatest right that an operation in the batch needs, and at least to write."""
        return max((self.right, *(item.needs for item in self.operations)), key=RIGHTS.index)

    @property
    def concerns_all(self) -> bool:
        """True if an operation in the batch concerns all namespaces of the store."""
        return any(item.concerns_all for item in self.operations)
