"""The value types of the LLM4S layer."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from recollect.compat import llm4s
from recollect.compat.llm4s import (
    EntityId,
    Memory,
    MemoryFilter,
    MemoryId,
    MemoryManager,
    MemoryStore,
    MemoryType,
    ScoredMemory,
    VectorOps,
)
from recollect.errors import InvalidArgumentError, InvalidRecordError
from recollect.records.factories import DEFAULT_IMPORTANCE


def test_the_public_names_are_these_and_each_is_there() -> None:
    assert llm4s.__all__ == sorted(llm4s.__all__)
    expected = {
        "ConsolidationConfig EmbeddingService EntityId InMemoryStore LLMEmbeddingService Memory MemoryFilter MemoryId "
        "MemoryManager MemoryManagerConfig MemoryStats MemoryStore MemoryStoreConfig MemoryType MockEmbeddingService "
        "SQLiteMemoryStore ScoredMemory SimpleMemoryManager VectorMemoryStore VectorOps VectorStoreStats"
    }
    assert set(llm4s.__all__) == set(" ".join(expected).split())
    for name in llm4s.__all__:
        assert getattr(llm4s, name).__doc__


class TestIds:
    def test_an_id_of_an_entity_is_made_of_its_name_without_trimming(self) -> None:
        assert EntityId.from_name("  extra   spaces  ") == "_extra_spaces_"
        assert EntityId.from_name("Ada Lovelace") == "ada_lovelace"

    def test_ids_of_memories_and_of_entities_are_distinct_types(self) -> None:
        memory, entity = MemoryId("x"), EntityId("x")
        assert memory != entity
        assert entity != memory
        assert not memory == entity  # noqa: SIM201 - the other operator
        assert not entity == memory  # noqa: SIM201 - the other operator
        assert not isinstance(entity, str)
        assert memory == "x"
        assert entity == EntityId("x") == "x"
        assert entity != EntityId("y")
        assert len({entity, EntityId("x")}) == 1
        assert (memory.value, entity.value, str(entity)) == ("x", "x", "x")

    @pytest.mark.parametrize("wrong", ["", None, 7, EntityId("x")])
    def test_an_id_of_an_entity_is_a_text(self, wrong: object) -> None:
        with pytest.raises(InvalidArgumentError, match="value"):
            EntityId(wrong)  # type: ignore[arg-type]

    # mypy reports an unused "type: ignore", so these comments show that it objects.

    def test_the_id_of_an_entity_is_refused_for_that_of_a_memory(self, store: MemoryStore) -> None:
        entity = EntityId("x")
        store.store(Memory(MemoryId("x"), "text", MemoryType.TASK))
        calls: list[Callable[[], object]] = [
            lambda: store.get(entity),  # type: ignore[arg-type]
            lambda: store.exists(entity),  # type: ignore[arg-type]
            lambda: store.delete(entity),  # type: ignore[arg-type]
            lambda: store.update(entity, lambda each: each),  # type: ignore[arg-type]
        ]
        for call in calls:
            with pytest.raises(InvalidArgumentError, match=r"id .*must be the id of a memory"):
                call()
        with pytest.raises(InvalidRecordError, match="id"):
            Memory(entity, "text", MemoryType.TASK)  # type: ignore[arg-type]
        found = store.get("x")
        assert found is not None
        assert found == store.get(MemoryId("x"))

    def test_the_id_of_a_memory_is_refused_for_that_of_an_entity(self, store: MemoryStore) -> None:
        manager, memory = MemoryManager(store), MemoryId("x")
        calls: list[Callable[[], object]] = [
            lambda: store.entity_memories(memory),
            lambda: manager.entity_context(memory),
            lambda: manager.record_entity_fact(memory, "X", "fact"),
            lambda: MemoryFilter.by_entity(memory),
            lambda: MemoryFilter.for_entity(memory),
            lambda: Memory.for_entity(memory, "X", "fact"),
        ]
        for call in calls:
            with pytest.raises(InvalidArgumentError, match=r"entity_id .*must be the id of an entity"):
                call()

    def test_the_id_of_an_entity_may_be_a_text(self, store: MemoryStore) -> None:
        manager = MemoryManager(store)
        facts = [manager.record_entity_fact(EntityId("x"), "X", "one"), manager.record_entity_fact("x", "X", "two")]
        assert store.entity_memories("x") == store.entity_memories(EntityId("x")) == facts[::-1]
        assert manager.entity_context(EntityId("x")) == "Known facts about X:\n- two\n- one"
        assert store.recall(MemoryFilter.by_entity(EntityId("x"))) == facts[::-1]
        assert facts[0].metadata["entity_id"] == "x"

    def test_generated_ids_differ(self) -> None:
        assert len({MemoryId.generate() for _ in range(100)}) == 100
        assert len({EntityId.generate() for _ in range(100)}) == 100

    @pytest.mark.parametrize("wrong", ["", "a\nb", "x" * 256, 7])
    def test_an_id_that_no_record_can_have_is_refused(self, wrong: object) -> None:
        with pytest.raises(InvalidRecordError):
            Memory(wrong, "text", MemoryType.TASK)  # type: ignore[arg-type]


class TestTypes:
    def test_the_name_of_a_type_is_read_in_any_case(self) -> None:
        assert MemoryType("USER_FACT") == MemoryType.USER_FACT
        assert MemoryType.from_string("Conversation") is not None
        assert {each.name for each in MemoryType.BUILT_IN} == {
            *("conversation", "entity", "knowledge", "user_fact", "task")
        }

    def test_an_unknown_name_is_a_custom_type(self) -> None:
        recipe = MemoryType("Recipe")
        assert (recipe.name, recipe.is_custom, MemoryType.TASK.is_custom) == ("Recipe", True, False)

    def test_a_custom_type_stays_as_it_was_written_and_is_compared_without_case(self) -> None:
        special = MemoryType("SpecialType")
        assert (special.name, str(special), f"{special}", special.kind) == (*["SpecialType"] * 3, "specialtype")
        assert MemoryType("USER_FACT").name == "user_fact"
        assert special == MemoryType("specialTYPE") == "specialtype" == special
        assert special == "SPECIALTYPE"
        assert not special != MemoryType("specialTYPE")  # noqa: SIM202 - the other operator
        assert special != MemoryType("Special")
        assert {special: 1}[MemoryType("SPECIALtype")] == 1
        again = pickle.loads(pickle.dumps(special))
        assert (again.name, again.kind, MemoryType(again)) == ("SpecialType", "specialtype", special)

    def test_a_name_that_no_kind_can_have_is_refused(self) -> None:
        with pytest.raises(InvalidRecordError):
            MemoryType("")


class TestMemory:
    def test_a_memory_has_defaults(self) -> None:
        before = datetime.now(UTC)
        memory = Memory(MemoryId("a"), "text", MemoryType.KNOWLEDGE)
        assert (memory.metadata, memory.importance, memory.embedding) == ({}, None, None)
        assert memory.timestamp is not None
        assert before <= memory.timestamp <= datetime.now(UTC)

    def test_importance_is_clamped_by_the_builder_and_checked_by_the_constructor(self) -> None:
        memory = Memory.user_fact("fact")
        assert (memory.with_importance(-0.5).importance, memory.with_importance(1.5).importance) == (0.0, 1.0)
        with pytest.raises(InvalidRecordError):
            memory.with_importance(float("nan"))
        with pytest.raises(InvalidRecordError):
            dataclasses.replace(memory, importance=1.5)

    def test_factories_set_the_metadata_of_the_specification(self) -> None:
        turn = Memory.from_conversation("hi", "user", "c1")
        assert (turn.memory_type, turn.metadata) == ("conversation", {"role": "user", "conversation_id": "c1"})
        assert Memory.from_conversation("hi", "user").metadata == {"role": "user"}
        fact = Memory.for_entity(EntityId("ada"), "Ada", "wrote a program")
        assert fact.metadata == {"entity_id": "ada", "entity_name": "Ada", "entity_type": "unknown"}
        assert Memory.for_entity(EntityId("ada"), "Ada", "x", "person").metadata["entity_type"] == "person"
        chunk = Memory.from_knowledge("text", "a.md", 3)
        assert (chunk.metadata, chunk.source) == ({"source": "a.md", "chunk_index": "3"}, "a.md")
        assert Memory.from_knowledge("text", "a.md").metadata == {"source": "a.md"}
        assert Memory.user_fact("fact", "ana").metadata == {"user_id": "ana"}
        assert Memory.user_fact("fact").metadata == {}
        task = Memory.from_task("book", "12A", True)
        assert (task.content, task.metadata) == ("Task: book\nOutcome: 12A", {"success": "true"})

    def test_the_default_importance_is_that_of_messages_facts_and_tasks_not_of_knowledge(self) -> None:
        with_importance = [
            Memory.from_conversation("hi", "user"),
            Memory.for_entity("ada", "Ada", "fact"),
            Memory.user_fact("fact"),
            Memory.from_task("a", "b", False),
        ]
        assert [memory.importance for memory in with_importance] == [DEFAULT_IMPORTANCE] * 4
        assert DEFAULT_IMPORTANCE == 0.5
        assert Memory.from_knowledge("text", "a.md").importance is None

    def test_builders_return_copies(self) -> None:
        memory = Memory.user_fact("fact", "ana")
        other = memory.with_metadata("a", "1").with_metadata({"b": "2"})
        assert (memory.get_metadata("a"), other.get_metadata("a"), other.get_metadata("b")) == (None, "1", "2")
        assert (memory.is_embedded, memory.with_embedding([1]).is_embedded) == (False, True)
        assert Memory.from_conversation("hi", "user", "c").conversation_id == "c"
        assert memory.with_metadata("agent_id", "bot").agent_id == "bot"

    def test_a_vector_is_rounded_to_float32(self) -> None:
        vector = Memory.user_fact("fact").with_embedding([0.1, 1e300]).embedding
        assert vector == (0.10000000149011612, float("inf"))

    @pytest.mark.parametrize("wrong", [[], [[1.0]], ["1.5"], "abc", 3.0, [None], [True], [[1.0], [1.0, 2.0]]])
    def test_a_vector_that_is_no_list_of_numbers_is_refused(self, wrong: object) -> None:
        with pytest.raises(InvalidRecordError, match="embedding"):
            Memory.user_fact("fact").with_embedding(wrong)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"metadata": {"a": 1}},
            {"metadata": [("a", "1")]},
            {"content": b"bytes"},
            {"timestamp": datetime(2026, 1, 1)},
            {"importance": "high"},
        ],
    )
    def test_an_invalid_value_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidRecordError):
            dataclasses.replace(Memory.user_fact("fact"), **wrong)

    def test_equal_memories_are_equal_and_have_one_hash(self) -> None:
        memory = Memory.user_fact("fact", "ana").with_embedding([1, 2])
        assert len({memory, dataclasses.replace(memory)}) == 1
        assert memory != memory.with_importance(0.9)

    def test_a_scored_memory_has_no_note_by_default(self) -> None:
        assert ScoredMemory(Memory.user_fact("fact"), 0.5).note == ""


class TestVectorOps:
    def test_the_cosine_is_0_for_what_has_no_direction_and_lengths_must_be_equal(self) -> None:
        assert VectorOps.cosine_similarity([3, 4], [6, 8]) == 1.0
        for a, b in (([], []), ([0.0, 0.0], [1.0, 2.0]), ([float("nan"), 1.0], [1.0, 1.0])):
            assert VectorOps.cosine_similarity(a, b) == 0.0
        with pytest.raises(InvalidArgumentError):
            VectorOps.cosine_similarity([1.0], [1.0, 2.0])

    def test_distance_and_normalisation(self) -> None:
        assert VectorOps.euclidean_distance([0, 0], [3, 4]) == 5.0
        assert VectorOps.normalize([3.0, 4.0]) == [0.6, 0.8]
        assert VectorOps.normalize([0.0, 0.0]) == [0.0, 0.0]

    def test_the_nearest_candidates_come_first_and_unusable_ones_are_passed_over(self) -> None:
        candidates: list[tuple[list[float], str]] = [
            ([0, 1], "up"),
            ([2, 0], "right"),
            ([1, 2, 3], "long"),
            ([float("nan"), 0], "nan"),
            ([-1, 0], "l"),
        ]
        assert VectorOps.top_k_by_similarity([1, 0], candidates, 2) == [("right", 1.0), ("up", 0.0)]


def test_an_importance_beyond_a_float_is_clamped() -> None:
    assert Memory.user_fact("x").with_importance(10**400).importance == 1.0
