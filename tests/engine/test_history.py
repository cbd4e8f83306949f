"""The history of a memory: snapshots, versions, differences, rollback and revert."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.rows import Rows

import recollect
from recollect import Memory, Record
from recollect.errors import (
    ConflictError,
    DamagedStoreError,
    InvalidArgumentError,
    QuotaError,
    ReadOnlyMemoryError,
    ScopeError,
    UnknownTargetError,
)
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import TickingClock, memory_on
from recollect.testing.loopback import core_of

START = datetime(2026, 3, 1, tzinfo=UTC)

pytestmark = pytest.mark.stores("memory", "sqlite", clock=TickingClock)


def contents(memory: Memory) -> dict[str, Record]:
    return {record.id: record for record in memory.find(order="id")}


class TestLog:
    def test_the_log_lists_the_newest_commits_first(self, memory: Memory) -> None:
        for number in range(5):
            memory.remember(f"note {number}")
        assert [commit.seq for commit in memory.log()] == [5, 4, 3, 2, 1]
        assert memory.log() == memory.changes()[::-1]
        assert [commit.seq for commit in memory.log(2)] == [5, 4]
        assert [commit.seq for commit in memory.log(2, since=2)] == [5, 4]
        assert [commit.seq for commit in memory.log(since=3)] == [5, 4]
        assert [commit.seq for commit in memory.at(3).log(2)] == [3, 2]
        with pytest.raises(InvalidArgumentError):
            memory.log(0)

    def test_a_filter_keeps_the_changes_of_records_that_match_before_or_after(self, memory: Memory) -> None:
        with memory.batch(actor="ana") as batch:
            batch.remember("one", id="a", user="ana")
            batch.remember("two", id="b", user="bo")
        memory.update("a", user="bo")  # matches before
        memory.update("b", user="ana")  # matches after
        memory.remember("three", id="c", user="bo")
        memory.forget("b")  # matches before
        memory.update("a", content="uno")
        found = memory.log(where="user=ana")
        assert [(commit.seq, [change.id for change in commit.changes]) for commit in found] == [
            (5, ["b"]),
            (3, ["b"]),
            (2, ["a"]),
            (1, ["a"]),
        ]
        assert (found[-1].actor, found[-1].root) == ("ana", memory.changes()[0].root)
        assert memory.log(2, where="user=ana") == found[:2]
        assert memory.log(where=recollect.filters.user("zoe")) == []
        assert [commit.seq for commit in memory.changes(id="a", where="user=ana")] == [1, 2]

    def test_a_filter_finds_few_commits_among_many(self, memory: Memory) -> None:
        memory.remember("first", user="ana")
        memory.remember_all([{"content": f"note {number}", "user": "bo"} for number in range(5)])
        for number in range(600):
            memory.update(memory.find(limit=1)[0].id, importance=number / 600)
        assert [commit.seq for commit in memory.log(1, where="user=ana")] == [1]

    def test_within_a_scope_a_filter_sees_ids_and_records_as_the_scope_shows_them(self, memory: Memory) -> None:
        ana = memory.scoped(user="ana")
        ana.remember("one", id="note")
        memory.remember("two", id="note", user="bo")
        ana.remember("three", id="other")
        assert [change.id for commit in ana.log(where="id=note") for change in commit.changes] == ["note"]
        assert ana.log(where="user=bo") == []
        with pytest.raises(ScopeError):
            ana.log(since=1)


class TestSnapshots:
    def test_a_snapshot_names_the_newest_commit_and_is_found_by_name_by_age_and_as_itself(self, memory: Memory) -> None:
        memory.remember("one", id="a")
        named = memory.snapshot("before")
        memory.remember("two", id="b")
        unnamed = memory.snapshot()
        memory.forget("a")
        assert (named.name, named.seq, unnamed.name, unnamed.seq) == ("before", 1, None, 2)
        assert memory.snapshots() == [unnamed, named]
        for target in ("before", named):
            assert list(contents(memory.at(target))) == ["a"]
        assert list(contents(memory.at(index=0))) == ["a", "b"]
        assert memory.at(index=1).root == named.root
        assert memory.at(unnamed).root == unnamed.root
        with pytest.raises(UnknownTargetError):
            memory.at(index=2)

    def test_a_snapshot_of_an_empty_memory_is_the_state_before_the_first_commit(self, memory: Memory) -> None:
        empty = memory.snapshot("empty")
        memory.remember("one")
        assert (empty.seq, empty.root) == (0, memory.at(0).root)
        assert memory.at("empty").count() == 0
        memory.rollback("empty")
        assert memory.count() == 0

    def test_a_name_is_taken_once_and_can_be_dropped(self, memory: Memory) -> None:
        memory.remember("one")
        memory.snapshot("a")
        with pytest.raises(InvalidArgumentError, match="is the name of another snapshot"):
            memory.snapshot("a")
        assert memory.drop_snapshot("a").seq == 1
        with pytest.raises(UnknownTargetError):
            memory.drop_snapshot("a")
        with pytest.raises(UnknownTargetError):
            memory.at("a")
        memory.snapshot("a")
        for name in ("", "0" * 64, "x" * 64):
            with pytest.raises(InvalidArgumentError):
                memory.snapshot(name)

    def test_twenty_unnamed_snapshots_stay_and_every_named_one(self, memory: Memory) -> None:
        memory.snapshot("first")
        for number in range(30):
            memory.remember(f"text {number}", id="a", if_exists="update")
            memory.snapshot()
            if number % 10 == 0:
                memory.snapshot(f"number {number}")
        seqs = [each.seq for each in memory.snapshots() if each.name is None]
        assert seqs == list(range(30, 10, -1))
        assert [each.name for each in memory.snapshots() if each.name] == [
            "number 20",
            "number 10",
            "number 0",
            "first",
        ]
        assert len({each.number for each in memory.snapshots()}) == 24
        assert memory.check() == []
        for each in memory.snapshots():
            assert memory.at(each).root == each.root

    def test_a_snapshot_of_another_history_is_refused(self, memory: Memory) -> None:
        memory.remember("one")
        other = memory_on(MemoryStore(), clock=TickingClock())
        other.remember("another")
        with pytest.raises(UnknownTargetError, match="has another root"):
            memory.at(other.snapshot())

    def test_snapshots_survive_a_restart(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db") as memory:
            memory.remember("one")
            made = [memory.snapshot("a"), memory.snapshot()]
            memory.namespace("other").remember("elsewhere")
        with recollect.open(tmp_path / "a.db") as memory:
            assert memory.snapshots() == made[::-1]
            assert memory.namespace("other").snapshots() == []


class TestRollback:
    def test_it_restores_a_moment_in_a_new_commit_and_can_be_taken_back(self, memory: Memory) -> None:
        memory.remember("one", id="a", importance=0.5)
        memory.remember("two", id="b")
        before = memory.snapshot("before")
        memory.update("a", content="changed")
        memory.forget("b")
        memory.remember("three", id="c")
        after = memory.snapshot()
        restored = memory.rollback("before", actor="ana", reason="a mistake")
        assert (restored.seq, restored.changed, restored.erased) == (6, 3, ())
        assert memory.root == before.root
        assert contents(memory) == contents(memory.at(before))
        (commit,) = memory.changes(since=5)
        assert {change.cause for change in commit.changes} == {"rolled back"}
        assert (commit.actor, commit.reason) == ("ana", "a mistake")
        assert [hit.record.id for hit in memory.recall("two")] == ["b"]
        memory.rollback(after)
        assert memory.root == after.root
        memory.rollback(6)
        assert memory.root == before.root
        assert memory.check() == []

    def test_nothing_to_restore_makes_no_commit(self, memory: Memory) -> None:
        memory.remember("one")
        assert memory.rollback(1) == recollect.Restored(seq=1, changed=0)
        assert memory.seq == 1

    def test_an_unknown_target_changes_nothing(self, memory: Memory) -> None:
        memory.remember("one")
        for target in (99, -1, "none", "0" * 64):
            with pytest.raises(UnknownTargetError):
                memory.rollback(target)
        with pytest.raises(UnknownTargetError):
            memory.rollback(index=99)
        with pytest.raises(InvalidArgumentError):
            memory.rollback()
        assert memory.seq == 1

    def test_no_quota_blocks_it_and_it_sweeps_nothing(self, tmp_path: Path) -> None:
        clock = TickingClock()
        with memory_on(SqliteStore(tmp_path / "a.db"), clock=clock) as memory:
            memory.remember_all([f"text {number}" for number in range(6)])
            full = memory.snapshot()
            memory.clear()
            memory.remember("due", id="due", ttl=60)
            memory.set_quota(records=2)
            clock.time += timedelta(hours=1)
            memory.rollback(full)
            assert memory.root == full.root
            with pytest.raises(QuotaError):
                memory.remember("one more")
            memory.rollback(3)  # with the record that has expired since
            assert memory.root == memory.at(3).root
            assert memory.count() == 0
            memory.remember("sweeps")
            assert [change.cause for change in memory.changes(memory.seq - 1)[0].changes] == ["written", "expired"]

    def test_a_rollback_of_a_random_history_is_exact_and_its_own_inverse(self, memory: Memory) -> None:
        rng = random.Random(3)
        states = [(memory.root, contents(memory))]
        for number in range(60):
            record_id = f"r{rng.randrange(8)}"
            if rng.random() < 0.25 and memory.get(record_id) is not None:
                memory.forget(record_id)
            elif rng.random() < 0.2:
                target = rng.randrange(len(states))
                memory.rollback(target)
                assert (memory.root, contents(memory)) == states[target]
            else:
                memory.remember(f"text {number}", id=record_id, if_exists="update", user=rng.choice(["ana", "ben"]))
            while len(states) <= memory.seq:
                states.append((memory.root, contents(memory)))
        assert memory.check() == []

    def test_a_scope_and_a_memory_of_the_past_cannot_roll_back(self, memory: Memory) -> None:
        memory.remember("one", user="ana")
        calls: tuple[Callable[[Memory], object], ...] = (
            lambda m: m.rollback(0),
            lambda m: m.revert(1),
            lambda m: m.snapshot(),
        )
        for call in calls:
            with pytest.raises(ScopeError):
                call(memory.scoped(user="ana"))
            with pytest.raises(ReadOnlyMemoryError):
                call(memory.at(1))
        assert memory.seq == 1


@pytest.mark.files
class TestDamage:
    def test_a_rollback_gives_back_what_is_intact_and_lists_the_rest(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"

        def text(name: str) -> str:
            return "".join(f"{name} line {number}\n" for number in range(1000))  # on pages of its own

        with recollect.open(path) as memory:
            for name in "abc":
                memory.remember(text(f"{name}-old"), id=name)
            before = memory.snapshot("before")
            for name in "ab":
                memory.update(name, content=text(f"{name}-new"))
            memory.forget("c")
        data = bytearray(path.read_bytes())
        for damaged in ("a-new line 700\n", "b-old line 700\n"):
            data[data.index(damaged.encode())] ^= 1
        path.write_bytes(data)
        with recollect.open(path) as memory:
            assert memory.check()
            with pytest.raises(DamagedStoreError):
                memory.get("a")
            restored = memory.rollback("before")
            assert (restored.changed, restored.damaged) == (2, ("b",))
            assert [memory.get(each).text for each in "ac"] == [text("a-old"), text("c-old")]  # type: ignore[union-attr]
            assert memory.get("b").text == text("b-new")  # type: ignore[union-attr]
            assert memory.root != before.root


class TestRevert:
    def test_it_takes_back_one_commit(self, memory: Memory) -> None:
        memory.remember("one", id="a")
        with memory.batch() as batch:
            batch.update("a", content="changed")
            batch.remember("two", id="b")
        memory.remember("three", id="c")
        restored = memory.revert(2, reason="not meant")
        assert (restored.changed, restored.conflicts, restored.seq) == (2, (), 4)
        assert {each: record.content for each, record in contents(memory).items()} == {"a": "one", "c": "three"}
        memory.revert(4)
        assert {each: record.content for each, record in contents(memory).items()} == {
            "a": "changed",
            "b": "two",
            "c": "three",
        }

    def test_what_was_changed_later_is_a_conflict_and_stays(self, memory: Memory) -> None:
        memory.remember_all([{"content": "one", "id": "a"}, {"content": "two", "id": "b"}])
        memory.update("a", content="changed")
        restored = memory.revert(1)
        assert (restored.changed, restored.conflicts) == (1, ("a",))
        assert [record.content for record in memory.find()] == ["changed"]
        with pytest.raises(UnknownTargetError):
            memory.revert(99)


class TestDiff:
    def test_it_lists_what_was_added_changed_and_removed(self, memory: Memory) -> None:
        memory.remember_all([{"content": "one", "id": "a"}, {"content": "two", "id": "b"}])
        before = memory.snapshot()
        memory.update("a", content="changed", importance=0.9)
        memory.forget("b")
        memory.remember("three", id="c")
        memory.remember("four", id="d")
        memory.forget("d")
        found = memory.diff(before)
        assert [record.id for record in found.added] == ["c"]
        assert [(each.id, each.before.content, each.after.content) for each in found.changed] == [
            ("a", "one", "changed")
        ]
        assert found.changed[0].fields == ("content", "importance")
        assert [record.id for record in found.removed] == ["b"]
        back = memory.diff(memory.seq, before)
        assert [record.id for record in back.added] == ["b"]
        assert [record.id for record in back.removed] == ["c"]
        assert not memory.diff(before, 1)
        assert bool(found)

    def test_it_is_the_same_by_the_tries_and_by_the_log(self, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = random.Random(5)
        memory.remember_all([{"content": f"text {number}", "id": f"r{number}"} for number in range(40)])
        for _ in range(60):
            record_id = f"r{rng.randrange(50)}"
            if rng.random() < 0.3 and memory.get(record_id) is not None:
                memory.forget(record_id)
            else:
                memory.remember(f"text {rng.randrange(3)}", id=record_id, if_exists="update")
        pairs = [(rng.randrange(62), rng.randrange(62)) for _ in range(30)]
        pairs = [pair for pair in pairs if max(pair) <= memory.seq]
        by_log = [memory.diff(*pair) for pair in pairs]
        monkeypatch.setattr("recollect.engine.history._MANY_CHANGES", 0)
        assert [memory.diff(*pair) for pair in pairs] == by_log
        for (old, new), found in zip(pairs, by_log, strict=True):
            before, after = contents(memory.at(old)), contents(memory.at(new))
            assert {each.id for each in found.added} == after.keys() - before.keys()
            assert {each.id for each in found.removed} == before.keys() - after.keys()
            assert {each.id for each in found.changed} == {
                each for each in before.keys() & after.keys() if before[each] != after[each]
            }

    def test_a_scope_sees_what_it_could_read_then(self, memory: Memory) -> None:
        memory.remember("of ana", id="a", user="ana", time=START)
        memory.remember("of ben", id="b", user="ben", time=START)
        memory.update("b", user="ana")
        memory.update("a", user="ben")
        scoped = memory.scoped(user="ana")
        times = [commit.time for commit in memory.changes()]
        found = scoped.diff(times[1])
        assert [record.id for record in found.added] == ["b"]
        assert [record.id for record in found.removed] == ["a"]
        assert not scoped.diff(times[0], times[1])


@pytest.mark.files
class TestCost:
    @pytest.mark.parametrize("undone", [0, 300])
    def test_it_depends_on_the_changes_and_not_on_the_size_of_the_memory(self, tmp_path: Path, undone: int) -> None:
        small, large = (self._cost(tmp_path / f"{size}.db", size, undone) for size in (300, 6000))
        for name in small:
            # The paths to the leaves are a little longer in a larger trie.
            assert large[name] <= small[name] * 1.25 + 50, name
        assert large["rows of a diff"] < 200
        assert large["rows of a rollback"] < 200 + 2 * undone
        assert large["rows of a snapshot"] < 30

    @staticmethod
    def _cost(path: Path, size: int, undone: int) -> dict[str, int]:
        with recollect.open(path, durability="normal") as memory:
            memory.remember_all({"content": f"fact {number}", "id": str(number)} for number in range(size))
            memory.snapshot("before")
            for number in range(undone):
                memory.update(str(number // 2), importance=None if number % 2 else 0.25)
            for number in range(10):
                memory.update(str(number), content=f"changed {number}")
            store = core_of(memory).store
            assert isinstance(store, SqliteStore)
            core_of(memory)._trimmer.close()  # its steps would count
            memory.diff(memory.seq)  # opens a connection for reading
            rows = Rows(store)
            cost: dict[str, int] = {}
            calls: dict[str, Callable[[], object]] = {
                "diff": lambda: memory.diff("before"),
                "snapshot": lambda: memory.snapshot("another"),
                "rollback": lambda: memory.rollback("before"),
            }
            for name, call in calls.items():
                rows.rows = rows.steps = 0
                assert call()
                cost |= {f"rows of a {name}": rows.rows, f"steps of a {name}": rows.steps}
            return cost


class TestHistory:
    def test_it_lists_every_version_with_its_commit_and_cause(self, memory: Memory) -> None:
        memory.remember("one", id="a")
        with memory.batch(actor="ana", reason="a reason") as batch:
            batch.update("a", content="two")
            batch.remember("other", id="b")
        memory.forget("a")
        memory.rollback(1)
        found = memory.history("a")
        assert [each.record.content if each.record else None for each in found] == ["one", "two", None, "one"]
        assert [each.cause for each in found] == ["written", "written", "forgotten", "rolled back"]
        assert [each.commit.seq for each in found] == [1, 2, 3, 4]
        assert (found[1].commit.actor, found[1].commit.reason, len(found[1].commit.changes)) == ("ana", "a reason", 1)
        assert not any(each.erased for each in found)
        assert memory.history("never") == []

    def test_a_scope_sees_the_versions_that_lay_in_it_and_not_who_made_them(self, memory: Memory) -> None:
        memory.scoped(user="ana").remember("mine", id="note")
        (stored,) = memory.find()
        memory.update(stored.id, content="still mine")
        memory.execute(recollect.operations.Update(id=stored.id, changes={"user": "ben"}), actor="admin")
        found = memory.scoped(user="ana").history("note")
        assert [each.record.id if each.record else None for each in found] == ["note", "note", None]
        assert {each.commit.actor for each in found} == {None}
        assert {each.commit.seq for each in found} == {0}
        assert memory.scoped(user="ben").history("note") == []


def test_an_expectation_on_a_rolled_back_record_is_met_by_its_old_hash(memory: Memory) -> None:
    old = memory.remember("one", id="a")
    new = memory.update("a", content="two")
    memory.rollback(1)
    with pytest.raises(ConflictError):
        memory.update("a", content="three", expect=new)
    memory.update("a", content="three", expect=old)
