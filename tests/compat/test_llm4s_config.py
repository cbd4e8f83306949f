"""Every setting of the LLM4S layer has an effect, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest
from tests.compat.conftest import Open

import recollect
from recollect import Quota
from recollect.compat.llm4s import (
    Memory,
    MemoryFilter,
    MemoryManager,
    MemoryManagerConfig,
    MemoryStore,
    MemoryStoreConfig,
)
from recollect.errors import InvalidArgumentError, QuotaError, ScopeError
from recollect.models.embedding.base import VectorLike
from recollect.operations import GetQuota


def store_many(store: MemoryStore, count: int) -> None:
    for at in range(count):
        store.store(Memory.user_fact(f"fact {at}", "ana"))


class TestStore:
    def test_a_full_store_refuses_without_cleanup(self, open_store: Open) -> None:
        store = open_store(MemoryStoreConfig(max_memories=3))
        store_many(store, 3)
        with pytest.raises(QuotaError, match="quota"):
            store.store(Memory.user_fact("one more", "ana"))
        with pytest.raises(QuotaError):
            store.store_all([Memory.user_fact("one more", "ana")])
        assert store.count() == 3
        kept = store.recall()[0]
        assert store.store(kept.with_importance(1)).importance == 1

    def test_a_full_store_with_cleanup_evicts_the_least_recently_used_down_to_its_threshold(
        self, open_store: Open
    ) -> None:
        store = open_store(MemoryStoreConfig.production(max_memories=20))
        store_many(store, 20)
        oldest, second = store.recall()[:-3:-1]
        assert store.get(oldest.id) is not None  # a use
        store.store(Memory.user_fact("one more", "ana"))
        assert store.count() == 18
        assert (store.exists(oldest.id), store.exists(second.id)) == (True, False)

    @pytest.mark.in_process
    @pytest.mark.parametrize("vector", [None, [1.0]])
    def test_what_a_search_found_was_used(self, open_store: Open, vector: list[float] | None) -> None:
        store = open_store(MemoryStoreConfig(3, None, True, 2))
        stored = [store.store(Memory.from_knowledge(f"text {name}", "a").with_embedding([1.0])) for name in "abc"]
        first = MemoryFilter.custom(lambda each: each.content == "text a")
        assert [hit.memory for hit in store.search("text", 1, first, embedding=vector)] == stored[:1]
        store.store(Memory.from_knowledge("one more", "a"))
        assert (store.count(), store.exists(stored[0].id)) == (2, True)

    @pytest.mark.parametrize(("most", "threshold"), [(3, 1), (3, 2), (7, 3), (10, 10), (10, 1)])
    def test_a_cleanup_leaves_the_configured_number(self, open_store: Open, most: int, threshold: int) -> None:
        store = open_store(MemoryStoreConfig(most, enable_auto_cleanup=True, cleanup_threshold=threshold))
        store_many(store, most + 1)
        assert store.count() == threshold

    def test_the_maximum_is_stored_with_the_memories(self, open_store: Open) -> None:
        store = open_store(MemoryStoreConfig(max_memories=1))
        store_many(store, 1)
        again = MemoryStore(store.memory)
        with pytest.raises(QuotaError):
            again.store(Memory.user_fact("one more", "ana"))

    def test_a_config_without_a_maximum_removes_it_and_no_config_leaves_it(self, open_store: Open) -> None:
        store = open_store(MemoryStoreConfig(max_memories=5))
        assert MemoryStore(store.memory).memory.execute(GetQuota()) == Quota(records=5)
        assert MemoryStore(store.memory, MemoryStoreConfig()).memory.execute(GetQuota()) is None

    def test_vectors_must_have_the_configured_size(self, open_store: Open) -> None:
        store = open_store(MemoryStoreConfig(default_embedding_dimensions=3))
        memory = store.store(Memory.user_fact("fact", "ana").with_embedding([1, 0, 0]))
        with pytest.raises(InvalidArgumentError, match="3 components"):
            store.store(Memory.user_fact("fact", "ana").with_embedding([1, 0]))
        with pytest.raises(InvalidArgumentError, match="3 components"):
            store.store_all([Memory.user_fact("fact", "ana").with_embedding([1, 0])])
        assert (store.count(), store.get(memory.id)) == (1, memory)

    def test_an_embedder_of_another_size_than_the_configured_one_is_not_used(self, open_store: Open) -> None:
        class Two:
            name, dimension = "test/two", None

            def embed(self, texts: Sequence[str], *, asking: bool = False) -> Sequence[VectorLike]:
                return [[1.0, 0.0] for _ in texts]

        store = open_store(MemoryStoreConfig(default_embedding_dimensions=3), Two())
        with pytest.warns(recollect.RecollectWarning, match="has 2 components, not 3"):
            assert store.store(Memory.user_fact("tea", "ana")).embedding is None
        assert [hit.note for hit in store.search("tea")] == ["the query: its vector has 2 components, not 3"]

    def test_presets(self) -> None:
        default, testing, production = (
            MemoryStoreConfig.default(),
            MemoryStoreConfig.testing(),
            MemoryStoreConfig.production(),
        )
        assert (default.max_memories, default.enable_auto_cleanup, default.low_water) == (None, False, 1.0)
        assert (testing.max_memories, testing.enable_auto_cleanup) == (1000, False)
        assert (production.max_memories, production.enable_auto_cleanup, production.low_water) == (100_000, True, 0.9)
        assert MemoryStoreConfig.production(50).max_memories == 50
        assert MemoryStoreConfig(100, None, True, 80).low_water == 0.8
        with MemoryStore.for_testing(2) as store:
            assert store.memory.execute(GetQuota()) == Quota(records=2)

    def test_a_scope_cannot_have_a_quota_of_its_own(self, open_store: Open) -> None:
        scoped = open_store().memory.scoped(user="ana")
        with pytest.raises(ScopeError):
            MemoryStore(scoped, MemoryStoreConfig(max_memories=3))
        with pytest.raises(InvalidArgumentError, match="3 components"):
            MemoryStore(scoped, MemoryStoreConfig(None, 3)).store(Memory.user_fact("fact", "ana").with_embedding([1]))

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda: MemoryStoreConfig(max_memories=0),
            lambda: MemoryStoreConfig(max_memories=True),
            lambda: MemoryStoreConfig(default_embedding_dimensions=0),
            lambda: MemoryStoreConfig(max_memories=5, enable_auto_cleanup=1),  # type: ignore[arg-type]
            lambda: MemoryStoreConfig(enable_auto_cleanup=True),
            lambda: MemoryStoreConfig(max_memories=5, cleanup_threshold=4),
            lambda: MemoryStoreConfig(max_memories=5, enable_auto_cleanup=True, cleanup_threshold=6),
            lambda: MemoryManagerConfig(default_importance=1.5),
            lambda: MemoryManagerConfig(default_importance=float("nan")),
            lambda: MemoryManagerConfig(context_token_budget=0),
            lambda: MemoryManagerConfig(auto_record_messages=None),  # type: ignore[arg-type]
        ],
    )
    def test_an_invalid_value_is_refused(self, wrong: Callable[[], object]) -> None:
        with pytest.raises(InvalidArgumentError):
            wrong()


class TestManager:
    def test_messages_pass_unrecorded_if_the_flag_is_off(self, store: MemoryStore) -> None:
        message = {"role": "user", "content": "I moved to Oslo."}
        off = MemoryManager(store, MemoryManagerConfig(auto_record_messages=False))
        assert off.on_message(message, "c") is None
        assert store.count() == 0
        off.record_message(message, "c")
        assert store.count() == 1
        recorded = MemoryManager(store).on_message(message, "c")
        assert recorded is not None
        assert (recorded.content, store.count()) == ("I moved to Oslo.", 2)

    def test_the_default_importance_is_that_of_what_is_recorded_without_one(self, store: MemoryStore) -> None:
        manager = MemoryManager(store, MemoryManagerConfig(default_importance=0.3))
        message = {"role": "user", "content": "hi"}
        recorded = [
            manager.record_message(message, "c"),
            *manager.record_conversation([message], "d"),
            manager.record_entity_fact("ada", "Ada", "fact"),
            manager.record_user_fact("fact", "ana"),
            manager.record_task("a", "b", True),
        ]
        assert [memory.importance for memory in recorded] == [0.3] * 5
        assert manager.record_knowledge("text", "a.md").importance is None
        explicit = [
            manager.record_message(message, "e", 0.9),
            manager.record_entity_fact("ada", "Ada", "another", "person", 1.5),
            manager.record_user_fact("another", "ana", -1.0),
            manager.record_task("c", "d", True, 0.0),
        ]
        assert [memory.importance for memory in explicit] == [0.9, 1.0, 0.0, 0.0]

    def test_the_budget_of_the_settings_is_that_of_a_context_without_one(self, store: MemoryStore) -> None:
        manager = MemoryManager(store, MemoryManagerConfig(context_token_budget=60))
        for at in range(50):
            manager.record_knowledge(f"tea is drunk in town number {at}", "a.md")
        small = manager.relevant_context("tea")
        assert 0 < len(small.encode()) <= 240
        assert small == manager.relevant_context("tea", 60)
        assert len(manager.relevant_context("tea", 600)) > 240
        assert len(MemoryManager(store).relevant_context("tea")) > 240

    def test_entities_are_extracted_from_messages_if_the_flag_is_on(self, store: MemoryStore) -> None:
        message = {"role": "user", "content": "Ada Lovelace prefers tea."}
        MemoryManager(store).record_message(message, "chat")
        assert store.count(MemoryFilter.entities()) == 0
        MemoryManager(store, MemoryManagerConfig(auto_extract_entities=True)).record_message(message, "chat")
        (fact,) = store.recall(MemoryFilter.entities())
        assert (fact.content, fact.importance) == ("Ada Lovelace prefers tea.", 0.8)
        assert fact.metadata["entity_name"] == "Ada Lovelace"

    def test_a_long_conversation_is_consolidated_if_the_flag_is_on(self, store: MemoryStore) -> None:
        for flag, left in ((False, 61), (True, 12)):  # fifty of them are one now
            manager = MemoryManager(store, MemoryManagerConfig(consolidation_enabled=flag))
            for at in range(61):
                manager.record_message({"role": "user", "content": f"message {at} of {flag}"}, f"chat {flag}")
            assert store.count(MemoryFilter.for_conversation(f"chat {flag}")) == left

    def test_a_model_summarises_and_extracts(self, store: MemoryStore) -> None:
        reply = '[{"entity_name": "Alice", "entity_type": "person", "fact": "Alice prefers tea", "importance": 0.9}]'
        manager = MemoryManager(store, model=lambda prompt: reply)
        (fact,) = manager.extract_entities("any text", "chat")
        assert fact.importance == 0.87
        assert manager.extract_entities("any text", "chat") == []
        for at in range(10):
            manager.record_user_fact(f"fact {at}", "ana")
        done = manager.consolidate(datetime(2100, 1, 1, tzinfo=UTC))
        assert done.replaced == 10
        assert store.recall(MemoryFilter.user_facts())[0].content == reply

    def test_presets(self) -> None:
        assert MemoryManagerConfig.default() == MemoryManagerConfig(True, False, 0.5, 2000, False)
        assert MemoryManagerConfig.testing() == MemoryManagerConfig(auto_record_messages=False)
        with MemoryManager.for_testing() as manager:
            assert manager.config == MemoryManagerConfig.testing()
            assert manager.store.memory.execute(GetQuota()) == Quota(records=1000)
