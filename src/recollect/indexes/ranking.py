"""Ranking: from scores to an order that is the same everywhere.

By score, then newest, then id (by its UTF-8 bytes). The order is made as far as it is asked for, in growing steps, so
the first ten of many cost little and a filter that passes few records can go on down to the last.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from recollect.indexes.documents import Ints, Table

_FIRST_STEP = 64


def ranked(scores: Ints, table: Table) -> Iterator[int]:
    """Document numbers with a score above 0, best first."""
    numbers = np.flatnonzero(scores)
    values = scores[numbers]
    step = _FIRST_STEP
    while len(numbers):
        if len(numbers) > step:
            # All that tie with the last of the step belong to it.
            least = -np.partition(-values, step - 1)[step - 1]
            best = values >= least
        else:
            best = np.ones(len(numbers), dtype=np.bool_)
        chosen = numbers[best]
        yield from sorted(
            (int(number) for number in chosen),
            key=lambda number: (-int(scores[number]), -int(table.micros[number]), table.ids[number].encode("utf-8")),
        )
        numbers, values = numbers[~best], values[~best]
        step *= 4
