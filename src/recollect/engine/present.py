"""The present, as reading operations see it: the newest view, the index caught up to it, and the embedder."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from recollect.engine import receipts
from recollect.engine.core import Core
from recollect.engine.index.vectors import EmbeddedTexts, Progress, QuestionVector, needs_embedder
from recollect.engine.place import Place
from recollect.engine.quota import REFUSE, quota_of
from recollect.engine.read.filter_bounds import index_helps, selective
from recollect.engine.read.full_text import grep
from recollect.engine.read.proofs import prove
from recollect.engine.read.queries import Reading, importance_limit, stored_record
from recollect.engine.results import Export, RecordList
from recollect.errors import RecollectError
from recollect.filters.tree import AllOf, Filter
from recollect.indexes.words.index import WordView
from recollect.ledger.proofs import Proof
from recollect.ledger.receipts import Receipt as ReceiptForm
from recollect.operations import Count, Find, Grep, Prove, Receipt
from recollect.records.record import Record
from recollect.stores.base import View

T = TypeVar("T")
#: Number of texts that are embedded at a time while a read waits for them.
EMBEDDED_AT_A_TIME = 100


class Present:
    """A `Reader` of the newest state.

    Args:
        core: The core.
        place: Where and for whom the operation is executed.
    """

    def __init__(self, core: Core, place: Place) -> None:
        self._core = core
        self.branch = place.branch
        self.scope = place.scope
        self.intake = core.intake
        self.now = core.now()

    def on_view(self, read: Callable[[Reading], T]) -> T:
        """Call `read` with the newest view, and the index if it is loaded. See `Reader.on_view`."""
        core, branch = self._core, self.branch
        with core.read(branch) as view:
            return read(core.reading(view, branch, self.scope, core.keeper.current(view, branch)))

    def on_records(self, read: Callable[[Reading], T], operation: Find | Count | None = None) -> T:
        """Call `read` with the newest view. See `Reader.on_records`."""
        core, branch, scope = self._core, self.branch, self.scope
        helps = in_file = False
        if operation is not None:
            in_file = not selective(AllOf.of(scope.filter, operation.where))
            helps = index_helps(operation.where) or (in_file and importance_limit(operation) is not None)
        with core.read(branch) as view:
            words = core.keeper.loaded(view, branch, in_file=in_file) if helps else None
            found = read(core.reading(view, branch, scope, words))
            if words is not None:
                core.keeper.recount(branch)
            return found

    def on_index(self, read: Callable[[Reading], T], vector: QuestionVector | None = None) -> T:
        """Call `read` with a view and the index. See `Reader.on_index`."""
        core, branch = self._core, self.branch

        def on_view(view: View, words: WordView) -> T:
            found = read(core.reading(view, branch, self.scope, words, vector))
            core.keeper.recount(branch)
            return found

        return core.on_index(branch, on_view)

    def on_vectors(self, text: str, read: Callable[[Reading], T]) -> T:
        """Call `read` with a view, the index and the vector of a text. See `Reader.on_vectors`."""
        if self._core.vectors is None:
            return self.on_index(read)
        with self._core.store.read():  # raises if the memory is closed, before the model is called
            pass
        # A model may be slow, so it is called before a view is opened.
        return self.on_index(read, self._core.vectors.embed_question(text, self.branch))

    def followed(self, index: str, key: Hashable, read: Callable[[Any, int], T]) -> T:
        """Call `read` with the index of a facet. See `Reader.followed`."""
        return self._core.followed(index, self.branch, key, read)

    def note_uses(self, reading: Reading, record_ids: list[str]) -> None:
        """Note the use of records, if the quota evicts by use. It is written later in batches, outside the ledger."""
        quota = quota_of(reading.view, reading.branch)
        if quota is None or quota.when_full == REFUSE:
            return
        branch, scope, now = reading.branch, reading.scope, reading.now
        if scope.fixed:
            stored = (stored_record(each, reading.view, branch, scope, now) for each in record_ids)
            record_ids = [record.id for record in stored if record is not None]
        newest = reading.view.head(branch).micros  # which may be later, where the clock stands still
        self._core.uses.note(branch, record_ids, max(now, newest + 1))

    def embed_all(self, batch_size: int, progress: Progress | None) -> EmbeddedTexts:
        """Embed the texts that have no vector."""
        core, branch = self._core, self.branch
        if core.vectors is None:
            raise needs_embedder()
        with core.read(branch) as view:
            now = core.reads_at(view, branch)
        return core.vectors.embed_all(core.store, branch, self.scope, now, batch_size, progress)

    def embed_missing(self) -> tuple[str, ...]:
        """Embed the texts that have no vector. See `Reader.embed_missing`."""
        return _note_of_failed(self.embed_all(EMBEDDED_AT_A_TIME, None))

    def embed_candidates(self, where: Filter) -> tuple[str, ...]:
        """Embed the texts without a vector of the records that match. See `Reader.embed_candidates`."""
        vectors, branch = self._core.vectors, self.branch
        if vectors is None:
            return ()

        def read(reading: Reading) -> tuple[list[Record], int]:
            candidates = reading.candidates(where)
            missing = candidates.without_vector(vectors.has_vector(model, branch, candidates.table))
            return list(missing), reading.view.head(branch).seq

        try:
            model = vectors.model()  # it may be called, so before a view is opened
            missing, seq = self.on_index(read)
            done = vectors.embed_records(self._core.store, branch, model, missing, seq, EMBEDDED_AT_A_TIME)
        except RecollectError as error:
            return (f"texts could not be embedded: {error}",)
        return _note_of_failed(done)

    def grep(self, operation: Grep) -> RecordList:
        """Return the records that match a full-text query."""
        core = self._core
        return grep(operation, self.branch, self.scope, core.store, core.fulltext, core.reads_at)

    def export(self) -> Export:
        """Open a snapshot of the live records."""
        return self._core.export(self.branch, self.scope)

    def prove(self, operation: Prove) -> Proof:
        """Return a proof that a record is stored or not."""
        with self._core.read(self.branch) as view:
            return prove(operation, view, self.branch, self._core.store, self._core.log_trees)

    def receipt(self, operation: Receipt) -> ReceiptForm:
        """Return the receipt of an answer."""
        return receipts.receipt(self._core, self.branch, operation)


def _note_of_failed(done: EmbeddedTexts) -> tuple[str, ...]:
    if not done.failed:
        return ()
    return (f"{len(done.failed)} texts could not be embedded, the first because {done.failed[0]}",)
