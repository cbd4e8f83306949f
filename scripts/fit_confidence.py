"""Fit the two constants of `hit.confidence` on questions put to right and wrong memories.

    .venv/bin/python scripts/fit_confidence.py DATA        # the folder with locomo/ and beam/
    .venv/bin/python scripts/fit_confidence.py DATA sdr    # those of the score of sparse codes

Confidence is 1 / (1 + exp(a - b f)), f = score sqrt(weight of the question), or the overlap of sparse codes: logistic
regression with one feature, and equal weight for both kinds of questions and both data sets. Validated by leaving one
conversation out: constants fitted without a conversation are applied to it, and the AUROC and log-loss of these
predictions are printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import recollect
from recollect.evaluation import datasets
from recollect.evaluation.answerability import renamed
from recollect.evaluation.metrics import auroc
from recollect.evaluation.retrievers import text_of
from recollect.evaluation.run import answerable
from recollect.indexes.sdr.texts import SdrTexts

Floats = NDArray[np.float64]


class Cases(NamedTuple):
    """f and whether the question is answerable, with the data set and conversation that was asked, and a weight."""

    f: Floats
    right: Floats
    groups: list[tuple[str, str]]
    weight: Floats


#: Returns f of the best hit of a question in a namespace.
Ask = Callable[[str, str], float]


def by_recall(memory: recollect.Memory, names: Iterable[str]) -> Ask:
    """Ask with `recall`."""

    def ask(name: str, question: str) -> float:
        hits = memory.namespace(name).recall(question, k=1)
        return hits[0].score * hits.plan.weight**0.5 if hits else 0.0

    return ask


def by_sdr(memory: recollect.Memory, names: Iterable[str]) -> Ask:
    """Ask with sparse codes."""
    texts = {name: SdrTexts(dict(enumerate(map(text_of, memory.namespace(name).find()), start=1))) for name in names}

    def ask(name: str, question: str) -> float:
        hits = texts[name].overlapping(question, 1)
        return hits[0].overlap if hits else 0.0

    return ask


def cases(folder: Path, asking: Callable[[recollect.Memory, Iterable[str]], Ask]) -> Cases:
    """Every question of the development data, asked of its own conversation and of the others."""
    sets = (datasets.locomo(folder / "locomo" / "locomo5-dev.json"), datasets.beam(folder / "beam" / "100K"))
    rows: list[tuple[float, float, tuple[str, str], float]] = []
    for data in sets:
        with recollect.open(":memory:") as memory:
            data.fill(memory)
            asked = list(answerable(data, memory))
            speakers = {each.namespace: each.speakers for each in asked}
            ask = asking(memory, speakers)
            kinds: dict[bool, list[tuple[float, str]]] = {True: [], False: []}
            for each in asked:
                for name in speakers:
                    own = name == each.namespace
                    question = each.text if own else renamed(each, speakers[name])
                    kinds[own].append((ask(name, question), name))
        for own, found in kinds.items():
            rows += [(f, float(own), (data.name, name), 1 / len(found)) for f, name in found]
    f, right, groups, weight = zip(*rows, strict=True)
    return Cases(np.array(f), np.array(right), list(groups), np.array(weight))


def fitted(f: Floats, right: Floats, weight: Floats) -> Floats:
    """Intercept and slope of the logistic regression, by Newton's method."""
    features = np.stack([np.ones_like(f), f], axis=1)
    out = np.zeros(2)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-features @ out))
        gradient = features.T @ (weight * (right - chance))
        hessian = (features * (weight * chance * (1 - chance))[:, None]).T @ features
        out += np.linalg.solve(hessian, gradient)
    return out


def main(folder: Path, kind: str = "recall") -> None:
    """Print the constants, and how they do on conversations that were left out."""
    data = cases(folder, {"recall": by_recall, "sdr": by_sdr}[kind])
    intercept, slope = fitted(data.f, data.right, data.weight)
    print(f"1 / (1 + exp({-intercept:.2f} - {slope:.2f} f)), from {len(data.f)} questions put to a memory")
    left_out = np.zeros_like(data.f)
    for group in dict.fromkeys(data.groups):
        inside = np.array([each == group for each in data.groups])
        a, b = fitted(data.f[~inside], data.right[~inside], data.weight[~inside])
        left_out[inside] = 1 / (1 + np.exp(-(a + b * data.f[inside])))
    for name in dict.fromkeys(name for name, _ in data.groups):
        inside = np.array([each == name for each, _ in data.groups])
        chance, right = left_out[inside], data.right[inside] == 1
        loss = -np.average(np.log(np.where(right, chance, 1 - chance)), weights=data.weight[inside])
        kept, rejected = np.mean(chance[right] >= 0.5), np.mean(chance[~right] < 0.5)
        print(
            f"{name}, each conversation left out: AUROC {auroc(list(chance[right]), list(chance[~right])):.3f}, "
            f"log-loss {loss:.3f}, at 0.5 kept {100 * kept:.1f} and rejected {100 * rejected:.1f} per cent"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
