"""Ranking: from scores to an order that is the same everywhere.

By score, then newest, then id (by its UTF-8 bytes). The order is made as far as it is asked for, in growing steps, so
the first ten of many cost little and a filter that passes few records can go on down to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from recollect.indexes.documents.columns import Ints
from recollect.indexes.documents.table import Table

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
        # As numbers that fall where totals and times rise: `~`, since the least time has no negative.
        micros = ~table.micros[numbers[places]]
        found = sorted(zip((~totals).tolist(), micros.tolist(), places.tolist(), strict=True))
        if any(one[0] == other[0] and one[1] == other[1] for one, other in pairwise(found)):

            def rank(each: tuple[int, int, int]) -> tuple[int, int, bytes]:
                return each[0], each[1], table.id(int(numbers[each[2]])).encode("utf-8")

            found.sort(key=rank)
        order = [(place, ~total) for total, _, place in found]
        yield from order[given:]
        # Those of a step come first in the next, in the same order.
        if len(order) < step or len(order) == len(numbers):
            return
        given, step = len(order), min(max(step, len(order)) * 4, len(numbers))
