"""The shares of recency and importance, which a question may ask for: what is known of a record before the question.

They are added to the scores of documents that the question reaches by another signal, and never make a document a hit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from recollect.indexes.documents.columns import NO_TIME, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import SHARE_BITS, halved
from recollect.indexes.scoring.scores import NOTHING, Scores


class Prior(NamedTuple):
    """The addition to a score by what is known before the question.

    Attributes:
        recency: What a record of the reference time gets, 0 to 1.
        recency_half_life: Age in microseconds at which a record gets half of that.
        importance: What a record of importance 1 gets, 0 to 1.
        importance_half_life: Age in microseconds at which a record gets half of that; None: age makes no difference.
        reference: The time from which ages are counted, in microseconds since 1970.
    """

    recency: float
    recency_half_life: int
    importance: float
    importance_half_life: int | None
    reference: int


def with_prior(scores: Scores, prior: Prior, table: Table) -> Scores:
    """Return scores with the shares of recency and importance."""
    numbers = scores.numbers
    micros = table.micros[numbers]
    # A record of the future is as recent as one of the reference time, and one without a time is not recent.
    ages = np.where(micros < prior.reference, prior.reference - np.minimum(micros, prior.reference), 0)
    admitted = scores.totals > 0
    recency = importance = NOTHING
    if prior.recency:
        fresh = halved(np.where(micros == NO_TIME, 0, ages), prior.recency_half_life)
        recency = np.where(admitted & (micros != NO_TIME), _whole(prior.recency) * fresh >> SHARE_BITS, 0)
    if prior.importance:
        known = np.maximum(table.importance[numbers], 0.0)
        share = _whole(prior.importance) * _wholes(known) >> SHARE_BITS
        if prior.importance_half_life is not None:
            ages = np.where(micros == NO_TIME, 0, ages)
            share = share * halved(ages, prior.importance_half_life) >> SHARE_BITS
        importance = np.where(admitted, share, 0)
    return replace(scores, recency=recency, importance=importance)


def _whole(value: float) -> int:
    return int(value * (1 << SHARE_BITS))  # exact: a power of two


def _wholes(values: np.typing.NDArray[np.float64]) -> Ints:
    return (values * (1 << SHARE_BITS)).astype(np.int64)
