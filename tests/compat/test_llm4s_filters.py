"""Filters of the LLM4S layer are Python predicates on the memory, on every store."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.compat.llm4s import EntityId, Memory, MemoryFilter, MemoryId, MemoryStore, MemoryType
from recollect.errors import InvalidFilterError, InvalidRecordError, UnsupportedError
from recollect.filters import Filter

START = datetime(2026, 3, 1, tzinfo=UTC)


def at(days: int) -> datetime:
    return START + timedelta(days=days)


def memory(name: str, kind: str = "knowledge", days: int = 0, **metadata: str) -> Memory:
    return Memory(MemoryId(name), f"content of {name}", MemoryType(kind), metadata, at(days))


#: Memories that differ in everything that a filter can test.
MEMORIES = [
    memory("plain"),
    memory("turn", "conversation", 1, role="user", conversation_id="c1").with_importance(0.5),
    memory("answer", "conversation", 2, role="assistant", conversation_id="c1").with_importance(0.9),
    memory("fact", "entity", 3, entity_id="ada", entity_name="Ada", entity_type="person").with_importance(0.0),
    memory("user", "user_fact", 4, user_id="ana").with_importance(1.0),
    memory("task", "task", 5, success="true").with_importance(0.5),
    memory("failed", "task", 6, success="false", agent_id="bot"),
    memory("recipe", "Recipe", 7, source="50%_off", tag="a%b_c").with_embedding([1.0, float("nan")]),
    memory("odd", "knowledge", 8).with_metadata({"a.b": "x", "c:d": "y", "quo\"te's": "z", "": "u", "$": "v"}),
    memory("numbers", "knowledge", 9, one="1", yes="true", list="[1]", none="null", nan="NaN", big="9" * 30),
]
#: Filters with what they mean, as predicates.
CONDITIONS: list[tuple[MemoryFilter, Callable[[Memory], bool]]] = [
    (MemoryFilter.ALL, lambda m: True),
    (MemoryFilter.NONE, lambda m: False),
    (MemoryFilter.by_type("TASK"), lambda m: m.memory_type == "task"),
    (MemoryFilter.by_types(["task", "recipe"]), lambda m: m.memory_type in ("task", "recipe")),
    (MemoryFilter.by_types([]), lambda m: False),
    (MemoryFilter.min_importance(0.5), lambda m: m.importance is not None and m.importance >= 0.5),
    (MemoryFilter.min_importance(0.0), lambda m: m.importance is not None),
    (MemoryFilter.content_contains("CONTENT OF T"), lambda m: "content of t" in m.content.lower()),
    (MemoryFilter.content_contains("OF", True), lambda m: "OF" in m.content),
    (MemoryFilter.content_contains("%"), lambda m: "%" in m.content),
    (MemoryFilter.after(at(4)), lambda m: m.timestamp is not None and m.timestamp >= at(4)),
    (MemoryFilter.before(at(4)), lambda m: m.timestamp is not None and m.timestamp <= at(4)),
    (MemoryFilter.between(at(2), at(4)), lambda m: m.timestamp is not None and at(2) <= m.timestamp <= at(4)),
    (MemoryFilter.by_time_range(), lambda m: True),
    (MemoryFilter.custom(lambda m: len(m.id) > 4), lambda m: len(m.id) > 4),
    (MemoryFilter.custom(lambda m: m.is_embedded), lambda m: m.is_embedded),
    *[
        (MemoryFilter.by_metadata(key, value), lambda m, key=key, value=value: m.metadata.get(key) == value)
        for each in MEMORIES
        for key, value in [
            *each.metadata.items(),
            ("source", "50__off"),
            ("tag", "a__c"),
            ("source", ""),
            ("one", "1.0"),
        ]
    ],
    *[
        (MemoryFilter.has_metadata(key), lambda m, key=key: key in m.metadata)
        for key in ("role", "source", "success", "a.b", "", "missing", "recollect.embedding")
    ],
    *[
        (
            MemoryFilter.metadata_contains(key, part),
            lambda m, key=key, part=part: key in m.metadata and part in m.metadata[key],
        )
        for key, part in [("source", "%_"), ("tag", "%"), ("tag", "B"), ("success", "u"), ("missing", ""), ("tag", "")]
    ],
]
TREES = st.recursive(
    st.sampled_from(CONDITIONS),
    lambda inner: st.one_of(
        inner.map(lambda one: (~one[0], lambda m: not one[1](m))),
        st.tuples(inner, inner).map(lambda two: (two[0][0] & two[1][0], lambda m: two[0][1](m) and two[1][1](m))),
        st.tuples(inner, inner).map(lambda two: (two[0][0] | two[1][0], lambda m: two[0][1](m) or two[1][1](m))),
    ),
    max_leaves=5,
)


@pytest.fixture
def filled(store: MemoryStore) -> MemoryStore:
    store.store_all(MEMORIES)
    return store


def found(store: MemoryStore, where: Filter) -> set[str]:
    ids: set[str] = {memory.id for memory in store.recall(where)}
    assert store.count(where) == len(ids)
    return ids


def sendable(where: Filter) -> bool:
    """Return whether a filter has a JSON form, so that it can be sent to another process."""
    try:
        where.to_json()
    except UnsupportedError:
        return False
    return True


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(number, marks=() if sendable(where) else pytest.mark.in_process)
        for number, (where, _) in enumerate(CONDITIONS)
    ],
)
def test_a_filter_and_its_negation_match_what_the_predicate_says(filled: MemoryStore, number: int) -> None:
    where, predicate = CONDITIONS[number]
    assert found(filled, where) == {memory.id for memory in MEMORIES if predicate(memory)}
    assert found(filled, ~where) == {memory.id for memory in MEMORIES if not predicate(memory)}


@pytest.mark.parametrize("number", range(len(CONDITIONS)))
def test_a_filter_matches_memories_without_a_store(number: int) -> None:
    where, predicate = CONDITIONS[number]
    assert [where.matches(memory) for memory in MEMORIES] == [predicate(memory) for memory in MEMORIES]
    assert [(~where).matches(memory) for memory in MEMORIES] == [not predicate(memory) for memory in MEMORIES]


@given(tree=TREES)
def test_a_combined_filter_matches_memories_without_a_store(
    tree: tuple[MemoryFilter, Callable[[Memory], bool]],
) -> None:
    where, predicate = tree
    assert [where.matches(memory) for memory in MEMORIES] == [predicate(memory) for memory in MEMORIES]


def test_the_short_forms_match_memories_without_a_store() -> None:
    fact = Memory.for_entity(EntityId("ada"), "Ada", "wrote a program")
    turn = Memory.from_conversation("hi", "user", "c1")
    assert MemoryFilter.for_entity(EntityId("ada")).matches(fact)
    assert MemoryFilter.for_conversation("c1").matches(turn)
    assert not MemoryFilter.for_conversation("c2").matches(turn)
    both = MemoryFilter.all_of(MemoryFilter.entities(), MemoryFilter.important(0.5))
    assert [both.matches(each) for each in (fact, turn)] == [True, False]
    either = MemoryFilter.any_of(MemoryFilter.by_type("entity"), MemoryFilter.by_metadata("role", "user"))
    assert [either.matches(each) for each in (fact, turn)] == [True, True]
    assert MemoryFilter.all_of().matches(fact)
    assert not MemoryFilter.any_of().matches(fact)


def test_a_filter_of_recollect_can_be_a_part_that_matches_memories() -> None:
    where = MemoryFilter.entities() & ~recollect.filters.entity("bo")
    assert where.matches(Memory.for_entity("ada", "Ada", "wrote a program"))
    assert not where.matches(Memory.for_entity("bo", "Bo", "wrote a program"))


def test_a_memory_that_no_store_accepts_is_no_match_but_an_error() -> None:
    with pytest.raises(InvalidRecordError, match="content"):
        MemoryFilter.ALL.matches(Memory(MemoryId("a"), "", MemoryType.TASK))


def test_a_long_chain_of_filters_is_no_deep_one(filled: MemoryStore) -> None:
    every, none = MemoryFilter.ALL, MemoryFilter.NONE
    for _ in range(100):
        every, none = every & MemoryFilter.by_type("task"), none | MemoryFilter.by_type("task")
    assert found(filled, every) == found(filled, none) == {"task", "failed"}


def test_a_filter_is_sent_and_copied_as_one_of_recollect() -> None:
    where = MemoryFilter.by_type("task")
    assert recollect.filters.from_json(where.to_json()) == recollect.filters.kind("task")
    assert pickle.loads(pickle.dumps(where)) == where


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    path = ":memory:" if request.param == "memory" else tmp_path_factory.mktemp("filters") / "agent.db"
    with MemoryStore.open(path, "none") as store:
        store.store_all(MEMORIES)
        yield store


@pytest.mark.in_process
@given(tree=TREES)
def test_combined_filters_match_what_the_predicate_says(
    shared: MemoryStore, tree: tuple[Filter, Callable[[Memory], bool]]
) -> None:
    where, predicate = tree
    assert found(shared, where) == {memory.id for memory in MEMORIES if predicate(memory)}
    hits = shared.search("content", 20, where)
    assert {hit.memory.id for hit in hits} == {memory.id for memory in MEMORIES if predicate(memory)}


class TestFaults:
    @pytest.mark.in_process
    def test_deleting_by_a_custom_predicate_deletes_only_what_it_matches(self, filled: MemoryStore) -> None:
        assert filled.delete_matching(MemoryFilter.custom(lambda memory: memory.id == "plain")) == 1
        assert filled.count() == len(MEMORIES) - 1

    def test_not_minimum_importance_has_the_memories_without_importance(self, filled: MemoryStore) -> None:
        assert {"plain", "failed"} <= found(filled, ~MemoryFilter.important(0.9))

    def test_wildcards_of_like_are_ordinary_characters(self, filled: MemoryStore) -> None:
        assert found(filled, MemoryFilter.by_metadata("source", "50%_off")) == {"recipe"}
        assert found(filled, MemoryFilter.by_metadata("source", "50%")) == set()
        assert found(filled, MemoryFilter.content_contains("_")) == set()

    def test_not_everything_is_nothing(self, filled: MemoryStore) -> None:
        assert found(filled, ~MemoryFilter.ALL) == set()
        assert filled.delete_matching(~MemoryFilter.ALL) == 0
        assert found(filled, ~MemoryFilter.NONE) == {memory.id for memory in MEMORIES}

    @pytest.mark.parametrize("key", ["a.b", "c:d", "quo\"te's", "", "$"])
    def test_any_key_of_metadata_is_taken_literally(self, filled: MemoryStore, key: str) -> None:
        assert found(filled, MemoryFilter.has_metadata(key)) == {"odd"}
        odd = filled.get("odd")
        assert odd is not None
        assert found(filled, MemoryFilter.by_metadata(key, odd.metadata[key])) == {"odd"}


@pytest.mark.in_process
def test_no_filters_joined_by_and_match_everything_and_joined_by_or_nothing(filled: MemoryStore) -> None:
    assert filled.count(MemoryFilter.all_of()) == len(MEMORIES)
    assert filled.count(MemoryFilter.any_of()) == 0
    both = (MemoryFilter.tasks(), MemoryFilter.by_metadata("success", "true"))
    assert found(filled, MemoryFilter.all_of(*both)) == {"task"}
    assert found(filled, MemoryFilter.any_of(*both)) == {"task", "failed"}


def test_the_short_forms_are_there(filled: MemoryStore) -> None:
    assert found(filled, MemoryFilter.conversations()) == {"turn", "answer"}
    assert found(filled, MemoryFilter.entities()) == found(filled, MemoryFilter.for_entity(EntityId("ada"))) == {"fact"}
    assert found(filled, MemoryFilter.knowledge()) == {"plain", "odd", "numbers"}
    assert found(filled, MemoryFilter.user_facts()) == {"user"}
    assert found(filled, MemoryFilter.tasks()) == {"task", "failed"}
    assert found(filled, MemoryFilter.for_conversation("c1")) == {"turn", "answer"}
    assert found(filled, MemoryFilter.important()) == {"turn", "answer", "user", "task"}


@pytest.mark.in_process
def test_values_that_are_no_texts_in_the_record_are_compared_by_their_json(store: MemoryStore) -> None:
    written: dict[str, dict[str, Any]] = {
        "bool": {"v": True},
        "one": {"v": 1},
        "text": {"v": "true"},
        "list": {"v": [1, "a"]},
        "null": {"v": None},
    }
    for name, metadata in written.items():
        store.memory.remember(f"text of {name}", id=name, metadata=metadata)
    for value, expected in {"true": {"bool", "text"}, "1": {"one"}, '[1, "a"]': {"list"}, "null": {"null"}}.items():
        assert found(store, MemoryFilter.by_metadata("v", value)) == expected
        assert {each.id for each in store.recall() if each.metadata["v"] == value} == expected
    assert found(store, MemoryFilter.metadata_contains("v", "a")) == {"list"}


def test_filters_are_filters_of_recollect(filled: MemoryStore) -> None:
    where = MemoryFilter.user_facts() | recollect.filters.entity("ada")
    assert {record.id for record in filled.memory.find(where)} == {"user", "fact"}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: MemoryFilter.custom("x"),  # type: ignore[arg-type]
        lambda: MemoryFilter.by_metadata("a", 1),  # type: ignore[arg-type]
        lambda: MemoryFilter.metadata_contains("a", None),  # type: ignore[arg-type]
        lambda: MemoryFilter.after("soon"),
    ],
)
def test_a_wrong_argument_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(InvalidFilterError):
        wrong()


@pytest.mark.parametrize("name", ["after", "before"])
def test_an_error_of_a_time_names_the_test(name: str) -> None:
    with pytest.raises(InvalidFilterError, match=f"{name} "):
        getattr(MemoryFilter, name)(datetime(2026, 3, 1))


def test_types_are_a_list_and_not_the_letters_of_a_name() -> None:
    with pytest.raises(InvalidFilterError, match="list of types"):
        MemoryFilter.by_types("task")
