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
    assert branched("branch", "drop", "what-if").output == "dropped: branch 'what-if', whose newest commit was 2\n"
    assert branched("branch", "drop", "what-if", code=1).stderr


def test_a_merge_is_tried_and_done(branched: Run) -> None:
    assert branched("branch", "merge", "what-if", "--dry-run").output == "would be merged: 1 taken, 0 joined, 0 kept\n"
    done = branched("branch", "merge", "what-if", "--reason", "she has moved").output
    assert done == "merged in commit 2: 1 taken, 0 joined, 0 kept\n"
    assert "she has moved" in branched("log").output
    assert branched("branch", "merge", "what-if").output.startswith("nothing to merge")
    assert branched("branch", "merge", "what-if", "--dry-run").output.startswith("nothing to merge")


def test_a_branch_is_compared(branched: Run) -> None:
    shown = branched("branch", "diff", "what-if").output.splitlines()
    assert shown == ["- home  Ana lives in Bergen", "+ home  Ana lives in Oslo"]
    assert (
        parsed(branched("branch", "diff", "what-if", "--json"))["changed"][0]["after"]["content"] == "Ana lives in Oslo"
    )
    branched("branch", "merge", "what-if")
    assert branched("branch", "diff", "what-if").stderr == "no differences\n"


def test_conflicts_are_shown_and_decided(branched: Run) -> None:
    branched("update", "home", "--content", "Ana lives in Rome")
    shown = branched("branch", "merge", "what-if", code=1).output
    assert shown.splitlines() == [
        "conflict: home (content)",
        "  base    Ana lives in Bergen",
        "  ours    Ana lives in Rome",
        "  theirs  Ana lives in Oslo",
        "nothing was merged; conflicts: 1 (--resolve ID=ours, or --on-conflict)",
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


@pytest.fixture
def copied(run: Run, tmp_path: Path) -> str:
    """The path of a copy of a store, which has changed a record and stored one since."""
    run("remember", "Ana lives in Bergen", "--id", "home")
    path = str(tmp_path / "laptop.db")
    run("backup", path)
    run("update", "home", "--content", "Ana lives in Oslo", "--db", path)
    run("remember", "Cy sails", "--id", "sail", "--db", path)
    return path


def test_a_copy_is_merged_by_its_path(run: Run, copied: str) -> None:
    run("remember", "Bo likes tea", "--id", "tea")
    assert run("branch", "merge", copied, "--reason", "back home").output.splitlines() == [
        "default: branch 'laptop' has the commits of the copy: 2 more",
        "default: into branch 'main':",
        "merged in commit 3: 2 taken, 0 joined, 0 kept",
    ]
    assert "back home" in run("log").output
    assert run("branch", "merge", copied).output == "nothing to merge: this store has all that the copy has\n"
    assert parsed(run("branch", "merge", copied, "--json")) == []
    run("forget", "sail", "--db", copied)
    [done] = parsed(run("branch", "merge", copied, "--json"))
    assert (done["branch"], done["into"], done["commits"], done["merged"]["taken"]) == ("laptop", "main", 1, 1)


def test_conflicts_of_a_copy_are_shown_and_decided(run: Run, copied: str) -> None:
    run("update", "home", "--content", "Ana lives in Rome")
    shown = run("branch", "merge", copied, "--device", "my laptop", code=1).output.splitlines()
    assert shown[-1] == "decide with: recollect branch merge 'my laptop' --resolve ID=ours"
    run("branch", "merge", "my laptop", "--resolve", "home=theirs")
    assert "Oslo" in run("get", "home").output


def test_a_merge_of_a_copy_refuses_the_options_of_a_branch(branched: Run, copied: str) -> None:
    for option in (["--dry-run"], ["--resolve", "home=ours"], ["--branch", "what-if"]):
        assert f"{option[0]} is for a merge of a branch" in branched("branch", "merge", copied, *option, code=2).stderr
    assert "--device is for a copy" in branched("branch", "merge", "what-if", "--device", "x", code=2).stderr


def test_an_export_and_an_import_are_of_a_branch(branched: Run, tmp_path: Path) -> None:
    branched("export", str(tmp_path / "a.jsonl"), "--branch", "what-if")
    assert "Oslo" in (tmp_path / "a.jsonl").read_text()
    with recollect.open(tmp_path / "b.db") as memory:
        memory.branch("into")
    branched("import", "jsonl", str(tmp_path / "a.jsonl"), "--db", str(tmp_path / "b.db"), "--branch", "into")
    with recollect.open(tmp_path / "b.db") as memory:
        assert (memory.count(), memory.on("into").count()) == (0, 1)


def test_a_path_that_is_no_file_is_no_branch_either(run: Run) -> None:
    run("remember", "Ana lives in Bergen")
    assert "there is no file './laptop.db'" in run("branch", "merge", "./laptop.db", code=2).stderr
    assert "there is no file 'laptop.db'" in run("branch", "merge", "laptop.db", code=2).stderr
    refused = run("branch", "merge", "laptop", code=1).stderr
    assert "has no branch 'laptop'; nothing was changed: `recollect branch list`" in refused


def test_the_command_to_decide_with_names_the_store(run: Run, copied: str, tmp_path: Path) -> None:
    own = tmp_path / "own.db"
    run("backup", str(own))
    run("update", "home", "--content", "Ana lives in Rome", "--db", str(own))
    shown = run("branch", "merge", copied, "--db", str(own), code=1).output.splitlines()
    assert shown[-1] == f"decide with: recollect branch merge laptop --db {own} --resolve ID=ours"
    for option in (["--dry-run"], ["--resolve", "home=ours"], ["--branch", "main"]):
        assert "is a copy" in run("branch", "merge", copied, "--db", str(own), *option, code=2).stderr


def test_a_conflict_shows_what_differs(branched: Run) -> None:
    branched("update", "home", "--user", "ana")
    branched("update", "home", "--user", "bo", "--branch", "what-if")
    branched("glossary", "add", "PII", "what identifies a person", "--agent", "bot")
    branched("glossary", "add", "PII", "personal data", "--agent", "bot", "--branch", "what-if")
    shown = branched("branch", "merge", "what-if", code=1).output.splitlines()
    assert shown[:4] == [
        "conflict: home (user)",
        "  base    Ana lives in Bergen; user: None",
        "  ours    Ana lives in Bergen; user: ana",
        "  theirs  Ana lives in Oslo; user: bo",
    ]
    assert "'PII'" in shown[4]


def test_branches_of_copies_are_marked(run: Run, copied: str) -> None:
    run("remember", "Bo likes tea", "--id", "tea")
    assert "copy of" not in run("branch", "list").output
    run("branch", "merge", copied)
    assert "copy of" in run("branch", "list").output


@pytest.mark.parametrize("kinds", [("plain", "encrypted"), ("encrypted", "plain"), ("encrypted", "other secret")])
def test_a_copy_with_another_secret_is_merged(run: Run, tmp_path: Path, kinds: tuple[str, str]) -> None:
    pytest.importorskip("cryptography")
    secrets = {}
    for kind in ("encrypted", "other secret"):
        secrets[kind] = tmp_path / f"{kind}.secret"
        secrets[kind].write_text(f"the passphrase of {kind}")
    run("remember", "Ana lives in Bergen", "--id", "home", "--db", str(tmp_path / "own.db"))
    run("backup", str(tmp_path / "laptop.db"), "--db", str(tmp_path / "own.db"))
    options: dict[str, list[str]] = {"own.db": [], "laptop.db": []}
    for name, kind in zip(options, kinds, strict=True):
        if kind != "plain":
            options[name] = ["--secret-file", str(secrets[kind])]
            run("encrypt", "--db", str(tmp_path / name), *options[name])
        run("remember", f"of {name}", "--id", name, "--db", str(tmp_path / name), *options[name])
    of_copy = ["--copy-secret-file", options["laptop.db"][1]] if options["laptop.db"] else []
    own = ["--db", str(tmp_path / "own.db"), *options["own.db"]]
    run("branch", "merge", str(tmp_path / "laptop.db"), *own, *of_copy)
    assert "of laptop.db" in run("get", "laptop.db", *own).output


def test_the_log_shows_what_was_merged(branched: Run) -> None:
    branched("branch", "merge", "what-if")
    assert "merges what-if, commit 2" in branched("log").output
    branched("branch", "new", "again")
    branched("update", "home", "--content", "Ana lives in Rome", "--branch", "again")
    branched("update", "home", "--content", "Ana lives in Paris")
    branched("branch", "merge", "again", "--resolve", "home=ours")
    newest = branched("log", "--limit", "1").output
    assert "kept" in newest
    assert "merges again, commit 3" in newest


def test_the_variable_names_the_branch(branched: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_BRANCH", "what-if")
    assert "Oslo" in branched("get", "home").output
    assert "Bergen" in branched("--branch", "main", "get", "home").output


@pytest.mark.parametrize("branch", ["main", "none"])
def test_the_variable_of_the_branch_does_not_matter_for_a_copy(
    run: Run, copied: str, monkeypatch: pytest.MonkeyPatch, branch: str
) -> None:
    monkeypatch.setenv("RECOLLECT_BRANCH", branch)
    run("branch", "merge", copied)
    monkeypatch.delenv("RECOLLECT_BRANCH")
    assert "Cy sails" in run("get", "sail").output
