"""A process that writes is killed: the short form of `torture.kills`, and what it must not be blind to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests import fresh
from tests.examples import FULL, in_torture
from torture.run import run_part

import recollect
from recollect.importers.jsonl import write_jsonl


@pytest.mark.promise("kill.acknowledged")
@in_torture
def test_a_killed_writer_loses_nothing_acknowledged_and_leaves_nothing_half() -> None:
    done = list(run_part("kill", range(2 if FULL else 1)))
    assert [trial for trial in done if trial.problem] == []
    inside = sum(trial.where.startswith("inside a write") for trial in done)
    assert inside * 2 > len(done) - 2, "fewer than half of the kills were inside a write"


CONTROL = """
import apsw, os
from torture.kills import NAME, Told, child, problem_in
from torture.script import Script
script = Script(1)
told = child(script, folder)
path = folder / NAME
print(problem_in(path, script, told))
writing = next(number for number, step in enumerate(script.steps) if step.name in ("remember", "bulk"))
print(problem_in(path, Script(1), Told(begun=writing + 1, done=writing + 1)))
print(problem_in(path, script, Told(told.begun, told.done, {"never held"})))
connection = apsw.Connection(str(path))
connection.execute("DELETE FROM heads WHERE number = (SELECT max(number) FROM heads)")
connection.close()
print(problem_in(path, script, told))
os.unlink(path)
print(problem_in(path, script, told))
"""


def test_the_harness_notices_a_lost_commit_a_half_done_one_and_a_lost_acknowledgement(tmp_path: Path) -> None:
    well, ahead, unheard, half, gone = fresh.run(CONTROL, tmp_path).split("\n")
    assert well == ""
    assert "root" in ahead
    assert "acknowledged" in unheard
    assert half != ""
    assert gone == "the file is gone"


@pytest.mark.promise("kill.import")
def test_an_import_that_is_killed_holds_whole_commits_and_the_next_one_ends_it(tmp_path: Path) -> None:
    source = tmp_path / "texts.jsonl"
    with recollect.open(":memory:") as memory, source.open("w", encoding="utf-8") as file:
        memory.remember_all([f"text {number}" for number in range(5000)])
        write_jsonl(memory, file)
    path = tmp_path / "imported.db"
    command = [sys.executable, "-m", "recollect", "import", "jsonl", str(source), "--db", str(path)]
    importing = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while importing.poll() is None and _commit_count(path) == 0:
        os.sched_yield()
    importing.send_signal(signal.SIGKILL)
    importing.wait()
    with recollect.open(path) as memory:
        assert memory.check() == []
        assert memory.count() % 1000 == 0
        assert memory.count() > 0
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with recollect.open(path) as memory:
        assert memory.count() == 5000
        assert memory.check() == []


def _commit_count(path: Path) -> int:
    """How many commits there are, seen from outside."""
    try:
        with recollect.open(path, create=False, read_only=True) as memory:
            return memory.seq
    except recollect.RecollectError:
        return 0
