"""`MemoryStore`: the store of LLM4S on a memory of this package, in memory or in a file.

Texts are durable before a model is called, and no model is called while a lock is taken. So an embedder that fails
loses nothing: the memory is stored without a vector, a RecollectWarning says why, and `embed_all` tries again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple, Self

import recollect
from recollect import ABSENT, Batch, Hit, Quota, Record
from recollect import filters as f
from recollect.arguments.checks import check_count
from recollect.compat.llm4s.config import MemoryStoreConfig
from recollect.compat.llm4s.embedding import Embedding
from recollect.compat.llm4s.filters import MemoryFilter, plain
from recollect.compat.llm4s.index import PAGE, RecordVectors, margin
from recollect.compat.llm4s.services import EmbeddingService, as_embedder
from recollect.compat.llm4s.types import (
    EntityId,
    Memory,
    MemoryId,
    ScoredMemory,
    changed,
    fields_of,
    memory_id_text,
    memory_of,
    record_of,
)
from recollect.compat.llm4s.vectors import EMBEDDING, Vector, VectorLike, as_vector, vector_of
from recollect.errors import ConflictError, InvalidArgumentError, UnknownRecordError, UnsupportedError
from recollect.filters import Filter
from recollect.models.embedding.base import Embedder
from recollect.models.embedding.similarity import cosine, similarity_score
from recollect.operations import GetQuota

#: If a filter leaves too few of this many best candidates, it is evaluated for all records at once.
_MANY = 400
#: The sort key of a record without a time, before all others.
_NO_TIME = datetime.min.replace(tzinfo=UTC)


def by_vector(
    memory: recollect.Memory, index: RecordVectors, query: Vector, top_k: int, where: Filter
) -> tuple[list[ScoredMemory] | None, str]:
    """Return the memories whose vectors are most similar to a query, or None with the reason why there are none.

    Candidates are read in the order of the index, until no further one can be among the best; their exact scores and
    then time and id decide.
    """
    if not all(map(math.isfinite, query)):
        return None, "the vector of the query has a component that is not finite"
    if not any(query):
        return None, "the vector of the query is zero, which has no direction"
    ranking = index.ranked(query)
    if not len(ranking.order):
        return None, f"no memory has a vector of {len(query)} components"
    total, compared = memory.count(), len(ranking.order)
    note = f"compared {compared} of {total} memories: the others have no usable vector of {len(query)} components"
    if compared >= total:
        note = ""
    found: list[tuple[float, Record]] = []
    start, size, narrowed = 0, min(2 * top_k, PAGE), where == f.everything()
    while start < len(ranking.order):
        if len(found) >= top_k and ranking.cosines[start] < found[top_k - 1][0] - margin(len(query)):
            break
        if start >= _MANY and not narrowed:  # the filter rejects most: evaluate it once for all
            ranking = ranking.among({record.id for record in memory.find(where)}, start)
            start, narrowed = 0, True
            continue
        for record in memory.find(f.id(*ranking.page(start, size)) & where):
            vector = vector_of(record)
            if vector is not None and len(vector) == len(query):  # it may have been replaced since
                found.append((cosine(query, vector), record))
        found = _ordered(found)
        start, size = start + size, min(2 * size, PAGE)
    del found[top_k:]
    for _, record in found:
        memory.get(record.id)  # a use, for a quota of the memory's own that evicts the least recently used
    return [ScoredMemory(memory_of(record), similarity_score(score), note) for score, record in found], ""


def by_words(memory: recollect.Memory, query: str, top_k: int, where: Filter, note: str) -> list[ScoredMemory]:
    """Return the hits of recall that share a word with the query, not only a word like one of it."""
    k = top_k
    while True:
        hits = memory.recall(query, k, where)
        kept = [hit for hit in hits if _shares_a_word(hit)]
        if len(kept) >= top_k or len(hits) < k:
            return [ScoredMemory(memory_of(hit.record), hit.confidence, note) for hit in kept[:top_k]]
        k *= 2


def _shares_a_word(hit: Hit) -> bool:
    return not hit.why.words or any(not word.like for word in hit.why.words)


def _ordered(found: list[tuple[float, Record]]) -> list[tuple[float, Record]]:
    """Return records by score, then the newest first, then by id."""
    by_id = sorted(found, key=lambda each: each[1].id.encode("utf-8"))
    newest_first = sorted(by_id, key=lambda each: each[1].time or _NO_TIME, reverse=True)
    return sorted(newest_first, key=lambda each: -each[0])


#: Maximum number of memories that `store_all` writes in one commit.
_COMMIT = 1000


class VectorStoreStats(NamedTuple):
    """The numbers of memories with and without a vector.

    Attributes:
        total: The number of memories.
        embedded: The number of those with a vector.
        dimensions: The numbers of components of the vectors that can be compared, ascending.
        coverage: The share of memories with a vector, in per cent; 0 if there are no memories.
    """

    total: int
    embedded: int
    dimensions: tuple[int, ...]
    coverage: float


class MemoryStore:
    """A store of memories on a `recollect.Memory`, or on a scope of one. Thread-safe, as that is.

        with MemoryStore.open("agent.db") as store:
            store.store(Memory.user_fact("prefers window seats", "ana"))

    Args:
        memory: The memory. Its embedder, if it has one, embeds what is stored and what is searched for.
        config: The settings. None: any vector is accepted, and the memory keeps the quota that it has.

    Attributes:
        memory: The memory, for everything else that it can do.
        config: The settings.

    Raises:
        ScopeError: `config` has a limit and the memory is scoped: a quota belongs to the whole namespace.
    """

    def __init__(self, memory: recollect.Memory, config: MemoryStoreConfig | None = None) -> None:
        if not isinstance(memory, recollect.Memory):
            raise InvalidArgumentError("memory", memory, "must be a recollect.Memory: MemoryStore.open opens one")
        if config is not None and not isinstance(config, MemoryStoreConfig):
            raise InvalidArgumentError("config", config, "must be a MemoryStoreConfig")
        self.memory = memory
        self.config = config or MemoryStoreConfig()
        if config is not None:
            _set_quota(memory, config)
        self._embedding = Embedding(memory, self.config.default_embedding_dimensions)
        self._index = RecordVectors(memory)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        embedder: Embedder | EmbeddingService | str | None = None,
        config: MemoryStoreConfig | None = None,
    ) -> Self:
        """Open a store, which is created if there is none. Arguments and errors are those of `recollect.open`.

        Args:
            path: A file, or ":memory:"; default: the default store.
            embedder: The model, also as an EmbeddingService; default: the one that RECOLLECT_EMBEDDER or
                LLM_EMBEDDING_MODEL names, or else none.
            config: The settings.
        """
        store = cls.__new__(cls)
        store._open(path, embedder, config)
        return store

    def _open(
        self,
        path: str | os.PathLike[str] | None,
        embedder: Embedder | EmbeddingService | str | None,
        config: MemoryStoreConfig | None,
    ) -> None:
        """Open a memory and begin with it. Subclasses have constructors with other arguments."""
        memory = recollect.open(path, embedder=as_embedder(embedder))
        try:
            MemoryStore.__init__(self, memory, config)
        except BaseException:
            memory.close()
            raise

    @classmethod
    def in_memory(
        cls, embedder: Embedder | EmbeddingService | str | None = None, config: MemoryStoreConfig | None = None
    ) -> Self:
        """Open an empty store that ends with the process."""
        return cls.open(":memory:", embedder, config)

    @classmethod
    def for_testing(cls, max_memories: int = 1000) -> Self:
        """Open an empty store in memory with a maximum and without an embedder."""
        return cls.open(":memory:", "none", MemoryStoreConfig(max_memories=max_memories))

    # Writing

    def store(self, memory: Memory) -> Memory:
        """Store a memory and return it as it is stored. A memory with the same id is replaced, with its timestamp.

        A memory without a vector is embedded afterwards, if there is an embedder.

        Raises:
            InvalidRecordError: A value is invalid, or the content is empty.
            InvalidArgumentError: It is not a memory, or its vector has another size than the settings require.
            QuotaError: The store is full of pinned records.

        A RecollectWarning is issued if it could not be embedded.

        Cost:
            One durable commit; another one for a computed vector.
        """
        self._check(memory)
        record = _write(self.memory, memory)
        return memory_of(self.embed([record])[0])

    def store_all(self, memories: Iterable[Memory]) -> int:
        """Store memories, in durable commits of up to 1,000, and return how many.

        They are checked before the first is written; of memories with the same id the last one is stored. Of more
        memories than the limit of the store, the newest are stored.

        Raises:
            See `store`. After a QuotaError or a StoreError, earlier commits remain.
        """
        everything = list(memories)
        for memory in everything:
            self._check(memory)
        kept = self._newest(everything)
        for start in range(0, len(kept), _COMMIT):
            with self.memory.batch() as batch:
                records = [_write(batch, memory) for memory in kept[start : start + _COMMIT]]
                written = {record.id: record for record in records}
            self.embed(list(written.values()))
        return len(everything)

    def update(self, id: MemoryId | str, update: Callable[[Memory], Memory]) -> Memory:  # noqa: A002 - the field's name
        """Replace a memory by what a function returns for it, atomically, and return it as it is stored.

        If the content changes and the vector does not, the vector is removed, and computed again if there is an
        embedder.

        Args:
            id: The id of the memory.
            update: A function of the memory. The id must not change. It runs inside the write lock.

        Raises:
            UnknownRecordError: There is no memory with this id.
            InvalidRecordError: The id changes, or a value is invalid.
            InvalidArgumentError: The function returns no memory, or a vector of another size, or `id` is an EntityId.
        """

        def change(record: Record) -> Record:
            before = memory_of(record)
            after = update(before)
            self._check(after, "update")
            if after.content != before.content and after.embedding == before.embedding:
                after = replace(after, embedding=None)
            return changed(record, before, after)

        return memory_of(self.embed([self.memory.update(memory_id_text(id), change)])[0])

    def delete(self, id: MemoryId | str) -> bool:  # noqa: A002 - the field's name
        """Delete a memory and return whether there was one."""
        try:
            return self.memory.forget(memory_id_text(id))
        except UnknownRecordError:
            return False

    def delete_matching(self, filter: Filter) -> int:  # noqa: A002 - its name there
        """Delete the memories that match a filter, in one commit, and return how many."""
        return self.memory.forget_where(plain(filter), parts=["records"])

    def clear(self) -> int:
        """Delete all memories, in one commit, and return how many."""
        return self.memory.clear(parts=["records"])

    # Reading

    def get(self, id: MemoryId | str) -> Memory | None:  # noqa: A002 - the field's name
        """Return the memory with an id; None if there is none.

        Raises:
            InvalidArgumentError: It is an EntityId.
        """
        record = self.memory.get(memory_id_text(id))
        return None if record is None else memory_of(record)

    def exists(self, id: MemoryId | str) -> bool:  # noqa: A002 - the field's name
        """Return whether there is a memory with an id."""
        return self.memory.get(memory_id_text(id)) is not None

    def recall(self, filter: Filter = MemoryFilter.ALL, limit: int | None = 100) -> list[Memory]:  # noqa: A002
        """Return the memories that match a filter, newest first; of equal times, in a fixed order.

        Args:
            limit: Maximum number of memories, 1 or more; None: no limit.
        """
        return [memory_of(record) for record in self.memory.find(plain(filter), limit)]

    def recent(self, limit: int = 10, filter: Filter = MemoryFilter.ALL) -> list[Memory]:  # noqa: A002
        """Return the newest memories that match a filter, newest first."""
        return self.recall(filter, limit)

    def important(self, threshold: float = 0.5, limit: int = 100) -> list[Memory]:
        """Return the memories whose importance is at least `threshold`, newest first."""
        return self.recall(MemoryFilter.min_importance(threshold), limit)

    def entity_memories(self, entity_id: EntityId | str) -> list[Memory]:
        """Return all memories about an entity, newest first."""
        return self.recall(MemoryFilter.by_entity(entity_id), None)

    def conversation(self, conversation_id: str, limit: int = 100) -> list[Memory]:
        """Return the newest memories of a conversation, oldest first."""
        return self.recall(MemoryFilter.by_conversation(conversation_id), limit)[::-1]

    def count(self, filter: Filter = MemoryFilter.ALL) -> int:  # noqa: A002 - its name there
        """Return how many memories match a filter."""
        return self.memory.count(plain(filter))

    def search(
        self,
        query: str,
        top_k: int = 10,
        filter: Filter = MemoryFilter.ALL,  # noqa: A002 - its name there
        *,
        embedding: VectorLike | None = None,
    ) -> list[ScoredMemory]:
        """Return the memories that are most similar to a query, best first; equal scores newest first, then by id.

        With a vector for the query, the score is (cosine + 1) / 2 of the vectors; memories without a vector of that
        size, or with one that is not finite, are not compared, and the note of each result says how many. Otherwise
        the search is made by words: the results of `Memory.recall` that share a word with the query, with their
        confidence. If that is because a vector cannot be had or used, the note says why.

        Args:
            query: The text. A blank one finds nothing without `embedding`.
            top_k: Maximum number of results, 1 or more.
            filter: Only memories that match it.
            embedding: The vector of the query; default: that of the embedder, if there is one.

        Cost:
            By vector: the first search reads all memories, later ones what was written since. Then one comparison of
            all vectors, and the memories that are returned are read.
        """
        check_count("top_k", top_k)
        where = plain(filter)
        if not isinstance(query, str):
            raise InvalidArgumentError("query", query, "must be text")
        blank = not query.strip()
        if blank and embedding is None:
            return []
        vector, note = (as_vector(embedding), "") if embedding is not None else self._embedding.of_query(query)
        if vector is not None:
            found, note = by_vector(self.memory, self._index, vector, top_k, where)
            if found is not None:
                return found
        return [] if blank else by_words(self.memory, query, top_k, where, note)

    # Vectors

    def embed_all(self, batch_size: int = 100) -> int:
        """Embed the memories that have no vector, and return how many were embedded.

        Each batch is stored before the next, so a run that was interrupted continues with the next call.

        Args:
            batch_size: Number of texts that are passed to the embedder at a time, 1 or more.

        Raises:
            UnsupportedError: There is no embedder.
            EmbedderError: The embedder failed. Vectors that were stored before remain.

        A RecollectWarning is issued if there are texts that the embedder cannot process.
        """
        check_count("batch_size", batch_size)
        if self._embedding.embedder is None:
            raise UnsupportedError("embed_all", "the memory was opened without an embedder")
        return self._embedding.embed_missing(batch_size)

    def embed(self, records: Sequence[Record]) -> list[Record]:
        """Embed those of some stored records that have no vector, and return them as they are stored.

        Without an embedder they are returned as they are. If it fails, a RecollectWarning is issued.
        """
        return self._embedding.embed(records)

    def vector_stats(self) -> VectorStoreStats:
        """Return how many memories have a vector, and of which sizes."""
        total, embedded = self.memory.count(), self.memory.count(f.meta(EMBEDDING))
        coverage = 100.0 * embedded / total if total else 0.0
        return VectorStoreStats(total, embedded, tuple(self._index.sizes()), coverage)

    def close(self) -> None:
        """Close the memory."""
        self.memory.close()

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<MemoryStore on {self.memory!r}>"

    @property
    def limit(self) -> int | None:
        """The number of memories above which the oldest are evicted; None if there is none, or within a scope."""
        if self.memory.scope:
            return None
        quota: Quota | None = self.memory.execute(GetQuota())
        return None if quota is None or quota.when_full != "oldest" else quota.records

    def _newest(self, memories: list[Memory]) -> list[Memory]:
        """Return those of some memories that the limit leaves, in order: no commit evicts what it wrote itself."""
        limit = self.limit
        if limit is None or len(memories) <= limit:
            return memories
        last = list({memory.id: memory for memory in memories}.values())
        oldest_first = sorted(range(len(last)), key=lambda at: last[at].timestamp or _NO_TIME)
        return [last[at] for at in sorted(oldest_first[-limit:])]

    def _check(self, memory: object, argument: str = "memory") -> None:
        """Raise the error of a memory that cannot be stored, before anything is written."""
        if not isinstance(memory, Memory):
            raise InvalidArgumentError(argument, memory, "must be a Memory of this package")
        record_of(memory)
        size = self.config.default_embedding_dimensions
        if memory.embedding is not None and size is not None and len(memory.embedding) != size:
            given = f"a vector of {len(memory.embedding)} components"
            raise InvalidArgumentError(
                "embedding", given, f"must have {size} components (default_embedding_dimensions)"
            )


def _write(calls: recollect.Memory | Batch, memory: Memory) -> Record:
    """Store a memory, replacing the record with its id, and return the record."""
    fields = {name: value for name, value in fields_of(memory).items() if value is not None}
    expected: Record | str = ABSENT
    while True:
        try:
            return calls.remember(memory.content, id=memory.id, expect=expected, **fields)
        except ConflictError as error:  # there is one, or another writer was faster, which has succeeded
            current = calls.get(memory.id)
            if error.satisfied and current is not None:
                return current
            expected = current or ABSENT


def _set_quota(memory: recollect.Memory, config: MemoryStoreConfig) -> None:
    """Give a memory the quota of the settings, unless it has it."""
    limit = config.limit
    if memory.scope and limit is None:
        return
    wanted = None if limit is None else Quota(records=limit, when_full="oldest")
    if memory.execute(GetQuota()) == wanted:
        return
    if limit is None:
        memory.set_quota()
    else:
        memory.set_quota(records=limit, when_full="oldest")
