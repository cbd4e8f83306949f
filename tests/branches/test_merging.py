"""Merges of branches, in three ways and field by field (docs/branches.md)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.engine.write.three_way import three_way
from recollect.errors import (
    ConflictError,
    InvalidArgumentError,
    OriginError,
    QuotaError,
    RejectedError,
    UnknownBranchError,
)
from recollect.records.record import Record
from recollect.stores.memory import MemoryStore
from recollect.testing import memory_on, records

pytestmark = pytest.mark.stores("memory", "sqlite", "loopback")


def texts(memory: recollect.Memory) -> dict[str, Any]:
    return {record.id: record.content for record in memory.find(limit=None)}


@pytest.fixture
def branch(memory: recollect.Memory) -> recollect.Memory:
    """A branch of a memory with the records a, b and c."""
    for record_id in "abc":
        memory.remember(f"text of {record_id}", id=record_id, importance=0.5)
    return memory.branch("what-if")


class TestRecords:
    def test_what_one_branch_has_changed_is_taken(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        branch.update("a", content="changed")
        branch.forget("b")
        branch.remember("new", id="n")
        memory.update("c", content="ours")
        memory.remember("ours too", id="o")
        merged = memory.merge_branch("what-if", actor="ana", reason="it worked")
        assert texts(memory) == {"a": "changed", "c": "ours", "n": "new", "o": "ours too"}
        assert (merged.taken, merged.joined, merged.kept, merged.conflicts) == (3, 0, 0, ())
        commit = memory.log(1)[0]
        assert (commit.seq, commit.actor, commit.reason) == (merged.seq, "ana", "it worked")
        assert commit.parents == (("main", 5), ("what-if", 6, branch.log(1)[0].entry))
        assert {each.id: each.cause for each in commit.changes} == {"a": "written", "b": "forgotten", "n": "written"}
        assert texts(branch) == {"a": "changed", "c": "text of c", "n": "new"}
        assert memory.check() == []

    def test_what_neither_or_only_this_one_has_changed_stays(
        self, memory: recollect.Memory, branch: recollect.Memory
    ) -> None:
        memory.update("a", content="ours")
        memory.forget("b")
        branch.update("c", content="theirs")
        branch.update("c", content="text of c")  # as it was
        merged = memory.merge_branch("what-if")
        assert texts(memory) == {"a": "ours", "c": "text of c"}
        assert (merged.taken, merged.seq, memory.seq) == (0, None, 5)
        assert memory.branches()[1].merged_seq == 5  # the next merge looks at what comes later

    def test_turns_with_long_ids_are_kept_both(self, memory: recollect.Memory) -> None:
        record_id = "t" * 250
        branch = memory.branch("a-name-of-some-length")
        for each in (memory, branch):
            each.remember(f"a turn in {each.branch_name}", id=record_id, kind="conversation", conversation="c")
        memory.merge_branch(branch.branch_name)
        assert {record.content for record in memory.find(limit=None)} == {
            "a turn in main",
            "a turn in a-name-of-some-length",
        }
        assert memory.check() == []

    def test_what_a_branch_took_and_then_undid_is_undone(
        self, memory: recollect.Memory, branch: recollect.Memory
    ) -> None:
        branch.update("a", content="theirs")
        memory.merge_branch("what-if")
        memory.update("a", content="ours")
        memory.remember("ours", id="o")
        branch.merge_branch("main")
        assert texts(branch) == texts(memory)
        branch.update("a", content="theirs")  # as it was at the merge
        branch.forget("o")  # as it was at the merge
        assert memory.merge_branch("what-if").conflicts == ()
        assert texts(memory) == {"a": "theirs", "b": "text of b", "c": "text of c"}

    def test_the_same_change_is_no_conflict(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        for each in (memory, branch):
            each.update("a", content="same")
            each.forget("b")
        assert memory.merge_branch("what-if").conflicts == ()
        assert texts(memory) == {"a": "same", "c": "text of c"}

    def test_different_fields_are_joined(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        memory.update("a", content="ours", tags=["x"], metadata={"m": 1, "same": 2})
        branch.update("a", importance=0.9, tags=["y"], metadata={"n": 1, "same": 2})
        merged = memory.merge_branch("what-if")
        found = memory.get("a")
        assert found is not None
        assert (found.content, found.importance, set(found.tags)) == ("ours", 0.9, {"x", "y"})
        assert found.metadata == {"m": 1, "n": 1, "same": 2}
        assert (merged.joined, merged.taken) == (1, 0)

    @pytest.mark.parametrize("side", ["ours", "theirs"])
    def test_a_rule_decides_conflicts(self, memory: recollect.Memory, branch: recollect.Memory, side: Any) -> None:
        memory.update("a", content="ours")
        branch.update("a", content="theirs")
        memory.forget("b")
        branch.update("b", content="theirs")
        memory.update("c", content="ours")
        branch.forget("c")
        merged = memory.merge_branch("what-if", on_conflict=side)
        expected = {"ours": {"a": "ours", "c": "ours"}, "theirs": {"a": "theirs", "b": "theirs"}}
        assert texts(memory) == expected[side]
        assert (merged.taken, merged.kept) == ((3, 0) if side == "theirs" else (0, 3))

    def test_the_newest_change_can_count(self) -> None:
        now = datetime(2026, 1, 1, tzinfo=UTC)

        def clock() -> datetime:
            nonlocal now
            now += timedelta(seconds=1)
            return now

        memory = memory_on(MemoryStore(), clock=clock)
        memory.remember("a", id="a")
        memory.remember("b", id="b")
        branch = memory.branch("what-if")
        branch.update("a", content="theirs")
        memory.update("a", content="ours")
        memory.update("b", content="ours")
        branch.update("b", content="theirs")
        memory.merge_branch("what-if", on_conflict="newest")
        assert texts(memory) == {"a": "ours", "b": "theirs"}


class TestConflicts:
    def test_all_are_listed_and_nothing_is_written(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        memory.update("a", content="ours", importance=0.1)
        branch.update("a", content="theirs", importance=0.9)
        memory.forget("b")
        branch.update("b", content="theirs")
        memory.remember("ours", id="n")
        branch.remember("theirs", id="n")
        branch.remember("taken", id="t")
        before = memory.head()
        merged = memory.merge_branch("what-if")
        assert not merged
        assert memory.head() == before
        found = {each.id: each for each in merged.conflicts}
        assert found.keys() == {"a", "b", "n"}
        assert found["a"].fields == ("content", "importance")
        assert found["a"].base.content == "text of a"  # type: ignore[union-attr]
        assert (found["b"].ours, found["b"].theirs.content) == (None, "theirs")  # type: ignore[union-attr]
        assert (found["n"].base, found["n"].fields) == (None, ())
        assert memory.merge_branch("what-if", dry_run=True) == merged

    def test_each_is_decided_by_itself(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        for record_id in "abc":
            memory.update(record_id, content=f"ours {record_id}")
            branch.update(record_id, content=f"theirs {record_id}")
        memory.remember("ours", id="n")
        branch.remember("theirs", id="n")
        listed = memory.merge_branch("what-if")
        own = listed.conflicts[2].ours
        assert own is not None
        part = memory.resolve_merge(listed, {"a": "ours", "b": "theirs"})
        assert [each.id for each in part.conflicts] == ["c", "n"]
        decided = {"a": "ours", "b": "theirs", "c": own.changed(content="both c"), ("records", "n"): "both"}
        merged = memory.resolve_merge(listed, decided, reason="decided")  # type: ignore[arg-type]
        assert merged.seq == memory.seq
        expected = {"a": "ours a", "b": "theirs b", "c": "both c", "n": "ours", "n~what-if": "theirs"}
        assert texts(memory) == expected
        assert memory.log(1)[0].reason == "decided"

    def test_a_decision_holds_only_for_what_was_seen(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        memory.update("a", content="ours")
        branch.update("a", content="theirs")
        listed = memory.merge_branch("what-if")
        with pytest.raises(InvalidArgumentError, match="resolutions 'records:b' is no conflict of this merge"):
            memory.resolve_merge(listed, {"a": "ours", "b": "ours"})
        branch.update("a", content="theirs again")
        with pytest.raises(ConflictError, match="the head of branch 'what-if'"):
            memory.resolve_merge(listed, {"a": "theirs"})
        listed = memory.merge_branch("what-if")
        memory.remember("something else")
        with pytest.raises(ConflictError, match="the head of branch 'main'"):
            memory.resolve_merge(listed, {"a": "theirs"})
        assert texts(memory)["a"] == "ours"

    def test_an_erased_text_does_not_come_back(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        branch.update("a", importance=0.9)
        memory.erase("a")
        merged = memory.merge_branch("what-if", on_conflict="theirs")
        assert "a" not in texts(memory)
        assert merged.conflicts == ()
        branch.remember("said again", id="a")
        memory.merge_branch("what-if")
        assert texts(memory)["a"] == "said again"


class TestAgain:
    def test_a_branch_that_went_on_is_merged_again(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        branch.update("a", content="first")
        memory.merge_branch("what-if")
        branch.update("a", content="second")
        merged = memory.merge_branch("what-if")
        assert (merged.taken, merged.conflicts) == (1, ())  # what was merged before is what both had
        assert texts(memory)["a"] == "second"

    def test_a_branch_takes_what_main_has_and_goes_on(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        branch.update("a", content="theirs")
        memory.update("b", content="ours")
        assert branch.merge_branch("main").taken == 1
        assert texts(branch) == {"a": "theirs", "b": "ours", "c": "text of c"}
        branch.update("b", content="theirs too")
        merged = memory.merge_branch("what-if")
        assert (merged.taken, merged.conflicts) == (2, ())  # the state that main had is in the branch
        assert texts(memory) == texts(branch)
        assert not branch.merge_branch("main").taken

    def test_two_branches_of_one_are_merged(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        other = memory.branch("other")
        other.update("a", content="other")
        branch.update("b", content="theirs")
        assert branch.merge_branch("other").taken == 1
        assert texts(branch) == {"a": "other", "b": "theirs", "c": "text of c"}
        assert memory.merge_branch("what-if").taken == 2
        assert memory.merge_branch("other", on_conflict="list").conflicts == ()
        assert memory.check() == []

    def test_a_merge_outlives_the_branch(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        branch.update("a", content="theirs")
        memory.merge_branch("what-if")
        info = memory.branches()[1]
        assert (info.merged_seq, info.merged_into) == (4, "main")
        memory.drop_branch("what-if")
        assert texts(memory)["a"] == "theirs"
        assert memory.check() == []


class TestConversations:
    def test_new_turns_follow_those_of_this_branch(self, memory: recollect.Memory) -> None:
        memory.add_messages([{"role": "user", "content": "one"}], conversation="c")
        branch = memory.branch("what-if")
        memory.add_messages([{"role": "user", "content": "ours"}], conversation="c")
        branch.add_messages([{"role": "user", "content": "theirs"}], conversation="c")
        branch.add_messages([{"role": "assistant", "content": "theirs too"}], conversation="c")
        memory.merge_branch("what-if")
        turns = memory.find("conversation=c", order="position")
        assert [(turn.position, turn.content) for turn in turns] == [
            (0, "one"),
            (1, "ours"),
            (2, "theirs"),
            (3, "theirs too"),
        ]

    def test_turns_keep_their_positions_if_only_the_other_branch_went_on(self, memory: recollect.Memory) -> None:
        memory.add_messages([{"role": "user", "content": "one"}], conversation="c")
        branch = memory.branch("what-if")
        branch.add_messages([{"role": "user", "content": "theirs"}], conversation="c")
        memory.merge_branch("what-if")
        assert memory.root == branch.root

    def test_what_was_said_in_both_is_there_twice(self, memory: recollect.Memory) -> None:
        memory.add_messages([{"role": "user", "content": "one"}], conversation="c")
        branch = memory.branch("what-if")
        for each in (memory, branch):
            each.add_messages([{"role": "user", "content": "ok"}], conversation="c")
        merged = memory.merge_branch("what-if")
        turns = memory.find("conversation=c", order="position")
        assert [turn.content for turn in turns].count("ok") == 2
        assert merged.conflicts == ()


class TestParts:
    def test_all_parts_are_merged_in_one_commit(self, memory: recollect.Memory) -> None:
        memory.keyed.write("k", b"1")
        memory.keyed.write("l", b"1")
        branch = memory.branch("what-if")
        branch.keyed.write("k", b"2")
        memory.keyed.write("l", b"2")
        branch.glossary.memorize("SDK", "a kit", category="", agent_id="a")
        branch.outline.ingest_text("# Trip\n\ntext", "markdown", "trip")
        seq = memory.seq
        merged = memory.merge_branch("what-if")
        assert memory.seq == seq + 1
        assert (memory.keyed.read("k"), memory.keyed.read("l")) == (b"2", b"2")
        assert memory.outline.root == branch.outline.root
        assert [each["key"] for each in memory.glossary.recall("SDK", agent_id="a")] == ["SDK"]
        assert merged.parts.keys() == {"keys", "nodes", "terms"}
        assert memory.check() == []

    def test_a_key_that_both_have_written_is_a_conflict(self, memory: recollect.Memory) -> None:
        memory.keyed.write("k", b"1")
        branch = memory.branch("what-if")
        branch.keyed.write("k", b"2")
        memory.keyed.write("k", b"3")
        merged = memory.merge_branch("what-if")
        assert {each.part for each in merged.conflicts} == {"keys"}
        decided: Any = {(each.part, each.id): "theirs" for each in merged.conflicts}
        assert memory.resolve_merge(merged, decided)
        assert memory.keyed.read("k") == b"2"


class TestRules:
    def test_what_was_stored_beside_before_is_not_stored_again(
        self, memory: recollect.Memory, branch: recollect.Memory
    ) -> None:
        for number, theirs in enumerate(("theirs", "theirs, too", "theirs")):
            memory.update("a", content=f"ours {number}")
            branch.update("a", content=theirs)
            merged = memory.merge_branch("what-if")
            memory.resolve_merge(merged, {each.key: "both" for each in merged.conflicts})
        found = {record.id: record.content for record in memory.find() if record.id.startswith("a~")}
        assert found == {"a~what-if": "theirs", "a~what-if~2": "theirs, too"}

    def test_a_merge_needs_no_room_for_what_the_branch_is_counted_with(self, memory: recollect.Memory) -> None:
        branch = memory.branch("what-if")
        count = memory.count()
        for number in range(5):
            branch.remember(f"text {number}", id=f"n{number}")
        memory.set_quota(records=count + 5)
        with pytest.raises(QuotaError):
            memory.remember("one more")
        assert memory.merge_branch("what-if").taken == 5
        assert memory.count() == memory.stats()["quota"]["records_used"] == count + 5
        with pytest.raises(QuotaError):
            memory.remember("one more")

    def test_quotas_and_policies_hold(self, memory: recollect.Memory, branch: recollect.Memory) -> None:
        branch.remember("mail ana@example.org", id="m")
        branch.update("a", content="theirs")
        memory.set_policies(redaction="refuse")
        before = memory.head()
        with pytest.raises(RejectedError):
            memory.merge_branch("what-if")
        assert memory.head() == before
        memory.set_policies()
        memory.set_quota(records=3)
        with pytest.raises(QuotaError):
            memory.merge_branch("what-if")
        assert memory.head() == before
        memory.set_quota()
        assert memory.merge_branch("what-if").taken == 2

    def test_a_joined_record_is_of_the_lower_class(self, memory: recollect.Memory) -> None:
        memory.remember("text", id="a", tags=["x"])
        branch = memory.branch("what-if")
        branch.update("a", importance=0.2, origin="web")
        memory.update("a", content="ours")
        memory.merge_branch("what-if")
        assert memory.get("a").effective_origin == "web"  # type: ignore[union-attr]
        with pytest.raises(OriginError):
            memory.as_origin("assistant").merge_branch("what-if")

    def test_what_is_not_there_cannot_be_merged(self, memory: recollect.Memory) -> None:
        with pytest.raises(UnknownBranchError):
            memory.merge_branch("none")
        with pytest.raises(InvalidArgumentError, match="the branch itself"):
            memory.merge_branch("main")


BASE = Record(id="a", content="text", tags=("x", "y"), metadata={"m": 1}, importance=0.5)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected", "conflicts"),
    [
        ({"content": "o"}, {"importance": 0.9}, {"content": "o", "importance": 0.9}, ()),
        ({"tags": ("x",)}, {"tags": ("x", "y", "z")}, {"tags": ("x", "z")}, ()),
        ({"metadata": {}}, {"metadata": {"m": 1, "n": 2}}, {"metadata": {"n": 2}}, ()),
        ({"metadata": {"m": 2}}, {"metadata": {"m": 3}}, {"metadata": {"m": 2}}, ("metadata.m",)),
        ({"metadata": {"m": 1.0}}, {"metadata": {}}, {"metadata": {"m": 1.0}}, ("metadata.m",)),
        ({"content": "o"}, {"content": "t", "user": "u"}, {"content": "o", "user": "u"}, ("content",)),
    ],
)
def test_fields_are_merged_each_by_itself(
    ours: dict[str, Any], theirs: dict[str, Any], expected: dict[str, Any], conflicts: tuple[str, ...]
) -> None:
    merged, found = three_way(BASE, BASE.changed(**ours), BASE.changed(**theirs))
    assert merged.to_json() == BASE.changed(**expected).to_json()
    assert found == conflicts


@given(base=records(st.just("a")), ours=records(st.just("a")), theirs=records(st.just("a")))
def test_a_merge_of_fields_has_the_laws_of_one(base: Record, ours: Record, theirs: Record) -> None:
    """What one side has not changed is as on the other one; and both orders give the same, except for conflicts."""
    lower = {"origin"}  # a merge never raises a class

    def fields(record: Record) -> dict[str, Any]:
        out = {name: value for name, value in record.to_json().items() if name not in lower}
        return {name: sorted(value) if isinstance(value, list) else value for name, value in out.items()}

    try:
        one, conflicts = three_way(base, ours, theirs)
        other, _ = three_way(base, theirs, ours)
        unchanged, none = three_way(base, base, theirs)
    except recollect.errors.InvalidRecordError:
        return  # values of different fields that do not go together
    assert none == ()
    assert fields(unchanged) == fields(theirs)
    if not conflicts:
        assert fields(one) == fields(other)


@pytest.mark.parametrize("merged", [None, "what-if", 5, {}])
def test_what_is_no_merge_cannot_be_resolved(memory: recollect.Memory, merged: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="merged must be what merge_branch has returned"):
        memory.resolve_merge(merged, {})


@pytest.mark.parametrize("resolutions", [None, "theirs", 5, [("a", "ours")], {5: "ours"}, {("records",): "ours"}])
def test_resolutions_that_name_no_ids_are_refused_and_nothing_is_merged(
    memory: recollect.Memory, branch: recollect.Memory, resolutions: Any
) -> None:
    branch.remember("more", id="d")
    listed = memory.merge_branch("what-if", dry_run=True)

    with pytest.raises(InvalidArgumentError, match="resolutions must"):
        memory.resolve_merge(listed, resolutions)
    assert memory.get("d") is None
