"""What traces add to a recall: without an SDK, and with one that records spans and drops them.

Each question is asked with and without, in random order, in one process on one store: processor time, summed for each
round. A round gives a ratio; the median and the spread are those of the rounds. The untraced memory is
asked twice: the base of the ratios is the mean, and what they differ by ("again") is noise.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import ProxyTracerProvider

import recollect
from bench.cost import filled, questions
from bench.measuring import told
from recollect.observe import traced

ROUNDS = 21


def traces(records: int, asked: int) -> dict[str, Any]:
    """Compare recalls of a memory with those of the same memory when it is traced.

    Args:
        records: Number of turns in the store.
        asked: Number of questions in a round.
    """
    with tempfile.TemporaryDirectory() as folder:
        with told(f"writing {records} turns"):
            memory = filled(Path(folder) / "a.db", records)
        with memory:
            arms = {
                "plain": memory,
                "again": recollect.Memory(memory._executor, memory._branch),
                "no_sdk": traced(memory, ProxyTracerProvider()),
                "sdk": traced(memory, TracerProvider()),
            }
            rounds = measured(arms, questions(asked))
    plain = [(each["plain"] + each["again"]) / 2 for each in rounds]
    found: dict[str, Any] = {"command": "traces", "records": records, "questions": asked, "rounds": len(rounds)}
    found["plain"] = {"us": statistics.median(plain) / asked * 1e6}
    for name in arms.keys() - {"plain"}:
        found[name] = compared([each[name] for each in rounds], plain, asked)
    return found


def measured(arms: dict[str, recollect.Memory], asked: list[str]) -> list[dict[str, float]]:
    """Return the processor time of each arm in each round, in seconds. The first round, which warms up, is left out."""
    out = []
    order = random.Random(9)  # the arm after another one finds what that has left in the processor's caches
    for _ in range(ROUNDS + 1):
        spent = dict.fromkeys(arms, 0.0)
        for question in asked:
            for name in order.sample(list(arms), len(arms)):
                begun = time.thread_time_ns()
                arms[name].recall(question)
                spent[name] += (time.thread_time_ns() - begun) / 1e9
        out.append(spent)
    return out[1:]


def compared(times: list[float], plain: list[float], asked: int) -> dict[str, float]:
    """Return what an arm takes more than the plain one."""
    ratios = sorted(mine / its for mine, its in zip(times, plain, strict=True))
    more = statistics.median(mine - its for mine, its in zip(times, plain, strict=True))
    return {
        "more_us": more / asked * 1e6,
        "ratio": statistics.median(ratios),
        "ratio_min": ratios[0],
        "ratio_max": ratios[-1],
    }
