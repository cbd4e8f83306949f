"""Bad input of every kind: a short form of what `make torture` does at length, and what it must not be blind to."""

from __future__ import annotations

import random
import tracemalloc
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.examples import FULL, in_torture
from torture import fuzzing
from torture.fuzz_targets import Target, targets
from torture.fuzzing import mutated, tried
from torture.worst_cases import Case, Work, cases, plain, too_dear, use, work

from recollect.errors import InvalidArgumentError
from recollect.text import words
from recollect.text.unicode import is_known


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.promise("input.errors")
@pytest.mark.promise("input.bounds")
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", targets())
@in_torture
def test_whatever_comes_in_an_error_of_ours_comes_out_or_a_result(tmp_path: Path, name: str) -> None:
    rng = random.Random(name)
    target = targets()[name]
    for example in target.examples:
        assert tried(target, example, tmp_path) == ("taken", "")
    said = set()
    for _ in range(40 if FULL else 6):
        outcome, problem = tried(target, mutated(rng.choice(target.examples), rng), tmp_path)
        said.add(outcome)
        assert problem == ""
    assert said


@pytest.fixture(scope="module")
def of_plain() -> Work:
    """Return the cost of plain words, once all that is made once for all texts is there."""
    use("é 我 각 \U0001f600 \U000323b0 \u0301 \u00bd tea " * 20)
    return work(plain(SIZE))


SIZE = 2**13
#: The dearest of them all, as `python -m bench poison` tells, and some that the seed chooses.
DEAREST = [
    "\u3316",
    "a\u330e",
    "\ufdfa",
    "\ufdfa ",
    "\u33af'",
    "\u0378\u0711",
    "a\u200d",
    "a\u0301\u0316",
    "\u00bd ",
    "q? ",
]
CHOSEN = [Case(ascii(unit), unit) for unit in DEAREST] + (random.Random(1).sample(cases(), 20) if FULL else [])


@pytest.mark.promise("input.bounds")
@pytest.mark.parametrize("case", CHOSEN[:: 1 if FULL else 2], ids=lambda case: case.name)
def test_no_text_costs_more_than_twice_what_plain_words_do(of_plain: Work, case: Case) -> None:
    assert too_dear(work(case.text(SIZE)), of_plain, timed=False) == ""


def test_what_bounds_the_signs_that_stand_for_phrases_is_needed(
    monkeypatch: pytest.MonkeyPatch, of_plain: Work
) -> None:
    monkeypatch.setattr(words, "most_terms", lambda text: 10**9)
    monkeypatch.setattr(words, "_most_characters", lambda text: 10**9)
    assert too_dear(work(Case("", "\u3316").text(SIZE)), of_plain, timed=False)


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (Work(400, 4000, 4.0), ""),
        (Work(10**6, 4000, 4.0), "calls"),
        (Work(400, 10**8, 4.0), "memory"),
        (Work(400, 4000, 90.0), " s,"),
    ],
)
def test_a_text_that_is_too_dear_is_noticed(cost: Work, said: str) -> None:
    problem = too_dear(cost, Work(200, 2000, 2.0))
    assert (said in problem) if said else problem == ""


def test_the_dear_texts_have_characters_of_every_kind() -> None:
    found = cases()
    text = "".join(each.unit + each.block for each in found)
    known = set(map(unicodedata.category, text))
    assert known >= {"Mn", "Mc", "Me", "Cf", "Cc", "Co", "Nl", "No", "Lm", "Lo", "Sk", "Zl", "Zp", "Zs"}
    assert len(set(map(unicodedata.combining, text))) > 50
    assert len(set(map(unicodedata.bidirectional, text))) > 20
    assert any(not is_known(char) for char in text)
    for case in random.Random(2).sample(found, 200):
        assert 1000 < len(case.text(2000).encode("utf-8", "surrogatepass")) <= 2010
    assert len(plain(5000).split()) == len(set(plain(5000).split()))


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
