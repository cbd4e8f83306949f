"""`Calls`: the methods that memories and batches share. Each creates an operation and passes it to `execute`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta, tzinfo
from typing import Any, Unpack

from recollect.arguments.signatures import all_named
from recollect.calls.messages import MessageList
from recollect.calls.owners import Owners
from recollect.common.zones import zone_of
from recollect.engine.results import Failed, Hits, MemoryStats, Outcome, PartCounts, RecordList, Report, ValueCount
from recollect.errors import InvalidArgumentError, RecollectError, RejectedError
from recollect.filters import all_of
from recollect.filters.text_form import Where, as_filter, check_filter
from recollect.filters.tree import Filter, Originates
from recollect.operations import (
    MONTH_S,
    Clear,
    Count,
    DistinctValues,
    Find,
    Forget,
    ForgetAll,
    ForgetWhere,
    Get,
    GetAll,
    Grep,
    IfExists,
    MinConfidence,
    Missing,
    OnError,
    Operation,
    Order,
    Recall,
    Remember,
    RememberAll,
    Stats,
    Supersede,
    Touch,
    Update,
    Zone,
)
from recollect.records.codec import RawField
from recollect.records.origins import Origin, at_least, check_origin
from recollect.records.record import FieldChanges, Fields, Instant, Record, stored_names

#: Keys of a mapping that are arguments of `Remember`, not fields of the record.
_ARGUMENTS = ("content", "id", "expect", "if_exists", "ttl", "standing")
#: What `remember_all` accepts: a text, a mapping of fields with a "content", a record, or a `Remember` operation.
Item = str | Mapping[str, Any] | Record | Remember


class RecollectWarning(UserWarning):
    """The call succeeded, but part of what was passed was not stored."""


@all_named
class Calls:
    """The calls that memories and batches share. Each creates an operation and passes it to `execute`."""

    def execute(self, operation: Operation, *, actor: str | None = None, reason: str | None = None) -> Any:
        """Execute an operation (`recollect.operations`) and return its result.

        Args:
            actor: Who makes the change; recorded in the commit.
            reason: Why the change is made; recorded in the commit.
        """
        raise NotImplementedError

    @property
    def scope(self) -> dict[str, str]:
        """The values of user, agent and conversation that all its records have; empty if it is not scoped."""
        raise NotImplementedError

    def _owners(self, user: str | None, agent: str | None, conversation: str | None) -> Owners:
        """Return whose records a call is about: within a scope, those of the scope."""
        return Owners.checked(self.scope, user, agent, conversation)

    def _read(
        self,
        where: Where | None,
        user: str | None,
        agent: str | None,
        conversation: str | None,
        min_origin: Origin | None = None,
    ) -> Filter:
        """Return the condition of a call that reads."""
        condition = as_filter(where)
        if min_origin is not None:
            check_filter(condition)
            condition = all_of(condition, from_origin(min_origin))
        if user is None and agent is None and conversation is None:
            return condition
        check_filter(condition)
        return all_of(condition, *self._owners(user, agent, conversation).readable)

    def remember(
        self,
        content: str | bytes,
        *,
        id: str | None = None,  # noqa: A002 - the field's name
        expect: str | Record | None = None,
        if_exists: IfExists = "keep",
        ttl: float | timedelta | None = None,
        **fields: Unpack[Fields],
    ) -> Record:
        """Store `content` and return the record. It is durable when this returns, or, in a batch, when the batch ends.

        Without an `id`, the id is derived from the kind, the text, and fields such as user, conversation and speaker,
        so that remembering the same fact again changes nothing. If a different text already has the requested id, the
        new record is stored under the id with a counter ("note-2"), unless `if_exists` is "update" or "error".

        A turn (kind "conversation", with a conversation) that has neither id nor position is appended to its
        conversation, even if it repeats an earlier turn.

        Args:
            content: The text to remember, or bytes with a `media_type`.
            id: An id of your own, at most 255 bytes; default: derived from the content.
            expect: Compare-and-set: write only if the record with this id has this hash (or is this record), or, with
                "absent", only if there is none. The existing record is replaced completely: fields that are not
                passed are removed. If several callers expect the same state, one writes and each of the others gets a
                ConflictError, so "absent" can serve as a lock.
            if_exists: If the same fact is already stored: "keep" it as it is (with a RecollectWarning if other values
                were passed), "update" the fields that were passed, or raise an "error".
            ttl: Seconds, or a timedelta, after which the record expires; above 0 and at most a hundred years. Pass
                either `ttl` or `expires`.
            **fields: Fields of the record (see `Record`): kind, media_type, role, speaker, user, agent, conversation,
                session, position, entity, source, tags, metadata, time, valid_from, valid_to, importance, expires,
                supersedes, derived_from, parent, order, language, pinned, trust, origin and searchable. `time` defaults
                to now.

        Returns:
            The stored record.

        Raises:
            InvalidRecordError: A field has an invalid value or exceeds a limit.
            InvalidArgumentError: Another argument is invalid.
            UnknownArgumentError: There is no such field.
            ConflictError: `expect` is not met. Its `satisfied` is true if the stored record already is as requested.
            RecordExistsError: The fact is stored and `if_exists` is "error", or a scope shows another record under
                this id.
            ScopeError: A field lies outside the scope.
            QuotaError: The record does not fit in the quota.
            RejectedError: A policy of the memory does not allow the text (`set_policies`).
            StoreError: The store failed.

        Nothing is changed if this raises, except that after a CommitInDoubtError (a StoreError) the outcome is
        unknown.

        Cost:
            One durable commit, O(log n).
        """
        outcome: Outcome = self.execute(
            Remember(content=content, id=id, fields=fields, expect=expect, if_exists=if_exists, ttl=ttl)  # type: ignore[arg-type]
        )
        return kept_or_stored(outcome)

    def remember_all(self, items: Iterable[Item], *, on_error: OnError = "report") -> Report:
        """Store many records.

        A `Record` is copied exactly: fields that it does not have, such as a time, are not filled in. For texts and
        mappings, missing fields are filled in as by `remember`.

        Turns without ids and positions are recognised if the conversation is passed again: of a longer list, only the
        new turns are added.

        If items fail, a RecollectWarning is issued. If the store fails, earlier commits remain and all later items are
        listed as failed. (A batch raises the StoreError instead.)

        Args:
            items: Texts, mappings of fields with a "content", records, or `Remember` operations. A mapping with
                "standing": false is never taken for a standing instruction or preference, whatever its text says.
            on_error: "report": store the valid items, in durable commits of up to 1,000 items, and list the others in
                `report.failed`. "raise": raise the first error and store nothing.

        Returns:
            One outcome per stored item, and the items that failed, each with its index and the reason.

        Raises:
            InvalidArgumentError: `items` is not an iterable of items, or `on_error` is invalid.
            RecollectError: With `on_error="raise"`, the first error.

        Cost:
            About a tenth of `remember` per item. A conversation that is passed again is read at the first call in a
            process, and later compared in memory.
        """
        return warned(store_all(self, items, on_error))

    def add_messages(
        self,
        messages: Iterable[Any],
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        session: str | None = None,
        time: Instant | None = None,
        tags: Iterable[str] = (),
        tool_origins: Mapping[str, Origin] | None = None,
    ) -> Report:
        """Store the messages of a chat that are not stored yet: pass the list that you send to the model, each time.

            messages = [{"role": "user", "content": "I moved to Oslo."}]
            memory.add_messages(messages, user="ana", conversation="chat-1")
            messages.append({"role": "assistant", "content": "Congratulations!"})
            memory.add_messages(messages, user="ana", conversation="chat-1")  # adds only the answer

        A message has the form of OpenAI's Chat Completions or Responses API or of Anthropic's Messages API: a
        dictionary, or an object of their SDKs (`response.choices[0].message`, the items of `response.output`,
        Anthropic's `response`). The same text in another shape is the same turn. Results of tools are turns with the
        role "tool"; a picture or a file is described in brackets, such as `[image: image/png]`; what has no field in a
        record is in its metadata.

        The list may be the whole conversation, its end (if you trim it), or only new messages. Stored turns are
        recognised by an overlap at the beginning or the end of the conversation; a new answer to the same message is
        a new turn. A message that is passed by itself is new, except as the first of its conversation; several that
        equal the last turns of the conversation are a repetition. Turns that were forgotten stay forgotten.

        Args:
            messages: The messages, in order. Messages without text and other parts fail.
            user: The user to whom the turns belong.
            agent: The agent that stores them.
            conversation: The name of the conversation. Default: derived from the user, the agent and the first message
                that is not a system prompt, so pass one if you trim the list or if conversations begin alike.
            session: The session of the new turns.
            time: The time of new messages that do not state one; default: now.
            tags: Tags of the new turns.
            tool_origins: The classes of origin (docs/trust.md) of what tools return, by their names, such as
                `{"search": "web"}`. Others are of the class "web" if their names say so ("web_search", "fetch"), and
                else "tool". An answer that follows the results of tools is of the least of their classes.

        Returns:
            One outcome per turn, and the messages that failed, each with its index and the reason.

        Raises:
            InvalidArgumentError: `messages` is not a list of messages.
            InvalidRecordError: A field is invalid.
            ScopeError: A field lies outside the scope.

        A RecollectWarning is issued if messages failed. The others are stored.

        Cost:
            A durable commit for the new turns, and two to three microseconds for each message that is passed again
            (docs/benchmarks.md). The first call in a process reads the conversation.
        """
        read = MessageList(messages)
        fields = {"user": user, "agent": agent, "conversation": conversation, "session": session, "time": time}
        operation = read.operation({**fields, "tags": tags or None}, tool_origins)
        report: Report = self.execute(operation)
        return warned(read.report(report))

    def recall(
        self,
        question: str,
        k: int = 10,
        where: Where | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        min_origin: Origin | None = None,
        reference: Instant | None = None,
        min_confidence: MinConfidence = 0.0,
        language: str | None = None,
        wait_for_vectors: bool = False,
        recency: float = 0.0,
        recency_half_life: float | timedelta = MONTH_S,
        importance: float = 0.0,
        importance_half_life: float | timedelta | None = None,
        concise: bool = False,
    ) -> Hits:
        """Return the records that best answer a question, best first, each with its score and an explanation.

        A hit shares a word with the question, is near a turn that does, or has the date that the question
        names. With an embedder, a record that is similar enough in meaning is a hit too. Unknown or misspelt words are
        matched by the known words that they resemble. Equal scores are ordered by time, newest first, then by id.

        `hits.standing` contains standing instructions and preferences that match the filter, at most ten, the most
        relevant first. They do not count towards `k`.

        Args:
            question: The question, at most 64 KiB as UTF-8 by default (see `Limits`).
            k: Maximum number of hits, 1 or more.
            where: Return only records that match this filter, or this text form of one, such as "kind=user_fact and
                not tag=old" (see docs/filters.md). A filter never changes a score.
            user: Only records of this user and those without a user, also where the name comes from outside: it is
                compared, never parsed.
            agent: Only records of this agent and those without an agent.
            conversation: Only records of this conversation and those without one.
            min_origin: Only records of this class of origin (docs/trust.md) or a more trusted one: "owner", "user",
                "assistant", "tool", "document", "web" or "unknown".
            reference: The time that expressions such as "yesterday" are relative to: a datetime with a time zone, ISO
                8601 text, or a date (its midnight); without an offset, in the zone of the memory. Default: now.
            min_confidence: Leave out hits with a lower confidence, 0 to 1. "auto": the threshold that keeps 95 of 100
                right first hits, 0.31 (see docs/retrieval.md).
            language: The language of the question, as a BCP 47 tag; default: the language of the memory, or else
                detected.
            wait_for_vectors: First embed the texts that have no vector of the embedder yet, as `embed_all` does, so
                that records stored a moment ago are also found by meaning. Not in a batch.
            recency: What is added to the score of a hit whose time is the reference time, 0 to 1; 0: nothing.
            recency_half_life: The age, as seconds or a timedelta, at which half of that is added, at twice this age a
                quarter, and so on; default: 30 days.
            importance: What is added to the score of a hit of importance 1, 0 to 1, and in proportion for a lower one;
                0: nothing. Neither this nor `recency` makes a record a hit, or changes a confidence.
            importance_half_life: The age at which half of that is added; None: age makes no difference.
            concise: Return only those of the best `k` hits that add something to the ones before them, for prompts:
                about half as many have 95 per cent of the evidence (see docs/retrieval.md). `hits.left_out` lists the
                others, and why.

        Raises:
            InvalidArgumentError: `k` is below 1, the question is empty or too long, or another argument is invalid.
            ScopeError: This memory is scoped to another user, agent or conversation.
            UnsupportedError: `wait_for_vectors` without an embedder, or in a batch.
            EmbedderError: With `wait_for_vectors`, the embedder cannot be used.
            StoreError: The store failed.

        Cost:
            Grows with the number of occurrences of the question's words. The first call loads or builds the index.
        """
        hits: Hits = self.execute(
            Recall(
                question=question,
                k=k,
                where=self._read(where, user, agent, conversation, min_origin),
                reference=reference,  # type: ignore[arg-type]
                min_confidence=min_confidence,
                language=language,
                wait_for_vectors=wait_for_vectors,
                recency=recency,
                recency_half_life=recency_half_life,  # type: ignore[arg-type]
                importance=importance,
                importance_half_life=importance_half_life,  # type: ignore[arg-type]
                concise=concise,
            )
        )
        return hits

    def grep(
        self,
        query: str,
        limit: int = 20,
        where: Where | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        min_origin: Origin | None = None,
    ) -> RecordList:
        """Return the records whose text matches a full-text query, newest first.

        Args:
            query: Words (all must occur), "phrases", prefix*, and, or, not, parentheses. At most 8 KiB as UTF-8 by
                default (see `Limits`), 256 words, and 64 words per phrase.
            limit: Maximum number of records, 1 or more.
            where: Return only records that match this filter or text form of one.
            user: Only records of this user and those without a user, as for `recall`.
            agent: Only records of this agent and those without an agent.
            conversation: Only records of this conversation and those without one.
            min_origin: Only records of this class of origin (docs/trust.md) or a more trusted one: "owner", "user",
                "assistant", "tool", "document", "web" or "unknown".

        Raises:
            InvalidQueryError: The query is malformed or exceeds a limit.
            ScopeError: This memory is scoped to another user, agent or conversation.

        Cost:
            First updates the full-text index, in proportion to what was written since the last call.
        """
        found: RecordList = self.execute(
            Grep(query=query, limit=limit, where=self._read(where, user, agent, conversation, min_origin))
        )
        return found

    def get(self, id: str) -> Record | None:  # noqa: A002 - the field's name
        """Return the record with an id, or None if there is none or it has expired."""
        record: Record | None = self.execute(Get(id=id))
        return record

    def get_all(self, ids: Iterable[str]) -> list[Record | None]:
        """Return the records of several ids, in their order, of one moment: None where there is none.

        Cost:
            One query of the store for a hundred ids; within a scope, one for each id.
        """
        records: list[Record | None] = self.execute(GetAll(ids=ids))  # type: ignore[arg-type]
        return records

    def find(
        self,
        where: Where | None = None,
        limit: int | None = None,
        order: Order = "newest",
        *,
        after: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        min_origin: Origin | None = None,
        with_commit: bool = False,
    ) -> RecordList:
        """Return the records that match a filter.

            page = memory.find("kind=task", limit=50, user="ana")
            while page.cursor:
                page = memory.find("kind=task", limit=50, user="ana", after=page.cursor)

        Args:
            where: The filter or its text form; default: all records.
            limit: Maximum number of records, 1 or more; None: no limit.
            order: "newest", "oldest", "importance" (highest first), "position" (by conversation and position), "last"
                (by conversation, with the highest position first) or "id".
            after: Return the records after a page: the `cursor` of an earlier result with the same filter and order.
                Of the records that stay as they are, none is returned twice or left out, whatever is written between
                two pages.
            user: Only records of this user and those without a user, as for `recall`.
            agent: Only records of this agent and those without an agent.
            conversation: Only records of this conversation and those without one.
            min_origin: Only records of this class of origin (docs/trust.md) or a more trusted one: "owner", "user",
                "assistant", "tool", "document", "web" or "unknown".
            with_commit: Return in `committed`, too, when each record was last changed.

        Returns:
            A list with a `cursor`, which is None if there are no more records.

        Raises:
            InvalidArgumentError: `after` is the cursor of another memory, scope or order, or an argument is invalid.
            ScopeError: This memory is scoped to another user, agent or conversation.

        Cost:
            In proportion to the number of records with the kind, user, conversation, entity or time that the filter
            names; if it names none, to the number of all records. With `limit`, in order of time, in proportion to the
            records that are read until it is reached, wherever the page begins.
        """
        condition = self._read(where, user, agent, conversation, min_origin)
        found: RecordList = self.execute(
            Find(where=condition, limit=limit, order=order, after=after, with_commit=with_commit)
        )
        return found

    def count(
        self,
        where: Where | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> int:
        """Return how many records `find` returns; without arguments, how many there are."""
        found: int = self.execute(Count(where=self._read(where, user, agent, conversation)))
        return found

    def values(
        self,
        field: str,
        *,
        prefix: str = "",
        where: Where | None = None,
        limit: int | None = None,
        after: bool | float | str | None = None,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> list[ValueCount]:
        """Return the distinct values of a field, sorted, each with the number of records that have it.

            used = {tag: records for tag, records in memory.values("tag")}
            memory.values("meta.color", where="kind=task")

        Truth values come first, then numbers, then texts by code point. A list in the metadata has each of its items as
        a value; null and objects are no values.

        Args:
            field: "tag", a text field ("kind", "role", "speaker", "user", "agent", "conversation", "session", "entity",
                "source"), or `meta.KEY` or `meta[KEY][KEY]`.
            prefix: Only texts that begin with this.
            where: Only records that match this filter or text form of one.
            limit: Maximum number of values.
            after: Only values after this one, such as the last of the page before.
            user: Only records of this user and those without a user, as for `recall`.
            agent: Only records of this agent and those without an agent.
            conversation: Only records of this conversation and those without one.

        Raises:
            InvalidArgumentError: There is no such field.

        Cost:
            O(records), in memory; the first call for a field decodes all records.
        """
        where = self._read(where, user, agent, conversation)
        found: list[ValueCount] = self.execute(
            DistinctValues(field=field, prefix=prefix, where=where, limit=limit, after=after)
        )
        return found

    def update(
        self,
        /,
        id: str,  # noqa: A002 - the field's name
        change: Callable[[Record], Record] | None = None,
        *,
        expect: str | Record | None = None,
        **changes: Unpack[FieldChanges],
    ) -> Record:
        """Change fields of a record and return the changed record.

            memory.update(id, importance=0.9, tags=["travel"])
            memory.update(id, lambda record: record.changed(content=record.content + "!"))

        Args:
            id: The id of the record.
            change: A function that takes the record and returns the changed one. `Record.changed` takes a time without
                an offset as UTC, not in the zone of the memory.
            expect: Compare-and-set: change the record only if it has this hash (or is this record). This is checked
                before anything else. If several callers expect the same record, one changes it and each of the others
                gets a ConflictError.
            **changes: The new values of fields, which are those of `remember` and content; None removes a field. Pass
                either a function or fields.

        Raises:
            UnknownRecordError: There is no live record with this id.
            ConflictError: `expect` is not met. Its `satisfied` is true if the record already has the requested values.
            InvalidRecordError: The changed record would be invalid, or its id would change.
            InvalidArgumentError: Neither a function nor fields were passed, or both, or `expect` is invalid.
            UnknownArgumentError: There is no such field.
            RecordExistsError: The record would move into a scope that already shows another one under its id.
            ScopeError: The changed record would lie outside the scope.
            QuotaError: The changed record does not fit in the quota.
            RejectedError: A policy of the memory does not allow the text (`set_policies`).
            StoreError: The store failed.

        Nothing is changed if this raises, except that after a CommitInDoubtError (a StoreError) the outcome is
        unknown.
        """
        if (change is None) == (not changes):
            raise InvalidArgumentError("changes", changes, "pass either fields to change or one function")
        operation = Update(id=id, changes=changes if change is None else change, expect=expect)  # type: ignore[arg-type]
        return changed(self.execute(operation))

    def supersede(
        self,
        /,
        id: str,  # noqa: A002 - the field's name
        content: str | bytes,
        *,
        at: Instant | None = None,
        **fields: Unpack[Fields],
    ) -> Record:
        """Replace a fact by a new one from a time on, and return the new record. The old one stays, with its text.

            rome = memory.remember("Ana lives in Rome", user="ana", kind="user_fact", valid_from="2024-05-01")
            memory.supersede(rome.id, "Ana lives in Oslo", at="2026-03-01")

        The new record is valid from `at` on (`valid_from`), the old one until then (`valid_to`, cause "superseded"),
        and `supersedes` of the new one names the old one. `valid_at(time)` selects what is true at a time. All of this
        is one commit, and `revert` takes it back.

        Args:
            id: The id of the record to replace.
            content: The new text, or bytes with a `media_type`.
            at: The time from which the new text is true, within the validity of the old record; default: now. `time`
                only says when the new record was made, so a RecollectWarning asks for this one.
            **fields: Fields of the new record. Those that are not passed are carried over from the old one, except
                media_type, position, time, valid_to and derived_from, which belong to its text; None leaves a field
                out. `time` defaults to now.

        Raises:
            UnknownRecordError: There is no live record with this id.
            ValidityError: The record is not valid at that time: it was replaced earlier, or begins later.
            InvalidArgumentError: The text is the same, or an argument is invalid.
            UnknownArgumentError: There is no such field.
            InvalidRecordError: A field has an invalid value or exceeds a limit.
            ScopeError: The new record would lie outside the scope.
            QuotaError: The records do not fit in the quota.
            RejectedError: A policy of the memory does not allow the text (`set_policies`).
            StoreError: The store failed.

        Nothing is changed if this raises, except that after a CommitInDoubtError (a StoreError) the outcome is
        unknown. In a batch, a QuotaError may leave one of two writes staged; the batch can then not be committed.

        Cost:
            One durable commit, O(log n).
        """
        if at is None and fields.get("time") is not None:
            warnings.warn(
                "time= is when the record was made; the new text is true from now on. Pass at= for the time from which "
                "it is true",
                RecollectWarning,
                stacklevel=_DEPTH - 1,
            )
        return changed(self.execute(Supersede(id=id, content=content, at=at, fields=fields)))  # type: ignore[arg-type]

    def touch(self, ids: Iterable[str], ttl: float | timedelta) -> int:
        """Let records expire later, in one commit, and return how many of the ids have a live record.

            memory.touch([record.id for record in used], ttl=3600)

        The end of each moves to `ttl` from now, also if it had none or a later one. It is left as it is if it would
        move by less than a tenth of `ttl`, so that a record that is often used is seldom written. No quota applies: a
        touch neither evicts a record nor is refused, and the end that it adds to a record takes 15 bytes.

        Args:
            ids: The ids of the records. An id without a live record is not counted, and is no error: the record may
                have expired just before.
            ttl: Seconds, or a timedelta; above 0 and at most a hundred years.

        Raises:
            InvalidArgumentError: An argument is invalid.
            StoreError: The store failed; nothing is changed.

        Cost:
            At most one durable commit, O(log n) for each record that is changed.
        """
        touched: int = self.execute(Touch(ids=ids, ttl=ttl))  # type: ignore[arg-type]
        return touched

    def forget(
        self,
        id: str,  # noqa: A002 - the field's name
        *,
        expect: str | Record | None = None,
        missing: Missing = "raise",
    ) -> bool:
        """Forget a record: it is no longer returned, and its history remains in the log.

        Args:
            id: The id of the record.
            expect: Compare-and-set: forget the record only if it has this hash (or is this record).
            missing: "ignore" an id without any record, as one that was forgotten before, or "raise" an error.

        Returns:
            True if the record was forgotten now; False if it had been forgotten or had expired before.

        Raises:
            UnknownRecordError: There has never been a record with this id; within a scope, also if it was forgotten
                before. Not with `missing="ignore"`.
            ConflictError: `expect` is not met.
        """
        outcome: Outcome = self.execute(Forget(id=id, expect=expect, missing=missing))  # type: ignore[arg-type]
        return outcome.status == "forgotten"

    def forget_all(self, ids: Iterable[str]) -> int:
        """Forget the records of several ids, in one commit, and return how many there were.

        Args:
            ids: The ids of the records. One without a live record is not counted, and is no error.

        Cost:
            At most one durable commit, O(log n) for each record.
        """
        count: int = self.execute(ForgetAll(ids=ids))  # type: ignore[arg-type]
        return count

    def forget_where(
        self,
        where: Where | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        parts: Collection[str] | None = None,
    ) -> PartCounts:
        """Forget every record that matches, in one commit, and return how many.

            memory.forget_where("tag=old", user="ana")

        What facets keep is forgotten, too: terms, nodes of outlines, texts with sparse codes and keys that match.

        Args:
            where: The filter, or its text form. It can be left out if an owner is passed.
            user: Only records of this user. Unlike in calls that read, those without a user are kept: they are shared.
            agent: Only records of this agent.
            conversation: Only records of this conversation.
            parts: The parts of the memory to look in: "records", or the names of what facets keep ("terms", "nodes",
                "sdrs", "keys"). Default: all.

        Returns:
            The number, which also has that of each part (`PartCounts.parts`).

        Raises:
            InvalidArgumentError: Neither a filter nor an owner was passed (`clear` forgets everything), or an argument
                is invalid.
            ScopeError: This memory is scoped to another user, agent or conversation.
        """
        named = {"user": user, "agent": agent, "conversation": conversation}
        if where is None and all(value is None for value in named.values()):
            rule = "pass a filter, or whose records to forget (clear() forgets all)"
            raise InvalidArgumentError("where", where, rule)
        condition = as_filter(where)
        check_filter(condition)
        where = all_of(condition, *self._owners(**named).own)
        forgotten: PartCounts = self.execute(ForgetWhere(where=where, parts=parts))
        return forgotten

    def clear(self, *, parts: Collection[str] | None = None) -> PartCounts:
        """Forget every record, and what facets keep, in one commit, and return how many.

        Args:
            parts: The parts of the memory, by name (see `forget_where`). Default: all.
        """
        forgotten: PartCounts = self.execute(Clear(parts=parts))
        return forgotten

    def stats(self, *, parts: Collection[str] | None = None) -> MemoryStats:
        """Return record counts and facts about the store, as a dictionary.

        - "namespace": the name of the namespace.
        - "records": the number of live records; "kinds": their number per kind.
        - "users", "conversations", "entities": the number of different ones.
        - "oldest", "newest": the earliest and the latest time of a record, in ISO format; None if there is none.
        - "parts": the number of records of each part of the memory by its name: "records", and what facets keep
          ("terms", "nodes", "sdrs", "keys") if there is any.
        - "seq", "root": the newest commit and the root hash; not within a scope.
        - "quota": the quota and how much of it is used by all parts that share it, if there is one; not within a scope.
        - "store": facts about the store; not within a scope.

        Args:
            parts: The parts to count, by name. Default: all.
        """
        stats: MemoryStats = self.execute(Stats(parts=parts))
        return stats


def from_origin(min_origin: Origin) -> Filter:
    """Return the condition that records have a class of origin, or a more trusted one.

    Raises:
        InvalidArgumentError: There is no such class.
    """
    return Originates(at_least(check_origin("min_origin", min_origin)))


def zone_of_store(calls: Calls) -> tzinfo:
    """Return the time zone of the store (see `recollect.open`)."""
    return zone_of(calls.execute(Zone()))


#: The frames between a warning and the caller of a call: the function that warns, the call, and its check (`named`).
_DEPTH = 4


def stored(outcome: Outcome) -> Record:
    """Return the record of an outcome.

    Raises:
        RejectedError: A policy rejected the text, or a record like it was rejected from quarantine.
    """
    record = outcome.checked().record
    if record is None and outcome.status == "quarantined":
        raise RejectedError("origin", "was rejected from quarantine before")
    assert record is not None
    return record


def changed(outcome: Outcome) -> Record:
    """Return the record of an outcome of a change; issue a RecollectWarning if it was only proposed.

    Raises:
        RejectedError: A policy rejected the text.
    """
    if outcome.status in ("proposed", "quarantined"):
        _warn_of_origin(outcome)
    return stored(outcome)


def _warn_of_origin(outcome: Outcome) -> None:
    """Warn that a record has no effect yet because of its class of origin."""
    if outcome.record is None:
        return
    if outcome.status == "proposed" and not outcome.asked_id:
        said = (
            f"{outcome.record.id} is stored as a proposal: what it asks for is not for its class of origin. "
            "A user accepts it with endorse()"
        )
    elif outcome.status == "proposed":
        said = (
            f"stored as a proposal, {outcome.record.id}: what it would change is of a higher class of origin. "
            "A user accepts it with endorse()"
        )
    else:
        said = f"{outcome.record.id} is in quarantine: a policy keeps it apart until quarantine.release()"
    warnings.warn(said, RecollectWarning, stacklevel=_DEPTH + 1)


def kept_or_stored(outcome: Outcome) -> Record:
    """Return the record of an outcome; issue a RecollectWarning if the fact was stored with other values.

    Raises:
        RejectedError: A policy rejected the text.
    """
    record = stored(outcome)
    if outcome.status in ("proposed", "quarantined"):
        _warn_of_origin(outcome)
    if outcome.status == "echo":
        warnings.warn(
            f"not stored: it only repeats {', '.join(outcome.sources)}, which this memory returned before",
            RecollectWarning,
            stacklevel=_DEPTH,
        )
    if outcome.differing:
        others = [name for name in outcome.differing if name != "origin"]
        advice = "change them with update() or if_exists='update'" if others else "endorse() raises it"
        warnings.warn(
            f"already remembered as {record.id}; kept its {', '.join(outcome.differing)}: {advice}",
            RecollectWarning,
            stacklevel=_DEPTH,
        )
    return record


def warned(report: Report) -> Report:
    """Return a report; issue a RecollectWarning if items failed."""
    if report.failed:
        index, reason = report.failed[0].index, report.failed[0].reason
        more = f" and {len(report.failed) - 1} more" if len(report.failed) > 1 else ""
        warnings.warn(
            f"item {index}{more} could not be stored: {reason} (all are in report.failed)",
            RecollectWarning,
            stacklevel=_DEPTH,
        )
    return report


def store_all(calls: Calls, items: Iterable[Item], on_error: OnError = "report") -> Report:
    """Store many records as `remember_all` does, without a warning if items fail."""
    if isinstance(items, (str, bytes, Mapping, Record)) or not isinstance(items, Iterable):
        raise InvalidArgumentError("items", items, "must be a list of things to remember")
    all_items = list(items)
    operations: list[Remember] = []
    positions: list[int] = []  # of the operations in `all_items`
    failed: list[Failed] = []
    for position, item in enumerate(all_items):
        try:
            operations.append(remember_operation(item))
        except RecollectError as error:
            if on_error == "raise":
                raise
            failed.append(Failed(item, position, error))
        else:
            positions.append(position)
    report: Report = calls.execute(RememberAll(items=tuple(operations), on_error=on_error))
    failed.extend(
        Failed(all_items[positions[each.index]], positions[each.index], each.reason) for each in report.failed
    )
    return Report(report.results, tuple(sorted(failed, key=lambda each: each.index)))


def remember_operation(item: object) -> Remember:
    """Convert an item of `remember_all` to an operation.

    Raises:
        RecollectError: The item is invalid, such as InvalidArgumentError or InvalidRecordError.
    """
    if isinstance(item, Remember):
        return item
    if isinstance(item, (str, bytes)):
        return Remember(content=item)
    if isinstance(item, Record):
        return Remember(content=item.content, id=item.id, fields=_fields_of(item), exact=True)
    if isinstance(item, Mapping):
        fields = dict(item)
        if "content" not in fields:
            raise InvalidArgumentError("item", item, 'a mapping needs a "content"')
        if "role" in fields and not fields.keys() & {"kind", "conversation"}:
            raise InvalidArgumentError("item", item, "has a role and no conversation: pass messages to add_messages")
        arguments = {name: fields.pop(name) for name in _ARGUMENTS if name in fields}
        return Remember(**arguments, fields=fields)
    raise InvalidArgumentError("item", item, "must be a text, a mapping with a content, or a record")


def _fields_of(record: Record) -> dict[str, Any]:
    """Return the fields that a record has, without id and content."""
    values: dict[str, Any] = {
        name: getattr(record, name) for name in record.present() if name in Fields.__annotations__
    }
    values |= stored_names(record)
    unknown: tuple[RawField, ...] = record.unknown
    return {**values, "unknown": unknown} if unknown else values
