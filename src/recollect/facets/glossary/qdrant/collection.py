"""A collection of a Qdrant server, by the library `qdrant-client`: the only module that imports it.

Writes are waited for, numbers are exact, and a listing goes on until the server has no more. IDF is that of the points
of one agent, which servers compute from 1.19 on; an older one is refused, as it would take the whole collection's.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.errors import MissingExtraError, StoreServerError, UnsupportedError
from recollect.facets.glossary.qdrant.points import TermPoint

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

#: The sparse vector of the words of a term.
_WORDS = "words"
_OLDEST = (1, 19)
#: Maximum number of points in one answer of the server, and of values in one filter.
_PAGE, _VALUES = 1000, 500
_CONFLICT = 409


class FoundPoint(NamedTuple):
    """A point that the server returned, with its score if it was searched for."""

    id: str
    payload: Mapping[str, Any]
    score: float


@contextmanager
def _errors_of(url: str) -> Iterator[None]:
    """Raise StoreServerError for the errors of the library."""
    from qdrant_client.http.exceptions import ApiException

    try:
        yield
    except ApiException as error:
        raise StoreServerError(url, _reason(error)) from error


def check_server(url: str, *, api_key: str | None = None, timeout: float | None = None) -> None:
    """Raise an error unless a server can be used for glossaries. Nothing is created.

    Args:
        url: The address of the server's REST interface.
        api_key: The key of the server.
        timeout: Maximum time of the request, in seconds.

    Raises:
        MissingExtraError: The library is not installed.
        StoreServerError: The server cannot be reached, or refuses.
        UnsupportedError: The server is older than 1.19.
    """
    client = _connected(url, api_key, timeout)
    try:
        with _errors_of(url):
            _check_version(url, client)
    finally:
        client.close()


def _connected(url: str, api_key: str | None, timeout: float | None) -> QdrantClient:
    try:
        from qdrant_client import QdrantClient
    except ImportError as error:
        raise MissingExtraError("a glossary on Qdrant", "qdrant-client", "qdrant") from error
    seconds = None if timeout is None else max(1, round(timeout))
    return QdrantClient(url=url, api_key=api_key, timeout=seconds, check_compatibility=False)


def _check_version(url: str, client: QdrantClient) -> None:
    version = client.info().version
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _OLDEST:
        why = f"it is version {version}, and IDF by agent needs 1.19 or newer"
        raise UnsupportedError(f"the Qdrant server at {url}", why)


class Collection:
    """The points of terms in a collection, which is created if there is none.

    Args:
        url: The address of the server's REST interface.
        name: The name of the collection.
        tokenizer: What the vectors are made with. A collection that was made with another is refused.
        api_key: The key of the server.
        timeout: Maximum time of a request, in seconds.
        client: A client of the library, used instead of `url`, `api_key` and `timeout`.
        **settings: More settings of a new collection, as the library's `create_collection` takes them.

    Raises:
        MissingExtraError: The library is not installed.
        StoreServerError: The server cannot be reached, or refuses.
        UnsupportedError: The server is too old, or the collection has other contents.
    """

    def __init__(
        self,
        url: str,
        name: str,
        tokenizer: str,
        *,
        api_key: str | None = None,
        timeout: float | None = None,
        client: QdrantClient | None = None,
        **settings: Any,
    ) -> None:
        self.url = url
        self._name = name
        self._owned = client is None
        self._client = client or _connected(url, api_key, timeout)
        try:
            self._prepare(tokenizer, settings)
        except BaseException:
            self.close()
            raise

    @property
    def _models(self) -> Any:
        from qdrant_client import models

        return models

    def _prepare(self, tokenizer: str, settings: dict[str, Any]) -> None:
        with _errors_of(self.url):
            _check_version(self.url, self._client)
            if not self._client.collection_exists(self._name):
                self._create(tokenizer, settings)
            config = self._client.get_collection(self._name).config
            words = (config.params.sparse_vectors or {}).get(_WORDS)
            made_with = (config.metadata or {}).get("tokenizer")
            collection = f"the collection {self._name} at {self.url}"
            if words is None or words.modifier != self._models.Modifier.IDF:
                raise UnsupportedError(collection, "it is not that of a glossary; use another name")
            if made_with != tokenizer:
                why = f"its terms have the tokenizer {made_with}, not {tokenizer}; use that, or another collection"
                raise UnsupportedError(collection, why)

    def _create(self, tokenizer: str, settings: dict[str, Any]) -> None:
        from qdrant_client.http.exceptions import UnexpectedResponse

        models = self._models
        try:
            self._client.create_collection(
                self._name,
                vectors_config={},
                sparse_vectors_config={_WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                metadata={"tokenizer": tokenizer},
                **settings,
            )
        except UnexpectedResponse as error:
            if error.status_code != _CONFLICT:  # another client created it at this moment
                raise
        with warnings.catch_warnings():
            # The library's local mode, which a caller chose, says so of each index.
            warnings.filterwarnings("ignore", "Payload indexes have no effect in the local Qdrant")
            for field in ("agent_id", "category", "names"):
                schema = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=field == "agent_id")
                self._client.create_payload_index(self._name, field, field_schema=schema, wait=True)

    def put(self, point: TermPoint) -> None:
        """Store a point, and wait until it can be found."""
        with _errors_of(self.url):
            vector = {_WORDS: self._sparse(point.vector)}
            stored = self._models.PointStruct(id=point.id, payload=point.payload, vector=vector)
            self._client.upsert(self._name, [stored], wait=True)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove points, and wait until they cannot be found."""
        with _errors_of(self.url):
            for part in _parts(ids):
                self._client.delete(self._name, self._models.PointIdsList(points=[*part]), wait=True)

    def count(self, agent: str, ids: Sequence[str] | None = None) -> int:
        """Return the exact number of the points of an agent, or of those with some ids."""
        with _errors_of(self.url):
            wanted: list[list[str] | None] = [None] if ids is None else list(_parts(ids))
            return sum(
                self._client.count(self._name, count_filter=self._of(agent, ids=part), exact=True).count
                for part in wanted
            )

    def of(self, agent: str, *, category: str | None = None) -> Iterator[FoundPoint]:
        """Yield the points of an agent, or those of a category, by id."""
        return self._scroll(self._of(agent, category=category))

    def named(self, agent: str, names: Sequence[str]) -> Iterator[FoundPoint]:
        """Yield the points of an agent that have one of some names in their payload."""
        seen: set[str] = set()
        for part in _parts(names):
            for found in self._scroll(self._of(agent, names=part)):
                if found.id not in seen:
                    seen.add(found.id)
                    yield found

    def get(self, point_id: str) -> FoundPoint | None:
        """Return a point, or None."""
        with _errors_of(self.url):
            for point in self._client.retrieve(self._name, [point_id], with_payload=True):
                return FoundPoint(str(point.id), point.payload or {}, 0.0)
            return None

    def search(
        self, agent: str, question: Mapping[int, float], limit: int, ids: Sequence[str] | None = None
    ) -> list[FoundPoint]:
        """Return the points of an agent with the greatest product with a question, greatest first.

        Args:
            agent: The agent. IDF is that of its points.
            question: The weight of each token.
            limit: Maximum number of points.
            ids: Only points with these ids.
        """
        with _errors_of(self.url):
            params = self._models.SearchParams(idf=self._models.IdfCorpusParams(corpus=self._of(agent)))
            found = self._client.query_points(
                self._name,
                query=self._sparse(question),
                using=_WORDS,
                query_filter=self._of(agent, ids=ids),
                search_params=params,
                limit=limit,
                with_payload=True,
            )
            return [FoundPoint(str(point.id), point.payload or {}, point.score) for point in found.points]

    def close(self) -> None:
        """Close the connections, unless the client was passed."""
        if self._owned:
            self._client.close()

    def _page(self, where: Any, offset: Any) -> tuple[list[Any], Any]:
        with _errors_of(self.url):
            return self._client.scroll(self._name, scroll_filter=where, limit=_PAGE, offset=offset, with_payload=True)

    def _scroll(self, where: Any) -> Iterator[FoundPoint]:
        offset = None
        while True:
            points, offset = self._page(where, offset)
            yield from (FoundPoint(str(point.id), point.payload or {}, 0.0) for point in points)
            if offset is None:
                return

    def _of(
        self,
        agent: str,
        *,
        category: str | None = None,
        names: list[str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> Any:
        models = self._models
        must: list[Any] = [models.FieldCondition(key="agent_id", match=models.MatchValue(value=agent))]
        if category is not None:
            must.append(models.FieldCondition(key="category", match=models.MatchValue(value=category)))
        if names is not None:
            must.append(models.FieldCondition(key="names", match=models.MatchAny(any=names)))
        if ids is not None:
            must.append(models.HasIdCondition(has_id=list(ids)))
        return models.Filter(must=must)

    def _sparse(self, vector: Mapping[int, float]) -> Any:
        return self._models.SparseVector(indices=list(vector), values=list(map(float, vector.values())))


def _parts(values: Iterable[str]) -> Iterator[list[str]]:
    listed = list(values)
    for start in range(0, len(listed), _VALUES):
        yield listed[start : start + _VALUES]


def _reason(error: Exception) -> str:
    """Return what the server or the library says, on one line."""
    status, content = getattr(error, "status_code", None), getattr(error, "content", None)
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else str(getattr(error, "source", error))
    return " ".join(f"{status}: {text}".split() if status else text.split())[:300]
