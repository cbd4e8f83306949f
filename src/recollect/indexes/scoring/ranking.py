"""Ranking: from scores to an order that is the same on every machine.

The order is by score, then newest first, then by id (its UTF-8 bytes). It is computed only as far as it is needed, in
growing steps: the first ten of many are cheap, and a filter that few records match can continue to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from recollect.indexes.documents.columns import Ints
from recollect.indexes.documents.table import Table

#: Returns the indexes of the best by score above 0, then by time, and their scores: as many as requested and all that
#: tie with the last.
Best = Callable[[int], tuple[Ints, Ints]]


def ranked(best: Best, numbers: Ints, table: Table, first: int) -> Iterator[tuple[int, int]]:
    """Yield the indexes in `numbers` of documents with a score above 0, and the scores, best first.

    Args:
        best: Returns the best documents.
        numbers: The documents.
        first: The number of results that is probably needed; this many are sorted in the first step.
    """
    yielded, step = 0, max(1, min(first, len(numbers)))
    while True:
        indexes, totals = best(step)
        # Complements, to sort in descending order: `~`, since the least integer has no negative.
        micros = ~table.micros[numbers[indexes]]
        found = sorted(zip((~totals).tolist(), micros.tolist(), indexes.tolist(), strict=True))
        if any(one[0] == other[0] and one[1] == other[1] for one, other in pairwise(found)):

            def rank(each: tuple[int, int, int]) -> tuple[int, int, bytes]:
                return each[0], each[1], table.id(int(numbers[each[2]])).encode("utf-8")

            found.sort(key=rank)
        order = [(index, ~total) for total, _, index in found]
        yield from order[yielded:]
        # The results of this step are repeated at the beginning of the next, in the same order.
        if len(order) < step or len(order) == len(numbers):
            return
        yielded, step = len(order), min(max(step, len(order)) * 4, len(numbers))
