"""The design of typed memory, line by line, through the names of LLM4S.

Lines that tests of `tests/compat` have in the same words are not repeated here: the settings and what a clean-up
leaves, filters on memories, tasks that are done twice, custom types, ids that cannot be mixed up, the names of the
stores, of the services and of the manager's calls, and the method of a consolidation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.paths import ROOT

from recollect.compat.llm4s import (
    InMemoryStore,
    Memory,
    MemoryFilter,
    MemoryId,
    MemoryManager,
    MemoryStore,
    MemoryType,
    SQLiteMemoryStore,
    VectorMemoryStore,
    VectorOps,
)
from recollect.ledger.commits import Branch
from recollect.stores.memory import MemoryStore as StoreInMemory
from recollect.testing import memory_on

PAGE = (ROOT / "docs" / "llm4s.md").read_text("utf-8")


class OwnBackend(StoreInMemory):
    """A store of a user's own, as `recollect.testing.StoreContract` accepts it."""

    commits = 0

    def write(self, branch: Branch, *, shared: bool = False, ids: Sequence[str] = ()) -> Any:
        self.commits += 1
        return super().write(branch, shared=shared, ids=ids)


BACKENDS: dict[str, Callable[[Path], MemoryStore]] = {
    "in memory": lambda _folder: InMemoryStore(),
    "sqlite": lambda folder: SQLiteMemoryStore(folder / "agent.db"),
    "vectors": lambda folder: VectorMemoryStore(folder / "vectors.db", "hashed"),
    "own": lambda _folder: MemoryStore(memory_on(OwnBackend())),
}


@pytest.mark.parametrize("name", BACKENDS)
def test_a_manager_does_the_same_on_every_backend(name: str, tmp_path: Path) -> None:
    with MemoryManager(BACKENDS[name](tmp_path)) as manager:
        manager.record_message({"role": "user", "content": "I moved to Oslo."}, "chat-1")
        manager.record_user_fact("prefers window seats", "ana", importance=0.9)
        manager.record_task("book a seat", "12A, window", True)
        assert manager.get_user_context("ana") == "Known facts about the user:\n- prefers window seats"
        assert manager.get_conversation_context("chat-1") == "Previous conversation:\n[user]: I moved to Oslo."
        found = manager.store.recall(MemoryFilter.user_facts() & MemoryFilter.important(0.8))
        assert [memory.content for memory in found] == ["prefers window seats"]
        assert manager.store.search("which window seats?")[0].memory.content.endswith(("window seats", "window"))
        assert manager.stats().total_memories == 3
        assert manager.store.delete_matching(MemoryFilter.tasks()) == 1
        assert manager.store.count() == 2


def test_a_backend_of_ones_own_is_the_one_that_is_written() -> None:
    backend = OwnBackend()
    store = MemoryStore(memory_on(backend))
    before = backend.commits
    store.store(Memory.user_fact("prefers tea", "ana"))
    assert backend.commits == before + 1


def test_a_memory_never_changes_and_a_store_changes_in_place() -> None:
    memory = Memory(MemoryId("m"), "prefers tea", MemoryType.USER_FACT)
    with pytest.raises(FrozenInstanceError):
        memory.content = "prefers coffee"  # type: ignore[misc]
    with InMemoryStore() as store:
        assert store.store(memory).content == "prefers tea"
        store.store(memory.with_importance(1.0))
        assert (memory.importance, store.recall()[0].importance) == (None, 1.0)
    assert "Stores change in place" in PAGE


def test_a_model_states_the_importance_of_the_facts_that_it_extracts_and_of_nothing_else() -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return '[{"entity_name": "Ada", "entity_type": "person", "fact": "Ada counts", "importance": 0.9}]'

    with MemoryManager.for_testing(model) as manager:
        message = manager.record_message({"role": "user", "content": "The deadline is critical."}, "chat")
        fact = manager.record_user_fact("is allergic to nuts", "ana")
        assert (message.importance, fact.importance, asked) == (0.5, 0.5, [])
        (extracted,) = manager.extract_entities("Ada counts.", "chat")
        assert extracted.importance is not None
        assert extracted.importance > 0.5
        assert len(asked) == 1
    assert "A model states the importance of the facts that it extracts" in PAGE


def test_a_cosine_is_that_of_the_design() -> None:
    assert VectorOps.cosine_similarity([1.0, 0.0], [1.0, 0.0]) == 1.0
    assert VectorOps.cosine_similarity([1.0, 0.0], [0.0, 2.0]) == 0.0
    assert VectorOps.cosine_similarity([1.0, 0.0], [-3.0, 0.0]) == -1.0


def test_a_program_in_the_names_of_the_design_runs() -> None:
    """The usage examples of the design, with the casing of Python."""
    with MemoryManager.with_store(InMemoryStore.empty()) as manager:
        for at in range(12):
            manager.record_user_fact(f"The user likes town {at}.", "user-1")
        assert manager.get_relevant_context("Which towns does the user like?", 500).startswith("# Retrieved Context")
        assert manager.get_user_context("user-1").count("\n- ") == 12
        assert manager.consolidate_memories(datetime(2100, 1, 1, tzinfo=UTC)).replaced == 12
        assert manager.stats().total_memories == 1
