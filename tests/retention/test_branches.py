"""A rule that erases in one branch spares what another branch protects, as an erasure reaches every branch."""

from __future__ import annotations

import pytest
from tests.retention.clock import Clock, later

import recollect
from recollect import RetentionRule
from recollect.engine import retaining


@pytest.fixture
def memory() -> recollect.Memory:
    return recollect.open(":memory:", embedder="none", clock=Clock())


HOLD = RetentionRule("case", where="user=ana", action="hold")
ERASE = RetentionRule("old", after="90d", action="erase")


def held(memory: recollect.Memory) -> recollect.Memory:
    """A branch in which a record is due that main holds."""
    memory.remember("Evidence about Ana", id="evidence", user="ana")
    memory.remember("Bo likes tea", id="tea", user="bo")
    memory.set_retention([HOLD, ERASE])
    branch = memory.branch("what-if")
    branch.update("evidence", user="bo")
    later(memory, days=100)
    return branch


def test_what_main_holds_is_not_erased_from_a_branch(memory: recollect.Memory) -> None:
    branch = held(memory)
    assert [each.samples for each in branch.apply_retention()] == [("tea",)]
    branch.apply_retention(dry_run=False)
    assert (memory.get("evidence") is not None, branch.get("evidence") is not None) == (True, True)
    assert (memory.get("tea"), branch.get("tea")) == (None, None)
    memory.set_retention([ERASE])
    branch.apply_retention(dry_run=False)
    assert (memory.get("evidence"), branch.get("evidence")) == (None, None)
    assert memory.check() == []


def test_control_without_the_look_at_other_branches_it_is(
    memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch = held(memory)
    monkeypatch.setattr(retaining, "_spared", lambda *_: set())
    branch.apply_retention(dry_run=False)
    assert memory.get("evidence") is None


def test_what_is_pinned_or_kept_as_one_of_the_newest_in_another_branch_stays(memory: recollect.Memory) -> None:
    for number in range(3):
        memory.remember(f"text {number}", id=f"r{number}")
    memory.remember("Answer in French", id="rule", pinned=True)
    memory.set_retention([RetentionRule("newest", after="1d", keep_newest=3, action="erase")])
    branch = memory.branch("what-if")
    branch.update("rule", pinned=False)
    later(memory, days=2)
    for number in range(3):
        branch.remember(f"later text {number}", id=f"l{number}")
    assert memory.apply_retention() == []
    branch.apply_retention(dry_run=False)
    assert {each.id for each in memory.find()} == {"r0", "r1", "r2", "rule"}
    assert len(branch.find()) == 7


def test_a_branch_that_was_not_written_does_not_count(memory: recollect.Memory) -> None:
    memory.remember("Bo likes tea", id="tea")
    memory.set_retention([ERASE])
    branch = memory.branch("what-if")
    later(memory, days=100)
    memory.apply_retention(dry_run=False)
    assert (memory.get("tea"), branch.get("tea")) == (None, None)
