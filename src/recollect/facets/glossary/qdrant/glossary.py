"""`QdrantGlossary`: terms of agents on a Qdrant server, with the calls of `memory.glossary` that a server can serve."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from recollect.arguments.checks import check_text
from recollect.arguments.signatures import all_named
from recollect.errors import InvalidArgumentError
from recollect.facets.glossary.index.index import EXACT
from recollect.facets.glossary.operations import RecallTerms
from recollect.facets.glossary.qdrant.collection import Collection, FoundPoint
from recollect.facets.glossary.qdrant.points import beginnings, counts, occurs, point_of, record_of
from recollect.facets.glossary.stored import checked_tokenizer, words
from recollect.facets.glossary.tokenizers import tokenizer_of
from recollect.facets.glossary.values import (
    Listed,
    Recalled,
    checked_ids,
    listed,
    listed_texts,
    recalled,
    sorted_by_key,
    stated,
)

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

_COLLECTION = "recollect_terms"
#: How many terms a search asks for beyond those wanted, in case of equal scores.
_BEYOND = 8


@all_named
class QdrantGlossary:
    """The terms of agents in a collection of a Qdrant server, 1.19 or newer. Thread-safe.

    A term is found as soon as `memorize` returns, and gone as soon as `forget` returns. There is no history, no expiry
    and no `annotate`: those need `memory.glossary`.

    Args:
        url: The address of the server's REST interface, such as "http://localhost:6333".
        collection: The name of the collection, which is created if there is none.
        api_key: The key of the server.
        tokenizer: As for `memory.glossary.recall`, but the same for all terms of the collection.
        timeout: Maximum time of a request, in seconds.
        client: A `qdrant_client.QdrantClient`, used instead of `url`, `api_key` and `timeout`, and not closed.
        settings: More settings of a new collection, as the client's `create_collection` takes them.

    Raises:
        MissingExtraError: The library is not installed: `pip install recollect[qdrant]`.
        StoreServerError: The server cannot be reached, or refuses. Every call can raise it.
        UnsupportedError: The server is older than 1.19, or the collection is another's or of another tokenizer.
    """

    def __init__(
        self,
        url: str = "http://localhost:6333",
        *,
        collection: str = _COLLECTION,
        api_key: str | None = None,
        tokenizer: Callable[[str], Sequence[str]] | str | PathLike[str] | None = None,
        timeout: float | None = None,
        client: QdrantClient | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        check_text("url", url)
        check_text("collection", collection)
        if not url.startswith(("http://", "https://")):
            raise InvalidArgumentError("url", url, "must begin with http:// or https://")
        self._tokenize, made_with = _tokenizer(tokenizer)
        self._points = Collection(
            url, collection, made_with, api_key=api_key, timeout=timeout, client=client, **(settings or {})
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the server."""
        self._points.close()

    def memorize(
        self,
        key: str,
        value: str,
        category: str,
        agent_id: str,
        aliases: Sequence[str] | None = None,
        description: str | None = None,
    ) -> None:
        """Store a term, or replace the one with the same key, in any casing. Arguments are those of `Glossary`.

        Raises:
            InvalidRecordError: A text is too long, or `agent_id` is not a name.
        """
        check_text("agent_id", agent_id)
        self._points.put(point_of(stated(key, value, category, aliases, description), agent_id, self._tokenize))

    def get(self, key: str, agent_id: str) -> Listed | None:
        """Return the term with a key, in any casing, or None if the agent knows none."""
        found = self._points.get(checked_ids(key, agent_id)[0])
        return None if found is None else _listed(found)

    def recall(self, question: str, agent_id: str, k: int = 10, score_threshold: float | None = None) -> list[Recalled]:
        """Return the terms that answer a question, best first, ties by key.

        The server scores by BM25 with the IDF among the terms of this agent, but a length is compared with 16 tokens
        instead of the mean length, so scores and the order of close terms can differ from those of `memory.glossary`.
        A term whose key or alias occurs in the question is ranked above all that only share words, and never scored
        below 3.0, as there.

        Args:
            agent_id: The agent.
            k: Maximum number of terms, 1 or more.
            score_threshold: The least score, inclusive.

        Cost:
            Two or three requests; for a long question one more for each 60 words.
        """
        RecallTerms(agent=agent_id, question=question, limit=k, minimum=score_threshold)  # checks the arguments
        asked = counts(self._tokenize(question))
        found = self._ranked(agent_id, asked, k)
        best = max((each.score for each in found), default=0.0)
        scored = {each.id: (each.score, record_of(each.payload, each.id)) for each in found}
        said, names = beginnings(question)
        exact = {}
        for each in self._points.named(agent_id, names):
            record = record_of(each.payload, each.id)
            if occurs(record, said):
                exact[each.id] = record
        own = {each.id: each.score for each in self._scores(agent_id, asked, list(exact))}
        for term_id, record in exact.items():
            scored[term_id] = max(EXACT, own.get(term_id, 0.0) + best), record
        terms = [
            recalled(record, score)
            for score, record in scored.values()
            if score > 0 and (score_threshold is None or score >= score_threshold)
        ]
        return sorted(terms, key=lambda term: (-term["score"], term["key"], term["entry_id"]))[:k]

    def _ranked(self, agent_id: str, asked: dict[int, int], k: int) -> list[FoundPoint]:
        """Return the best terms by their words, and all that equal the last of them."""
        limit = k + _BEYOND
        while True:
            found = self._points.search(agent_id, asked, limit) if asked else []
            if len(found) < limit or found[-1].score < found[k - 1].score:
                return found
            limit *= 2

    def _scores(self, agent_id: str, asked: dict[int, int], ids: list[str]) -> list[FoundPoint]:
        return self._points.search(agent_id, asked, len(ids), ids) if asked and ids else []

    def forget(self, key: str | Iterable[str], agent_id: str) -> int:
        """Remove a term, or several, and return how many there were before."""
        check_text("agent_id", agent_id)
        keys = [key] if isinstance(key, str) else listed_texts("key", key)
        ids = list(dict.fromkeys(checked_ids(each, agent_id)[0] for each in keys))
        there = self._points.count(agent_id, ids)
        self._points.delete(ids)
        return there

    def list_all(self, agent_id: str, category: str | None = None) -> list[Listed]:
        """Return all terms of an agent, or those of a category, sorted by key, case-insensitively."""
        check_text("agent_id", agent_id)
        return sorted_by_key([_listed(found) for found in self._points.of(agent_id, category=category)])


def _listed(found: FoundPoint) -> Listed:
    return listed(record_of(found.payload, found.id))


def _tokenizer(
    tokenizer: Callable[[str], Sequence[str]] | str | PathLike[str] | None,
) -> tuple[Callable[[str], Sequence[str]], str]:
    """Return a tokenizer, and a name that is another for each tokenizer.json."""
    if tokenizer is None:
        return words, "words"
    if isinstance(tokenizer, (str, PathLike)):
        found = tokenizer_of(tokenizer)
        return found, "sha256:" + hashlib.sha256(Path(fspath(tokenizer)).read_bytes()).hexdigest()
    if not callable(tokenizer):
        raise InvalidArgumentError("tokenizer", tokenizer, "must be a function, a path or None")
    return checked_tokenizer(tokenizer), "a function"
