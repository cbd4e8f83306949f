"""The reading operations, on one view of the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from recollect.engine.cursors import Cursors
from recollect.engine.index.vectors import QuestionVector
from recollect.engine.read.distinct import counted
from recollect.engine.read.filter_bounds import (
    DECODED_TO_FIND,
    MAX_IDS,
    Below,
    as_ids,
    bounds,
    exact_count,
    in_parts,
    leading,
    live,
    of_scope,
    searched,
)
from recollect.engine.read.log import changes
from recollect.engine.read.metadata_columns import UNKNOWN, columns_of, value_in
from recollect.engine.read.recall import recall
from recollect.engine.read.record_loader import Records
from recollect.engine.read.replaced import replaced
from recollect.engine.read.similar import Candidates, by_cosine
from recollect.engine.results import Hits, NamespaceHead, RecordList, Similar, SimilarRecord, ValueCount
from recollect.engine.scope import Scope
from recollect.engine.settings import Policies, Quota, policies_of, quota_of, retention_of
from recollect.errors import ScopeError
from recollect.filters.tree import EVERYTHING, AllOf, Filter, resolved
from recollect.indexes.documents.columns import NEVER, NONE
from recollect.indexes.scoring.speakers import without_names
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch, Commit
from recollect.ledger.parts import roots_of
from recollect.operations import (
    Changes,
    Count,
    DistinctValues,
    Find,
    FindSimilar,
    Get,
    GetAll,
    GetPolicies,
    GetQuota,
    Namespaces,
    ReadHead,
    Recall,
    Stats,
    ValidUntil,
)
from recollect.operations.retention import GetRetention, Retention
from recollect.records.codec import datetime_of, microseconds
from recollect.records.frozen import altered
from recollect.records.record import Record, in_zone
from recollect.stores.base import ReadView
from recollect.stores.values import expired, in_order, sort_key

#: The earliest end of a record that was never valid: every time zone can express it.
_FIRST = microseconds(datetime.min.replace(tzinfo=UTC) + timedelta(days=2))
#: Commits that `changes` reads at a time.
_COMMITS_PAGE = 256


@dataclass(slots=True, kw_only=True)
class Reading:
    """A view of the store with everything that a reading operation needs.

    Attributes:
        branch: The branch to read.
        scope: The scope of the caller.
        now: The time that decides which records have expired (see `Engine.reads_at`).
        words: The index at that view. Recall needs it; get, find and count are faster with it.
        question_vector: The vector of a recall's question; None without an embedder.
        cursors: The cursors of the store.
        language: The language of the memory; None: detected.
        zone: The time zone of the store, in which a question names days.
        facts: Returns facts about the store.
        log_head: Returns the head of the log of the branch, in hex.
        notes: Notes about how it reads, for results that have notes.
    """

    view: ReadView
    branch: Branch
    scope: Scope
    now: int
    words: WordView | None
    question_vector: QuestionVector | None
    cursors: Cursors
    language: str | None
    zone: tzinfo
    facts: Callable[[], dict[str, Any]]
    log_head: Callable[[], str]
    notes: tuple[str, ...] = ()

    def get(self, operation: Get) -> Record | None:
        """Return the record that the scope shows under an id."""
        record = stored_record(operation.id, self.view, self.branch, self.scope, self.now, self.words)
        return None if record is None else self.scope.shown(record)

    def get_all(self, operation: GetAll) -> list[Record | None]:
        """Return the record that the scope shows under each of several ids."""
        if self.scope.fixed or self.words is not None:
            return [self.get(Get(id=each)) for each in operation.ids]
        stored = self.view.several(self.branch, list(dict.fromkeys(operation.ids)))
        records = {each: Record.load(found.payload) for each, found in stored.items()}
        live = {each: record for each, record in records.items() if not expired(record, self.now)}
        return [live.get(each) for each in operation.ids]

    def find(self, operation: Find) -> RecordList:
        """Return the records that match, in order."""
        view, branch, scope, now = self.view, self.branch, self.scope, self.now
        order, limit, after = operation.order, operation.limit, None
        if operation.after is not None:
            after = self.cursors.sort_key(operation.after, order, branch, scope)
        where = self._where(operation.where)
        if self.words is not None:
            index_view = self.words.at(now)
            limits = bounds(where, index_view, decode=None if limit is None else DECODED_TO_FIND)
            if count := small_limit(operation):
                limits = leading(limits, index_view, order, count)
            parts = in_parts(where, limits, index_view)
        else:
            parts = [where]
        if scope.fixed and order == "id":  # order by the ids that the scope shows
            all_found = chain.from_iterable(view.select(branch, part, order="id", now=now) for part in parts)
            stored = {scope.shown_id(record.id): record for record in all_found}
            keyed = found = in_order(map(scope.shown, stored.values()), "id", after)[:limit]
            ids = [stored[record.id].id for record in found]
        elif len(parts) > 1:
            each = (view.select(branch, part, order=order, limit=limit, after=after, now=now) for part in parts)
            keyed = in_order(chain.from_iterable(each), order, None)[:limit]
            found, ids = list(map(scope.shown, keyed)), [record.id for record in keyed]
        else:
            keyed = list(view.select(branch, parts[0], order=order, limit=limit, after=after, now=now))
            found, ids = list(map(scope.shown, keyed)), [record.id for record in keyed]
        # Whether there are more is not looked up: to find the next one, a store may have to read all records.
        full = bool(keyed) and len(keyed) == limit
        cursor = self.cursors.after(sort_key(keyed[-1], order), order, branch, scope) if full else None
        if not operation.with_commit:
            return RecordList(found, cursor)
        micros = view.last_commits(branch, ids)
        times = (None if each not in micros else datetime_of(micros[each]) for each in ids)
        return RecordList(found, cursor, times)

    def count(self, operation: Count) -> int:
        """Return the number of records that match."""
        where = self._where(operation.where)
        if self.words is not None:
            index_view = self.words.at(self.now)
            limits = bounds(where, index_view, decode=None)
            if (counts := exact_count(limits, index_view)) is not None:
                return counts
            where = as_ids(where, limits, index_view)
        return self.view.count(self.branch, where, now=self.now)

    def values(self, operation: DistinctValues) -> list[ValueCount]:
        """Return the distinct values of a field, with the number of records that have each."""
        where, source = self._where(operation.where), operation.source
        if self.words is not None:
            index_view = self.words.at(self.now)
            limits = bounds(where, index_view, decode=None)
            if limits.exact:
                table, documents = index_view.table, np.flatnonzero(live(limits, index_view))
                values, _ = columns_of(table.rows).values(source, table, documents)
                unknown = documents[[value is UNKNOWN for value in values]]
                records = Records(self.view, self.branch, table).all(unknown)
                return counted(chain(values.tolist(), (value_in(each, source) for _, each in records)), operation)
        found = self.view.select(self.branch, where, order="id", now=self.now)
        return counted((value_in(record, source) for record in found), operation)

    def recall(self, operation: Recall) -> Hits:
        """Return the hits of a question."""
        assert self.words is not None
        assert operation.reference is not None, "the engine sets it"
        reference = in_zone(operation.reference, self.zone)
        operation = altered(operation, where=self._stored_form(operation.where), reference=reference)
        cursor = partial(self.cursors.at, branch=self.branch, scope=self.scope)
        return recall(
            operation,
            self.view,
            self.branch,
            self.words,
            self.scope,
            self.now,
            self.language,
            cursor,
            self.question_vector,
        )

    def valid_until(self, operation: ValidUntil) -> dict[str, datetime]:
        """Return when records stop being valid, by id: at their own end, or when another record replaces them."""
        words = self.visible()
        table, links = words.table, replaced(self.view, self.branch, words)
        known = partial(self.view.known, self.branch)
        out: dict[str, datetime] = {}
        for each in operation.ids:
            numbers = (table.number(stored) for stored in self.scope.stored_ids(each, known))
            number = next((number for number in numbers if number != NONE), NONE)
            if number == NONE:
                continue
            since = links.since_of(number)
            end = min(int(table.valid_to[number]), NEVER if since is None else since)
            if end != NEVER:
                out[each] = datetime_of(max(end, _FIRST)).astimezone(self.zone)
        return out

    def to_embed(self, question: str) -> str:
        """Return what is embedded of a question: all but names (`scoring.speakers`)."""
        return without_names(question, self.visible())

    def visible(self) -> WordView:
        """Return the index without the records that recall ignores: expired, not searchable, or outside the scope."""
        assert self.words is not None
        words = searched(self.words.at(self.now))
        if not self.scope.fixed:
            return words
        table = words.table
        return words.narrowed(self.scope, lambda: of_scope(self.scope, table))

    def candidates(self, where: Filter) -> Candidates:
        """Return the records that a filter admits, for a search by similarity."""
        assert self.words is not None
        return Candidates(self._stored_form(where), self.view, self.branch, self.words, self.scope, self.now)

    def similar(self, operation: FindSimilar) -> Similar:
        """Return what is most similar to a text: by the vectors, or, without any, by the confidence of recall."""
        note = ""
        if self.question_vector is not None:
            candidates = self.candidates(operation.where)
            found, note = by_cosine(operation, candidates, self.branch, self.scope, self.question_vector)
            if found is not None:
                return found
        asked = Recall(question=operation.text, k=operation.k, where=operation.where, min_confidence=operation.minimum)
        hits = replace(self, question_vector=None).recall(asked.with_reference(datetime_of(self.now)))
        return Similar(
            "confidence",
            tuple(SimilarRecord(hit.record, hit.confidence) for hit in hits),
            (note,) if note else (),
        )

    def changes(self, operation: Changes) -> list[Commit]:
        """Return the commits after a cursor as the scope sees them; with an id, those that changed that record."""
        return list(islice(changes(operation, self.view, self.branch, self.scope, self.cursors), operation.limit))

    def stats(self, operation: Stats) -> dict[str, Any]:
        """Return counts of the records and facts about the store."""
        view, branch, scope = self.view, self.branch, self.scope
        tally = view.tally(branch, scope.filter, now=self.now)
        out: dict[str, Any] = {
            "namespace": branch.namespace,
            "records": sum(tally.kinds.values()),
            "kinds": tally.kinds,
            "users": tally.users,
            "conversations": tally.conversations,
            "entities": tally.entities,
            "oldest": None if tally.oldest is None else datetime_of(tally.oldest).astimezone(self.zone).isoformat(),
            "newest": None if tally.newest is None else datetime_of(tally.newest).astimezone(self.zone).isoformat(),
        }
        if not scope.fixed:  # the log and the root would reveal records outside the scope
            head = view.head(branch)
            quota = quota_of(view, branch)
            if quota is not None:
                out["quota"] = {**asdict(quota), **self.used()}
            out |= {"seq": head.seq, "root": head.memory_root.hex(), "store": self.facts()}
        return out

    def used(self) -> dict[str, int]:
        """Return what this part of a memory uses of a quota."""
        return {
            "records_used": self.view.count(self.branch, EVERYTHING, now=self.now),
            "bytes_used": self.view.nbytes(self.branch),
        }

    def head(self, operation: ReadHead) -> NamespaceHead:
        """Return the newest commit and the root, and the head of the log if it is requested."""
        self._check_whole("the head (root and seq), which covers the whole namespace,")
        head = self.view.head(self.branch)
        log = self.log_head() if operation.log else None
        roots = roots_of(head.root.hash, head.parts or ())
        return NamespaceHead(head.seq, head.memory_root.hex(), log, {name: root.hex() for name, root in roots.items()})

    def quota(self, operation: GetQuota) -> Quota | None:
        """Return the quota of the namespace."""
        self._check_whole("the quota of the namespace")
        return quota_of(self.view, self.branch)

    def policies(self, operation: GetPolicies) -> Policies:
        """Return the policies of the namespace."""
        return policies_of(self.view, self.branch)

    def retention(self, operation: GetRetention) -> Retention:
        """Return the retention of the namespace."""
        self._check_whole("the retention of the namespace")
        return retention_of(self.view, self.branch)

    def namespaces(self, operation: Namespaces) -> list[str]:
        """Return the namespaces of the store; within a scope only its own."""
        if self.scope.fixed:
            return [self.branch.namespace]
        return sorted({each.namespace for each in self.view.branches() if not each.is_reserved})

    def _check_whole(self, what: str) -> None:
        """Raise ScopeError within a scope."""
        if self.scope.fixed:
            raise ScopeError(what, str(self.scope))

    def _stored_form(self, where: Filter) -> Filter:
        where = resolved(where, Below(self.view, self.branch, self.scope, self.words, self.now))
        return self.scope.stored_form(where, partial(self.view.known, self.branch))

    def _where(self, where: Filter) -> Filter:
        """Return the filter of the scope and of the operation, for records as they are stored."""
        return AllOf.of(self.scope.filter, self._stored_form(where))


def stored_record(
    record_id: str, view: ReadView, branch: Branch, scope: Scope, now: int, words: WordView | None = None
) -> Record | None:
    """Return the live record that a scope shows under an id, in its stored form; None if there is none.

    With the index at the view, the record is read from it.
    """
    for stored_id in scope.stored_ids(record_id, partial(view.known, branch)):
        if words is not None:
            record = Records(view, branch, words.table).live(stored_id)
        else:
            stored = view.get(branch, stored_id)
            record = None if stored is None else Record.load(stored.payload)
        if record is not None and scope.admits(record) and not expired(record, now):
            return record
    return None


def small_limit(operation: Find) -> int | None:
    """Return the limit of a first page whose records can be read by their ids; None for another one."""
    small = operation.limit is not None and operation.limit <= MAX_IDS and operation.after is None
    return operation.limit if small else None


def by_importance(operation: Find | Count) -> bool:
    """Return whether an operation asks for the most important records; stores have no index of importance."""
    return isinstance(operation, Find) and operation.order == "importance" and small_limit(operation) is not None
