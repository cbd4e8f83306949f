"""`python -m bench.meaning`: recall with a model beside recall without one, in alternation, at a number of turns.

    python -m bench.meaning --turns 100000 --embedder minilm

The time of a question's embedding is measured apart: the question was asked before, so its vector is cached. Embedding
100,000 turns takes MiniLM about twenty minutes. Not all vectors are compared with a question (`scoring.nearest`): it is
printed, too, which part of the nearest ones is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from statistics import mean, median
from typing import Any

import numpy as np

import recollect
from bench.cost import questions, turns
from bench.measuring import one_core
from recollect.indexes.scoring.dense import products, quantised
from recollect.indexes.scoring.nearest import nearest, signs_of
from recollect.models.embedding.base import Embedder, floors_of
from recollect.models.embedding.environment import embedder_from


class Recording:
    """An embedder that keeps the vectors of all texts and of all questions."""

    def __init__(self, of: Embedder) -> None:
        self._of, self.name, self.dimension, self.floors = of, of.name, of.dimension, floors_of(of)
        self.texts: dict[str, Any] = {}
        self.questions: dict[str, Any] = {}

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Any:
        """Return the vectors of texts."""
        found = np.asarray(self._of.embed(texts, asking=asking), dtype=np.float32)
        (self.questions if asking else self.texts).update(zip(texts, found, strict=True))
        return found


def compared(recorded: Recording, count: int) -> float:
    """Return the part of the texts that are nearest to a question which are compared with it."""
    units = quantised(np.stack([*recorded.texts.values()]))
    signs, rows, parts = signs_of(units), np.arange(len(units)), []
    for vector in quantised(np.stack([*recorded.questions.values()])):
        places, *_ = nearest(units, vector, signs, rows)
        exact = np.argsort(-products(units, vector), kind="stable")[:count]
        parts.append(len(np.intersect1d(exact, places)) / count)
    return mean(parts)


def processor_ms(memory: recollect.Memory, asked: Sequence[str]) -> float:
    """Return the processor time of a recall, in milliseconds."""
    begin = time.process_time()
    for question in asked:
        memory.recall(question)
    return (time.process_time() - begin) / len(asked) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--embedder", default="minilm")
    given = parser.parse_args()
    one_core()
    told, asked = turns(given.turns), questions(given.questions)
    embedder = Recording(embedder_from(given.embedder))
    with recollect.open(":memory:", embedder="none") as plain, recollect.open(":memory:", embedder=embedder) as near:
        for memory in (plain, near):
            memory.remember_all(told)
        begin = time.process_time()
        near.embed_all(1000)
        embedding = (time.process_time() - begin) / given.turns * 1000
        begin = time.process_time()
        for question in asked:
            embedder.embed([question], asking=True)
        of_question = (time.process_time() - begin) / len(asked) * 1000
        for memory in (plain, near):
            processor_ms(memory, asked)
        pairs = [(processor_ms(plain, asked), processor_ms(near, asked)) for _ in range(given.pairs)]
    ratios = [after / before for before, after in pairs]
    print(f"{given.turns} turns, {given.questions} questions, {given.pairs} pairs, processor time")
    print(f"recall without a model  {median(before for before, _ in pairs):.2f} ms")
    print(
        f"recall with {given.embedder:12}{median(after for _, after in pairs):.2f} ms, the question's embedding apart"
    )
    print(f"ratio                   {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    print(f"embedding a turn        {embedding:.2f} ms, a question {of_question:.2f} ms")
    print(f"of the ten nearest {100 * compared(embedder, 10):.1f} per cent are compared, of the fifty nearest", end=" ")
    print(f"{100 * compared(embedder, 50):.1f}")


if __name__ == "__main__":
    main()
