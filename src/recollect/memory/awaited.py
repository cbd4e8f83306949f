"""`AsyncMemory`: the calls of a memory, as coroutines.

The core is synchronous. Each call runs in a bounded thread pool, so that it never blocks the event loop. Cancelling an
await does not undo a commit: a write that has started is completed. The coroutines are derived from the calls of
`Memory` and `Batch`, and have their arguments, types and docstrings. An editor does not execute this and would show no
docstring, so the first line of each is repeated here.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from recollect.arguments.signatures import all_named
from recollect.calls.history import Target
from recollect.common.uncopied import Uncopied
from recollect.engine.results import NamespaceHead
from recollect.errors import ClosedError, InvalidArgumentError
from recollect.facets.glossary.glossary import Glossary
from recollect.facets.keyed.keyed import Keyed
from recollect.facets.outline.outline import Outline
from recollect.facets.sdr.sdr import Sdr
from recollect.ledger.commits import Commit
from recollect.memory.batch import Batch
from recollect.memory.memory import Memory
from recollect.memory.streams import AsyncCommitStream, AsyncSubscription
from recollect.memory.tools import ToolSet
from recollect.models.embedding.base import Embedder
from recollect.operations import Changes, ReadHead, Wait, check_count
from recollect.records.record import Record

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M")
#: How many calls run at the same time; further calls are queued.
WORKERS = 8


class _Wrapper(Protocol):
    """An object that runs the calls of a synchronous one in a thread pool."""

    _pool: ThreadPoolExecutor
    _wrapped: Any


def _awaited(call: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return a call of a memory or a batch as a coroutine function that runs it in the thread pool."""

    @functools.wraps(call)
    async def awaited(self: _Wrapper, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            future = asyncio.get_running_loop().run_in_executor(
                self._pool, partial(call, self._wrapped, *args, **kwargs)
            )
        except RuntimeError as error:  # the pool is shut down
            raise ClosedError("the memory") from error
        return await future

    return awaited


class AsyncGlossary(Uncopied):
    """The calls of a `Glossary`, as coroutines. Returned by `AsyncMemory.glossary`."""

    def __init__(self, glossary: Glossary, pool: ThreadPoolExecutor) -> None:
        self._wrapped = glossary
        self._pool = pool

    def by(self, actor: str | None, reason: str | None = None) -> AsyncGlossary:
        """Return this glossary with commits that name who makes a change, and why. See `Glossary.by`."""
        return AsyncGlossary(self._wrapped.by(actor, reason), self._pool)

    memorize = _awaited(Glossary.memorize)
    """Store a term. One with the same key, in any casing, is replaced; its former version stays in the history."""
    get = _awaited(Glossary.get)
    """Return the term with a key, in any casing, or None if the agent knows none."""
    recall = _awaited(Glossary.recall)
    """Return the terms that answer a question, best first, ties by key."""
    annotate = _awaited(Glossary.annotate)
    """Return every place in a text where a key or an alias occurs, in order, without overlaps."""
    forget = _awaited(Glossary.forget)
    """Remove a term, and return whether there was one. Its history stays."""
    forget_many = _awaited(Glossary.forget_many)
    """Remove terms in one commit, and return how many there were."""
    list_all = _awaited(Glossary.list_all)
    """Return all terms of an agent, or those of a category, sorted by key, case-insensitively."""
    entry_count = _awaited(Glossary.entry_count)
    """Return the number of terms of an agent."""
    categories = _awaited(Glossary.categories)
    """Return the categories of the terms of an agent, sorted, each with the number of its terms."""
    history = _awaited(Glossary.history)
    """Return every version of a term, oldest first; [] if the agent never knew it."""
    expiry = _awaited(Glossary.expiry)
    """Return when a term expires; None if it never does, or if the agent knows no such term."""
    set_expiry = _awaited(Glossary.set_expiry)
    """Make a term expire after some time, or never, and return whether the agent knows it."""
    to_csv = _awaited(Glossary.to_csv)
    """Return the terms of an agent as CSV, by key: key, value, category, aliases, description and expires."""
    to_json = _awaited(Glossary.to_json)
    """Return the terms of an agent as a JSON array of objects, by key."""
    from_csv = _awaited(Glossary.from_csv)
    """Store the terms of CSV as `to_csv` writes it, and return how many there are."""
    from_json = _awaited(Glossary.from_json)
    """Store the terms of a JSON array of objects, as `from_csv` does, and return how many there are."""
    shared_names = _awaited(Glossary.shared_names)
    """Return the keys and aliases that several terms of an agent have, so that a text can mean each of them."""


class AsyncOutline(Uncopied):
    """The calls of an `Outline`, as coroutines. Returned by `AsyncMemory.outline`."""

    def __init__(self, outline: Outline, pool: ThreadPoolExecutor) -> None:
        self._wrapped = outline
        self._pool = pool

    ingest = _awaited(Outline.ingest)
    """Store a tree in one commit; of one that is stored already, only what differs."""
    ingest_text = _awaited(Outline.ingest_text)
    """Store the tree of a text in Org or Markdown. See `ingest`."""
    remove = _awaited(Outline.remove)
    """Remove a node and all below it in one commit, and return how many nodes there were. Their history stays."""
    get = _awaited(Outline.get)
    """Return a node, or None."""
    roots = _awaited(Outline.roots)
    """Return the roots of all outlines, in their order."""
    children = _awaited(Outline.children)
    """Return the children of a node in their order."""
    ancestors = _awaited(Outline.ancestors)
    """Return the nodes above a node, the root first."""
    path = _awaited(Outline.path)
    """Return the titles from the root to a node; "" for a node without one."""
    at_path = _awaited(Outline.at_path)
    """Return the first node with a path of titles; None if there is none."""
    find = _awaited(Outline.find)
    """Return the nodes of a type, with an attribute, or with a value of it, in the order of their ids."""
    view = _awaited(Outline.view)
    """Return a node with all below it, or all outlines, as they are now, for many look-ups."""
    search = _awaited(Outline.search)
    """Return the nodes that are most similar to a text, most similar first."""
    focus = _awaited(Outline.focus)
    """Return an outline as text for a prompt: a node and what is similar to it in full, the rest by title."""
    without_id = _awaited(Outline.without_id)
    """Return the nodes whose source gives them no ID, of a node and below it, or of all outlines, parents first."""
    tree = _awaited(Outline.tree)
    """Return a node with all below it. A node that was stored without an ID has none."""
    to_text = _awaited(Outline.to_text)
    """Return a subtree as Org or Markdown, from which the same tree is read."""
    erase = _awaited(Outline.erase)
    """Permanently remove the contents of a node and of all below it, of every version."""
    history = _awaited(Outline.history)
    """Return every version that a node had, oldest first, with its commit and its cause."""
    snapshots = _awaited(Outline.snapshots)
    """Return the snapshots of the outlines, newest first."""
    rollback = _awaited(Outline.rollback)
    """Restore all outlines as they were at a moment, in a new commit."""
    hash = _awaited(Outline.hash)
    """Return the hash of a subtree, as 64 hex digits: it changes with anything in it (`text.outlines.nodes`)."""


class AsyncKeyed(Uncopied):
    """The calls of a `Keyed`, as coroutines. Returned by `AsyncMemory.keyed`."""

    def __init__(self, keyed: Keyed, pool: ThreadPoolExecutor) -> None:
        self._wrapped = keyed
        self._pool = pool

    def by(self, actor: str | None, reason: str | None = None) -> AsyncKeyed:
        """Return this keyed memory with commits that name who makes a change, and why. See `Keyed.by`."""
        return AsyncKeyed(self._wrapped.by(actor, reason), self._pool)

    read = _awaited(Keyed.read)
    """Return the value of a key, or None. This is a use of the entry."""
    write = _awaited(Keyed.write)
    """Set the value of a key. It is durable when this returns. The former value stays in the history."""
    cas = _awaited(Keyed.cas)
    """Set the value of a key if it has another one now, and return whether it had. Of several, one succeeds."""
    forget = _awaited(Keyed.forget)
    """Remove a key, and return whether there was one. Its history stays."""
    recall = _awaited(Keyed.recall)
    """Return the entries whose values answer a question best, best first. Each is a use, in this order."""
    subscribe = _awaited(Keyed.subscribe)
    """Return the events from now on, of a key or of all: an asynchronous iterator, which takes no thread."""
    events = _awaited(Keyed.events)
    """Return the events after a commit, oldest first, for a subscriber that missed some."""
    stats = _awaited(Keyed.stats)
    """Return the number of entries, their size, both limits (-1: none), and how often what has happened."""
    set_limits = _awaited(Keyed.set_limits)
    """Limit the entries, for every process. Without a limit, they count towards the quota of the namespace."""
    keys = _awaited(Keyed.keys)
    """Return the keys, sorted."""
    history = _awaited(Keyed.history)
    """Return every version that a key had, oldest first; [] if it never had one."""
    erase = _awaited(Keyed.erase)
    """Permanently remove the values of a key, of every version."""


class AsyncSdr(Uncopied):
    """The calls of an `Sdr`, as coroutines. Returned by `AsyncMemory.sdr`."""

    def __init__(self, sdr: Sdr, pool: ThreadPoolExecutor) -> None:
        self._wrapped = sdr
        self._pool = pool

    def by(self, actor: str | None, reason: str | None = None) -> AsyncSdr:
        """Return these texts with commits that name who makes a change, and why. See `Sdr.by`."""
        return AsyncSdr(self._wrapped.by(actor, reason), self._pool)

    store = _awaited(Sdr.store)
    """Store a text and return its number. It is durable when this returns. The same text again is a further one."""
    store_many = _awaited(Sdr.store_many)
    """Store texts in one commit, or none of them, and return their numbers. See `store`."""
    query = _awaited(Sdr.query)
    """Return the texts that are closest to a text, best first; of equal ones the lowest number first."""
    get = _awaited(Sdr.get)
    """Return a text, or None."""
    update = _awaited(Sdr.update)
    """Change a text or its metadata. The former version stays in the history."""
    forget = _awaited(Sdr.forget)
    """Remove a text, and return whether there was one. Its history stays, and its number is not given again."""
    explain = _awaited(Sdr.explain)
    """Return the trigrams that a text shares with a stored one, in their order in `text`."""
    stats = _awaited(Sdr.stats)
    """Return the number of texts, the highest number that was given, and the number of bits of a code."""
    texts = _awaited(Sdr.texts)
    """Return all texts, by their numbers."""
    restore = _awaited(Sdr.restore)
    """Store texts with the numbers and times that they had elsewhere, in one commit, or none of them."""


class AsyncBatch(Uncopied):
    """The calls of a `Batch`, as coroutines. Created by `AsyncMemory.batch`. They run one after the other."""

    def __init__(self, batch: Batch, pool: ThreadPoolExecutor) -> None:
        self._wrapped = batch
        self._pool = pool

    @property
    def scope(self) -> dict[str, str]:
        """The values of user, agent and conversation that all its records have; empty if it is not scoped."""
        scope: dict[str, str] = self._wrapped.scope
        return scope

    @property
    def zone(self) -> str:
        """The name of the time zone of the store (see `recollect.open`)."""
        return self._wrapped.zone

    execute = _awaited(Batch.execute)
    """Execute an operation (`recollect.operations`) as part of the batch and return its result."""
    remember = _awaited(Batch.remember)
    """Store `content` and return the record. It is durable when this returns, or, in a batch, when the batch ends."""
    remember_all = _awaited(Batch.remember_all)
    """Store many records."""
    add_messages = _awaited(Batch.add_messages)
    """Store the messages of a chat that are not stored yet: pass the list that you send to the model, each time."""
    record_message = _awaited(Batch.record_message)
    """Append one message to a conversation and return its record, even if it repeats an earlier one."""
    record_conversation = _awaited(Batch.record_conversation)
    """Store the messages of a conversation that are not stored yet: pass the same growing list each time."""
    record_entity_fact = _awaited(Batch.record_entity_fact)
    """Store a fact about an entity, such as a person, a product or a place, and return its record."""
    record_user_fact = _awaited(Batch.record_user_fact)
    """Store a fact about a user and return its record."""
    record_knowledge = _awaited(Batch.record_knowledge)
    """Store a document in pieces: the paragraphs of plain text, or the sections of Markdown."""
    record_task = _awaited(Batch.record_task)
    """Store a task with its outcome and return its record, whose text is "Task: ...", "Outcome: ..." on two lines."""
    context = _awaited(Batch.context)
    """Return what helps to answer a question, as a text for a prompt that has at most `max_tokens` tokens."""
    entity_context = _awaited(Batch.entity_context)
    """Return what is known about an entity as text for a prompt, newest first; "" if nothing is."""
    user_context = _awaited(Batch.user_context)
    """Return the facts about a user (kind "user_fact") as text for a prompt, newest first; "" if there are none."""
    conversation_context = _awaited(Batch.conversation_context)
    """Return the newest messages of a conversation as text for a prompt, oldest first; "" if there are none."""
    recall = _awaited(Batch.recall)
    """Return the records that best answer a question, best first, each with its score and an explanation."""
    grep = _awaited(Batch.grep)
    """Return the records whose text matches a full-text query, newest first."""
    get = _awaited(Batch.get)
    """Return the record with an id, or None if there is none or it has expired."""
    exists = _awaited(Batch.exists)
    """Return whether there is a live record with this id."""
    find = _awaited(Batch.find)
    """Return the records that match a filter."""
    recent = _awaited(Batch.recent)
    """Return the `n` newest records of `find`, by their time, newest first."""
    count = _awaited(Batch.count)
    """Return how many records `find` returns; without arguments, how many there are."""
    valid_until = _awaited(Batch.valid_until)
    """Return when records stop, or stopped, being valid, by id. Those without an end are left out."""
    update = _awaited(Batch.update)
    """Change fields of a record and return the changed record."""
    supersede = _awaited(Batch.supersede)
    """Replace a fact by a new one from a time on, and return the new record. The old one stays, with its text."""
    merge = _awaited(Batch.merge)
    """Replace records by a new one that is derived from them, and return it."""
    duplicates = _awaited(Batch.duplicates)
    """Return the groups of records that say the same. Nothing is changed: `merge` replaces a group by one record."""
    entities = _awaited(Batch.entities)
    """Return the entities that records mention, those that most records mention first."""
    entity = _awaited(Batch.entity)
    """Return what is known about an entity: when it was mentioned, together with what, and its relations."""
    neighbours = _awaited(Batch.neighbours)
    """Return the entities within some steps of one, as a graph: nodes nearest first, and what connects them."""
    paths = _awaited(Batch.paths)
    """Return the paths between two entities as lists of ids, shortest first."""
    relate = _awaited(Batch.relate)
    """Store a relation between two entities and return its record (kind "relation")."""
    merge_entities = _awaited(Batch.merge_entities)
    """Say that two names are of one entity, and return the record that says so: a relation "same as"."""
    extract_entities = _awaited(Batch.extract_entities)
    """Store the facts about entities that a text states (kind "entity"), and return the outcomes."""
    contradictions = _awaited(Batch.contradictions)
    """Return the facts that disagree: about the same subject and attribute, with another value. Nothing is changed."""
    resolve = _awaited(Batch.resolve)
    """Let the newer of two records supersede the older one, and return the newer one."""
    contradicting = _awaited(Batch.contradicting)
    """Return the earlier facts that disagree with one record: the check that is made when a fact is recorded."""
    forget = _awaited(Batch.forget)
    """Forget a record: it is no longer returned, and its history remains in the log."""
    forget_where = _awaited(Batch.forget_where)
    """Forget every record that matches, in one commit, and return how many."""
    clear = _awaited(Batch.clear)
    """Forget every record, in one commit, and return how many."""
    stats = _awaited(Batch.stats)
    """Return record counts and facts about the store, as a dictionary."""


@all_named
class AsyncMemory(Uncopied):
    """A `Memory` for asyncio: the same calls with the same arguments, results and errors, as coroutines.

        async with recollect.AsyncMemory(recollect.open("agent.db")) as memory:
            await memory.remember("Ana prefers window seats")

    Each call runs in a thread pool and never blocks the event loop. Cancelling an await does not undo a commit: a write
    that has started is completed. Callbacks (`listen`, `embed_all`) run in threads, not in the event loop.

    Args:
        memory: The memory to wrap.
        workers: Number of calls that run at the same time; further calls are queued.
    """

    def __init__(self, memory: Memory, *, workers: int = WORKERS, _pool: ThreadPoolExecutor | None = None) -> None:
        if not isinstance(memory, Memory):
            raise InvalidArgumentError("memory", memory, "must be a Memory: AsyncMemory(recollect.open(path))")
        check_count("workers", workers)
        self._wrapped = memory
        self._pool = _pool or ThreadPoolExecutor(workers, thread_name_prefix="recollect-async")

    execute = _awaited(Memory.execute)
    """Execute an operation (`recollect.operations`) and return its result. All other calls are built on this one."""
    remember = _awaited(Memory.remember)
    """Store `content` and return the record. It is durable when this returns, or, in a batch, when the batch ends."""
    remember_all = _awaited(Memory.remember_all)
    """Store many records."""
    add_messages = _awaited(Memory.add_messages)
    """Store the messages of a chat that are not stored yet: pass the list that you send to the model, each time."""
    record_message = _awaited(Memory.record_message)
    """Append one message to a conversation and return its record, even if it repeats an earlier one."""
    record_conversation = _awaited(Memory.record_conversation)
    """Store the messages of a conversation that are not stored yet: pass the same growing list each time."""
    record_entity_fact = _awaited(Memory.record_entity_fact)
    """Store a fact about an entity, such as a person, a product or a place, and return its record."""
    record_user_fact = _awaited(Memory.record_user_fact)
    """Store a fact about a user and return its record."""
    record_knowledge = _awaited(Memory.record_knowledge)
    """Store a document in pieces: the paragraphs of plain text, or the sections of Markdown."""
    record_task = _awaited(Memory.record_task)
    """Store a task with its outcome and return its record, whose text is "Task: ...", "Outcome: ..." on two lines."""
    context = _awaited(Memory.context)
    """Return what helps to answer a question, as a text for a prompt that has at most `max_tokens` tokens."""
    entity_context = _awaited(Memory.entity_context)
    """Return what is known about an entity as text for a prompt, newest first; "" if nothing is."""
    user_context = _awaited(Memory.user_context)
    """Return the facts about a user (kind "user_fact") as text for a prompt, newest first; "" if there are none."""
    conversation_context = _awaited(Memory.conversation_context)
    """Return the newest messages of a conversation as text for a prompt, oldest first; "" if there are none."""
    recall = _awaited(Memory.recall)
    """Return the records that best answer a question, best first, each with its score and an explanation."""
    grep = _awaited(Memory.grep)
    """Return the records whose text matches a full-text query, newest first."""
    get = _awaited(Memory.get)
    """Return the record with an id, or None if there is none or it has expired."""
    exists = _awaited(Memory.exists)
    """Return whether there is a live record with this id."""
    find = _awaited(Memory.find)
    """Return the records that match a filter."""
    recent = _awaited(Memory.recent)
    """Return the `n` newest records of `find`, by their time, newest first."""
    count = _awaited(Memory.count)
    """Return how many records `find` returns; without arguments, how many there are."""
    valid_until = _awaited(Memory.valid_until)
    """Return when records stop, or stopped, being valid, by id. Those without an end are left out."""
    update = _awaited(Memory.update)
    """Change fields of a record and return the changed record."""
    supersede = _awaited(Memory.supersede)
    """Replace a fact by a new one from a time on, and return the new record. The old one stays, with its text."""
    merge = _awaited(Memory.merge)
    """Replace records by a new one that is derived from them, and return it."""
    duplicates = _awaited(Memory.duplicates)
    """Return the groups of records that say the same. Nothing is changed: `merge` replaces a group by one record."""
    entities = _awaited(Memory.entities)
    """Return the entities that records mention, those that most records mention first."""
    entity = _awaited(Memory.entity)
    """Return what is known about an entity: when it was mentioned, together with what, and its relations."""
    neighbours = _awaited(Memory.neighbours)
    """Return the entities within some steps of one, as a graph: nodes nearest first, and what connects them."""
    paths = _awaited(Memory.paths)
    """Return the paths between two entities as lists of ids, shortest first."""
    relate = _awaited(Memory.relate)
    """Store a relation between two entities and return its record (kind "relation")."""
    merge_entities = _awaited(Memory.merge_entities)
    """Say that two names are of one entity, and return the record that says so: a relation "same as"."""
    extract_entities = _awaited(Memory.extract_entities)
    """Store the facts about entities that a text states (kind "entity"), and return the outcomes."""
    contradictions = _awaited(Memory.contradictions)
    """Return the facts that disagree: about the same subject and attribute, with another value. Nothing is changed."""
    resolve = _awaited(Memory.resolve)
    """Let the newer of two records supersede the older one, and return the newer one."""
    contradicting = _awaited(Memory.contradicting)
    """Return the earlier facts that disagree with one record: the check that is made when a fact is recorded."""
    forget = _awaited(Memory.forget)
    """Forget a record: it is no longer returned, and its history remains in the log."""
    forget_where = _awaited(Memory.forget_where)
    """Forget every record that matches, in one commit, and return how many."""
    clear = _awaited(Memory.clear)
    """Forget every record, in one commit, and return how many."""
    consolidate = _awaited(Memory.consolidate)
    """Replace groups of records by a summary each: turns of a conversation, facts about an entity or a user, ..."""
    stats = _awaited(Memory.stats)
    """Return record counts and facts about the store, as a dictionary."""
    head = _awaited(Memory.head)
    """Return the number of the newest commit, the root hash of all records after it, and the head of the log."""
    snapshot = _awaited(Memory.snapshot)
    """Mark the newest commit, so that it can be found again, and return the mark."""
    snapshots = _awaited(Memory.snapshots)
    """Return the snapshots, newest first: the order that `at(index=)` counts."""
    drop_snapshot = _awaited(Memory.drop_snapshot)
    """Remove a named snapshot and return it. Its commit and all versions stay."""
    log = _awaited(Memory.log)
    """Return the newest commits, newest first."""
    history = _awaited(Memory.history)
    """Return every version that a record had, oldest first, with its commit and its cause."""
    diff = _awaited(Memory.diff)
    """Return how two moments differ: the records that were added, changed and removed."""
    erase = _awaited(Memory.erase)
    """Permanently remove the contents of records: of all versions, also of forgotten and expired records."""
    rollback = _awaited(Memory.rollback)
    """Restore all records as they were at a moment, in a new commit with the cause "rolled back"."""
    revert = _awaited(Memory.revert)
    """Take back the changes of one commit, in a new commit with the cause "rolled back"."""
    prove = _awaited(Memory.prove)
    """Return a proof that the record with an id is present, or that the id is absent, as plain JSON."""
    replay = _awaited(Memory.replay)
    """Ask the question of a receipt again, as of its commit, and compare the answers."""
    prove_log = _awaited(Memory.prove_log)
    """Return a proof that the log after one commit begins with the log after an earlier one, as plain JSON."""
    changes = _awaited(Memory.changes)
    """Return the commits after a cursor."""
    namespaces = _awaited(Memory.namespaces)
    """Return the sorted names of the namespaces that have a commit; within a scope only the name of this one."""
    quota = _awaited(Memory.quota)
    """Return the quota of this namespace, or None."""
    policies = _awaited(Memory.policies)
    """Return the policies of this namespace, which every text must obey."""
    set_policies = _awaited(Memory.set_policies)
    """Set the policies of this namespace, all of them. They are stored, and apply to every process that writes."""
    set_quota = _awaited(Memory.set_quota)
    """Set the quota of this namespace; without `records` and `bytes`, remove it."""
    sweep = _awaited(Memory.sweep)
    """Remove expired records in one commit and return how many. The log names each with the cause "expired"."""
    export_records = _awaited(Memory.export_records)
    """Return the root hash and the records of `open_export`, all in memory."""
    embed_all = _awaited(Memory.embed_all)
    """Embed every text that has no vector of the current embedder, and return how many were embedded."""
    vector_stats = _awaited(Memory.vector_stats)
    """Return how many records have a vector, as a dictionary."""
    check = _awaited(Memory.check)
    """Check the whole store and return a description of each problem; an empty list if it is intact."""
    backup = _awaited(Memory.backup)
    """Copy one snapshot of the whole store, with all namespaces, to a file. Other writers are not blocked."""
    compact = _awaited(Memory.compact)
    """Drop the pages of old roots, and give the free space of the file back to the system."""
    probe = _awaited(Memory.probe)
    """Test the store: durably write a value outside the ledger and read it back."""

    async def listen(
        self, callback: Callable[[Commit], object], *, since: int | str | None = None
    ) -> AsyncSubscription:
        """Call a function with each commit, in order, once the commit is durable. See `Memory.listen`.

        The callback runs in a thread. `subscribe` is for code in the event loop.
        """
        return AsyncSubscription(await _awaited(Memory.listen)(self, callback, since=since), self._pool)

    def subscribe(self, *, since: int | str | None = None) -> AsyncCommitStream:
        """Return an asynchronous iterator over the commits that waits for the next one. See `Memory.subscribe`.

            async with memory.subscribe(since=cursor) as commits:
                async for commit in commits:
                    cursor = commit.cursor

        A stream that waits occupies no thread. Without a cursor, it starts with the next commit after the `async with`
        block is entered, or, without a block, after the first commit is awaited.
        """
        memory = self._wrapped
        log = memory._executor.log(memory._branch, memory._scope)
        if since is not None:
            Changes(since=since)  # checks it
            log.seq(since)  # raises if it is not a cursor of this memory
        return AsyncCommitStream(log, since, memory._executor.feed, self._pool)

    async def wait(self, since: int | str, timeout: float = 60.0) -> bool:
        """Wait until there is a commit after a cursor, and return whether there is one. See `Memory.wait`.

        A call that waits occupies no thread.
        """
        Wait(since=since, timeout=timeout)  # checks the arguments
        async with self.subscribe(since=since) as commits:
            return await commits.wait(timeout) is not None

    async def root(self) -> str:
        """Return the root hash of all records in the namespace. See `Memory.root`."""
        head: NamespaceHead = await self.execute(ReadHead())
        return head.root

    async def seq(self) -> int:
        """Return the number of the newest commit. See `Memory.seq`."""
        head: NamespaceHead = await self.execute(ReadHead())
        return head.seq

    @property
    def embedder(self) -> Embedder | None:
        """The embedding model, or None."""
        return self._wrapped.embedder

    @property
    def name(self) -> str:
        """The name of the namespace."""
        return self._wrapped.name

    @property
    def scope(self) -> dict[str, str]:
        """The values of user, agent and conversation that all its records have; empty if it is not scoped."""
        return self._wrapped.scope

    @property
    def zone(self) -> str:
        """The name of the time zone of the store (see `recollect.open`)."""
        return self._wrapped.zone

    def now(self) -> datetime:
        """Return the current time of the memory's clock, in its time zone."""
        return self._wrapped.now()

    @asynccontextmanager
    async def batch(
        self, *, actor: str | None = None, reason: str | None = None, expect_head: int | None = None
    ) -> AsyncIterator[AsyncBatch]:
        """Combine several calls into one atomic commit. See `Memory.batch`.

            async with memory.batch() as batch:
                await batch.remember("Ana prefers window seats")

        The calls of the batch run one after the other, in a thread of its own.
        """
        manager = self._wrapped.batch(actor=actor, reason=reason, expect_head=expect_head)
        async with _in_own_thread(lambda: manager) as (batch, pool):
            yield AsyncBatch(batch, pool)

    @asynccontextmanager
    async def open_export(self) -> AsyncIterator[AsyncExport]:
        """Open a snapshot of all live records, to be read one by one by ascending id. See `Memory.open_export`.

        async with memory.open_export() as export:
            async for record in export.records: ...
        """
        async with _in_own_thread(self._wrapped.open_export) as (export, pool):
            yield AsyncExport(export.root, export.count, _InPages(export.records, pool))

    def scoped(
        self, *, user: str | None = None, agent: str | None = None, conversation: str | None = None
    ) -> AsyncMemory:
        """Return a view that is restricted to one user, agent or conversation. See `Memory.scoped`."""
        return AsyncMemory(self._wrapped.scoped(user=user, agent=agent, conversation=conversation), _pool=self._pool)

    def tools(self, prefix: str = "", *, only: Collection[str] | None = None, read_only: bool = False) -> ToolSet:
        """Return function tools for a model. See `Memory.tools`. `call` and `answer` block: run them in a thread."""
        return self._wrapped.tools(prefix, only=only, read_only=read_only)

    @property
    def outline(self) -> AsyncOutline:
        """Trees of headlines and texts. See `Memory.outline`."""
        return AsyncOutline(self._wrapped.outline, self._pool)

    @property
    def keyed(self) -> AsyncKeyed:
        """Keys with bytes that agents share. See `Memory.keyed`."""
        return AsyncKeyed(self._wrapped.keyed, self._pool)

    @property
    def sdr(self) -> AsyncSdr:
        """Texts that are found by sparse codes of their trigrams. See `Memory.sdr`."""
        return AsyncSdr(self._wrapped.sdr, self._pool)

    @property
    def glossary(self) -> AsyncGlossary:
        """The terms that agents know, with their aliases. See `Memory.glossary`."""
        return AsyncGlossary(self._wrapped.glossary, self._pool)

    def without_echoes(self) -> AsyncMemory:
        """Return this memory with a guard against feedback loops. See `Memory.without_echoes`."""
        return AsyncMemory(self._wrapped.without_echoes(), _pool=self._pool)

    async def at(self, target: Target | None = None, *, index: int | None = None) -> AsyncMemory:
        """Return this memory as it was at a past moment. See `Memory.at`."""
        return AsyncMemory(await _awaited(Memory.at)(self, target, index=index), _pool=self._pool)

    def namespace(self, name: str) -> AsyncMemory:
        """Return another namespace of the same store. See `Memory.namespace`."""
        return AsyncMemory(self._wrapped.namespace(name), _pool=self._pool)

    async def close(self) -> None:
        """Close the store and the thread pool. See `Memory.close`. Closing twice is allowed."""
        try:
            await _awaited(Memory.close)(self)
        except ClosedError:
            return
        self._pool.shutdown(wait=False)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *exc: object) -> None:
        if not self._wrapped._shares_store:
            await self.close()


@dataclass(frozen=True)
class AsyncExport(Uncopied):
    """The records of a memory, read one by one. See `recollect.engine.results.Export`."""

    root: str
    count: int
    records: AsyncIterator[Record]


#: Records that are read at a time.
_PAGE = 200


class _InPages:
    """Records that are read a page at a time in the thread of a pool. Cancelling `anext` loses none."""

    def __init__(self, records: Iterator[Record], pool: ThreadPoolExecutor) -> None:
        self._records = records
        self._pool = pool
        self._page: deque[Record] = deque()
        self._reading: asyncio.Future[list[Record]] | None = None

    def __aiter__(self) -> _InPages:
        return self

    async def __anext__(self) -> Record:
        if not self._page:
            if self._reading is None:
                try:
                    self._reading = asyncio.get_running_loop().run_in_executor(self._pool, self._next_page)
                except RuntimeError as error:  # the pool is shut down
                    raise ClosedError("the export") from error
            page = await asyncio.shield(self._reading)
            self._reading = None
            self._page.extend(page)
        if not self._page:
            raise StopAsyncIteration
        return self._page.popleft()

    def _next_page(self) -> list[Record]:
        return list(islice(self._records, _PAGE))


@asynccontextmanager
async def _in_own_thread(
    opened: Callable[[], AbstractContextManager[T]],
) -> AsyncIterator[tuple[T, ThreadPoolExecutor]]:
    """Open and exit a context manager in a thread of its own, which can also run the calls of the block."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="recollect-block")  # one, so that the calls keep their order
    loop = asyncio.get_running_loop()
    try:
        entering = pool.submit(_entered, opened)
        try:
            manager, entered = await asyncio.shield(asyncio.wrap_future(entering))
        except asyncio.CancelledError as error:
            # The thread may still wait for a lock: once it has the lock, the block must be exited, by the same thread.
            # If it had ended, another one could have its number, and be taken for the one that has the lock.
            pool.submit(_exit_abandoned, error, entering)
            raise
        try:
            yield entered, pool
        except BaseException as error:
            leaving = loop.run_in_executor(pool, manager.__exit__, type(error), error, error.__traceback__)
            if not await asyncio.shield(leaving):
                raise
        else:
            await asyncio.shield(loop.run_in_executor(pool, manager.__exit__, None, None, None))
    finally:
        pool.shutdown(wait=False)


def _entered(opened: Callable[[], AbstractContextManager[T]]) -> tuple[AbstractContextManager[T], T]:
    manager = opened()
    return manager, manager.__enter__()


def _exit_abandoned(error: BaseException, entering: Future[tuple[AbstractContextManager[T], T]]) -> None:
    """Exit a block whose entering was cancelled before it was entered."""
    if entering.exception() is not None:
        return
    with suppress(BaseException):
        entering.result()[0].__exit__(type(error), error, None)
