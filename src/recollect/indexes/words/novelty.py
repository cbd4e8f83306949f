"""Novelty: how many of a turn's words no earlier turn of its conversation has.

A turn that introduces words tells something, and one that repeats known words reacts to it. So the weight of a turn
grows with its new words (`novel_weights`). Turns are compared within their group (`Table.group`): the conversation of
a user and an agent, so that a scope sees either all of a group or nothing. In it, turns are in the order of their
times. N-grams of scripts without spaces are no words: nearly every text has new ones.

Weights are a function of the live turns. A turn at the end of its group is counted when it is added. Whatever else
changes a group makes the weights of its later turns stale: they are counted again from the postings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import Flags, Ints
from recollect.indexes.parameters import NEW_WORDS, NOVEL


def novel_weights(manner: NDArray[Any], new: NDArray[Any]) -> Ints:
    """Return the weights of turns from those of their manner and the number of their new words.

    >>> novel_weights(np.array([1600, 1600, 1600]), np.array([0, 8, 99])).tolist()
    [1600, 1840, 2080]
    """
    of, out_of = NOVEL
    manner = manner.astype(np.int64)
    out: Ints = manner + manner * of * np.minimum(new, NEW_WORDS) // (out_of * NEW_WORDS)
    return out


def by_time(columns: Mapping[str, NDArray[Any]], numbers: Ints, id_of: Callable[[int], str]) -> Ints:
    """Return turns sorted by group, time, position and id.

    Args:
        columns: The columns of the documents (`documents.columns.COLUMNS`).
        numbers: The turns, ascending.
        id_of: Returns the id of a document's record.
    """
    keys = [columns[name][numbers] for name in ("position", "micros", "group")]
    order = np.lexsort(keys)
    same = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    out: Ints = numbers[order]
    for begin, end in _runs(same):  # equal groups, times and positions
        out[begin:end] = sorted(out[begin:end].tolist(), key=id_of)
    return out


def _runs(same: Flags) -> Sequence[tuple[int, int]]:
    """Return the begin and end of each run of elements of which each is the same as the next."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    return [(begin, end + 1) for begin, end in edges.reshape(-1, 2).tolist()]


def new_words(terms: Ints, numbers: Ints, order: Ints, groups: NDArray[Any]) -> Ints:
    """Return how many of its terms each turn of an order is the first of its group to have.

    Args:
        terms: The term of each occurrence.
        numbers: The turn of each occurrence: one of `order`.
        order: The turns, as `by_time` returns them.
        groups: The group of each document.

    Cost:
        O(occurrences log occurrences).
    """
    count = len(order)
    place = np.zeros(int(order.max(initial=-1)) + 1, dtype=np.int64)
    place[order] = np.arange(count)
    keys = terms.astype(np.int64)  # changed in place: of large memories, these are the largest arrays
    keys *= count
    keys += place[numbers]
    keys.sort()
    places = keys % max(count, 1)
    keys //= max(count, 1)
    group = groups[order[places]]
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = (keys[1:] != keys[:-1]) | (group[1:] != group[:-1])
    return np.bincount(places[first], minlength=count)
