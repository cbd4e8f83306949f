"""Machines share vectors: each text is embedded once, and all machines use the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import recollect
from recollect.errors import StoreServerError
from recollect.memory import Memory
from recollect.models.embedding.hashed import Hashed
from recollect.stores.derived.vectors import VectorFile
from recollect.stores.postgres import derived as shared
from recollect.stores.postgres.derived import PostgresVectors
from recollect.testing.loopback import core_of

pytestmark = pytest.mark.postgres
NAME = "sharing"
SECRET = "quixotically"


class Counting(Hashed):
    """An embedder that counts the texts it embeds besides questions."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = 0

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Any:
        self.texts += 0 if asking else len(texts)
        return super().embed(texts, asking=asking)


def machine(address: str, folder: Path, embedder: Any = None) -> Memory:
    """Open the store on a machine with a cache folder of its own."""
    return recollect.open(f"{address.partition('&cache=')[0]}&cache={folder}", NAME, embedder=embedder or Hashed())


def remember(memory: Memory, count: int = 120) -> None:
    memory.remember_all(
        [
            {"content": f"note {number} about the harbour and {number % 37}", "id": f"n{number}", "time": "2026-01-01"}
            for number in range(count)
        ]
    )


def answers(memory: Memory) -> Any:
    questions = ("what is said about a port", "note 77", f"who said {SECRET}")
    found = [memory.recall(each, k=20) for each in questions]
    return [[(hit.record.id, hit.score, hit.why) for hit in hits] + [hits.plan.notes] for hits in found]


def rows(dsn: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def count(dsn: str, schema: str) -> int:
    return int(rows(dsn, f"SELECT count(*) FROM {schema}.vectors")[0][0])


def here(memory: Memory) -> int:
    """Return the number of vectors in the file of a machine."""
    core = core_of(memory)
    assert core.vectors is not None
    return sum(number for _, number in VectorFile.models(core.vectors.store, NAME))


@pytest.fixture
def filled(address: str, tmp_path: Path) -> str:
    """The address of a store whose texts another machine has embedded."""
    with machine(address, tmp_path / "one") as one:
        remember(one)
        one.embed_all()
    return address


@pytest.mark.parametrize("is_shared", [True, False], ids=["", "control"])
def test_a_second_machine_embeds_nothing(is_shared: bool, filled: str, dsn: str, schema: str, tmp_path: Path) -> None:
    assert count(dsn, schema) == 120
    if not is_shared:
        rows(dsn, f"DELETE FROM {schema}.vectors")
    embedder = Counting()
    with machine(filled, tmp_path / "two", embedder) as two:
        two.embed_all()
        assert embedder.texts == (0 if is_shared else 120)
        assert here(two) == 120


def test_a_recall_of_a_second_machine_uses_them_at_once_with_the_same_bits(filled: str, tmp_path: Path) -> None:
    with recollect.open(tmp_path / "file.db", NAME, embedder=Hashed()) as file:
        remember(file)
        file.embed_all()
        expected = answers(file)
    with machine(filled, tmp_path / "one") as one, machine(filled, tmp_path / "two") as two:
        assert answers(one) == answers(two) == expected
        assert two.vector_stats() == one.vector_stats()
        one.remember("a ship lies in the port", id="ship", time="2026-01-02")
        assert answers(one) == answers(two), "both say that a text has no vector"
        one.embed_all()
        assert answers(one) == answers(two)
        assert two.vector_stats() == one.vector_stats()


def test_once_all_are_there_a_recall_asks_for_no_more(filled: str, tmp_path: Path) -> None:
    with machine(filled, tmp_path / "two") as two:
        traffic = core_of(two).store.traffic  # type: ignore[attr-defined]

        def trips() -> int:
            before = traffic.round_trips
            two.recall("what is said about a port")
            return int(traffic.round_trips - before)

        trips()
        assert trips() == 2  # one to prepare the question, and one to answer it
        two.remember("a ship lies in the port")
        trips()
        assert trips() > 2, "control: one text waits for its vector"


def test_of_two_machines_that_embed_a_text_at_once_both_use_the_first_vector(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slightly(Hashed):
        """As the same model on another processor may be."""

        def embed(self, texts: Sequence[str], *, asking: bool = False) -> Any:
            return [np.asarray(each, dtype=np.float32) * 0.5 for each in super().embed(texts, asking=asking)]

    def stored(memory: Memory) -> dict[bytes, bytes]:
        vectors = core_of(memory).vectors
        assert vectors is not None
        found = vectors.store.newer(vectors.model(), NAME, 0)
        return {text: vector.tobytes() for _, page in found for text, vector in page.items()}

    with machine(address, tmp_path / "one") as one, machine(address, tmp_path / "two", Slightly()) as two:
        remember(one, 5)
        put = PostgresVectors.put

        def put_late(self: PostgresVectors, *arguments: Any) -> Any:
            monkeypatch.setattr(PostgresVectors, "put", put)
            one.embed_all()
            return put(self, *arguments)

        monkeypatch.setattr(PostgresVectors, "put", put_late)
        two.embed_all()
        assert len(stored(two)) == 5
        assert stored(one) == stored(two)


#: What happened to the rows, and how many texts are embedded again.
DAMAGE = {
    "nothing": ("SELECT 1", 0),
    "a bit of a vector": ("UPDATE {s}.vectors SET vector = set_byte(vector, 9, get_byte(vector, 9) # 1) {one}", 1),
    "a shorter vector": ("UPDATE {s}.vectors SET vector = substr(vector, 5) {one}", 1),
    "a digest": ("UPDATE {s}.vectors SET text = decode(repeat('ab', 32), 'hex') {one}", 1),
    "a row in the middle": ("DELETE FROM {s}.vectors {one}", 1),
    "the set": ("DELETE FROM {s}.vector_sets", 120),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_corrupt_vector_is_embedded_again(name: str, filled: str, dsn: str, schema: str, tmp_path: Path) -> None:
    statement, again = DAMAGE[name]
    rows(dsn, statement.format(s=schema, one=f"WHERE number = (SELECT min(number) + 60 FROM {schema}.vectors)"))
    with machine(filled, tmp_path / "one") as one:
        expected = answers(one)
    embedder = Counting()
    with machine(filled, tmp_path / "two", embedder) as two:
        two.embed_all()
        assert embedder.texts == again
        assert answers(two) == expected
    embedder = Counting()
    with machine(filled, tmp_path / "three", embedder) as three:
        three.embed_all()
        assert embedder.texts == 0, "it was replaced"


def test_an_erasure_removes_the_vector_everywhere(filled: str, dsn: str, schema: str, tmp_path: Path) -> None:
    with machine(filled, tmp_path / "one") as one, machine(filled, tmp_path / "two") as two:
        answers(two)
        assert (here(one), here(two), count(dsn, schema)) == (120, 120, 120)
        assert not one.erase("n5").pending
        assert (here(one), count(dsn, schema)) == (119, 119)
        two.count()
        assert here(two) == 119
        answers(two)
        assert here(two) == 119


@pytest.mark.parametrize("is_conditional", [True, False], ids=["", "control"])
def test_a_text_that_is_erased_while_another_machine_embeds_it_leaves_no_vector(
    is_conditional: bool, address: str, dsn: str, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machine(address, tmp_path / "one") as one, machine(address, tmp_path / "two") as two:
        remember(one, 5)
        lock = shared.SharedTables.lock
        erased: list[bool] = []

        def locked_late(self: shared.SharedTables, session: Any, namespace: str) -> None:
            if not erased:
                erased.append(True)
                one.erase("n3")
            lock(self, session, namespace)

        put = PostgresVectors.put
        stored: list[int] = []

        def counted(self: PostgresVectors, model: Any, namespace: str, new: Any, wanted: Any) -> Any:
            out = put(self, model, namespace, new, wanted if is_conditional else new.keys)
            stored.append(count(dsn, schema))
            return out

        monkeypatch.setattr(PostgresVectors, "put", counted)
        monkeypatch.setattr(shared.SharedTables, "lock", locked_late)
        two.embed_all()
        assert erased
        assert stored == [4 if is_conditional else 5]
        assert count(dsn, schema) == 4, "in any case it is removed by the next machine that notices the erasure"


CALLS: dict[str, Callable[[Memory], object]] = {
    "fetching": answers,
    "put": lambda memory: memory.embed_all(),
    "models": answers,
    "reach": lambda memory: memory.embed_all(),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_error_of_the_shared_tables_fails_no_call(
    call: str, filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> None:
        raise StoreServerError("the server", "it does not answer")

    monkeypatch.setattr(PostgresVectors, call, failing)
    with machine(filled, tmp_path / "two") as two:
        two.remember("a ship lies in the port")
        CALLS[call](two)
        two.embed_all()
        assert here(two) == 121
    assert "texts may be embedded more than once" in caplog.text


def test_an_erasure_waits_for_vectors_that_cannot_be_removed(
    filled: str, dsn: str, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> int:
        raise StoreServerError("the server", "it does not answer")

    with machine(filled, tmp_path / "one") as one:
        with monkeypatch.context() as patch:
            patch.setattr(PostgresVectors, "keep_only", failing)
            assert one.erase("n5").pending
        assert count(dsn, schema) == 120
        one.remember("another write finishes it")
        assert count(dsn, schema) == 119
