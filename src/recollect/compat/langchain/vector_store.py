"""A vector store whose search needs no vectors: words are enough, and an embedding model is one more signal."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeAlias

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

import recollect
from recollect import Record
from recollect.compat.conditions import bound, check, fits
from recollect.compat.documents import Documents, StoredDocument, document_id
from recollect.compat.langchain_embedder import ConfiguredEmbedder
from recollect.compat.objects import value_of
from recollect.compat.opening import Closing, Place, opened
from recollect.compat.searching import Condition
from recollect.errors import InvalidArgumentError

#: What the documents of a search must fit: their metadata (docs/langchain.md has the operators), or a function of them.
Wanted: TypeAlias = Mapping[str, Any] | Callable[[Document], bool]

_NAME = "langchain"
#: The arguments of a recall that change which documents are best, and not which ones are admitted.
_OPTIONS = frozenset({"importance", "importance_half_life", "language", "recency", "recency_half_life", "reference"})
#: How many letters a part of a text has by which texts are compared.
_LETTERS = 3


class RecollectVectorStore(Closing, VectorStore):
    """Documents in a memory, for chains, agents and `as_retriever`.

    Args:
        memory: A memory, also of `recollect.connect`, which stays open; a path or address that `recollect.open` takes;
            or the address of a server.
        embedding: An embedding model, which recall uses besides the words; only for a path. For a memory that is open,
            `recollect.open(embedder=...)` is the place.
        collection: The name of the collection. Documents of other collections are not searched.
        user: The user to whom the documents belong; default: that of a scoped memory, or else none.
        agent: The agent to whom they belong; default as for `user`.

    Raises:
        ValueError: `embedding` is stated and the memory is open already.
        InvalidArgumentError: A name is not a non-empty text.
        ScopeError: The memory is scoped to another user or agent.
        RecollectError: The memory cannot be opened.

    Cost:
        Each change is one durable commit. A search costs that of `Memory.recall`; with a filter that is a function, or
        that the index cannot decide, the documents that it may admit are read.
    """

    def __init__(
        self,
        memory: Place = ":memory:",
        embedding: Embeddings | None = None,
        *,
        collection: str = _NAME,
        user: str | None = None,
        agent: str | None = None,
    ) -> None:
        self._embedding = embedding
        options: dict[str, Any] = {}
        if embedding is not None:
            if isinstance(memory, recollect.Memory):
                raise ValueError("embedding needs a path: open the memory with recollect.open(embedder=...) instead")
            options["embedder"] = ConfiguredEmbedder(embedding, embedding, None)
        self._opened = opened(memory, **options)
        try:
            self._documents = Documents(
                self._opened.memory,
                actor=_NAME,
                collection=collection,
                user=user,
                agent=agent,
                waits=embedding is not None,
            )
        except BaseException:
            self._opened.close()
            raise

    @property
    def memory(self) -> recollect.Memory:
        """The memory with the documents: its history, `context`, `erase` and all other calls."""
        return self._opened.memory

    @property
    def embeddings(self) -> Embeddings | None:
        """The embedding model, if the store was made with one."""
        return self._embedding

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        memory: Place = ":memory:",
        **options: Any,
    ) -> Self:
        """Return a store with texts. The other arguments and errors are those of the class and of `add_texts`."""
        store = cls(memory, embedding, **options)
        try:
            store.add_texts(texts, metadatas, ids=ids)
        except BaseException:
            store.close()
            raise
        return store

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **unknown: Any,
    ) -> list[str]:
        """Store texts in one commit and return their ids. A text takes the place of the one with its id.

        Args:
            texts: The texts.
            metadatas: The metadata of each, with a JSON form.
            ids: The id of each; None: a new one.
            **unknown: Not accepted.

        Raises:
            ValueError: The numbers of texts, metadata and ids differ.
            TypeError: Metadata has no JSON form, or there is an unknown argument.
            InvalidRecordError: A document exceeds a limit of the memory, or is not valid Unicode.
            RejectedError: A policy of the memory refuses a secret.
            StoreError: The store failed.

        Nothing is stored if this raises.
        """
        _refuse(unknown)
        every = list(texts)
        of_each = [{} for _ in every] if metadatas is None else list(metadatas)
        named = [None] * len(every) if ids is None else list(ids)
        for what, values in (("metadata", of_each), ("ids", named)):
            if len(values) != len(every):
                raise ValueError(f"there are {len(every)} texts, but {len(values)} {what}")
        keys = [name or str(uuid.uuid4()) for name in named]
        stored = [StoredDocument(*each) for each in zip(keys, every, of_each, strict=True)]
        self._documents.put(stored, "add_texts")
        return keys

    def delete(self, ids: Sequence[str] | None = None, **unknown: Any) -> bool:
        """Delete documents in one commit; unknown ids are no error. None: all documents of the collection.

        Their history remains in the log: `memory.erase` removes their texts from there, too.
        """
        _refuse(unknown)
        if ids is None:
            self._documents.clear("delete")
        else:
            self._documents.delete([ids] if isinstance(ids, str) else ids, "delete")
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, in their order, without those that there are not."""
        return [_document(record) for record in self._documents.get(dict.fromkeys(ids)) if record is not None]

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Wanted | None = None,  # noqa: A002 - the name of LangChain
        **options: Any,
    ) -> list[Document]:
        """Return the `k` documents that answer a query best.

        If fewer answer it, others follow, the newest first, as a search by vectors would return them.

        Args:
            query: What to look for, as for `Memory.recall`. A blank text finds nothing, so the newest documents are
                returned.
            k: The number of documents.
            filter: What their metadata must be, such as `{"page": 3}` or `{"year": {"$gte": 2024}}`, or a function of a
                document.
            **options: `language`, `reference`, `recency` and `importance` of `Memory.recall`, with their half-lives.

        Raises:
            ValueError: The filter has an unknown operator.
            TypeError: There is no such argument.
            InvalidArgumentError: `k` is not an integer, 0 or more.
            StoreError: The store failed.
        """
        found = self.similarity_search_with_score(query, k, filter=filter, **options)
        return [document for document, _ in found]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: Wanted | None = None,  # noqa: A002 - the name of LangChain
        **options: Any,
    ) -> list[tuple[Document, float]]:
        """Return what `similarity_search` does, each with its confidence: 0 to 1, more is better.

        It is 0 for documents that do not answer the query.
        """
        if unknown := options.keys() - _OPTIONS:
            raise TypeError(f"unknown argument {min(unknown)!r}: there are filter, {', '.join(sorted(_OPTIONS))}")
        found = self._documents.filled(query, _condition(filter), _count("k", k), **options)
        return [(_document(record), hit.confidence if hit else 0.0) for record, hit in found]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Wanted | None = None,  # noqa: A002 - the name of LangChain
        **options: Any,
    ) -> list[Document]:
        """Return `k` documents that answer a query and differ from each other.

        Of the `fetch_k` best ones, the next is that with the most `lambda_mult` x confidence -
        (1 - `lambda_mult`) x similarity, in which the similarity is that to the closest one before it: the share of
        groups of three letters that two texts have in common.

        Args:
            query: What to look for, as for `Memory.recall`.
            k: The number of documents.
            fetch_k: The number of documents from which they are chosen.
            lambda_mult: 0 for those that differ most to 1 for those that answer best.
            filter: As for `similarity_search`.
            **options: Other arguments of `Memory.recall`.
        """
        found = self.similarity_search_with_score(query, max(_count("k", k), fetch_k), filter=filter, **options)
        rest = [(document, confidence, _parts(document.page_content)) for document, confidence in found]
        chosen: list[tuple[Document, float, set[str]]] = []

        def worth(one: tuple[Document, float, set[str]]) -> float:
            closest = max((_similarity(one[2], other[2]) for other in chosen), default=0.0)
            return lambda_mult * one[1] - (1 - lambda_mult) * closest

        while rest and len(chosen) < k:
            best = max(rest, key=worth)
            rest.remove(best)
            chosen.append(best)
        return [document for document, _, _ in chosen]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **options: Any) -> list[Document]:
        """Not offered: a vector has no words.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("a vector has no words: pass the question to similarity_search")

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return _as_it_is


def _as_it_is(score: float) -> float:
    return score


def _refuse(unknown: Mapping[str, Any]) -> None:
    if unknown:
        raise TypeError(f"unknown argument {next(iter(unknown))!r}")


def _count(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidArgumentError(name, value, "must be an integer, 0 or more")
    return value


def _condition(wanted: Wanted | None) -> Condition:
    """Return the condition of a filter.

    Raises:
        ValueError: It has an unknown operator, or is no dictionary and no function.
    """
    if wanted is None:
        return Condition()
    if callable(wanted):
        return Condition(fits=lambda record: bool(wanted(_document(record))))
    check(wanted)
    return Condition(bound(wanted), lambda record: fits(value_of(record), wanted))


def _document(record: Record) -> Document:
    return Document(id=document_id(record), page_content=record.text, metadata=value_of(record))


def _parts(text: str) -> set[str]:
    folded = " ".join(text.casefold().split())
    return {folded[start : start + _LETTERS] for start in range(max(1, len(folded) - _LETTERS + 1))}


def _similarity(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other)
