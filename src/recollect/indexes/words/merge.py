"""Merging: a segment and its tail, without dead documents, become a new segment.

It works on a view, so the index can be used meanwhile. Documents keep their order and get new numbers without gaps. The
data of the segment is copied array by array: Python steps, which block other threads, are needed only for the tail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import COLUMNS, FIELDS, NONE, Ints, renumbered
from recollect.indexes.documents.string_table import Pieces, Strings, session_name
from recollect.indexes.words.index import WordView
from recollect.indexes.words.segment import POSITION_BITS, Builder, GatheredTerms, Segment, build, digests, in_order
from recollect.indexes.words.surface_forms import Forms


def merged(view: WordView) -> Segment:
    """Return the segment of a view's live documents.

    Cost:
        Several passes over the arrays of the segment, and a sort of the tail.
    """
    table, rows = view.table, view.table.rows
    first = Builder().segment() if view.segment is None else view.segment
    kept = np.flatnonzero(table.alive[: table.count])
    number = renumbered(kept, table.count)
    columns: dict[str, NDArray[Any]] = {name: getattr(table, name)[kept] for name in COLUMNS}
    for name in ("before", "after"):
        links = columns[name]
        # A turn that was added after this view may be linked in place: here the session ends before it.
        columns[name] = number[np.where(links < table.count, links, NONE)].astype(np.int32)
    later_sessions = table.later_sessions()
    sessions = _compressed(columns, first.session_count + len(later_sessions), "session")
    _compressed(columns, int(table.group[: table.count].max(initial=NONE)) + 1, "group")
    speakers = _compressed(columns, len(table.speakers.known), "speaker")
    values = _compressed(columns, len(table.values), *FIELDS)
    split = int(kept.searchsorted(first.count))
    later = kept[split:].tolist()
    terms = _terms(view, first, number)
    return build(
        GatheredTerms(
            columns,
            _strings(first.ids, kept, rows.id),
            np.concatenate([first.digests[kept[:split]], digests([rows.text(at) for at in later])]),
            first.payloads.taken(kept[:split], Pieces.of([rows.payload(at) for at in later])),
            _strings(first.sessions, sessions, lambda at: session_name(later_sessions[at - first.session_count])),
            [table.speakers.known[at] for at in speakers.tolist()],
            _strings(first.values, values, table.values.__getitem__),
            *terms,
        )
    )


def _compressed(columns: dict[str, NDArray[Any]], count: int, *names: str) -> Ints:
    """Renumber the values of some columns without gaps, in place, and return the old number of each new one.

    Args:
        count: A bound above all old numbers.
        names: The columns that share these numbers.
    """
    used = np.zeros(count + 1, dtype=np.bool_)
    for name in names:
        used[columns[name]] = True
    kept = np.flatnonzero(used[:count])
    number = renumbered(kept, count).astype(np.int32)
    for name in names:
        columns[name] = number[columns[name]]
    return kept


def _strings(first: Strings, kept: Ints, later: Callable[[int], str]) -> Strings:
    """Return the strings of some ascending numbers, of a segment and of its tail."""
    split = int(kept.searchsorted(len(first)))
    return first.taken(kept[:split], Strings.of([later(at) for at in kept[split:].tolist()]))


class _Terms(NamedTuple):
    """The terms and their occurrences, as in `GatheredTerms`."""

    terms: Strings
    forms: Forms
    sizes: Ints
    occurrences: Ints


def _terms(view: WordView, first: Segment, number: Ints) -> _Terms:
    """Return the terms of the live documents.

    Args:
        view: The view to merge.
        first: Its segment.
        number: The new number of each document, or NONE.
    """
    sizes, occurrences = _living(np.diff(first.offsets), first.occurrences, number)
    names, tail_sizes, tail_occurrences = view.tail_occurrences()
    tail_sizes, tail_occurrences = _living(tail_sizes, tail_occurrences, number)
    tail_terms = Strings.of(names)
    known = first.terms.numbers_of(tail_terms)
    used = sizes > 0
    used[known[(tail_sizes > 0) & (known != NONE)]] = True
    kept, new = np.flatnonzero(used), np.flatnonzero((tail_sizes > 0) & (known == NONE))
    terms = first.terms.taken(kept, tail_terms.taken(new, Strings.of(())))
    # The ranks in the order of keys: of the remaining terms of the segment, of the new terms, and of all terms of the
    # tail.
    ranks = terms.ranks()
    rank = np.append(ranks[: len(kept)], NONE)[renumbered(kept, len(used))]
    new_rank = ranks[len(kept) :]
    tail_rank = rank[known]
    tail_rank[new] = new_rank
    # The segment's terms are in this order already. The occurrences of each are followed by those of the tail, which
    # are in later documents.
    base_sizes = np.zeros(len(terms), dtype=np.int64)
    base_sizes[rank[kept]] = sizes[kept]
    tail_rank = np.repeat(tail_rank, tail_sizes)
    added = np.bincount(tail_rank, minlength=len(terms))
    return _Terms(
        terms.by_key(),
        Forms.joined([(first.forms, rank), (Forms.of([names[at] for at in new.tolist()]), new_rank)]),
        base_sizes + added,
        np.insert(occurrences, np.repeat(np.cumsum(base_sizes), added), in_order(tail_rank, tail_occurrences)),
    )


def _living(sizes: Ints, occurrences: Ints, number: Ints) -> tuple[Ints, Ints]:
    """Return the number of occurrences of each term in live documents, and these occurrences, renumbered."""
    owners = np.minimum(occurrences >> POSITION_BITS, len(number) - 1)  # occurrences after the view become NONE
    packed = number[owners] << POSITION_BITS | occurrences & (1 << POSITION_BITS) - 1
    dead = np.flatnonzero(packed < 0)  # those of NONE
    ends = np.cumsum(sizes)
    return np.diff(ends - dead.searchsorted(ends), prepend=0), np.delete(packed, dead)
