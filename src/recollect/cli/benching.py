"""The command that times recall on an existing store: bench.

The questions consist of words from records of the store, so no preparation is needed, and the store is opened for
reading only. The command measures speed, not quality; `recollect eval` measures quality.
"""

from __future__ import annotations

import math
import random
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, count_option, print_json
from recollect.common.regexes import regex
from recollect.errors import UnsupportedError
from recollect.memory import Memory

_WORD = regex(r"\w+(?:'\w+)?")
_SHARES = (50, 95, 99)
_BUCKETS, _WIDEST = 12, 60


@app.command()
@click.option(
    "--questions",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    metavar="N",
    help="Number of questions to ask.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for choosing records and words.")
@count_option(10)
@common
def bench(settings: Settings, questions: int, seed: int, k: int) -> None:
    """Time recall on this store, with questions of 3 to 10 words from its own records. Writes nothing."""
    began = time.perf_counter()
    with settings.open(read_only=True) as memory:
        opened_ms = (time.perf_counter() - began) * 1000
        texts = questions_of(memory, questions, seed)
        result = {
            "records": memory.count(),
            "questions": questions,
            "k": k,
            "open_ms": opened_ms,
            # Reported separately, because it loads what later ones find in memory.
            "first_recall_ms": _timed(memory, texts[0], k),
        }
        times = [_timed(memory, question, k) for question in texts]
    result |= {f"p{share}_ms": _percentile(times, share) for share in _SHARES}
    buckets = histogram(times)
    if settings.as_json:
        named = [{"from_ms": low, "to_ms": high, "questions": count} for low, high, count in buckets]
        print_json({**result, "histogram": named})
    else:
        _show(result, buckets)


def questions_of(memory: Memory, count: int, seed: int) -> list[str]:
    """Return questions, each of 3 to 10 words of one record in random order; of fewer words if the record has fewer.

    Args:
        count: The number of questions.
        seed: The seed for choosing records and words.

    Raises:
        UnsupportedError: No record of the memory contains a word.

    Cost:
        Reads every record.
    """
    texts = [words for record in memory.find(order="id") if (words := _WORD.findall(record.text))]
    if not texts:
        others = ", ".join(name for name in memory.namespaces()[:20] if name != memory.name)
        hint = f"; other namespaces: {others}" if others else ""
        raise UnsupportedError("bench", f"namespace {memory.name!r} contains no words for questions{hint}")
    rng = random.Random(seed)
    chosen = (rng.choice(texts) for _ in range(count))
    return [" ".join(rng.sample(words, min(len(words), rng.randint(3, 10)))) for words in chosen]


def _timed(memory: Memory, question: str, k: int) -> float:
    """Return the time of one recall in milliseconds."""
    began = time.perf_counter()
    memory.recall(question, k=k)
    return (time.perf_counter() - began) * 1000


def histogram(times: Sequence[float]) -> list[tuple[float, float, int]]:
    """Return buckets of equal ratio, including empty ones, as (from, to, count). Latencies vary by factors.

    >>> [(round(low), round(high), count) for low, high, count in histogram([1.0, 1.0, 4096.0])][::11]
    [(1, 2, 2), (2048, 4096, 1)]
    """
    low, high = min(times), max(times)
    # If all times are equal, any ratio will do.
    ratio = max(high / low, 1.01) ** (1 / _BUCKETS)
    edges = [low * ratio**index for index in range(_BUCKETS + 1)]
    counts = Counter(min(bisect_right(edges, each) - 1, _BUCKETS - 1) for each in times)
    return [(edges[index], edges[index + 1], counts[index]) for index in range(_BUCKETS)]


def _percentile(times: Sequence[float], share: int) -> float:
    """Return the smallest time that at least `share` per cent of the times do not exceed."""
    return sorted(times)[max(0, math.ceil(share / 100 * len(times)) - 1)]


def _show(result: dict[str, Any], buckets: Sequence[tuple[float, float, int]]) -> None:
    numbers = {"justify": "right"}
    names = ("open_ms", "first_recall_ms", *(f"p{share}_ms" for share in _SHARES))
    render.table(
        (("recall, ms", {}), ("", numbers)),
        (
            ("records", str(result["records"])),
            ("questions", f"{result['questions']}, {result['k']} hits"),
            *((name.removesuffix("_ms").replace("_", " "), f"{result[name]:.2f}") for name in names),
        ),
    )
    click.echo()
    peak = max(count for _, _, count in buckets)
    render.table(
        (("from ms", numbers), ("to ms", numbers), ("questions", numbers), ("", {"no_wrap": True})),
        ((f"{low:.2f}", f"{high:.2f}", str(count), "█" * -(-_WIDEST * count // peak)) for low, high, count in buckets),
    )
