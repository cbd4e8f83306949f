"""`Memory`, the object that `recollect.open` returns, and `Batch`: one namespace of a store.

Each method creates an operation and executes it. The methods shared by memories and batches are defined in `Calls`.
A memory is thread-safe. Namespaces and scopes opened from one memory share its store.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Unpack

from recollect.arguments import all_named, file_path
from recollect.embedding.base import Embedder
from recollect.engine.engine import Engine
from recollect.engine.gc_pause import gc_paused
from recollect.engine.listeners import Subscription
from recollect.engine.results import Failed, Hits, Outcome, Report
from recollect.engine.scope import Scope
from recollect.engine.write.batch import Writing
from recollect.errors import InvalidArgumentError, RecollectError, ScopeError
from recollect.filters.tree import Everything, Filter
from recollect.ledger.commits import Branch, Commit
from recollect.operations import (
    Batch as BatchOperation,
)
from recollect.operations import (
    Changes,
    Clear,
    Count,
    Find,
    Forget,
    ForgetWhere,
    Get,
    Grep,
    Namespaces,
    Operation,
    Recall,
    Remember,
    RememberAll,
    SetQuota,
    Stats,
    Sweep,
    Update,
)
from recollect.records.codec import RawField
from recollect.records.record import Fields, Record, record_id
from recollect.stores.base import Backup

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
            operation: The operation.
            actor: Who makes the change; recorded in the commit.
            reason: Why the change is made; recorded in the commit.
        """
        raise NotImplementedError

    def remember(
        self,
        content: str | bytes,
        *,
        id: str | None = None,  # noqa: A002 - the field's name
        expect: str | Record | None = None,
        if_exists: str = "keep",
        ttl: float | None = None,
        **fields: Unpack[Fields],
    ) -> Record:
        """Store `content` and return the record. It is durable when this returns, or, in a batch, when the batch ends.

        Without an `id`, the id is derived from the kind, the text, and fields such as user, conversation and speaker,
        so that remembering the same fact again changes nothing. If a different text already has the requested id, the
        new record gets a counter ("note-2"), unless `if_exists` is "update" or "error".

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
            ttl: Seconds after which the record expires, above 0 and at most a hundred years. Pass either `ttl` or
                `expires`.
            **fields: Fields of the record: kind, user, conversation, time, importance, tags, metadata and others (see
                `Record`). `time` defaults to now.

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
            StoreError: The store failed.

        Nothing is changed if this raises, except that after a CommitInDoubtError (a StoreError) the outcome is
        unknown.

        Cost:
            One durable commit, O(log n).
        """
        outcome: Outcome = self.execute(
            Remember(content=content, id=id, fields=fields, expect=expect, if_exists=if_exists, ttl=ttl)  # type: ignore[arg-type]
        )
        assert outcome.record is not None
        if outcome.differing:
            warnings.warn(
                f"already remembered as {outcome.record.id}; kept its {', '.join(outcome.differing)}: "
                "use if_exists='update' to change them",
                RecollectWarning,
                stacklevel=2,
            )
        return outcome.record

    def remember_all(self, items: Iterable[Item], *, on_error: str = "report") -> Report:
        """Store many records.

        A `Record` is copied exactly: fields that it does not have, such as a time, are not filled in. For texts and
        mappings, missing fields are filled in as by `remember`.

        Turns without ids and positions are recognised if the conversation is passed again from its start: of a longer
        list, only the new turns are added.

        If the store fails, earlier commits remain and all later items are listed as failed. (A batch raises the
        StoreError instead.)

        Args:
            items: Texts, mappings of fields with a "content", records, or `Remember` operations.
            on_error: "report": store the valid items, in durable commits of up to 1,000 items, and list the others in
                `report.failed`. "raise": raise the first error and store nothing.

        Returns:
            One outcome per stored item, and the items that failed, each with its index and the reason.

        Raises:
            InvalidArgumentError: `items` is not an iterable of items, or `on_error` is invalid.
            RecollectError: With `on_error="raise"`, the first error.

        Cost:
            About a tenth of `remember` per item.
        """
        if isinstance(items, (str, bytes, Mapping, Record)) or not isinstance(items, Iterable):
            raise InvalidArgumentError("items", items, "must be a list of things to remember")
        all_items = list(items)
        operations: list[Remember] = []
        positions: list[int] = []  # of the operations in `all_items`
        failed: list[Failed] = []
        with gc_paused():
            for position, item in enumerate(all_items):
                try:
                    operations.append(remember_operation(item))
                    positions.append(position)
                except RecollectError as error:
                    if on_error == "raise":
                        raise
                    failed.append(Failed(item, position, error))
            report: Report = self.execute(RememberAll(items=tuple(operations), on_error=on_error))
        failed.extend(
            Failed(all_items[positions[each.place]], positions[each.place], each.reason) for each in report.failed
        )
        return Report(report.results, tuple(sorted(failed, key=lambda each: each.place)))

    def recall(
        self,
        question: str,
        k: int = 10,
        where: Filter | None = None,
        *,
        reference: datetime | None = None,
        min_confidence: float = 0.0,
        language: str | None = None,
    ) -> Hits:
        """Return the records that best answer a question, best first, each with its score and an explanation.

        A hit shares a word with the question, is near a turn that does, or is dated on the day that the question
        names. With an embedder, a record that is similar enough in meaning is a hit too. Unknown or misspelt words are
        matched by the known words that they resemble. Equal scores are ordered by time, newest first, then by id.

        `hits.standing` contains standing instructions and preferences that match the filter, at most ten, the most
        relevant first. They do not count towards `k`.

        Args:
            question: The question, at most 64 KiB as UTF-8 by default (see `Limits`).
            k: Maximum number of hits, 1 or more.
            where: Return only records that match this filter. A filter never changes a score.
            reference: The time that expressions such as "yesterday" or "last week" are relative to; default: now.
            min_confidence: Leave out hits with a lower confidence, 0 to 1 (see docs/retrieval.md).
            language: The language of the question, as a BCP 47 tag; default: the language of the memory, or else
                detected.

        Raises:
            InvalidArgumentError: `k` is below 1, the question is empty or too long, or another argument is invalid.
            StoreError: The store failed.

        Cost:
            In proportion to the postings of the question's words. The first call loads or builds the index.
        """
        where = Everything() if where is None else where
        hits: Hits = self.execute(
            Recall(
                question=question,
                k=k,
                where=where,
                reference=reference,
                min_confidence=min_confidence,
                language=language,
            )
        )
        return hits

    def grep(self, query: str, limit: int = 20, where: Filter | None = None) -> list[Record]:
        """Return the records whose text matches a full-text query, newest first.

        Args:
            query: Words (all must occur), "phrases", prefix*, and, or, not, parentheses. At most 8 KiB as UTF-8 by
                default (see `Limits`), 256 words, and 64 words per phrase.
            limit: Maximum number of records, 1 or more.
            where: Return only records that match this filter.

        Raises:
            InvalidQueryError: The query is malformed or exceeds a limit.

        Cost:
            First updates the full-text index, in proportion to what was written since the last call.
        """
        found: list[Record] = self.execute(
            Grep(query=query, limit=limit, where=Everything() if where is None else where)
        )
        return found

    def get(self, id: str) -> Record | None:  # noqa: A002 - the field's name
        """Return the record with an id, or None if there is none or it has expired."""
        record: Record | None = self.execute(Get(id=id))
        return record

    def exists(self, id: str) -> bool:  # noqa: A002 - the field's name
        """Return whether there is a live record with this id."""
        return self.get(id) is not None

    def find(self, where: Filter | None = None, limit: int | None = None, order: str = "newest") -> list[Record]:
        """Return the records that match a filter.

        Args:
            where: The filter; default: all records.
            limit: Maximum number of records, 1 or more; None: no limit.
            order: "newest", "oldest", "importance" (highest first), "position" (by conversation and position) or "id".

        Cost:
            In proportion to the number of records with the kind, user, conversation, entity or time that the filter
            names; if it names none, to the number of all records.
        """
        where = Everything() if where is None else where
        found: list[Record] = self.execute(Find(where=where, limit=limit, order=order))
        return found

    def recent(self, n: int = 10, where: Filter | None = None) -> list[Record]:
        """Return the `n` newest records that match a filter, by their time, newest first."""
        return self.find(where, limit=n)

    def count(self, where: Filter | None = None) -> int:
        """Return how many records match a filter; without one, how many there are."""
        found: int = self.execute(Count(where=Everything() if where is None else where))
        return found

    def update(
        self,
        id: str,  # noqa: A002 - the field's name
        change: Callable[[Record], Record] | None = None,
        *,
        expect: str | Record | None = None,
        **changes: Any,
    ) -> Record:
        """Change fields of a record and return the changed record.

            memory.update(id, importance=0.9, tags=["travel"])
            memory.update(id, lambda record: record.changed(content=record.content + "!"))

        Args:
            id: The id of the record.
            change: A function that takes the record and returns the changed one.
            expect: Compare-and-set: change the record only if it has this hash (or is this record). This is checked
                before anything else. If several callers expect the same record, one changes it and each of the others
                gets a ConflictError.
            **changes: The new values of fields; None removes a field. Pass either a function or fields.

        Raises:
            UnknownRecordError: There is no live record with this id.
            ConflictError: `expect` is not met. Its `satisfied` is true if the record already has the requested values.
            InvalidRecordError: The changed record would be invalid, or its id would change.
            InvalidArgumentError: Neither a function nor fields were passed, or both, or `expect` is invalid.
            UnknownArgumentError: There is no such field.
            RecordExistsError: The record would move into a scope that already shows another one under its id.
            ScopeError: The changed record would lie outside the scope.
            QuotaError: The changed record does not fit in the quota.
            StoreError: The store failed.

        Nothing is changed if this raises, except that after a CommitInDoubtError (a StoreError) the outcome is
        unknown.
        """
        if (change is None) == (not changes):
            raise InvalidArgumentError("changes", changes, "pass either fields to change or one function")
        operation = Update(id=id, changes=changes if change is None else change, expect=expect)  # type: ignore[arg-type]
        outcome: Outcome = self.execute(operation)
        assert outcome.record is not None
        return outcome.record

    def forget(self, id: str, *, expect: str | Record | None = None) -> bool:  # noqa: A002 - the field's name
        """Forget a record: it is no longer returned, and its history remains in the log.

        Args:
            id: The id of the record.
            expect: Compare-and-set: forget the record only if it has this hash (or is this record).

        Returns:
            True if the record was forgotten now; False if it had been forgotten or had expired before.

        Raises:
            UnknownRecordError: There has never been a record with this id; within a scope, also if it was forgotten
                before.
            ConflictError: `expect` is not met.
        """
        outcome: Outcome = self.execute(Forget(id=id, expect=expect))  # type: ignore[arg-type]
        return outcome.status == "forgotten"

    def forget_where(self, where: Filter) -> int:
        """Forget every record that matches a filter, in one commit, and return how many."""
        forgotten: int = self.execute(ForgetWhere(where=where))
        return forgotten

    def clear(self) -> int:
        """Forget every record, in one commit, and return how many."""
        forgotten: int = self.execute(Clear())
        return forgotten

    def stats(self) -> dict[str, Any]:
        """Return record counts and facts about the store, as a dictionary.

        - "namespace": the name of the namespace.
        - "records": the number of live records; "kinds": their number per kind.
        - "users", "conversations", "entities": the number of different ones.
        - "oldest", "newest": the earliest and the latest time of a record, in ISO format; None if there is none.
        - "seq", "root": the newest commit and the root hash; not within a scope.
        - "quota": the quota and how much of it is used, if there is one; not within a scope.
        - "store": facts about the store; not within a scope.
        """
        stats: dict[str, Any] = self.execute(Stats())
        return stats


@all_named
class Memory(Calls):
    """One namespace of a store, or a scoped view of it. Created by `recollect.open`.

    Use it as a context manager to close the store at the end:

        with recollect.open("agent.db") as memory:
            memory.remember("Ana prefers window seats", user="ana")

    A memory is thread-safe. Memories returned by `namespace` and `scoped` share its store. Calls that use the store
    raise ClosedError after it was closed, ForkedError in a fork of the process that opened it, and StoreError if it
    fails.
    """

    def __init__(self, engine: Engine, branch: Branch, scope: Scope = Scope()) -> None:  # noqa: B008 - a constant
        self._engine = engine
        self._branch = branch
        self._scope = scope

    @property
    def name(self) -> str:
        """The name of the namespace."""
        return self._branch.namespace

    @property
    def root(self) -> str:
        """The root hash of all records in the namespace, as 64 hex digits.

        Raises:
            ScopeError: This memory is scoped.
        """
        if self._scope.fixed:
            raise ScopeError("the root, which covers the whole namespace,", str(self._scope))
        with self._engine.store.read() as view:
            return view.head(self._branch).root.hash.hex()

    @property
    def seq(self) -> int:
        """The number of the newest commit; 0 before the first.

        Raises:
            ScopeError: This memory is scoped.
        """
        if self._scope.fixed:
            raise ScopeError("the seq, which counts the commits of the whole namespace,", str(self._scope))
        with self._engine.store.read() as view:
            return view.head(self._branch).seq

    def execute(self, operation: Operation, *, actor: str | None = None, reason: str | None = None) -> Any:
        """Execute an operation (`recollect.operations`) and return its result. Most other calls are built on this one.

        Args:
            operation: The operation.
            actor: Who makes the change; recorded in the commit.
            reason: Why the change is made; recorded in the commit.

        Returns:
            What the operation returns, such as an `Outcome` for `Remember` and `Hits` for `Recall`.
        """
        if not isinstance(operation, Operation):
            raise InvalidArgumentError("operation", operation, "must be an operation: see recollect.operations")
        return self._engine.execute(operation, self._branch, self._scope, actor, reason)

    @contextmanager
    def batch(
        self, *, actor: str | None = None, reason: str | None = None, expect_head: int | None = None
    ) -> Iterator[Batch]:
        """Combine several calls into one atomic commit. Each call sees the effects of the calls before it.

            with memory.batch(actor="importer", reason="spring clean") as batch:
                batch.forget("a")
                batch.remember("b")

        The batch holds the store's write lock until the block ends. Inside the block, write with the calls of the
        batch: a write with a memory of the same store from the same thread raises StoreBusyError. An exception that
        leaves the block undoes all of it.

        Args:
            actor: Who makes the changes; recorded in the commit.
            reason: Why the changes are made; recorded in the commit.
            expect_head: Compare-and-set: start only if the newest commit has this seq.

        Raises:
            ConflictError: `expect_head` is not met; the block is not entered.
            ScopeError: `expect_head` was passed to a scoped memory.
            StoreBusyError: Another writer held the lock until the timeout.
        """
        # Creating the operation checks the arguments.
        checked = BatchOperation(operations=(), actor=actor, reason=reason, expect_head=expect_head)
        with self._engine.writing(self._branch, self._scope, actor, reason, checked.expect_head) as writing:
            yield Batch(writing)

    def changes(
        self,
        since: int | str = 0,
        limit: int | None = None,
        id: str | None = None,  # noqa: A002 - the field's name
    ) -> list[Commit]:
        """Return the commits after a cursor, oldest first.

        Args:
            since: The cursor of a commit or of hits (`commit.cursor`, `hits.cursor`), or, outside of scopes, a seq;
                0: from the beginning.
            limit: Maximum number of commits, 1 or more; None: no limit.
            id: Only commits that changed the record with this id.

        Returns:
            The commits. Within a scope they contain only the changes to records that lie in it.

        Raises:
            InvalidArgumentError: `since` is not a cursor of this memory.
            ScopeError: `since` is a seq and this memory is scoped.
        """
        commits: list[Commit] = self.execute(Changes(since=since, limit=limit, id=id))
        return commits

    def listen(self, callback: Callable[[Commit], object], *, since: int | str | None = None) -> Subscription:
        """Call a function with each commit, in order, once the commit is durable.

        The callback runs in a thread of its own. An exception in it is logged and stored in `subscription.error`, and
        the next commit is delivered nevertheless. Commits of other processes are delivered when this process next
        writes or `subscription.wake()` is called.

        Args:
            callback: Called with each commit.
            since: Start after this cursor or seq; default: with the next commit.

        Returns:
            The subscription. Close it, or leave its `with` block, to stop.

        Raises:
            InvalidArgumentError: `callback` cannot be called, or `since` is not a cursor of this memory.
            ScopeError: `since` is a seq and this memory is scoped.
        """
        if not callable(callback):
            raise InvalidArgumentError("callback", callback, "must be a function of a commit")
        if since is not None:
            Changes(since=since)  # checks it
        return self._engine.listen(callback, self._branch, self._scope, since)

    def scoped(self, *, user: str | None = None, agent: str | None = None, conversation: str | None = None) -> Memory:
        """Return a view of this memory that is restricted to one user, agent or conversation.

        Only records with these field values can be read or written through it, and it behaves as if no others existed.
        An id chosen here is stored in a qualified form ("@user=ana/note") and returned as it was chosen. Calls that
        concern the whole namespace (root, seq, check, backup, sweep, set_quota, namespace) raise ScopeError, and so
        does `close`: close the memory that the view was created from.

        Args:
            user: The user that records must have.
            agent: The agent that records must have.
            conversation: The conversation that records must have.

        Raises:
            InvalidArgumentError: No value was passed, or one is not a non-empty text.
            ScopeError: This memory is already scoped to another value.
        """
        if user is None and agent is None and conversation is None:
            raise InvalidArgumentError("scope", None, "name a user, an agent or a conversation")
        return Memory(
            self._engine, self._branch, self._scope.narrowed(user=user, agent=agent, conversation=conversation)
        )

    def namespace(self, name: str) -> Memory:
        """Return another namespace of the same store, as a memory that shares the store with this one.

        Args:
            name: The name; the rules of an id apply.

        Raises:
            InvalidArgumentError: The name is invalid.
            ScopeError: This memory is scoped.
        """
        if self._scope.fixed:
            raise ScopeError(f"namespace {name!r}", str(self._scope))
        return Memory(self._engine, Branch(namespace_name(name)))

    def namespaces(self) -> list[str]:
        """Return the sorted names of the namespaces that have a commit; within a scope only the name of this one."""
        names: list[str] = self.execute(Namespaces())
        return names

    def set_quota(
        self,
        *,
        records: int | None = None,
        bytes: int | None = None,  # noqa: A002 - the unit
        when_full: str = "refuse",
        per: str | None = None,
    ) -> None:
        """Set the quota of this namespace; without `records` and `bytes`, remove it.

        The quota is stored in the store and applies to every process that writes. `stats()["quota"]` shows it and how
        much of it is used.

        Args:
            records: Maximum number of live records; None: no limit.
            bytes: Maximum size of the live records, in bytes of their canonical encoding; None: no limit.
            when_full: What happens to a write that exceeds the quota. "refuse": it raises QuotaError. "least recent":
                the least recently used records are evicted; writing, getting and recalling are uses. "least
                important": the least important records are evicted, and among these the least recently used. Expired
                records are removed first, pinned records are never evicted, and the log names each removed record.
            per: "user", "agent" or "conversation": the quota applies to each of them separately, and a write evicts
                only records of its own user, agent or conversation. Records without one share a quota of the same
                size. None: the quota applies to the namespace as a whole.

        Raises:
            InvalidArgumentError: An argument is invalid.
            ScopeError: This memory is scoped.
            StoreError: The store failed.

        Cost:
            One durable write. The first write after it reads all records of the namespace to count them.
        """
        self.execute(SetQuota(records=records, bytes=bytes, when_full=when_full, per=per))

    def sweep(self, limit: int = 1000) -> int:
        """Remove expired records in one commit and return how many. The log names each with the cause "expired".

        Reads never return expired records, and each commit removes up to 1,000 of them. Call this for a memory that is
        seldom written to.

        Args:
            limit: Maximum number of records to remove, 1 or more. Those that expired first are removed first.

        Raises:
            ScopeError: This memory is scoped.

        Cost:
            One durable commit, in proportion to the number of removed records.
        """
        swept: int = self.execute(Sweep(limit=limit))
        return swept

    def export_records(self) -> tuple[str, list[Record]]:
        """Return the root hash of all live records, and these records by ascending id, from one snapshot.

        The root hash equals `root`, unless there are expired records that no commit has removed yet.

        Returns:
            The root hash in hex ("" within a scope), and the records.

        Cost:
            Reads all records.
        """
        return self._engine.export_records(self._branch, self._scope)

    def backup(self, path: str | os.PathLike[str], *, verify: bool = False, force: bool = False) -> Backup:
        """Copy one snapshot of the whole store, with all namespaces, to a file. Other writers are not blocked.

        The backup is a store in a single file, durable when this returns. `recollect.restore` restores it.

        Args:
            path: Where to write the backup.
            verify: Before moving the copy to `path`, open it, check it completely, and recompute every root hash from
                the records.
            force: Replace any file at `path`. By default only an older backup is replaced.

        Raises:
            UnsupportedError: The store is not a file.
            ScopeError: This memory is scoped.
            InvalidArgumentError: `path` is not the path of a file, or a file there must not be replaced.
            DamagedStoreError: The store is corrupt.
            StoreError: The store or the copy failed.

        If this raises, whatever was at `path` is still there.
        """
        if self._scope.fixed:
            raise ScopeError("a backup, which contains the whole store,", str(self._scope))
        return self._engine.back_up(file_path("path", path), verify=verify, force=force)

    def check(self) -> list[str]:
        """Check the whole store and return a description of each problem; an empty list if it is intact.

        Raises:
            ScopeError: This memory is scoped.

        Cost:
            Reads and hashes everything in the store.
        """
        if self._scope.fixed:
            raise ScopeError("a check, which reads the whole store,", str(self._scope))
        return self._engine.check()

    @property
    def embedder(self) -> Embedder | None:
        """The embedding model, or None."""
        return None if self._engine.vectors is None else self._engine.vectors.embedder

    def embed_all(self, batch_size: int = 100, progress: Callable[[int, int], object] | None = None) -> int:
        """Embed every text that has no vector of the current embedder, and return how many were embedded.

        Other writers are not blocked. The vectors of each batch are saved at once, so a run that was killed continues
        with the next call. A text that the embedder cannot process is skipped, with a RecollectWarning, and listed in
        `vector_stats()["failed"]`.

        Args:
            batch_size: Number of texts that are passed to the embedder at a time, 1 or more.
            progress: Called with the number of records processed so far and the total.

        Raises:
            UnsupportedError: There is no embedder.
            EmbedderError: The embedder cannot be used, or three batches in a row failed.
            MissingExtraError: A library that the embedder needs is not installed.
            InvalidArgumentError: An argument is invalid.
            StoreError: The store failed.

        Vectors that were saved before an error remain.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise InvalidArgumentError("batch_size", batch_size, "must be a whole number, 1 or more")
        if progress is not None and not callable(progress):
            raise InvalidArgumentError("progress", progress, "must be a function of two numbers")
        done = self._engine.embed_all(self._branch, self._scope, batch_size, progress)
        failed = self.vector_stats()["failed"]
        if failed:
            warnings.warn(
                f"{len(failed)} records have no vector, the first because {failed[0]['reason']}: "
                "vector_stats()['failed'] lists them",
                RecollectWarning,
                stacklevel=2,
            )
        return done

    def vector_stats(self) -> dict[str, Any]:
        """Return how many records have a vector, as a dictionary.

        - "model", "dimensions": of the embedder; None if there is no embedder or its dimension is not known yet.
        - "total", "embedded", "coverage": the number of records with a text, the number of those with a vector of the
          embedder, and the percentage.
        - "failed": the id and the reason of each record that could not be embedded in this process.
        - "watermark": the seq up to which every text has a vector; not within a scope.
        - "models": the model, the dimensions and the number of the stored vectors of every model; not within a scope.

        Cost:
            Reads every record.
        """
        return self._engine.vector_stats(self._branch, self._scope)

    def probe(self) -> None:
        """Test the store: durably write a value outside the ledger and read it back.

        Raises:
            StoreError: The value could not be written or read back.
        """
        self._engine.store.probe()

    def now(self) -> datetime:
        """Return the current time of the memory's clock."""
        return self._engine.now()

    def close(self) -> None:
        """Close the store, also for all namespaces and scopes that share it.

        Commits are delivered to the listeners first, and calls in progress are waited for. Closing twice is allowed.

        Raises:
            ScopeError: This memory is scoped: close the memory that it was created from.
            StoreBusyError: This thread is inside a batch of the store.
        """
        if self._scope.fixed:
            raise ScopeError("closing the store, which is shared,", str(self._scope))
        self._engine.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._scope.fixed:  # a scope shares the store with the memory that it was created from
            self.close()

    def __repr__(self) -> str:
        scope = f" scoped to {self._scope}" if self._scope.fixed else ""
        return f"<Memory {self.name!r} of {self._engine.store.path}{scope}>"


@all_named
class Batch(Calls):
    """The calls of a memory, combined into one commit. Created by `Memory.batch`.

    Reads see the uncommitted writes of the batch. A call that is refused changes nothing, and the batch can continue
    if the caller catches the error. After a StoreError, an interrupted call or a failed
    `remember_all(on_error="raise")`, the batch cannot be committed: leaving its `with` block raises the error. After
    the block, every call raises ClosedError.
    """

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def execute(self, operation: Operation, *, actor: str | None = None, reason: str | None = None) -> Any:
        """Execute an operation (`recollect.operations`) as part of the batch and return its result.

        Args:
            operation: The operation. `Batch`, `Changes` and `SetQuota` cannot be part of a batch.
            actor: Not allowed here: pass it to `Memory.batch`.
            reason: Not allowed here: pass it to `Memory.batch`.

        Raises:
            InvalidArgumentError: The operation cannot be part of a batch, or `actor` or `reason` was passed.
            ClosedError: The batch has ended.
        """
        if not isinstance(operation, Operation):
            raise InvalidArgumentError("operation", operation, "must be an operation: see recollect.operations")
        if actor is not None or reason is not None:
            raise InvalidArgumentError("actor", actor or reason, "and reason must be passed to Memory.batch")
        if isinstance(operation, BatchOperation):
            raise InvalidArgumentError("operation", operation.name, "cannot be part of a batch")
        return self._writing.execute(operation)


def namespace_name(value: object) -> str:
    """Return `value` as the name of a namespace. The rules of an id apply.

    Raises:
        InvalidArgumentError: It is not a valid name.
    """
    try:
        return record_id(value, "namespace")
    except RecollectError as error:
        raise InvalidArgumentError("namespace", value, str(error.args[2])) from None


#: Keys of a mapping that are arguments of `Remember`, not fields of the record.
_ARGUMENTS = ("content", "id", "expect", "if_exists", "ttl")


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
        arguments = {name: fields.pop(name) for name in _ARGUMENTS if name in fields}
        return Remember(**arguments, fields=fields)
    raise InvalidArgumentError("item", item, "must be a text, a mapping with a content, or a record")


def _fields_of(record: Record) -> dict[str, Any]:
    """Return the fields that a record has, without id and content."""
    values: dict[str, Any] = {
        name: getattr(record, name) for name in record.present() if name in Fields.__annotations__
    }
    unknown: tuple[RawField, ...] = record.unknown
    return {**values, "unknown": unknown} if unknown else values
