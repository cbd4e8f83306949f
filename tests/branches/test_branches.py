"""Branches: lines of history that go on separately (docs/branches.md)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.errors import (
    BranchExistsError,
    BranchInUseError,
    BranchLimitError,
    InvalidArgumentError,
    QuotaError,
    ReadOnlyMemoryError,
    RejectedError,
    ScopeError,
    UnknownBranchError,
)
from recollect.ledger.commits import Branch
from recollect.operations import Remember
from recollect.stores import roots
from recollect.stores.memory import MemoryStore
from recollect.testing import memory_on
from recollect.testing.branching import assert_as_flattened

SEAT = "Which seat does Ana prefer?"
WINDOW, AISLE = "Ana prefers window seats", "Ana prefers aisle seats"


def answers(memory: recollect.Memory, question: str = SEAT) -> list[tuple[str, float]]:
    return [(hit.record.id, hit.score) for hit in memory.recall(question)]


def texts(memory: recollect.Memory) -> dict[str, Any]:
    return {record.id: record.content for record in memory.find(limit=None)}


@pytest.mark.stores("memory", "sqlite", "loopback")
class TestBranches:
    def test_a_branch_has_what_it_continues_and_the_same_answers(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW, id="seat")
        memory.remember("Bo likes tea", id="tea")
        branch = memory.branch("what-if")
        assert branch.branch_name == "what-if"
        assert memory.branch_name == "main"
        assert (branch.seq, branch.root, texts(branch)) == (2, memory.root, texts(memory))
        assert answers(branch) == answers(memory)

    def test_what_is_written_in_one_branch_is_seen_in_no_other(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW, id="seat")
        branch = memory.branch("what-if")
        memory.update("seat", content=AISLE)
        memory.remember("Bo likes tea", id="tea")
        assert texts(branch) == {"seat": WINDOW}
        branch.remember("Cy sails", id="sails")
        branch.forget("seat")
        assert texts(branch) == {"sails": "Cy sails"}
        assert texts(memory) == {"seat": AISLE, "tea": "Bo likes tea"}
        assert [hit.record.id for hit in branch.recall("tea and seats and sails")] == ["sails"]
        assert len(memory.history("seat")) == 2
        assert [each.cause for each in branch.history("seat")] == ["written", "forgotten"]

    def test_a_branch_continues_any_moment(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW, id="seat")
        memory.snapshot("window")
        root = memory.root
        memory.update("seat", content=AISLE)
        for name, moment in (("by seq", 1), ("by name", "window"), ("by root", root), ("empty", 0)):
            branch = memory.branch(name, at=moment)
            expected = memory.at(moment)
            assert texts(branch) == texts(expected)
            assert branch.seq == expected.seq
            assert answers(branch) == answers(expected)
            branch.remember("Cy sails", id="sails")
            assert texts(branch) == texts(expected) | {"sails": "Cy sails"}

    def test_commits_are_numbered_on_and_the_first_states_the_entry_that_it_follows(
        self, memory: recollect.Memory
    ) -> None:
        memory.remember(WINDOW, id="seat")
        branch = memory.branch("what-if")
        branch.update("seat", content=AISLE)
        branch.remember("Cy sails")
        log = branch.log()
        assert [each.seq for each in log] == [3, 2, 1]
        assert {each.branch for each in log} == {"what-if"}
        assert log[1].parents == (("main", 1, memory.log()[0].entry),)
        assert log[0].parents == (("what-if", 2),)
        assert branch.changes(since=1)[0].seq == 2

    def test_a_branch_proves_that_its_log_begins_with_what_it_continues(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW, id="seat")
        published = memory.head()
        branch = memory.branch("what-if")
        branch.update("seat", content=AISLE)
        head = branch.head()
        proof = branch.prove_log(1)
        assert recollect.verify(proof, [published.log or "", head.log or ""])
        assert recollect.verify(branch.prove("seat"), branch.root)
        assert recollect.verify(branch.prove("seat", at=1), published.root)
        memory.remember("Bo likes tea")
        assert not recollect.verify(proof, [published.log or "", memory.head().log or ""])  # of main

    def test_all_parts_of_a_memory_go_on_separately(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW)
        memory.glossary.memorize("API", "an interface", category="", agent_id="a")
        memory.keyed.write("k", b"1")
        memory.sdr.store("tea and boats")
        memory.outline.ingest_text("# Trip\n\ntext", "markdown", "trip")
        branch = memory.branch("what-if")
        memory.keyed.write("k", b"2")
        memory.glossary.memorize("SDK", "a kit", category="", agent_id="a")
        assert branch.keyed.read("k") == b"1"
        assert branch.outline.root == memory.outline.root
        branch.keyed.write("k", b"3")
        branch.outline.ingest_text("# Other\n\ntext", "markdown", "other")
        assert (memory.keyed.read("k"), branch.keyed.read("k")) == (b"2", b"3")
        assert branch.outline.root != memory.outline.root
        assert [each["key"] for each in branch.glossary.recall("SDK or API", agent_id="a")] == ["API"]
        assert [hit["text"] for hit in branch.sdr.query("tea and boats")] == ["tea and boats"]
        assert branch.stats()["parts"] != memory.stats()["parts"]

    def test_no_name_is_used_again(self, memory: recollect.Memory) -> None:
        memory.branch("one")
        with pytest.raises(BranchExistsError, match="has or had a branch 'one'"):
            memory.branch("one")
        memory.drop_branch("one")
        with pytest.raises(BranchExistsError):
            memory.branch("one")
        assert [each.name for each in memory.branches()] == ["main"]

    @pytest.mark.parametrize("name", ["", "main", "x" * 101, "a\nb", "a\x1fb", " a", 5, None])
    def test_a_name_is_short_text_on_one_line(self, memory: recollect.Memory, name: Any) -> None:
        with pytest.raises(InvalidArgumentError):
            memory.branch(name)
        assert [each.name for each in memory.branches()] == ["main"]

    def test_a_branch_that_was_dropped_is_gone_for_whom_had_it_open(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW, id="seat")
        branch = memory.branch("what-if")
        branch.update("seat", content=AISLE)
        dropped = memory.drop_branch("what-if")
        assert (dropped.name, dropped.base, dropped.base_seq, dropped.seq) == ("what-if", "main", 1, 2)
        for call in (branch.count, lambda: branch.remember("x"), lambda: branch.recall(SEAT), lambda: branch.seq):
            with pytest.raises(UnknownBranchError, match="no branch 'what-if'"):
                call()
        with pytest.raises(UnknownBranchError):
            memory.on("what-if")
        with pytest.raises(UnknownBranchError):
            memory.drop_branch("what-if")
        assert texts(memory) == {"seat": WINDOW}
        assert memory.check() == []

    def test_a_branch_that_another_one_continues_cannot_be_dropped(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW)
        one = memory.branch("one")
        one.branch("unwritten")  # of what main has, so it does not need the branch
        one.remember("Cy sails")
        one.branch("two")
        with pytest.raises(BranchInUseError, match="continued by 'two'"):
            memory.drop_branch("one")
        memory.drop_branch("two")
        memory.drop_branch("one")
        assert memory.on("unwritten").count() == 1

    def test_the_branches_are_listed_with_where_they_begin(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW, id="seat")
        memory.branch("b").remember("Cy sails")
        memory.branch("a", at=0)
        found = memory.branches(sizes=True)
        listed = [(each.name, each.base, each.base_seq, each.seq, each.records) for each in found]
        assert listed == [("main", None, 0, 1, 1), ("a", "main", 0, 0, 0), ("b", "main", 1, 2, 2)]
        assert found[0].own_bytes == len(memory.find()[0].to_bytes())
        assert found[1].own_bytes == 0
        assert found[2].own_bytes == len(memory.on("b").find()[0].to_bytes())
        assert found[0].created is None
        assert found[1].created is not None

    def test_the_past_of_a_branch_is_what_it_continues_and_its_own(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW, id="seat")
        memory.update("seat", content=AISLE)
        branch = memory.branch("what-if", at=1)
        branch.forget("seat")
        assert [texts(branch.at(seq)) for seq in range(3)] == [{}, {"seat": WINDOW}, {}]
        mark = branch.snapshot("gone")
        branch.rollback(1)
        assert texts(branch) == {"seat": WINDOW}
        assert [each.name for each in branch.snapshots()] == ["gone"]
        assert memory.snapshots() == []
        assert branch.diff(1, mark).removed[0].id == "seat"
        branch.revert(1)  # the commit that main has made
        assert texts(branch) == {}
        assert texts(memory) == {"seat": AISLE}

    def test_keys_of_writes_quotas_and_policies(self, memory: recollect.Memory) -> None:
        """An idempotency key is one of its branch; quotas and policies are those of the namespace."""
        first = memory.execute(Remember(content=WINDOW), idempotency_key="k")
        branch = memory.branch("what-if")
        own = branch.execute(Remember(content="Cy sails"), idempotency_key="k")
        assert first.record != own.record
        assert branch.execute(Remember(content="Cy sails"), idempotency_key="k").record == own.record
        memory.set_policies(redaction="refuse")
        with pytest.raises(RejectedError):
            branch.remember("mail ana@example.org")
        memory.set_quota(records=3)
        branch.remember("Bo likes tea")
        with pytest.raises(QuotaError):
            branch.remember("Di swims")
        with pytest.raises(QuotaError):  # what only the branch has counts, too
            memory.remember("Di swims")
        memory.set_quota(records=4)
        memory.remember("Di swims")
        memory.drop_branch("what-if")
        memory.remember("El sings")
        memory.remember("Fay rides")
        with pytest.raises(QuotaError):
            memory.remember("Gus runs")

    def test_a_receipt_and_its_replay_are_of_one_branch(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW)
        branch = memory.branch("what-if")
        branch.remember(AISLE)
        receipt = branch.recall(SEAT).receipt
        assert branch.replay(receipt).status == "same"
        with pytest.raises(InvalidArgumentError):
            memory.replay(receipt)

    def test_a_scope_has_branches_that_its_owner_opens(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW, user="ana")
        memory.remember("Bo likes tea", user="bo")
        branch = memory.branch("what-if")
        ana = branch.scoped(user="ana")
        ana.remember("Ana sails")
        assert sorted(texts(ana).values()) == ["Ana prefers window seats", "Ana sails"]
        assert len(texts(memory.scoped(user="ana"))) == 1
        with pytest.raises(ScopeError):
            ana.on("main")
        with pytest.raises(ScopeError):
            ana.branch("two")

    def test_a_memory_of_the_past_makes_no_branch(self, memory: recollect.Memory) -> None:
        memory.remember(WINDOW)
        with pytest.raises(ReadOnlyMemoryError):
            memory.at(1).branch("what-if")
        assert [each.name for each in memory.branches()] == ["main"]


def test_a_branch_expires_what_has_expired() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    memory = memory_on(MemoryStore(), clock=lambda: now)
    memory.remember("soon gone", id="a", ttl=60)
    branch = memory.branch("what-if")
    memory.forget("a")
    assert branch.count() == 1
    now += timedelta(seconds=61)
    assert branch.count() == 0
    branch.remember("stays", id="b")
    assert [change.cause for change in branch.log()[0].changes] == ["written", "expired"]
    assert branch.check() == []


def test_what_was_merged_counts_once() -> None:
    with recollect.open(":memory:") as memory:
        memory.remember(WINDOW)
        branch = memory.branch("what-if")
        branch.remember("Cy sails")
        memory.set_quota(records=3)
        memory.merge_branch("what-if")
        memory.remember("Bo likes tea")
        branch.merge_branch("main")
        with pytest.raises(QuotaError):
            memory.remember("Di swims")
        assert memory.stats()["quota"]["records"] == memory.count() == 3


def test_there_is_a_limit_of_branches_and_of_how_deep_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.engine.branches.MOST", 20)
    with recollect.open(":memory:") as memory:
        deepest = memory
        for number in range(15):
            deepest = deepest.branch(f"b{number}")
            deepest.remember(f"note {number}")
        with pytest.raises(BranchLimitError, match="at most 16 branches of which each continues"):
            deepest.branch("deeper")
        assert deepest.count() == 15
        for number in range(5):
            memory.branch(f"wide{number}")
        with pytest.raises(BranchLimitError, match="at most 20 branches"):
            memory.branch("one more")
        assert memory.check() == []


def test_listeners_hear_of_their_branch_alone(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember(WINDOW)
        branch = memory.branch("what-if")
        with branch.subscribe(since=1) as commits:
            memory.remember("Bo likes tea")
            branch.remember("Cy sails")
            assert next(commits).changes[0].after is not None
            assert not commits.wait(0)
        heard: list[int] = []
        with memory.listen(lambda commit: heard.append(commit.seq), since=1) as listening:
            listening.drain()
        assert heard == [2]


def test_a_branch_is_there_in_another_process_and_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as one, recollect.open(path) as other:
        one.remember(WINDOW, id="seat")
        one.branch("what-if")
        branch = other.on("what-if")
        assert texts(branch) == {"seat": WINDOW}
        branch.update("seat", content=AISLE)
        assert texts(one.on("what-if")) == {"seat": AISLE}
        one.drop_branch("what-if")
        with pytest.raises(UnknownBranchError):
            branch.count()
        one.branch("kept").remember("Cy sails")
    with recollect.open(path) as memory:
        assert memory.on("kept").count() == 2
        assert memory.check() == []
    with recollect.open(path, read_only=True) as memory:
        assert memory.on("kept").count() == 2
        with pytest.raises(recollect.errors.ReadOnlyStoreError):
            memory.branch("more")


def test_a_store_without_branches_is_read_by_releases_that_know_none(tmp_path: Path) -> None:
    """Releases that know no branches refuse a file that has one; others stay as they are."""

    def needed(path: Path) -> int:
        import apsw

        connection = apsw.Connection(str(path))
        ((found,),) = connection.execute("SELECT value FROM meta WHERE name = 'least_reader'").fetchall()
        connection.close()
        assert isinstance(found, int)
        return found

    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember(WINDOW)
    assert needed(path) == 4
    with recollect.open(path) as memory:
        memory.branch("what-if")
    assert needed(path) == 5


def test_coroutines_have_the_same_calls() -> None:
    async def main() -> None:
        async with recollect.AsyncMemory(recollect.open(":memory:")) as memory:
            await memory.remember(WINDOW, id="seat")
            branch = await memory.branch("what-if")
            await branch.update("seat", content=AISLE)
            assert branch.branch_name == "what-if"
            assert await (await memory.on("what-if")).count() == 1
            assert (await memory.merge_branch("what-if")).taken == 1
            assert (await memory.get("seat")).content == AISLE  # type: ignore[union-attr]

    asyncio.run(main())


@pytest.mark.stores("sqlite")
def test_old_moments_whose_pages_were_dropped_can_be_continued(
    memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        memory.remember(f"note {number % 7} about tea", id=f"n{number % 7}", if_exists="update", importance=number / 99)
    expected = texts(memory.at(20))
    memory.compact()  # drops the pages of old roots
    branch = memory.branch("what-if", at=20)
    memory.compact()
    assert texts(branch) == expected
    assert branch.root == memory.at(20).root
    assert recollect.verify(branch.prove("n1"), branch.root)
    branch.remember("Cy sails")
    memory.compact()
    assert memory.check() == []
    assert recollect.verify(branch.prove("n1"), branch.root)
    assert_as_flattened(memory._executor.core.store, Branch("default", "what-if"))  # type: ignore[attr-defined]
    memory.drop_branch("what-if")
    memory.compact()
    assert memory.check() == []


@pytest.mark.stores("memory", "sqlite")
@pytest.mark.parametrize("order", ["abc", "cba", "bac"])
def test_branches_of_commits_whose_pages_were_dropped_share_none(
    memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(roots, "KEPT_EVERY", 12)
    for number in range(40):
        memory.remember(f"text {number}", id=f"r{number % 15}", if_exists="update")
        if number == 30:
            memory.branch("kept", at=memory.seq)
    memory.compact()
    expected = {}
    for name, seq in (("b", 20), ("a", 6), ("c", 7)):
        branch = memory.branch(name, at=seq)
        expected[name] = {record.id: record.content for record in memory.at(seq).find(limit=None)} | {"new": name}
        branch.remember(name, id="new")
        branch.keyed.write("k", name.encode())
    memory.compact()
    for number in range(30):  # `kept` goes on with the numbers that commits of the main branch have, too
        memory.on("kept").remember(f"other {number}", id=f"r{number % 15}", if_exists="update")
        memory.remember(f"again {number}", id=f"r{number % 15}", if_exists="update")
    memory.compact()
    assert memory.check() == []
    for name in order:
        assert {record.id: record.content for record in memory.on(name).find(limit=None)} == expected[name]
        memory.on(name).remember("more")
        memory.drop_branch(name)
        assert memory.check() == []
    memory.drop_branch("kept")
    assert memory.check() == []
    memory.remember("after all")
    assert memory.check() == []


def test_a_branch_is_compared_with_another_one(memory: recollect.Memory) -> None:
    memory.remember("one", id="a")
    memory.remember("two", id="b")
    memory.keyed.write("k", b"1")
    branch = memory.branch("what-if")
    assert not memory.diff(branch="what-if")
    branch.update("a", content="one, changed")
    branch.forget("b")
    branch.remember("three", id="c")
    branch.keyed.write("k", b"2")
    memory.remember("four", id="d")
    same = memory.remember("the same in both", id="e")
    branch.remember("the same in both", id="e", time=same.time)
    found = memory.diff(branch="what-if")
    assert [each.id for each in found.added] == ["c"]
    assert [(each.before.content, each.after.content) for each in found.changed] == [("one", "one, changed")]
    assert [each.id for each in found.removed] == ["b", "d"]
    assert list(found.parts) == ["keys"]
    back = branch.diff(branch="main")
    assert ([each.id for each in back.added], [each.id for each in back.removed]) == (["b", "d"], ["c"])
    assert not memory.diff(branch="what-if", old=3, new=3)
    assert [each.id for each in memory.diff(branch="what-if", old=1, new=3).added] == ["b"]
    assert list(memory.diff(branch="what-if", parts=["keys"]).parts) == ["keys"]
    assert not memory.diff(branch="what-if", parts=["terms"])
    memory.merge_branch("what-if")
    assert [each.id for each in memory.diff(branch="what-if").removed] == ["d"]
    memory.erase("a")
    assert memory.diff(branch="what-if").changed == ()
    with pytest.raises(UnknownBranchError):
        memory.diff(branch="none")
    with pytest.raises(InvalidArgumentError, match="unless a branch is named"):
        memory.diff()


def test_branches_that_continue_different_ones_are_compared(memory: recollect.Memory) -> None:
    memory.remember("one", id="a")
    first = memory.branch("first")
    first.remember("two", id="b")
    second = first.branch("second")
    first.remember("three", id="c")
    second.remember("four", id="d")
    third = memory.branch("third")
    third.remember("five", id="e")
    found = second.diff(branch="third")
    assert ([each.id for each in found.added], [each.id for each in found.removed]) == (["e"], ["b", "d"])
    found = second.diff(branch="first")
    assert ([each.id for each in found.added], [each.id for each in found.removed]) == (["c"], ["d"])
