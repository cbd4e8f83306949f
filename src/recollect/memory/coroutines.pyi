"""The coroutines that `awaited` derives. Written by scripts/make_stub.py."""
# ruff: noqa: A002, E501

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike
from typing import Any, Unpack

from recollect.calls.calls import Item
from recollect.calls.history import Target
from recollect.calls.tokens import Tokenizer
from recollect.engine.branch_results import BranchInfo, Merged
from recollect.engine.history_results import (
    AuditFinding,
    Difference,
    Erased,
    Lineage,
    RecordVersion,
    Replayed,
    Restored,
    Taint,
)
from recollect.engine.results import (
    Hits,
    MemoryStats,
    NamespaceHead,
    PartCounts,
    RecordList,
    Report,
    ValueCount,
    VectorCounts,
)
from recollect.facets.entities.calls import Extractor
from recollect.facets.entities.operations import EntityGraph, EntitySummary, EntityView
from recollect.facets.glossary.operations import SharedName
from recollect.facets.glossary.operations import Tokenizer as Tokenizer_
from recollect.facets.glossary.values import Listed, Occurrence, Recalled, TermVersion
from recollect.facets.keyed.subscriptions import QUEUE, KeySubscription
from recollect.facets.keyed.values import Event, EventKind, Evict, Found
from recollect.facets.outline.reading import PRIVATE
from recollect.facets.outline.text.nodes import Node
from recollect.facets.outline.values import ANY, FocusedText, Ingested, OutlineMatches, OutlineNode, OutlineView
from recollect.facets.sdr.sdr import SdrHit
from recollect.facets.sdr.texts import SdrText
from recollect.filters.text_form import Where
from recollect.filters.tree import Filter
from recollect.ledger.commits import Commit, Snapshot
from recollect.ledger.proofs import Proof
from recollect.memory.bisection.calls import Judge
from recollect.memory.bisection.values import Bisected
from recollect.memory.consolidation import LARGEST, Consolidated, Summariser
from recollect.memory.context.values import Context, Part, Style
from recollect.memory.manager.contradictions import Contradiction
from recollect.memory.manager.duplicates import DuplicateGroup, Likeness
from recollect.memory.recording import Format, RecordingFields
from recollect.operations import (
    MONTH_S,
    IfExists,
    MinConfidence,
    Missing,
    OnError,
    Operation,
    Order,
    Per,
    Redaction,
    WhenFull,
)
from recollect.operations.branches import Choice, OnConflict
from recollect.operations.retention import Due, Retention, RetentionRule
from recollect.operations.trust import MOST_LINKED, SIGNALS, AuditSignal
from recollect.operations.upkeep import Handling
from recollect.policies import CATEGORIES, Level
from recollect.records.factories import DEFAULT_IMPORTANCE, UNKNOWN_TYPE
from recollect.records.origins import Origin
from recollect.records.record import FieldChanges, Fields, Instant, Record
from recollect.stores.values import Backup, CheckReport, Compacted

class MemoryCoroutines:
    """The calls of `Memory`, as coroutines."""

    async def add_messages(
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
        """Store the messages of a chat that are not stored yet: pass the list that you send to the model, each time."""
    async def apply_retention(
        self,
        rules: Iterable[RetentionRule | Mapping[str, Any]] | None = None,
        *,
        keep_versions: str | timedelta | None = None,
        dry_run: bool = True,
        samples: int | None = 10,
        actor: str | None = None,
    ) -> list[Due]:
        """Return what is due by the retention of this namespace; with `dry_run=False`, remove it."""
    async def audit(
        self,
        *,
        since: int | str = 0,
        where: Where | None = None,
        limit: int = 1000,
        signals: Iterable[AuditSignal] = SIGNALS,
    ) -> list[AuditFinding]:
        """Return what may be an attack on the memory among what the user has not said. Nothing is changed."""
    async def backup(self, path: str | os.PathLike[str], *, verify: bool = False, force: bool = False) -> Backup:
        """Copy one snapshot of the whole store, with all namespaces, to a file. Other writers are not blocked."""
    async def bisect(
        self,
        question: str,
        good: Target,
        bad: Target | None = None,
        *,
        expect: str | None = None,
        judge: Judge | None = None,
        k: int = 1,
        last: bool = False,
        all: bool = False,
        samples: int | None = None,
        where: Where | None = None,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        min_origin: Origin | None = None,
        reference: Instant | None = None,
        language: str | None = None,
    ) -> Bisected:
        """Find the commit that changed the answer to a question, by halving the commits between two moments, and why."""
    async def branches(self, *, sizes: bool = False) -> list[BranchInfo]:
        """Return the branches of this namespace, the main one first, then by name."""
    async def changes(
        self,
        since: int | str = 0,
        limit: int | None = None,
        id: str | None = None,
        *,
        newest_first: bool = False,
        where: Where | None = None,
        parts: Collection[str] | None = None,
    ) -> list[Commit]:
        """Return the commits after a cursor."""
    async def check(self) -> CheckReport:
        """Check the whole store and return a description of each problem; an empty list if it is intact."""
    async def clear(self, *, parts: Collection[str] | None = None) -> PartCounts:
        """Forget every record, and what facets keep, in one commit, and return how many."""
    async def compact(self) -> Compacted:
        """Drop the pages of old roots, and give the free space of the file back to the system."""
    async def consolidate(
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
        """Replace groups of records by a summary each: turns of a conversation, facts about an entity or a user, ..."""
    async def context(
        self,
        question: str,
        max_tokens: int = 2000,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        where: Where | None = None,
        include: Iterable[Part] = ("records",),
        min_confidence: MinConfidence = 0.0,
        concise: bool = False,
        style: Style = "markdown",
        tokenizer: Tokenizer | None = None,
        reference: Instant | None = None,
        min_origin: Origin | None = None,
    ) -> Context:
        """Return what helps to answer a question, as a text for a prompt that has at most `max_tokens` tokens."""
    async def contradictions(
        self,
        where: Where | None = None,
        *,
        record: Record | None = None,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> list[Contradiction]:
        """Return the facts that disagree: about the same subject and attribute, with another value. Nothing is changed."""
    async def conversation_context(
        self, conversation: str, max_messages: int = 20, *, min_origin: Origin | None = None
    ) -> str:
        """Return the newest messages of a conversation as text for a prompt, oldest first; "" if there are none."""
    async def count(
        self,
        where: Where | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> int:
        """Return how many records `find` returns; without arguments, how many there are."""
    async def diff(
        self,
        old: Target | None = None,
        new: Target | None = None,
        *,
        branch: str | None = None,
        parts: Collection[str] | None = None,
    ) -> Difference:
        """Return how two moments differ: the records that were added, changed and removed, and those of other parts."""
    async def distinguish(self, records: Sequence[str | Record]) -> Record:
        """State that records are not the same and do not disagree: no two of them are reported together again."""
    async def drop_branch(self, name: str) -> BranchInfo:
        """Remove a branch, with all that only it has, and return what it was. Its name stays taken."""
    async def drop_snapshot(self, name: str) -> Snapshot:
        """Remove a named snapshot and return it. Its commit and all versions stay."""
    async def duplicates(
        self,
        where: Where | None = None,
        *,
        likeness: Likeness = "restated",
        turns: bool = False,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> list[DuplicateGroup]:
        """Return the groups of records that say the same. Nothing is changed: `merge` replaces a group by one record."""
    async def embed_all(self, batch_size: int = 100, progress: Callable[[int, int], object] | None = None) -> int:
        """Embed every text that has no vector of the current embedder, and return how many were embedded."""
    async def endorse(
        self,
        id: str,
        origin: Origin = "user",
        *,
        expect: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Record:
        """Raise the class of origin of a record, and return it: from now on it counts as said by that class."""
    async def entities(
        self,
        type: str | None = None,
        limit: int = 50,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> list[EntitySummary]:
        """Return the entities that records mention, those that most records mention first."""
    async def entity(self, name: str, limit: int = 20) -> EntityView | None:
        """Return what is known about an entity: when it was mentioned, together with what, and its relations."""
    async def entity_context(self, entity: str, *, min_origin: Origin | None = None) -> str:
        """Return what is known about an entity as text for a prompt, newest first; "" if nothing is."""
    async def erase(
        self,
        what: str | Filter,
        *,
        redact: bool = False,
        derived: bool = False,
        parts: Collection[str] | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Erased:
        """Permanently remove the contents of records: of all versions, also of forgotten and expired records."""
    async def execute(
        self,
        operation: Operation,
        *,
        actor: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Execute an operation (`recollect.operations`) and return its result. All other calls are built on this one."""
    async def extract_entities(
        self,
        text: str,
        *,
        extractor: Extractor | None = None,
        default_importance: float = DEFAULT_IMPORTANCE,
        **fields: Unpack[Fields],
    ) -> Report:
        """Store the facts about entities that a text states (kind "entity"), and return the outcomes."""
    async def find(
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
        """Return the records that match a filter."""
    async def forget(self, id: str, *, expect: str | Record | None = None, missing: Missing = "raise") -> bool:
        """Forget a record: it is no longer returned, and its history remains in the log."""
    async def forget_all(self, ids: Iterable[str]) -> int:
        """Forget the records of several ids, in one commit, and return how many there were."""
    async def forget_where(
        self,
        where: Where | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        parts: Collection[str] | None = None,
    ) -> PartCounts:
        """Forget every record that matches, in one commit, and return how many."""
    async def get(self, id: str) -> Record | None:
        """Return the record with an id, or None if there is none or it has expired."""
    async def get_all(self, ids: Iterable[str]) -> list[Record | None]:
        """Return the records of several ids, in their order, of one moment: None where there is none."""
    async def grep(
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
        """Return the records whose text matches a full-text query, newest first."""
    async def head(self) -> NamespaceHead:
        """Return the newest commit: its number, the root hash of the memory and of its parts, and the head of the log."""
    async def history(self, id: str) -> list[RecordVersion]:
        """Return every version that a record had, oldest first, with its commit and its cause."""
    async def lineage(self, id: str, limit: int = MOST_LINKED) -> Lineage:
        """Return what a record was made from: what it derives from and replaces, what these do, and so on."""
    async def log(
        self,
        limit: int | None = None,
        since: int | str = 0,
        where: Where | None = None,
        *,
        parts: Collection[str] | None = None,
    ) -> list[Commit]:
        """Return the newest commits, newest first."""
    async def merge(self, sources: Sequence[str | Record], content: str | bytes, **fields: Unpack[Fields]) -> Record:
        """Replace records by a new one that is derived from them, and return it."""
    async def merge_branch(
        self,
        name: str,
        *,
        on_conflict: OnConflict = "list",
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Merged:
        """Merge another branch into this one: one commit, which follows both."""
    async def merge_entities(self, alias: str, into: str, **fields: Unpack[Fields]) -> Record:
        """Say that two names are of one entity, and return the record that says so: a relation "same as"."""
    async def namespaces(self) -> list[str]:
        """Return the sorted names of the namespaces that have a commit; within a scope only the name of this one."""
    async def neighbours(self, name: str, depth: int = 1, limit: int = 50) -> EntityGraph:
        """Return the entities within some steps of one, as a graph: nodes nearest first, and what connects them."""
    async def paths(self, source: str, target: str, longest: int = 3, limit: int = 10) -> list[list[str]]:
        """Return the paths between two entities as lists of ids, shortest first."""
    async def prove(self, id: str, *, at: int | None = None, part: str | None = None) -> Proof:
        """Return a proof that the record with an id is present, or that the id is absent, as plain JSON."""
    async def prove_log(self, old: int, new: int | None = None) -> Proof:
        """Return a proof that the log after one commit begins with the log after an earlier one, as plain JSON."""
    async def prove_merge(self, seq: int) -> Proof:
        """Return a proof that a commit merges one of another branch, as plain JSON."""
    async def recall(
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
        """Return the records that best answer a question, best first, each with its score and an explanation."""
    async def record_entity_fact(
        self,
        entity: str,
        name: str,
        fact: str,
        entity_type: str = UNKNOWN_TYPE,
        *,
        importance: float | None = DEFAULT_IMPORTANCE,
        **fields: Unpack[RecordingFields],
    ) -> Record:
        """Store a fact about an entity, such as a person, a product or a place, and return its record."""
    async def record_knowledge(
        self,
        content: str,
        *,
        format: Format = "text",
        importance: float | None = None,
        **fields: Unpack[RecordingFields],
    ) -> Report:
        """Store a document in pieces: the paragraphs of plain text, or the sections of Markdown."""
    async def record_task(
        self,
        description: str,
        outcome: str,
        success: bool,
        *,
        importance: float | None = DEFAULT_IMPORTANCE,
        **fields: Unpack[RecordingFields],
    ) -> Record:
        """Store a task with its outcome and return its record, whose text is "Task: ...", "Outcome: ..." on two lines."""
    async def record_user_fact(
        self, fact: str, *, importance: float | None = DEFAULT_IMPORTANCE, **fields: Unpack[RecordingFields]
    ) -> Record:
        """Store a fact about a user and return its record."""
    async def relate(self, /, start: str, type: str, target: str, **fields: Unpack[Fields]) -> Record:
        """Store a relation between two entities and return its record (kind "relation")."""
    async def remember(
        self,
        content: str | bytes,
        *,
        id: str | None = None,
        expect: str | Record | None = None,
        if_exists: IfExists = "keep",
        ttl: float | timedelta | None = None,
        **fields: Unpack[Fields],
    ) -> Record:
        """Store `content` and return the record. It is durable when this returns, or, in a batch, when the batch ends."""
    async def remember_all(self, items: Iterable[Item], *, on_error: OnError = "report") -> Report:
        """Store many records."""
    async def replay(self, receipt: Mapping[str, Any]) -> Replayed:
        """Ask the question of a receipt again, as of its commit, and compare the answers."""
    async def resolve(self, found: Contradiction | Sequence[Contradiction]) -> Record:
        """Let the newer of two records supersede the older one, and return the newer one."""
    async def resolve_merge(
        self,
        merged: Merged,
        resolutions: Mapping[str | tuple[str, str], Choice | Record],
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Merged:
        """Write a merge whose conflicts were listed, with a decision about each."""
    async def retention(self) -> Retention:
        """Return how long the records of this namespace stay."""
    async def revert(self, seq: int, *, actor: str | None = None, reason: str | None = None) -> Restored:
        """Take back the changes of one commit, in a new commit with the cause "rolled back"."""
    async def rollback(
        self,
        to: Target | None = None,
        *,
        index: int | None = None,
        parts: Collection[str] | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Restored:
        """Restore the memory as it was at a moment, in a new commit with the cause "rolled back"."""
    async def set_policies(
        self,
        *,
        redaction: Redaction = "keep",
        categories: Collection[str] = CATEGORIES,
        salience: Level = "off",
        origins: Mapping[Origin, Handling] | None = None,
        flagged: Handling = "store",
        record_origins: bool = True,
    ) -> None:
        """Set the policies of this namespace, all of them. They are stored, and apply to every process that writes."""
    async def set_quota(
        self,
        *,
        records: int | None = None,
        bytes: int | None = None,
        when_full: WhenFull = "refuse",
        per: Per | None = None,
        low_water: float = 1.0,
    ) -> None:
        """Set the quota of this namespace; without `records` and `bytes`, remove it."""
    async def set_retention(
        self, rules: Iterable[RetentionRule | Mapping[str, Any]] = (), *, keep_versions: str | timedelta | None = None
    ) -> None:
        """Set how long the records of this namespace stay, all of it; without arguments, remove it."""
    async def snapshot(self, name: str | None = None) -> Snapshot:
        """Mark the newest commit, so that it can be found again, and return the mark."""
    async def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, newest first: the order that `at(index=)` counts."""
    async def stats(self, *, parts: Collection[str] | None = None) -> MemoryStats:
        """Return record counts and facts about the store, as a dictionary."""
    async def supersede(
        self, /, id: str, content: str | bytes, *, at: Instant | None = None, **fields: Unpack[Fields]
    ) -> Record:
        """Replace a fact by a new one from a time on, and return the new record. The old one stays, with its text."""
    async def sweep(self, limit: int = 1000) -> int:
        """Remove expired records, and what is due by the retention of the namespace, and return how many there were."""
    async def taint(
        self,
        ids: str | Record | Iterable[str | Record] = (),
        *,
        source: str | None = None,
        where: Where | None = None,
        limit: int = MOST_LINKED,
    ) -> Taint:
        """Return what was made from some records: what derives from them, what derives from that, and so on."""
    async def touch(self, ids: Iterable[str], ttl: float | timedelta) -> int:
        """Let records expire later, in one commit, and return how many of the ids have a live record."""
    async def update(
        self,
        /,
        id: str,
        change: Callable[[Record], Record] | None = None,
        *,
        expect: str | Record | None = None,
        **changes: Unpack[FieldChanges],
    ) -> Record:
        """Change fields of a record and return the changed record."""
    async def user_context(self, user: str, *, min_origin: Origin | None = None) -> str:
        """Return the facts about a user (kind "user_fact") as text for a prompt, newest first; "" if there are none."""
    async def values(
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
        """Return the distinct values of a field, sorted, each with the number of records that have it."""
    async def vector_stats(self) -> VectorCounts:
        """Return how many records have a vector, as a dictionary."""

class BatchCoroutines:
    """The calls of `Batch`, as coroutines."""

    async def add_messages(
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
        """Store the messages of a chat that are not stored yet: pass the list that you send to the model, each time."""
    async def audit(
        self,
        *,
        since: int | str = 0,
        where: Where | None = None,
        limit: int = 1000,
        signals: Iterable[AuditSignal] = SIGNALS,
    ) -> list[AuditFinding]:
        """Return what may be an attack on the memory among what the user has not said. Nothing is changed."""
    async def clear(self, *, parts: Collection[str] | None = None) -> PartCounts:
        """Forget every record, and what facets keep, in one commit, and return how many."""
    async def context(
        self,
        question: str,
        max_tokens: int = 2000,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        where: Where | None = None,
        include: Iterable[Part] = ("records",),
        min_confidence: MinConfidence = 0.0,
        concise: bool = False,
        style: Style = "markdown",
        tokenizer: Tokenizer | None = None,
        reference: Instant | None = None,
        min_origin: Origin | None = None,
    ) -> Context:
        """Return what helps to answer a question, as a text for a prompt that has at most `max_tokens` tokens."""
    async def contradictions(
        self,
        where: Where | None = None,
        *,
        record: Record | None = None,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> list[Contradiction]:
        """Return the facts that disagree: about the same subject and attribute, with another value. Nothing is changed."""
    async def conversation_context(
        self, conversation: str, max_messages: int = 20, *, min_origin: Origin | None = None
    ) -> str:
        """Return the newest messages of a conversation as text for a prompt, oldest first; "" if there are none."""
    async def count(
        self,
        where: Where | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> int:
        """Return how many records `find` returns; without arguments, how many there are."""
    async def distinguish(self, records: Sequence[str | Record]) -> Record:
        """State that records are not the same and do not disagree: no two of them are reported together again."""
    async def duplicates(
        self,
        where: Where | None = None,
        *,
        likeness: Likeness = "restated",
        turns: bool = False,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> list[DuplicateGroup]:
        """Return the groups of records that say the same. Nothing is changed: `merge` replaces a group by one record."""
    async def endorse(
        self,
        id: str,
        origin: Origin = "user",
        *,
        expect: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Record:
        """Raise the class of origin of a record, and return it: from now on it counts as said by that class."""
    async def entities(
        self,
        type: str | None = None,
        limit: int = 50,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> list[EntitySummary]:
        """Return the entities that records mention, those that most records mention first."""
    async def entity(self, name: str, limit: int = 20) -> EntityView | None:
        """Return what is known about an entity: when it was mentioned, together with what, and its relations."""
    async def entity_context(self, entity: str, *, min_origin: Origin | None = None) -> str:
        """Return what is known about an entity as text for a prompt, newest first; "" if nothing is."""
    async def execute(self, operation: Operation, *, actor: str | None = None, reason: str | None = None) -> Any:
        """Execute an operation (`recollect.operations`) as part of the batch and return its result."""
    async def extract_entities(
        self,
        text: str,
        *,
        extractor: Extractor | None = None,
        default_importance: float = DEFAULT_IMPORTANCE,
        **fields: Unpack[Fields],
    ) -> Report:
        """Store the facts about entities that a text states (kind "entity"), and return the outcomes."""
    async def find(
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
        """Return the records that match a filter."""
    async def forget(self, id: str, *, expect: str | Record | None = None, missing: Missing = "raise") -> bool:
        """Forget a record: it is no longer returned, and its history remains in the log."""
    async def forget_all(self, ids: Iterable[str]) -> int:
        """Forget the records of several ids, in one commit, and return how many there were."""
    async def forget_where(
        self,
        where: Where | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
        parts: Collection[str] | None = None,
    ) -> PartCounts:
        """Forget every record that matches, in one commit, and return how many."""
    async def get(self, id: str) -> Record | None:
        """Return the record with an id, or None if there is none or it has expired."""
    async def get_all(self, ids: Iterable[str]) -> list[Record | None]:
        """Return the records of several ids, in their order, of one moment: None where there is none."""
    async def grep(
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
        """Return the records whose text matches a full-text query, newest first."""
    async def lineage(self, id: str, limit: int = MOST_LINKED) -> Lineage:
        """Return what a record was made from: what it derives from and replaces, what these do, and so on."""
    async def merge(self, sources: Sequence[str | Record], content: str | bytes, **fields: Unpack[Fields]) -> Record:
        """Replace records by a new one that is derived from them, and return it."""
    async def merge_entities(self, alias: str, into: str, **fields: Unpack[Fields]) -> Record:
        """Say that two names are of one entity, and return the record that says so: a relation "same as"."""
    async def neighbours(self, name: str, depth: int = 1, limit: int = 50) -> EntityGraph:
        """Return the entities within some steps of one, as a graph: nodes nearest first, and what connects them."""
    async def paths(self, source: str, target: str, longest: int = 3, limit: int = 10) -> list[list[str]]:
        """Return the paths between two entities as lists of ids, shortest first."""
    async def recall(
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
        """Return the records that best answer a question, best first, each with its score and an explanation."""
    async def record_entity_fact(
        self,
        entity: str,
        name: str,
        fact: str,
        entity_type: str = UNKNOWN_TYPE,
        *,
        importance: float | None = DEFAULT_IMPORTANCE,
        **fields: Unpack[RecordingFields],
    ) -> Record:
        """Store a fact about an entity, such as a person, a product or a place, and return its record."""
    async def record_knowledge(
        self,
        content: str,
        *,
        format: Format = "text",
        importance: float | None = None,
        **fields: Unpack[RecordingFields],
    ) -> Report:
        """Store a document in pieces: the paragraphs of plain text, or the sections of Markdown."""
    async def record_task(
        self,
        description: str,
        outcome: str,
        success: bool,
        *,
        importance: float | None = DEFAULT_IMPORTANCE,
        **fields: Unpack[RecordingFields],
    ) -> Record:
        """Store a task with its outcome and return its record, whose text is "Task: ...", "Outcome: ..." on two lines."""
    async def record_user_fact(
        self, fact: str, *, importance: float | None = DEFAULT_IMPORTANCE, **fields: Unpack[RecordingFields]
    ) -> Record:
        """Store a fact about a user and return its record."""
    async def relate(self, /, start: str, type: str, target: str, **fields: Unpack[Fields]) -> Record:
        """Store a relation between two entities and return its record (kind "relation")."""
    async def remember(
        self,
        content: str | bytes,
        *,
        id: str | None = None,
        expect: str | Record | None = None,
        if_exists: IfExists = "keep",
        ttl: float | timedelta | None = None,
        **fields: Unpack[Fields],
    ) -> Record:
        """Store `content` and return the record. It is durable when this returns, or, in a batch, when the batch ends."""
    async def remember_all(self, items: Iterable[Item], *, on_error: OnError = "report") -> Report:
        """Store many records."""
    async def resolve(self, found: Contradiction | Sequence[Contradiction]) -> Record:
        """Let the newer of two records supersede the older one, and return the newer one."""
    async def stats(self, *, parts: Collection[str] | None = None) -> MemoryStats:
        """Return record counts and facts about the store, as a dictionary."""
    async def supersede(
        self, /, id: str, content: str | bytes, *, at: Instant | None = None, **fields: Unpack[Fields]
    ) -> Record:
        """Replace a fact by a new one from a time on, and return the new record. The old one stays, with its text."""
    async def taint(
        self,
        ids: str | Record | Iterable[str | Record] = (),
        *,
        source: str | None = None,
        where: Where | None = None,
        limit: int = MOST_LINKED,
    ) -> Taint:
        """Return what was made from some records: what derives from them, what derives from that, and so on."""
    async def touch(self, ids: Iterable[str], ttl: float | timedelta) -> int:
        """Let records expire later, in one commit, and return how many of the ids have a live record."""
    async def update(
        self,
        /,
        id: str,
        change: Callable[[Record], Record] | None = None,
        *,
        expect: str | Record | None = None,
        **changes: Unpack[FieldChanges],
    ) -> Record:
        """Change fields of a record and return the changed record."""
    async def user_context(self, user: str, *, min_origin: Origin | None = None) -> str:
        """Return the facts about a user (kind "user_fact") as text for a prompt, newest first; "" if there are none."""
    async def values(
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
        """Return the distinct values of a field, sorted, each with the number of records that have it."""

class GlossaryCoroutines:
    """The calls of `Glossary`, as coroutines."""

    async def agents(self) -> dict[str, int]:
        """Return the agents that have terms, sorted, each with the number of its terms."""
    async def annotate(self, text: str, agent_id: str) -> list[Occurrence]:
        """Return every place in a text where a key or an alias occurs, in order, without overlaps."""
    async def categories(self, agent_id: str) -> dict[str, int]:
        """Return the categories of the terms of an agent, sorted, each with the number of its terms."""
    async def expiry(self, key: str, agent_id: str) -> datetime | None:
        """Return when a term expires; None if it never does, or if the agent knows no such term."""
    async def forget(self, key: str | Iterable[str], agent_id: str) -> int:
        """Remove a term, or several in one commit, and return how many there were. Their history stays."""
    async def from_csv(self, text: str, agent_id: str) -> int:
        """Store the terms of CSV as `to_csv` writes it, and return how many there are."""
    async def from_json(self, text: str, agent_id: str) -> int:
        """Store the terms of a JSON array of objects, as `from_csv` does, and return how many there are."""
    async def get(self, key: str, agent_id: str) -> Listed | None:
        """Return the term with a key, in any casing, or None if the agent knows none."""
    async def history(self, key: str, agent_id: str) -> list[TermVersion]:
        """Return every version of a term, oldest first; [] if the agent never knew it."""
    async def list_all(self, agent_id: str, category: str | None = None) -> list[Listed]:
        """Return all terms of an agent, or those of a category, sorted by key, case-insensitively."""
    async def memorize(
        self,
        key: str,
        value: str,
        category: str,
        agent_id: str,
        aliases: Sequence[str] | None = None,
        description: str | None = None,
        *,
        ttl: float | timedelta | None = None,
    ) -> None:
        """Store a term. One with the same key, in any casing, is replaced; its former version stays in the history."""
    async def recall(
        self,
        question: str,
        agent_id: str,
        k: int = 10,
        score_threshold: float | None = None,
        *,
        typos: bool = False,
        tokenizer: Tokenizer_ | str | PathLike[str] | None = None,
    ) -> list[Recalled]:
        """Return the terms that answer a question, best first, ties by key."""
    async def set_expiry(self, key: str, agent_id: str, ttl: float | timedelta | None) -> bool:
        """Make a term expire after some time, or never, and return whether the agent knows it."""
    async def shared_names(self, agent_id: str) -> list[SharedName]:
        """Return the keys and aliases that several terms of an agent have, so that a text can mean each of them."""
    async def to_csv(self, agent_id: str) -> str:
        """Return the terms of an agent as CSV, by key: key, value, category, aliases, description and expires."""
    async def to_json(self, agent_id: str) -> str:
        """Return the terms of an agent as a JSON array of objects, by key."""

class OutlineCoroutines:
    """The calls of `Outline`, as coroutines."""

    async def ancestors(self, node_id: str) -> list[OutlineNode]:
        """Return the nodes above a node, the root first."""
    async def at_path(self, titles: Sequence[str], under: str | None = None) -> OutlineNode | None:
        """Return the first node with a path of titles; None if there is none."""
    async def children(self, node_id: str) -> list[OutlineNode]:
        """Return the children of a node in their order."""
    async def diff(self, old: Target, new: Target | None = None) -> Difference:
        """Return how the outlines of two moments differ, as the records of their nodes. See `Memory.diff`."""
    async def drop_snapshot(self, name: str) -> Snapshot:
        """Remove a named snapshot of the outlines and return it. Its commit and all versions stay."""
    async def erase(self, node_id: str, *, actor: str | None = None, reason: str | None = None) -> Erased:
        """Permanently remove the contents of a node and of all below it, of every version. See `Memory.erase`."""
    async def find(
        self, *, kind: str | None = None, attribute: str | None = None, value: Any = ANY, under: str | None = None
    ) -> list[OutlineNode]:
        """Return the nodes of a type, with an attribute, or with a value of it, in the order of their ids."""
    async def focus(
        self,
        node_id: str | None = None,
        max_tokens: int = 2000,
        *,
        question: str | None = None,
        under: str | None = None,
        k: int = 5,
        minimum: float = 0.5,
        private: Collection[str] = PRIVATE,
        tokenizer: Tokenizer | None = None,
    ) -> FocusedText:
        """Return an outline as text for a prompt: a node and what is similar to it in full, the rest by title."""
    async def get(self, node_id: str) -> OutlineNode | None:
        """Return a node, or None."""
    async def hash(self, node_id: str) -> str:
        """Return the hash of a subtree, as 64 hex digits: it changes with anything in it (`facets.outline.text.nodes`)."""
    async def history(self, node_id: str) -> list[RecordVersion]:
        """Return every version that a node had, oldest first, with its commit and its cause. See `Memory.history`."""
    async def ingest(
        self,
        tree: Mapping[str, Any] | Node,
        source: str | None = None,
        *,
        parent: str | None = None,
        snapshot: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Ingested:
        """Store a tree in one commit; of one that is stored already, only what differs."""
    async def ingest_text(
        self,
        text: str,
        format: str,
        source: str | None = None,
        *,
        parent: str | None = None,
        snapshot: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Ingested:
        """Store the tree of a text in Org, Markdown or JSON. See `ingest`."""
    async def log(self, limit: int | None = None, since: int | str = 0) -> list[Commit]:
        """Return the newest commits to outlines, newest first. Their numbers are those of the outlines' own log."""
    async def path(self, node_id: str) -> list[str]:
        """Return the titles from the root to a node; "" for a node without one."""
    async def remove(self, node_id: str, *, actor: str | None = None, reason: str | None = None) -> int:
        """Remove a node and all below it in one commit, and return how many nodes there were. Their history stays."""
    async def rollback(
        self, to: Target | None = None, *, index: int | None = None, actor: str | None = None, reason: str | None = None
    ) -> Restored:
        """Restore all outlines as they were at a moment, in a new commit. `Memory.rollback` restores all of a memory."""
    async def roots(self) -> list[OutlineNode]:
        """Return the roots of all outlines, in their order."""
    async def search(
        self,
        text: str,
        k: int = 10,
        *,
        under: str | None = None,
        minimum: float = 0.0,
        marked: bool | None = None,
        private: Collection[str] = (),
        embed: bool = True,
    ) -> OutlineMatches:
        """Return the nodes that are most similar to a text, most similar first."""
    async def snapshot(self, name: str | None = None) -> Snapshot:
        """Mark the newest commit to outlines, so that `rollback` finds it again, and return the mark."""
    async def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of the outlines, newest first: the order that `rollback(index=)` counts."""
    async def to_text(self, node_id: str, format: str) -> str:
        """Return a subtree as Org, Markdown or JSON, from which the same tree is read."""
    async def tree(self, node_id: str) -> Node:
        """Return a node with all below it. A node that was stored without an ID has none."""
    async def version(self, hash: str) -> OutlineNode:
        """Return a node as it was in one of its versions, also if it was changed or removed since."""
    async def view(
        self, under: str | None = None, *, depth: int | None = None, private: Collection[str] = ()
    ) -> OutlineView:
        """Return a node with all below it, or all outlines, as they are now, for many look-ups."""
    async def without_id(self, under: str | None = None) -> list[OutlineNode]:
        """Return the nodes whose source gives them no ID, of a node and below it, or of all outlines, parents first."""

class KeyedCoroutines:
    """The calls of `Keyed`, as coroutines."""

    async def cas(
        self,
        key: str,
        expected: bytes | None,
        new: bytes,
        *,
        ttl: float | timedelta | None = None,
        importance: float | None = None,
    ) -> bool:
        """Set the value of a key if it has another one now, and return whether it had. Of several, one succeeds."""
    async def erase(self, key: str) -> Erased:
        """Permanently remove the values of a key, of every version. See `Memory.erase`."""
    async def events(self, since: int | str = 0, limit: int = 1000) -> list[Event]:
        """Return the events after a commit, oldest first, for a subscriber that missed some."""
    async def forget(self, key: str) -> bool:
        """Remove a key, and return whether there was one. Its history stays."""
    async def history(self, key: str) -> list[RecordVersion]:
        """Return every version that a key had, oldest first; [] if it never had one. See `Memory.history`."""
    async def keys(self) -> list[str]:
        """Return the keys, sorted."""
    async def read(self, key: str) -> bytes | None:
        """Return the value of a key, or None. This is a use of the entry."""
    async def recall(self, query: str, k: int = 5, min_score: float = 0.0) -> list[Found]:
        """Return the entries whose values answer a question best, best first. Each is a use, in this order."""
    async def set_limits(
        self, *, capacity: int | None = None, capacity_bytes: int | None = None, evict: Evict = "least recent"
    ) -> None:
        """Limit the entries, for every process. Without a limit, they count towards the quota of the namespace."""
    async def stats(self) -> dict[str, int]:
        """Return the number of entries, their size, both limits (-1: none), and how often what has happened."""
    async def subscribe(
        self, key: str | None = None, *, kinds: Iterable[EventKind] | None = None, queue: int = QUEUE
    ) -> KeySubscription:
        """Return the events from now on, of a key or of all: an iterator that waits, also for asyncio."""
    async def write(
        self, key: str, value: bytes, *, ttl: float | timedelta | None = None, importance: float | None = None
    ) -> None:
        """Set the value of a key. It is durable when this returns. The former value stays in the history."""

class SdrCoroutines:
    """The calls of `Sdr`, as coroutines."""

    async def explain(self, text: str, id: int) -> list[str]:
        """Return the trigrams that a text shares with the stored one that has a number, in their order in `text`."""
    async def forget(self, id: int) -> bool:
        """Remove a text, and return whether there was one. Its history stays, and its number is not given again."""
    async def get(self, id: int) -> SdrText | None:
        """Return the text with a number, or None."""
    async def query(self, text: str, limit: int = 5, *, rule: bool = False, minimum: float = 0.0) -> list[SdrHit]:
        """Return the texts that are closest to a text, best first; of equal ones the lowest number first."""
    async def restore(self, texts: Iterable[SdrText]) -> int:
        """Store texts with the numbers and times that they had elsewhere, in one commit, or none of them."""
    async def stats(self) -> dict[str, int]:
        """Return the number of texts, the highest number that was given, and the number of bits of a code."""
    async def store(
        self, text: str, metadata: Mapping[str, Any] | None = None, *, ttl: float | timedelta | None = None
    ) -> int:
        """Store a text and return its number. It is durable when this returns. The same text again is a further one."""
    async def store_many(
        self, items: Iterable[tuple[str, Mapping[str, Any] | None]], *, ttl: float | timedelta | None = None
    ) -> list[int]:
        """Store texts in one commit, or none of them, and return their numbers. See `store`."""
    async def texts(self) -> list[SdrText]:
        """Return all texts, by their numbers."""
    async def update(self, id: int, text: str | None = None, metadata: Mapping[str, Any] | None = None) -> bool:
        """Change a text or its metadata. The former version stays in the history."""

class QuarantineCoroutines:
    """The calls of `Quarantine`, as coroutines."""

    async def reject(
        self, ids: str | Record | Iterable[str | Record], *, actor: str | None = None, reason: str | None = None
    ) -> int:
        """Forget records that are in quarantine, in one commit, and return how many. Their history stays."""
    async def release(
        self, ids: str | Record | Iterable[str | Record], *, actor: str | None = None, reason: str | None = None
    ) -> Report:
        """Store records that are in quarantine, in one commit. Their class of origin stays as it is."""
