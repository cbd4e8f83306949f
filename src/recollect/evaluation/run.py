"""Running an evaluation: store a data set, ask its questions, and measure each ranking.

Peers answer the same questions in the same run, one by one, and differences have a bootstrap interval. Nothing is tuned
here, and the measured code knows nothing about the data set. Two runs can be compared, and one
can be drawn, which needs matplotlib.
"""

from __future__ import annotations

import json
import math
import platform
import random
import re
import string
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect._version import __version__
from recollect.common.regexes import regex
from recollect.errors import ImportFormatError, InvalidArgumentError, StoreIOError
from recollect.evaluation.datasets import DataSet, EvaluationQuestion
from recollect.evaluation.retrievers import PEERS, Recollect, Retriever, imported
from recollect.memory import Memory
from recollect.records.record import Record
from recollect.text.english import STOP_WORDS

#: The metrics of the comparison with peers.
COMPARED = ("recall@5", "recall@10", "ndcg@10", "mrr")


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The result of one question.

    Attributes:
        asked: The question of the data set.
        question: Its text as it was asked, with typos if there were any.
        ranking: Ids of the hits, best first.
        confidence: The confidence of the best hit.
        metrics: The metrics of the ranking.
        millis: The time of the call, in milliseconds.
    """

    asked: EvaluationQuestion
    question: str
    ranking: tuple[str, ...]
    confidence: float
    metrics: dict[str, float]
    millis: float

    def to_json(self) -> dict[str, Any]:
        return {
            "namespace": self.asked.namespace,
            "question": self.asked.text,
            "typed": self.question,
            "category": self.asked.category,
            "evidence": list(self.asked.evidence),
            "ranking": list(self.ranking),
            "confidence": self.confidence,
            **self.metrics,
        }


@dataclass(frozen=True)
class Evaluation:
    """The results of an evaluation.

    Attributes:
        data: The data set.
        answers: The answers of each retriever; those of this package are "recollect".
        skipped: The number of questions without evidence among the stored records, which were not asked.
        config: The settings.
    """

    data: DataSet
    answers: dict[str, list[QuestionResult]]
    skipped: int
    config: dict[str, Any] = field(default_factory=dict)

    def summary(self, retriever: str = "recollect") -> dict[str, Any]:
        """Return the means over all questions and by category."""
        answers = self.answers[retriever]
        by: dict[str, list[dict[str, float]]] = {}
        for answer in answers:
            by.setdefault(answer.asked.category, []).append(answer.metrics)
        for name, members in self.data.groups.items():
            by[name] = [row for member in members for row in by.get(member, ())]
        millis = [answer.millis for answer in answers]
        return {
            "overall": means(answer.metrics for answer in answers),
            "by_category": {name: means(rows) for name, rows in sorted(by.items()) if rows},
            "query_ms": {f"p{part}": float(np.percentile(millis, part)) for part in (50, 95)},
        }

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON object, as `recollect eval --json` prints it."""
        ours = self.answers["recollect"]
        out = {"dataset": self.data.name, **self.summary(), "config": self.config, "versions": versions()}
        out["compared"] = {
            name: {
                **self.summary(name),
                "ours_minus_theirs": {
                    metric: paired_difference(
                        [answer.metrics[metric] for answer in ours], [answer.metrics[metric] for answer in theirs]
                    )
                    for metric in COMPARED
                },
            }
            for name, theirs in self.answers.items()
            if name != "recollect"
        }
        return out


def evaluate(
    data: DataSet,
    memory: Memory,
    *,
    peers: Sequence[str] = (),
    typos: float = 0.0,
    seed: int = 0,
    progress: Callable[[int, int], object] = lambda done, of: None,
) -> Evaluation:
    """Fill the memory (and embed it, if it has an embedder), ask every question that has evidence, and measure.

    Args:
        typos: The probability that a content word of a question is misspelled, 0 to 1.
        progress: Called with the number of questions asked, and of all.
    """
    for name in peers:
        if name not in PEERS:
            raise InvalidArgumentError("compare", name, f"must be one of {', '.join(PEERS)}")
    if not 0 <= typos <= 1:
        raise InvalidArgumentError("typos", typos, "must be a probability, 0 to 1")
    data.fill(memory)
    if memory.vector_stats()["model"] is not None:
        for namespace in memory.namespaces():
            memory.namespace(namespace).embed_all()
    asked = list(answerable(data, memory))
    if not asked:
        raise InvalidArgumentError("data", data.name, "has no question with evidence among the stored records")
    answers: dict[str, list[QuestionResult]] = {name: [] for name in ("recollect", *peers)}
    for namespace, group in groupby(asked, key=lambda each: each.namespace):
        here = memory.namespace(namespace)
        records = here.find(order="position")
        sessions = {record.id: _session(record) for record in records}
        retrievers: dict[str, Retriever] = {"recollect": Recollect(here)}
        retrievers |= {name: PEERS[name](records) for name in peers}
        for retriever in retrievers.values():
            retriever.ask("the first question builds what is built lazily", 1)
        for each in group:
            question = mistyped(each.text, typos, seed)
            for name, retriever in retrievers.items():
                began = time.perf_counter()
                ids, confidence = retriever.ask(question, DEPTH)
                millis = 1000 * (time.perf_counter() - began)
                metrics = measured(ids, each.evidence, sessions.get)
                answers[name].append(QuestionResult(each, question, tuple(ids), confidence, metrics, millis))
            progress(len(answers["recollect"]), len(asked))
    config = {"typos": typos, "seed": seed, "depth": DEPTH, "peers": list(peers)}
    model = memory.vector_stats()["model"]
    if model is not None:
        config["embedder"] = model
    return Evaluation(data, answers, len(data.asked) - len(asked), config)


def answerable(data: DataSet, memory: Memory) -> Iterable[EvaluationQuestion]:
    """Yield the questions that have evidence among the stored records, by namespace."""
    order = {name: at for at, name in enumerate(dict.fromkeys(each.namespace for each in data.asked))}
    for each in sorted(data.asked, key=lambda each: order[each.namespace]):
        here = memory.namespace(each.namespace)
        evidence = tuple(record_id for record_id in each.evidence if here.get(record_id) is not None)
        if evidence:
            yield EvaluationQuestion(each.namespace, each.text, each.category, evidence, each.speakers, each.answer)


def _session(record: Record) -> str | None:
    return None if record.conversation is None else f"{record.conversation}\0{record.session or ''}"


def versions() -> dict[str, str]:
    """Return the versions on which the figures depend."""
    from importlib.metadata import PackageNotFoundError, version

    out = {"recollect": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for name in ("numpy", "PyStemmer", "apsw", "bm25s", "torch"):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            continue
    return out


class Moved(NamedTuple):
    """A question whose metric differs between two runs."""

    namespace: str
    category: str
    question: str
    before: float
    after: float


def differing(before: Path, after: Path, metric: str = "recall@10") -> list[Moved]:
    """List the questions whose metric differs between two `--per-question` files, the greatest losses first.

    Raises:
        ImportFormatError: A file is not such a file, or the two are about different questions.
    """
    one, other = _answers(before, metric), _answers(after, metric)
    if one.keys() != other.keys():
        only = len(one.keys() ^ other.keys())
        raise ImportFormatError(
            str(after), "", f"is not about the same questions as {before}: {only} are in only one of them"
        )
    moved = [
        Moved(key[0], answer["category"], key[1], answer[metric], other[key][metric]) for key, answer in one.items()
    ]
    return sorted(
        (each for each in moved if each.before != each.after), key=lambda each: (each.after - each.before, each)
    )


def _answers(path: Path, metric: str) -> dict[tuple[str, str, int], dict[str, Any]]:
    out: dict[tuple[str, str, int], dict[str, Any]] = {}
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            answer = json.loads(line)
            # A set can contain a question twice: the line number distinguishes them.
            out[answer["namespace"], answer["question"], number] = {
                "category": str(answer["category"]),
                metric: float(answer[metric]),
            }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImportFormatError(str(path), "", f"is not a --per-question file with {metric} ({error})") from None
    return out


def draw(result: dict[str, Any], path: Path) -> None:
    """Write the plot of `Evaluation.to_json()` (with "answerability", where that was asked) to a PNG or SVG file.

    Raises: UnsupportedError where matplotlib is not installed; StoreIOError where the file cannot be written.
    """
    imported("matplotlib").use("Agg")
    figure_kind = imported("matplotlib.figure").Figure
    reliability = result.get("answerability", {}).get("reliability")
    figure = figure_kind(figsize=(15 if reliability else 10, 4.2), layout="constrained")
    places = figure.subplots(1, 3 if reliability else 2)
    _depths(places[0], result)
    _categories(places[1], result["by_category"])
    if reliability:
        _reliability(places[2], reliability)
    figure.suptitle(f"{result['dataset']}: {result['overall']['n']} questions")
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise StoreIOError(str(path), str(error)) from None


def _depths(axes: Any, result: dict[str, Any]) -> None:
    curves = {"recollect": result["overall"]}
    curves |= {name: peer["overall"] for name, peer in result["compared"].items()}
    for name, overall in curves.items():
        axes.plot(DEPTHS, [100 * overall[f"recall@{k}"] for k in DEPTHS], marker="o", label=name)
    axes.set(xlabel="k", ylabel="recall@k, per cent", ylim=(0, 100), xticks=DEPTHS)
    axes.grid(alpha=0.3)
    axes.legend()


def _categories(axes: Any, categories: dict[str, Any]) -> None:
    names = list(reversed(categories))
    axes.barh(names, [100 * categories[name]["recall@10"] for name in names])
    axes.set(xlabel="recall@10, per cent", xlim=(0, 100))


def _reliability(axes: Any, bins: list[dict[str, float]]) -> None:
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
    axes.plot([each["confidence"] for each in bins], [each["answerable"] for each in bins], marker="o")
    axes.set(xlabel="confidence of the best hit", ylabel="share that is answerable", xlim=(0, 1), ylim=(0, 1))
    axes.grid(alpha=0.3)


_WORD = regex(r"[^\W\d_]{5,}")


def mistyped(text: str, chance: float, seed: int = 0) -> str:
    """The text with one random edit (a letter replaced, deleted, inserted, or two swapped) in content words.

    chance  of each content word of five letters or more to be hit

    >>> mistyped("Where is the telescope?", 0.0)
    'Where is the telescope?'
    >>> mistyped("Where is it?", 1.0), mistyped("Where is the telescope?", 1.0) == "Where is the telescope?"
    ('Where is it?', False)
    """
    dice = random.Random(f"{seed}:{text}")

    def edited(found: re.Match[str]) -> str:
        word = found.group()
        if word.lower() in STOP_WORDS or dice.random() >= chance:
            return word
        return _edited(word, dice)

    return _WORD.sub(edited, text)


def _edited(word: str, dice: random.Random) -> str:
    while True:
        at = dice.randrange(len(word))
        letter = dice.choice(string.ascii_lowercase)
        match dice.randrange(4):
            case 0:
                out = word[:at] + letter + word[at + 1 :]
            case 1:
                out = word[:at] + word[at + 1 :]
            case 2:
                out = word[:at] + letter + word[at:]
            case _:
                out = word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :]
        if out != word:
            return out


# Metrics of a ranking for known evidence, and the significance of differences.
#
# All are fractions, 0 to 1. With E the set of evidence and R the ranking, cut at k:
#
#     recall@k      |E ∩ R[:k]| / |E|
#     hit@k         1 if any of E is in R[:k]
#     recall_all@k  1 if all of E is in R[:k]
#     mrr           1 / rank of the first of E, 0 if none is ranked
#     ndcg@10       sum over evidence at rank r <= 10 of 1 / log2(r + 1), over the most that |E| could give
#                   (Järvelin and Kekäläinen 2002, binary gain)
#     session_any@k, session_all@k   hit and recall_all of the sessions of E, sessions ranked by their best turn

#: The k of each metric.
DEPTHS = (5, 10, 25, 50)
SESSION_DEPTHS = (1, 3, 5)
#: Maximum rank that counts.
DEPTH = 50
RESAMPLES = 10_000


def measured(
    ranking: Sequence[str], evidence: Sequence[str], session_of: Callable[[str], str | None]
) -> dict[str, float]:
    """Compute every metric of one question.

    >>> round(measured(["a", "b", "c"], ["b", "x"], lambda each: None)["ndcg@10"], 4)
    0.3869
    """
    wanted = set(evidence)
    ranks = [rank for rank, each in enumerate(ranking[:DEPTH], 1) if each in wanted]
    out: dict[str, float] = {}
    for k in DEPTHS:
        found = sum(rank <= k for rank in ranks)
        out[f"recall@{k}"] = found / len(wanted)
        out[f"hit@{k}"] = float(found > 0)
        out[f"recall_all@{k}"] = float(found == len(wanted))
    out["mrr"] = 1 / ranks[0] if ranks else 0.0
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(wanted), 10) + 1))
    out["ndcg@10"] = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 10) / best
    sessions = list(dict.fromkeys(session_of(each) for each in ranking[:DEPTH]))
    needed = {session_of(each) for each in wanted} - {None}
    if needed:
        for k in SESSION_DEPTHS:
            seen = needed & set(sessions[:k])
            out[f"session_any@{k}"] = float(bool(seen))
            out[f"session_all@{k}"] = float(seen == needed)
    return out


def means(rows: Iterable[dict[str, float]]) -> dict[str, float]:
    """Compute the mean of each metric over questions, and their number, "n"."""
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = {
        name: math.fsum(row[name] for row in rows if name in row) / sum(name in row for row in rows) for name in names
    }
    return {"n": len(rows), **out}


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Compute the area under the ROC curve: the chance that a positive scores above a negative, ties counted half.

    >>> auroc([0.9, 0.5], [0.5, 0.1])
    0.875
    """
    values = np.concatenate([np.asarray(positive, dtype=float), np.asarray(negative, dtype=float)])
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[inverse]  # ties share their mean rank
    above = ranks[: len(positive)].sum() - len(positive) * (len(positive) + 1) / 2
    return float(above / (len(positive) * len(negative)))


def paired_difference(ours: Sequence[float], theirs: Sequence[float], seed: int = 0) -> dict[str, float]:
    """Compute the mean difference over the same questions, with its 95 per cent interval by the paired bootstrap.

    Questions are resampled with replacement, `RESAMPLES` times (Efron and Tibshirani 1993, percentile interval).
    """
    differences: NDArray[np.float64] = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    generator = np.random.default_rng(seed)
    resampled = np.empty(RESAMPLES)
    for at in range(0, RESAMPLES, 500):
        chosen = generator.integers(0, len(differences), (500, len(differences)))
        resampled[at : at + 500] = differences[chosen].mean(axis=1)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return {"mean": float(differences.mean()), "low": float(low), "high": float(high)}
