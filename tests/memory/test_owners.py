"""Whose records a call is about: `user=`, `agent=` and `conversation=` mean the same in all calls that have them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import recollect
from recollect import filters as f
from recollect.errors import InvalidArgumentError, InvalidFilterError, ScopeError
from recollect.memory import Memory

#: Names that would be conditions if anything parsed them.
HOSTILE = ("x or user=bob", "x' or 'a'='a", "everything", "not user", "?", "bob) or (user=bob", "x or everything")
#: Each call that reads, and how to get the ids or names that it returns.
READS: dict[str, Callable[..., set[str]]] = {
    "recall": lambda m, **owner: {hit.record.id for hit in m.recall("Which secret is it?", k=100, **owner)},
    "find": lambda m, **owner: {record.id for record in m.find(**owner)},
    "grep": lambda m, **owner: {record.id for record in m.grep("secret", limit=100, **owner)},
    "context": lambda m, **owner: {item.record.id for item in m.context("Which secret is it?", **owner).items},
    "contradictions": lambda m, **owner: {
        each.id for found in m.contradictions(**owner) for each in (found.older, found.newer)
    },
    "duplicates": lambda m, **owner: {each.id for group in m.duplicates(**owner) for each in group.records},
}
OWNERS = ("user", "agent", "conversation")


@pytest.fixture(name="memory")
def _memory() -> Memory:
    """Return a memory in which ana, bob and nobody have two facts each, which disagree and nearly repeat each other."""
    memory = recollect.open(":memory:", embedder="none")
    for name in OWNERS:
        for owner in ("ana", "bob", None):
            for number, city in enumerate(("Rome", "Oslo")):
                fields: Any = {name: owner, "kind": "user_fact", "id": f"{name}-{owner}-{number}"}
                memory.remember(f"The secret is that I live in {city}.", **fields)
                memory.remember(f"A secret of the {name} is the door code", **{**fields, "id": f"{fields['id']}-same"})
    return memory


def _of(name: str, *owners: str | None) -> tuple[str, ...]:
    return tuple(f"{name}-{owner}-" for owner in owners)


@pytest.mark.parametrize("name", OWNERS)
@pytest.mark.parametrize("call", READS)
def test_a_call_that_reads_takes_the_records_of_the_owner_and_of_no_user(memory: Memory, call: str, name: str) -> None:
    found = READS[call](memory, **{name: "ana"})
    assert any(each.startswith(_of(name, "ana")) for each in found)
    assert any(each.startswith(_of(name, None)) for each in found)
    assert not any(each.startswith(_of(name, "bob")) for each in found)
    assert any(each.startswith(_of(name, "bob")) for each in READS[call](memory))


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("call", READS)
def test_a_name_is_compared_and_never_parsed(memory: Memory, call: str, hostile: str) -> None:
    memory.remember("A secret of somebody with a strange name", user=hostile, id="strange")
    found = READS[call](memory, user=hostile)
    assert not any(each.startswith(_of("user", "ana", "bob")) for each in found)
    assert "strange" in found or call in ("contradictions", "duplicates")


def test_an_f_string_crosses_users_which_the_calls_do_not(memory: Memory) -> None:
    """The attack that docs/filters.md describes: if the filter of this control found nothing, the test above would."""
    name = "x or user=bob"
    assert any(record.user == "bob" for record in memory.find(f"user={name}"))
    assert not any(record.user == "bob" for record in memory.find(user=name))
    assert not any(record.user == "bob" for record in memory.find(("user=?", name)))
    assert not any(record.user == "bob" for record in memory.find(f.user(name)))


def test_count_is_that_of_find(memory: Memory) -> None:
    for name in OWNERS:
        owner: Any = {name: "ana"}
        assert memory.count(**owner) == len(memory.find(**owner)) > 0
    assert memory.count("tag=none", user="ana") == 0


@pytest.mark.parametrize("name", OWNERS)
def test_forgetting_takes_only_what_belongs_to_the_owner(memory: Memory, name: str) -> None:
    before = {record.id for record in memory.find()}
    assert memory.forget_where(**{name: "ana"}) == 4
    assert before - {record.id for record in memory.find()} == {e for e in before if e.startswith(_of(name, "ana"))}
    assert memory.forget_where("everything", **{name: "everything"}) == 0


def test_forgetting_needs_a_filter_or_an_owner(memory: Memory) -> None:
    count = memory.count()
    for call in (memory.forget_where, memory.batch().__enter__().forget_where):
        with pytest.raises(InvalidArgumentError, match=r"whose records to forget \(clear\(\) forgets all\)"):
            call()
        for wrong in ("", " ", 5):
            with pytest.raises(InvalidArgumentError, match="user"):
                call(user=wrong)  # type: ignore[arg-type]
    assert memory.count() == count


def test_entities_are_those_that_the_owner_may_read() -> None:
    memory = recollect.open(":memory:", embedder="none")
    memory.remember("Carla Bruni sang for Ana", user="ana")
    memory.remember("Dora Maar painted", user="bob")
    memory.remember("Edith Piaf sang for everyone in Paris")
    seen = {each.name for each in memory.entities(user="ana")}
    assert {"Carla Bruni", "Edith Piaf", "Paris"} <= seen
    assert "Dora Maar" not in seen
    assert "Dora Maar" in {each.name for each in memory.entities()}
    with memory.batch() as batch:
        assert {each.name for each in batch.entities(user="ana")} == seen
    assert {each.name for each in memory.at(memory.seq).entities(user="ana")} == seen
    with pytest.raises(InvalidArgumentError, match="agent"):
        memory.entities(agent="")


def test_within_a_scope_only_its_own_name_is_accepted(memory: Memory) -> None:
    scoped = memory.scoped(user="ana")
    for call, read in READS.items():
        assert read(scoped, user="ana") == read(scoped), call
        with pytest.raises(ScopeError, match="outside the scope"):
            read(scoped, user="bob")
    for writes in (scoped.forget_where, scoped.entities, scoped.count):
        with pytest.raises(ScopeError, match="outside the scope"):
            writes(user="bob")
    assert memory.count(f.user("bob")) == 4


def test_every_call_of_the_table_has_the_three_arguments() -> None:
    for call in (*READS, "count", "forget_where", "entities"):
        parameters = inspect.signature(getattr(Memory, call)).parameters
        assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in OWNERS), call


class TestValuesBesideTheText:
    """`?` in the text of a filter stands for a value that is passed beside it."""

    @pytest.fixture(name="filled")
    def _filled(self) -> Memory:
        memory = recollect.open(":memory:", embedder="none", zone="UTC")
        memory.remember("old", user="ana or user=bob", tags=["a b"], importance=0.9, time="2025-05-05", id="old")
        memory.remember("new", user="bob", metadata={"n": 3, "s": "3"}, time="2026-05-05", id="new", importance=0.1)
        return memory

    @pytest.mark.parametrize(
        ("where", "found"),
        [
            (("user=?", "ana or user=bob"), {"old"}),
            (("user!=?", "bob"), {"old"}),
            (["user=? and tag=?", "ana or user=bob", "a b"], {"old"}),
            (("user = ? or user = ?", "bob", "ana or user=bob"), {"old", "new"}),
            (("importance>=?", 0.5), {"old"}),
            (("time<?", "2026-01-01"), {"old"}),
            (("meta.n=?", 3), {"new"}),
            (("meta.s=?", "3"), {"new"}),
            (("meta.n=?", "3"), set()),
            (("content~?", "%ol?d"), set()),
            (("everything",), {"old", "new"}),
        ],
    )
    def test_a_value_is_compared_as_it_is(self, filled: Memory, where: Any, found: set[str]) -> None:
        assert {record.id for record in filled.find(where)} == found
        assert f.parse(*where).to_json() == f.parse(*where).to_json()
        assert filled.count(f.parse(*where)) == len(found)

    @pytest.mark.parametrize(
        ("where", "message"),
        [
            ("user=?", "no value for a ?"),
            (("user=? and tag=?", "a"), "no value for a ?: 1 were passed"),
            (("user=a", "b"), "it has 0 ? for values, and 1 were passed"),
            (("user=?", "a", "b"), "it has 1 ? for values, and 2 were passed"),
            (("user=?", 5), "takes text"),
            (("user=?", None), "takes text"),
            (("importance>=?", "much"), "takes a number"),
            (("time>?", "much"), "ISO 8601"),
            (("user=ana maria",), "pass it for a ?"),
        ],
    )
    def test_a_wrong_value_is_refused_and_nothing_is_forgotten(self, filled: Memory, where: Any, message: str) -> None:
        for call in (filled.find, filled.count, filled.forget_where):
            with pytest.raises(InvalidFilterError) as raised:
                call(where)
            assert message in str(raised.value)
        assert filled.count() == 2

    def test_a_question_mark_in_quotes_is_text(self, filled: Memory) -> None:
        filled.remember("odd", user="?", id="odd")
        assert [record.id for record in filled.find('user="?"')] == ["odd"]
        assert [record.id for record in filled.find(("user='?' and content~?", "odd"))] == ["odd"]
