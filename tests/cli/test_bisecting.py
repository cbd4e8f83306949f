"""`recollect bisect` (docs/bisect.md)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.running import Run, parsed

SEAT = "Which seat does Ana prefer?"


@pytest.fixture
def moved(run: Run) -> Run:
    """A store of eight commits, of which the fifth changes what Ana prefers."""
    run("remember", "Ana prefers window seats", "--id", "seat")
    for number in (2, 3, 4):
        run("remember", f"Note {number} about the ferry")
    run("update", "seat", "--content", "Ana prefers aisle seats")
    for number in (6, 7, 8):
        run("remember", f"Note {number} about the ferry")
    return run


def test_the_commit_and_the_reasons_are_printed(moved: Run) -> None:
    lines = moved("bisect", SEAT, "--good", "1").output.splitlines()
    assert lines[0] == "commit 5 is the first bad one"
    assert lines[2] == "  seat  changed text, rank 1 -> 1: 'Ana prefers window seats' -> 'Ana prefers aisle seats'"
    assert lines[3].startswith("recalls: ")
    assert "first good" in moved("bisect", SEAT, "--good", "HEAD", "--bad", "1").output
    moved("rollback", "4", "--reason", "a wrong profile")
    lines = moved("bisect", SEAT, "--good", "5").output.splitlines()
    assert lines[0] == "commit 9 is the first bad one"
    assert lines[1].endswith("  recollect rollback: a wrong profile")


def test_the_result_is_printed_as_json(moved: Run) -> None:
    found = parsed(moved("bisect", SEAT, "--good", "1", "--bad", "HEAD", "--expect", "window", "--json"))
    assert (found["seq"], found["good"], found["bad"], found["flips_seen"]) == (5, 4, 5, 1)
    assert found["commit"]["seq"] == 5
    assert [(each["id"], each["reason"]) for each in found["why"]] == [("seat", "changed text")]


def test_ends_that_do_not_differ_are_an_error_with_both_answers(moved: Run) -> None:
    said = moved("bisect", SEAT, "--good", "1", "--bad", "4", code=1).output
    assert said.startswith("error: both ends are good: at commit 1 the answer is seat (Ana prefers window seats)")
    refused = moved("bisect", SEAT, "--good", "6", "--expect", "window", "--json", code=1)
    assert json.loads(refused.stderr)["error"] == "bisect"
    moved("bisect", SEAT, code=2)
    assert "no moment" in moved("bisect", SEAT, "--good", "99", code=1).output
    assert "leave one of them out" in moved("bisect", SEAT, "--good", "1", "--last", "--all", code=1).output


def _judge(folder: Path, code: str) -> str:
    """Return a command that runs Python code on the hits and the number of the commit."""
    script = folder / "judge.py"
    head = "import json, os, sys\nhits, at = json.load(sys.stdin)['hits'], int(os.environ['RECOLLECT_AT'])\n"
    script.write_text(head + code, "utf-8")
    return f"{sys.executable} {script}"


def test_a_command_judges_by_its_exit_code(moved: Run, tmp_path: Path) -> None:
    log = tmp_path / "asked"
    code = f"open({str(log)!r}, 'a').write(f'{{at}} ')\nsys.exit('aisle' in hits[0]['record']['content'] and 7)"
    found = parsed(moved("bisect", SEAT, "--good", "1", "--json", "--command", _judge(tmp_path, code)))
    assert found["seq"] == 5
    asked = log.read_text("utf-8").split()
    assert len(set(asked)) == len(asked)
    assert {"1", "8", "4", "5"} <= set(asked)


@pytest.mark.parametrize("code", [1, 124, 126, 127])
def test_these_exit_codes_are_bad(moved: Run, code: int) -> None:
    assert "commit 5 is" in moved("bisect", SEAT, "--good", "1", "--command", f"grep -q window || exit {code}").output


def test_a_command_can_skip(moved: Run, tmp_path: Path) -> None:
    judge = _judge(tmp_path, "sys.exit(125 if 4 <= at <= 6 else at > 6)")
    said = moved("bisect", SEAT, "--good", "1", "--command", judge).output
    assert said.startswith("one of the commits 4 to 7: those before 7 could not be judged")
    assert "skipped commits: 3" in said


@pytest.mark.parametrize("command", ["exit 128", "exit 255", "kill -9 $$"])
def test_any_other_exit_code_stops_the_search(moved: Run, command: str) -> None:
    said = moved("bisect", SEAT, "--good", "1", "--command", command, code=1).output
    assert "0 is good, 125 skips, 1 to 127 are bad" in said


def test_a_command_that_does_not_read_and_prints_is_no_problem(moved: Run) -> None:
    command = 'echo noise; test "$RECOLLECT_AT" -lt 3'
    assert parsed(moved("bisect", SEAT, "--good", "1", "--json", "--command", command))["seq"] == 3


def test_a_command_can_ask_the_same_store_more(moved: Run) -> None:
    ask = f'{sys.executable} -m recollect get seat --at "$RECOLLECT_AT" --db "$RECOLLECT_DB" | grep -q window'
    assert parsed(moved("bisect", SEAT, "--good", "4", "--bad", "5", "--json", "--command", ask))["seq"] == 5


def test_several_changes_are_listed(moved: Run) -> None:
    moved("update", "seat", "--content", "Ana prefers window seats")  # 9
    moved("update", "seat", "--content", "Ana prefers aisle seats")  # 10
    said = moved("bisect", SEAT, "--good", "1", "--all").output
    assert "the answer changed 3 times: at 5, 9, 10" in said
    assert "commit 10 is" in moved("bisect", SEAT, "--good", "1", "--last").output
    assert "the answer changed" in moved("bisect", SEAT, "--good", "1", "--samples", "8").output


def test_the_question_takes_filters_and_the_number_of_hits(moved: Run) -> None:
    moved("remember", "Ana prefers the seat", "--user", "ana", "--id", "new")  # 9
    assert parsed(moved("bisect", SEAT, "--good", "6", "--where", "user=ana", "--json"))["seq"] == 9
    wide = parsed(moved("bisect", SEAT, "--good", "1", "--expect", "window", "-k", "5", "--language", "en", "--json"))
    assert wide["seq"] == 5
    moved("bisect", SEAT, "--good", "1", "--reference", "2026-01-01", "--user", "ana")
