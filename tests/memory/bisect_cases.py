"""Histories of 300 commits in which the answers to many questions change at known commits, for bisections.

The cases of a history have words of their own, so that each changes at its own commits only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import recollect

COMMITS = 300
KINDS = ("hit", "update", "forget", "rarer word", "supersede", "expiry")
START = datetime(2026, 1, 1, tzinfo=UTC)
#: What a commit does to a case.
Step = Callable[[recollect.Batch], object]


@dataclass(frozen=True)
class Case:
    """A question whose answer changes.

    Attributes:
        flips: The commits at which it changes, from good to bad first.
    """

    kind: str
    question: str
    flips: tuple[int, ...]


class Clock:
    """A clock that moves an hour with each commit."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time


def time_of(seq: int) -> datetime:
    """The time of a commit of a history."""
    return START + timedelta(hours=seq)


def history(seed: int, cases: int = 20) -> tuple[recollect.Memory, list[Case]]:
    """Return a memory with 300 commits, and its cases: a quarter of them change 3 or 5 times."""
    chosen = random.Random(seed)
    clock = Clock()
    memory = recollect.open(":memory:", clock=clock)
    steps: dict[int, list[Step]] = {}
    made = []
    for number in range(cases):
        name = f"c{number}x{seed}"
        several = number % 4 == 0
        kind = "update" if several and number % 8 else "forget" if several else KINDS[number % len(KINDS)]
        count = chosen.choice((3, 5)) if several else 1
        flips = tuple(sorted(chosen.sample(range(3, COMMITS), count)))
        plan = _toggled(name, kind, flips) if several else _once(name, kind, flips[0])
        for seq, step in plan:
            steps.setdefault(seq, []).append(step)
        made.append(Case(kind, f"Which qa{name} qb{name} is it?", flips))
    for seq in range(1, COMMITS + 1):
        clock.time = time_of(seq)
        with memory.batch(actor=f"writer {seq}", reason=f"step {seq}") as batch:
            batch.remember(f"Note {seq} about something else, day {seq % 17}", id=f"noise {seq}")
            for step in steps.get(seq, ()):
                step(batch)
    assert memory.seq == COMMITS
    return memory, made


def _once(name: str, kind: str, seq: int) -> list[tuple[int, Step]]:
    """Return the steps of a case that changes at one commit."""
    one, other, answer = f"qa{name}", f"qb{name}", f"{name} answer"

    def begin(batch: recollect.Batch) -> None:
        if kind == "rarer word":
            batch.remember(f"The first is {one}", id=answer)
            batch.remember(f"The second is {other}", id=f"{name} rival")
            batch.remember(f"More of {other} there", id=f"{name} more")
            return
        expires = time_of(seq) - timedelta(minutes=30) if kind == "expiry" else None
        batch.remember(f"The {one} {other} is red", id=answer, expires=expires)
        batch.remember(f"The {one} is green", id=f"{name} rival")

    def change(batch: recollect.Batch) -> None:
        if kind == "hit":
            batch.remember(f"{one} {other}", id=f"{name} new")
        elif kind == "update":
            batch.update(answer, content=f"The {one} {other} is blue")
        elif kind == "forget":
            batch.forget(answer)
        elif kind == "rarer word":
            for each in range(6):
                batch.remember(f"Number {each} is a kind of {one} that comes much later", id=f"{name} {each}")
        elif kind == "supersede":
            batch.supersede(answer, f"The {one} {other} is blue", at=time_of(seq))

    return [(1, begin), (seq, change)]


def _toggled(name: str, kind: str, flips: tuple[int, ...]) -> list[tuple[int, Step]]:
    """Return the steps of a case that changes back and forth."""
    text, answer = f"The qa{name} qb{name} is red", f"{name} answer"

    def good(batch: recollect.Batch) -> None:
        batch.remember(text, id=answer, if_exists="update")

    def bad(batch: recollect.Batch) -> None:
        batch.forget(answer) if kind == "forget" else batch.update(answer, content=text.replace("red", "blue"))

    return [(1, good), *((seq, bad if number % 2 == 0 else good) for number, seq in enumerate(flips))]
