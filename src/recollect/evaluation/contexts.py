"""Coverage: the share of the evidence of a question that its context contains, within budgets of tokens.

A turn that is in the context as a whole is covered. A turn of which there are passages is covered if they have every
content word of the answer that the turn has, or of the question if the turn has no word of the answer. Tokens are a
quarter of the UTF-8 bytes, rounded up, with all headings.

Beside it, the plain method: the best hits one after the other until one does not fit, each with 10 tokens for its
header, by the ranking of `Memory.recall` and by those of peers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError
from recollect.evaluation.datasets import DataSet, EvaluationQuestion
from recollect.evaluation.retrievers import PEERS, Recollect, Retriever
from recollect.evaluation.run import answerable
from recollect.memory import Memory
from recollect.memory.context.gathering import HITS
from recollect.records.record import Record
from recollect.text.english import STOP_WORDS

#: Tokens of a header in the plain method.
_HEADER = 10
_WORD = regex(r"[^\W_]+")
_STOPPED = frozenset(word.replace("'", "") for word in STOP_WORDS)


class Covered(NamedTuple):
    """The shares of the evidence of a question that are covered, and that are there as whole turns."""

    covered: float
    whole: float


@dataclass(frozen=True)
class Coverage:
    """The coverage of every question.

    Attributes:
        budgets: The budgets in tokens.
        asked: The questions.
        found: For each method, for each question, the coverage at each budget.
    """

    budgets: tuple[int, ...]
    asked: tuple[EvaluationQuestion, ...]
    found: dict[str, list[list[Covered]]]

    def to_json(self) -> dict[str, Any]:
        """Return the means in per cent, over all questions, and those of the context by category and by namespace."""
        return {
            "budgets": list(self.budgets),
            "methods": {method: self._means(range(len(self.asked)), method) for method in self.found},
            "by_category": self._by(lambda question: question.category),
            "by_namespace": self._by(lambda question: question.namespace),
        }

    def _by(self, key: Callable[[EvaluationQuestion], str]) -> dict[str, Any]:
        numbers: dict[str, list[int]] = {}
        for number, question in enumerate(self.asked):
            numbers.setdefault(key(question), []).append(number)
        return {name: {"n": len(own), **self._means(own, "context")} for name, own in sorted(numbers.items())}

    def _means(self, numbers: Iterable[int], method: str) -> dict[str, list[float]]:
        rows = 100 * np.array([self.found[method][number] for number in numbers]).mean(axis=0)
        return {"covered": rows[:, 0].tolist(), "whole": rows[:, 1].tolist()}


def content_words(text: str) -> frozenset[str]:
    """Return the content words of a text: without stop words, of three letters or more or all digits, cut to five.

    >>> sorted(content_words("She's buying 2 telescopes at the market"))
    ['2', 'buyin', 'marke', 'teles']
    """
    found = _WORD.findall(text.lower().replace("'", "").replace("\u2019", ""))
    return frozenset(word[:5] for word in found if word not in _STOPPED and (len(word) >= 3 or word.isdigit()))


def covered(question: EvaluationQuestion, turns: dict[str, Record], passages: dict[str, str]) -> Covered:
    """Return the coverage of a question.

    Args:
        turns: The records of its evidence, by id.
        passages: What is given of each record that is in the context, by id.
    """
    answer, asked = content_words(question.answer), content_words(question.text)
    count = whole = 0
    for record_id in question.evidence:
        if record_id not in passages:
            continue
        text, part = turns[record_id].text, passages[record_id]
        if part == text:
            whole += 1
        words = content_words(text)
        wanted = words & answer or words & asked
        count += part == text or (bool(wanted) and wanted <= content_words(part))
    return Covered(count / len(question.evidence), whole / len(question.evidence))


def coverage(
    data: DataSet,
    memory: Memory,
    budgets: Sequence[int],
    *,
    peers: Sequence[str] = (),
    progress: Callable[[int, int], object] = lambda done, of: None,
) -> Coverage:
    """Measure the contexts of every question that has evidence, in a filled memory.

    Raises:
        InvalidArgumentError: A budget is below 1.
    """
    for budget in budgets:
        if budget < 1:
            raise InvalidArgumentError("context", budget, "must be numbers of tokens, 1 or more")
    asked = tuple(answerable(data, memory))
    methods = {
        "context": "context",
        "recollect": "recall, plain top k",
        **{name: f"{name}, plain top k" for name in peers},
    }
    found: dict[str, list[list[Covered]]] = {label: [] for label in methods.values()}
    for namespace, group in groupby(asked, key=lambda each: each.namespace):
        here = memory.namespace(namespace)
        records = here.find(order="position")
        turns = {record.id: record for record in records}
        plain: dict[str, Retriever] = {"recollect": Recollect(here)}
        plain |= {name: PEERS[name](records) for name in peers}
        for question in group:
            rows = [covered(question, turns, _in_context(here, question.text, budget)) for budget in budgets]
            found["context"].append(rows)
            for name, retriever in plain.items():
                ids = retriever.ask(question.text, HITS).ids
                rows = [covered(question, turns, _plain(ids, turns, budget)) for budget in budgets]
                found[methods[name]].append(rows)
            progress(len(found["context"]), len(asked))
    return Coverage(tuple(budgets), asked, found)


def _in_context(memory: Memory, question: str, budget: int) -> dict[str, str]:
    context = memory.context(question, budget)
    return {item.record.id: "\n".join(item.passages) for item in context.items if item.included}


def _plain(ids: Sequence[str], turns: dict[str, Record], budget: int) -> dict[str, str]:
    """Return the best hits up to the first that does not fit."""
    out: dict[str, str] = {}
    for record_id in ids:
        text = turns[record_id].text
        budget -= math.ceil(len(text.encode("utf-8")) / 4) + _HEADER
        if budget < 0:
            break
        out[record_id] = text
    return out
