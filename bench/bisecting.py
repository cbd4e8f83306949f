"""`python -m bench bisect`: how many recalls it takes to find the commit that changed an answer, and how long.

A memory is written one commit at a time. In each case one of the commits has changed a fact, once or back and forth.
The search is timed on a memory that is opened for it, in units of deriving the index of the present from the records of
all commits, on another one that is opened without its saved index.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import recollect
from bench.cost import turns
from bench.measuring import versions
from recollect.memory.bisection.values import Bisected

_CASES, _FLIPPED, _SEED = 12, 4, 61


def _question(case: int) -> str:
    return f"Which harbour does agent{case} prefer?"


def _planted(path: Path, commits: int) -> list[list[int]]:
    """Write a memory. Return, for each case, the commits that change its answer: to bad, then to good, and so on."""
    rng = random.Random(_SEED)
    changes = [sorted(rng.sample(range(_CASES + 2, commits), 3 if case < _FLIPPED else 1)) for case in range(_CASES)]
    at = {seq: (case, place) for case, seqs in enumerate(changes) for place, seq in enumerate(seqs)}
    texts = (each["content"] for each in turns(commits))
    with recollect.open(path, embedder="none") as memory:
        for case in range(_CASES):
            memory.remember(f"agent{case} prefers the harbour of Bergen", id=f"case{case}")
        for seq in range(_CASES + 1, commits + 1):
            if seq in at:
                case, place = at[seq]
                city = "Oslo" if place % 2 == 0 else "Bergen"
                memory.update(f"case{case}", content=f"agent{case} prefers the harbour of {city}")
            else:
                memory.remember(f"{next(texts)} ({seq})")
        assert memory.seq == commits
    return changes


def _searched(path: Path, case: int) -> tuple[Bisected, float]:
    """Return what a search finds in a memory that has only answered in the present, and its processor time, seconds."""
    with recollect.open(path, embedder="none") as memory:
        memory.recall("the present")
        begun = time.process_time()
        return memory.bisect(_question(case), good=_CASES, expect="Bergen"), time.process_time() - begun


def _derived(path: Path) -> float:
    """Return the processor time of the first recall without a saved index, in seconds."""
    for each in path.parent.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
    with recollect.open(path, embedder="none") as memory:
        begun = time.process_time()
        memory.recall("the present")
        return time.process_time() - begun


def _is_right(path: Path, case: int, seq: int | None) -> bool:
    """Return whether two plain recalls show that the answer changed from good to bad at a commit."""
    if seq is None:
        return False
    with recollect.open(path, embedder="none") as memory:
        hits = [memory.at(each).recall(_question(case), k=1)[0].record.content for each in (seq - 1, seq)]
    return "Bergen" in hits[0] and "Oslo" in hits[1]


def bisecting(commits: int) -> dict[str, Any]:
    """Measure the search in a memory with this many commits."""
    calls: list[int] = []
    ratios: list[float] = []
    right = 0
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a.db"
        changes = _planted(path, commits)
        for case in range(_CASES):
            once = _derived(path)
            found, spent = _searched(path, case)
            calls.append(found.calls)
            ratios.append(spent / once)
            right += _is_right(path, case, found.seq) and found.seq in changes[case]
    return {
        "versions": versions(),
        "commits": commits,
        "cases": _CASES,
        "of them with three changes": _FLIPPED,
        "right": right,
        "recalls of a search, most": max(calls),
        "a search / deriving the index once": {
            "median": round(statistics.median(ratios), 2),
            "least": round(min(ratios), 2),
            "most": round(max(ratios), 2),
        },
    }
