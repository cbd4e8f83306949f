"""`--part` on the command line: each command that concerns all parts of a memory, and what it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import Run, parsed
from tests.engine.family import PARTS, counts, fill

import recollect


@pytest.fixture(autouse=True)
def path(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one of each, of Ana and of nobody: commits 1 to 5, and 6 to 10."""
    path = tmp_path / "a.db"
    monkeypatch.setenv("COLUMNS", "200")
    with recollect.open(path) as memory:
        fill(memory)
        fill(memory.scoped(user="ana"), "ana")
    return path


def now(path: Path) -> dict[str, int]:
    with recollect.open(path) as memory:
        return counts(memory)


CALLED = {
    "keys": "keyed entries",
    "nodes": "nodes of outlines",
    "sdrs": "texts with sparse codes",
    "terms": "terms of glossaries",
}
ALL = dict.fromkeys(PARTS, 2)


def test_a_part_that_there_is_not_is_an_error_of_every_command(run: Run, path: Path, tmp_path: Path) -> None:
    export = tmp_path / "a.jsonl"
    run("export", str(export))
    for command in (
        ("stats",),
        ("log",),
        ("diff", "3"),
        ("rollback", "3"),
        ("rollback", "3", "--dry-run"),
        ("forget", "--user", "ana", "--yes"),
        ("erase", "--user", "ana", "--yes"),
        ("erase", "a", "--yes"),
        ("export", str(tmp_path / "b.jsonl")),
        ("import", "jsonl", str(export)),
    ):
        said = run(*command, "--part", "outlines", code=1).stderr
        assert "must be some of records, keys, nodes, quarantined, sdrs, terms" in said, command
    assert now(path) == ALL
    assert not (tmp_path / "b.jsonl").exists()


def test_statistics_of_parts(run: Run) -> None:
    assert parsed(run("stats", "--json"))["parts"] == ALL
    assert parsed(run("stats", "--part", "keys", "--part", "terms", "--json"))["parts"] == {"keys": 2, "terms": 2}
    shown = run("stats").stdout
    assert all(called in shown for called in CALLED.values()), shown
    some = run("stats", "--part", "keys").stdout
    assert [part for part, called in CALLED.items() if called in some] == ["keys"]


def test_the_log_shows_the_part_of_each_change(run: Run) -> None:
    rows = [line.split() for line in run("log").stdout.splitlines()]
    shown = [(row[0], part) for row in rows for part in PARTS if part in row]
    # The second commit to the sparse codes changes the record that counts, too.
    assert {each for each in shown if each[0] in "12345"} == {(str(n), part) for n, part in enumerate(PARTS, 1)}
    assert {
        part for row in run("log", "--part", "keys").stdout.splitlines() for part in PARTS if f" {part} " in row
    } == {"keys"}
    assert [each["seq"] for each in parsed(run("log", "--part", "keys", "--part", "records", "--json"))] == [7, 6, 2, 1]
    assert [each["seq"] for each in parsed(run("log", "a", "--part", "keys", "--json"))] == [2]
    run("log", "nobody", "--part", "keys", code=1)


def test_a_difference_of_parts(run: Run) -> None:
    lines = run("diff", "5").stdout.splitlines()
    assert [line for line in lines if line.endswith(":")] == [f"{called}:" for called in CALLED.values()]
    some = run("diff", "5", "--part", "keys").stdout
    assert some.startswith("keyed entries:\n+ ")
    assert len(some.splitlines()) == 2
    assert set(parsed(run("diff", "5", "--part", "keys", "--part", "terms", "--json"))["parts"]) == {"keys", "terms"}
    assert "no differences" in run("diff", "7", "--part", "keys").stderr


def test_a_rollback_of_parts(run: Run, path: Path) -> None:
    assert "keyed entries:" in run("rollback", "5", "--dry-run", "--part", "keys").stdout
    assert now(path) == ALL
    said = run("rollback", "5", "--part", "keys").stdout
    assert "1 keyed entries" in said
    assert "the newest commit is 11" in said
    assert "recollect rollback 10" in said
    assert now(path) == {**ALL, "keys": 1}
    done = parsed(run("rollback", "10", "--json"))
    assert (done["changed"], done["parts"]["keys"]["changed"]) == (0, 1)
    assert now(path) == ALL
    run("rollback", "0")
    assert now(path) == dict.fromkeys(PARTS, 0)
    run("revert", "13")
    assert now(path) == ALL


def test_forgetting_in_parts(run: Run, path: Path) -> None:
    assert "confirm with --yes" in run("forget", "--user", "ana", "--part", "keys", code=2).stderr
    assert "forgotten: 1 keyed entries" in run("forget", "--user", "ana", "--part", "keys", "--yes").stdout
    done = parsed(run("forget", "--user", "ana", "--yes", "--json"))
    assert done == {"forgotten": 4, "parts": {"records": 1, "nodes": 1, "sdrs": 1, "terms": 1}}
    assert now(path) == {**dict.fromkeys(PARTS, 1)}
    assert run("forget", "--user", "ana", "--yes").stdout == "forgotten: 0\n"
    run("forget", "a", "--part", "keys", code=2)


def test_erasing_in_parts(run: Run, path: Path) -> None:
    assert "1 records" in run("erase", "--user", "ana", "--part", "keys", "--yes").stdout
    done = run("erase", "--user", "ana", "--yes").stdout
    assert "erased: 1 records" in done
    assert "erased of other parts: 1 nodes of outlines, 1 texts with sparse codes, 1 terms of glossaries" in done
    assert now(path) == dict.fromkeys(PARTS, 1)
    run("erase", "--user", "ana", "--part", "keys", "--part", "terms", "--yes", code=1)
    with recollect.open(path) as memory:
        memory.keyed.write("a long name", b"x")
    assert parsed(run("erase", "a", "--part", "keys", "--yes", "--json"))["ids"] == ["a"]
    assert now(path) == dict.fromkeys(PARTS, 1), "the record with this id is there"
    assert parsed(run("log", "a lon", "--part", "keys", "--json"))[0]["seq"] > 10, "the beginning of an id in the part"
    assert (
        "no record 'b lon' in namespace 'default'\n" in run("erase", "b lon", "--part", "keys", "--yes", code=1).stderr
    )
    run("erase", "a lon", "--part", "keys", "--yes")
    assert now(path) == {**dict.fromkeys(PARTS, 1), "keys": 0}
    assert "must be one part" in run("erase", "a", "--part", "keys", "--part", "records", "--yes", code=1).stderr


def test_exporting_and_importing_parts(run: Run, path: Path, tmp_path: Path) -> None:
    whole, some, none = (str(tmp_path / name) for name in ("a.jsonl", "b.jsonl", "c.jsonl"))
    assert run("export", whole).stdout.strip() == (
        f"{whole}: 2 records, 2 keyed entries, 2 nodes of outlines, 4 texts with sparse codes, 2 terms of glossaries"
    )
    done = parsed(run("export", some, "--part", "terms", "--part", "keys", "--json"))
    assert done == {"path": some, "records": 0, "parts": {"keys": 2, "terms": 2}}
    target = ("--db", str(tmp_path / "b.db"))
    said = run("import", "jsonl", some, *target).stdout
    assert "4 remembered" in said
    assert "contents: 2 keyed entries, 2 terms of glossaries" in said
    assert now(tmp_path / "b.db") == {**dict.fromkeys(PARTS, 0), "keys": 2, "terms": 2}
    report = parsed(run("import", "jsonl", whole, "--part", "sdrs", "--part", "records", *target, "--json"))
    assert (report[0]["parts"], report[0]["roots"]) == ({"records": 2, "sdrs": 4}, {"default": True})
    with recollect.open(path) as one:
        root = one.root
    run("import", "jsonl", whole, *target)
    with recollect.open(tmp_path / "b.db") as other:
        assert other.root == root
    run("export", none, "--part", "keys", "--db", str(tmp_path / "b.db"), "-n", "empty")
    run("import", "jsonl", none, *target)
    assert "records only" in run("export", none, "--format", "mcp-memory", "--part", "keys", code=1).stderr
    assert "records only" in run("import", "text", none, "--part", "keys", code=1).stderr
    past = parsed(run("export", whole, "--at", "5", "--json"))
    assert past["parts"] == {"records": 1, "keys": 1, "nodes": 1, "sdrs": 2, "terms": 1}
