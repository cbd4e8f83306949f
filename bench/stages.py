"""Where the time of a recall goes, by stages of the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from recollect.engine.read import recall
from recollect.engine.read.record_loader import Records

#: Each stage, and the function that is all of it.
STAGES: dict[str, tuple[Any, str]] = {
    "reading the question": (recall, "read"),
    "scoring and ranking": (recall, "_scores"),
    "records": (Records, "_of"),
    "explaining": (recall, "_hits"),
}


def stages(ask: Callable[[str], object], asked: Sequence[str]) -> dict[str, float]:
    """Mean milliseconds of each stage, and of the rest, of these questions. They are asked once before."""
    for question in asked:
        ask(question)
    taken = dict.fromkeys(STAGES, 0.0)
    with _timed(taken):
        began = time.perf_counter()
        for question in asked:
            ask(question)
        total = time.perf_counter() - began
    taken["the rest"] = total - sum(taken.values())
    return {stage: seconds / len(asked) * 1000 for stage, seconds in taken.items()}


@contextmanager
def _timed(taken: dict[str, float]) -> Iterator[None]:
    """Add the time of each stage to `taken`."""
    with ExitStack() as patches:
        for stage, (where, name) in STAGES.items():
            patches.enter_context(patch.object(where, name, _timer(getattr(where, name), stage, taken)))
        yield


def _timer(function: Callable[..., Any], stage: str, taken: dict[str, float]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            taken[stage] += time.perf_counter() - began

    return timed
