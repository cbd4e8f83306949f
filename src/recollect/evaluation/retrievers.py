"""The retrievers under evaluation: recall of this package, and peers, set up as their documentation says.

Every retriever gets the same records, the text of a turn being who speaks, what is said and what a picture shows. The
peers are optional (`pip install recollect[eval]`) and imported when they are asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import apsw
import numpy as np
from numpy.typing import NDArray

from recollect.errors import UnsupportedError
from recollect.facets.sdr.index.texts import SdrTexts
from recollect.memory import Memory
from recollect.models.embedding.environment import embedder_from
from recollect.records.record import Record


class Ranked(NamedTuple):
    """The ids of the hits of a question, best first, and the confidence of the first (0 if the retriever has none)."""

    ids: list[str]
    confidence: float = 0.0


class Retriever(Protocol):
    """An implementation of search."""

    def ask(self, question: str, k: int) -> Ranked:
        """Return the `k` best hits for a question."""


class Recollect:
    """This package: `Memory.recall` with its defaults."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def ask(self, question: str, k: int) -> Ranked:
        hits = self._memory.recall(question, k=k)
        return Ranked([hit.record.id for hit in hits], hits[0].confidence if hits else 0.0)


def text_of(record: Record) -> str:
    """Return the text of a record for a peer."""
    who = record.speaker or record.role or ""
    caption = record.metadata.get("caption")
    return " ".join(part for part in (f"{who}:" if who else "", record.text, str(caption or "")) if part)


class Fts5:
    """SQLite's full-text index with its defaults (unicode61, bm25()): any of the question's words."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._ids = [record.id for record in records]
        self._database = apsw.Connection(":memory:")
        self._database.execute("CREATE VIRTUAL TABLE turns USING fts5(text)")
        self._database.executemany("INSERT INTO turns (text) VALUES (?)", [(text_of(record),) for record in records])

    def ask(self, question: str, k: int) -> Ranked:
        words = re.findall(r"\w+", question)
        if not words:
            return Ranked([])
        query = " OR ".join(f'"{word}"' for word in words)
        rows = self._database.execute(
            "SELECT rowid FROM turns WHERE turns MATCH ? ORDER BY rank, rowid LIMIT ?", (query, k)
        )
        return Ranked([self._ids[number - 1] for (number,) in rows])


class Bm25s:
    """bm25s with its defaults (Lucene's BM25, k1 1.5, b 0.75), English stop-words and stemmer."""

    def __init__(self, records: Sequence[Record]) -> None:
        bm25s = imported("bm25s")
        import Stemmer

        self._bm25s, self._stemmer = bm25s, Stemmer.Stemmer("english")
        self._ids = [record.id for record in records]
        self._index = bm25s.BM25()
        self._index.index(self._tokens([text_of(record) for record in records]), show_progress=False)

    def _tokens(self, texts: list[str]) -> Any:
        return self._bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)

    def ask(self, question: str, k: int) -> Ranked:
        found, scores = self._index.retrieve(self._tokens([question]), k=min(k, len(self._ids)), show_progress=False)
        return Ranked([self._ids[number] for number, score in zip(found[0], scores[0], strict=True) if score > 0])


class Cosines:
    """all-MiniLM-L6-v2, as the extra minilm installs it: the greatest cosine, exactly."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._embedder = embedder_from("minilm")
        self._ids = [record.id for record in records]
        self._vectors = self._unit([text_of(record) for record in records])

    def _unit(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = np.asarray(self._embedder.embed(texts), dtype=np.float32)
        out: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return out

    def ask(self, question: str, k: int) -> Ranked:
        cosines = self._vectors @ self._unit([question])[0]
        return Ranked([self._ids[place] for place in np.argsort(-cosines, kind="stable")[:k]])


class QdrantHybrid:
    """Qdrant in its local mode: MiniLM and BM25 (k1 1.2, b 0.75), twenty of each, joined by reciprocal ranks."""

    def __init__(self, records: Sequence[Record]) -> None:
        qdrant, bm25s = imported("qdrant_client"), imported("bm25s")
        import Stemmer

        self._models, self._bm25s, self._stemmer = qdrant.models, bm25s, Stemmer.Stemmer("english")
        self._embedder, self._words = embedder_from("minilm"), dict[str, int]()
        self._ids = [record.id for record in records]
        texts = [text_of(record) for record in records]
        counted = [Counter(each) for each in self._tokens(texts)]
        mean = sum(each.total() for each in counted) / max(len(counted), 1)
        models = self._models
        self._client = qdrant.QdrantClient(":memory:")
        self._client.create_collection(
            "turns",
            vectors_config={"meaning": models.VectorParams(size=384, distance=models.Distance.COSINE)},
            sparse_vectors_config={"words": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        vectors = np.asarray(self._embedder.embed(texts)).tolist()
        points = [
            models.PointStruct(id=place, vector={"meaning": vector, "words": self._sparse(counts, mean)})
            for place, (vector, counts) in enumerate(zip(vectors, counted, strict=True))
        ]
        self._client.upload_points("turns", points)

    def _tokens(self, texts: list[str]) -> list[list[str]]:
        found: list[list[str]] = self._bm25s.tokenize(
            texts, stopwords="en", stemmer=self._stemmer, return_ids=False, show_progress=False
        )
        return found

    def _sparse(self, counts: Mapping[str, int], mean: float) -> Any:
        length = sum(counts.values()) / max(mean, 1e-9)
        numbers = [self._words.setdefault(word, len(self._words)) for word in counts]
        values = [2.2 * count / (count + 1.2 * (0.25 + 0.75 * length)) for count in counts.values()]
        return self._models.SparseVector(indices=numbers, values=values)

    def ask(self, question: str, k: int) -> Ranked:
        models, words = self._models, [each for each in self._tokens([question])[0] if each in self._words]
        numbers = [self._words[each] for each in dict.fromkeys(words)]
        sparse = models.SparseVector(indices=numbers, values=[1.0] * len(numbers))
        meaning = np.asarray(self._embedder.embed([question], asking=True))[0].tolist()
        of = [models.Prefetch(query=meaning, using="meaning", limit=max(k, 20))]
        if words:
            of.append(models.Prefetch(query=sparse, using="words", limit=max(k, 20)))
        fused = models.FusionQuery(fusion=models.Fusion.RRF)
        found = self._client.query_points("turns", prefetch=of, query=fused, limit=k).points
        return Ranked([self._ids[point.id] for point in found])


class SdrRetriever:
    """Sparse codes (`recollect.sdr`): the overlap of character trigrams, or the rule of sdr-memory."""

    def __init__(self, records: Sequence[Record], *, rule: bool = False) -> None:
        self._ids = [record.id for record in records]
        texts = SdrTexts(dict(enumerate(map(text_of, records), start=1)))
        self._search = texts.nearest if rule else texts.overlapping

    def ask(self, question: str, k: int) -> Ranked:
        found = self._search(question, k)
        return Ranked([self._ids[hit.number - 1] for hit in found], found[0].score if found else 0.0)


#: The peers, by their names in `--compare`.
PEERS: dict[str, Callable[[Sequence[Record]], Retriever]] = {
    "fts5": Fts5,
    "bm25s": Bm25s,
    "minilm": Cosines,
    "qdrant": QdrantHybrid,
    "sdr": SdrRetriever,
    "sdr-rule": partial(SdrRetriever, rule=True),
}


def imported(module: str) -> Any:
    """Import an optional module. Raises UnsupportedError, with the package that contains it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        wanted = {"qdrant_client": "recollect[eval,minilm,qdrant]"}.get(module, "recollect[eval]")
        raise UnsupportedError(module, f"it is not installed: pip install {wanted}") from None
