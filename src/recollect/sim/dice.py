"""Draws from a generator that are the same on every version of Python.

`random.Random` promises that only for `random` and `getrandbits`: how `shuffle`, `sample` and `choice` use them may
change from one version to the next. So everything that the simulator and its agents draw is drawn here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from recollect.errors import InvalidArgumentError

T = TypeVar("T")


def child(rng: random.Random) -> random.Random:
    """Return a new generator, seeded by another one."""
    return random.Random(rng.getrandbits(64))


def below(rng: random.Random, limit: int) -> int:
    """Return an integer of 0 to `limit` - 1.

    >>> {below(random.Random(seed), 3) for seed in range(20)}
    {0, 1, 2}
    """
    if limit < 1:
        raise InvalidArgumentError("limit", limit, "must be at least 1")
    bits = limit.bit_length()
    value = rng.getrandbits(bits)
    while value >= limit:
        value = rng.getrandbits(bits)
    return value


def between(rng: random.Random, least: int, most: int) -> int:
    """Return an integer of `least` to `most`, both included."""
    return least + below(rng, most - least + 1)


def happens(rng: random.Random, rate: float) -> bool:
    """Return True with a probability. For 0 nothing is drawn, so that a failure that is off changes no other draw."""
    return rate > 0 and rng.random() < rate


def pick(rng: random.Random, values: Sequence[T]) -> T:
    """Return one of the values, of which there must be one."""
    return values[below(rng, len(values))]


def choose(rng: random.Random, values: Sequence[T], count: int) -> list[T]:
    """Return `count` of the values, in random order."""
    left = list(values)
    for at in range(count):
        other = at + below(rng, len(left) - at)
        left[at], left[other] = left[other], left[at]
    return left[:count]
