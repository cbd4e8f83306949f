"""Ranking: from scores to an order that is the same everywhere.

By score, then newest, then id (by its UTF-8 bytes). The order is made as far as it is asked for, in growing steps, so
the first ten of many cost little and a filter that passes few records can go on down to the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from recollect.indexes.documents import Ints, Table
from recollect.indexes.kernels import Kernels


def ranked(kernels: Kernels, numbers: Ints, totals: Ints, table: Table, first: int = 32) -> Iterator[int]:
    """The places in `numbers` whose total is above 0, best first.

    first  how many are probably asked for: so many are put in order before more are
    """
    given, step = 0, max(1, min(first, len(totals)))
    while True:
        places = kernels.best(totals, numbers, table, step)
        micros = table.micros[numbers[places]].tolist()
        best = sorted(zip((-totals[places]).tolist(), (-time for time in micros), places.tolist(), strict=True))
        order: list[int] = []
        for _, ties in groupby(best, key=lambda each: each[:2]):
            tied = [place for _, _, place in ties]
            if len(tied) > 1:
                tied.sort(key=lambda place: table.id(int(numbers[place])).encode("utf-8"))
            order += tied
        yield from order[given:]
        # Those of a step come first in the next, in the same order.
        if len(order) < step or len(order) == len(totals):
            return
        given, step = len(order), max(step, len(order)) * 4
