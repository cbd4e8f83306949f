"""Merging: a segment and its tail, less what is dead, become one new segment.

It works on a view, so the index goes on meanwhile. Documents keep their order and get new numbers without gaps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.columns import COLUMNS, FIELDS, NONE
from recollect.indexes.segments import PLACE_BITS, Gathered, Segment, made
from recollect.indexes.words import WordView


def merged(view: WordView) -> Segment:
    """The segment of a view's live documents. Cost: one sort of all occurrences."""
    table = view.table
    kept = np.flatnonzero(table.alive[: table.count])
    number = np.full(table.count + 1, NONE, dtype=np.int64)  # the last is where NONE leads
    number[kept] = np.arange(len(kept))
    columns: dict[str, NDArray[Any]] = {name: getattr(table, name)[kept] for name in COLUMNS}
    for name in ("before", "after"):
        links = columns[name]
        # A turn that came after this view is linked in place: here the session ends before it.
        columns[name] = number[np.where(links < table.count, links, NONE)].astype(np.int32)
    sessions = _compressed(columns, "session")
    speakers = _compressed(columns, "speaker")
    values = _compressed(columns, *FIELDS)
    session_keys = table.sessions()
    ids, texts = table.rows.all(table.count)
    names, terms, occurrences = view.all_occurrences()
    live = table.alive[occurrences >> PLACE_BITS]
    occurrences, terms = occurrences[live], terms[live]
    used = np.unique(terms)
    place = np.zeros(len(names), dtype=np.int64)
    place[used] = np.arange(len(used))
    return made(
        Gathered(
            columns,
            [ids[at] for at in kept.tolist()],
            [texts[at] for at in kept.tolist()],
            table.rows.payloads(kept),
            [session_keys[at] for at in sessions],
            [table.speakers.known[at] for at in speakers],
            [table.values[at] for at in values],
            [names[at] for at in used.tolist()],
            number[occurrences >> PLACE_BITS],
            place[terms],
            occurrences & (1 << PLACE_BITS) - 1,
        )
    )


def _compressed(columns: dict[str, NDArray[Any]], *names: str) -> list[int]:
    """Number what some columns refer to anew, without gaps; what each new number was."""
    used = np.unique(np.concatenate([np.unique(columns[name]) for name in names]))
    used = used[used != NONE]
    for name in names:
        column = columns[name]
        columns[name] = np.where(column == NONE, NONE, used.searchsorted(column)).astype(np.int32)
    out: list[int] = used.tolist()
    return out
