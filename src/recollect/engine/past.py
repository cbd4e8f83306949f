"""How reading operations are executed as of a past moment. `_READS` is the table of those that can be.

The handlers of the present are not used: a past read notes no use of a record, embeds nothing, and changes no index of
the present.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from recollect.engine.core import Core
from recollect.engine.index.past import past_records
from recollect.engine.index.vectors import PastVectors
from recollect.engine.read.full_text import grep
from recollect.engine.read.past_view import PastView
from recollect.engine.read.proofs import prove
from recollect.engine.read.queries import Reading
from recollect.engine.read.targets import PastPoint, point_of, resolve
from recollect.engine.receipts import receipt
from recollect.engine.results import Export, Hits, Moment, RecordList
from recollect.engine.scope import Scope
from recollect.engine.sdr_results import FoundSdr
from recollect.engine.similar_results import Similar
from recollect.errors import ReadOnlyMemoryError, ScopeError
from recollect.indexes.words.index import WordView
from recollect.ledger import receipts
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import root_of
from recollect.ledger.proofs import Proof
from recollect.operations import (
    AnnotateTerms,
    At,
    Changes,
    Count,
    Entities,
    EntityOf,
    Find,
    FindSimilar,
    Get,
    GetPolicies,
    GetQuota,
    Grep,
    Namespaces,
    Neighbours,
    Now,
    OpenExport,
    Operation,
    Paths,
    Pin,
    Prove,
    ReadHead,
    ReadTree,
    Recall,
    RecallSdrs,
    RecallTerms,
    Receipt,
    SharedNames,
    Stats,
    ValidUntil,
    Zone,
)
from recollect.records.codec import datetime_of
from recollect.records.record import Record
from recollect.stores.base import View
from recollect.stores.ordering import in_order

T = TypeVar("T")
#: Records of an export that are read at a time.
_PAGE = 500


class _Past(NamedTuple):
    """A past moment of a branch, as a scope reads it."""

    core: Core
    branch: Branch
    scope: Scope
    point: PastPoint

    def view(self, present: View, words: WordView | None = None) -> PastView:
        """Return the view of the moment within a view of the store."""
        return PastView(present, self.branch, self.point.head_in(present, self.branch), self.point.now, words)

    def reading(self, present: View, words: WordView | None = None) -> Reading:
        """Return what a reading operation needs."""
        core, point = self.core, self.point
        return replace(
            core.reading(present, self.branch, self.scope, words),
            view=self.view(present, words),
            now=point.now,
            log_head=lambda: core.log_trees.head(present, self.branch, point.seq),
        )

    def on_index(self, read: Callable[[View, WordView], T]) -> T:
        """Call `read` with a view of the store and the index of the moment."""

        def index_at(view: View) -> WordView | None:
            return self.core.past.view(view, self.branch, self.point.head_in(view, self.branch))

        return self.core.on_index(self.branch, read, index_at)


def pin(core: Core, branch: Branch, scope: Scope, target: Pin) -> Moment:
    """Return the moment that a target names."""
    core.now()
    with core.read(branch) as view:
        point = resolve(target, view, branch, scope, core.cursors, core.reads_at(view, branch))
    return point.moment(branch, core.cursors)


def at(core: Core, branch: Branch, scope: Scope, operation: At) -> Any:
    """Execute an operation as of a moment.

    Raises:
        ReadOnlyMemoryError: The operation writes, or concerns the present.
    """
    read = _READS.get(type(operation.operation))
    if read is None:
        raise ReadOnlyMemoryError(operation.operation.name)
    core.now()
    return read(_Past(core, branch, scope, point_of(operation.moment, branch, core.cursors)), operation.operation)


def _on_view(query: Callable[[Reading, Any], Any]) -> Callable[[_Past, Any], Any]:
    """Return the handler of an operation that reads commits, or records by their ids."""

    def run(past: _Past, operation: Operation) -> Any:
        with past.core.read(past.branch) as view:
            return query(past.reading(view), operation)

    return run


def _on_index(query: Callable[[Reading, Any], Any]) -> Callable[[_Past, Any], Any]:
    """Return the handler of an operation that looks for records."""

    def run(past: _Past, operation: Operation) -> Any:
        return past.on_index(lambda view, words: query(past.reading(view, words), operation))

    return run


def recall_at(core: Core, branch: Branch, point: PastPoint, operation: Recall, *, dense: bool) -> Hits:
    """Return the hits of a question with a reference time, as of a moment.

    Args:
        core: The engine.
        branch: The branch.
        point: The moment.
        operation: The question.
        dense: Whether the vectors are used, if there are any.
    """
    return _recall(_Past(core, branch, Scope(), point), operation, dense=dense)


def _recall(past: _Past, operation: Recall, *, dense: bool = True) -> Hits:
    core = past.core
    core.intake.limits.check_question(operation.question)
    if operation.wait_for_vectors:
        raise ReadOnlyMemoryError("waiting for vectors")
    if operation.reference is None:
        operation = operation.with_reference(datetime_of(past.point.now))

    def read(reading: Reading, notes: tuple[str, ...]) -> Hits:
        hits = reading.recall(operation)
        return replace(hits, plan=replace(hits.plan, notes=(*hits.plan.notes, *notes))) if notes else hits

    return _with_vectors(past, operation.question if dense else None, read)


def _similar(past: _Past, operation: FindSimilar) -> Similar:
    past.core.intake.limits.check_question(operation.text)
    more = ("nothing is embedded at a past moment",) if operation.embed and past.core.vectors is not None else ()

    def read(reading: Reading, notes: tuple[str, ...]) -> Similar:
        found = reading.similar(operation)
        return replace(found, notes=(*found.notes, *notes, *more))

    return _with_vectors(past, operation.text, read)


def _recall_sdrs(past: _Past, operation: RecallSdrs) -> list[FoundSdr]:
    past.core.intake.limits.check_question(operation.text)
    found: list[FoundSdr] = _on_index(Reading.sdrs)(past, operation)
    return found


def _with_vectors(past: _Past, question: str | None, read: Callable[[Reading, tuple[str, ...]], T]) -> T:
    """Call `read` with the records of a moment and the vectors that are stored now, and a note if there are any."""
    core = past.core
    vector = None if core.vectors is None or question is None else core.vectors.embed_question(question, past.branch)

    def on_index(view: View, words: WordView) -> T:
        reading = past.reading(view, words)
        if core.vectors is None or vector is None or vector.keeper is None:
            return read(replace(reading, question_vector=vector), ())
        stored_now = vector._replace(keeper=PastVectors(core.vectors, view, past.point.seq))
        note = "the dense signal uses the vectors that are stored now"
        return read(replace(reading, question_vector=stored_now), (note,))

    return past.on_index(on_index)


def _receipt(past: _Past, operation: Receipt) -> receipts.Receipt:
    if past.scope.fixed:
        raise ScopeError("a receipt, which covers the whole namespace,", str(past.scope))
    return receipt(past.core, past.branch, operation)


def _grep(past: _Past, operation: Grep) -> RecordList:
    """Search the texts of the present, with those that have changed since replaced by what they were."""
    core, branch, point = past.core, past.branch, past.point
    core.intake.limits.check_query(operation.query)

    def undone(view: View) -> Sequence[Record | str]:
        head = point.head_in(view, branch)
        changes = view.net_changes(branch, head.seq, view.head(branch).seq)
        records = past_records(view, branch, {each: before for each, (before, _) in changes.items()})
        return [each if record is None else record for each, record in records.items()]

    return grep(operation, branch, past.scope, core.store, core.fulltext, lambda view, branch: point.now, undone)


def _export(past: _Past, operation: OpenExport) -> Export:
    return past.on_index(lambda view, words: _exported(past, view, words))


def _exported(past: _Past, view: View, words: WordView) -> Export:
    branch, scope, now = past.branch, past.scope, past.point.now
    reading = past.view(view, words)
    if scope.fixed:
        records = in_order(map(scope.shown, reading.select(branch, scope.filter, order="id", now=now)), "id")
        return Export("", len(records), iter(records))
    table = words.at(now).table
    ids = sorted((table.id(each) for each in table.alive[: table.count].nonzero()[0].tolist()), key=str.encode)
    root = past.point.root
    if len(ids) != words.table.live_count:  # without the records that had expired
        versions = {each: after for each, (_, after) in view.net_changes(branch, 0, past.point.seq).items()}
        root = root_of({each: version for each in ids if (version := versions[each]) is not None})

    def records_of() -> Iterator[Record]:
        for start in range(0, len(ids), _PAGE):  # each page in a view of its own: the past does not change
            page = ids[start : start + _PAGE]
            with past.core.store.read() as later:
                stored = past.view(later).several(branch, page)
            yield from (Record.load(stored[each].payload) for each in page if each in stored)

    return Export(root.hex(), len(ids), records_of())


def _prove(past: _Past, operation: Prove) -> Proof:
    if past.scope.fixed:
        raise ScopeError("a proof, which covers the whole namespace,", str(past.scope))
    with past.core.read(past.branch) as view:
        past.point.head_in(view, past.branch)  # the history is the same
        return prove(replace(operation, at=past.point.seq), view, past.branch, past.core.store, past.core.log_trees)


#: How each operation that has a past is executed. All others are refused.
_READS: dict[type[Operation], Callable[[_Past, Any], Any]] = {
    Get: _on_view(Reading.get),
    Find: _on_index(Reading.find),
    Count: _on_index(Reading.count),
    Recall: _recall,
    FindSimilar: _similar,
    Receipt: _receipt,
    Grep: _grep,
    Stats: _on_index(Reading.stats),
    ValidUntil: _on_index(Reading.valid_until),
    Entities: _on_index(lambda reading, operation: reading.mentions().entities(operation)),
    EntityOf: _on_index(lambda reading, operation: reading.mentions().entity(operation)),
    Neighbours: _on_index(lambda reading, operation: reading.mentions().neighbours(operation)),
    Paths: _on_index(lambda reading, operation: reading.mentions().paths(operation)),
    RecallTerms: _on_index(lambda reading, operation: reading.glossary(operation).recall(operation)),
    AnnotateTerms: _on_index(lambda reading, operation: reading.glossary(operation).annotate(operation)),
    SharedNames: _on_index(lambda reading, operation: reading.glossary(operation).shared_names(operation)),
    RecallSdrs: _recall_sdrs,
    ReadTree: _on_index(Reading.tree),
    ReadHead: _on_view(Reading.head),
    Changes: _on_view(Reading.changes),
    Namespaces: _on_view(Reading.namespaces),
    GetQuota: _on_view(Reading.quota),
    GetPolicies: _on_view(Reading.policies),
    OpenExport: _export,
    Prove: _prove,
    Now: lambda past, operation: datetime_of(past.point.now).astimezone(past.core.zone),
    Zone: lambda past, operation: past.core.store.zone,
}
