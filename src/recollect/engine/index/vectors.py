"""Vectors beside the records: who makes them, and what recall reads of them.

No model is ever on the write path, inside a transaction, or inside a view of the store: texts are durable first, and
`embed_all` follows, page by page, keeping what each batch gave before it asks for the next. So it can be killed at any
moment and goes on where it was. At question time the question is embedded before the store is looked at; where that
fails, the other signals answer and the hits say what happened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recollect.embedding.base import Embedder, Floats, Supplied, embedded, floors_of
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
from recollect.indexes.documents.table import Table
from recollect.indexes.scoring.dense import Dense, DenseIndex, Quantised, quantised
from recollect.ledger.commits import Branch, Head
from recollect.records.record import Record
from recollect.stores.base import Store, View, expired
from recollect.stores.derived.vectors import Model, VectorStore

#: (how many records have been looked at, of how many)
Progress = Callable[[int, int], object]
#: So many records are read at a time, and so many questions' vectors are kept.
_PAGE = 500
_QUESTIONS = 256
#: After so many batches in a row of which nothing came, the embedder is given up.
_GIVE_UP = 3
_NO_VECTOR = "has made no vector yet: embed_all() does"


class QuestionVector(NamedTuple):
    """A question as the dense signal has it: its vector, or why there is none.

    note   what to tell with the hits; "" where all is well
    """

    keeper: VectorKeeper | None
    model: Model | None = None
    vector: Quantised | None = None
    note: str = ""

    def score(self, branch: Branch, table: Table) -> tuple[Dense | None, str]:
        """The dense signal of each document, and what to tell of it."""
        if self.keeper is None or self.model is None or self.vector is None:
            return None, self.note
        return self.keeper.score(self.model, self.vector, branch, table)

    def reached(self, view: View, branch: Branch) -> int | None:
        """The seq up to which every text has a vector; None where there is no embedder, or it cannot be told."""
        if self.keeper is not None and self.model is not None:
            with suppress(StoreError):
                return self.keeper.reached(view, branch, self.model)
        return None


#: Inside a batch no model is asked: the write lock is held, and everyone would wait for it.
IN_BATCH = QuestionVector(None, note="the dense signal is silent inside a batch, which holds the write lock")


@dataclass
class _CachedVectors:
    index: DenseIndex
    life: int  # of the file that they are from
    seen: int = 0  # the number of the newest vector that it has
    lock: threading.Lock = field(default_factory=threading.Lock)


class VectorKeeper:
    """The vectors of a store, by one embedder. Shared by all namespaces and scopes of one handle."""

    def __init__(self, embedder: Embedder, store: VectorStore) -> None:
        self.embedder = embedder
        self.store = store
        self._floors = floors_of(embedder)
        self._lock = threading.Lock()
        self._cached: dict[tuple[Branch, Model], _CachedVectors] = {}
        self._questions: dict[str, tuple[Model, Quantised]] = {}
        #: Why texts have no vector, as the latest run found: (namespace, digest) -> reason.
        self._failed: dict[tuple[str, bytes], str] = {}

    def close(self) -> None:
        """Close the file, and what the embedder holds open."""
        self.store.close()
        close = getattr(self.embedder, "close", None)
        if callable(close):
            close()

    # Questions

    def embed_question(self, question: str, branch: Branch) -> QuestionVector:
        """Embed a question. Never raises for what an embedder does: the note tells.

        Where the namespace has no vector of this model there is nothing to compare, and the model is not asked.
        """
        try:
            known = any(model.name == self.embedder.name for model, _ in self.store.models(branch.namespace))
        except StoreError as error:
            return QuestionVector(None, note=f"the dense signal is silent: {error}")
        if not known:
            return QuestionVector(None, note=f"the dense signal is silent: {self.embedder.name} {_NO_VECTOR}")
        with self._lock:
            kept = self._questions.get(question)
        if kept is None:
            try:
                out = embedded(self.embedder, [question], asking=True)
            except RecollectError as error:
                return QuestionVector(None, note=f"the dense signal is silent: {error}")
            if 0 not in out.vectors:
                reason = f"the question: {out.refused[0]}"
                return QuestionVector(
                    None, note=f"the dense signal is silent: {EmbedderError(self.embedder.name, reason)}"
                )
            vector = quantised(out.vectors[0][None, :])[0]
            kept = Model(self.embedder.name, len(vector)), vector
            if isinstance(self.embedder, Supplied):  # which may be given another one
                return QuestionVector(self, *kept)
            with self._lock:
                self._questions[question] = kept
                while len(self._questions) > _QUESTIONS:
                    del self._questions[next(iter(self._questions))]
        return QuestionVector(self, *kept)

    def score(self, model: Model, question: Quantised, branch: Branch, table: Table) -> tuple[Dense | None, str]:
        """The dense signal of each document of a table, and what to tell of it."""
        with self._lock:
            held = self._cached.get((branch, model))
            if held is None or held.index.rows is not table.rows or held.life != self.store.life:
                held = _CachedVectors(DenseIndex(table.rows, model.dimension), self.store.life)
                self._cached[branch, model] = held
        with held.lock:
            try:
                for number, vectors in self.store.newer(model, branch.namespace, held.seen):
                    held.index.add(vectors)
                    held.seen = number
            except StoreError as error:
                return None, f"the dense signal is silent: {error}"
            if not len(held.index):
                return None, f"the dense signal is silent: {model.name} {_NO_VECTOR}"
            view = held.index.view(table)
        return view.score(question, table, *self._floors), ""

    def reached(self, view: View, branch: Branch, model: Model) -> int:
        """The seq up to which every text has a vector; 0 where that was in another history (a copy was put back)."""
        seq, root = self.store.reached(model, branch)
        return seq if seq and view.root_at(branch, seq) == root else 0

    # The worker

    def embed_all(
        self, store: Store, branch: Branch, scope: Scope, now: int, batch_size: int, progress: Progress | None
    ) -> int:
        """Embed the texts that have no vector yet; how many.

        Raises: EmbedderError, MissingExtraError: the embedder cannot be used, or failed several times in a row. What
        was embedded before stays.
        """
        model = self._model()
        head, ids = self._candidates(store, branch, scope, model)
        run = _Run(self, model, branch.namespace)
        report = progress or (lambda done, total: None)
        report(0, len(ids))
        for start in range(0, len(ids), _PAGE):
            run.look(list(self._texts(store, branch, scope, now, ids[start : start + _PAGE])))
            looked_at = min(start + _PAGE, len(ids))
            while len(run.pending) >= batch_size or (run.pending and looked_at == len(ids)):
                run.batch(batch_size)
                report(looked_at - len(run.pending), len(ids))
            report(looked_at - len(run.pending), len(ids))
        if not scope.fixed and not run.failed:
            self.store.reach(model, branch, head.seq, head.root.hash)
        return run.done

    def _model(self) -> Model:
        """The model, with its dimension: asked of it where it does not say."""
        dimension = self.embedder.dimension
        if dimension is None:
            out = embedded(self.embedder, ["dimension"])
            if 0 not in out.vectors:
                raise EmbedderError(self.embedder.name, f"a trial text: {out.refused[0]}")
            dimension = len(out.vectors[0])
        return Model(self.embedder.name, dimension)

    def _candidates(self, store: Store, branch: Branch, scope: Scope, model: Model) -> tuple[Head, list[str]]:
        """The newest commit, and the records that may lack a vector at it."""
        with store.read() as view:
            head = view.head(branch)
            seq = 0 if scope.fixed else self.reached(view, branch, model)
            if seq:
                ids = view.changed(branch, seq)
            elif scope.fixed:  # how many others there are is not told
                ids = [record.id for record in view.select(branch, scope.filter, order="id", now=-(2**63))]
            else:  # never done, or with another history
                ids = [record_id for record_id, _ in view.versions(branch)]
        return head, sorted(ids)

    @staticmethod
    def _texts(store: Store, branch: Branch, scope: Scope, now: int, ids: Sequence[str]) -> Iterator[tuple[bytes, str]]:
        """The texts of the records that are live, with their digests. The view is closed before anyone is asked."""
        with store.read() as view:
            records = [record for record in (_live(view, branch, each, now) for each in ids) if record is not None]
        for record in records:
            if scope.admits(record) and (digest := digest_of(record)):
                yield digest, text_of(record)

    def keep(self, model: Model, namespace: str, vectors: dict[bytes, Floats], failed: dict[bytes, str]) -> None:
        """Store what a batch gave, and remember why the others have nothing."""
        if vectors:
            self.store.put(model, namespace, vectors)
        with self._lock:
            for digest in vectors:
                self._failed.pop((namespace, digest), None)
            self._failed.update({(namespace, digest): reason for digest, reason in failed.items()})

    # Facts

    def stats(self, view: View, branch: Branch, scope: Scope, now: int) -> dict[str, Any]:
        """How many texts there are to embed, and how many have a vector of this model."""
        dimension = self.embedder.dimension
        if dimension is None:  # without asking the model: that of the newest vectors under its name
            named = [model for model, _ in self.store.models(branch.namespace) if model.name == self.embedder.name]
            dimension = named[-1].dimension if named else None
        model = None if dimension is None else Model(self.embedder.name, dimension)
        held = self.store.held(model, branch.namespace) if model else set()
        total = done = 0
        failed = []
        with self._lock:
            reasons = dict(self._failed)
        for record in view.select(branch, scope.filter, order="id", now=now):
            digest = digest_of(record)
            total += bool(digest)
            done += digest in held
            if (branch.namespace, digest) in reasons and digest not in held:
                failed.append({"id": scope.shown_id(record.id), "reason": reasons[branch.namespace, digest]})
        out: dict[str, Any] = {
            "model": self.embedder.name,
            "dimensions": dimension,
            "total": total,
            "embedded": done,
            "coverage": round(100.0 * done / total, 2) if total else 100.0,
            "failed": failed,
        }
        if not scope.fixed:  # these tell of the others too
            out["watermark"] = self.reached(view, branch, model) if model else 0
            out["models"] = [
                {"model": each.name, "dimensions": each.dimension, "vectors": count}
                for each, count in self.store.models(branch.namespace)
            ]
        return out


def no_embedder(view: View, branch: Branch, scope: Scope, now: int) -> dict[str, Any]:
    """What `VectorKeeper.stats` gives where there is no embedder."""
    total = sum(bool(digest_of(record)) for record in view.select(branch, scope.filter, order="id", now=now))
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
    """What calls that need an embedder raise where there is none."""
    return UnsupportedError("embedding", "no embedder is set up: open(..., embedder=...), or LLM_EMBEDDING_MODEL")


def _live(view: View, branch: Branch, record_id: str, now: int) -> Record | None:
    stored = view.get(branch, record_id)
    record = None if stored is None else Record.load(stored.payload)
    return None if record is None or expired(record, now) else record


class _Run:
    """One run of the worker: the texts that wait for their vectors, and what became of the others."""

    def __init__(self, keeper: VectorKeeper, model: Model, namespace: str) -> None:
        self._keeper = keeper
        self._model = model
        self._namespace = namespace
        self._empty_batches = 0  # batches in a row of which nothing came
        self.pending: dict[bytes, str] = {}
        self.failed: set[bytes] = set()
        self.done = 0

    def look(self, texts: list[tuple[bytes, str]]) -> None:
        """Add those of the texts that have no vector."""
        known = dict(texts)
        for digest in self._keeper.store.absent(self._model, self._namespace, known):
            if digest not in self.failed:
                self.pending[digest] = known[digest]

    def batch(self, size: int) -> None:
        """Embed the first texts that wait, and store what they give. Raises: EmbedderError, MissingExtraError."""
        digests = list(self.pending)[:size]
        vectors: dict[bytes, Floats] = {}
        failed: dict[bytes, str] = {}
        error = self._embed(digests, vectors, failed)
        self._keeper.keep(self._model, self._namespace, vectors, failed)
        for digest in digests:
            del self.pending[digest]
        self.failed.update(failed)
        self.done += len(vectors)
        self._empty_batches = 0 if vectors else self._empty_batches + 1
        if error is not None and self._empty_batches >= _GIVE_UP:
            raise error

    def _embed(
        self, digests: list[bytes], vectors: dict[bytes, Floats], failed: dict[bytes, str]
    ) -> EmbedderError | None:
        """Embed texts; where the embedder refuses them together, by halves, so that one bad text costs only itself."""
        try:
            out = embedded(
                self._keeper.embedder, [self.pending[each] for each in digests], dimension=self._model.dimension
            )
        except EmbedderUnavailableError:
            raise
        except EmbedderError as error:
            # What a local model raises is most often about a text, too.
            if len(digests) > 1 and (isinstance(error, EmbedderRefusedError) or error.__cause__ is not None):
                middle = len(digests) // 2
                first = self._embed(digests[:middle], vectors, failed)
                return self._embed(digests[middle:], vectors, failed) or first
            failed.update(dict.fromkeys(digests, str(error.args[1])))
            return error
        vectors.update({digests[index]: vector for index, vector in out.vectors.items()})
        failed.update({digests[index]: reason for index, reason in out.refused.items()})
        return None
