"""Computing the vectors of memories and queries with the embedder of a memory."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import recollect
from recollect import RecollectWarning, Record
from recollect import filters as f
from recollect.compat.llm4s.vectors import EMBEDDING, Vector, as_vector, encoded
from recollect.errors import ConflictError, RecollectError, UnknownRecordError
from recollect.models.embedding.base import Embedder, embedded

#: Number of texts that are passed to the embedder at a time, unless the caller passes one.
BATCH = 100
_LAYER = "recollect.compat.llm4s."


class Embedding:
    """Computes vectors with the embedder of a memory, outside of locks and batches, and stores them in the records.

    Args:
        dimension: The number of components that a vector must have; None: that of the embedder.
    """

    def __init__(self, memory: recollect.Memory, dimension: int | None) -> None:
        self._memory = memory
        self._dimension = dimension

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the memory; None if it has none, or if a server has it."""
        return self._memory._executor.embedder

    def of_query(self, query: str) -> tuple[Vector | None, str]:
        """Return the vector of a query, or None with the reason; the reason is "" if there is no embedder."""
        if self.embedder is None:
            return None, ""
        try:
            out = embedded(self.embedder, [query], asking=True, dimension=self._dimension)
        except RecollectError as error:
            return None, str(error)
        return (as_vector(out.vectors[0]), "") if 0 in out.vectors else (None, f"the query: {out.refused[0]}")

    def embed(self, records: Sequence[Record]) -> list[Record]:
        """Embed those of some stored records that have no vector; return them as they are stored.

        A RecollectWarning is issued if the embedder fails or cannot process a text.
        """
        embedder = self.embedder
        lacking = [record for record in records if record.text and EMBEDDING not in record.metadata]
        if embedder is None or not lacking:
            return list(records)
        done: dict[str, Record] = {}
        refused: list[str] = []
        try:
            for start in range(0, len(lacking), BATCH):
                done |= self._embed(embedder, lacking[start : start + BATCH], refused)
        except RecollectError as error:
            refused.insert(0, str(error))
        if refused:
            _warn(len(lacking) - len(done), len(lacking), refused[0])
        return [done.get(record.id, record) for record in records]

    def embed_missing(self, batch_size: int) -> int:
        """Embed the records that have no vector and return how many were embedded."""
        embedder = self.embedder
        assert embedder is not None
        count, total, refused, cursor = 0, 0, list[str](), None
        while True:
            page = self._memory.find(~f.meta(EMBEDDING), batch_size, after=cursor)
            texts = [record for record in page if record.text]
            total += len(texts)
            count += len(self._embed(embedder, texts, refused))
            cursor = page.cursor
            if cursor is None:
                break
        if refused:
            _warn(len(refused), total, refused[0])
        return count

    def _embed(self, embedder: Embedder, records: Sequence[Record], refused: list[str]) -> dict[str, Record]:
        """Embed some records and store their vectors in one commit. Append the reasons for others to `refused`."""
        if not records:
            return {}
        out = embedded(embedder, [record.text for record in records], dimension=self._dimension)
        refused += out.refused.values()
        done: dict[str, Record] = {}
        with self._memory.batch() as batch:
            for number, vector in out.vectors.items():
                record = records[number]
                try:
                    metadata = {**record.metadata, EMBEDDING: encoded(vector)}
                    done[record.id] = batch.update(record.id, expect=record, metadata=metadata)
                except (ConflictError, UnknownRecordError):  # whatever replaced it has a vector of its own
                    continue
        return done


def _warn(count: int, total: int, reason: str) -> None:
    warn_caller(f"{count} of {total} memories have no vector: {reason}; embed_all() tries again")


def warn_caller(message: str) -> None:
    """Issue a RecollectWarning at the caller of this layer."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(_LAYER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, RecollectWarning, stacklevel=level)
