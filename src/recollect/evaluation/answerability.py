"""Answerability: whether confidence separates questions that a memory can answer from those that it cannot.

Two kinds of questions cannot be answered: those that a data set marks so, and questions put to the wrong conversation.
In the latter, the names of the speakers are replaced by those of the other conversation, so that a name is no clue.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.evaluation.datasets import DataSet, EvaluationQuestion
from recollect.evaluation.retrievers import Recollect
from recollect.evaluation.run import answerable, auroc
from recollect.memory import Memory

#: The confidence below which an answer is doubtful.
THRESHOLD = 0.5
#: Number of bins of the reliability diagram.
BINS = 10


@dataclass(frozen=True)
class Answerability:
    """Confidences of the best hit.

    Attributes:
        own: Questions put to their own conversation.
        wrong: The same questions, put to every other conversation of the set with the speakers' names replaced.
        abstention: Questions that cannot be answered according to the data set, put to their own conversation.
    """

    own: tuple[float, ...]
    wrong: tuple[float, ...]
    abstention: tuple[float, ...]

    def to_json(self, threshold: float = THRESHOLD) -> dict[str, Any]:
        """Return the AUROC of each kind, the shares that the threshold keeps and rejects, and the reliability."""
        return {
            "auroc_wrong_conversation": auroc(self.own, self.wrong) if self.wrong else None,
            "auroc_abstention": auroc(self.own, self.abstention) if self.abstention else None,
            "threshold": threshold,
            "own_kept": float(np.mean(np.asarray(self.own) >= threshold)),
            "wrong_rejected": float(np.mean(np.asarray(self.wrong) < threshold)) if self.wrong else None,
            "n": {"own": len(self.own), "wrong": len(self.wrong), "abstention": len(self.abstention)},
            "reliability": reliability(self.own, self.wrong),
        }


def reliability(own: Sequence[float], wrong: Sequence[float]) -> list[dict[str, float]]:
    """Return, for each bin of confidence, the mean confidence and the share of answerable questions.

    The two kinds have equal weight, since their proportion depends on the application.
    """
    out = []
    for at in range(BINS):
        low, high = at / BINS, (at + 1) / BINS
        kept = [
            [each for each in values if low <= each < high or (each == 1.0 and high == 1.0)] for values in (own, wrong)
        ]
        right, false = len(kept[0]) / max(len(own), 1), len(kept[1]) / max(len(wrong), 1)
        if right + false:
            mean = float(np.mean([*kept[0], *kept[1]]))
            out.append({"low": low, "high": high, "confidence": mean, "answerable": right / (right + false)})
    return out


def answerability(data: DataSet, memory: Memory) -> Answerability:
    """Put every question to its own conversation and to the others, in a filled memory."""
    asked = list(answerable(data, memory))
    names = list(dict.fromkeys(each.namespace for each in asked))
    speakers = {each.namespace: each.speakers for each in asked}
    retrievers = {name: Recollect(memory.namespace(name)) for name in names}
    own = [retrievers[each.namespace].ask(each.text, 1).confidence for each in asked]
    wrong = [
        retrievers[name].ask(renamed(each, speakers[name]), 1).confidence
        for each in asked
        for name in names
        if name != each.namespace
    ]
    unanswerable = [each for each in data.asked if not each.evidence and each.namespace in retrievers]
    abstention = [retrievers[each.namespace].ask(each.text, 1).confidence for each in unanswerable]
    return Answerability(tuple(own), tuple(wrong), tuple(abstention))


def renamed(asked: EvaluationQuestion, speakers: Sequence[str]) -> str:
    """Replace the names of the speakers in a question by others, in full and by their first three letters."""
    swaps: dict[str, str] = {}
    for mine, theirs in zip(asked.speakers, speakers, strict=False):
        swaps |= {mine[:3]: theirs[:3], mine: theirs}
    if not swaps:
        return asked.text
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, sorted(swaps, key=len, reverse=True))) + r")\b")
    return pattern.sub(lambda found: swaps[found.group()], asked.text)
