"""The settings of the LLM4S layer: what each does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest
from tests.compat.conftest import Open

import recollect
from recollect import Quota
from recollect.compat.llm4s import (
    ConsolidationConfig,
    Memory,
    MemoryFilter,
    MemoryId,
    MemoryManager,
    MemoryManagerConfig,
    MemoryStore,
    MemoryStoreConfig,
    MemoryType,
)
from recollect.errors import InvalidArgumentError, QuotaError, ScopeError, SummaryError
from recollect.models.embedding.base import VectorLike
from recollect.operations import GetQuota


def store_many(store: MemoryStore, count: int) -> None:
    for at in range(count):
        store.store(Memory.user_fact(f"fact {at}", "ana"))


LATER = datetime(2100, 1, 1, tzinfo=UTC)


class TestStore:
    def test_the_settings_of_the_design_can_be_written_out(self, open_store: Open) -> None:
        written = MemoryStoreConfig(None, 1536, False, 10000)
        assert (written.limit, MemoryStoreConfig().cleanup_threshold) == (None, 10000)
        store = open_store(written)
        store_many(store, 3)
        assert (store.count(), store.memory.execute(GetQuota())) == (3, None)

    @pytest.mark.parametrize("cleanup", [False, True])
    def test_a_full_store_evicts_the_oldest_and_keeps_the_maximum(self, open_store: Open, cleanup: bool) -> None:
        store = open_store(MemoryStoreConfig(5, enable_auto_cleanup=cleanup))
        for number in range(1, 11):
            store.store(Memory.user_fact(f"memory {number}", "ana"))
            oldest = store.recall(limit=None)[-1]
            assert store.get(oldest.id) is not None  # a use, which does not matter
        kept = [f"memory {number}" for number in (10, 9, 8, 7, 6)]
        assert [memory.content for memory in store.recall()] == kept
        assert store.store(store.recall()[0].with_importance(1)).importance == 1
        assert store.count() == 5

    def test_the_oldest_are_those_with_the_earliest_timestamp(self, open_store: Open) -> None:
        store = open_store(MemoryStoreConfig(max_memories=2))
        for day in (3, 1, 2):
            at = datetime(2026, 3, day, tzinfo=UTC)
            store.store(Memory(MemoryId(f"day {day}"), "text", MemoryType.KNOWLEDGE, timestamp=at))
        assert {memory.id for memory in store.recall()} == {"day 2", "day 3"}

    def test_a_list_that_is_longer_than_the_maximum_leaves_its_newest(self, open_store: Open) -> None:
        store = open_store(MemoryStoreConfig(max_memories=2))
        store_many(store, 2)
        assert store.store_all([Memory.user_fact(f"more {at}", "ana") for at in range(2)]) == 2
        assert {memory.content for memory in store.recall()} == {"more 0", "more 1"}

    def test_of_a_list_that_is_longer_than_the_maximum_the_newest_are_stored(self, open_store: Open) -> None:
        store = open_store(MemoryStoreConfig(max_memories=3))
        times = {name: datetime(2026, 3, day, tzinfo=UTC) for day, name in enumerate("bdaecf", 1)}
        memories = [
            Memory(MemoryId(name), name, MemoryType.KNOWLEDGE, timestamp=times[name]) for name in [*"abcdef", "f"]
        ]
        assert MemoryStore(store.memory).store_all(memories) == 7
        assert [memory.id for memory in store.recall()] == ["f", "c", "e"]

    def test_of_a_conversation_that_is_longer_than_the_maximum_the_newest_are_stored(self, open_store: Open) -> None:
        manager = MemoryManager(open_store(MemoryStoreConfig(max_memories=3)))
        messages = [{"role": "user", "content": f"message {at}"} for at in range(5)]
        for length in (2, 5, 5):
            manager.record_conversation(messages[:length], "chat")
        kept = [memory.content for memory in manager.store.conversation("chat")]
        assert kept == ["message 2", "message 3", "message 4"]

    @pytest.mark.parametrize("threshold", [5, 18, 20, 10000])
    def test_a_threshold_takes_nothing_from_the_maximum(self, open_store: Open, threshold: int) -> None:
        store = open_store(MemoryStoreConfig(20, enable_auto_cleanup=True, cleanup_threshold=threshold))
        store_many(store, 21)
        assert store.count() == 20
        assert "fact 0" not in {memory.content for memory in store.recall()}

    def test_without_a_maximum_a_clean_up_begins_above_the_threshold(self, open_store: Open) -> None:
        store = open_store(MemoryStoreConfig(enable_auto_cleanup=True, cleanup_threshold=3))
        store_many(store, 5)
        assert {memory.content for memory in store.recall()} == {"fact 2", "fact 3", "fact 4"}

    def test_what_the_manager_records_counts(self, open_store: Open) -> None:
        manager = MemoryManager(open_store(MemoryStoreConfig(max_memories=2)))
        manager.record_user_fact("first", "ana")
        manager.record_message({"role": "user", "content": "second"}, "chat")
        manager.record_task("third", "done", True)
        assert {memory.content for memory in manager.store.recall()} == {"second", "Task: third\nOutcome: done"}

    def test_a_store_that_is_full_of_pinned_records_refuses(self, open_store: Open) -> None:
        store = open_store(MemoryStoreConfig(max_memories=1))
        store.memory.remember("pinned", pinned=True)
        with pytest.raises(QuotaError, match="quota"):
            store.store(Memory.user_fact("one more", "ana"))

    def test_the_maximum_is_stored_with_the_memories(self, open_store: Open) -> None:
        store = open_store(MemoryStoreConfig(max_memories=1))
        store_many(store, 1)
        again = MemoryStore(store.memory)
        again.store(Memory.user_fact("one more", "ana"))
        assert [memory.content for memory in again.recall()] == ["one more"]

    def test_the_quota_of_an_earlier_release_is_replaced(self, open_store: Open) -> None:
        store = open_store()
        store.memory.set_quota(records=4, when_full="least recent", low_water=0.25)
        again = MemoryStore(store.memory, MemoryStoreConfig(4))
        store_many(again, 6)
        assert [memory.content for memory in again.recall()] == ["fact 5", "fact 4", "fact 3", "fact 2"]

    def test_a_config_without_a_maximum_removes_it_and_no_config_leaves_it(self, open_store: Open) -> None:
        store = open_store(MemoryStoreConfig(max_memories=5))
        assert MemoryStore(store.memory).memory.execute(GetQuota()) == Quota(records=5, when_full="oldest")
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
        assert MemoryStoreConfig.default() == MemoryStoreConfig(None, None, False, 10000)
        assert MemoryStoreConfig.testing() == MemoryStoreConfig(1000, None, False, 10000)
        assert MemoryStoreConfig.production() == MemoryStoreConfig(100_000, None, True, 90_000)
        assert MemoryStoreConfig.production(50) == MemoryStoreConfig(50, None, True, 45)
        assert MemoryStoreConfig.production(1).limit == 1
        with MemoryStore.for_testing(2) as store:
            assert store.memory.execute(GetQuota()) == Quota(records=2, when_full="oldest")

    def test_a_scope_cannot_have_a_quota_of_its_own(self, open_store: Open) -> None:
        scoped = open_store().memory.scoped(user="ana")
        with pytest.raises(ScopeError):
            MemoryStore(scoped, MemoryStoreConfig(max_memories=3))
        assert MemoryStore(scoped).limit is None
        assert MemoryStore(scoped).store_all([Memory.user_fact("fact")]) == 1
        assert MemoryManager(MemoryStore(scoped)).record_conversation([{"role": "user", "content": "hi"}], "chat")
        with pytest.raises(InvalidArgumentError, match="3 components"):
            MemoryStore(scoped, MemoryStoreConfig(None, 3)).store(Memory.user_fact("fact", "ana").with_embedding([1]))

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda: MemoryStoreConfig(max_memories=0),
            lambda: MemoryStoreConfig(max_memories=True),
            lambda: MemoryStoreConfig(default_embedding_dimensions=0),
            lambda: MemoryStoreConfig(max_memories=5, enable_auto_cleanup=1),  # type: ignore[arg-type]
            lambda: MemoryStoreConfig(cleanup_threshold=0),
            lambda: MemoryStoreConfig(cleanup_threshold=None),  # type: ignore[arg-type]
            lambda: MemoryStoreConfig.production("many"),  # type: ignore[arg-type]
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
        (summary,) = store.recall(MemoryFilter.user_facts())
        assert (summary.content, summary.metadata["consolidation_method"]) == (reply, "llm_summary")

    def test_without_a_model_a_summary_is_extractive(self, store: MemoryStore) -> None:
        manager = MemoryManager(store)
        for at in range(10):
            manager.record_user_fact(f"Ana likes town number {at}.", "ana")
        assert manager.consolidate_memories(datetime(2100, 1, 1, tzinfo=UTC)).replaced == 10
        (summary,) = store.recall(MemoryFilter.user_facts())
        assert summary.metadata["consolidation_method"] == "extractive"

    @pytest.mark.parametrize("blank", ["", "   ", "\n\t"])
    def test_a_blank_text_is_not_sent_to_a_model(self, store: MemoryStore, blank: str) -> None:
        def fail(prompt: str) -> str:
            raise AssertionError(prompt)

        manager = MemoryManager(store, model=fail)
        assert manager.extract_entities(blank) == []
        with pytest.raises(recollect.errors.ModelError):
            manager.extract_entities("Ada counts.")

    def test_presets(self) -> None:
        assert MemoryManagerConfig.default() == MemoryManagerConfig(True, False, 0.5, 2000, False)
        assert MemoryManagerConfig.testing() == MemoryManagerConfig(auto_record_messages=False)
        assert MemoryManagerConfig.full_featured() == MemoryManagerConfig(True, True, 0.5, 2000, True)
        with MemoryManager.for_testing() as manager:
            assert manager.config == MemoryManagerConfig.testing()
            assert manager.store.memory.execute(GetQuota()) == Quota(records=1000, when_full="oldest")

    def test_a_manager_for_tests_can_have_a_model(self) -> None:
        with MemoryManager.for_testing(lambda prompt: "a summary") as manager:
            for at in range(10):
                manager.record_user_fact(f"fact {at}", "ana")
            (group,) = manager.consolidate(LATER).groups
            assert group.text == "a summary"


class Away:
    """A model that fails for the facts of one user."""

    def __call__(self, prompt: str) -> str:
        if "Bo likes" in prompt:
            raise ConnectionError("the model is away")
        return "a summary"


class TestConsolidation:
    """What two specs of LLM4S say (MemoryManagerConfigBinaryCompat, LLMMemoryManager), and what each setting does."""

    def test_five_settings_are_enough_and_the_sixth_is_the_default(self) -> None:
        config = MemoryManagerConfig(True, False, 0.5, 2000, True)
        assert config.consolidation_config == ConsolidationConfig.default()
        assert MemoryManagerConfig.default().consolidation_config == ConsolidationConfig.default()
        assert (config.consolidation_config.max_memories_per_group, config.consolidation_config.strict_mode) == (
            50,
            False,
        )

    def test_the_sixth_setting_can_be_passed(self) -> None:
        config = MemoryManagerConfig(True, False, 0.5, 2000, True, ConsolidationConfig(100, True))
        assert config.consolidation_config == ConsolidationConfig(max_memories_per_group=100, strict_mode=True)

    def test_the_presets_are_the_default_and_the_strict_one(self) -> None:
        assert ConsolidationConfig.default() == ConsolidationConfig(50, False)
        assert ConsolidationConfig.strict() == ConsolidationConfig(50, True)

    def test_one_summary_replaces_the_maximum_of_a_group(self, store: MemoryStore) -> None:
        for count, replaced in ((70, 70), (50, 50), (12, 12)):
            manager = MemoryManager(store, MemoryManagerConfig(consolidation_config=ConsolidationConfig(count)))
            for at in range(80):
                manager.record_user_fact(f"Ana likes town {at} of {count}.", f"ana {count}")
            (group,) = [each for each in manager.consolidate(LATER).groups if each.key == f"ana {count}"]
            assert len(group.sources) == replaced

    def test_a_group_that_cannot_be_large_enough_is_an_error(self, store: MemoryStore) -> None:
        manager = MemoryManager(store, MemoryManagerConfig(consolidation_config=ConsolidationConfig(5)))
        with pytest.raises(InvalidArgumentError, match="min_count must be at most max_memories_per_group"):
            manager.consolidate(LATER)
        assert manager.consolidate(LATER, 5).groups == ()

    @pytest.mark.parametrize(
        ("config", "strict"), [(ConsolidationConfig(), False), (ConsolidationConfig.strict(), True)]
    )
    def test_strict_mode_makes_a_summary_that_fails_an_error_and_changes_nothing(
        self, store: MemoryStore, config: ConsolidationConfig, strict: bool
    ) -> None:
        manager = MemoryManager(store, MemoryManagerConfig(consolidation_config=config), Away())
        for name in ("Ana", "Bo"):
            for at in range(10):
                manager.record_user_fact(f"{name} likes town {at}.", name)
        if strict:
            with pytest.raises(SummaryError, match="the model is away"):
                manager.consolidate(LATER)
            assert store.count() == 20
            assert manager.consolidate(LATER, strict=False).replaced == 10
        else:
            done = manager.consolidate(LATER)
            assert (done.replaced, [each.key for each in done.failed], store.count()) == (10, ["Bo"], 11)

    def test_consolidation_by_itself_has_the_same_settings(self, store: MemoryStore) -> None:
        config = MemoryManagerConfig(consolidation_enabled=True, consolidation_config=ConsolidationConfig(8))
        manager = MemoryManager(store, config)
        for at in range(61):
            manager.record_message({"role": "user", "content": f"message {at}"}, "chat")
        assert store.count(MemoryFilter.for_conversation("chat")) == 54  # eight of them are one now
        failing = MemoryManagerConfig(consolidation_enabled=True, consolidation_config=ConsolidationConfig.strict())
        strict = MemoryManager(store, failing, Away())
        for at in range(60):
            strict.record_message({"role": "user", "content": f"Bo likes town {at}"}, "other")
        with pytest.raises(SummaryError):
            strict.record_message({"role": "user", "content": "Bo likes the last town"}, "other")
        assert store.count(MemoryFilter.for_conversation("other")) == 61

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda: ConsolidationConfig(1),
            lambda: ConsolidationConfig(True),
            lambda: ConsolidationConfig(50, 1),  # type: ignore[arg-type]
            lambda: MemoryManagerConfig(consolidation_config=50),  # type: ignore[arg-type]
        ],
    )
    def test_an_invalid_setting_is_refused(self, wrong: Callable[[], object]) -> None:
        with pytest.raises(InvalidArgumentError):
            wrong()
