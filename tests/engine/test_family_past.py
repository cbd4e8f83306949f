"""The past of all parts of a memory: moments, rollbacks, reverts, and what was erased."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.engine.family import PARTS, changed, counts, fill, ids, roots, write

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.errors import InvalidArgumentError, StoreFullError
from recollect.ledger import merkle
from recollect.operations import Update
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import memory_on
from recollect.testing.faults import FaultyStore, SteppedStore
from recollect.testing.loopback import beside, core_of

#: The root of a part without records.
EMPTY = merkle.EMPTY.hex()
on_all = pytest.mark.stores("memory", "sqlite", "loopback")
START = datetime(2026, 3, 1, tzinfo=UTC)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def read(memory: Memory) -> dict[str, Any]:
    """Return what the reading calls on all parts give, without what has no history."""
    stats: Any = memory.stats()
    stats.pop("store")
    with memory.open_export() as export:
        records = [export.root, *(each.to_json() for each in export.records)]
        others = [[each.name, each.root, *(record.to_json() for record in each.records)] for each in export.parts]
    return {
        "stats": stats,
        "changes": [each.to_json() for each in memory.changes()],
        "keys": [each.to_json() for each in memory.changes(parts=["keys"])],
        "log": [each.to_json() for each in memory.log(3, parts=["terms", "nodes"])],
        "export": [records, others],
        "head": memory.head(),
    }


@on_all
def test_a_past_moment_gives_what_the_calls_gave_then(memory: Memory) -> None:
    moments = [(0, read(memory))]
    for name in "ab":
        for part in PARTS:
            write(memory, part, name)
            moments.append((memory.seq, read(memory)))
    memory.snapshot("full")
    memory.clear(parts=["keys", "sdrs"])
    moments.append((memory.seq, read(memory)))
    memory.rollback(3)
    moments.append((memory.seq, read(memory)))
    for seq, then in moments:
        past = memory.at(seq)
        assert read(past) == then, seq
        for part in PARTS:
            with past.open_export(parts=[part]) as export:
                is_there = part != "records" and part in past.head().parts
                assert [each.name for each in export.parts] == ([part] if is_there else [])
            assert past.stats(parts=[part])["parts"].get(part, 0) == then["stats"]["parts"].get(part, 0)
    assert read(memory.at("full")) == dict(moments)[10]
    for (old, before), (new, after) in pairwise(moments):
        differs = {part for part, each in memory.diff(old, new).each() if each.added or each.changed or each.removed}
        heads = before["head"].parts, after["head"].parts
        assert differs == {part for part in PARTS if (heads[0].get(part) or EMPTY) != (heads[1].get(part) or EMPTY)}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_snapshot_is_what_it_was_where_the_clock_has_gone_back_since(kind: str, tmp_path: Path) -> None:
    clock = Clock()
    store: Any = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "a.db")
    memory = memory_on(store, clock=clock)
    fill(memory)
    clock.now += timedelta(days=2)
    snapshot = memory.snapshot("kept")
    then = counts(memory)
    if kind == "sqlite":
        memory.close()
        store = SqliteStore(tmp_path / "a.db")
    memory = memory_on(store, clock=clock)
    clock.now -= timedelta(days=1)
    fill(memory, "b")
    assert memory.at("kept").stats()["parts"] == then
    assert memory.at("kept").keyed.keys() == ["a"]
    assert {part for part, each in memory.diff("kept").each() if each.added} == set(PARTS)
    memory.rollback("kept")
    assert counts(memory) == then
    assert roots(memory)["keys"] == memory.at("kept").head().parts["keys"]
    assert memory.at("kept").root == snapshot.root
    memory.close()


@on_all
@pytest.mark.parametrize("parts", [None, ["keys"], ["records"], ["terms", "records"]], ids=str)
def test_a_rollback_is_one_commit_that_restores_the_parts_and_can_be_taken_back(
    memory: Memory, parts: list[str] | None
) -> None:
    fill(memory)
    target, before = memory.seq, roots(memory)
    fill(memory, "b")
    memory.keyed.write("a", b"changed")
    memory.forget("a")
    seq, after, whole = memory.seq, roots(memory), memory.root
    done = memory.rollback(target, parts=parts, actor="ana", reason="a mistake")
    assert (done.seq, memory.seq) == (seq + 1, seq + 1)
    own = set(PARTS if parts is None else parts)
    # The highest number of a sparse code that was given stays, so that no number is given twice.
    restored = {part for part in own if part != "sdrs"}
    assert {part for part, root in roots(memory).items() if root == before[part]} == restored
    assert {part for part, root in roots(memory).items() if root == after[part]} == set(PARTS) - own
    assert ids(memory, "sdrs") == (["1"] if "sdrs" in own else ["1", "2"])
    (commit,) = memory.changes(since=seq)
    assert set(changed([commit])[0]) == own
    assert {each.cause for one in (commit, *commit.part_commits) for each in one.changes} == {"rolled back"}
    notes = [(one.actor, one.reason) for one in (commit, *commit.part_commits) if one.changes]
    assert set(notes) == {("ana", "a mistake")}
    memory.rollback(seq)
    assert (memory.root, roots(memory), memory.check()) == (whole, after, [])
    assert memory.rollback(seq) == recollect.Restored(seq=memory.seq, changed=0)


@on_all
def test_a_rollback_counts_what_it_restores_in_each_part(memory: Memory) -> None:
    fill(memory)
    target = memory.seq
    memory.clear()
    done = memory.rollback(target)
    assert {part: each.changed for part, each in done.each()} == dict.fromkeys(PARTS, 1)
    assert done.changed == 1
    assert counts(memory) == dict.fromkeys(PARTS, 1)
    assert memory.keyed.read("a") == b"a"
    assert [each["id"] for each in memory.sdr.texts()] == [1]
    assert memory.outline.get("node a") is not None
    assert [each["key"] for each in memory.glossary.list_all("bot")] == ["term a"]


@on_all
def test_the_number_of_a_sparse_code_never_comes_back(memory: Memory) -> None:
    first = memory.sdr.store("one")
    second = memory.sdr.store("two")
    memory.clear()
    third = memory.sdr.store("three")
    memory.rollback(0)
    assert memory.sdr.texts() == []
    fourth = memory.sdr.store("four")
    memory.clear(parts=["sdrs"])
    memory.forget_where(f.everything(), parts=["sdrs"])
    memory.erase(f.everything())
    assert [first, second, third, fourth, memory.sdr.store("five")] == [1, 2, 3, 4, 5]


@on_all
def test_a_revert_takes_back_the_commits_to_parts_that_a_commit_follows(memory: Memory) -> None:
    fill(memory)
    before = roots(memory)
    memory.clear()
    cleared = memory.seq
    memory.keyed.write("a", b"later")
    done = memory.revert(cleared)
    assert done.parts["keys"].conflicts == ("a",)
    assert {part: each.changed for part, each in done.each()} == {**dict.fromkeys(PARTS, 1), "keys": 0}
    assert {**roots(memory), "keys": ""} == {**before, "keys": ""}
    assert memory.keyed.read("a") == b"later"
    # A commit to one facet.
    memory.keyed.write("b", b"x")
    assert memory.revert(memory.seq).parts["keys"].changed == 1
    assert memory.keyed.read("b") is None
    # A rollback.
    state = memory.root
    memory.rollback(0)
    assert memory.revert(memory.seq).seq == memory.seq
    assert memory.root == state
    assert memory.check() == []


@on_all
def test_what_was_erased_is_listed_by_part_and_stays_erased(memory: Memory) -> None:
    fill(memory.scoped(user="ana"), "ana")
    fill(memory)
    target = memory.seq
    before = {part: set(ids(memory, part)) for part in PARTS}
    memory.erase(f.user("ana"))
    gone = {part: tuple(sorted(before[part] - set(ids(memory, part)))) for part in PARTS}
    assert all(len(each) == 1 for each in gone.values())
    memory.keyed.write("a", b"changed")
    done = memory.rollback(target)
    assert {part: each.erased for part, each in done.each()} == gone
    assert (done.changed, done.parts["keys"].changed) == (0, 1)
    assert memory.scoped(user="ana").stats()["parts"] == {"records": 0}
    found = memory.diff(target)
    assert {part: each.erased for part, each in found.each()} == gone
    assert memory.check() == []


@pytest.mark.in_process
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize(
    "call",
    [
        lambda memory: memory.rollback(5),
        lambda memory: memory.clear(),
        lambda memory: memory.forget_where(f.everything()),
        lambda memory: memory.revert(6),
    ],
    ids=["rollback", "clear", "forget_where", "revert"],
)
def test_of_a_change_of_all_parts_that_fails_nothing_is_seen(
    kind: str, call: Callable[[Memory], Any], tmp_path: Path
) -> None:
    """At every step of the transaction."""

    def made(number: int) -> Any:
        return MemoryStore() if kind == "memory" else SqliteStore(tmp_path / f"{number}.db")

    def prepared(store: Any) -> Memory:
        memory = memory_on(store, clock=Clock())
        fill(memory)
        memory.clear()
        fill(memory, "b")
        return memory

    with prepared(SteppedStore(made(0), lambda number, name: None)) as memory:
        store: Any = core_of(memory).store
        before = store.steps
        call(memory)
        steps, done = store.steps - before, read(memory)["export"]
    assert steps > 10
    for number in range(1, steps + 1):
        if kind == "sqlite" and number % 7:
            continue
        with prepared(faulty := FaultyStore(made(number), fail_at=before + number)) as memory:
            state, head = read(memory), memory.head()
            with pytest.raises(StoreFullError):
                call(memory)
            assert faulty.failed_in is not None
            assert memory.head() == head
            assert read(memory) == state
            assert memory.check() == []
            call(memory)
            assert read(memory)["export"] == done
            assert memory.check() == []


@on_all
def test_only_the_memory_itself_has_parts(memory: Memory) -> None:
    fill(memory)
    keys = beside(memory, "keys")
    for call in (keys.stats, keys.changes, keys.clear):
        with pytest.raises(InvalidArgumentError, match="this is one of its parts"):
            call(parts=["keys"])
    assert keys.stats()["parts"] == {"keys": 1}
    assert keys.clear().parts == {"keys": 1}
    assert counts(memory) == {**dict.fromkeys(PARTS, 1), "keys": 0}


@on_all
@pytest.mark.parametrize("erased", [{"parts": ["keys"]}, {"parts": ["records"]}, {}], ids=str)
def test_what_is_redacted_leaves_no_reason_in_any_commit_of_its_transaction(memory: Memory, erased: Any) -> None:
    """Each part of a change of several has a commit of its own, and all of them state the reason."""
    memory.remember("of Bo", id="bo", user="bo")
    memory.remember("of Ana", id="ana", user="ana")
    memory.scoped(user="ana").keyed.write("plan", b"of Ana")
    memory.scoped(user="bo").keyed.write("plan", b"of Bo")
    target = memory.seq
    memory.rollback(0, actor="clerk", reason="as Ana has asked")
    memory.rollback(target, actor="clerk", reason="another reason")
    kept = memory.remember("later", id="later")
    memory.execute(Update(id="later", changes={"importance": 1.0}), reason="of no one")
    memory.erase(f.user("ana"), redact=True, **erased)
    notes = {(each.actor, each.reason) for commit in memory.changes() for each in (commit, *commit.part_commits)}
    assert notes == {(None, None), (None, "of no one")}
    assert (memory.check(), kept.id) == ([], "later")
