"""Swarms: how many memory operations agents in one process do, and the compatible recall beside its published form.

Each agent is an asynchronous task that reads, writes, compares and swaps, and recalls, in turns with the others, on one
`SemanticMemory` with a capacity. The operations are drawn from a seed: half are reads, a third writes, and a tenth
swaps; one in a hundred is a recall. What is measured is the whole run, with the agents' own steps; memory is what the
process has at most. Numbers of agents are measured each in a process of its own.

The recall of `SemanticMemory` and the published algorithm in plain Python answer the same questions on the same
entries, one after the other; both have embedded the entries before.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import resource
import statistics
import subprocess
import sys
from typing import Any

from bench.corpus import corpus, questions
from bench.measuring import ROOT, milliseconds, percentiles, versions
from recollect.compat.nest import SemanticMemory
from recollect.models.embedding.hashed import DIMENSION, features
from recollect.text.fnv import fnv1a

CAPACITY, ASKED, SLOW_ASKED = 10_000, 200, 5
AGENTS = (10, 100, 1000, 10_000)


def swarm(agents: int, operations: int, seed: int = 1) -> dict[str, Any]:
    """So many agents doing so many operations together, in this process."""
    memory = SemanticMemory(capacity=CAPACITY)
    texts = [text.encode() for text in corpus().texts(2000)]
    share = operations // agents

    async def agent(number: int) -> None:
        dice = random.Random(seed * 1_000_003 + number)
        for step in range(share):
            key, draw = f"note/{dice.randrange(2 * CAPACITY)}", dice.random()
            if draw < 0.5:
                await memory.read(key)
            elif draw < 0.89:
                await memory.write(key, texts[(number + step) % len(texts)])
            elif draw < 0.99:
                await memory.cas(key, await memory.read(key) or b"", b"%d of %d" % (step, number))
            else:
                await memory.recall(texts[(number * 7 + step) % len(texts)].decode()[:60])
            await asyncio.sleep(0)  # the turn of the others

    async def all_agents() -> None:
        await asyncio.gather(*(agent(number) for number in range(agents)))

    took = milliseconds(lambda: asyncio.run(all_agents())) / 1000
    stats = memory.stats()
    return {
        "agents": agents,
        "operations": share * agents,
        "seconds": took,
        "operations_per_s": share * agents / took,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "stats": stats,
    }


def recalls(entries: int) -> dict[str, Any]:
    """The compatible recall and the published algorithm, on so many entries."""
    texts = corpus().texts(entries)
    memory = SemanticMemory()
    for number, text in enumerate(texts):
        memory.shelf.write(f"{number:06}", text.encode())
    vectors = {f"{number:06}": _published(text) for number, text in enumerate(texts)}
    asked = questions(texts, ASKED)
    asyncio.run(memory.recall("which embeds the entries"))

    def ours(question: str) -> list[tuple[str, float]]:
        return [(hit.key, hit.score) for hit in asyncio.run(memory.recall(question, 5))]

    def plain(question: str) -> list[tuple[str, float]]:
        vector = _published(question)
        scores = [(key, _dot(vector, each)) for key, each in vectors.items()]
        return sorted(scores, key=lambda each: (-each[1], each[0]))[:5]

    for question in asked[:SLOW_ASKED]:
        pairs = list(zip(ours(question), plain(question), strict=True))
        assert all(one[0] == other[0] and abs(one[1] - other[1]) <= 1e-12 for one, other in pairs), pairs
    quick = [milliseconds(lambda question=question: ours(question)) for question in asked]
    slow = [milliseconds(lambda question=question: plain(question)) for question in asked[:SLOW_ASKED]]
    return {
        "entries": entries,
        "semantic": percentiles(quick),
        "published_p50_ms": statistics.median(slow),
        "times_faster": statistics.median(slow) / statistics.median(quick),
    }


def _published(text: str) -> list[float]:
    """The vector of a text as the specification has it, in plain Python."""
    out = [0.0] * DIMENSION
    for feature in features(text):
        value = fnv1a(feature.encode("utf-8"))
        out[value & (DIMENSION - 1)] += 1.0 if value >> 63 else -1.0
    norm = math.sqrt(sum(each * each for each in out))
    return [each / norm for each in out] if norm else out


def _dot(one: list[float], other: list[float]) -> float:
    total = 0.0
    for a, b in zip(one, other):  # noqa: B905 - as the published form has it
        total += a * b
    return total


def measured(records: int, agents: int, operations: int, one: bool) -> dict[str, Any]:
    """What `python -m bench swarm` prints: a swarm, with `one` in this process, and the recall on so many entries."""
    if one:
        return swarm(agents, operations)
    command = [sys.executable, "-m", "bench", "swarm", "--one", "--json"]

    def apart(number: int, of_them: int) -> dict[str, Any]:
        sizes = ["--agents", str(number), "--operations", str(of_them)]
        done = subprocess.run([*command, *sizes], cwd=ROOT, check=True, capture_output=True, text=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return {
        "command": "swarm",
        "records": records,
        "swarm": apart(agents, operations),
        "growth": [apart(each, operations // 10) for each in AGENTS],
        "recall": recalls(records),
        **corpus().to_json(),
        "versions": versions(),
    }
