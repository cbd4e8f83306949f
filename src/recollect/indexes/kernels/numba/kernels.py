"""The kernels compiled by numba: see `kernels.types` for the interface, and `with_numpy` for the same in NumPy.

numba is imported with this module, which takes most of a second (`kernels.numba.compiling`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from recollect.indexes.documents.columns import NONE, Flags, Ints, Numbers
from recollect.indexes.documents.table import Documents, Table
from recollect.indexes.kernels.numba import independent as plain
from recollect.indexes.kernels.numba import neighbours as walking
from recollect.indexes.kernels.numba import top_k as ranking
from recollect.indexes.kernels.numba.compiling import finished
from recollect.indexes.kernels.types import RAW, About, Matched, Reached, Weights
from recollect.indexes.parameters import FROM_BEFORE
from recollect.indexes.words.postings import Postings

_STEPS = len(FROM_BEFORE)
#: Minimum number of terms that a block has room for, since the next question may have more.
_TERMS = 16


T = TypeVar("T")


class _Scratch:
    """The working memory of one question: all zeros while it is not in use."""

    def __init__(self, documents: int, turns: int, sessions: int) -> None:
        self.sizes = documents, turns, sessions
        words, trigram, title, context = (np.zeros(documents, dtype=np.int32) for _ in range(4))
        reach, touched, near = (np.zeros(documents, dtype=np.int32) for _ in range(3))
        own, mass = (np.zeros(turns, dtype=np.int64) for _ in range(2))
        masses, sums = (np.zeros(sessions, dtype=np.int64) for _ in range(2))
        met = np.zeros(2 * sessions, dtype=np.int64)
        #: In the order of `walking.reach`; `walking.reach_best` takes all but the last.
        self.columns = words, trigram, title, context, own, mass, reach, touched, masses, sums, met, near


def _popped(free: deque[T]) -> T | None:
    try:
        return free.pop()
    except IndexError:
        return None


class NumbaKernels:
    name = "numba"

    def __init__(self) -> None:
        # One of each is kept for the next question. `pop` and `append` of a deque are thread-safe.
        self._free: deque[_Scratch] = deque(maxlen=1)
        self._blocks: deque[tuple[Any, ...]] = deque(maxlen=1)

    def _take(self, table: Table) -> _Scratch:
        sizes = table.count, table.count if table.has_turns else 0, len(table.session_lengths)
        scratch = _popped(self._free)
        if scratch is None or any(one < other for one, other in zip(scratch.sizes, sizes, strict=True)):
            scratch = _Scratch(*(size + size // 4 + 64 for size in sizes))
        return scratch

    def _give_back(self, scratch: _Scratch) -> None:
        self._free.append(scratch)

    def tally(self, postings: Postings, table: Table) -> Ints:
        out: Ints = np.zeros((len(postings.spans), 3), dtype=np.int64)
        stamps = np.zeros(max(len(table.session_lengths), 1), dtype=np.int64)
        walking.tally(*postings[:3], table.alive, table.session, stamps, out)
        return out

    def reach(self, postings: Postings, table: Table, weights: Weights, forced: Numbers) -> Reached:
        if not table.has_turns:
            return self._reach_plain(postings, table, weights, np.sort(forced))
        scratch = self._take(table)
        found = walking.reach(*_turns(postings, table, weights), forced, *scratch.columns)
        self._give_back(scratch)  # not after an exception: it may be half used then
        return Reached(found[0], found[1], len(found[0]))

    def _take_block(self, terms: int) -> tuple[Any, ...]:
        """Return the working memory of the kernels for documents that are not turns (`independent.block`)."""
        block = _popped(self._blocks)
        return plain.block(max(terms, _TERMS)) if block is None or plain.terms_of(block) < terms else block

    def _reach_plain(self, postings: Postings, table: Table, weights: Weights, forced: Numbers) -> Reached:
        block = self._take_block(len(postings.spans))
        found = plain.reach_plain(*_plain(postings, table, weights), forced, *block)
        self._blocks.append(block)  # not after an exception: it may be half used then
        return Reached(found[0], found[1], len(found[0]))

    def reach_best(
        self, postings: Postings, table: Table, weights: Weights, about: About, wanted: int, among: Flags | None = None
    ) -> Reached:
        factors = *_factors(table, about), table.heaviest, table.governing, wanted
        if table.has_turns:
            scratch = self._take(table)
            of_table = _turns(postings, table, weights)
            counting = table.alive if among is None else among
            found = walking.reach_best(*of_table, *factors, counting, *scratch.columns[:-1])
            self._give_back(scratch)
        else:
            block = self._take_block(len(postings.spans))
            found = plain.reach_best(*_plain(postings, table, weights, among), *factors, *block)
            self._blocks.append(block)
        return Reached(*found)

    def weigh(self, reached: Reached, dates: Ints, table: Table, about: About) -> Ints:
        out: Ints = ranking.weigh(reached.numbers, reached.shares, dates, *_factors(table, about))
        return out

    def matched(self, postings: Postings, table: Table, weights: Weights, numbers: Ints, factors: Ints) -> Matched:
        shape = len(numbers), len(postings.spans)
        reached, lent = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
        shares, own = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        around = np.zeros((len(numbers), 2 * _STEPS), dtype=np.int64)
        found = Matched(reached, shares, own, lent, around, np.zeros((*shape, 2 * _STEPS), dtype=np.bool_))
        walking.matched(
            *postings[:3],
            table.count,
            table.length,
            table.asks,
            table.before,
            table.after,
            weights.terms,
            weights.title_of,
            weights.whole,
            numbers,
            factors,
            *found,
        )
        return found

    def best_of(self, reached: Reached, dates: Ints, table: Table, about: About, wanted: int) -> tuple[Ints, Ints]:
        found = reached.numbers, reached.shares, dates
        places, totals = ranking.best_of(
            *found, *_factors(table, about), table.heaviest, table.standing, table.micros, wanted
        )
        return places, totals

    def best(self, totals: Ints, numbers: Ints, table: Table, wanted: int) -> Ints:
        out: Ints = ranking.best(totals, numbers, table.micros, wanted)
        return out


def _turns(postings: Postings, table: Table, weights: Weights) -> tuple[Any, ...]:
    """Return the arguments of the kernels for turns."""
    return (
        *postings[:3],
        table.count,
        table.live_count != table.count,
        table.alive,
        table.length,
        table.asks,
        table.before,
        table.after,
        table.has_turns,
        table.session,
        table.session_lengths,
        weights.terms,
        weights.sessions,
        weights.like,
        weights.title_of,
        weights.whole,
        *weights.live,
        table.pivots,
        weights.pairs,
    )


def _plain(postings: Postings, table: Table, weights: Weights, among: Flags | None = None) -> tuple[Any, ...]:
    """Return the arguments of the kernels for documents that are not turns.

    Args:
        postings: The postings of the terms.
        table: The documents.
        weights: The weights of the terms.
        among: The documents that may be hits. Since these documents lend nothing to others, the rest can be treated as
            dead.
    """
    some_dead = among is not None or table.live_count != table.count
    alive = table.alive if among is None else among & table.alive[: table.count]
    of_question = weights.terms, weights.like, weights.title_of, weights.whole, weights.pairs
    return (*postings, table.count, some_dead, alive, table.length, *of_question)


def _factors(table: Table, about: About) -> tuple[Any, ...]:
    """Return the arguments from which a document's factor is computed."""
    return table.weight, table.speaker, (about.speaker, about.favour), table.offers, sum(about.kinds)


def loaded() -> NumbaKernels:
    """Return the kernels, compiled for the types that they are called with."""
    return finished(loading())


def loading() -> Generator[None, None, NumbaKernels]:
    """Do as `loaded`, in steps of at most some tenths of a second if the kernels are in numba's cache."""
    kernels = NumbaKernels()
    table = Documents().view()
    nothing = np.zeros(0, dtype=np.int64)
    none = np.zeros(0, dtype=np.uint16)
    postings = Postings(nothing, nothing, np.zeros((0, 4), dtype=np.int64), none, none)
    pairs = np.zeros((0, 3), dtype=np.int64)
    weights = Weights(nothing, nothing, np.zeros(0, dtype=np.bool_), nothing, 1, pairs, (0, 0))
    kernels.tally(postings, table)
    yield
    no_documents = np.zeros(0, dtype=np.int32)
    kernels.matched(postings, table, weights, nothing, nothing)
    yield
    kernels.best(nothing, nothing, table, 1)
    yield
    for each in (table, replace(table, has_turns=True)):
        about = About(NONE, ())
        reached = kernels.reach(postings, each, weights, no_documents)
        yield
        # Shares are mostly the filled part of a larger array, which to numba has another type than a contiguous one.
        part = np.zeros((len(RAW), 2), dtype=reached.shares.dtype)[:, :1]
        for some in (reached, reached._replace(shares=part)):
            kernels.weigh(some, nothing, table, about)
            yield
            kernels.best_of(some, nothing, table, about, 1)
            yield
        kernels.reach_best(postings, each, weights, about, 1)
        yield
    return kernels
