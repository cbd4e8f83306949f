"""A past moment, as reading operations see it.

A past read notes no use of a record, embeds nothing, and changes no index of the present.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from recollect.engine import receipts
from recollect.engine.core import Core
from recollect.engine.index.past import past_records
from recollect.engine.index.vectors import PastVectors
from recollect.engine.place import Place
from recollect.engine.read.full_text import grep
from recollect.engine.read.past_view import PastView
from recollect.engine.read.proofs import prove
from recollect.engine.read.queries import Reading
from recollect.engine.read.targets import PastPoint, resolve
from recollect.engine.results import Export, Moment, RecordList
from recollect.errors import ReadOnlyMemoryError
from recollect.filters.tree import Filter
from recollect.indexes.words.index import WordView
from recollect.ledger.merkle import root_of
from recollect.ledger.proofs import Proof
from recollect.ledger.receipts import Receipt as ReceiptForm
from recollect.operations import Count, Find, Grep, Pin, Prove, Receipt
from recollect.records.codec import datetime_of
from recollect.records.record import Record
from recollect.stores.base import View
from recollect.stores.ordering import in_order

T = TypeVar("T")
#: Records of an export that are read at a time.
_PAGE = 500


def pin(core: Core, place: Place, target: Pin) -> Moment:
    """Return the moment that a target names."""
    core.now()
    branch = place.branch
    with core.read(branch) as view:
        point = resolve(target, view, branch, place.scope, core.cursors, core.reads_at(view, branch))
    return point.moment(branch, core.cursors)


class Past:
    """A `Reader` of a past moment.

    Args:
        core: The core.
        place: Where and for whom the operation is executed.
        point: The moment.
        dense: Whether the vectors are used, if there are any.
    """

    def __init__(self, core: Core, place: Place, point: PastPoint, *, dense: bool = True) -> None:
        core.now()
        self._core = core
        self._point = point
        self._vectors = core.vectors if dense else None
        self.branch = place.branch
        self.scope = place.scope
        self.intake = core.intake
        self.now = datetime_of(point.now).astimezone(core.zone)

    def _view(self, present: View, words: WordView | None = None) -> PastView:
        """Return the view of the moment within a view of the store."""
        return PastView(present, self.branch, self._point.head_in(present, self.branch), self._point.now, words)

    def _reading(self, present: View, words: WordView | None = None) -> Reading:
        core, point = self._core, self._point
        return replace(
            core.reading(present, self.branch, self.scope, words),
            view=self._view(present, words),
            now=point.now,
            log_head=lambda: core.log_trees.head(present, self.branch, point.seq),
        )

    def _on_index(self, read: Callable[[View, WordView], T]) -> T:
        """Call `read` with a view of the store and the index of the moment."""

        def index_at(view: View) -> WordView | None:
            return self._core.past.view(view, self.branch, self._point.head_in(view, self.branch))

        return self._core.on_index(self.branch, read, index_at)

    def on_view(self, read: Callable[[Reading], T]) -> T:
        """Call `read` with a view of the moment. See `Reader.on_view`."""
        with self._core.read(self.branch) as view:
            return read(self._reading(view))

    def on_index(self, read: Callable[[Reading], T]) -> T:
        """Call `read` with a view of the moment and its index. See `Reader.on_index`."""
        return self._on_index(lambda view, words: read(self._reading(view, words)))

    def on_records(self, read: Callable[[Reading], T], operation: Find | Count | None = None) -> T:
        """Call `read` with a view of the moment and its index, by which its records are found."""
        return self.on_index(read)

    def on_vectors(self, text: str, read: Callable[[Reading], T]) -> T:
        """Call `read` with the records of the moment and the vectors that are stored now, and a note if there are any.

        See `Reader.on_vectors`.
        """
        vectors = self._vectors
        question = None if vectors is None else vectors.embed_question(text, self.branch)

        def on_index(view: View, words: WordView) -> T:
            reading = replace(self._reading(view, words), question_vector=question)
            if vectors is not None and question is not None and question.keeper is not None:
                stored_now = question._replace(keeper=PastVectors(vectors, view, self._point.seq))
                note = "the dense signal uses the vectors that are stored now"
                reading = replace(reading, question_vector=stored_now, notes=(note,))
            return read(reading)

        return self._on_index(on_index)

    def followed(self, index: str, key: Hashable, read: Callable[[Any, int], T]) -> T:
        """Call `read` with the index of a facet, derived from the records of the moment. See `Reader.followed`."""
        now = self._point.now
        return self.on_index(lambda reading: read(self._core.facets[index].read(reading.view, key, now), now))

    def note_uses(self, reading: Reading, record_ids: list[str]) -> None:
        """Do nothing: the past changes nothing."""

    def embed_missing(self) -> tuple[str, ...]:
        """Refuse: nothing is embedded at a past moment."""
        raise ReadOnlyMemoryError("waiting for vectors")

    def embed_candidates(self, where: Filter) -> tuple[str, ...]:
        """Return a note: nothing is embedded at a past moment."""
        return () if self._vectors is None else ("nothing is embedded at a past moment",)

    def grep(self, operation: Grep) -> RecordList:
        """Search the texts of the present, with those that have changed since replaced by what they were."""
        core, branch, point = self._core, self.branch, self._point

        def undone(view: View) -> Sequence[Record | str]:
            head = point.head_in(view, branch)
            changes = view.net_changes(branch, head.seq, view.head(branch).seq)
            records = past_records(view, branch, {each: before for each, (before, _) in changes.items()})
            return [each if record is None else record for each, record in records.items()]

        return grep(operation, branch, self.scope, core.store, core.fulltext, lambda view, branch: point.now, undone)

    def export(self) -> Export:
        """Open a snapshot of the records that were live."""
        return self._on_index(self._exported)

    def _exported(self, view: View, words: WordView) -> Export:
        branch, scope, now = self.branch, self.scope, self._point.now
        reading = self._view(view, words)
        if scope.fixed:
            records = in_order(map(scope.shown, reading.select(branch, scope.filter, order="id", now=now)), "id")
            return Export("", len(records), iter(records))
        table = words.at(now).table
        ids = sorted((table.id(each) for each in table.alive[: table.count].nonzero()[0].tolist()), key=str.encode)
        root = self._point.root
        if len(ids) != words.table.live_count:  # without the records that had expired
            versions = {each: after for each, (_, after) in view.net_changes(branch, 0, self._point.seq).items()}
            root = root_of({each: version for each in ids if (version := versions[each]) is not None})

        def records_of() -> Iterator[Record]:
            for start in range(0, len(ids), _PAGE):  # each page in a view of its own: the past does not change
                page = ids[start : start + _PAGE]
                with self._core.store.read() as later:
                    stored = self._view(later).several(branch, page)
                yield from (Record.load(stored[each].payload) for each in page if each in stored)

        return Export(root.hex(), len(ids), records_of())

    def prove(self, operation: Prove) -> Proof:
        """Return a proof that a record was stored or not."""
        core, point = self._core, self._point
        with core.read(self.branch) as view:
            point.head_in(view, self.branch)  # the history is the same
            return prove(replace(operation, at=point.seq), view, self.branch, core.store, core.log_trees)

    def receipt(self, operation: Receipt) -> ReceiptForm:
        """Return the receipt of an answer, which names its own moment."""
        return receipts.receipt(self._core, self.branch, operation)
