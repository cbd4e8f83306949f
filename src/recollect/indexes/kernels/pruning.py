"""The best documents of a question without computing the shares of all that it reaches.

The base of an index is divided into blocks of documents with consecutive numbers, mostly turns of one session. Of each
term a summary is kept: the blocks that it reaches, also by what turns lend to others, and the greatest ratio of its
mass in each; and its count in each session. From these follows for each block an upper bound of a document's shares
(block-max, as in S. Ding and T. Suel, Faster top-k document retrieval using block-max indexes, SIGIR 2011). The shares
are computed in the blocks with the greatest bounds first, and then in all other blocks whose bound is not below the
worst of the best so far. All results are exact.

A summary describes the base as it was built. Blocks in which documents have died since, or have other turns around
them, are always computed, and so is the tail. If these are many, all documents are.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Flags, Ints, Numbers
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import BITS
from recollect.indexes.kernels.factors import greatest_factor
from recollect.indexes.kernels.types import (
    RATIO_BITS,
    About,
    Kernels,
    Layout,
    Part,
    Reached,
    Summary,
    Weights,
    blocks_of,
)
from recollect.indexes.parameters import FROM_BEFORE, TOP
from recollect.indexes.words.postings import Postings
from recollect.indexes.words.segment import Segment

#: A block has 1 << _BITS documents.
_BITS = 4
#: Below this many documents in the base, all shares are computed.
_LEAST = 2000
#: Number of blocks that are computed first.
_FIRST = 64
#: Summaries are kept up to this fraction of the memory of their segment, and at least this many bytes.
_PART, _LEAST_BYTES = 4, 1 << 20
#: At most this fraction of the blocks may have changes.
_CHANGED = 4
_REACH = len(FROM_BEFORE)
_NO_DOCUMENTS: Numbers = np.zeros(0, dtype=np.int32)
_NOTHING: Ints = np.zeros(0, dtype=np.int64)


class _Base:
    """What is computed once for a segment: its blocks, and the summaries of its terms.

    Args:
        segment: The segment.
        table: A table that begins with its documents.
    """

    def __init__(self, segment: Segment, table: Table) -> None:
        columns = segment.columns
        self.count = segment.count
        #: The table as if there were no later documents and none had died.
        self.table = replace(
            table,
            count=self.count,
            live_count=self.count,
            alive=columns["alive"],
            before=columns["before"],
            after=columns["after"],
            session_lengths=np.zeros(segment.session_count, dtype=np.int64),
            _unexpired=[],
            _narrowed={},
        )
        self.layout = _layout(columns["session"], _BITS)
        self.blocks = blocks_of(self.count, _BITS)
        linked = np.flatnonzero(_is_far(columns["before"], -1) | _is_far(columns["after"], 1))
        of, lender = _far_lenders(self.table, _around(self.table, linked, _REACH - 1))
        #: Lenders of a block that are not next to it: the blocks, ascending, and one lender for each.
        self.far_blocks, self.far_lenders = of, lender
        self._summaries: OrderedDict[int, Summary] = OrderedDict()
        self._room = max(segment.nbytes // _PART, _LEAST_BYTES)

    def summary(self, kernels: Kernels, postings: Postings, term: int, is_title: bool) -> Summary:
        """Return the summary of a term of a question; that of the least recently used term is evicted."""
        number = postings.terms[term]
        found = self._summaries.get(number)
        if found is None:
            begin, end = postings.spans[term, :2].tolist()
            found = kernels.summarize(postings.base[begin:end], self.table, _BITS, is_title)
            if number != NONE:
                self._summaries[number] = found
                self._room -= found.nbytes
                while self._room < 0 and self._summaries:
                    self._room += self._evicted()
        else:
            with suppress(KeyError):  # another thread has evicted it
                self._summaries.move_to_end(number)
        return found

    def _evicted(self) -> int:
        try:
            return self._summaries.popitem(last=False)[1].nbytes
        except KeyError:  # another thread was faster
            return 0


_BASES: WeakKeyDictionary[Segment, _Base] = WeakKeyDictionary()


class _Changes(NamedTuple):
    """The differences between a table and its base.

    Attributes:
        dead: The dead documents of the base.
        blocks: The blocks with changes, ascending.
        lenders: The documents of the base that lend to these or to the tail and are not next to them.
        tail_sessions: The sessions of the tail's documents.
        unchanged: Of each document of the base, whether it is in a block without changes; a bit each.
    """

    dead: Ints
    blocks: Ints
    lenders: Ints
    tail_sessions: Ints
    unchanged: NDArray[np.uint8]


def reach_best(
    kernels: Kernels,
    postings: Postings,
    table: Table,
    weights: Weights,
    about: About,
    wanted: int,
    among: Flags | None = None,
) -> Reached:
    """Return at least the best `wanted` documents that a question reaches, and all that tie with the last.

    They are ranked by `Kernels.weigh` without dates. All documents with standing tags (`Table.standing`) are included.

    Args:
        kernels: The kernels.
        postings: The postings of the terms.
        table: The documents.
        weights: The weights of the terms.
        about: The subject of the question.
        wanted: Number of documents that are needed.
        among: The documents that may be hits; their shares are computed among all documents. None for all.
    """
    segment = postings.segment
    found = None
    if segment is not None and segment.count >= _LEAST:
        base = _BASES.get(segment)
        if base is None:
            base = _BASES[segment] = _Base(segment, table)
        found = _pruned(kernels, base, postings, table, weights, about, wanted, among)
    if found is None:
        found = kernels.reach(postings, table, weights, _NO_DOCUMENTS)
        return found if among is None else found.within(among)
    return found


def _pruned(
    kernels: Kernels,
    base: _Base,
    postings: Postings,
    table: Table,
    weights: Weights,
    about: About,
    wanted: int,
    among: Flags | None,
) -> Reached | None:
    """Do as `reach_best`; return None if it would not be faster than computing all shares."""
    changes = _changes(table, base)
    if len(changes.blocks) * _CHANGED > base.blocks:
        return None
    plain = len(weights.terms) - len(weights.title_of)
    summaries = tuple(
        base.summary(kernels, postings, term, is_title=term >= plain) for term in range(len(weights.terms))
    )
    least = zip(weights.terms.tolist(), summaries, strict=True)
    if any(weight * TOP[0] * summary.least < TOP[1] << RATIO_BITS for weight, summary in least):
        return None  # some share may be rounded to 0, so that it is not known which documents are reached
    bounds = kernels.bounds(postings, table, weights, base.layout, summaries)
    limits = bounds * greatest_factor(table, about) >> BITS
    limits[changes.blocks] = 0
    standing = table.governing[table.governing < base.count]
    # Documents with standing tags may have a greater factor than `limits` allow for, and all are included.
    always = np.union1d(changes.blocks, standing[bounds[standing >> _BITS] > 0] >> _BITS)
    first = np.union1d(always, _greatest(limits, _FIRST))

    def computed(blocks: Ints, *, with_tail: bool) -> Reached:
        part = _part(base, table, blocks, changes, summaries, with_tail=with_tail)
        found = kernels.reach(postings, table, weights, _NO_DOCUMENTS, part)
        return found if among is None else found.within(among)

    found = computed(first, with_tail=True)
    passed = _passed(found, base, changes, summaries, among)
    best = kernels.best_of(found, _NOTHING, table, about, wanted)[1]
    limits[first] = 0
    rest = np.flatnonzero(limits >= (best.min() if len(best) >= wanted else 1))
    if len(rest):
        more = computed(rest, with_tail=False)
        numbers = np.concatenate([found.numbers, more.numbers])
        return Reached(numbers, np.concatenate([found.shares, more.shares], axis=1), passed)
    return found._replace(passed=passed)


def _greatest(limits: Ints, count: int) -> Ints:
    """Return the indexes of the greatest limits above 0, ascending."""
    if len(limits) > count:
        greatest = np.argpartition(limits, len(limits) - count)[len(limits) - count :]
        return np.sort(greatest[limits[greatest] > 0])
    return np.flatnonzero(limits)


def _part(
    base: _Base, table: Table, blocks: Ints, changes: _Changes, summaries: tuple[Summary, ...], *, with_tail: bool
) -> Part:
    """Return a part of the documents: some blocks, and the tail or not."""
    inside = np.zeros(base.blocks, dtype=np.bool_)
    inside[blocks] = True
    begins = np.maximum((blocks << _BITS) - _REACH, 0)
    ends = np.minimum((blocks + 1 << _BITS) + _REACH, base.count)
    more = _NOTHING
    if len(base.far_blocks):
        more = base.far_lenders[inside[base.far_blocks]]
    if with_tail and len(changes.lenders):
        more = np.concatenate([more, changes.lenders])
    if len(more):
        begins, ends = np.concatenate([begins, more]), np.concatenate([ends, more + 1])
        order = np.argsort(begins)
        begins, ends = begins[order], np.maximum.accumulate(ends[order])
    apart = np.flatnonzero(begins[1:] > ends[:-1]) + 1
    ranges = np.empty((len(apart) + 1 if len(begins) else 0, 2), dtype=np.int64)
    if len(begins):
        ranges[0, 0], ranges[1:, 0] = begins[0], begins[apart]
        ranges[-1, 1], ranges[:-1, 1] = ends[-1], ends[apart - 1]
    layout = base.layout
    starts, sizes = layout.starts[blocks], layout.starts[blocks + 1] - layout.starts[blocks]
    at = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    wanted = np.zeros(len(table.session_lengths) + 1, dtype=np.bool_)  # the last is NONE
    wanted[layout.sessions[at]] = True
    if with_tail:
        wanted[changes.tail_sessions] = True
    return Part(
        inside,
        ranges.reshape(-1),
        np.flatnonzero(wanted[:-1]),
        changes.dead,
        base.count,
        _BITS,
        with_tail,
        summaries,
    )


def _passed(found: Reached, base: _Base, changes: _Changes, summaries: tuple[Summary, ...], among: Flags | None) -> int:
    """Return the number of documents that are reached and may be hits.

    Args:
        found: What of them is in the tail and in blocks with changes, and other documents.
        base: The base.
        changes: The changes since it was built.
        summaries: The summaries of the terms.
        among: The documents that may be hits; None for all.
    """
    few = np.zeros(base.count, dtype=np.bool_)
    reached = changes.unchanged & 0
    for summary in summaries:
        if summary.reached.dtype == np.uint8:
            reached |= summary.reached
        else:
            few[summary.reached] = True
    reached |= np.packbits(few)
    reached &= changes.unchanged
    if among is not None:
        reached &= np.packbits(among[: base.count])
    changed = np.zeros(base.blocks + 1, dtype=np.bool_)  # the last is the tail
    changed[changes.blocks] = changed[-1] = True
    blocks = np.where(found.numbers < base.count, found.numbers >> _BITS, base.blocks)
    return int(_COUNTS[reached].sum()) + int(np.count_nonzero(changed[blocks]))


#: The number of bits of each byte.
_COUNTS = np.array([byte.bit_count() for byte in range(256)], dtype=np.int64)


def _changes(table: Table, base: _Base) -> _Changes:
    """Return the differences between a table and its base, computed once for each table."""
    found: _Changes | None = table.__dict__.get("_changes")
    if found is None:
        found = table.__dict__["_changes"] = _compared(table, base)
    return found


def _compared(table: Table, base: _Base) -> _Changes:
    count, first = base.count, base.table
    alive = table.alive[:count]
    dead = np.flatnonzero(~alive)
    differ = ~alive | (table.before[:count] != first.before) | (table.after[:count] != first.after)
    # A document has other lenders than in the base if a link on the way to one of them is another one.
    blocks = np.unique(_around(first, np.flatnonzero(differ), _REACH - 1) >> _BITS)
    unchanged = np.ones(base.blocks << _BITS, dtype=np.bool_)
    unchanged.reshape(-1, 1 << _BITS)[blocks] = False
    in_blocks = np.flatnonzero(~unchanged)
    in_blocks = in_blocks[in_blocks < count]
    tail = np.arange(count, table.count)
    lenders = _around(table, np.concatenate([in_blocks[alive[in_blocks]], tail]), _REACH)
    sessions = table.session[count : table.count]
    return _Changes(
        dead,
        blocks,
        lenders[lenders < count],
        np.unique(sessions[sessions != NONE]).astype(np.int64),
        np.packbits(unchanged[:count]),
    )


def _around(table: Table, numbers: Ints, steps: int) -> Ints:
    """Return documents and the turns around them, up to a number of steps, ascending."""
    found = [numbers.astype(np.int64)]
    for links in (table.before, table.after):
        at = found[0]
        for _ in range(steps):
            at = links[at].astype(np.int64)
            at = at[(at != NONE) & (at < table.count)]
            found.append(at)
    return np.unique(np.concatenate(found))


def _layout(sessions: Numbers, bits: int) -> Layout:
    """Return the blocks of documents, given the session of each."""
    count = blocks_of(len(sessions), bits)
    of = np.arange(len(sessions)) >> bits
    width = int(sessions.max(initial=NONE)) + 2
    pairs = np.unique(of * width + sessions + 1)
    block, session = pairs // width, pairs % width - 1
    # NONE remains only in blocks that have nothing else.
    several = np.bincount(block, minlength=count)[block] > 1
    kept = ~(several & (session == NONE))
    block, session = block[kept], session[kept]
    return Layout(bits, np.searchsorted(block, np.arange(count + 1)).astype(np.int64), session.astype(np.int64))


def _is_far(links: Numbers, step: int) -> Flags:
    """Return which documents have a link that does not lead to the document that is a step further."""
    out: Flags = (links != NONE) & (links != np.arange(len(links)) + step)
    return out


def _far_lenders(table: Table, numbers: Ints) -> tuple[Ints, Ints]:
    """Return the blocks of documents, ascending, and the lenders of each that are not next to it."""
    pairs = []
    for links in (table.before, table.after):
        of = at = numbers
        for _ in range(_REACH):
            at = links[at].astype(np.int64)
            there = (at != NONE) & (at < table.count)
            of, at = of[there], at[there]
            begin = of >> _BITS << _BITS
            far = (at < begin - _REACH) | (at >= begin + (1 << _BITS) + _REACH)
            pairs.append((of[far] >> _BITS) * table.count + at[far])
    both = np.unique(np.concatenate(pairs))
    return both // max(table.count, 1), both % max(table.count, 1)
