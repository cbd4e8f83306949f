"""Ranking: from scores to an order that is the same everywhere.

By score, then newest, then id (by its UTF-8 bytes). The order is made as far as it is asked for, in growing steps, so
the first ten of many cost little and a filter that passes few records can go on down to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from recollect.indexes.columns import Ints
from recollect.indexes.documents import Table

#: The places of the best by score above 0, then by time, as many as are wanted and all that tie with the last; and
#: their scores.
Best = Callable[[int], tuple[Ints, Ints]]


def ranked(best: Best, numbers: Ints, table: Table, first: int) -> Iterator[tuple[int, int]]:
    """The places in `numbers` with a score above 0, and the scores, best first.

    first  how many are probably asked for: so many are put in order before more are
    """
    given, step = 0, max(1, min(first, len(numbers)))
    while True:
        places, totals = best(step)
        micros = table.micros[numbers[places]].tolist()
        found = sorted(zip((-totals).tolist(), (-time for time in micros), places.tolist(), strict=True))
        order: list[tuple[int, int]] = []
        for (total, _), ties in groupby(found, key=lambda each: each[:2]):
            tied = [place for _, _, place in ties]
            if len(tied) > 1:
                tied.sort(key=lambda place: table.id(int(numbers[place])).encode("utf-8"))
            order += [(place, -total) for place in tied]
        yield from order[given:]
        # Those of a step come first in the next, in the same order.
        if len(order) < step or len(order) == len(numbers):
            return
        given, step = len(order), min(max(step, len(order)) * 4, len(numbers))
