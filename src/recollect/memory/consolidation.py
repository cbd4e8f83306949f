"""`Consolidation`: groups of old records, each replaced by a summary that is derived from them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol

from recollect import filters as f
from recollect.arguments.json_form import json_form
from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls
from recollect.common.deadlines import checked
from recollect.common.reprs import ShownTable, line, shows_itself, table
from recollect.engine.results import Outcome, record_from_json, record_json
from recollect.errors import ConflictError, InvalidArgumentError, RecollectError, SummaryError, UnknownRecordError
from recollect.filters.text_form import Where, as_filter, check_filter
from recollect.memory.batch import Batch
from recollect.memory.manager.duplicates import merged_fields
from recollect.operations import Merge, Now, ReadHead, check_count
from recollect.policies import redact
from recollect.records.factories import OTHER_BRANCH
from recollect.records.origins import UNTRUSTED
from recollect.records.record import Instant, Record, check_instant
from recollect.text.manner import STANDING_TAGS
from recollect.text.summaries import LONGEST, extractive

#: The name of the built-in method, in the metadata of what it writes.
EXTRACTIVE = "extractive"
#: Maximum number of records of a group that are summarised at a time, unless a call says otherwise.
LARGEST = 50
#: The role of a turn that summarises turns. It is that of a system prompt, which no chat continues.
_ROLE = "system"


class Summariser(Protocol):
    """Returns a summary of texts, of at most 2,000 characters. A longer one is an error.

    It may also have a `name`, which is stored as the method, and `fitting(texts)`, which returns how many of the texts,
    from the first on, it can summarise at a time.
    """

    def __call__(self, texts: Sequence[str], /) -> str: ...


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class Summary:
    """The outcome of consolidation for one group, done or planned.

    Attributes:
        kind: The kind of its records.
        key: What they have in common, such as the name of the conversation.
        sources: The ids of the records, oldest first.
        text: The summary; "" if there is none, as in a dry run with a model.
        record: The record that took their place; None if they stayed.
        reason: Why they stayed; "" in a dry run, or if they did not.
    """

    kind: str
    key: str
    sources: tuple[str, ...]
    text: str = ""
    record: Record | None = None
    reason: str = ""

    def _table(self) -> ShownTable:
        return ShownTable(
            f"Summary of {len(self.sources)} {self.kind} {line(self.key)}: {line(self.reason or self.text)}", ()
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        record = None if self.record is None else record_json(self.record)
        parts = {"kind": self.kind, "key": self.key, "sources": list(self.sources), "text": self.text}
        return {**parts, "record": record, "reason": self.reason}

    @classmethod
    @json_form("a summary")
    def from_json(cls, data: dict[str, Any]) -> Summary:
        """Rebuild a summary from its JSON form."""
        record = data["record"]
        return cls(
            data["kind"],
            data["key"],
            tuple(data["sources"]),
            data["text"],
            None if record is None else record_from_json(record),
            data["reason"],
        )


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class Consolidated:
    """The result of `Memory.consolidate`.

    Attributes:
        groups: What was done with each group, ordered by kind and key.
        seq: The number of the commit, which `revert` takes back; None if nothing was changed, or within a scope.
    """

    groups: tuple[Summary, ...]
    seq: int | None = None

    @property
    def replaced(self) -> int:
        """The number of records that were replaced."""
        return sum(len(each.sources) for each in self.groups if each.record is not None)

    @property
    def failed(self) -> tuple[Summary, ...]:
        """The groups whose records stayed."""
        return tuple(each for each in self.groups if each.reason)

    def _table(self) -> ShownTable:
        def row(each: Summary) -> tuple[str, ...]:
            return each.kind, line(each.key, 30), str(len(each.sources)), line(each.reason or each.text, 80)

        return table(f"Consolidated {self.replaced} records", ("kind", "group", "records", "summary"), self.groups, row)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"replaced": self.replaced, "seq": self.seq, "groups": [each.to_json() for each in self.groups]}


@all_named
class Consolidation(Calls):
    """The call that replaces groups of records by summaries."""

    def consolidate(
        self,
        older_than: Instant | timedelta | None = None,
        min_count: int = 10,
        *,
        max_count: int = LARGEST,
        where: Where | None = None,
        summariser: Summariser | None = None,
        strict: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Consolidated:
        """Replace groups of records by a summary each: turns of a conversation, facts about an entity or a user, ...

            memory.consolidate(timedelta(days=30))

        Turns are grouped by conversation, facts about entities by entity, facts about users by user, knowledge by
        source, and tasks by success; records of different users or agents are never summarised together. Records that
        have no such value stay, and so do other kinds, pinned records, standing instructions and superseded facts. Of a
        group with more than `max_count` records the newest are summarised, of a conversation the oldest; call it again
        for the others.

        A summary has the kind of its group, the latest time, the highest importance, all tags, the first value of each
        name in the metadata, and `derived_from` with the ids of all records that it replaces. These go with the cause
        "superseded". Everything is one commit, which `revert` takes back; the versions stay in the history. A record
        that another writer changed meanwhile stays, with its group.

        Args:
            older_than: Only records with this time or an earlier one; a timedelta is an age. Default: all records.
            min_count: Minimum number of records of a group, 2 or more.
            max_count: Maximum number of records of a group that are summarised at a time, 2 or more. If it is below
                `min_count`, no group is large enough.
            where: Only records that match this filter or text form of one.
            summariser: A function from texts to a summary of at most 2,000 characters, such as
                `recollect.models.ModelSummariser`. It gets texts that `recollect.policies.redact` has redacted.
                Default: the built-in one, which chooses sentences, word for word, and needs no model.
            strict: Raise the error of a summary that fails, and change nothing. Otherwise the records of its group
                stay, and the group has the reason.
            dry_run: Change nothing; return what would be done. No summariser but the built-in one is called.
            actor: Who makes the change; recorded in the commit.
            reason: Why the change is made; recorded in the commit.

        Returns:
            What was done with each group.

        Raises:
            InvalidArgumentError: An argument is invalid.
            SummaryError: With `strict`, a summary failed; nothing was changed.
            StoreError: The store failed; nothing was changed.

        Cost:
            Reads the records of the five kinds that are old enough; one durable commit. The write lock is not held
            while summaries are made.
        """
        check_count("min_count", min_count, least=2)
        check_count("max_count", max_count, least=2)
        condition = as_filter(where)
        check_filter(condition)
        now: datetime = self.execute(Now())
        if older_than is not None:
            limit = now - older_than if isinstance(older_than, timedelta) else check_instant("older_than", older_than)
            condition = condition & f.before(limit + timedelta.resolution)  # at that time, too
        groups = groups_of(self.find(f.kind(*GROUPED_BY) & condition, order="id"), min_count, max_count, now)
        method = _Method(summariser, min_count, strict=strict, dry_run=dry_run)
        prepared = [method.summary(group) for group in checked(groups)]
        if dry_run or not any(each.text for each, _ in prepared):
            return Consolidated(tuple(each for each, _ in prepared))
        with self.batch(actor=actor, reason=reason) as batch:
            seq = None if self.scope else batch.execute(ReadHead()).seq + 1
            done = [
                each if each.reason else _replaced(batch, each, group, method.name, now) for each, group in prepared
            ]
        replaced = any(each.record is not None for each in done)
        return Consolidated(tuple(done), seq if replaced else None)

    def batch(
        self, *, actor: str | None = None, reason: str | None = None, expect_head: int | None = None
    ) -> AbstractContextManager[Batch]:
        """Combine several calls into one atomic commit."""
        raise NotImplementedError


class _Method:
    """The options by which the summaries of one call are made.

    Args:
        summariser: The summariser; None: the built-in one.
        min_count: Minimum number of records of a group.
        strict: Raise errors of the summariser.
        dry_run: Call no summariser but the built-in one.
    """

    def __init__(self, summariser: Summariser | None, min_count: int, *, strict: bool, dry_run: bool) -> None:
        if summariser is not None and not callable(summariser):
            raise InvalidArgumentError("summariser", summariser, "must be a function from texts to a summary")
        self._summariser = summariser
        self._min_count = min_count
        self._strict = strict
        self._calls = summariser is None or not dry_run
        self.name = EXTRACTIVE if summariser is None else str(getattr(summariser, "name", None) or "summariser")

    def summary(self, group: Group) -> tuple[Summary, Sequence[Record]]:
        """Return the summary of a group, or why there is none, and the records that it summarises.

        Raises:
            SummaryError: It failed, and `strict` is set.
        """
        records = group.records
        texts = [_text(record) for record in records]
        text = reason = ""
        try:
            if self._summariser is not None:
                texts = [redact(text).text for text in texts]
                fitting = getattr(self._summariser, "fitting", None)
                records = records[: len(texts) if fitting is None else fitting(texts)]
                if len(records) < self._min_count:
                    raise ValueError(f"only {len(records)} of the texts fit in the window of the model")
            if self._calls:
                text = self._checked(
                    extractive(texts) if self._summariser is None else self._summariser(texts[: len(records)])
                )
        except Exception as error:  # a summariser is the caller's code
            reason = (
                str(error) if isinstance(error, (RecollectError, ValueError)) else f"{type(error).__name__}: {error}"
            )
            if self._strict:
                raise SummaryError(group.kind, group.key, reason) from error
        ids = tuple(record.id for record in records)
        return Summary(group.kind, group.key, ids, text, reason=reason), records

    @staticmethod
    def _checked(text: object) -> str:
        if not isinstance(text, str) or not text.strip():
            raise ValueError("there is no text that summarises them")
        if len(text) > LONGEST:
            raise ValueError(f"the summary has {len(text)} characters, more than {LONGEST}")
        return text


def _text(record: Record) -> str:
    """Return the text of a record for a summary; of a turn with its author."""
    text = str(record.content)
    author = record.speaker or record.role
    return f"{author}: {text}" if record.kind == "conversation" and author and record.role != _ROLE else text


def _replaced(batch: Batch, summary: Summary, records: Sequence[Record], method: str, now: datetime) -> Summary:
    """Store a summary in the place of its records. If one was changed meanwhile, they stay."""
    fields = merged_fields(records)
    fields["metadata"] = {
        **fields.get("metadata", {}),
        "consolidated_from": len(records),
        "consolidated_at": now.astimezone(UTC).isoformat(),
        "original_ids": list(summary.sources),
        "consolidation_method": method,
    }
    if summary.kind == "conversation":
        fields["role"] = _ROLE
        fields.pop("speaker", None)
    hashes: dict[str, str | None] = {record.id: record.hash for record in records}
    try:
        outcome: Outcome = batch.execute(Merge(content=summary.text, sources=hashes, fields=fields))
    except (ConflictError, UnknownRecordError) as error:
        return replace(summary, text="", reason=f"a record was changed meanwhile: {error}")
    if outcome.verdict is not None:
        return replace(summary, text="", reason=f"a policy does not allow it: the text {outcome.verdict.reason}")
    return replace(summary, record=outcome.record)


# The groups that consolidation summarises: records of one kind that belong together.
#
# Turns belong together by their conversation, facts about entities by their entity, facts about users by their user,
# knowledge by its source, and tasks by their success. Records without that belong to no group. Other kinds are never
# grouped, nor are pinned records and standing instructions, which recall returns by themselves, nor turns that were
# abandoned and facts that are not true any more, which a summary would state as if they were. What tools, documents and
# the web say is apart from the rest, since a summary has the least class of origin of what it summarises.

#: Kind -> what its records are grouped by.
GROUPED_BY = {
    "conversation": "conversation",
    "entity": "entity",
    "user_fact": "user",
    "knowledge": "source",
    "task": "success",
}
#: Records of different owners are never summarised together.
_OWNERS = ("user", "agent")
_LEFT_OUT = frozenset((*STANDING_TAGS, OTHER_BRANCH))


class Group(NamedTuple):
    """Records that belong together.

    Attributes:
        key: What they have in common, such as the name of the conversation.
        records: The records, oldest first.
    """

    kind: str
    key: str
    records: tuple[Record, ...]


def groups_of(records: Iterable[Record], min_count: int, max_count: int, now: datetime) -> list[Group]:
    """Return the groups of records, ordered by kind, key and owner.

    A group is cut to `max_count` records, its newest, of a conversation its oldest, and then needs `min_count`.

    Args:
        min_count: Minimum number of records of a group after the cut.
        max_count: Maximum number of records of a group.
        now: Records whose validity ended at or before this time are left out.
    """
    found: dict[tuple[str, str, Hashable], list[Record]] = {}
    for record in records:
        key = _key(record)
        ended = record.valid_to is not None and record.valid_to <= now
        if key is not None and not ended and not record.pinned and _LEFT_OUT.isdisjoint(record.tags):
            origin = record.effective_origin
            apart = origin if origin in UNTRUSTED else ""
            owner = (*(getattr(record, name) or "" for name in _OWNERS), apart)
            found.setdefault((record.kind, key, owner), []).append(record)
    groups = [
        Group(kind, key, _cut(kind, members, max_count))
        for (kind, key, _), members in sorted(found.items(), key=lambda it: it[0])
    ]
    return [group for group in groups if len(group.records) >= min_count]


def _key(record: Record) -> str | None:
    name = GROUPED_BY.get(record.kind)
    if name is None or isinstance(record.content, bytes) or not record.searchable:
        return None
    if name == "success":
        success = record.metadata.get(name)
        return str(success).lower() if isinstance(success, (bool, str)) else None
    value: str | None = getattr(record, name)
    return value


def _cut(kind: str, records: Sequence[Record], count: int) -> tuple[Record, ...]:
    if kind == "conversation":
        return tuple(sorted(records, key=lambda each: (each.position or 0, *_age(each)))[:count])
    return tuple(sorted(records, key=_age)[-count:])


def _age(record: Record) -> tuple[float, str]:
    return (record.time.timestamp() if record.time is not None else float("-inf"), record.id)
