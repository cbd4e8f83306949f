"""`python -m bench.meaning`: recall with a model beside recall without one, in alternation, at a number of turns.

    python -m bench.meaning --turns 100000 --embedder minilm

The time of a question's embedding is measured apart: the question was asked before, so its vector is cached. Embedding
100,000 turns takes MiniLM about twenty minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from statistics import median

import recollect
from bench.cost import questions, turns
from bench.measuring import one_core
from recollect.models.embedding.environment import embedder_from


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
    embedder = embedder_from(given.embedder)
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


if __name__ == "__main__":
    main()
