"""Ranking: from scores to an order that is the same everywhere.

By score, then newest, then id (by its UTF-8 bytes). The order is made as far as it is asked for, in growing steps, so
the first ten of many cost little and a filter that passes few records can go on down to the last.
"""

from __future__ import annotations

from collections.abc import Iterator

from recollect.indexes.documents import Ints, Table
from recollect.indexes.kernels import Kernels

_FIRST_STEP = 32


def ranked(kernels: Kernels, numbers: Ints, totals: Ints, table: Table) -> Iterator[int]:
    """The places in `numbers` whose total is above 0, best first."""
    micros = table.micros[numbers]
    given, step = 0, _FIRST_STEP
    while True:
        places = kernels.best(totals, micros, step)
        order = sorted(
            places.tolist(),
            key=lambda at: (-int(totals[at]), -int(micros[at]), table.id(int(numbers[at])).encode("utf-8")),
        )
        yield from order[given:]
        # Those of a step come first in the next, in the same order.
        if len(order) < step or len(order) == len(totals):
            return
        given, step = len(order), max(step, len(order)) * 4
