"""`python -m bench glossary`: recall and annotate of a glossary of 10,000 terms, and how annotate grows.

Terms are one to three words of the rarer half of a generated vocabulary with ranks by Zipf's law. Texts and
questions are of all of its words.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import recollect
from bench.measuring import versions
from recollect.facets.glossary.glossary import Glossary
from recollect.facets.glossary.index.index import Names, tokens
from recollect.facets.glossary.records import term_fields

_VOCABULARY, _QUESTIONS, _REPEATS = 20_000, 500, 7
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: The numbers of terms and of characters for which the automaton is timed.
_TERMS, _CHARACTERS = (1_000, 10_000, 100_000), (1_000, 10_000, 100_000, 1_000_000)


def measured(records: int = 10_000) -> dict[str, Any]:
    """Return the figures, in milliseconds.

    Args:
        records: The number of terms.
    """
    chance = random.Random(7)
    words = ["".join(chance.choices(_LETTERS, k=chance.randint(3, 9))) for _ in range(_VOCABULARY)]
    weights = [1 / (rank + 10) for rank in range(_VOCABULARY)]

    def text(count: int) -> str:
        return " ".join(chance.choices(words, weights, k=count))

    def names(count: int) -> list[str]:
        return [" ".join(chance.sample(words[_VOCABULARY // 2 :], chance.choice((1, 1, 2, 3)))) for _ in range(count)]

    figures: dict[str, Any] = {"command": "glossary", "records": records}
    with recollect.open(":memory:") as memory:
        memory._beside("terms").remember_all(
            term_fields("a", f"{name} {number}", text(12), "c", names(2), text(20))
            for number, name in enumerate(names(records))
        )
        figures |= _recalled(memory.glossary, [text(8) for _ in range(_QUESTIONS)])
        said = text(18_000)[:100_000]
        figures["occurrences"] = len(memory.glossary.annotate(said, "a"))
        figures["annotate_100_kb_ms"] = _best(lambda: memory.glossary.annotate(said, "a"))
    said = text(_CHARACTERS[-1] // 5)
    figures["growth"] = []
    for count in _TERMS:
        known = Names([tokens(name) for name in names(count)])
        for size in _CHARACTERS:
            figures["growth"].append(
                {"terms": count, "characters": size, "ms": _best(partial(known.find, said[:size]))}
            )
    figures["versions"] = versions()
    return figures


def _recalled(glossary: Glossary, questions: list[str]) -> dict[str, float]:
    glossary.recall(questions[0], "a")
    times = []
    for question in questions:
        begin = time.perf_counter()
        glossary.recall(question, "a")
        times.append(1000 * (time.perf_counter() - begin))
    ordered = sorted(times)
    return {"recall_p50_ms": statistics.median(times), "recall_p95_ms": ordered[int(0.95 * len(ordered))]}


def _best(run: Callable[[], object]) -> float:
    """Return the shortest time of several runs, in milliseconds."""
    times = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        run()
        times.append(1000 * (time.perf_counter() - begin))
    return min(times)
