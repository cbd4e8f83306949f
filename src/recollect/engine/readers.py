"""The readers (`Reader`): the present, an open batch and a past moment, as reading operations see them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from recollect.engine import receipts
from recollect.engine.core import Core
from recollect.engine.family import chosen
from recollect.engine.index.past import past_records
from recollect.engine.index.vectors import EmbeddedTexts, PastVectors, Progress, QuestionVector, needs_embedder
from recollect.engine.read.export import joined
from recollect.engine.read.filter_bounds import index_helps, selective
from recollect.engine.read.full_text import grep
from recollect.engine.read.past_view import PastView
from recollect.engine.read.proofs import prove
from recollect.engine.read.queries import Reading, by_importance, stored_record
from recollect.engine.read.targets import PastPoint, point_in, resolve
from recollect.engine.results import Export, ExportedPart, Moment, RecordList
from recollect.engine.scope import Place
from recollect.engine.settings import KNOWN_FOR, REFUSE, counts_uses, quota_of
from recollect.engine.write.batch import Writing
from recollect.errors import ReadOnlyMemoryError, RecollectError, UnsupportedError
from recollect.filters.tree import AllOf, Filter
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import root_of
from recollect.ledger.parts import RECORDS
from recollect.ledger.proofs import Proof
from recollect.ledger.receipts import Receipt as ReceiptForm
from recollect.operations import Count, Find, Grep, Pin, Prove, Receipt
from recollect.records.codec import datetime_of
from recollect.records.record import Record
from recollect.stores.base import View
from recollect.stores.values import in_order

T = TypeVar("T")
#: Number of texts that are embedded at a time while a read waits for them.
EMBEDDED_AT_A_TIME = 100


class Present:
    """A `Reader` of the newest state.

    Args:
        place: Where and for whom the operation is executed.
    """

    def __init__(self, core: Core, place: Place) -> None:
        self._core = core
        self._place = place
        self.branch = place.branch
        self.scope = place.scope
        self.intake = core.intake
        self.now = core.now()

    def part(self, branch: Branch) -> Present:
        """Return a reader of the newest state of another part of the memory."""
        return Present(self._core, self._place._replace(branch=branch))

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
            helps = index_helps(operation.where) or (in_file and by_importance(operation))
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

    def on_vectors(self, text: str, read: Callable[[Reading], T], *, asking: bool = False) -> T:
        """Call `read` with a view, the index and the vector of a text. See `Reader.on_vectors`."""
        if self._core.vectors is None:
            return self.on_index(read)
        with self._core.store.read():  # raises if the memory is closed, before the model is called
            pass
        if asking:
            text = self.on_index(lambda reading: reading.to_embed(text))
        # A model may be slow, so it is called before the view of the answer is opened.
        return self.on_index(read, self._core.vectors.embed_question(text, self.branch))

    def followed(self, index: str, key: Hashable, read: Callable[[Any, int], T], own: Hashable = None) -> T:
        """Call `read` with the index of a facet, which is cached. See `Reader.followed`."""
        return self._core.followed(index, self.branch, key, read)

    def note_uses(self, reading: Reading, record_ids: Iterable[str]) -> None:
        """Note the use of records, if a quota evicts or a rule removes by use.

        It is written later in batches, outside the ledger.
        """
        branch, scope, now = reading.branch, reading.scope, reading.now
        quota = quota_of(reading.view, branch)
        if quota is None or quota.when_full == REFUSE:
            known = self._core.counts_uses.get(branch)
            if known is None or not 0 <= now - known[0] < KNOWN_FOR:
                known = self._core.counts_uses[branch] = now, counts_uses(reading.view, branch)
            if not known[1]:
                return
        if scope.fixed:
            stored = (stored_record(each, reading.view, branch, scope, now) for each in record_ids)
            record_ids = [record.id for record in stored if record is not None]
        newest = reading.view.head(branch).micros  # which may be later, where the clock stands still
        self._core.uses.note(branch, list(record_ids), max(now, newest + 1))

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

    def export(self, parts: Collection[str] | None) -> Export:
        """Open a snapshot of the live records."""
        return self._core.export(self.branch, self.scope, parts)

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


# An open batch: the records with its uncommitted changes.
#
# A batch holds the write lock, so no model is called: all other writers would have to wait for it.


class InBatch:
    """A `Reader` of an open transaction.

    Args:
        writing: The open transaction, whose uncommitted changes are read.
    """

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self.branch = writing.branch
        self.scope = writing.scope
        self.intake = writing.services.intake
        self.now = writing.now

    def part(self, branch: Branch) -> InBatch:
        """Return a reader of the transaction for another part of the memory."""
        return InBatch(self._writing.in_part(branch))

    def on_view(self, read: Callable[[Reading], T]) -> T:
        """Call `read` with the transaction. See `Reader.on_view`."""
        return read(self._writing.reading())

    def on_records(self, read: Callable[[Reading], T], operation: Find | Count | None = None) -> T:
        """Call `read` with the transaction. See `Reader.on_records`."""
        return read(self._writing.reading())

    def on_index(self, read: Callable[[Reading], T]) -> T:
        """Call `read` with the transaction and a copy of the index that has its changes. See `Reader.on_index`."""
        return read(self._writing.reading(self._writing.words()))

    def on_vectors(self, text: str, read: Callable[[Reading], T], *, asking: bool = False) -> T:
        """Call `read` as `on_index` does: no text is embedded. See `Reader.on_vectors`."""
        return self.on_index(read)

    def followed(self, index: str, key: Hashable, read: Callable[[Any, int], T], own: Hashable = None) -> T:
        """Call `read` with the index of a facet, rebuilt if the batch has changes. See `Reader.followed`."""
        writing, now = self._writing, self._writing.reads_at
        if writing.writer.touched:
            return read(writing.services.facets[index].read(writing.transaction, own or key, now), now)
        found: T = writing.services.followed(index, self.branch, key, read, now)  # no other writer can commit meanwhile
        return found

    def note_uses(self, reading: Reading, record_ids: Iterable[str]) -> None:
        """Do nothing: the uses of a batch are not noted."""

    def embed_missing(self) -> tuple[str, ...]:
        """Refuse."""
        raise UnsupportedError("waiting for vectors", "a batch holds the write lock: recall with the memory")

    def embed_candidates(self, where: Filter) -> tuple[str, ...]:
        """Refuse."""
        raise UnsupportedError("embedding texts", "a batch holds the write lock: search with the memory")

    def grep(self, operation: Grep) -> RecordList:
        """Return the records that match a full-text query."""
        services, writer, now = self._writing.services, self._writing.writer, self._writing.reads_at
        staged = [writer.live(each) or each for each in writer.touched]
        store, fulltext = services.store, services.fulltext
        return grep(operation, self.branch, self.scope, store, fulltext, lambda view, branch: now, lambda view: staged)


# A past moment.
#
# A past read notes no use of a record, embeds nothing, and changes no index of the present.

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
        place: Where and for whom the operation is executed.
        point: The commit of the moment, and the time that decides which records have expired.
        dense: Whether the vectors are used, if there are any.
        question_vector: The vector of the question, as a receipt has it. None: the model is asked for it.
    """

    def __init__(
        self, core: Core, place: Place, point: PastPoint, *, dense: bool = True, question_vector: str | None = None
    ) -> None:
        core.now()
        self._core = core
        self._place = place
        self._point = point
        self._vectors = core.vectors if dense else None
        self._question_vector = question_vector
        self.branch = place.branch
        self.scope = place.scope
        self.intake = core.intake
        self.now = datetime_of(point.now).astimezone(core.zone)

    def part(self, branch: Branch) -> Past:
        """Return a reader of another part of the memory, at the same moment."""
        with self._core.read(branch) as view:
            point = point_in(view, branch, self.branch, self._point)
        return Past(self._core, self._place._replace(branch=branch), point)

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

    def on_vectors(self, text: str, read: Callable[[Reading], T], *, asking: bool = False) -> T:
        """Call `read` with the records of the moment and the vectors that are stored now, and a note if there are any.

        See `Reader.on_vectors`.
        """
        vectors, question = self._vectors, None
        if vectors is not None and asking and self._question_vector is not None:
            question = vectors.question_of(self._question_vector)
        elif vectors is not None:
            embedded = self.on_index(lambda reading: reading.to_embed(text)) if asking else text
            question = vectors.embed_question(embedded, self.branch)

        def on_index(view: View, words: WordView) -> T:
            reading = replace(self._reading(view, words), question_vector=question)
            if vectors is not None and question is not None and question.keeper is not None:
                stored_now = question._replace(keeper=PastVectors(vectors, view, self._point.seq))
                note = "the dense signal uses the vectors that are stored now"
                reading = replace(reading, question_vector=stored_now, notes=(note,))
            return read(reading)

        return self._on_index(on_index)

    def followed(self, index: str, key: Hashable, read: Callable[[Any, int], T], own: Hashable = None) -> T:
        """Call `read` with the index of a facet, derived from the records of the moment. See `Reader.followed`."""
        now, follower = self._point.now, self._core.facets[index]
        return self.on_index(lambda reading: read(follower.read(reading.view, own or key, now), now))

    def note_uses(self, reading: Reading, record_ids: Iterable[str]) -> None:
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

    def export(self, parts: Collection[str] | None) -> Export:
        """Open a snapshot of the records that were live."""
        readers = {name: self.part(part) for name, part in chosen(self.branch, parts).items()}
        opened = {name: each._export() for name, each in readers.items() if name == RECORDS or each._point.seq}
        return joined(opened, self.branch)

    def _export(self) -> ExportedPart:
        return self._on_index(self._exported)

    def _exported(self, view: View, words: WordView) -> ExportedPart:
        branch, scope, now = self.branch, self.scope, self._point.now
        reading = self._view(view, words)
        if scope.fixed:
            records = in_order(map(scope.shown, reading.select(branch, scope.filter, order="id", now=now)), "id")
            return ExportedPart(branch.reserved_name, "", len(records), iter(records))
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

        return ExportedPart(branch.reserved_name, root.hex(), len(ids), records_of())

    def prove(self, operation: Prove) -> Proof:
        """Return a proof that a record was stored or not."""
        core, point = self._core, self._point
        with core.read(self.branch) as view:
            point.head_in(view, self.branch)  # the history is the same
            return prove(replace(operation, at=point.seq), view, self.branch, core.store, core.log_trees)

    def receipt(self, operation: Receipt) -> ReceiptForm:
        """Return the receipt of an answer, which names its own moment."""
        return receipts.receipt(self._core, self.branch, operation)
