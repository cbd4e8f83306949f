"""Records that were stated not to be the same: `distinguish`."""

from __future__ import annotations

import pytest

from recollect import Memory
from recollect import filters as f
from recollect.errors import ConflictError, InvalidArgumentError, InvalidRecordError, UnknownRecordError


def groups(memory: Memory) -> list[list[str]]:
    return [[record.id for record in group.records] for group in memory.duplicates()]


def test_a_pair_that_was_stated_not_to_be_the_same_is_not_reported_again(memory: Memory) -> None:
    memory.remember("Ana prefers window seats", id="a")
    memory.remember("ana prefers window seats!", id="b")
    assert groups(memory) == [["a", "b"]]
    stated = memory.distinguish(memory.duplicates()[0].records)
    assert groups(memory) == []
    assert memory.recall("window seats")[0].record.id in ("a", "b")
    assert stated.id not in [hit.record.id for hit in memory.recall("distinct window seats", k=10)]
    memory.forget(stated.id)
    assert groups(memory) == [["a", "b"]]


def test_others_that_say_the_same_join_one_of_them_only(memory: Memory) -> None:
    for name, text in (("a", "the boiler is old"), ("b", "The boiler is old."), ("c", "The boiler is old!")):
        memory.remember(text, id=name, time="2026-03-01")
    memory.distinguish(["b", "a"])
    assert groups(memory) == [["a", "c"]]


def test_it_ends_when_one_of_the_records_is_changed_and_can_be_stated_again(memory: Memory) -> None:
    memory.remember("the boiler is old", id="a")
    memory.remember("The boiler is old.", id="b")
    memory.distinguish(["a", "b"])
    memory.remember("something else")
    assert groups(memory) == []
    memory.update("b", content="THE BOILER IS OLD")
    assert groups(memory) == [["a", "b"]]
    memory.distinguish(["a", "b"])
    assert groups(memory) == []


def test_it_contains_nothing_of_the_texts(memory: Memory) -> None:
    memory.remember("My PIN is 4711", id="a", time="2026-03-01")
    memory.remember("my PIN is 4711", id="b", time="2026-03-01")
    memory.remember("my pin is 4711!", id="c", time="2026-03-01")
    one = memory.distinguish(["a", "b"]).to_json()
    memory.update("a", content="My PIN is 1234")
    assert memory.distinguish(["a", "b"]).to_json()["derived_from"] == one["derived_from"] == ["a", "b"]
    assert set(one["metadata"]) == {"stated"}


def test_a_record_of_that_kind_that_states_nothing_is_ignored(memory: Memory) -> None:
    memory.remember("the boiler is old", id="a")
    memory.remember("The boiler is old.", id="b")
    memory.remember("x", kind="distinct", metadata={"stated": [{"a": 1}]}, derived_from=["a", "gone"])
    assert groups(memory) == [["a", "b"]]


def test_facts_that_do_not_disagree_are_not_reported_as_a_contradiction(memory: Memory) -> None:
    memory.record_user_fact("I live in Rome", user="ana")
    memory.record_user_fact("I live in Oslo", user="ana")
    (found,) = memory.contradictions()
    memory.distinguish([found.older, found.newer])
    assert memory.contradictions() == []
    memory.record_user_fact("I live in Bergen", user="ana")
    assert {each.newer.content for each in memory.contradictions()} == {"I live in Bergen"}


def test_stating_it_twice_is_one_record_and_a_rollback_takes_it_back(memory: Memory) -> None:
    memory.remember("the boiler is old", id="a")
    memory.remember("The boiler is old.", id="b")
    first = memory.distinguish(["a", "b"])
    stated = memory.seq
    assert memory.distinguish(["b", "a"]).id == first.id
    assert memory.count(f.kind("distinct")) == 1
    memory.rollback(stated - 1)
    assert groups(memory) == [["a", "b"]]


def test_it_derives_from_its_records_and_is_erased_with_them(memory: Memory) -> None:
    memory.remember("the boiler is old", id="a")
    memory.remember("The boiler is old.", id="b")
    stated = memory.distinguish(["a", "b"])
    assert memory.erase("b", dry_run=True).derived == (stated.id,)
    memory.erase("b", derived=True)
    assert memory.get(stated.id) is None


def test_it_belongs_to_the_scope_that_stated_it(memory: Memory) -> None:
    for user in ("eva", "tom"):
        scope = memory.scoped(user=user)
        scope.remember("the boiler is old", id="a")
        scope.remember("The boiler is old.", id="b")
    memory.scoped(user="eva").distinguish(["a", "b"])
    assert memory.scoped(user="eva").duplicates() == []
    assert len(memory.scoped(user="tom").duplicates()) == 1
    assert len(memory.duplicates()) == 1


def test_it_belongs_to_the_user_of_all_of_its_records(memory: Memory) -> None:
    memory.remember("the boiler is old", id="a", user="eva")
    memory.remember("The boiler is old.", id="b", user="eva")
    memory.distinguish(memory.find())
    assert memory.scoped(user="eva").duplicates() == memory.duplicates(user="eva") == []
    memory.forget_where(f.user("eva"))
    assert memory.count() == 0


def test_a_record_that_was_changed_since_it_was_read_is_a_conflict(memory: Memory) -> None:
    one = memory.remember("the boiler is old", id="a")
    other = memory.remember("The boiler is old.", id="b")
    memory.update("b", content="The boiler is new")
    before = memory.seq
    with pytest.raises(ConflictError, match="'b'"):
        memory.distinguish([one, other])
    assert memory.seq == before


def test_it_is_part_of_the_commit_of_a_batch(memory: Memory) -> None:
    with memory.batch() as batch:
        batch.remember("the boiler is old", id="a")
        batch.remember("The boiler is old.", id="b")
        batch.distinguish(["a", "b"])
    assert memory.seq == 1
    assert groups(memory) == []


def test_what_is_no_list_of_two_live_records_is_refused(memory: Memory) -> None:
    memory.remember("x", id="a")
    before = memory.seq
    for number in ([1, 2], ["a", 2]):
        with pytest.raises(InvalidRecordError, match="id must be text"):
            memory.distinguish(number)  # type: ignore[arg-type]
    for wrong in (["a"], ["a", "a"], "ab", [], 3):
        with pytest.raises(InvalidArgumentError, match="records"):
            memory.distinguish(wrong)  # type: ignore[arg-type]
    with pytest.raises(UnknownRecordError, match="'b'"):
        memory.distinguish(["a", "b"])
    assert memory.seq == before
