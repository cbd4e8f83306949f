"""Metrics of a ranking for known evidence, and the significance of differences.

All are fractions, 0 to 1. With E the set of evidence and R the ranking, cut at k:

    recall@k      |E ∩ R[:k]| / |E|
    hit@k         1 if any of E is in R[:k]
    recall_all@k  1 if all of E is in R[:k]
    mrr           1 / rank of the first of E, 0 if none is ranked
    ndcg@10       sum over evidence at rank r <= 10 of 1 / log2(r + 1), over the most that |E| could give
                  (Järvelin and Kekäläinen 2002, binary gain)
    session_any@k, session_all@k   hit and recall_all of the sessions of E, sessions ranked by their best turn
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

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
