"""The kernels in C: see `kernels.types` for the interface, and `with_numpy` for the same in NumPy."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Flags, Ints, Numbers
from recollect.indexes.documents.table import Table
from recollect.indexes.kernels.blocks import BaseChanges, Pruned, SegmentBase, kept_of, standing_blocks
from recollect.indexes.kernels.native.library import check, ffi, flags, ints, kept, lib, numbers, octets, passed, struct
from recollect.indexes.kernels.types import (
    RAW,
    About,
    BlockLayout,
    Matched,
    MatchRow,
    MatchRows,
    Reached,
    TermSummary,
    Wanted,
    Weights,
)
from recollect.indexes.parameters import FROM_AFTER, FROM_BEFORE
from recollect.indexes.words.postings import Postings

_STEPS = len(FROM_BEFORE) + len(FROM_AFTER)
#: The fields of a row that a kernel returns: a document and its shares.
_FIELDS = 1 + len(RAW)
#: The fields of a match that a kernel returns.
_OF_MATCH = len(MatchRow._fields)
#: The first and the last of some days.
_ANY_DAY = np.array([0], dtype=np.int32), np.array([1], dtype=np.int32)


class NativeKernels:
    name = "native"

    def __init__(self) -> None:
        # The working memory of one question is kept for the next. `pop` and `append` of a deque are thread-safe.
        self._free: deque[Any] = deque(maxlen=1)

    def _scratch(self) -> Any:
        try:
            return self._free.pop()
        except IndexError:
            made = lib.rc_scratch_new()
            if made == ffi.NULL:
                raise MemoryError from None
            return ffi.gc(made, lib.rc_scratch_free)

    def tally(self, postings: Postings, table: Table) -> Ints:
        out: Ints = np.zeros((len(postings.spans), 3), dtype=np.int64)
        check(lib.rc_tally(_postings(postings), table_of(table), ints(out)), postings.ending)
        return out

    def reach(self, postings: Postings, table: Table, weights: Weights, forced: Ints) -> Reached:
        found, scratch = struct("rc_found"), self._scratch()
        check(lib.rc_reach(*_question(postings, table, weights), ints(forced), scratch, found), postings.ending)
        self._free.append(scratch)
        return _reached(found)

    def summarize(self, occurrences: Ints, table: Table, layout: BlockLayout, is_title: bool) -> TermSummary:
        most: NDArray[np.uint16] = np.zeros(layout.blocks, dtype=np.uint16)
        times: Numbers = np.zeros(len(table.session_lengths), dtype=np.int32)
        reached: Flags = np.zeros(table.count, dtype=np.bool_)
        scratch = self._scratch()
        out = passed("shorts", most), numbers(times), flags(reached)
        least = check(lib.rc_summarize(ints(occurrences), table_of(table), is_title, layout.bits, scratch, *out))
        self._free.append(scratch)
        return TermSummary.of(most, times, reached, least)

    def search(
        self, postings: Postings, table: Table, weights: Weights, about: About, wanted: Wanted, pruned: Pruned | None
    ) -> Reached:
        found, scratch = struct("rc_found"), self._scratch()
        fields: dict[str, Any] = {}
        if wanted.among is not None:
            fields["among"] = flags(wanted.among)
        if wanted.extras is not None:
            fields["forced"], fields["forced_shares"] = ints(wanted.extras.numbers), ints(wanted.extras.shares)
            fields["greatest"] = int(wanted.extras.bounds_in(*_ANY_DAY)[1][0])
            if wanted.extras.near is not None:
                fields["near"], fields["close"] = ints(wanted.extras.near.shares), ints(wanted.extras.near.numbers)
        base = changes = ffi.NULL
        if pruned is not None:
            base, changes = _base(pruned.base), _changes(pruned.changes)
            fields |= _pruned(pruned, table, about, wanted)
        of_wanted = struct(
            "rc_wanted",
            best_count=wanted.best,
            standing_count=wanted.standing,
            **fields,
        )
        of_question = *_question(postings, table, weights), _about(about)
        count = check(lib.rc_search(*of_question, base, changes, of_wanted, scratch, found), postings.ending)
        self._free.append(scratch)
        return _reached(found)._replace(passed=count)

    def weigh(self, reached: Reached, dates: Ints, table: Table, about: About) -> Ints:
        totals: Ints = np.empty(len(reached.numbers), dtype=np.int64)
        shares = np.ascontiguousarray(reached.shares)
        lib.rc_weigh(ints(reached.numbers), ints(shares), ints(dates), table_of(table), _about(about), ints(totals))
        return totals

    def matched(self, postings: Postings, table: Table, weights: Weights, numbers: Ints) -> Matched:
        found = np.zeros((3, len(numbers), len(weights.terms) - len(weights.title_of)), dtype=np.int64)
        arguments = *_question(postings, table, weights), ints(numbers)
        check(lib.rc_matched(*arguments, *map(ints, found)), postings.ending)
        return Matched(*found)

    def explained(
        self, postings: Postings, table: Table, weights: Weights, numbers: Ints, factors: Ints, ranks: Ints
    ) -> MatchRows:
        most = len(numbers) * len(ranks)
        rows: Ints = np.empty((most, _OF_MATCH), dtype=np.int64)
        lenders: Ints = np.empty(_STEPS * most, dtype=np.int64)
        arguments = *_question(postings, table, weights), *map(ints, (numbers, factors, ranks, rows, lenders))
        count = check(lib.rc_explained(*arguments), postings.ending)
        found = rows[:count].tolist()
        return MatchRows(found, lenders[: max([row[-1] for row in found], default=0)].tolist())

    def best_of(self, reached: Reached, dates: Ints, table: Table, about: About, wanted: int) -> tuple[Ints, Ints]:
        count = len(reached.numbers)
        places, totals = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        shares = np.ascontiguousarray(reached.shares)
        arguments = ints(reached.numbers), ints(shares), ints(dates), table_of(table), _about(about)
        size = check(lib.rc_best_of(*arguments, wanted, ints(places), ints(totals)))
        return places[:size], totals[:size]

    def best(self, totals: Ints, numbers: Ints, table: Table, wanted: int) -> Ints:
        places: Ints = np.empty(len(totals), dtype=np.int64)
        size = check(lib.rc_best(ints(totals), ints(numbers), ints(table.micros), wanted, ints(places)))
        return places[:size]


def _reached(found: Any) -> Reached:
    """Return rows as NumPy arrays, and free them."""
    try:
        rows = np.frombuffer(ffi.buffer(found.at, found.count * _FIELDS * 8), dtype=np.int64)
        columns = rows.reshape(-1, _FIELDS).T.copy()
    finally:
        lib.rc_release(found)
    return Reached(columns[0], columns[1:], len(columns[0]))


def _summaries(summaries: Sequence[TermSummary]) -> Any:
    """Return an array of structures, which remain with their summaries."""
    return ffi.new("rc_summary *[]", [_summary(each) for each in summaries])


def _summary(summary: TermSummary) -> Any:
    return kept(
        summary,
        lambda: struct(
            "rc_summary",
            blocks=numbers(summary.blocks),
            most=passed("shorts", summary.most),
            sessions=numbers(summary.sessions),
            times=numbers(summary.times),
            reached=numbers(summary.reached),
            bits=octets(summary.bits),
        ),
    )


def _layout(layout: BlockLayout) -> Any:
    return kept(
        layout,
        lambda: struct(
            "rc_layout",
            documents=layout.documents,
            bits=layout.bits,
            starts=ints(layout.starts),
            sessions=ints(layout.sessions),
        ),
    )


def _pruned(pruned: Pruned, table: Table, about: About, wanted: Wanted) -> dict[str, Any]:
    """Return the fields of what is wanted of a search by blocks."""
    fields: dict[str, Any] = {
        "summaries": _summaries(pruned.summaries),
        "kept": octets(kept_of(pruned.changes, wanted)),
        "standing": ints(standing_blocks(table, pruned.base, pruned.changes, wanted)),
    }
    if about.speaker != NONE:
        fields["speakers"] = flags(pruned.base.speaker(about.speaker))
    if wanted.extras is not None:
        fields["least"], fields["most"] = map(ints, wanted.extras.bounds_in(*pruned.base.days))
    return fields


def _base(base: SegmentBase) -> Any:
    return kept(
        base,
        lambda: struct(
            "rc_blocks",
            layout=_layout(base.layout),
            far_blocks=ints(base.far_blocks),
            far_lenders=ints(base.far_lenders),
            weights=ints(base.weights),
            offers=passed("bytes", base.offers),
        ),
    )


def _changes(changes: BaseChanges) -> Any:
    return kept(
        changes,
        lambda: struct(
            "rc_changes",
            blocks=flags(changes.changed),
            dead=ints(changes.dead),
            lenders=ints(changes.lenders),
            tail_sessions=ints(changes.tail_sessions),
            any=changes.any,
        ),
    )


def _question(postings: Postings, table: Table, weights: Weights) -> tuple[Any, Any, Any]:
    """Return the arguments that most kernels begin with."""
    return _postings(postings), table_of(table), _weights(weights)


def _postings(postings: Postings) -> Any:
    return kept(
        postings,
        lambda: struct(
            "rc_postings",
            base=ints(postings.base),
            tail=ints(postings.tail),
            spans=ints(postings.spans),
            lengths=passed("shorts", postings.lengths),
            until=ffi.NULL if postings.ending is None else ffi.from_buffer("int64_t[]", postings.ending.cell),
        ),
    )


def _weights(weights: Weights) -> Any:
    return kept(
        weights,
        lambda: struct(
            "rc_weights",
            terms=ints(weights.terms),
            sessions=ints(weights.sessions),
            title_of=ints(weights.title_of),
            pairs=ints(weights.pairs),
            like=flags(weights.like),
            whole=weights.whole,
            live_sessions=weights.live[0],
            live_tokens=weights.live[1],
        ),
    )


def _about(about: About) -> Any:
    return struct("rc_about", speaker=about.speaker, favour=about.favour, kinds=sum(about.kinds))


def table_of(table: Table) -> Any:
    """Return a table as the kernels take it."""
    return kept(
        table,
        lambda: struct(
            "rc_table",
            count=table.count,
            some_dead=table.live_count != table.count,
            has_turns=table.has_turns,
            alive=flags(table.alive),
            asks=flags(table.asks),
            length=numbers(table.length),
            before=numbers(table.before),
            after=numbers(table.after),
            session=numbers(table.session),
            weight=numbers(table.weight),
            speaker=numbers(table.speaker),
            offers=passed("bytes", table.offers),
            standing=passed("bytes", table.standing),
            session_lengths=ints(table.session_lengths),
            session_pivots=ints(table.session_pivots),
            micros=ints(table.micros),
            pivots=ints(table.pivots),
        ),
    )
