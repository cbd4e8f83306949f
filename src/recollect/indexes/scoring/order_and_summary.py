"""The factors of documents for questions that ask for an order of events, or for a summary.

What such a question asks for is spread over sessions, and its words are of little help: the places of the documents
decide more. A turn at the beginning of a session, which introduces a topic, counts more. For an order, the best turn of
each session counts more than the next ones of the same session. For a summary, what an assistant said counts as much as
what others said.
"""

from __future__ import annotations

import numpy as np

from recollect.indexes.documents.columns import NONE, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import ONE
from recollect.indexes.parameters import OPENING, SPREAD, SUMMARIZED_ASSISTANT
from recollect.text.requests import AskedFor

#: Sessions of which more turns are reached than this have the same factor for the rest of them.
_MOST_SPREAD = 32


def by_place(request: AskedFor, numbers: Ints, table: Table) -> Ints:
    """Return the factor of each document for an order or a summary, with 16 bits of fraction.

    Args:
        request: What the question asks to be done.
        numbers: The documents.

    Cost:
        O(documents of the table).
    """
    factors = _opening(numbers, table)
    if request.summary:
        by_machine = table.by_machine(numbers)
        factors[by_machine] = factors[by_machine] * SUMMARIZED_ASSISTANT[0] // SUMMARIZED_ASSISTANT[1]
    return factors


def _opening(numbers: Ints, table: Table) -> Ints:
    """Return the factor of each document by its place in its session: ONE at the end, and without a session."""
    factors: Ints = np.full(len(numbers), ONE, dtype=np.int64)
    sessions = table.session[numbers]
    turns = np.flatnonzero(sessions != NONE)
    if not len(turns):
        return factors
    wanted = np.zeros(len(table.session_lengths), dtype=np.bool_)
    wanted[sessions[turns]] = True
    of_table = table.session[: table.count]
    all_turns = np.flatnonzero(table.alive[: table.count] & (of_table != NONE))
    all_turns = all_turns[wanted[of_table[all_turns]]]
    order = all_turns[np.lexsort((table.micros[all_turns], table.position[all_turns], of_table[all_turns]))]
    session = of_table[order]
    begins = np.flatnonzero(np.diff(session, prepend=NONE))
    sizes = np.diff(begins, append=len(order))
    places = np.zeros(table.count, dtype=np.int64)
    of = np.zeros(table.count, dtype=np.int64)
    places[order] = np.arange(len(order)) - np.repeat(begins, sizes)
    of[order] = np.repeat(sizes, sizes)
    place, size = places[numbers[turns]], of[numbers[turns]]
    factors[turns] += (ONE * OPENING[0] // OPENING[1]) * (size - place) // size
    return factors


def spread(totals: Ints, numbers: Ints, table: Table) -> Ints:
    """Return the factor of each document by its rank in its session: ONE for the best, and without a session.

    The rank is by total, then newest first; of documents that tie, all have the rank of the first.
    """
    factors: Ints = np.full(len(numbers), ONE, dtype=np.int64)
    sessions = table.session[numbers]
    turns = np.flatnonzero(sessions != NONE)
    if not len(turns):
        return factors
    order = turns[np.lexsort((-table.micros[numbers[turns]], -totals[turns], sessions[turns]))]
    session = sessions[order]
    begins = np.flatnonzero(np.diff(session, prepend=NONE))
    keys = np.stack([session, totals[order], table.micros[numbers[order]]])
    first = np.flatnonzero(np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)]))  # of each run of ties
    index = np.repeat(first, np.diff(first, append=len(order)))
    ranks = index - np.repeat(begins, np.diff(begins, append=len(order)))
    powers = [ONE]
    for _ in range(_MOST_SPREAD):
        powers.append(powers[-1] * SPREAD[0] // SPREAD[1])
    factors[order] = np.array(powers, dtype=np.int64)[np.minimum(ranks, _MOST_SPREAD)]
    return factors
