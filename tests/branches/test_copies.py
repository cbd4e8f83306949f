"""Copies, backups and exports of stores with branches."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect
from recollect.stores.maintenance.copying import copy_store
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base.checksums import connect
from recollect.testing import memory_on


def grown(memory: recollect.Memory) -> None:
    """A memory with branches that are written, not written, nested, merged and dropped, and with an erasure."""
    for number in range(6):
        memory.remember(f"note {number}", id=f"n{number}")
    memory.keyed.write("k", b"1")
    one, unwritten = memory.branch("one"), memory.branch("unwritten", at=4)
    one.update("n1", content="changed")
    one.keyed.write("k", b"2")
    two = one.branch("two")
    two.forget("n2")
    memory.remember("more", id="m")
    memory.erase("n0", redact=True)
    memory.merge_branch("one", on_conflict="theirs")
    memory.branch("gone").remember("x")
    memory.drop_branch("gone")
    one.snapshot("mark")
    assert unwritten.count() == 3


def state(memory: recollect.Memory) -> object:
    out = []
    for info in memory.branches():
        branch = memory.on(info.name)
        heads = [(each.seq, each.entry) for each in branch.log()]
        out.append((info, branch.root, heads, branch.find(order="id"), branch.keyed.read("k"), branch.snapshots()))
    return out


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_copy_has_all_branches_and_is_continued(tmp_path: Path, kind: str) -> None:
    source = SqliteStore(str(tmp_path / "a.db"))
    target = MemoryStore() if kind == "memory" else SqliteStore(str(tmp_path / "b.db"))
    memory, copy = memory_on(source), memory_on(target)
    grown(memory)
    report = copy_store(source, target)
    assert state(copy) == state(memory)
    assert target.check() == []
    assert report.there == 0
    memory.on("unwritten").remember("written now")
    memory.on("two").branch("three").remember("deep")
    memory.on("two").remember("y")
    copy_store(source, target)
    assert state(copy) == state(memory)
    memory.drop_branch("three")
    memory.drop_branch("unwritten")
    copy_store(source, target)
    assert state(copy) == state(memory)
    assert target.check() == []
    again = copy_store(source, target)
    assert again.commits == 0
    memory.close()
    copy.close()


def test_a_backup_is_verified_and_restored_with_its_branches(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        grown(memory)
        expected = state(memory)
        memory.backup(str(tmp_path / "a.backup"), verify=True)
    recollect.restore(tmp_path / "a.backup", tmp_path / "b.db")
    with recollect.open(tmp_path / "b.db") as memory:
        assert state(memory) == expected
        assert memory.check() == []


def test_damage_of_what_a_branch_continues_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        grown(memory)
    for change, message in (
        ("UPDATE branches SET base_seq = base_seq - 1 WHERE name = 'two'", "branch 'two'"),
        ("UPDATE branches SET base_branch = NULL, base_seq = NULL WHERE name = 'two'", "branch 'two'"),
        ("DELETE FROM heads WHERE branch = (SELECT max(number) FROM branches WHERE name = 'one')", "branch 'one'"),
    ):
        broken = tmp_path / "broken.db"
        broken.write_bytes(path.read_bytes())
        connection = connect(str(broken))
        connection.execute(change).fetchall()
        connection.close()
        with recollect.open(broken) as memory:
            assert any(message in problem for problem in memory.check()), change


def test_an_export_has_one_branch(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        grown(memory)
        with memory.on("two").open_export() as export:
            assert [record.id for record in export.records] == ["n1", "n3", "n4", "n5"]


def test_a_rescue_saves_every_branch(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        grown(memory)
        expected = state(memory)
    report = recollect.rescue(path, tmp_path / "new.db")
    assert report.lost == ()
    assert all(each.same_root and not each.without_history for each in report.branches.values())
    with recollect.open(tmp_path / "new.db") as memory:
        assert state(memory) == expected
        assert memory.check() == []
        with pytest.raises(recollect.errors.BranchExistsError):
            memory.branch("gone")


def test_a_rescue_saves_the_records_of_a_branch_that_has_lost_its_first_commits(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        grown(memory)
        memory.on("one").remember("Cy sails", id="sails")
        expected = {each.id: each.content for each in memory.on("one").find(limit=None)}
    connection = connect(str(path))
    number = "(SELECT number FROM branches WHERE name = 'one' ORDER BY number DESC LIMIT 1)"
    connection.execute(f"DELETE FROM commits WHERE branch = {number} AND seq = 9").fetchall()
    connection.close()
    report = recollect.rescue(path, tmp_path / "new.db")
    assert report.lost
    with recollect.open(tmp_path / "new.db") as memory:
        branch = memory.on("one")
        assert {each.id: each.content for each in branch.find(limit=None)} == expected
        assert memory.check() == []
