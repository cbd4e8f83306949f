"""The blocks of an index: what is computed once for a segment, and how a table differs from it.

The base of an index is divided into blocks of documents with consecutive numbers, mostly turns of one session. For each
term that questions ask for, a summary of what the base has of it is cached. A summary describes the base as it was
built; blocks in which documents have died since, or have other turns around them, are the changes of a table.

`kernels.choose` proves that a search by blocks is exact. What it takes from here:

- A block without changes has the same documents with the same lenders as in the base. A document lends over at most
  `_REACH` links, so only documents within `_REACH - 1` links of one that died, or whose links are other ones, can have
  other lenders. Their blocks are the changes; all other blocks have the ratios of their summaries.
- To compute a document exactly, all its lenders must be visited. They are next to its block (at most `_REACH` numbers
  away), or they are listed: in `SegmentBase.far_lenders` for the base, in `BaseChanges.lenders` for changes and tail.
- A summary is computed with all documents of the base alive, whatever has died since. So it can be cached with the
  segment, and every view of the segment shares it.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Flags, Ints, Numbers
from recollect.indexes.documents.row_data import Rows, Values
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import ONE
from recollect.indexes.kernels.factors import BY_KIND
from recollect.indexes.kernels.types import About, BlockLayout, Summarizing, TermSummary, Wanted
from recollect.indexes.parameters import FROM_BEFORE
from recollect.indexes.words.postings import Postings
from recollect.indexes.words.segment import Segment

#: Above the relative error of some thousand steps in floating point.
MARGIN = 1 + 1e-9
#: A block has 1 << BITS documents.
BITS = 4
#: Summaries are cached up to this fraction of the memory of their segment, and at least this many bytes.
_PART, _LEAST_BYTES = 4, 1 << 20
#: Number of speakers of whom the blocks are cached.
_SPEAKERS = 256
#: Number of links between turns over which they lend.
_REACH = len(FROM_BEFORE)
_NOTHING: Ints = np.zeros(0, dtype=np.int64)


class SegmentBase:
    """Values that are computed once for a segment: its blocks, and the summaries of its terms.

    Args:
        table: A table that begins with its documents.
    """

    def __init__(self, segment: Segment, table: Table) -> None:
        columns: dict[str, Any] = segment.columns
        self.documents = segment.count
        #: The table as if there were no later documents and none had died. It does not refer to the segment, which may
        #: be evicted.
        self.table = replace(
            table,
            **columns,
            count=self.documents,
            live_count=self.documents,
            session_lengths=np.zeros(segment.session_count, dtype=np.int64),
            rows=Rows(),
            values=Values(None),
            later_sessions=list,
            _numbers={},
            _earlier={},
            _first=None,
            _unexpired=[],
            _narrowed={},
        )
        self.layout = _layout(columns["session"])
        self.blocks = self.layout.blocks
        begins = np.arange(0, self.documents, 1 << BITS)
        #: The maximum weight of the documents of each block, with 16 bits of fraction, and all that they offer.
        self.weights: Ints = np.maximum.reduceat(columns["weight"], begins).astype(np.int64)
        self.offers: NDArray[np.int8] = np.bitwise_or.reduceat(columns["offers"], begins)
        self._speakers: dict[int, Flags] = {}
        #: The first and the last day of the documents of each block.
        self.days = tuple(of.reduceat(columns["civil"], begins) for of in (np.minimum, np.maximum))
        linked = np.flatnonzero(_is_far(columns["before"], -1) | _is_far(columns["after"], 1))
        of, lender = _far_lenders(self.table, _around(self.table, linked, _REACH - 1))
        #: Lenders of a block that are not next to it: the blocks, ascending, and one lender for each.
        self.far_blocks, self.far_lenders = of, lender
        self._summaries: OrderedDict[int, TermSummary] = OrderedDict()
        self._titles: set[int] = set()  # the terms of titles among those that were ever summarized
        self._summary_bytes = 0
        self._most_bytes = _most_summary_bytes(segment)

    @property
    def nbytes(self) -> int:
        """The approximate memory in bytes, besides that of the segment: K of each document, and the summaries."""
        return 8 * self.documents + self._summary_bytes

    def summary(self, kernels: Summarizing, postings: Postings, term: int, is_title: bool) -> TermSummary:
        """Return the summary of a term of a question; that of the least recently used term is evicted."""
        number = postings.terms[term]
        found = self._summaries.get(number)
        if found is None:
            postings.check()
            begin, end = postings.spans[term, :2].tolist()
            return self._summarized(kernels, number, postings.base[begin:end], is_title)
        with suppress(KeyError):  # another thread has evicted it
            self._summaries.move_to_end(number)
        return found

    def _summarized(self, kernels: Summarizing, number: int, occurrences: Ints, is_title: bool) -> TermSummary:
        """Compute the summary of a term, and cache it unless the number is NONE."""
        made = kernels.summarize(occurrences, self.table, self.layout, is_title)
        if number != NONE:
            if is_title:
                self._titles.add(number)
            self._summaries[number] = made
            self._summary_bytes += made.nbytes
            if self._summary_bytes > self._most_bytes:
                self._evict()
        return made

    def prepare(self, kernels: Summarizing, segment: Segment, previous: Segment, like: SegmentBase) -> None:
        """Compute the summaries of a segment for the terms that were used last in the previous segment.

        Args:
            segment: The segment that this is the base of.
            previous: The previous one.
            like: Its base.
        """
        for number in tuple(like._summaries):
            term = segment.term(previous.terms[number])
            if term != NONE:
                begin, end = segment.span(term)
                self._summarized(kernels, term, segment.occurrences[begin:end], number in like._titles)

    def _evict(self) -> None:
        """Evict the least recently used summaries, an eighth of what may be cached.

        They are counted first, because threads that add or evict at the same time can miscount.
        """
        nbytes = sum(each.nbytes for each in tuple(self._summaries.values()))
        with suppress(KeyError):  # another thread has evicted the last
            while nbytes > self._most_bytes // 8 * 7:
                nbytes -= self._summaries.popitem(last=False)[1].nbytes
        self._summary_bytes = max(nbytes, 0)

    def speaker(self, speaker: int) -> Flags:
        """Return which blocks have documents of a speaker.

        Cost:
            O(documents), unless it is one of the last few that were asked for.
        """
        has = self._speakers.get(speaker)
        if has is None:
            while len(self._speakers) >= _SPEAKERS:
                self._speakers.pop(next(iter(self._speakers), NONE), None)
            has = np.zeros(self.blocks, dtype=np.bool_)
            has[np.flatnonzero(self.table.speaker[: self.documents] == speaker) >> BITS] = True
            self._speakers[speaker] = has
        return has

    def factors(self, about: About) -> NDArray[np.float64]:
        """Return upper bounds of the factors of documents of weight 1, for each block.

        Cost:
            O(blocks), and that of `speaker`.
        """
        factors = np.full(self.blocks, MARGIN)
        if about.speaker != NONE and about.favour > ONE:
            factors[self.speaker(about.speaker)] *= about.favour / ONE
        for kind in about.kinds:
            of, out_of = BY_KIND[kind]
            if of > out_of:
                factors[self.offers & kind != 0] *= of / out_of
        return factors


_BASES: WeakKeyDictionary[Segment, SegmentBase] = WeakKeyDictionary()


def bytes_of(segment: Segment) -> int:
    """Return the approximate memory of what searches have cached for a segment."""
    base = _BASES.get(segment)
    return 0 if base is None else base.nbytes


def most_bytes_of(segment: Segment) -> int:
    """Return how much memory a segment can need, with what searches may cache for it."""
    return segment.nbytes + 8 * segment.count + _most_summary_bytes(segment)


def _most_summary_bytes(segment: Segment) -> int:
    return max(segment.nbytes // _PART, _LEAST_BYTES)


def base_of(segment: Segment, table: Table) -> SegmentBase:
    """Return the base of a table that begins with the documents of a segment."""
    base = _BASES.get(segment)
    if base is None:
        base = _BASES[segment] = SegmentBase(segment, table)
    return base


def prepare(kernels: Summarizing, segment: Segment, table: Table, previous: Segment) -> None:
    """Compute for a segment what has been computed for the one that it replaces, so that no recall need do so.

    Args:
        segment: The new segment.
        table: A table that begins with its documents.
        previous: The segment that it replaces.
    """
    like = _BASES.get(previous)
    if like is not None:
        base_of(segment, table).prepare(kernels, segment, previous, like)


@dataclass(frozen=True, eq=False)
class BaseChanges:
    """The differences between a table and its base.

    Attributes:
        dead: The dead documents of the base.
        blocks: The blocks with changes, ascending.
        changed: Whether each block has changes.
        any: Whether there are blocks with changes, or a tail.
        lenders: The documents of the base that lend to these or to the tail and are not next to them.
        tail_sessions: The sessions of the tail's documents.
        unchanged: Which documents of the base are in blocks without changes, as bits (`types.Summary.bits`).
        standing: The blocks with live documents that have standing tags, ascending.
    """

    dead: Ints
    blocks: Ints
    changed: Flags
    any: bool
    lenders: Ints
    tail_sessions: Ints
    unchanged: NDArray[np.uint8]
    standing: Ints


def changes_of(table: Table, base: SegmentBase) -> BaseChanges:
    """Return the differences between a table and its base, computed once for each table."""
    found: BaseChanges | None = table.__dict__.get("_changes")
    if found is None:
        found = table.__dict__["_changes"] = _compared(table, base)
    return found


def _compared(table: Table, base: SegmentBase) -> BaseChanges:
    count, first = base.documents, base.table
    alive = table.alive[:count]
    dead = np.flatnonzero(~alive)
    differ = ~alive | (table.before[:count] != first.before) | (table.after[:count] != first.after)
    # A document has other lenders than in the base if a link on the way to one of them is another one.
    affected = _around(first, np.flatnonzero(differ), _REACH - 1)
    changed = _marked(affected >> BITS, base.blocks)
    # What the base says of the greatest weights no longer holds where a turn has a greater one.
    changed[np.flatnonzero(table.weight[:count] > first.weight) >> BITS] = True
    blocks = np.flatnonzero(changed)
    unchanged = ~np.repeat(changed, 1 << BITS)[:count]
    tail = np.arange(count, table.count)
    # Other documents of these blocks have the lenders that they have in the base.
    lenders = _around(table, np.concatenate([affected[alive[affected]], tail]), _REACH)
    lenders = lenders[lenders < count]
    sessions = table.session[count : table.count]
    return BaseChanges(
        dead,
        blocks,
        changed,
        bool(len(blocks)) or table.count > count,
        lenders[~_next_to(changed, lenders)],
        np.flatnonzero(_marked(sessions[sessions != NONE], len(table.session_lengths))),
        np.packbits(unchanged),
        _blocks_of(table.governing, base),
    )


class Pruned(NamedTuple):
    """The data by which a search leaves out blocks.

    Attributes:
        base: The base of the table.
        changes: The changes of the table.
        summaries: The summary of each term.
    """

    base: SegmentBase
    changes: BaseChanges
    summaries: tuple[TermSummary, ...]


def standing_blocks(table: Table, base: SegmentBase, changes: BaseChanges, wanted: Wanted) -> Ints:
    """Return the blocks with documents with standing tags that may be hits, ascending."""
    if wanted.among is None:
        return changes.standing
    return _blocks_of(table.governing[wanted.among[table.governing]], base)


def kept_of(changes: BaseChanges, wanted: Wanted) -> NDArray[np.uint8]:
    """Return which documents of blocks without changes may be hits, as bits."""
    if wanted.among is None:
        return changes.unchanged
    packed: NDArray[np.uint8] = np.packbits(wanted.among)[: len(changes.unchanged)]
    return changes.unchanged & packed


def _next_to(chosen: Flags, numbers: Ints) -> Flags:
    """Return which documents are in one of the chosen blocks, or at most _REACH documents away from one."""
    out: Flags = np.zeros(len(numbers), dtype=np.bool_)
    for step in range(-_REACH, _REACH + 1, min(_REACH, 1 << BITS)):
        out |= chosen[np.clip((numbers + step) >> BITS, 0, len(chosen) - 1)]
    return out


def _blocks_of(numbers: Ints, base: SegmentBase) -> Ints:
    return np.flatnonzero(_marked(numbers[numbers < base.documents] >> BITS, base.blocks))


@dataclass(frozen=True, eq=False)
class Part:
    """The documents whose shares are wanted: those of some blocks, and of the tail.

    Attributes:
        layout: The blocks.
        inside: Whether each block is wanted.
        lenders: Documents of the base that lend to wanted ones and are not next to their blocks, ascending.
        dead: The dead documents of the base.
        with_tail: Whether the documents of the tail are wanted, too.
        tail_sessions: If so, their sessions.
        summaries: The summary of each term.
    """

    layout: BlockLayout
    inside: Flags
    lenders: Ints
    dead: Ints
    with_tail: bool
    tail_sessions: Ints
    summaries: tuple[TermSummary, ...]


def part_of(
    base: SegmentBase, inside: Flags, changes: BaseChanges, summaries: tuple[TermSummary, ...], *, with_tail: bool
) -> Part:
    """Return a part of the documents: some blocks, and the tail or not."""
    lenders = _NOTHING
    if len(base.far_blocks) or (with_tail and len(changes.lenders)):
        far = base.far_lenders[inside[base.far_blocks]]
        lenders = np.union1d(far, changes.lenders) if with_tail else np.unique(far)
    return Part(base.layout, inside, lenders, changes.dead, with_tail, changes.tail_sessions, summaries)


def _marked(numbers: Ints | Numbers, count: int) -> Flags:
    """Return a flag for each number below a count: whether it is one of these numbers, which may repeat."""
    out: Flags = np.zeros(count, dtype=np.bool_)
    out[numbers] = True
    return out


def _around(table: Table, numbers: Ints, steps: int) -> Ints:
    """Return documents and the turns around them, up to a number of steps, ascending.

    Cost:
        O(numbers x steps + documents). Sorting would take longer.
    """
    found = _marked(numbers, table.count)
    for links in (table.before, table.after):
        at = numbers
        for _ in range(steps):
            at = links[at].astype(np.int64)
            at = at[(at != NONE) & (at < table.count)]
            found[at] = True
    return np.flatnonzero(found)


def _layout(sessions: Numbers) -> BlockLayout:
    """Return the blocks of documents, given the session of each."""
    count = (len(sessions) + (1 << BITS) - 1) >> BITS
    of = np.arange(len(sessions)) >> BITS
    width = int(sessions.max(initial=NONE)) + 2
    pairs = np.unique(of * width + sessions + 1)
    block, session = pairs // width, pairs % width - 1
    # NONE remains only in blocks that have nothing else.
    several = np.bincount(block, minlength=count)[block] > 1
    kept = ~(several & (session == NONE))
    block, session = block[kept], session[kept]
    starts = np.searchsorted(block, np.arange(count + 1)).astype(np.int64)
    return BlockLayout(len(sessions), BITS, starts, session.astype(np.int64))


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
            begin = of >> BITS << BITS
            far = (at < begin - _REACH) | (at >= begin + (1 << BITS) + _REACH)
            pairs.append((of[far] >> BITS) * table.count + at[far])
    both = np.unique(np.concatenate(pairs))
    return both // max(table.count, 1), both % max(table.count, 1)
