"""Fit the constants of `hit.confidence` on questions put to right and wrong memories of several sizes.

    .venv/bin/python scripts/fit_confidence.py DATA        # the folder with locomo/ and beam/
    .venv/bin/python scripts/fit_confidence.py DATA sdr    # those of the score of sparse codes
    .venv/bin/python scripts/fit_confidence.py DATA minilm # those with an embedder, whose extra is installed

Confidence is 1 / (1 + exp(a + c ln n - b f - d m)), where n is the number of records, f = score sqrt(weight of the
question), without the share of meaning, and m what the greatest cosine of any record adds to a score: logistic
regression. Without an embedder there is no d, and for the overlap of sparse codes no c either. The memories are parts
of the conversations: from the beginning, and from random turns on. Both kinds of questions, all sizes and both data
sets have the same weight. Validated by leaving one conversation out: constants fitted without a conversation are
applied to it. For each size, the AUROC and the calibration error (expected, ten bins) on the parts from the beginning
are printed.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import recollect
from recollect.evaluation import datasets
from recollect.evaluation.answerability import renamed
from recollect.evaluation.datasets import EvaluationQuestion
from recollect.evaluation.retrievers import text_of
from recollect.evaluation.run import answerable, auroc
from recollect.facets.sdr.index.texts import SdrTexts
from recollect.models.embedding.base import Embedder, Floors, floors_of
from recollect.models.embedding.environment import NO_EMBEDDER, embedder_from
from recollect.records.record import Record

Floats = NDArray[np.float64]
#: The sizes of the memories in records, and how many parts of that size each conversation gives. None: all of it.
SIZES: dict[int | None, int] = {5: 12, 20: 6, 100: 3, 500: 1, None: 1}
#: To how many wrong memories a question is put, if there are many parts.
WRONG = 4


class Case(NamedTuple):
    """A question put to a memory.

    Attributes:
        data: The data set.
        name: The conversation that was asked.
        size: The size that the memory should have; None: that of the conversation.
        first: Whether the memory is the beginning of the conversation.
        own: Whether it is the conversation of the question.
        f: The feature of the best hit.
        m: The feature of the closest record, 0 without an embedder.
        records: The number of records of the memory.
    """

    data: str
    name: str
    size: int | None
    first: bool
    own: bool
    f: float
    m: float
    records: int


class Once:
    """An embedder that embeds each text once: the memories have the same texts again and again."""

    def __init__(self, of: Embedder) -> None:
        self._of, self.name, self.dimension, self.floors = of, of.name, of.dimension, floors_of(of)
        self._vectors: dict[tuple[str, bool], Any] = {}

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[Any]:
        """Return the vectors of texts."""
        for text in texts:
            if (text, asking) not in self._vectors:
                self._vectors[text, asking] = self._of.embed([text], asking=asking)[0]
        return [self._vectors[text, asking] for text in texts]


def asked_by_recall(weight: float, memory: recollect.Memory, question: str) -> tuple[float, float]:
    """Ask with `recall`."""
    hits = memory.recall(question, k=1)
    plan = hits.plan
    closest = 0.0 if plan.closest is None or plan.floor is None else max(plan.closest - plan.floor, 0.0) * weight
    answers = hits[0].score - hits[0].why.shares.get("dense", 0.0) if hits else 0.0
    return answers * hits.plan.weight**0.5, closest


class BySdr:
    """Ask with sparse codes."""

    def __init__(self) -> None:
        self._texts: dict[int, SdrTexts] = {}

    def __call__(self, memory: recollect.Memory, question: str) -> tuple[float, float]:
        """Return the overlap of the best text, and no cosine."""
        if id(memory) not in self._texts:
            self._texts[id(memory)] = SdrTexts(dict(enumerate(map(text_of, memory.find()), start=1)))
        hits = self._texts[id(memory)].overlapping(question, 1)
        return hits[0].overlap if hits else 0.0, 0.0


class Part(NamedTuple):
    """A memory of a part of a conversation, the ids of its records, and the speakers of the conversation."""

    memory: recollect.Memory
    ids: set[str]
    speakers: tuple[str, ...]


def rounds(
    data: datasets.DataSet, rng: random.Random, embedder: Embedder | None = None
) -> Iterator[tuple[int | None, int, list[EvaluationQuestion], dict[str, Part]]]:
    """Yield parts of the conversations, by name, of each size, and the questions that they can answer.

    Those with the number 0 are the beginnings, the others are from random turns on.
    """
    with recollect.open(":memory:") as memory:
        data.fill(memory)
        asked = list(answerable(data, memory))
        speakers = {each.namespace: each.speakers for each in asked}
        turns = {name: sorted(memory.namespace(name).find(), key=in_order) for name in speakers}
    for size, count in SIZES.items():
        for number in range(count):
            with ExitStack() as stack:
                parts: dict[str, Part] = {}
                for name, records in turns.items():
                    most = len(records) if size is None else size
                    begin = rng.randrange(max(1, len(records) - most)) if number else 0
                    part = records[begin : begin + most]
                    opened = stack.enter_context(recollect.open(":memory:", embedder=embedder or NO_EMBEDDER))
                    opened.remember_all(part)
                    if embedder is not None:
                        opened.embed_all()
                    parts[name] = Part(opened, {record.id for record in part}, speakers[name])
                questions = [each for each in asked if set(each.evidence) <= parts[each.namespace].ids]
                yield size, number, questions, parts


def cases(data: datasets.DataSet, kind: str, embedder: Embedder | None) -> Iterator[Case]:
    """Yield the questions of a data set, put to the parts of their conversation that have the answer, and to others."""
    rng = random.Random(1)
    weight = (Floors() if embedder is None else floors_of(embedder)).weight
    for size, number, questions, parts in rounds(data, rng, embedder):
        ask = BySdr() if kind == "sdr" else partial(asked_by_recall, weight)
        for each in questions:
            others = [name for name in parts if name != each.namespace]
            some = rng.sample(others, min(WRONG, len(others))) if SIZES[size] > 1 else others
            for name in [each.namespace, *some]:
                own = name == each.namespace
                question = each.text if own else renamed(each, parts[name].speakers)
                f, m = ask(parts[name].memory, question)
                yield Case(data.name, name, size, not number, own, f, m, len(parts[name].ids))


def in_order(record: Record) -> tuple[object, ...]:
    """Return the sort key of a turn of a conversation."""
    return record.time, record.session or "", record.position or 0


def fitted(features: Floats, right: Floats, weight: Floats) -> Floats:
    """The coefficients of the logistic regression, by Newton's method."""
    out = np.zeros(features.shape[1])
    for _ in range(60):
        chance = 1 / (1 + np.exp(-features @ out))
        gradient = features.T @ (weight * (right - chance))
        hessian = (features * (weight * chance * (1 - chance))[:, None]).T @ features
        out += np.linalg.solve(hessian, gradient)
    return out


def calibration_error(chance: Floats, right: Floats) -> float:
    """The expected calibration error over ten bins; both kinds of questions have the same weight."""
    weight = np.where(right == 1, 1 / max(right.sum(), 1), 1 / max((1 - right).sum(), 1)) / 2
    bins = np.minimum((chance * 10).astype(int), 9)
    return float(sum(abs((weight * (chance - right))[bins == number].sum()) for number in range(10)))


def main(folder: Path, kind: str = "recall") -> None:
    """Print the constants, and how they do on conversations that were left out."""
    sets = (datasets.locomo(folder / "locomo" / "locomo5-dev.json"), datasets.beam(folder / "beam" / "100K"))
    embedder = None if kind in ("recall", "sdr") else Once(embedder_from(kind))
    found = [case for data in sets for case in cases(data, kind, embedder)]
    right = np.array([case.own for case in found], dtype=np.float64)
    columns = [np.ones(len(found)), np.array([case.f for case in found])]
    if kind != "sdr":
        columns.append(np.log([case.records for case in found]))
    if embedder is not None:
        columns.append(np.array([case.m for case in found]))
    features = np.stack(columns, axis=1)
    kinds = [(case.data, case.size, case.own) for case in found]
    counts = Counter(kinds)
    weight = np.array([1 / counts[each] for each in kinds])
    names = ", ".join(("intercept", "slope", "factor of ln n", "factor of the closest")[: len(columns)])
    print(f"{names}: {np.round(fitted(features, right, weight), 2).tolist()}, from {len(found)} questions to a memory")
    left_out = np.zeros(len(found))
    groups = [(case.data, case.name) for case in found]
    for group in dict.fromkeys(groups):
        inside = np.array([each == group for each in groups])
        constants = fitted(features[~inside], right[~inside], weight[~inside])
        left_out[inside] = 1 / (1 + np.exp(-features[inside] @ constants))
    for data in dict.fromkeys(case.data for case in found):
        for size in SIZES:
            inside = np.array([case.data == data and case.size == size and case.first for case in found])
            chance, own = left_out[inside], right[inside]
            print(
                f"{data}, {size or 'all'} records, each conversation left out: n {int(own.sum())}, AUROC "
                f"{auroc(list(chance[own == 1]), list(chance[own == 0])):.3f}, calibration error "
                f"{calibration_error(chance, own):.3f}, at 0.5 kept {100 * np.mean(chance[own == 1] >= 0.5):.0f} and "
                f"rejected {100 * np.mean(chance[own == 0] < 0.5):.0f} per cent"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
