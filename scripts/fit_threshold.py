"""Fit the threshold of `min_confidence="auto"`: it keeps 95 of 100 right first hits, and refuses as much as it can.

    .venv/bin/python -m scripts.fit_threshold DATA           # the folder with locomo/ and beam/
    .venv/bin/python -m scripts.fit_threshold DATA minilm    # with an embedder, whose extra is installed

Questions are put to parts of the right conversation and of wrong ones, as for `fit_confidence.py`. A first hit is right
if it is evidence. Data sets and sizes have the same weight. The curve lists for thresholds how many right first hits
are kept, and how many questions to a wrong memory are refused. For the validation, the threshold is fitted without a
conversation, and applied to it.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.fit_confidence import WRONG, Once, rounds

from recollect.evaluation import datasets
from recollect.evaluation.answerability import renamed
from recollect.models.embedding.base import Embedder
from recollect.models.embedding.environment import NO_EMBEDDER, embedder_from

#: The share of right first hits that is kept.
KEPT = 0.95
CURVE = (0.02, 0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8)


class Case(NamedTuple):
    """A first hit.

    Attributes:
        data: The data set.
        name: The conversation of the question.
        size: The size of the memory.
        own: Whether the memory is of that conversation.
        right: Whether the hit is evidence.
        confidence: Its confidence; 0.0 if there is none.
    """

    data: str
    name: str
    size: int | None
    own: bool
    right: bool
    confidence: float


def cases(data: datasets.DataSet, embedder: Embedder | None = None) -> Iterator[Case]:
    """Yield the first hit of each question, in parts of its conversation that have the answer, and in others."""
    rng = random.Random(1)
    for size, _, questions, parts in rounds(data, rng, embedder):
        for each in questions:
            others = [name for name in parts if name != each.namespace]
            for name in [each.namespace, *rng.sample(others, min(WRONG, len(others)))]:
                own = name == each.namespace
                hits = parts[name].memory.recall(each.text if own else renamed(each, parts[name].speakers), k=1)
                right = own and bool(hits) and hits[0].record.id in each.evidence
                yield Case(data.name, each.namespace, size, own, right, hits[0].confidence if hits else 0.0)


def weights(found: Sequence[Case]) -> list[float]:
    """Return the weight of each case: the same for each data set, size and kind."""
    kinds = [(case.data, case.size, case.own, case.right) for case in found]
    counts = Counter(kinds)
    return [1 / counts[each] for each in kinds]


def threshold(found: Sequence[Case]) -> float:
    """Return the greatest threshold that keeps enough right first hits."""
    right = sorted((case.confidence, weight) for case, weight in zip(found, weights(found), strict=True) if case.right)
    lost, most = 0.0, (1 - KEPT) * sum(weight for _, weight in right)
    for confidence, weight in right:
        lost += weight
        if lost > most:
            return confidence
    return 0.0


def shares(found: Sequence[Case], least: float) -> tuple[float, float, float]:
    """Return the shares of right first hits and of other ones that are kept, and of wrong memories that are refused."""
    of = dict.fromkeys(("right", "other", "wrong"), (0.0, 0.0))
    for case, weight in zip(found, weights(found), strict=True):
        kind = "right" if case.right else "other" if case.own else "wrong"
        kept, all_of = of[kind]
        of[kind] = kept + weight * (case.confidence >= least), all_of + weight
    right, other, wrong = (kept / max(all_of, 1e-9) for kept, all_of in of.values())
    return right, other, 1 - wrong


def main(folder: Path, name: str = NO_EMBEDDER) -> None:
    """Print the threshold, its curve, and how it does on conversations that were left out."""
    sets = (datasets.locomo(folder / "locomo" / "locomo5-dev.json"), datasets.beam(folder / "beam" / "100K"))
    embedder = None if name == NO_EMBEDDER else Once(embedder_from(name))
    found = [case for data in sets for case in cases(data, embedder)]
    best = threshold(found)
    print(f"threshold {best:.4f}, from {len(found)} first hits, {sum(case.right for case in found)} of them right")
    print("threshold  right first hits kept  other first hits kept  wrong memories refused, per cent")
    for least in sorted({*CURVE, round(best, 4)}):
        right, other, refused = (100 * each for each in shares(found, least))
        print(f"{least:9.3f}  {right:21.1f}  {other:21.1f}  {refused:22.1f}")
    for data in dict.fromkeys(case.data for case in found):
        kept = refused = right = wrong = 0
        for name in dict.fromkeys(case.name for case in found if case.data == data):
            least = threshold([case for case in found if case.name != name])
            inside = [case for case in found if case.name == name]
            kept += sum(case.confidence >= least for case in inside if case.right)
            right += sum(case.right for case in inside)
            refused += sum(case.confidence < least for case in inside if not case.own)
            wrong += sum(not case.own for case in inside)
        print(
            f"{data}, each conversation left out: kept {100 * kept / right:.1f} of {right} right first hits, refused "
            f"{100 * refused / wrong:.1f} per cent of {wrong} questions to a wrong memory"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
