"""How much the tests try: a part by default, everything with HYPOTHESIS_PROFILE=full, which `make test-all` sets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
#: Whether everything is tried.
FULL = PROFILE != "ci"


def some(number: int) -> int:
    """A number of examples, or, by default, a tenth of it."""
    return number if FULL else max(4, number // 10)


def spread(*axes: Sequence[Any], every: int) -> list[Any]:
    """All combinations of some values, or, by default, one in `every` of them.

    Each value of each axis is in one of those, as the sums of the places run through all remainders.
    """
    places = product(*map(range, map(len, axes)))
    chosen = [place for place in places if FULL or sum(place) % every == 0]
    values = [tuple(axis[at] for axis, at in zip(axes, place, strict=True)) for place in chosen]
    return values if len(axes) > 1 else [value for (value,) in values]


#: For the tests that are a part of the torture by themselves, which `.ci/run` runs next.
in_torture = pytest.mark.skipif(not FULL, reason="make torture-short and make test-all run it")
#: For long tests of what no user's call depends on.
in_full = pytest.mark.skipif(not FULL, reason="make test-all runs it")
