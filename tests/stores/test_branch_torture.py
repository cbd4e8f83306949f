"""Kills, power cuts and faults during a run on branches: what their harness must not be blind to."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import fresh
from tests.examples import FULL, in_torture
from torture.branch_concurrency import SHARED, problems
from torture.branch_script import BranchScript, Examiner, record
from torture.power import NAME
from torture.run import run_part
from torture.script import lead
from torture.trials import fast_folder

from recollect.stores.memory import MemoryStore
from recollect.testing import memory_on

PARTS = ("branch-kill", "branch-power", "branch-faults")


@pytest.mark.promise("branch.whole")
@in_torture
@pytest.mark.parametrize("part", PARTS)
def test_branches_are_as_after_a_whole_call_whatever_ends_a_run(part: str) -> None:
    done = list(run_part(part, range(2 if FULL else 1)))
    assert [trial for trial in done if trial.problem] == []


@pytest.mark.parametrize("seed", range(4))
def test_a_run_does_each_kind_of_step_and_a_model_and_a_file_end_alike(seed: int, tmp_path: Path) -> None:
    script = BranchScript(seed)
    recording = record(script, tmp_path)
    assert recording.problem == ""
    assert len(recording.states) == len(script.steps) + 1
    assert len({state.roots for state in recording.states}) > len(script.steps) // 2


def test_the_runs_merge_drop_and_erase_in_branches() -> None:
    merged = dropped = erased = 0
    for seed in range(8):
        script = BranchScript(seed)
        with script.model() as model:
            for number, step in enumerate(script.steps):
                script.set_clock(number)
                names = {each.name for each in model.branches()}
                lead(step, model)
                dropped += len(names - {each.name for each in model.branches()})
            branches = model.branches()
            merged += sum(each.merged_into is not None for each in branches)
            for each in branches[1:]:
                causes = {change.cause for commit in model.on(each.name).changes() for change in commit.changes}
                erased += "erased" in causes
    assert min(merged, dropped, erased) >= 3


CONTROL = """
import apsw, os, shutil
from torture.branch_script import BranchScript
from torture.kills import NAME, Told, child, problem_in
script = BranchScript(0)
told = child(script, folder)
path = folder / NAME
print(problem_in(path, script, told))
writing = [n for n, step in enumerate(script.steps) if step.name == "remember"][4]
print(problem_in(path, BranchScript(0), Told(begun=writing + 1, done=writing + 1)))
for statement in (
    "DELETE FROM heads WHERE branch > 1 AND number = (SELECT max(number) FROM heads WHERE branch > 1)",
    "UPDATE branches SET base_seq = base_seq - 1 WHERE number = (SELECT max(number) FROM branches)",
    "DELETE FROM meta WHERE name LIKE 'setting/merge/%'",
):
    other = folder / "other.db"
    shutil.copy(path, other)
    connection = apsw.Connection(str(other))
    connection.execute(statement)
    print(connection.changes(), problem_in(other, script, told))
    connection.close()
"""


def test_the_harness_notices_what_is_lost_of_a_branch(tmp_path: Path) -> None:
    well, ahead, head, base, merge = fresh.run(CONTROL, tmp_path).split("\n")
    assert well == ""
    assert "root" in ahead
    for each in (head, base, merge):
        changed, _, problem = each.partition(" ")
        assert int(changed) >= 1
        assert problem


def test_the_examiner_of_power_cuts_notices_a_step_that_is_lost_or_half_done(tmp_path: Path) -> None:
    with fast_folder(tmp_path) as folder:
        script = BranchScript(1)
        states = record(script, folder).states
        examine, last = Examiner(script), len(script.steps)
        assert examine(folder / "none.db", states, 1) == "the file is gone"
        assert "none of the steps" in examine(folder / NAME, states[:-10], 0)
        changed = [number for number in range(1, last + 1) if states[number] != states[number - 1]]
        assert "none of the steps" in examine(folder / NAME, states[: changed[-1]], 0)
        assert examine(folder / NAME, states, last) == ""


def test_a_lost_merge_a_lost_branch_and_an_erased_text_are_noticed() -> None:
    with memory_on(MemoryStore()) as memory:
        memory.remember("what all of them change", id=SHARED)
        for number in range(2):
            branch = memory.branch(f"w-{number}")
            branch.remember(f"text {number}", id=f"w-{number}-0")
            branch.update(SHARED, metadata={"w": number})
            memory.merge_branch(f"w-{number}", on_conflict="theirs")
        memory.drop_branch("w-1")
        memory.erase("w-0-0")
        done = {
            "created": ["w-0", "w-1"],
            "written": ["w-0-0", "w-1-0"],
            "merged": ["w-0", "w-1"],
            "dropped": ["w-1"],
            "erased": ["w-0-0"],
        }
        assert [problem for _, problem in problems(memory, done) if problem] == []
        for change, where in (
            ({"erased": []}, "main has what was merged"),
            ({"written": [*done["written"], "w-1-1"]}, "main has what was merged"),
            ({"merged": ["w-0", "w-1", "w-2"]}, "no key is lost by a merge"),
            ({"dropped": []}, "the branches that were not dropped are there"),
            ({"written": [*done["written"], "w-0-1"]}, "each branch has its records, and nothing that was erased"),
        ):
            assert where in {each for each, problem in problems(memory, {**done, **change}) if problem}
        memory.on("w-0").remember("it is back", id="w-0-0")
        found = {each for each, problem in problems(memory, done) if problem}
        assert "each branch has its records, and nothing that was erased" in found
