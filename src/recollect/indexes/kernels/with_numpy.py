"""The kernels in NumPy: see `kernels.types` for the interface. No cost here depends on the size of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Flags, Ints, Numbers
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import BITS, ONE, SHARE_BITS
from recollect.indexes.kernels.blocks import MARGIN, Part, Pruned, SegmentBase
from recollect.indexes.kernels.factors import factor_of
from recollect.indexes.kernels.numpy_search import Search
from recollect.indexes.kernels.types import (
    RATIO_BITS,
    RAW,
    TITLE,
    WEIGHED_BITS,
    About,
    BlockLayout,
    Matched,
    MatchRows,
    Reached,
    TermSummary,
    Wanted,
    Weights,
)
from recollect.indexes.parameters import (
    AFTER_QUESTION,
    DONOR_CAP,
    FROM_AFTER,
    FROM_BEFORE,
    PIVOT_CONSTANT,
    PIVOT_SLOPE,
    SESSION_MOST_MASS,
    SESSION_SHARE,
    SESSION_TOP,
    TITLE_MASS,
    TOP,
)
from recollect.indexes.words.postings import Postings, live, run_lengths
from recollect.indexes.words.segment import MOST_COUNT, POSITION_BITS

_STEPS = len(FROM_BEFORE) + len(FROM_AFTER)
#: Up to this many places for each amount, sums are collected in a column instead of by sorting.
_DENSE = 16
_NOTHING: Ints = np.zeros(0, dtype=np.int64)


class NumpyKernels:
    name = "numpy"

    def tally(self, postings: Postings, table: Table) -> Ints:
        out = np.zeros((len(postings.spans), 3), dtype=np.int64)
        for row, (numbers, counts) in zip(out, _counted(postings, table), strict=True):
            sessions = table.session[numbers]
            row[:] = len(numbers), counts.sum(), len(np.unique(sessions[sessions != NONE]))
        return out

    def reach(
        self, postings: Postings, table: Table, weights: Weights, forced: Ints, part: Part | None = None
    ) -> Reached:
        """Return what `Kernels.reach` says; with a part, of its documents."""
        session_sums = np.zeros(len(table.session_lengths), dtype=np.int64)
        if weights.live[1]:
            _add_sessions(session_sums, postings, table, weights, part)
        if part is not None:
            postings = _of_part(postings, part)
        words = len(weights.terms) - len(weights.title_of)  # the terms that are no title terms
        occurrences = [live(each, table) for each in _parts(postings)]
        terms, numbers, counts = _of_terms(occurrences[:words])
        terms, numbers, own, mass = _masses(table, terms, numbers, counts)
        titled = [(term, run_lengths(each)[0]) for term, each in enumerate(occurrences[words:], words) if len(each)]
        if part is not None:  # the others only lend, and not all that they get is known
            wanted = _wanted(numbers, part)
            terms, numbers, own, mass = terms[wanted], numbers[wanted], own[wanted], mass[wanted]
            titled = [(term, having[_wanted(having, part)]) for term, having in titled]
        reached = np.unique(np.concatenate([numbers, *(having for _, having in titled)]))
        pivot = _pivot(table, reached)
        shares = np.zeros((len(RAW), len(reached)), dtype=np.int64)
        at = reached.searchsorted(numbers)
        share = share_of(weights.terms[terms], mass, pivot[at], weights.whole)
        kept, like = share * own // np.maximum(mass, 1), weights.like[terms]
        for row, parts in enumerate((np.where(like, 0, kept), np.where(like, kept, 0), share - kept)):
            shares[row] = _summed(at, parts, len(reached))
        for term, numbers in titled:
            at = reached.searchsorted(numbers)
            own = _counts_of(occurrences[weights.title_of[term - words]], numbers) << BITS
            shares[TITLE, at] += title_share(int(weights.terms[term]), own, pivot[at], weights.whole)
        relevant = shares.sum(axis=0) > 0
        for first, second, share in weights.pairs.tolist():
            postings.check()
            near = _near(occurrences[first], occurrences[second])
            if part is not None:
                near = near[_wanted(near, part)]
            shares[4, reached.searchsorted(near)] += share
        reached, shares = reached[relevant], shares[:, relevant]
        more = np.setdiff1d(forced, reached)
        reached = np.concatenate([reached, more])
        shares = np.concatenate([shares, np.zeros((len(RAW), len(more)), dtype=np.int64)], axis=1)
        session = table.session[reached]
        turns = session != NONE
        shares[3, turns] = session_sums[session[turns]]
        return Reached(reached, shares, len(reached))

    def summarize(self, occurrences: Ints, table: Table, layout: BlockLayout, is_title: bool) -> TermSummary:
        numbers, times = run_lengths(occurrences)
        sessions = table.session[numbers]
        turns = (sessions != NONE) & (not is_title)
        of_sessions = np.bincount(sessions[turns], times[turns], len(table.session_lengths)).astype(np.int32)
        if is_title:
            mass: Ints = np.full(len(numbers), TITLE_MASS, dtype=np.int64)
        else:
            _, numbers, _, mass = _masses(table, np.zeros(len(numbers), dtype=np.int64), numbers, times)
        ratios = (mass << RATIO_BITS) // (mass + _pivot(table, numbers))
        most: NDArray[np.uint16] = np.zeros(layout.blocks, dtype=np.uint16)
        weighed = (ratios + 1) * table.weight[numbers] >> BITS + RATIO_BITS - WEIGHED_BITS
        of = numbers >> layout.bits
        begins = np.flatnonzero(np.diff(of, prepend=NONE))
        if len(begins):
            most[of[begins]] = np.maximum.reduceat(weighed, begins) + 1
        reached: Flags = np.zeros(table.count, dtype=np.bool_)
        reached[numbers] = True
        return TermSummary.of(most, of_sessions, reached, int(ratios.min(initial=1 << RATIO_BITS)))

    def bounds(
        self,
        postings: Postings,
        table: Table,
        weights: Weights,
        base: SegmentBase,
        summaries: Sequence[TermSummary],
        forced: Flags,
    ) -> NDArray[np.float64]:
        """Return for each block an upper bound of the sum of all shares of a document, times its weight.

        It is 0 for a block that no term reaches and that is not forced. In blocks with changes it may be too low.
        """
        unit = (1 << SHARE_BITS) / weights.whole * MARGIN
        layout, greatest = base.layout, base.weights / ONE
        sums = np.zeros(layout.blocks)
        of_sessions = np.zeros(len(table.session_lengths) + 1)  # the last is that of a block without sessions
        for term, summary in enumerate(summaries):
            weight = int(weights.terms[term]) * TOP[0] / TOP[1] * unit / (1 << WEIGHED_BITS)
            sums[summary.blocks] += weight * summary.most
            if weights.live[1] and weights.sessions[term]:
                sessions, counts = _with_tail(summary, postings, term, table)
                mass = np.minimum(counts, SESSION_MOST_MASS) << BITS
                weight = int(weights.sessions[term]) * SESSION_TOP / 10 * SESSION_SHARE / 100 * unit
                of_sessions[sessions] += weight * (mass / (mass + table.session_pivots[sessions]))
        for first, second, share in weights.pairs.tolist():
            begin, end, *_ = postings.spans[first].tolist()
            other_begin, other_end, *_ = postings.spans[second].tolist()
            near = _near(postings.base[begin:end], postings.base[other_begin:other_end])
            of = np.unique(near >> layout.bits)
            sums[of] += share * MARGIN * greatest[of]
        most = np.maximum.reduceat(of_sessions[layout.sessions], layout.starts[:-1])
        out: NDArray[np.float64] = np.where((sums > 0) | forced, sums + most * greatest + 1, 0)
        return out

    def search(
        self, postings: Postings, table: Table, weights: Weights, about: About, wanted: Wanted, pruned: Pruned | None
    ) -> Reached:
        if pruned is not None:
            return Search(self, postings, table, weights, about, wanted, *pruned).best()
        forced = np.zeros(0, dtype=np.int64) if wanted.extras is None else wanted.extras.numbers
        reached = self.reach(postings, table, weights, forced)
        return reached if wanted.among is None else reached.within(wanted.among)

    def weigh(self, reached: Reached, dates: Ints, table: Table, about: About) -> Ints:
        factor = factor_of(reached.numbers, table, about)
        totals: Ints = (reached.shares * factor >> BITS).sum(axis=0)
        return totals + (dates * factor >> BITS) if len(dates) else totals

    def matched(self, postings: Postings, table: Table, weights: Weights, numbers: Ints) -> Matched:
        return _in_documents(postings, table, weights, numbers)[0]

    def explained(
        self, postings: Postings, table: Table, weights: Weights, numbers: Ints, factors: Ints, ranks: Ints
    ) -> MatchRows:
        found, own, mass, around, lends = _in_documents(postings, table, weights, numbers)
        titles = found.titles * factors[:, None] >> BITS
        shares = found.shares * factors[:, None] >> BITS
        hits, terms = ((found.shares > 0) | (titles > 0)).nonzero()
        total = (shares + titles)[hits, terms]
        order = np.lexsort((ranks[terms], -total, hits))
        hits, terms, total = hits[order], terms[order], total[order]
        mass, own, shares = mass[hits, terms], own[hits, terms], shares[hits, terms]
        lenders = np.where((mass > own)[:, None], lends[hits, terms], False)
        ends = np.cumsum(lenders.sum(axis=1))
        parts = (hits, terms, total, shares * own // np.maximum(mass, 1), titles[hits, terms])
        rows = zip(*(part.tolist() for part in (*parts, np.concatenate([[0], ends])[:-1], ends)), strict=True)
        return MatchRows(list(rows), around[hits][lenders].tolist())

    def best_of(self, reached: Reached, dates: Ints, table: Table, about: About, wanted: int) -> tuple[Ints, Ints]:
        totals = self.weigh(reached, dates, table, about)
        indexes = self.best(totals, reached.numbers, table, wanted)
        return indexes, totals[indexes]

    def best(self, totals: Ints, numbers: Ints, table: Table, wanted: int) -> Ints:
        indexes = np.flatnonzero(totals > 0)
        if len(indexes) > wanted:
            values = totals[indexes]
            least = -np.partition(-values, wanted - 1)[wanted - 1]
            above, ties = indexes[values > least], indexes[values == least]
            left = wanted - len(above)
            if len(ties) > left:
                times = table.micros[numbers[ties]]
                ties = ties[times >= np.partition(times, len(times) - left)[len(times) - left]]
            indexes = np.concatenate([above, ties])
        return indexes


def _in_documents(
    postings: Postings, table: Table, weights: Weights, numbers: Ints
) -> tuple[Matched, Ints, Ints, Ints, Flags]:
    """Return the shares of terms in documents, and what they come from.

    Returns:
        The shares; the mass of each term in the document's own text, and with what is lent; the turns around each
        document, the previous ones first, the nearest first; and whether each of these contains the term.
    """
    around = _around(table, numbers)
    all_numbers = np.concatenate([numbers[:, None], around], axis=1)
    counts = np.zeros((len(postings.spans), *all_numbers.shape), dtype=np.int64)
    for term, occurrences in enumerate(_parts(postings)):
        counts[term] = _counts_of(occurrences, all_numbers)
    counts = counts.swapaxes(0, 1)
    own = counts[:, :, 0] << BITS
    mass = own.copy()
    for step in range(_STEPS):
        at = around[:, step]
        lent = (counts[:, :, step + 1] * DONOR_CAP << BITS) // np.maximum(table.length[at], DONOR_CAP)[:, None]
        lending = _lending(step) + np.where(table.asks[at], AFTER_QUESTION if step == 0 else 0, 0)
        mass += lent * lending[:, None] // 10
    pivot = _pivot(table, numbers)[:, None]
    terms = len(weights.terms) - len(weights.title_of)
    in_title = own[:, terms:] > 0
    own, mass = own[:, :terms], mass[:, :terms]
    shares = share_of(weights.terms[:terms], mass, pivot, weights.whole)
    titles = np.zeros_like(shares)
    added = title_share(weights.terms[terms:], own[:, weights.title_of], pivot, weights.whole)
    titles[:, weights.title_of] = np.where(in_title, added, 0)
    found = Matched(shares, shares * own // np.maximum(mass, 1), titles)
    return found, own, mass, around, counts[:, :terms, 1:] > 0


def share_of(weight: int | Ints, mass: Ints, pivot: Ints, whole: int) -> Ints:
    """Return the share of a mass of a term."""
    top, below = TOP
    saturated = weight * top * mass // (below * (mass + pivot))
    return (saturated << SHARE_BITS) // whole


def title_share(weight: int | Ints, own: Ints, pivot: Ints, whole: int) -> Ints:
    """Return what a title adds to the share of a term that has the mass `own` in the text."""
    return share_of(weight, own + TITLE_MASS, pivot, whole) - share_of(weight, own, pivot, whole)


def _lending(step: int) -> int:
    return FROM_BEFORE[step] if step < len(FROM_BEFORE) else FROM_AFTER[step - len(FROM_BEFORE)]


def _parts(postings: Postings) -> Iterator[Ints]:
    """Yield the occurrences of each term, those in dead documents included."""
    for begin, end, tail_begin, tail_end in postings.spans.tolist():
        postings.check()
        base, tail = postings.base[begin:end], postings.tail[tail_begin:tail_end]
        yield np.concatenate([base, tail]) if len(base) and len(tail) else base if len(base) else tail


def _counted(postings: Postings, table: Table) -> Iterator[tuple[Ints, Ints]]:
    for occurrences in _parts(postings):
        yield run_lengths(live(occurrences, table))


def _counts_of(occurrences: Ints, numbers: Ints) -> Ints:
    """Return the count of a term in each of these live documents; 0 for NONE."""
    begins = occurrences.searchsorted(numbers << POSITION_BITS)
    ends = occurrences.searchsorted(numbers + 1 << POSITION_BITS)
    return np.where(numbers == NONE, 0, np.minimum(ends - begins, MOST_COUNT))


def _of_terms(occurrences: Sequence[Ints]) -> tuple[Ints, Ints, Ints]:
    """Return the terms, the documents of each, ascending, and its count in each."""
    sizes = [len(each) for each in occurrences]
    numbers = np.concatenate([_NOTHING, *occurrences]) >> POSITION_BITS
    terms = np.repeat(np.arange(len(sizes)), sizes)
    begins = np.flatnonzero((np.diff(numbers, prepend=NONE) != 0) | (np.diff(terms, prepend=NONE) != 0))
    counts = np.minimum(np.diff(begins, append=len(numbers)), MOST_COUNT)
    return terms[begins], numbers[begins], counts


def _masses(table: Table, terms: Ints, numbers: Ints, counts: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the terms, the documents that each reaches, their own mass, and their mass with what others lend."""
    lent = (counts * DONOR_CAP << BITS) // np.maximum(table.length[numbers], DONOR_CAP)
    asked = np.where(table.asks[numbers], AFTER_QUESTION, 0)
    begins = terms * table.count  # a term and a document are one number
    targets, amounts = [begins + numbers], [counts << BITS]
    # A turn lends forward to the turns that it precedes, and backward likewise.
    for links, tenths in ((table.after, FROM_BEFORE), (table.before, FROM_AFTER)):
        begin, at, amount, extra = begins, numbers, lent, asked
        for step, weight in enumerate(tenths):
            at = links[at].astype(np.int64)
            there = (at != NONE) & (at < table.count)
            begin, at, amount, extra = begin[there], at[there], amount[there], extra[there]
            if not len(at):
                break
            lending = weight + extra if step == 0 and links is table.after else weight
            targets.append(begin + at)
            amounts.append(amount * lending // 10)
    if len(targets) == 1:
        return terms, numbers, amounts[0], amounts[0]
    both, all_amounts = np.concatenate(targets), np.concatenate(amounts)
    size = int(begins.max(initial=0)) + table.count
    if size <= _DENSE * len(both):
        mass = _summed(both, all_amounts, size)
        reached = np.flatnonzero(mass)
        own, mass = _summed(targets[0], amounts[0], size)[reached], mass[reached]
    else:
        reached, inverse = np.unique(both, return_inverse=True)
        mass = _summed(inverse, all_amounts, len(reached))
        own = _summed(inverse[: len(numbers)], amounts[0], len(reached))
        positive = mass > 0
        reached, own, mass = reached[positive], own[positive], mass[positive]
    return reached // table.count, reached % table.count, own, mass


def _summed(places: Ints, amounts: Ints, size: int) -> Ints:
    """Return the sum of the amounts at each place. They are integers far below 2^53, so sums of floats are exact."""
    sums: Ints = np.bincount(places, amounts, size).astype(np.int64)
    return sums


def _pivot(table: Table, numbers: Ints) -> Ints:
    """Return K of each document, the mass at which a term is half saturated; computed once for a table."""
    pivots: Ints = table.pivots[numbers]
    missing = np.flatnonzero(pivots == 0)
    if len(missing):
        pivots[missing] = table.pivots[numbers[missing]] = _computed_pivot(table, numbers[missing])
    return pivots


def _computed_pivot(table: Table, numbers: Ints) -> Ints:
    """Return K of each document, by its length and the lengths of the turns that lend to it."""
    length = table.length[numbers].astype(np.int64) << BITS
    for links, tenths in ((table.before, FROM_BEFORE), (table.after, FROM_AFTER)):
        at = numbers
        indexes = np.arange(len(numbers))
        for step, weight in enumerate(tenths):
            at = links[at].astype(np.int64)
            there = (at != NONE) & (at < table.count)
            at, indexes = at[there], indexes[there]
            if not len(at):
                break
            lending: Ints = np.full(len(at), weight, dtype=np.int64)
            if step == 0 and links is table.before:
                lending += np.where(table.asks[at], AFTER_QUESTION, 0)
            length[indexes] += (np.minimum(table.length[at], DONOR_CAP) * lending << BITS) // 10
    return PIVOT_CONSTANT + length * PIVOT_SLOPE // 10_000


def _around(table: Table, numbers: Ints) -> Ints:
    columns = []
    for links, steps in ((table.before, len(FROM_BEFORE)), (table.after, len(FROM_AFTER))):
        at = numbers.astype(np.int64)
        for _ in range(steps):
            at = np.where(at == NONE, NONE, links[at])
            at = np.where(at >= table.count, NONE, at)
            columns.append(at)
    return np.stack(columns, axis=1)


def _add_sessions(sums: Ints, postings: Postings, table: Table, weights: Weights, part: Part | None) -> None:
    """Add the shares of all terms to those of the sessions; with a part, of its sessions."""
    for term in range(len(weights.terms) - len(weights.title_of)):
        if part is None:
            numbers, counts = next(_counted(postings._replace(spans=postings.spans[term : term + 1]), table))
            which, mass = _by_session(numbers, counts, table)
        else:
            which, mass = _with_tail(part.summaries[term], postings, term, table, part.dead)
            wanted = _sessions_of(part, table)[which] & (mass > 0)
            which, mass = which[wanted], mass[wanted]
        sums[which] += session_share(int(weights.sessions[term]), mass, table.session_pivots[which], weights)


def _by_session(numbers: Ints, counts: Ints, table: Table) -> tuple[Numbers, Ints]:
    """Return the sessions of documents, ascending, and the sum of their counts in each."""
    sessions = table.session[numbers]
    turns = sessions != NONE
    which, inverse = np.unique(sessions[turns], return_inverse=True)
    return which, np.bincount(inverse, counts[turns], len(which)).astype(np.int64)


def _with_tail(
    summary: TermSummary, postings: Postings, term: int, table: Table, dead: Ints | None = None
) -> tuple[Numbers, Ints]:
    """Return the sessions with a term, each once, and its count: what the base has with the tail, less what is dead."""
    begin, end, tail_begin, tail_end = postings.spans[term].tolist()
    which, counts = summary.sessions, summary.times.astype(np.int64)
    changes = []
    if tail_begin < tail_end:
        changes.append(run_lengths(live(postings.tail[tail_begin:tail_end], table)))
    if dead is not None and len(dead) and begin < end:
        changes.append((dead, -_counts_of(postings.base[begin:end], dead)))
    if changes:
        numbers, times = (np.concatenate(parts) for parts in zip(*changes, strict=True))
        of, more = _by_session(numbers, times, table)
        joined = np.union1d(which, of)
        total = np.zeros(len(joined), dtype=np.int64)
        total[joined.searchsorted(which)] += counts
        total[joined.searchsorted(of)] += more
        which, counts = joined, total
    return which, counts


def _wanted(numbers: Ints, part: Part) -> Flags:
    """Return which documents are in a part."""
    in_base = numbers < part.layout.documents
    out: Flags = np.where(in_base, part.inside[np.where(in_base, numbers >> part.layout.bits, 0)], part.with_tail)
    return out


def _sessions_of(part: Part, table: Table) -> Flags:
    """Return which sessions have documents in a part."""
    wanted: Flags = np.zeros(len(table.session_lengths) + 1, dtype=np.bool_)  # the last is NONE
    starts = part.layout.starts
    wanted[part.layout.sessions[np.repeat(part.inside, np.diff(starts))]] = True
    if part.with_tail:
        wanted[part.tail_sessions] = True
    return wanted


def _of_part(postings: Postings, part: Part) -> Postings:
    """Return the occurrences that are wanted, or in documents that lend to wanted ones."""
    blocks, size = np.flatnonzero(part.inside), 1 << part.layout.bits
    begins, ends = blocks * size - len(FROM_BEFORE), (blocks + 1) * size + len(FROM_BEFORE)
    begins = np.concatenate([np.maximum(begins, 0), part.lenders])
    ends = np.concatenate([np.minimum(ends, part.layout.documents), part.lenders + 1])
    order = np.argsort(begins)
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    begins[1:] = np.maximum(begins[1:], ends[:-1])  # no occurrence twice
    begins, ends = begins << POSITION_BITS, np.maximum(begins, ends) << POSITION_BITS
    columns, spans, size = [], [], 0
    for begin, end, tail_begin, tail_end in postings.spans.tolist():
        column = postings.base[begin:end]
        first, last = column.searchsorted(begins), column.searchsorted(ends)
        sizes = last - first
        at = np.arange(sizes.sum()) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
        columns.append(column[at])
        spans.append((size, size + len(at), tail_begin, tail_end if part.with_tail else tail_begin))
        size += len(at)
    base = np.concatenate([np.zeros(0, dtype=np.int64), *columns])
    return postings._replace(base=base, spans=np.array(spans, dtype=np.int64).reshape(-1, 4))


def session_share(weight: int, mass: Ints, pivot: Ints, weights: Weights) -> Ints:
    """Return the share of a term in sessions: BM25 with k1 = 1.2 and b = 3/4 over their mean length."""
    mass = np.minimum(mass, SESSION_MOST_MASS) << BITS
    saturated = weight * SESSION_TOP * mass // (10 * (mass + pivot))
    return (saturated * SESSION_SHARE // 100 << SHARE_BITS) // weights.whole


def _near(one: Ints, other: Ints) -> Ints:
    """Return the distinct documents in which a term is one or two positions before another."""
    if not len(one) or not len(other):
        return np.zeros(0, dtype=np.int64)
    near = _is_in(one + 1, other) | _is_in(one + 2, other)
    return np.unique(one[near] >> POSITION_BITS)


def _is_in(values: Ints, others: Ints) -> Flags:
    """Return which values are in `others`. Both are ascending, and `others` is not empty."""
    found: Flags = others[np.minimum(np.searchsorted(others, values), len(others) - 1)] == values
    return found


KERNELS = NumpyKernels()
