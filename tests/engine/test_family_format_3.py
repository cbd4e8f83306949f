"""All parts of a memory in a store of format 3, whose log does not state what facets keep."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.family import CALLS, PARTS, changed, counts, fill, ids, roots, write
from tests.paths import GOLDEN

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.errors import InvalidArgumentError
from recollect.importers import import_path, write_jsonl
from recollect.ledger.commits import Branch
from recollect.testing.loopback import core_of

#: The commits and the live records that the store of the golden file has.
COMMITS, LIVE = 11, 9


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    path = tmp_path / "a.db"
    shutil.copy(GOLDEN / "format-3.db", path)
    with recollect.open(path) as memory:
        yield memory
        assert memory.check() == []
        assert memory.stats()["store"]["format"] == 3, "it was not migrated"


def test_statistics_count_each_part(memory: Memory) -> None:
    assert memory.stats()["parts"] == {"records": LIVE}
    fill(memory)
    assert memory.stats()["parts"] == {**dict.fromkeys(PARTS, 1), "records": LIVE + 1}
    assert memory.stats(parts=["keys", "terms"])["parts"] == {"keys": 1, "terms": 1}
    assert memory.at(COMMITS).stats()["parts"] == {"records": LIVE}


def test_the_log_has_no_commits_to_other_parts(memory: Memory) -> None:
    fill(memory)
    memory.clear(parts=["keys"])
    assert memory.seq == COMMITS + 1
    assert [each for commit in memory.changes() for each in (*commit.part_commits, *(commit.parts or ()))] == []
    assert memory.changes(parts=["keys"]) == []
    assert len(memory.changes(parts=["records"])) == len(memory.changes()) == COMMITS + 1
    assert memory.revert(COMMITS + 1).parts == {}
    assert ids(memory, "nodes") != []


@pytest.mark.parametrize("call", CALLS)
def test_unknown_parts_are_refused(memory: Memory, call: str) -> None:
    with pytest.raises(InvalidArgumentError, match="must be some of records, keys, nodes, quarantined, sdrs, terms"):
        CALLS[call](memory, ["outlines"])


def test_clearing_forgetting_and_erasing_reach_the_parts(memory: Memory) -> None:
    for user in ("zoe", "bo"):
        fill(memory.scoped(user=user), user)
    before = memory.stats()["parts"]
    assert memory.forget_where(user="zoe").parts == dict.fromkeys(PARTS, 1)
    done = memory.erase(f.user("zoe"))
    assert (len(done.ids), done.parts) == (1, dict.fromkeys(PARTS[1:], 1))
    assert memory.stats()["parts"] == {part: count - 1 for part, count in before.items()}
    assert memory.clear().parts == {**dict.fromkeys(PARTS, 1), "records": before["records"] - 1}
    assert memory.stats()["parts"] == {"records": 0}


def test_a_rollback_restores_all_parts_by_time_and_can_be_taken_back(memory: Memory) -> None:
    write(memory, "keys", "a")
    fill(memory, "b")
    write(memory, "records", "middle")  # what is at this moment is known by its time
    target, then, before = memory.seq, counts(memory), {part: ids(memory, part) for part in PARTS}
    memory.keyed.write("a", b"changed")
    fill(memory, "c")
    write(memory, "records", "last")
    late, after = memory.seq, {part: ids(memory, part) for part in PARTS}
    found = memory.diff(target)
    assert {part: len([each for each in one.added if each.kind != "sdr_counter"]) for part, one in found.each()} == {
        **dict.fromkeys(PARTS, 1),
        "records": 2,
    }
    done = memory.rollback(target)
    assert {part: each.changed for part, each in done.each()} == {**dict.fromkeys(PARTS, 1), "records": 2, "keys": 2}
    assert ({part: ids(memory, part) for part in PARTS}, counts(memory)) == (before, then)
    assert memory.keyed.read("a") == b"a"
    assert memory.changes(parts=["keys"]) == []
    memory.rollback(late, parts=["keys"])
    assert (ids(memory, "keys"), ids(memory, "nodes")) == (after["keys"], before["nodes"])
    memory.rollback(late)
    assert {part: ids(memory, part) for part in PARTS} == after
    assert memory.keyed.read("a") == b"changed"
    assert memory.sdr.store("new") == 3


def test_an_export_of_all_parts_is_imported_into_a_store_of_the_newest_format_and_back(
    memory: Memory, tmp_path: Path
) -> None:
    fill(memory)
    memory.keyed.write("#", b"\xff\x00")
    path = tmp_path / "export.jsonl"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        written = write_jsonl(memory, file)
    assert written.parts == {"records": LIVE + 1, "keys": 2, "nodes": 1, "sdrs": 2, "terms": 1}
    with recollect.open(tmp_path / "new.db") as new:
        report = import_path(new, "jsonl", path)
        assert (report.roots, report.parts) == ({"default": True}, written.parts)
        with core_of(memory).store.read() as view:
            for part in PARTS[1:]:
                assert view.head(Branch("default").reserved(part)).root.hash.hex() == roots(new)[part]
        again = io.StringIO()
        write_jsonl(new, again)
        assert again.getvalue() == path.read_text(encoding="utf-8")
    assert import_path(memory, "jsonl", path).unchanged == sum(written.parts.values())


def test_the_first_commit_after_a_migration_is_only_itself_where_the_memory_had_none(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    shutil.copy(GOLDEN / "format-3.db", path)
    with recollect.open(path, namespace="terms-only") as memory:
        write(memory, "terms", "old")
        write(memory, "terms", "older")
        before = ids(memory, "terms")
    recollect.migrate(path)
    with recollect.open(path, namespace="terms-only") as memory:
        assert memory.seq == 0
        write(memory, "terms", "new")
        [commit] = memory.changes()
        [own] = commit.part_commits
        assert (commit.seq, own.part, own.seq, len(own.changes)) == (1, "terms", 3, 1)
        assert memory.revert(1).parts["terms"].changed == 1
        assert ids(memory, "terms") == before
        assert memory.check() == []


def test_a_store_that_is_migrated_goes_on_with_commits_to_its_parts(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    shutil.copy(GOLDEN / "format-3.db", path)
    with recollect.open(path) as memory:
        fill(memory)
        seq, before = memory.seq, {part: ids(memory, part) for part in PARTS}
    recollect.migrate(path)
    with recollect.open(path) as memory:
        migrated = memory.snapshot("migrated").seq  # which has a time; the commits before state no parts
        fill(memory, "b")
        memory.keyed.write("a", b"changed")
        found = [each for each in changed(memory.changes(since=migrated)) if each]
        assert found == [*[(part,) for part in PARTS], ("keys",)]
        assert [each.part_commits for each in memory.changes(parts=["records"]) if each.seq <= seq] == [()] * seq
        memory.rollback("migrated")
        assert {part: ids(memory, part) for part in PARTS} == before
        assert memory.keyed.read("a") == b"a"
        assert memory.at("migrated").stats()["parts"] == memory.stats()["parts"]
        assert memory.check() == []
