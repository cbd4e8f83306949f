"""`python -m bench.concise DATA [EMBEDDER]`: how many records have how much of the evidence that ten hits have.

DATA is the folder with locomo/ and beam/. For each data set, three ways to leave hits out are compared at the number of
records at which they have 95 per cent of that evidence: the first n hits, hits with a part of the first score, and
concise answers. Then the threshold of concise answers is fitted without a conversation, for 95 per cent in the mean of
both sets, and applied to it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import recollect
from recollect.engine.read.concise import concise
from recollect.evaluation import datasets
from recollect.evaluation.run import answerable
from recollect.models.embedding.environment import NO_EMBEDDER

K, WANTED = 10, 0.95
#: Chooses some of the hits of a question, with a threshold.
Way = Callable[[Sequence[recollect.Hit], float], Sequence[recollect.Hit]]
WAYS: dict[str, tuple[Way, Sequence[float]]] = {
    "the first n hits": (lambda hits, most: hits[: int(most)], range(1, K + 1)),
    "a part of the first score": (
        lambda hits, least: [hit for hit in hits if hit.score >= least * hits[0].score],
        [1 - step / 200 for step in range(180)],
    ),
    "concise": (lambda hits, most: concise(hits, int(most))[0], range(50, 100)),
}


class Case(NamedTuple):
    """A question: its conversation, its evidence, and its ten hits."""

    name: str
    evidence: frozenset[str]
    hits: Sequence[recollect.Hit]


class Kept(NamedTuple):
    """How many records are kept of a question, and the part of its evidence that they and all hits have."""

    records: int
    evidence: float
    of: float


def cases(data: datasets.DataSet, embedder: str) -> Iterator[Case]:
    """Yield the questions of a data set with their hits."""
    with recollect.open(":memory:", embedder=embedder) as memory:
        data.fill(memory)
        asked = [each for each in answerable(data, memory) if each.evidence]
        for name in sorted({each.namespace for each in asked}) if embedder != NO_EMBEDDER else ():
            memory.namespace(name).embed_all()
        for each in asked:
            hits = memory.namespace(each.namespace).recall(each.text, K)
            yield Case(each.namespace, frozenset(each.evidence), tuple(hits))


def kept(case: Case, way: Way, threshold: float) -> Kept:
    """Return what a way keeps of a question."""
    some = way(case.hits, threshold) if case.hits else ()
    found = [sum(hit.record.id in case.evidence for hit in hits) / len(case.evidence) for hits in (some, case.hits)]
    return Kept(len(some), *found)


def summed(found: Sequence[Kept]) -> tuple[float, float]:
    """Return the mean number of records, and the part of the evidence of ten hits that they have."""
    return mean(each.records for each in found), sum(each.evidence for each in found) / sum(each.of for each in found)


def main(folder: Path, embedder: str = NO_EMBEDDER) -> None:
    """Print the comparison, and how the threshold does on conversations that were left out."""
    sets = (datasets.locomo(folder / "locomo" / "locomo5-dev.json"), datasets.beam(folder / "beam" / "100K"))
    asked = {data.name: list(cases(data, embedder)) for data in sets}
    for name, (way, thresholds) in WAYS.items():
        for data, questions in asked.items():
            points = [summed([kept(each, way, threshold) for each in questions]) for threshold in thresholds]
            enough = [point for point in points if point[1] >= WANTED]
            records, evidence = min(enough) if enough else points[-1]
            print(f"{name}, {data}: {records:.2f} records have {100 * evidence:.1f} per cent")
    way, thresholds = WAYS["concise"]
    of = {
        (data, number, threshold): kept(each, way, threshold)
        for data, questions in asked.items()
        for number, each in enumerate(questions)
        for threshold in thresholds
    }

    def chosen(data: str, threshold: float, without: str, *, inside: bool) -> list[Kept]:
        """Return what is kept of the questions of a conversation, or of all others."""
        named = enumerate(asked[data])
        return [of[data, number, threshold] for number, each in named if (each.name == without) is inside]

    for data, questions in asked.items():
        left_out: list[Kept] = []
        for name in dict.fromkeys(each.name for each in questions):
            fitted = next(
                threshold
                for threshold in thresholds
                if mean(summed(chosen(each, threshold, name, inside=False))[1] for each in asked) >= WANTED
            )
            left_out += chosen(data, fitted, name, inside=True)
        records, evidence = summed(left_out)
        print(f"concise, {data}, each conversation left out: {100 * evidence:.1f} per cent with {records:.2f} records")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
