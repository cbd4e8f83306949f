"""The first hits of a question are the beginning of a longer list of them, with the same scores, by either kernel."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

import recollect
from recollect import Memory
from recollect.indexes.kernels import choose
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.scoring import neighbours, scores, signals

WORDS = (
    "boat harbour tea stove roof mason lamp kettle garden dog walk letter train ticket bread oven piano lesson summer "
    "camp coat rain bridge mill cheese market door key blue paint wall nail rope sail mast tide gull crab shell sand"
).split()
KERNELS = {"native": choose.chosen(), "numpy": numpy_kernels.KERNELS}
TURNS = 1500


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    draw, time = Random(5), datetime(2026, 1, 1, tzinfo=UTC)
    weights = [1 / (1 + at) for at in range(len(WORDS))]
    with recollect.open(":memory:", embedder="none") as memory:
        memory.remember_all(
            {
                "content": " ".join(draw.choices(WORDS, weights, k=draw.randrange(1, 8))) + draw.choice("..?"),
                "kind": "conversation",
                "conversation": "c",
                "session": str(at // 12),
                "position": at,
                "speaker": ("Ana", "Bob")[at % 2],
                "time": time + timedelta(hours=at),
            }
            for at in range(TURNS)
        )
        yield memory


def differences(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The questions of which some list is not what the whole list begins with."""
    draw = Random(7)
    for _ in range(40):
        question = " ".join(["Ana", *draw.sample(WORDS, draw.randrange(1, 4))])
        lists = []
        for kernels in KERNELS.values():
            monkeypatch.setattr(scores, "chosen", lambda kernels=kernels: kernels)
            lists += [[(hit.record.id, hit.score) for hit in memory.recall(question, k=k)] for k in (TURNS, 10, 3, 1)]
        if any(each != lists[0][: len(each)] for each in lists):
            yield question


def test_the_first_hits_are_what_the_whole_list_begins_with(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(differences(memory, monkeypatch)) == []


def test_control_a_limit_of_the_first_alone_is_noticed(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "limits", lambda found, best: neighbours.limits(found, best and 1))
    assert next(differences(memory, monkeypatch), None)
