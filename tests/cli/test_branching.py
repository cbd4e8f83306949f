"""`recollect branch` and `--branch` (docs/branches.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import Run, parsed

import recollect


@pytest.fixture
def branched(run: Run) -> Run:
    """A store with a branch that has changed what main has."""
    run("remember", "Ana lives in Bergen", "--id", "home")
    run("branch", "new", "what-if")
    run("update", "home", "--content", "Ana lives in Oslo", "--branch", "what-if")
    return run


def test_every_command_reads_and_writes_the_branch_that_is_named(branched: Run) -> None:
    assert "Oslo" in branched("recall", "Where does Ana live?", "--branch", "what-if").output
    assert "Bergen" in branched("recall", "Where does Ana live?").output
    assert "Oslo" in branched("--branch", "what-if", "get", "home").output
    assert parsed(branched("stats", "--json", "--branch", "what-if"))["seq"] == 2
    assert branched("find", "--branch", "none", code=1).stderr.startswith("error: namespace 'default' has no branch")


def test_branches_are_listed_and_dropped(branched: Run) -> None:
    assert "what-if       2  main, commit 1" in branched("branch", "list").output
    found = parsed(branched("branch", "list", "--sizes", "--json"))
    assert [(each["name"], each["seq"], each["records"]) for each in found] == [("main", 1, 1), ("what-if", 2, 1)]
    made = branched("branch", "new", "again", "--at", "0", "--branch", "what-if").output
    assert made == "created: branch 'again' continues 'main' after commit 0\n"
    assert branched("branch", "drop", "what-if").output == "dropped: branch 'what-if', which had 2 commits\n"
    assert branched("branch", "drop", "what-if", code=1).stderr


def test_a_merge_is_tried_and_done(branched: Run) -> None:
    assert branched("branch", "merge", "what-if", "--dry-run").output == "would be merged: 1 taken, 0 joined, 0 kept\n"
    done = branched("branch", "merge", "what-if", "--reason", "she has moved").output
    assert done == "merged in commit 2: 1 taken, 0 joined, 0 kept\n"
    assert "she has moved" in branched("log").output
    assert branched("branch", "merge", "what-if").output.startswith("nothing to merge")
    assert branched("branch", "merge", "what-if", "--dry-run").output.startswith("nothing to merge")


def test_conflicts_are_shown_and_decided(branched: Run) -> None:
    branched("update", "home", "--content", "Ana lives in Rome")
    shown = branched("branch", "merge", "what-if", code=1).output
    assert shown.splitlines() == [
        "conflict: home (content)",
        "  base    Ana lives in Bergen",
        "  ours    Ana lives in Rome",
        "  theirs  Ana lives in Oslo",
        "nothing was merged: 1 conflicts (--resolve ID=ours, or --on-conflict)",
    ]
    conflicts = parsed(branched("branch", "merge", "what-if", "--json", code=1))["conflicts"]
    assert conflicts[0]["theirs"]["content"] == "Ana lives in Oslo"
    branched("branch", "merge", "what-if", "--resolve", "home", code=2)
    branched("branch", "merge", "what-if", "--resolve", "none=ours", code=1)
    assert branched("branch", "merge", "what-if", "--resolve", "home=both").output.startswith("merged in commit 3")
    assert "home~what-if" in branched("find").output


def test_a_rule_decides_conflicts(branched: Run) -> None:
    branched("update", "home", "--content", "Ana lives in Rome")
    branched("branch", "merge", "what-if", "--on-conflict", "theirs")
    assert "Oslo" in branched("get", "home").output


def test_a_server_has_all_branches_and_takes_no_option(branched: Run) -> None:
    assert "name one in each call" in branched("serve", "--branch", "what-if", code=1).stderr


def test_an_export_and_an_import_are_of_a_branch(branched: Run, tmp_path: Path) -> None:
    branched("export", str(tmp_path / "a.jsonl"), "--branch", "what-if")
    assert "Oslo" in (tmp_path / "a.jsonl").read_text()
    with recollect.open(tmp_path / "b.db") as memory:
        memory.branch("into")
    branched("import", "jsonl", str(tmp_path / "a.jsonl"), "--db", str(tmp_path / "b.db"), "--branch", "into")
    with recollect.open(tmp_path / "b.db") as memory:
        assert (memory.count(), memory.on("into").count()) == (0, 1)
