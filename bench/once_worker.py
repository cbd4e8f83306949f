"""One peer in its own environment: `python bench/once_worker.py PEER FOLDER`, started by `bench.once`.

This file is run by a Python that has the peer and not this project, so it imports neither our code nor NumPy. FOLDER
has texts.json ({"texts", "more", "questions"}) and vectors.bin (a float32 vector for each of these, in order). The
protocol is one JSON line in each direction: first the time of the set-up; then {"ask": i} or {"write": i} returns
{"ms"}, timed in this process. Each class does what the first pages of its peer's documentation do, with given vectors
instead of a model.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from array import array
from pathlib import Path
from typing import Any

DIMENSION, K = 256, 10
Vector = list[float]


class Chroma:
    """PersistentClient, one collection, documents added with their embeddings."""

    def __init__(self, folder: Path, known: dict[str, Vector]) -> None:
        import chromadb

        client = chromadb.PersistentClient(str(folder), chromadb.config.Settings(anonymized_telemetry=False))
        self._collection = client.create_collection("texts", embedding_function=None)
        self._most = client.get_max_batch_size()

    def add(self, texts: list[str], vectors: list[Vector]) -> None:
        for at in range(0, len(texts), self._most):
            batch = slice(at, at + self._most)
            ids = [str(uuid.uuid4()) for _ in texts[batch]]
            self._collection.add(ids=ids, documents=texts[batch], embeddings=vectors[batch])

    def ask(self, question: str, vector: Vector) -> int:
        return len(self._collection.query(query_embeddings=[vector], n_results=K)["ids"][0])


class LanceDB:
    """A table of vectors and texts without an index (searched exactly), which is what its guide makes first."""

    def __init__(self, folder: Path, known: dict[str, Vector]) -> None:
        import lancedb

        self._database = lancedb.connect(str(folder))
        self._table: Any = None

    def add(self, texts: list[str], vectors: list[Vector]) -> None:
        rows = [{"vector": vector, "text": text} for text, vector in zip(texts, vectors, strict=True)]
        if self._table is None:
            self._table = self._database.create_table("texts", data=rows)
        else:
            self._table.add(rows)

    def ask(self, question: str, vector: Vector) -> int:
        return len(self._table.search(vector).limit(K).to_list())


class Qdrant:
    """qdrant-client's local mode on disk: cosine, points with their text as payload."""

    def __init__(self, folder: Path, known: dict[str, Vector]) -> None:
        from qdrant_client import QdrantClient, models

        self._models = models
        self._client = QdrantClient(path=str(folder))
        self._client.create_collection(
            "texts", vectors_config=models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)
        )

    def add(self, texts: list[str], vectors: list[Vector]) -> None:
        points = [
            self._models.PointStruct(id=str(uuid.uuid4()), vector=vector, payload={"text": text})
            for text, vector in zip(texts, vectors, strict=True)
        ]
        self._client.upsert("texts", points=points)

    def ask(self, question: str, vector: Vector) -> int:
        return len(self._client.query_points("texts", query=vector, limit=K).points)


class Mem0:
    """`add(infer=False)` and `search` over its default store (qdrant's local mode). Its embedder is a table of the
    vectors that are given; the model that it would ask is named and never called. There is no way to add many."""

    def __init__(self, folder: Path, known: dict[str, Vector]) -> None:
        from langchain_core.embeddings import Embeddings
        from mem0 import Memory

        class Table(Embeddings):  # type: ignore[misc]
            def embed_query(self, text: str) -> Vector:
                return known[text]

            def embed_documents(self, texts: list[str]) -> list[Vector]:
                return [known[text] for text in texts]

        store = {"path": str(folder / "qdrant"), "embedding_model_dims": DIMENSION, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "embedder": {"provider": "langchain", "config": {"model": Table(), "embedding_dims": DIMENSION}},
                "llm": {"provider": "openai", "config": {"api_key": "unused"}},
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def add(self, texts: list[str], vectors: list[Vector]) -> None:
        for text in texts:
            self._memory.add(text, user_id="one", infer=False)

    def ask(self, question: str, vector: Vector) -> int:
        return len(self._memory.search(question, filters={"user_id": "one"}, top_k=K)["results"])


class LangGraph:
    """SqliteStore with a vector index (sqlite-vec); many at a time by `batch`. Its embedder is a table of vectors."""

    def __init__(self, folder: Path, known: dict[str, Vector]) -> None:
        from langgraph.store.base import PutOp
        from langgraph.store.sqlite import SqliteStore

        def embed(texts: Any) -> list[Vector]:
            return [known[text] for text in texts]

        self._put = PutOp
        self._context = SqliteStore.from_conn_string(
            str(folder / "store.db"), index={"dims": DIMENSION, "embed": embed}
        )
        self._store = self._context.__enter__()
        self._store.setup()

    def add(self, texts: list[str], vectors: list[Vector]) -> None:
        for at in range(0, len(texts), 100):
            some = texts[at : at + 100]
            self._store.batch([self._put(("one",), str(uuid.uuid4()), {"text": each}, ["text"]) for each in some])

    def ask(self, question: str, vector: Vector) -> int:
        return len(self._store.search(("one",), query=question, limit=K))


KINDS: dict[str, Any] = {
    "chromadb": Chroma,
    "lancedb": LanceDB,
    "qdrant": Qdrant,
    "mem0": Mem0,
    "langgraph": LangGraph,
}


def resident_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) * 1024


def main(kind: str, folder: Path) -> None:
    # Libraries print; the talk goes where they do not.
    talk = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    given = json.loads((folder / "texts.json").read_text())
    numbers = array("f")
    numbers.frombytes((folder / "vectors.bin").read_bytes())
    parts = [*given["texts"], *given["more"], *given["questions"]]
    vectors = [list(numbers[at * DIMENSION : (at + 1) * DIMENSION]) for at in range(len(parts))]
    del numbers
    known = dict(zip(parts, vectors, strict=True))
    place = folder / kind
    place.mkdir()
    peer = KINDS[kind](place, known)
    texts = given["texts"]
    peer.add(texts[:1], vectors[:1])
    before, began = resident_bytes(), time.perf_counter()
    peer.add(texts[1:], vectors[1 : len(texts)])
    took = time.perf_counter() - began
    print(json.dumps({"bulk_per_s": (len(texts) - 1) / took}), file=talk, flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        began = time.perf_counter()
        if "ask" in wanted:
            hits = peer.ask(given["questions"][wanted["ask"]], known[given["questions"][wanted["ask"]]])
        else:
            text = given["more"][wanted["write"]]
            hits = peer.add([text], [known[text]])
        told = {"ms": (time.perf_counter() - began) * 1000, "hits": hits}
        told["rss_bytes_per_record"] = (resident_bytes() - before) / len(texts)
        print(json.dumps(told), file=talk, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
