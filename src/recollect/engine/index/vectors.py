"""Vectors of records: creating them with an embedder, and reading them for the dense signal of recall.

No model is called on the write path, inside a transaction or inside a view of the store. Texts are durable first;
`embed_all` embeds them later, page by page, and saves the vectors of each batch before the next, so that it can be
killed at any time and then continues. A question is embedded before a view is opened. If that fails, the other signals
are used, and the notes of the hits state the reason.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from recollect.engine.follower import Budget, Use, changed_since, in_history
from recollect.engine.index.document_of import digest_of, text_of
from recollect.engine.scope import Scope
from recollect.errors import (
    EmbedderError,
    EmbedderRefusedError,
    EmbedderUnavailableError,
    RecollectError,
    StoreError,
    UnsupportedError,
)
from recollect.indexes.documents.columns import Flags, Ints
from recollect.indexes.documents.row_data import Rows
from recollect.indexes.documents.table import Table
from recollect.indexes.scoring.dense import Dense, DenseIndex, DenseView, Quantised, quantised
from recollect.ledger.commits import Branch, Head
from recollect.models.embedding.base import Embedder, Floats, Floors, Supplied, Unusable, embedded, floors_of
from recollect.records.record import Record
from recollect.stores.base import ReadView, Store, View
from recollect.stores.derived.shared import VectorModel
from recollect.stores.derived.vectors import VectorFile
from recollect.stores.values import expired

#: (number of records processed so far, total)
Progress = Callable[[int, int], object]
#: Memory limit of the vectors that are cached for recall, of all namespaces together, in bytes.
VECTOR_BYTES = 2**31
#: Number of records that are read at a time, and of question vectors that are cached.
_PAGE = 500
_QUESTIONS = 256
#: `embed_all` stops after this many batches in a row without a vector.
_GIVE_UP = 3
#: The reason without any vector, the same whether others have some that may not be asked.
NO_VECTORS = (
    "the dense signal is not used: no record that may be asked has a vector yet: call embed_all(), or run "
    "`recollect embed`"
)
_PARTLY = (
    "the dense signal is partial: some records have no vector: embed_all() or `recollect embed` embeds them, or says "
    "why not"
)


class VectorSource(Protocol):
    """Vectors that questions are compared with: those of the present (`VectorKeeper`), or of a past moment."""

    @property
    def floors(self) -> Floors:
        """The floors of the model."""

    def vectors_of(self, model: VectorModel, branch: Branch, table: Table) -> tuple[DenseView | None, str]:
        """Return the vectors of the documents of a table; None and the reason if there are none."""

    def reached(self, view: ReadView, branch: Branch, model: VectorModel) -> int:
        """Return the seq up to which every text has a vector."""


class QuestionVector(NamedTuple):
    """The vector of a question, or the reason why there is none.

    Attributes:
        keeper: The vectors to compare it with; None if there is no vector.
        model: The model of the vector.
        note: The reason for the notes of the hits; "" if there is a vector.
    """

    keeper: VectorSource | None
    model: VectorModel | None = None
    vector: Quantised | None = None
    note: str = ""

    def score(self, branch: Branch, table: Table) -> tuple[Dense | None, str]:
        """Return the dense signal of each document, and a note; None and the reason if there is no signal."""
        if self.keeper is None or self.model is None or self.vector is None:
            return None, self.note
        view, note = self.keeper.vectors_of(self.model, branch, table)
        if view is None:
            return None, note
        return view.score(self.vector, table, *self.keeper.floors), _PARTLY if view.is_partial(table) else note

    def cosines(self, branch: Branch, table: Table) -> tuple[Ints | None, str]:
        """Return the cosine of each document (`DenseView.cosines`); None and the reason if there are none."""
        if self.keeper is None or self.model is None or self.vector is None:
            return None, self.note
        view, note = self.keeper.vectors_of(self.model, branch, table)
        return None if view is None else view.cosines(self.vector), note

    def as_text(self) -> str:
        """Return the vector as plans and receipts have it; "" if there is none."""
        if self.vector is None:
            return ""
        return base64.b64encode(self.vector.astype("<i2").tobytes()).decode("ascii")

    def reached(self, view: ReadView, branch: Branch) -> int | None:
        """Return the seq up to which every text has a vector; None if there is no vector or it cannot be read."""
        if self.keeper is not None and self.model is not None:
            with suppress(StoreError):
                return self.keeper.reached(view, branch, self.model)
        return None


class EmbeddedTexts(NamedTuple):
    """The result of embedding texts.

    Attributes:
        texts: The number of texts that were embedded.
        failed: The reason for each text that could not be embedded.
    """

    texts: int
    failed: list[str]


class PastVectors(NamedTuple):
    """The vectors of a past moment: those that are stored now, since vectors are not part of the history.

    Attributes:
        keeper: The vectors.
        present: The view of the present in which the past is read.
        seq: The seq of the moment.
    """

    keeper: VectorKeeper
    present: View
    seq: int

    @property
    def floors(self) -> Floors:
        """The floors of the model."""
        return self.keeper.floors

    def vectors_of(self, model: VectorModel, branch: Branch, table: Table) -> tuple[DenseView | None, str]:
        """Return the vectors of the documents of a table. See `VectorSource`."""
        return self.keeper.vectors_of(model, branch, table, past=True)

    def reached(self, view: ReadView, branch: Branch, model: VectorModel) -> int:
        """Return the seq up to which every text of the moment has a vector."""
        return min(self.keeper.reached(self.present, branch, model), self.seq)


#: Inside a batch no model is called: all other writers would have to wait for it.
IN_BATCH = QuestionVector(None, note="the dense signal is not used inside a batch, which holds the write lock")


@dataclass
class _CachedVectors:
    index: DenseIndex
    life: int  # the `VectorFile.life` of the file that they were read from
    seen: int = 0  # the number of the newest vector in `index`
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def nbytes(self) -> int:
        return self.index.nbytes


class VectorKeeper:
    """The vectors of a store and their embedder. Shared by all namespaces and scopes opened from one memory.

    Args:
        store: The stored vectors.
        key: The key of the digests that they are stored under.
        budget_bytes: Memory limit of the vectors cached for recall. Those of the least recently used branch and model
            are evicted, and read again when they are needed. At least one matrix is kept.
    """

    def __init__(self, embedder: Embedder, store: VectorFile, key: bytes, *, budget_bytes: int = VECTOR_BYTES) -> None:
        self.embedder = embedder
        self.store = store
        self.key = key
        self.floors = floors_of(embedder)
        self._lock = threading.Lock()
        self._cached: Budget[tuple[Branch, VectorModel], _CachedVectors] = Budget(budget_bytes)
        self._loaded = 0
        self._questions: dict[str, tuple[VectorModel, Quantised]] = {}
        #: (namespace, digest) -> reason why the latest run could not embed the text.
        self._failed: dict[tuple[str, bytes], str] = {}
        self._dimension: int | None = None  # of the latest vector, if the embedder does not state it

    @property
    def use(self) -> Use:
        """Statistics of the cache: its contents, and how often they were loaded."""
        return Use(len(self._cached), self._cached.nbytes, self._cached.evicted, self._loaded, 0)

    def close(self) -> None:
        """Release the cached vectors, and close the embedder if it can be closed."""
        self._cached.clear()
        close = getattr(self.embedder, "close", None)
        if callable(close):
            close()

    def forget_erased(self) -> None:
        """Discard everything that is cached: it may be about what was erased."""
        with self._lock:
            self._questions.clear()
            self._failed.clear()
        self._cached.clear()

    # Questions

    def question_of(self, text: str) -> QuestionVector:
        """Return the vector of a question as a receipt has it (`QuestionVector.as_text`)."""
        vector = np.frombuffer(base64.b64decode(text), dtype="<i2").astype(np.int16)
        return QuestionVector(self, VectorModel(self.embedder.name, len(vector)), vector)

    def embed_question(self, question: str, branch: Branch) -> QuestionVector:
        """Embed a question. If the embedder fails, the result has a note instead of a vector.

        The model is not called if the namespace has no vector of it, since there is nothing to compare.
        """
        if isinstance(self.embedder, Unusable):
            return QuestionVector(None, note=f"the dense signal is not used: {self.embedder.error}")
        # Before the cache: what another namespace asked must make no difference.
        try:
            known = self.store.has_any(self.embedder.name, branch.namespace)
        except StoreError as error:
            return QuestionVector(None, note=f"the dense signal is not used: {error}")
        if not known:
            return QuestionVector(None, note=NO_VECTORS)
        with self._lock:
            cached = self._questions.get(question)
        if cached is None:
            try:
                out = embedded(self.embedder, [question], asking=True)
            except RecollectError as error:
                return QuestionVector(None, note=f"the dense signal is not used: {error}")
            if 0 not in out.vectors:
                reason = f"the question: {out.refused[0]}"
                return QuestionVector(
                    None, note=f"the dense signal is not used: {EmbedderError(self.embedder.name, reason)}"
                )
            vector = quantised(out.vectors[0][None, :])[0]
            cached = VectorModel(self.embedder.name, len(vector)), vector
            self._dimension = len(vector)
            if isinstance(self.embedder, Supplied):  # its vectors can be replaced, so do not cache this one
                return QuestionVector(self, *cached)
            with self._lock:
                self._questions[question] = cached
                while len(self._questions) > _QUESTIONS:
                    del self._questions[next(iter(self._questions))]
        return QuestionVector(self, *cached)

    def vectors_of(
        self, model: VectorModel, branch: Branch, table: Table, *, past: bool = False
    ) -> tuple[DenseView | None, str]:
        """Return the vectors of the documents of a table, and ""; None and the reason if there are none.

        Args:
            model: The model of the vectors.
            table: The documents.
            past: They are those of a past moment. They use the vectors that are cached for the present, and replace
                none of them.
        """
        with self._lock:
            cached = self._cached.get((branch, model))
            if cached is None or cached.life != self.store.life or not (past or cached.index.is_of(table)):
                rows = Rows() if past else table.rows  # the first recall of the present starts an index of its own
                cached = _CachedVectors(DenseIndex(rows, model.dimension), self.store.life)
                self._cached.put((branch, model), cached)
                self._loaded += 1
        with cached.lock:
            try:
                view = self._view(cached, model, branch, table, past)
                lacks_some = view is None or past or view.is_partial(table)
                if lacks_some and self.store.fetch(model, branch, partial(_unknown, view, table)):
                    view = self._view(cached, model, branch, table, past)
            except StoreError as error:
                return None, f"the dense signal is not used: {error}"
            finally:
                self._cached.count((branch, model), cached)
        if view is None:
            return None, NO_VECTORS
        return view, ""

    def _view(
        self, cached: _CachedVectors, model: VectorModel, branch: Branch, table: Table, past: bool
    ) -> DenseView | None:
        """Return the stored vectors of the documents of a table; None if there are none."""
        for number, vectors in self.store.newer(model, branch.namespace, cached.seen):
            cached.index.add(vectors)
            cached.seen = number
        if not len(cached.index):
            return None
        return cached.index.view_of(table) if past else cached.index.view(table)

    def reached(self, view: ReadView, branch: Branch, model: VectorModel) -> int:
        """Return the seq up to which every text has a vector; 0 if it belongs to another history (a restored copy)."""
        seq, root = self.store.reached(model, branch)
        return seq if in_history(view, branch, seq, root) else 0

    # The worker

    def model(self) -> VectorModel:
        """Return the model with its dimension, of which the embedder is asked once if it does not state it.

        Raises:
            EmbedderError: It must be asked, and cannot be used.
            MissingExtraError: A library that the embedder needs is not installed.
        """
        dimension = self.embedder.dimension or self._dimension
        return self._asked() if dimension is None else VectorModel(self.embedder.name, dimension)

    def has_vector(self, model: VectorModel, branch: Branch, table: Table) -> Flags:
        """Return which documents of a table have a vector of a model.

        Raises:
            StoreError: The vectors cannot be read.
        """
        stored = any(each == model for each, _ in self.store.models(branch.namespace))
        view = self.vectors_of(model, branch, table)[0] if stored else None
        return np.zeros(table.count, dtype=np.bool_) if view is None else view.known

    def embed_records(
        self, store: Store, branch: Branch, model: VectorModel, records: Sequence[Record], seq: int, batch_size: int
    ) -> EmbeddedTexts:
        """Embed the texts of some records, those that have no vector yet. See `embed_all`.

        Args:
            branch: The branch of the records.
            model: The model (`model`).
            seq: The seq of the view that they were read in.
            batch_size: Number of texts that are embedded at a time.
        """
        if not records:
            return EmbeddedTexts(0, [])
        run = _Run(self, model, branch, store, seq)
        texts = [
            _Text(record.id, digest, text_of(record)) for record in records if (digest := digest_of(record, self.key))
        ]
        for start in range(0, len(texts), _PAGE):
            run.look(texts[start : start + _PAGE])
            while run.pending:
                run.batch(batch_size)
        return self._embedded(run)

    def embed_all(
        self, store: Store, branch: Branch, scope: Scope, now: int, batch_size: int, progress: Progress | None
    ) -> EmbeddedTexts:
        """Embed the texts that have no vector yet, and return how many and which failed.

        Vectors that were saved before an error remain.

        Raises:
            EmbedderError: The embedder cannot be used, or `_GIVE_UP` batches in a row failed.
            MissingExtraError: A library that the embedder needs is not installed.
        """
        model = self._asked()
        head, ids = self._candidates(store, branch, scope, model)
        run = _Run(self, model, branch, store, head.seq)
        report = progress or (lambda done, total: None)
        report(0, len(ids))
        for start in range(0, len(ids), _PAGE):
            run.look(list(self._texts(store, branch, scope, now, ids[start : start + _PAGE])))
            looked_at = min(start + _PAGE, len(ids))
            while len(run.pending) >= batch_size or (run.pending and looked_at == len(ids)):
                run.batch(batch_size)
                report(looked_at - len(run.pending), len(ids))
            report(looked_at - len(run.pending), len(ids))
        if not scope.fixed and not run.failed and not run.saw_erasure():
            self.store.reach(model, branch, head.seq, head.root.hash)
        return self._embedded(run)

    def _embedded(self, run: _Run) -> EmbeddedTexts:
        with self._lock:
            reasons = [self._failed.get((run.namespace, digest), "its text was erased") for digest in run.failed]
        return EmbeddedTexts(run.done, reasons)

    def _asked(self) -> VectorModel:
        """Return the model; if the embedder does not state its dimension, a trial text is embedded."""
        dimension = self.embedder.dimension
        if dimension is None:
            out = embedded(self.embedder, ["dimension"])
            if 0 not in out.vectors:
                raise EmbedderError(self.embedder.name, f"a trial text: {out.refused[0]}")
            dimension = self._dimension = len(out.vectors[0])
        return VectorModel(self.embedder.name, dimension)

    def _candidates(self, store: Store, branch: Branch, scope: Scope, model: VectorModel) -> tuple[Head, list[str]]:
        """Return the newest commit, and the ids of the records that may lack a vector."""
        with store.read() as view:
            head = view.head(branch)
            changed = None if scope.fixed else changed_since(view, branch, *self.store.reached(model, branch))
            if changed is not None:
                ids = changed
            elif scope.fixed:  # only the scope's records, since progress reports their number
                ids = [record.id for record in view.select(branch, scope.filter, order="id", now=-(2**63))]
            else:  # first run, or another history
                ids = [record_id for record_id, _ in view.versions(branch)]
        return head, sorted(ids)

    def _texts(self, store: Store, branch: Branch, scope: Scope, now: int, ids: Sequence[str]) -> Iterator[_Text]:
        """Yield the text of each live record. The view is closed before the embedder is called."""
        with store.read() as view:
            records = [record for record in (_live(view, branch, each, now) for each in ids) if record is not None]
        for record in records:
            if scope.admits(record) and (digest := digest_of(record, self.key)):
                yield _Text(record.id, digest, text_of(record))

    def keep(
        self,
        model: VectorModel,
        namespace: str,
        vectors: dict[bytes, Floats],
        failed: dict[bytes, str],
        wanted: Callable[[], Container[bytes]],
    ) -> None:
        """Save the vectors of a batch, those that are still wanted, and remember why its other texts have none."""
        if vectors:
            self.store.put(model, namespace, vectors, wanted)
        with self._lock:
            for digest in vectors:
                self._failed.pop((namespace, digest), None)
            self._failed.update({(namespace, digest): reason for digest, reason in failed.items()})

    # Facts

    def stats(self, view: View, branch: Branch, scope: Scope, now: int) -> dict[str, Any]:
        """Return how many texts there are and how many have a vector of this model (see `Memory.vector_stats`)."""
        dimension = self.embedder.dimension
        if dimension is None:  # do not call the model: use the dimension of its newest vectors
            named = [model for model, _ in self.store.models(branch.namespace) if model.name == self.embedder.name]
            dimension = named[-1].dimension if named else None
        model = None if dimension is None else VectorModel(self.embedder.name, dimension)
        with_vector = self.store.embedded_digests(model, branch.namespace) if model else set()
        total = done = 0
        failed = []
        with self._lock:
            reasons = dict(self._failed)
        for record in view.select(branch, scope.filter, order="id", now=now):
            digest = digest_of(record, self.key)
            total += bool(digest)
            done += digest in with_vector
            if (branch.namespace, digest) in reasons and digest not in with_vector:
                failed.append({"id": scope.shown_id(record.id), "reason": reasons[branch.namespace, digest]})
        out: dict[str, Any] = {
            "model": self.embedder.name,
            "dimensions": dimension,
            "total": total,
            "embedded": done,
            "coverage": round(100.0 * done / total, 2) if total else 100.0,
            "failed": failed,
        }
        if not scope.fixed:  # these would reveal records outside the scope
            out["watermark"] = self.reached(view, branch, model) if model else 0
            out["models"] = [
                {"model": each.name, "dimensions": each.dimension, "vectors": count}
                for each, count in self.store.models(branch.namespace)
            ]
        return out


def no_embedder(view: View, branch: Branch, scope: Scope, now: int) -> dict[str, Any]:
    """Return the result of `VectorKeeper.stats` if there is no embedder."""
    total = sum(bool(text_of(record).strip()) for record in view.select(branch, scope.filter, order="id", now=now))
    return {
        "model": None,
        "dimensions": None,
        "total": total,
        "embedded": 0,
        "coverage": 0.0 if total else 100.0,
        "failed": [],
        **({} if scope.fixed else {"watermark": 0, "models": []}),
    }


def needs_embedder() -> UnsupportedError:
    """Return the error of calls that need an embedder if there is none."""
    return UnsupportedError(
        "embedding", "no embedder is set up: pass embedder= to recollect.open, or set RECOLLECT_EMBEDDER"
    )


def _unknown(view: DenseView | None, table: Table) -> set[bytes]:
    """Return the digests of the live documents of a table that have no vector in a view; all if there is none."""
    alive = table.alive[: table.count]
    lacking = alive if view is None else alive & ~view.known
    return {table.rows.text(number) for number in np.flatnonzero(lacking).tolist()}


def _live(view: View, branch: Branch, record_id: str, now: int) -> Record | None:
    stored = view.get(branch, record_id)
    record = None if stored is None else Record.load(stored.payload)
    return None if record is None or expired(record, now) else record


class _Text(NamedTuple):
    """The text of a record, and the digest under which its vector is stored."""

    record_id: str
    digest: bytes
    text: str


class _Run:
    """A run of `embed_all`: the texts that wait for their vectors, those that failed, and the number of vectors.

    The texts were read after the commit `seq`. Those that were erased since are not embedded, and the vectors of those
    that are erased while the embedder works are not stored.
    """

    def __init__(self, keeper: VectorKeeper, model: VectorModel, branch: Branch, store: Store, seq: int) -> None:
        self._keeper = keeper
        self._model = model
        self._branch = branch
        self.namespace = branch.namespace
        self._store = store
        self._seq = seq
        self._owners: dict[bytes, list[str]] = {}  # the records of the texts that wait
        self._empty_batches = 0  # batches in a row without a vector
        self.pending: dict[bytes, str] = {}
        self.failed: set[bytes] = set()
        self.done = 0

    def look(self, texts: list[_Text]) -> None:
        """Add those texts that have no vector."""
        known = {each.digest: each.text for each in texts}
        for digest in self._keeper.store.absent(self._model, self.namespace, known):
            if digest not in self.failed:
                self.pending[digest] = known[digest]
        for each in texts:
            if each.digest in self.pending:
                self._owners.setdefault(each.digest, []).append(each.record_id)

    def saw_erasure(self) -> bool:
        """Return whether a record was erased since the run began, and with it perhaps the vector of an equal text."""
        with self._store.read() as view:
            return view.has_erased(self._branch, self._seq)

    def _wanted(self, digests: list[bytes]) -> Container[bytes]:
        """Return those of the digests whose text was not erased since it was read."""
        with self._store.read() as view:
            if not view.has_erased(self._branch, self._seq):
                return digests
            records = {
                each: [_live(view, self._branch, owner, -(2**63)) for owner in self._owners[each]] for each in digests
            }
        return {
            each
            for each in digests
            if any(owner and digest_of(owner, self._keeper.key) == each for owner in records[each])
        }

    def batch(self, size: int) -> None:
        """Embed the first `size` waiting texts and save their vectors.

        Raises:
            EmbedderError: The embedder cannot be used, or too many batches in a row failed.
            MissingExtraError: A library that the embedder needs is not installed.
        """
        digests = list(self.pending)[:size]
        vectors: dict[bytes, Floats] = {}
        failed: dict[bytes, str] = {}
        wanted = self._wanted(digests)
        error = self._embed([each for each in digests if each in wanted], vectors, failed)
        self._keeper.keep(self._model, self.namespace, vectors, failed, lambda: self._wanted(digests))
        for digest in digests:
            del self.pending[digest]
            del self._owners[digest]
        self.failed.update(failed)
        self.done += len(vectors)
        self._empty_batches = 0 if vectors else self._empty_batches + 1
        if error is not None and self._empty_batches >= _GIVE_UP:
            raise error

    def _embed(
        self, digests: list[bytes], vectors: dict[bytes, Floats], failed: dict[bytes, str]
    ) -> EmbedderError | None:
        """Embed texts. If the embedder refuses them, split them in halves, so that only the bad texts fail."""
        if not digests:
            return None
        try:
            out = embedded(
                self._keeper.embedder, [self.pending[each] for each in digests], dimension=self._model.dimension
            )
        except EmbedderUnavailableError:
            raise
        except EmbedderError as error:
            # An exception of a local model (the cause) is usually about one of the texts, too.
            if len(digests) > 1 and (isinstance(error, EmbedderRefusedError) or error.__cause__ is not None):
                middle = len(digests) // 2
                first = self._embed(digests[:middle], vectors, failed)
                return self._embed(digests[middle:], vectors, failed) or first
            failed.update(dict.fromkeys(digests, str(error.args[1])))
            return error
        vectors.update({digests[index]: vector for index, vector in out.vectors.items()})
        failed.update({digests[index]: reason for index, reason in out.refused.items()})
        return None
