"""Answerability: whether confidence tells a question that a memory can answer from one that it cannot.

Two kinds of questions cannot be answered: those that a data set says so of, and those asked of the wrong
conversation. For the latter the names of the speakers are exchanged for those of the conversation that is asked, so
that a name gives nothing away.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.evaluation.datasets import DataSet, Question
from recollect.evaluation.metrics import auroc
from recollect.evaluation.retrievers import Recollect
from recollect.evaluation.run import answerable
from recollect.memory import Memory

#: The confidence below which an answer is doubtful.
THRESHOLD = 0.5
#: Of the reliability diagram.
BINS = 10


@dataclass(frozen=True)
class Answerability:
    """Confidences of the best hit.

    own         questions asked of their own conversation
    wrong       the same, asked of every other conversation of the set, speakers' names exchanged
    abstention  questions of which the data set says that they cannot be answered, asked of their own conversation
    """

    own: tuple[float, ...]
    wrong: tuple[float, ...]
    abstention: tuple[float, ...]

    def to_json(self, threshold: float = THRESHOLD) -> dict[str, Any]:
        """AUROC of each kind, what the threshold keeps and rejects, and the reliability of own against wrong."""
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
    """By bins of confidence: the mean confidence, and how many of the questions were answerable.

    The two kinds are weighed alike, since how many questions go astray depends on the use.
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
    """Ask a filled memory: every question of its own conversation and of the others."""
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


def renamed(asked: Question, speakers: Sequence[str]) -> str:
    """The question with its conversation's speakers exchanged for others, in full and by their first three letters."""
    swaps: dict[str, str] = {}
    for mine, theirs in zip(asked.speakers, speakers, strict=False):
        swaps |= {mine[:3]: theirs[:3], mine: theirs}
    if not swaps:
        return asked.text
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, sorted(swaps, key=len, reverse=True))) + r")\b")
    return pattern.sub(lambda found: swaps[found.group()], asked.text)
