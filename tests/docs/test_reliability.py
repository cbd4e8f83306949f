"""No promise without a test, no test of a promise that is not made; and the torture's frame."""

from __future__ import annotations

import os
import re
import runpy
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.paths import ROOT
from torture import run as torture
from torture.trials import Trial


def promised(text: str) -> list[str]:
    """The ids in the first column of the tables under "Promises"."""
    return re.findall(r"^\| ([a-z]+\.[a-z_-]+) \|", text.partition("\n## Promises\n")[2], re.MULTILINE)


def ids_of_tests() -> set[str]:
    """The ids that tests are marked with."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    return {found for source in sources for found in re.findall(r'mark\.promise\("([^"]+)"\)', source)}


def test_every_promise_has_a_test_and_every_id_of_a_test_is_a_promise() -> None:
    promises = promised((ROOT / "docs" / "reliability.md").read_text(encoding="utf-8"))
    assert len(promises) == len(set(promises)) > 40
    assert set(promises) == ids_of_tests()


def test_every_part_is_reported_and_can_be_loaded() -> None:
    printed = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    for name in torture.PARTS:
        assert f"| `{name}` |" in printed
        assert callable(torture.trials_of(name))


def _trials(seed: int, folder: Path) -> Iterator[Trial]:
    yield Trial(seed, "well")
    if seed == 2:
        yield Trial(seed, "not well", "it is broken")
    if seed == 3:
        raise ValueError("in the middle")


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torture, "PARTS", {"part": torture.Part("none", short=2, long=3)})
    monkeypatch.setattr(torture, "trials_of", lambda name: _trials)
    in_this_process = lambda name, seeds: (trial for seed in seeds for trial in torture.run_seed(name, seed))  # noqa: E731
    monkeypatch.setattr(torture, "run_part", in_this_process)


@pytest.mark.usefixtures("parts")
def test_the_last_line_counts_and_the_exit_code_says_whether_any_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert torture.main(["--part", "part", "--seeds", "1,4"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 passed, 0 failed"
    assert torture.main(["--part", "part", "--seeds", "1,2,3"]) == 1
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == "3 passed, 2 failed"
    assert "FAILED part not well: it is broken" in said
    assert "ValueError: in the middle" in said
    assert "--part part --seeds 2" in said
    assert torture.main(["--short", "--seed", "5"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "seed 5, short form"


def _dies(name: str, seed: int) -> list[Trial]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_worker_that_dies_is_a_failed_trial_of_each_seed_it_leaves_unfinished() -> None:
    done = list(torture.run_part("concurrency", [1, 2], _dies))
    assert [(each.seed, each.where) for each in done] == [(1, "unfinished"), (2, "unfinished")]
    assert all(each.problem for each in done)


def test_the_share_of_each_group_is_reported_before_its_moments() -> None:
    wheres = Counter({"inside a write: put": 2, "elsewhere: open": 1, "inside a write: drop": 1, "no kill": 5})
    assert list(torture._shares(wheres)) == [
        ("elsewhere (25%)", 1),
        ("elsewhere: open", 1),
        ("inside a write (75%)", 3),
        ("inside a write: drop", 1),
        ("inside a write: put", 2),
        ("no kill", 5),
    ]


def test_the_seeds_of_a_run_follow_from_its_own() -> None:
    assert torture.seeds_of(7, "kill", 5) == torture.seeds_of(7, "kill", 5)
    assert torture.seeds_of(7, "kill", 5) != torture.seeds_of(8, "kill", 5)
    assert torture.seeds_of(7, "kill", 5) != torture.seeds_of(7, "power", 5)


@pytest.mark.parametrize("code", [0, 1])
def test_the_torture_ends_with_its_exit_code(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torture.run.main", lambda: code)
    monkeypatch.setattr(sys, "argv", ["torture"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("torture", run_name="__main__")
    assert ended.value.code == code
