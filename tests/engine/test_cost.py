"""The cost of a warm recall and of a remember, in exact counts: nothing adds a step to them unnoticed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.paths import ROOT

#: Calls of Python functions on Python 3.11 (later releases make fewer), SQL statements, and frames of the WAL.
COSTS = {
    "recall": {"calls": 668, "statements": 4, "frames": 0},
    "remember": {"calls": 400, "statements": 13, "frames": 11},
}
ONE_MORE = """
import runpy, sys
from recollect.engine.core import Core
real = Core.now
Core.now = lambda self: (self.store.facts() and real(self))
sys.argv = ["cost.py", "counts"]
runpy.run_path("bench/cost.py", run_name="__main__")
"""


def counted(*arguments: str) -> dict[str, dict[str, int]]:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, cwd=ROOT)
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


@pytest.mark.in_process
def test_a_recall_and_a_remember_take_the_steps_that_are_stated() -> None:
    found = counted("bench/cost.py", "counts")
    for name, expected in COSTS.items():
        calls = found[name].pop("calls")
        assert calls == expected["calls"] if sys.version_info[:2] == (3, 11) else calls <= expected["calls"]
        assert found[name] == {"statements": expected["statements"], "frames": expected["frames"]}


@pytest.mark.in_process
def test_a_step_more_is_noticed() -> None:
    found = counted("-c", ONE_MORE)
    assert all(found[name]["calls"] > COSTS[name]["calls"] for name in COSTS)
