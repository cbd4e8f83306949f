"""Memory: what `recollect.open` gives, one namespace of a store.

Each method makes an operation and executes it; `Calls` has the methods, so that a batch has the same ones, and each is
one line of meaning. A memory is thread-safe. Namespaces and scopes opened from one handle share its store.
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
from recollect.engine.gc_pause import uncollected
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

#: What `remember_all` takes: a text, a mapping of fields with its content, a record, or an operation.
Item = str | Mapping[str, Any] | Record | Remember


class RecollectWarning(UserWarning):
    """Something was done, but not all of what was said could be kept."""


@all_named
class Calls:
    """The calls of a memory, each an operation handed to `execute`."""

    def execute(self, operation: Operation, *, actor: str | None = None, reason: str | None = None) -> Any:
        """Do an operation (`recollect.operations`) and give its result. Every other call is one of these."""
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
        """Hold `content` and give the record, durable when this returns.

        id         of your own; else it follows from what is said, so that the same fact again changes nothing
        expect     write only where the record of that id has this hash (or is this record), or is "absent"; it is
                   replaced whole: fields that you do not give are gone. Of several that expect the same, one writes
                   and each other gets a ConflictError (`satisfied`: what is there already is what was asked for), so
                   "absent" can be a lock
        if_exists  for the same fact again: "keep" what is held (with a warning where you gave other values), "update"
                   the fields that you gave, or "error"
        ttl        it expires so many seconds from now (in place of `expires`)
        fields     of the record: kind, user, conversation, time, importance, tags, metadata ... (see `Record`)

        The default time is now. An id that another text holds gets a counter ("note-2"), unless `if_exists` says
        otherwise. A turn (kind "conversation", with a conversation) without id or position follows those that are
        held, also where it repeats one.

        Raises: InvalidRecordError, UnknownArgumentError, ConflictError, RecordExistsError, ScopeError, StoreError;
        nothing is changed then.
        Cost: one durable commit, O(log n).
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
        """Hold many records: texts, mappings of fields with a "content", records, or `Remember` operations.

        A record is copied exactly: what it does not have, such as a time, is not filled in.

        on_error  "report": what is valid is held, a durable commit for each thousand, and `report.failed` names the
                  rest (item, place, reason); "raise": the first error is raised and nothing is held

        Turns of a conversation without ids and positions are known when they are told again from the start: a longer
        list adds only the new ones.

        Cost: about a tenth of `remember` for each.
        """
        if isinstance(items, (str, bytes, Mapping, Record)) or not isinstance(items, Iterable):
            raise InvalidArgumentError("items", items, "must be a list of things to remember")
        given = list(items)
        wanted: list[Remember] = []
        places: list[int] = []
        failed: list[Failed] = []
        with uncollected():
            for place, item in enumerate(given):
                try:
                    wanted.append(remember_operation(item))
                    places.append(place)
                except RecollectError as error:
                    if on_error == "raise":
                        raise
                    failed.append(Failed(item, place, error))
            report: Report = self.execute(RememberAll(items=tuple(wanted), on_error=on_error))
        failed.extend(Failed(given[places[each.place]], places[each.place], each.reason) for each in report.failed)
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
        """The `k` records that answer a question best, best first, with scores and reasons.

        where           only records that match; it never changes a score
        reference       the time from which the question counts "yesterday" or "last week"; default: now
        min_confidence  0 to 1: hits of less confidence are left out (see docs/retrieval.md)
        language        of the question, as a BCP 47 tag; default: the memory's, else what it seems to be

        A hit shares a word with the question, or follows or precedes a turn that does, or is of the very day that the
        question names. Misspelt words are led to the known ones that they resemble. Equal scores are in order of time,
        newest first, then of id. `hits.standing` has the standing instructions and preferences; they displace no hit.

        Raises: InvalidArgumentError for a `k` below 1 or an empty question.
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
        """The records whose text matches a full-text query, newest first.

        query  words (all must occur), "phrases", prefix*, and, or, not, parentheses

        Raises: InvalidQueryError. Cost: catches the full-text index up first, which is in proportion to what is new.
        """
        found: list[Record] = self.execute(
            Grep(query=query, limit=limit, where=Everything() if where is None else where)
        )
        return found

    def get(self, id: str) -> Record | None:  # noqa: A002 - the field's name
        """The record of an id, or None."""
        record: Record | None = self.execute(Get(id=id))
        return record

    def exists(self, id: str) -> bool:  # noqa: A002 - the field's name
        """Whether a record of that id is held."""
        return self.get(id) is not None

    def find(self, where: Filter | None = None, limit: int | None = None, order: str = "newest") -> list[Record]:
        """The records that match, in an order: "newest", "oldest", "importance", "position" or "id".

        Cost: in proportion to the records of the kind, user, conversation, entity or time that the filter names; to
        all of them where it names none.
        """
        where = Everything() if where is None else where
        found: list[Record] = self.execute(Find(where=where, limit=limit, order=order))
        return found

    def recent(self, n: int = 10, where: Filter | None = None) -> list[Record]:
        """The `n` newest records by their time, newest first."""
        return self.find(where, limit=n)

    def count(self, where: Filter | None = None) -> int:
        """How many records match."""
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
        """Change fields of a record, or apply a function that gives the changed record; None takes a field away.

            memory.update(id, importance=0.9, tags=["travel"])
            memory.update(id, lambda record: record.changed(content=record.content + "!"))

        expect  change it only where it has this hash (or is this record), compared before anything else: of several
                that expect the same record, one changes it and each other gets a ConflictError, whose `satisfied` says
                whether the record already has what was asked for

        Raises: UnknownRecordError, ConflictError, InvalidRecordError, UnknownArgumentError; nothing is changed then.
        """
        if (change is None) == (not changes):
            raise InvalidArgumentError("changes", changes, "give fields to change, or one function, not both")
        operation = Update(id=id, changes=changes if change is None else change, expect=expect)  # type: ignore[arg-type]
        outcome: Outcome = self.execute(operation)
        assert outcome.record is not None
        return outcome.record

    def forget(self, id: str, *, expect: str | Record | None = None) -> bool:  # noqa: A002 - the field's name
        """Let a record be held no longer; True where it was, False where it was forgotten before.

        Raises: UnknownRecordError for an id that was never held; ConflictError.
        """
        outcome: Outcome = self.execute(Forget(id=id, expect=expect))  # type: ignore[arg-type]
        return outcome.status == "forgotten"

    def forget_where(self, where: Filter) -> int:
        """Forget every record that matches, in one commit; how many."""
        forgotten: int = self.execute(ForgetWhere(where=where))
        return forgotten

    def clear(self) -> int:
        """Forget every record, in one commit; how many."""
        forgotten: int = self.execute(Clear())
        return forgotten

    def stats(self) -> dict[str, Any]:
        """How many records there are, of which kinds, of how many users; seq, root, and facts of the store."""
        stats: dict[str, Any] = self.execute(Stats())
        return stats


@all_named
class Memory(Calls):
    """One namespace of a store. Made by `recollect.open`."""

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
        """The root hash of all that the namespace holds, in 64 hex digits."""
        if self._scope.fixed:
            raise ScopeError("the root, which tells of the whole namespace,", str(self._scope))
        with self._engine.store.read() as view:
            return view.head(self._branch).root.hash.hex()

    @property
    def seq(self) -> int:
        """The number of the newest commit; 0 before the first."""
        if self._scope.fixed:
            raise ScopeError("the seq, which tells of the whole namespace,", str(self._scope))
        with self._engine.store.read() as view:
            return view.head(self._branch).seq

    def execute(self, operation: Operation, *, actor: str | None = None, reason: str | None = None) -> Any:
        if not isinstance(operation, Operation):
            raise InvalidArgumentError("operation", operation, "must be an operation: see recollect.operations")
        return self._engine.execute(operation, self._branch, self._scope, actor, reason)

    @contextmanager
    def batch(
        self, *, actor: str | None = None, reason: str | None = None, expect_head: int | None = None
    ) -> Iterator[Batch]:
        """Calls as one commit, all or none: the calls of the batch see what those before them did.

            with memory.batch(actor="importer", reason="spring clean") as batch:
                batch.forget("a")
                batch.remember("b")

        expect_head  only where the newest commit has this seq. Raises: ConflictError, before anything is done.

        The batch holds the store's write lock until the block ends; an exception in the block undoes all of it.
        """
        # The operation checks the arguments.
        wanted = BatchOperation(operations=(), actor=actor, reason=reason, expect_head=expect_head)
        with self._engine.writing(self._branch, self._scope, actor, reason, wanted.expect_head) as writing:
            yield Batch(writing)

    def changes(
        self,
        since: int | str = 0,
        limit: int | None = None,
        id: str | None = None,  # noqa: A002 - the field's name
    ) -> list[Commit]:
        """The commits after `since`, oldest first; with an `id`, those that touched that record.

        since  the cursor of a commit, or of hits (`commit.cursor`, `hits.cursor`); outside of scopes also a seq; 0: all
        """
        commits: list[Commit] = self.execute(Changes(since=since, limit=limit, id=id))
        return commits

    def listen(self, callback: Callable[[Commit], object], *, since: int | str | None = None) -> Subscription:
        """Call back with each commit, in order, once it is durable: from now on, or after the cursor or seq `since`.

        The callback runs in a thread of its own; what it raises is logged and delays nobody. Commits of other
        processes are delivered when this one next writes or `subscription.wake()` is called.
        """
        if not callable(callback):
            raise InvalidArgumentError("callback", callback, "must be a function of a commit")
        if since is not None:
            Changes(since=since)  # checks it
        return self._engine.listen(callback, self._branch, self._scope, since)

    def scoped(self, *, user: str | None = None, agent: str | None = None, conversation: str | None = None) -> Memory:
        """This memory as one user, agent or conversation sees it: nothing else can be read or written through it.

        It answers as if there were nothing else. An id that is chosen here is stored in a qualified form
        ("@user=ana/note") and read back as it was chosen; what tells of the whole namespace (root, seq, check, backup,
        quota) is refused, and so is closing it: close the memory that it was made from.

        Raises: ScopeError where this memory is already scoped to another.
        """
        if user is None and agent is None and conversation is None:
            raise InvalidArgumentError("scope", None, "name a user, an agent or a conversation")
        return Memory(
            self._engine, self._branch, self._scope.narrowed(user=user, agent=agent, conversation=conversation)
        )

    def namespace(self, name: str) -> Memory:
        """Another namespace of the same store. Raises: ScopeError from within a scope."""
        if self._scope.fixed:
            raise ScopeError(f"namespace {name!r}", str(self._scope))
        return Memory(self._engine, Branch(namespace_name(name)))

    def namespaces(self) -> list[str]:
        """The names of the store's namespaces, in order."""
        names: list[str] = self.execute(Namespaces())
        return names

    def set_quota(
        self,
        *,
        records: int | None = None,
        bytes: int | None = None,  # noqa: A002 - what it is
        when_full: str = "refuse",
        per: str | None = None,
    ) -> None:
        """Limit what this namespace may hold; without limits, take its quota away. `stats()["quota"]` tells it.

        records    how many live records at most
        bytes      how many of their canonical bytes together at most
        when_full  what comes of a write that needs more: "refuse" it with a QuotaError; or evict others, those that
                   were used the longest ago ("least recent"), or the least important and of those the longest unused
                   ("least important"). What is due goes first, what is pinned never, and the log names each.
        per        "user", "agent" or "conversation": each of them may have so much, and only its own records go for
                   its own; so what one scope writes takes no room from another. None: all share it

        It is kept in the store, and every process that writes is held to it. Raises: InvalidArgumentError, ScopeError
        from within a scope, StoreError. Cost: a durable write; the first write after it counts what is held.
        """
        self.execute(SetQuota(records=records, bytes=bytes, when_full=when_full, per=per))

    def sweep(self, limit: int = 1000) -> int:
        """Let go of records that are due, in the log too: at most `limit`, the longest due first; how many.

        Reads do not see them in any case, and each commit takes up to a thousand with it; this is for a memory that is
        seldom written to. Raises: ScopeError from within a scope. Cost: one durable commit, in proportion to what goes.
        """
        swept: int = self.execute(Sweep(limit=limit))
        return swept

    def export_records(self) -> tuple[str, list[Record]]:
        """Every record by rising id, and the root of just these ("" within a scope), of one moment.

        It is `root`, unless records are due that the next commit sweeps out. Cost: reads everything.
        """
        return self._engine.export_records(self._branch, self._scope)

    def backup(self, path: str | os.PathLike[str], *, verify: bool = False, force: bool = False) -> Backup:
        """Copy the whole store, all namespaces, as it is at one moment; writers go on meanwhile.

        verify  open the copy, check all of it, and compute every root again from the records, before it is put there
        force   replace whatever file is at `path`; else only an older backup is replaced

        The backup is a store of one file, durable when this returns. `recollect.restore` puts it back.

        Raises: UnsupportedError for a store that is not a file; ScopeError from within a scope; InvalidArgumentError,
        DamagedStoreError, StoreError. What was at `path` is still there then.
        """
        if self._scope.fixed:
            raise ScopeError("a backup, which holds the whole store,", str(self._scope))
        return self._engine.back_up(file_path("path", path), verify=verify, force=force)

    def check(self) -> list[str]:
        """What is wrong with the store, in words; [] where nothing is. Reads and hashes everything in it.

        Raises: ScopeError from within a scope.
        """
        if self._scope.fixed:
            raise ScopeError("a check, which reads the whole store,", str(self._scope))
        return self._engine.check()

    @property
    def embedder(self) -> Embedder | None:
        """The model for vectors, or None."""
        return None if self._engine.vectors is None else self._engine.vectors.embedder

    def embed_all(self, batch_size: int = 100, progress: Callable[[int, int], object] | None = None) -> int:
        """Embed every text that has no vector of the embedder yet; how many were embedded.

        batch_size  texts that the embedder is given at a time
        progress    is called with how many records have been looked at, and of how many

        Writes go on meanwhile. What each batch gave is kept at once, so a run that is killed is resumed by the next.
        A text that the embedder cannot do is left out, with a warning; `vector_stats()["failed"]` names it.

        Raises: UnsupportedError without an embedder; EmbedderError, MissingExtraError where it cannot be used, or
        failed three batches in a row; StoreError. What was embedded before stays.
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
                "vector_stats()['failed'] names them",
                RecollectWarning,
                stacklevel=2,
            )
        return done

    def vector_stats(self) -> dict[str, Any]:
        """How the records stand with vectors.

        total, embedded, coverage   records with a text, those with a vector of the embedder, and that in per cent
        model, dimensions           of the embedder; None where there is none, or it has not said yet
        watermark                   the seq up to which every text has a vector; not within a scope
        models                      what vectors there are, of every model; not within a scope
        failed                      id and reason of each record that could not be embedded in this process

        Cost: reads every record.
        """
        return self._engine.vector_stats(self._branch, self._scope)

    def probe(self) -> None:
        """Write a value beside the ledger, durably, and read it back. Raises: StoreError."""
        self._engine.store.probe()

    def now(self) -> datetime:
        """The time by the memory's clock."""
        return self._engine.now()

    def close(self) -> None:
        """Deliver to the listeners, wait for the calls under way, and close the store for all that share it.

        Raises: ScopeError from within a scope, which shares it with others.
        """
        if self._scope.fixed:
            raise ScopeError("closing the store, which others use,", str(self._scope))
        self._engine.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._scope.fixed:  # else the store is others', too
            self.close()

    def __repr__(self) -> str:
        scope = f" scoped to {self._scope}" if self._scope.fixed else ""
        return f"<Memory {self.name!r} of {self._engine.store.path}{scope}>"


@all_named
class Batch(Calls):
    """The calls of a memory inside one commit. Made by `Memory.batch`."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing

    def execute(self, operation: Operation, *, actor: str | None = None, reason: str | None = None) -> Any:
        if not isinstance(operation, Operation):
            raise InvalidArgumentError("operation", operation, "must be an operation: see recollect.operations")
        if actor is not None or reason is not None:
            raise InvalidArgumentError("actor", actor or reason, "and reason belong to the batch as a whole")
        if isinstance(operation, BatchOperation):
            raise InvalidArgumentError("operation", operation.name, "cannot be part of a batch: it is one by itself")
        return self._writing.execute(operation)


def namespace_name(value: object) -> str:
    """`value` as the name of a namespace: the rules of an id. Raises: InvalidArgumentError."""
    try:
        return record_id(value, "namespace")
    except RecollectError as error:
        raise InvalidArgumentError("namespace", value, str(error.args[2])) from None


#: What a mapping says beside a record's fields.
_APART = ("content", "id", "expect", "if_exists", "ttl")


def remember_operation(item: object) -> Remember:
    """An item of `remember_all` as an operation. Raises: InvalidRecordError and its like."""
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
        arguments = {name: fields.pop(name) for name in _APART if name in fields}
        return Remember(**arguments, fields=fields)
    raise InvalidArgumentError("item", item, "must be a text, a mapping with a content, or a record")


def _fields_of(record: Record) -> dict[str, Any]:
    """The fields that a record has, without id and content."""
    values: dict[str, Any] = {
        name: getattr(record, name) for name in record.present() if name in Fields.__annotations__
    }
    unknown: tuple[RawField, ...] = record.unknown
    return {**values, "unknown": unknown} if unknown else values
