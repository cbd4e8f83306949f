"""The glossary of jazzmine, `QdrantManager` and `SemanticMemory`, on a memory of this package or on a Qdrant server.

    from recollect.compat.jazzmine import QdrantManager, SemanticMemory

    manager = QdrantManager(url="recollect:terms.db", vector_size=384)
    semantic = SemanticMemory(qdrant_manager=manager, tokenizer_path="tokenizer.json")
    await semantic.memorize(key="PII", value="Personally Identifiable Information", category="abbreviation",
                            agent_id="compliance_bot")

The address decides the engine: `recollect:PATH` is the embedded one, with the history and the backups of the memory
(`QdrantManager.memory`), and `http(s)://` is a Qdrant server, whose REST port is usually 6333. A server that cannot be
reached is a RuntimeError of every call, and nothing is stored elsewhere instead.
"""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable
from os import PathLike, fspath
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import recollect
from recollect.arguments.checks import is_number
from recollect.errors import InvalidArgumentError, MissingExtraError, RecollectError
from recollect.facets.glossary.tokenizers import tokenizer_of
from recollect.qdrant import QdrantGlossary, check_server

_R = TypeVar("_R")

_EMBEDDED = "recollect:"
_SERVERS = ("http://", "https://")
_ADDRESSES = "must be recollect:PATH, or begin with http:// or https://"
_METRICS = ("cosine", "euclidean", "dot")
_MOST_COMPONENTS = 65_536


class _Terms(Protocol):
    """The calls of both engines."""

    def memorize(
        self, key: str, value: str, category: str, agent_id: str, aliases: list[str] | None, description: str | None
    ) -> None: ...
    def recall(self, query: str, agent_id: str, top_k: int, score_threshold: float | None) -> list[Any]: ...
    def forget(self, key: list[str], agent_id: str) -> int: ...
    def list_all(self, agent_id: str, category: str | None) -> list[Any]: ...


class _Embedded:
    """The calls on the embedded engine, with one tokenizer."""

    def __init__(self, memory: recollect.Memory, tokenizer: str) -> None:
        self._glossary = memory.glossary
        self._tokenizer = tokenizer
        self.memorize = self._glossary.memorize
        self.forget = self._glossary.forget
        self.list_all = self._glossary.list_all

    def recall(self, query: str, agent_id: str, top_k: int, score_threshold: float | None) -> list[Any]:
        return self._glossary.recall(query, agent_id, top_k, score_threshold, tokenizer=self._tokenizer)


class QdrantManager:
    """The location of the terms: a Qdrant server or, with the address "recollect:PATH", a file of this package.

    Terms are words, so what concerns dense vectors (`vector_size`, `quantization`, `distance_metric`, `use_indexing`,
    `use_sparse_vectors`) is checked and has no effect.

    Args:
        url: "recollect:PATH" ("recollect::memory:" for one that ends with the process), or a server's address.
        vector_size: 1 to 65,536.
        use_indexing: No effect.
        quantization: None, 4 or 8.
        on_disk: Whether the server keeps payloads only on disk.
        api_key: The key of the server.
        distance_metric: "cosine", "euclidean" or "dot", in any casing.
        collection_prefix: The beginning of the collection's name.
        replication_factor: Of the collection; 1 or more.
        shard_number: Of the collection; 1 or more.
        indexing_threshold: Of the collection's optimizer, in kilobytes.
        flush_interval_sec: Of the collection's optimizer.
        max_optimization_threads: Of the collection's optimizer.
        use_sparse_vectors: No effect.

    Attributes:
        memory: The memory of the embedded engine; None with a server.

    Raises:
        ConnectionError: The address is empty, has a blank, or is "recollect:" without a path. Any other one is first
            looked at by the calls, which raise RuntimeError if it is no server's.
        ValueError: A number or a name is not one of those above.
        RuntimeError: The file of the embedded engine cannot be opened.
    """

    def __init__(
        self,
        url: str,
        vector_size: int,
        use_indexing: bool = True,
        quantization: int | None = 8,
        on_disk: bool = False,
        api_key: str | None = None,
        distance_metric: str = "cosine",
        collection_prefix: str = "jazzmine",
        replication_factor: int = 1,
        shard_number: int = 1,
        indexing_threshold: int = 2000,
        flush_interval_sec: int = 15,
        max_optimization_threads: int = 1,
        use_sparse_vectors: bool = True,
    ) -> None:
        _check_texts(url=url, distance_metric=distance_metric, collection_prefix=collection_prefix)
        if not 1 <= _unsigned("vector_size", vector_size) <= _MOST_COMPONENTS:
            raise ValueError(f"vector_size is {vector_size} and must be between 1 and {_MOST_COMPONENTS}")
        if distance_metric.lower() not in _METRICS:
            raise ValueError(f"distance_metric is {distance_metric!r} and must be one of {', '.join(_METRICS)}")
        if quantization not in (None, 4, 8):
            raise ValueError(f"quantization is {quantization!r} and must be 4, 8 or None")
        for name, number in (("replication_factor", replication_factor), ("shard_number", shard_number)):
            if _unsigned(name, number) < 1:
                raise ValueError(f"{name} is {number} and must be at least 1")
        path = url.removeprefix(_EMBEDDED) if url.startswith(_EMBEDDED) else None
        if url in ("", _EMBEDDED, *_SERVERS) or (path is None and any(map(str.isspace, url))):
            raise ConnectionError(f"the address {url!r} {_ADDRESSES}")
        self._url = url
        self._api_key = api_key
        self._collection = f"{collection_prefix}_recollect_terms"
        self._settings = {
            "on_disk_payload": on_disk,
            "replication_factor": replication_factor,
            "shard_number": shard_number,
            "optimizers_config": {
                "indexing_threshold": indexing_threshold,
                "flush_interval_sec": flush_interval_sec,
                "max_optimization_threads": max_optimization_threads,
            },
        }
        self.memory: recollect.Memory | None = None
        if path is not None:
            try:
                self.memory = recollect.open(path, embedder="none")
            except RecollectError as error:
                raise RuntimeError(f"opening {path} failed: {error}") from error
        self._lock = threading.Lock()
        self._servers: dict[str, QdrantGlossary] = {}

    async def ensure_semantic_collection(self) -> None:
        """Check that the engine can be reached. The collection is created with the first call that needs it."""
        if self.memory is None:
            await _raising("reaching the server", lambda: check_server(self._server(), api_key=self._api_key))

    def close(self) -> None:
        """Close the file or the connections."""
        if self.memory is not None:
            self.memory.close()
        with self._lock:
            while self._servers:
                self._servers.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _server(self) -> str:
        """Return the address of the server. The constructor takes any, as jazzmine's does."""
        if not self._url.startswith(_SERVERS):
            raise RuntimeError(f"the address {self._url!r} {_ADDRESSES}")
        return self._url

    def _terms(self, tokenizer: str) -> _Terms:
        """Return the terms, by a tokenizer. A server is connected to with the first call."""
        if self.memory is not None:
            return _Embedded(self.memory, tokenizer)
        with self._lock:
            if tokenizer not in self._servers:
                self._servers[tokenizer] = QdrantGlossary(
                    self._server(),
                    collection=self._collection,
                    api_key=self._api_key,
                    tokenizer=tokenizer,
                    settings=self._settings,
                )
            return self._servers[tokenizer]


class SemanticMemory:
    """The terms that agents know. Every call is awaited; a term is found as soon as `memorize` returns.

    Args:
        qdrant_manager: Where the terms are.
        tokenizer_path: The path of a Hugging Face tokenizer.json (extra `tokenizers`), whose tokens are the words.

    Raises:
        TypeError: An argument of this or of a call has a wrong type.
        RuntimeError: The tokenizer cannot be loaded. Calls raise it if the engine fails.
        ValueError: Calls raise it for a text that is empty, too long or invalid, and for `top_k` below 1.
    """

    def __init__(self, qdrant_manager: QdrantManager, tokenizer_path: str | PathLike[str]) -> None:
        if not isinstance(qdrant_manager, QdrantManager):
            raise TypeError(f"qdrant_manager is {type(qdrant_manager).__name__} and must be a QdrantManager")
        if not isinstance(tokenizer_path, (str, PathLike)):
            raise TypeError(f"tokenizer_path is {type(tokenizer_path).__name__} and must be a path")
        self._manager = qdrant_manager
        self._path = str(fspath(tokenizer_path))
        try:
            tokenizer_of(self._path)
        except (InvalidArgumentError, MissingExtraError) as error:
            raise RuntimeError(f"the tokenizer {self._path} cannot be loaded: {error}") from error

    async def memorize(
        self,
        key: str,
        value: str,
        category: str,
        agent_id: str,
        aliases: list[str] | None = None,
        description: str | None = None,
    ) -> None:
        """Store a term, or replace the one with the same key, in any casing."""
        _check_texts(key=key, value=value, category=category, agent_id=agent_id)
        _check_texts(**({} if description is None else {"description": description}))
        names = None if aliases is None else _texts("aliases", aliases)
        await self._call(
            f"memorizing {key!r}",
            lambda terms: terms.memorize(key, value, category, agent_id, names, description),
        )

    async def recall(
        self, query: str, agent_id: str, top_k: int = 5, score_threshold: float | None = None
    ) -> list[dict[str, Any]]:
        """Return the terms that answer a question, best first, ties by key, with their scores."""
        _check_texts(query=query, agent_id=agent_id)
        limit = _unsigned("top_k", top_k)
        minimum = None if score_threshold is None else _number("score_threshold", score_threshold)
        found = await self._call("recall", lambda terms: terms.recall(query, agent_id, limit, minimum))
        return [dict(term) for term in found]

    async def forget(self, key: str, agent_id: str) -> bool:
        """Remove a term, and return whether there was one."""
        _check_texts(key=key)
        return await self.forget_many([key], agent_id) == 1

    async def forget_many(self, keys: list[str], agent_id: str) -> int:
        """Remove terms, and return how many there were."""
        _check_texts(agent_id=agent_id)
        names = _texts("keys", keys)
        return await self._call("forgetting", lambda terms: terms.forget(names, agent_id))

    async def list_all(self, agent_id: str, category: str | None = None) -> list[dict[str, Any]]:
        """Return all terms of an agent, or those of a category, sorted by key, case-insensitively."""
        _check_texts(agent_id=agent_id, **({} if category is None else {"category": category}))
        found = await self._call("listing", lambda terms: terms.list_all(agent_id, category))
        return [dict(term) for term in found]

    async def entry_count(self, agent_id: str) -> int:
        """Return the exact number of terms of an agent."""
        _check_texts(agent_id=agent_id)
        return await self._call("counting", lambda terms: len(terms.list_all(agent_id, None)))

    async def _call(self, what: str, call: Callable[[_Terms], _R]) -> _R:
        return await _raising(what, lambda: call(self._manager._terms(self._path)))


async def _raising(what: str, call: Callable[[], _R]) -> _R:
    """Return the result of a call in a thread. What it says of its arguments passes; all else is a RuntimeError."""
    try:
        return await asyncio.to_thread(call)
    except RecollectError as error:
        if isinstance(error, ValueError):
            raise
        raise RuntimeError(f"{what} failed: {error}") from error


def _check_texts(**values: object) -> None:
    for name, value in values.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} is {type(value).__name__} and must be text")


def _texts(name: str, values: object) -> list[str]:
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{name} must be a list of texts")
    return list(values)


def _unsigned(name: str, value: int) -> int:
    number = operator.index(value)
    if number < 0:
        raise OverflowError(f"{name} is {number} and must not be negative")
    return number


def _number(name: str, value: float) -> float:
    if not is_number(value):
        raise TypeError(f"{name} is {type(value).__name__} and must be a number")
    return float(value)
