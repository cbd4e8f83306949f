"""The other names that LLM4S has: its stores, its embedding services, and those of its manager's calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

import recollect
from recollect import RecollectWarning
from recollect.compat.llm4s import (
    EmbeddingService,
    InMemoryStore,
    LLMEmbeddingService,
    Memory,
    MemoryManager,
    MemoryStore,
    MemoryStoreConfig,
    MockEmbeddingService,
    SimpleMemoryManager,
    SQLiteMemoryStore,
    VectorMemoryStore,
    VectorOps,
)
from recollect.errors import EmbedderError, EmbedderUnavailableError, InvalidArgumentError
from recollect.models.embedding.base import Supplied


class Counted:
    """A service of a user's own: the number of characters."""

    dimensions = 1

    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    def embed(self, text: str) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(texts)
        return [[float(len(text))] for text in texts]


class TestStores:
    def test_a_store_in_memory_has_the_settings_that_are_passed(self) -> None:
        with InMemoryStore(MemoryStoreConfig(max_memories=2)) as store, InMemoryStore.empty() as other:
            store.store_all([Memory.user_fact(f"fact {at}") for at in range(2)])
            store.store(Memory.user_fact("one more"))
            assert (store.count(), other.count(), other.config) == (2, 0, MemoryStoreConfig())

    def test_a_store_in_memory_can_begin_with_memories(self) -> None:
        memories = [Memory.user_fact("prefers tea", "ana"), Memory.user_fact("prefers coffee", "bo")]
        with InMemoryStore.with_memories(memories) as store:
            assert {memory.id for memory in store.recall()} == {memory.id for memory in memories}
        with pytest.raises(InvalidArgumentError, match="memory"):
            InMemoryStore.with_memories(["text"])  # type: ignore[list-item]

    def test_a_store_in_a_file_is_there_when_it_is_opened_again(self, tmp_path: Path) -> None:
        with SQLiteMemoryStore(tmp_path / "agent.db") as store:
            fact = store.store(Memory.user_fact("prefers tea", "ana"))
        with SQLiteMemoryStore(tmp_path / "agent.db", MemoryStoreConfig(5)) as store:
            assert (store.recall(), store.limit) == ([fact], 5)

    def test_a_vector_store_embeds_what_is_stored_and_searched_for(self, tmp_path: Path) -> None:
        with VectorMemoryStore(tmp_path / "agent.db", MockEmbeddingService(64), MemoryStoreConfig.testing()) as store:
            store.store_all([Memory.user_fact("prefers green tea"), Memory.user_fact("the lighthouse was built")])
            best, _ = store.search("which green tea does she prefer?")
            assert (best.memory.content, best.note) == ("prefers green tea", "")
            assert store.vector_stats().dimensions == (64,)

    def test_the_other_constructors_give_stores_of_the_class(self, tmp_path: Path) -> None:
        opened: list[MemoryStore] = [
            InMemoryStore.for_testing(3),
            InMemoryStore.with_embedding_service(MockEmbeddingService(8)),
            SQLiteMemoryStore.in_memory("none"),
            VectorMemoryStore.in_memory(MockEmbeddingService(8), MemoryStoreConfig(3)),
            VectorMemoryStore.open(tmp_path / "agent.db", "hashed"),
        ]
        assert [type(store).__name__ for store in opened] == [
            *("InMemoryStore", "InMemoryStore", "SQLiteMemoryStore", "VectorMemoryStore", "VectorMemoryStore")
        ]
        assert [store.limit for store in opened] == [3, None, None, 3, None]
        for store in opened:
            store.close()

    def test_a_file_is_closed_if_the_settings_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match="config"):
            SQLiteMemoryStore(tmp_path / "agent.db", "testing")  # type: ignore[arg-type]
        with SQLiteMemoryStore(tmp_path / "agent.db") as store:
            assert store.count() == 0


class TestServices:
    def test_the_mock_has_vectors_of_the_size_that_is_asked_for(self) -> None:
        assert MockEmbeddingService().dimensions == 1536
        for size in (1, 3, 256, 1536):
            service = MockEmbeddingService(size)
            vector = service.embed("prefers window seats")
            assert (service.dimensions, len(vector)) == (size, size)
            assert math.hypot(*vector) == pytest.approx(1)
            assert service.embed_batch(["prefers window seats", "tea"]) == [vector, service.embed("tea")]
        assert isinstance(MockEmbeddingService(3), EmbeddingService)

    def test_the_mock_gives_similar_texts_similar_vectors(self) -> None:
        asked, near, far = MockEmbeddingService(384).embed_batch(
            ["which window seat does Ana prefer?", "Ana prefers window seats", "the lighthouse was built in 1890"]
        )
        assert VectorOps.cosine_similarity(asked, near) > 0.4 > VectorOps.cosine_similarity(asked, far)

    @pytest.mark.parametrize("wrong", [0, -1, 1.5, "3", None])
    def test_a_size_that_is_no_positive_integer_is_refused(self, wrong: object) -> None:
        with pytest.raises(InvalidArgumentError, match="dimensions"):
            MockEmbeddingService(wrong)  # type: ignore[arg-type]

    def test_the_service_of_the_environment_is_the_model_that_it_names(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("RECOLLECT_EMBEDDER", raising=False)
        monkeypatch.setenv("LLM_EMBEDDING_MODEL", "voyage/voyage-2")
        assert LLMEmbeddingService.from_env().embedder.name == "voyage/voyage-2"
        monkeypatch.setenv("RECOLLECT_EMBEDDER", "hashed")
        service = LLMEmbeddingService.from_env()
        assert (service.dimensions, len(service.embed("tea"))) == (256, 256)
        monkeypatch.setenv("RECOLLECT_EMBEDDER", "none")
        with pytest.raises(EmbedderUnavailableError, match="neither RECOLLECT_EMBEDDER nor LLM_EMBEDDING_MODEL"):
            LLMEmbeddingService.from_env()

    def test_a_service_of_a_model_is_its_embedder(self) -> None:
        model = Supplied("own/1", 2, {"tea": [1.0, 0.0]})
        service = LLMEmbeddingService(model)
        assert service.embed("tea") == (1.0, 0.0)
        assert service.embed_batch([]) == []
        with pytest.raises(EmbedderError, match="text 1: there is no vector"):
            service.embed_batch(["tea", "coffee"])
        with VectorMemoryStore(":memory:", service) as store:
            assert store.store(Memory.user_fact("tea")).embedding == (1.0, 0.0)

    def test_the_size_of_a_model_that_does_not_state_it_is_seen(self) -> None:
        class Three:
            name, dimension = "test/three", None

            def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[list[float]]:
                return [[1.0, 2.0, 3.0] for _ in texts]

        assert LLMEmbeddingService(Three()).dimensions == 3

    def test_a_service_of_ones_own_embeds_for_a_store(self) -> None:
        service = Counted()
        with MemoryStore.in_memory(service) as store:
            assert store.store(Memory.user_fact("four")).embedding == (4.0,)
            assert store.memory.embed_all() == 1
            assert [hit.note for hit in store.search("two")] == [""]
        assert service.asked == [["four"], ["four"], ["two"]]

    def test_a_service_that_fails_loses_no_memory(self) -> None:
        class Broken(Counted):
            def embed_batch(self, texts: Sequence[str]) -> list[list[float]]:
                raise ConnectionError("the model is away")

        with MemoryStore.in_memory(Broken()) as store:
            with pytest.warns(RecollectWarning, match="the model is away"):
                store.store(Memory.user_fact("four"))
            assert store.count() == 1

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda: LLMEmbeddingService("hashed"),  # type: ignore[arg-type]
            lambda: MockEmbeddingService(3).embed(7),  # type: ignore[arg-type]
            lambda: MockEmbeddingService(3).embed_batch("tea"),
            lambda: VectorMemoryStore(":memory:", MockEmbeddingService),  # type: ignore[arg-type]
        ],
    )
    def test_a_wrong_argument_is_refused(self, wrong: Callable[[], object]) -> None:
        with pytest.raises(InvalidArgumentError):
            wrong()


def test_the_calls_of_a_manager_have_the_names_of_llm4s_too() -> None:
    with SimpleMemoryManager.with_store(InMemoryStore.empty()) as manager:
        manager.record_message({"role": "user", "content": "tea"}, "c")
        manager.record_entity_fact("ada", "Ada", "drinks tea")
        manager.record_user_fact("prefers tea", "ana")
        assert isinstance(manager, MemoryManager)
        assert manager.get_relevant_context("tea", 500) == manager.relevant_context("tea", 500) != ""
        assert manager.get_conversation_context("c", 1) == "Previous conversation:\n[user]: tea"
        assert manager.get_entity_context("ada") == "Known facts about Ada:\n- drinks tea"
        assert manager.get_user_context("ana") == "Known facts about the user:\n- prefers tea"
        assert manager.consolidate_memories(datetime(2100, 1, 1, tzinfo=UTC), 2) == recollect.Consolidated(())
