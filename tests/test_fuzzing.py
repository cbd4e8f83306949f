"""Bad input of every kind: a short form of what `make torture` does at length, and what it must not be blind to."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recollect.errors import InvalidArgumentError
from recollect.testing import fuzzing
from recollect.testing.fuzz_targets import Target, targets
from recollect.testing.fuzzing import mutated, tried


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.promise("input.errors")
@pytest.mark.promise("input.bounds")
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", targets())
def test_whatever_comes_in_an_error_of_ours_comes_out_or_a_result(tmp_path: Path, name: str) -> None:
    rng = random.Random(name)
    target = targets()[name]
    for example in target.examples:
        assert tried(target, example, tmp_path) == ("taken", "")
    said = set()
    for _ in range(40):
        outcome, problem = tried(target, mutated(rng.choice(target.examples), rng), tmp_path)
        said.add(outcome)
        assert problem == ""
    assert said


def _refuses(data: bytes, folder: Path) -> bool:
    raise InvalidArgumentError("data", data, "is refused")


def _fails(data: bytes, folder: Path) -> bool:
    return data[len(data)] == 0


def _never_ends(data: bytes, folder: Path) -> bool:
    while True:
        pass


def _takes_much(data: bytes, folder: Path) -> bool:
    return len(bytearray(2 * fuzzing.BASE_BYTES)) > 0


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(
    ("call", "found"), [(_refuses, ""), (_fails, "IndexError"), (_never_ends, "TooLong"), (_takes_much, "bytes of mem")]
)
def test_the_harness_notices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: Callable[[bytes, Path], bool], found: str
) -> None:
    monkeypatch.setattr(fuzzing, "MOST_S", 0.2)
    problem = tried(Target(call, []), b"data", tmp_path)[1]
    assert (found in problem) if found else problem == ""


def test_mutations_follow_from_the_seed_and_seldom_change_nothing() -> None:
    example = targets()["operation"].examples[0]
    several = [[mutated(example, random.Random(seed)) for seed in range(50)] for _ in range(2)]
    assert several[0] == several[1]
    assert sum(each == example for each in several[0]) < 10
