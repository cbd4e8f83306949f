"""The names of jazzmine: its published example, its signatures and error types, on a file and on a Qdrant server.

The goldens are those of its wheel, version 0.1.42: the signatures that it states, and the errors that it raised.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.facets.glossary.qdrant_server import qdrant_server
from tests.facets.glossary.test_glossary import tokenizer_json

import recollect
from recollect.compat.jazzmine import QdrantManager, SemanticMemory
from recollect.qdrant import QdrantGlossary

#: Signatures as the wheel states them.
MANAGER = (
    "(url, vector_size, use_indexing=True, quantization=..., on_disk=False, api_key=None, distance_metric='cosine', "
    "collection_prefix=..., replication_factor=1, shard_number=1, indexing_threshold=2000, flush_interval_sec=15, "
    "max_optimization_threads=1, use_sparse_vectors=True)"
)
CALLS = {
    "memorize": "(self, key, value, category, agent_id, aliases=None, description=None)",
    "recall": "(self, query, agent_id, top_k=5, score_threshold=None)",
    "forget": "(self, key, agent_id)",
    "forget_many": "(self, keys, agent_id)",
    "list_all": "(self, agent_id, category=None)",
    "entry_count": "(self, agent_id)",
}


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    return tokenizer_json(tmp_path / "tokenizer.json")


@pytest.fixture(params=["file", "server"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QdrantManager]:
    if request.param == "file":
        with QdrantManager(f"recollect:{tmp_path / 'terms.db'}", 384) as made:
            yield made
    else:
        with qdrant_server() as server, QdrantManager(server.url, 384) as made:
            yield made


@pytest.fixture
def semantic(manager: QdrantManager, tokenizer: Path) -> SemanticMemory:
    return SemanticMemory(manager, tokenizer)


def run(call: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(call)


@pytest.mark.in_process
def test_the_published_example_runs_with_another_import_address_and_tokenizer(
    manager: QdrantManager, tokenizer: Path
) -> None:
    async def example() -> list[dict[str, Any]]:
        semantic = SemanticMemory(qdrant_manager=manager, tokenizer_path=str(tokenizer))
        await semantic.memorize(
            key="PII",
            value="Personally Identifiable Information",
            category="abbreviation",
            agent_id="compliance_bot",
            aliases=["private data", "sensitive info"],
            description="Any data that could be used to identify a specific individual.",
        )
        return await semantic.recall(
            query="How do we handle private data?", agent_id="compliance_bot", top_k=3, score_threshold=1.5
        )

    (found,) = run(example())
    assert found.pop("score") >= 3.0
    assert found == {
        "key": "PII",
        "value": "Personally Identifiable Information",
        "category": "abbreviation",
        "aliases": ["private data", "sensitive info"],
        "description": "Any data that could be used to identify a specific individual.",
        "agent_id": "compliance_bot",
        "entry_id": "31a291a0-e30d-5413-bc06-d7748a4c8b49",
    }


@pytest.mark.in_process
def test_every_call_does_what_it_does_there(semantic: SemanticMemory) -> None:
    async def calls() -> None:
        await semantic.memorize("JWT", "JSON Web Token", "abbreviation", "a")
        await semantic.memorize("jwt", "token", "technical", "a")
        await semantic.memorize("k8s", "Kubernetes", "abbreviation", "a", ["kube"])
        await semantic.memorize("k8s", "of another", "abbreviation", "b", aliases=None, description=None)
        assert [each["key"] for each in await semantic.list_all("a")] == ["jwt", "k8s"]
        assert [each["key"] for each in await semantic.list_all("a", category="technical")] == ["jwt"]
        assert "score" not in (await semantic.list_all("a"))[0]
        assert await semantic.entry_count("a") == 2
        assert [each["value"] for each in await semantic.recall("the kube", "a")] == ["Kubernetes"]
        assert await semantic.recall("[CLS] unheard [SEP]", "a") == []
        assert await semantic.forget("absent", "a") is False
        assert await semantic.forget("JWT", "a") is True
        assert await semantic.recall("jwt", "a") == []
        assert await semantic.forget_many(["K8S", "absent"], "a") == 1
        assert (await semantic.entry_count("a"), await semantic.entry_count("b")) == (0, 1)

    run(calls())
    run(semantic._manager.ensure_semantic_collection())


@pytest.mark.in_process
def test_calls_at_once_are_all_done(semantic: SemanticMemory) -> None:
    async def calls() -> int:
        await asyncio.gather(*(semantic.memorize(f"key {n}", "v", "", "a") for n in range(40)))
        found = await asyncio.gather(*(semantic.recall(f"key {n}", "a", 1) for n in range(40)))
        assert [each[0]["key"] for each in found] == [f"key {n}" for n in range(40)]
        return await semantic.entry_count("a")

    assert run(calls()) == 40


def test_the_file_is_a_memory_with_history_and_the_next_process_finds_the_terms(
    tmp_path: Path, tokenizer: Path
) -> None:
    url = f"recollect:{tmp_path / 'terms.db'}"
    for value in ("old", "new"):
        with QdrantManager(url, 384) as manager:
            run(SemanticMemory(manager, tokenizer).memorize("pod", value, "", "a"))
            assert manager.memory is not None
            assert manager.memory.glossary.get("pod", "a")["value"] == value  # type: ignore[index]
    with recollect.open(tmp_path / "terms.db") as memory:
        assert [each.term["value"] for each in memory.glossary.history("pod", "a") if each.term] == ["old", "new"]


def test_the_collection_has_the_prefix_and_the_settings(tokenizer: Path) -> None:
    with qdrant_server() as server, QdrantManager(server.url, 384, collection_prefix="dev", shard_number=3) as manager:
        run(SemanticMemory(manager, tokenizer).memorize("pod", "v", "", "a"))
        (made,) = (each.body for each in server.asked if (each.method, each.what) == ("PUT", "/"))
        assert (made["shard_number"], made["optimizers_config"]["flush_interval_sec"]) == (3, 15)
        with QdrantGlossary(server.url, collection="dev_recollect_terms", tokenizer=tokenizer) as glossary:
            assert len(glossary.list_all("a")) == 1


def test_the_signatures_are_those_of_the_wheel() -> None:
    def stated(call: Callable[..., Any]) -> str:
        signature = inspect.signature(call)
        plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
        return str(signature.replace(parameters=plain, return_annotation=signature.empty))

    assert stated(QdrantManager) == MANAGER.replace("quantization=...", "quantization=8").replace(
        "collection_prefix=...", "collection_prefix='jazzmine'"
    )
    assert stated(SemanticMemory) == "(qdrant_manager, tokenizer_path)"
    assert {name: stated(getattr(SemanticMemory, name)) for name in CALLS} == CALLS
    assert all(inspect.iscoroutinefunction(getattr(SemanticMemory, name)) for name in CALLS)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"url": ""}, ConnectionError),
        ({"url": "http://"}, ConnectionError),
        ({"url": "https://"}, ConnectionError),
        ({"url": "a b"}, ConnectionError),
        ({"url": "http:// x"}, ConnectionError),
        ({"url": "recollect:"}, ConnectionError),
        ({"url": 1}, TypeError),
        ({"vector_size": 0}, ValueError),
        ({"vector_size": 65_537}, ValueError),
        ({"vector_size": -1}, OverflowError),
        ({"vector_size": "3"}, TypeError),
        ({"distance_metric": "x"}, ValueError),
        ({"distance_metric": ""}, ValueError),
        ({"distance_metric": " cosine"}, ValueError),
        ({"shard_number": -1}, OverflowError),
        ({"shard_number": 1.5}, TypeError),
        ({"replication_factor": -1}, OverflowError),
        ({"replication_factor": "1"}, TypeError),
        ({"quantization": 7}, ValueError),
    ],
)
def test_a_wrong_argument_of_the_manager_is_its_error(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        QdrantManager(**{"url": "http://127.0.0.1:1", "vector_size": 384, **arguments})
    with pytest.raises(TypeError):
        QdrantManager(url="http://127.0.0.1:1")  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["shard_number", "replication_factor"])
def test_a_collection_has_at_least_one_shard_and_one_replica(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} .*must be at least 1"):
        QdrantManager("http://127.0.0.1:1", 384, **{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", ["COSINE", "cOsInE", "Dot", "EUCLIDEAN"])
def test_a_metric_has_any_casing(metric: str) -> None:
    QdrantManager("http://127.0.0.1:1", 384, distance_metric=metric).close()


@pytest.mark.parametrize("url", ["nope", "localhost:6333", "grpc://localhost:6334", "ftp://x"])
def test_an_address_that_is_no_servers_fails_at_the_first_call(url: str, tokenizer: Path) -> None:
    manager = QdrantManager(url, 384)
    semantic = SemanticMemory(manager, tokenizer)
    with pytest.raises(RuntimeError, match=f"'{url}' must be recollect:PATH"):
        run(semantic.memorize("k", "v", "c", "a"))
    with pytest.raises(RuntimeError, match=f"'{url}' must be recollect:PATH"):
        run(manager.ensure_semantic_collection())


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda s: s.memorize("k", 3, "c", "a"), TypeError),
        (lambda s: s.memorize("k", "v", "c", "a", "alias"), TypeError),
        (lambda s: s.memorize("k", "v", "c", "a", [1]), TypeError),
        (lambda s: s.memorize("k", "v", "c", "a", description=1), TypeError),
        (lambda s: s.recall("q", "a", "3"), TypeError),
        (lambda s: s.recall("q", "a", 1.5), TypeError),
        (lambda s: s.recall("q", "a", score_threshold="1"), TypeError),
        (lambda s: s.recall("q", "a", -1), OverflowError),
        (lambda s: s.recall("q", "a", 0), ValueError),
        (lambda s: s.forget(1, "a"), TypeError),
        (lambda s: s.forget_many("abc", "a"), TypeError),
        (lambda s: s.list_all("a", 1), TypeError),
        (lambda s: s.entry_count(None), TypeError),
        (lambda s: s.memorize("", "v", "c", "a"), ValueError),
    ],
)
def test_a_wrong_argument_of_a_call_is_its_error(
    semantic: SemanticMemory, call: Callable[[SemanticMemory], Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        run(call(semantic))
    assert run(semantic.entry_count("a")) == 0


def test_a_tokenizer_that_cannot_be_loaded_is_a_runtime_error_that_names_it(
    manager: QdrantManager, tmp_path: Path
) -> None:
    (tmp_path / "bad.json").write_text("{")
    for name in ("absent.json", "bad.json"):
        with pytest.raises(RuntimeError, match=name):
            SemanticMemory(manager, tmp_path / name)
    with pytest.raises(TypeError):
        SemanticMemory(None, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        SemanticMemory(manager, None)  # type: ignore[arg-type]


def test_a_server_that_cannot_be_reached_is_a_runtime_error_of_every_call_and_nothing_else_is_used(
    tmp_path: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_DB", str(tmp_path / "never.db"))
    before = set(tmp_path.iterdir())
    with qdrant_server() as server:
        pass
    semantic = SemanticMemory(QdrantManager(server.url, 384), tokenizer)
    calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        lambda: semantic.memorize("k", "v", "c", "a"),
        lambda: semantic.recall("k", "a"),
        lambda: semantic.forget("k", "a"),
        lambda: semantic.forget_many(["k"], "a"),
        lambda: semantic.list_all("a"),
        lambda: semantic.entry_count("a"),
        semantic._manager.ensure_semantic_collection,
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match=server.url):
            run(call())
    assert set(tmp_path.iterdir()) == before


def test_a_server_that_is_down_at_first_is_used_once_it_is_there(tokenizer: Path) -> None:
    with qdrant_server() as server, QdrantManager(server.url, 384) as manager:
        semantic = SemanticMemory(manager, tokenizer)

        def drop(asked: Any) -> None:
            raise ConnectionAbortedError

        server.before = drop
        with pytest.raises(RuntimeError):
            run(semantic.memorize("k", "v", "c", "a"))
        server.before = lambda asked: None
        run(semantic.memorize("k", "v", "c", "a"))
        assert run(semantic.entry_count("a")) == 1


def test_a_file_that_is_no_store_is_a_runtime_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a store")
    with pytest.raises(RuntimeError, match=r"notes\.txt"):
        QdrantManager(f"recollect:{tmp_path / 'notes.txt'}", 384)
