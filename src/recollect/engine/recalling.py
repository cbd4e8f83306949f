"""The read path of recall: plan, score, order, explain.

A recall is a pure function of the records that are live at a moment, the question and the time. Each signal gives
every document an integer share; the score is their sum. A filter decides which hits are given, never what they score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.engine.results import Hit, Hits, Plan, Why, Word
from recollect.engine.scope import Scope
from recollect.engine.vectors import Asking
from recollect.errors import DamagedStoreError
from recollect.filters.tree import AllOf, Everything, Filter
from recollect.indexes.fixed import ONE, SHARE_BITS, logistic
from recollect.indexes.kernels import SHARES
from recollect.indexes.ranking import ranked
from recollect.indexes.scores import Scores
from recollect.indexes.signals import read, score
from recollect.indexes.words import WordView
from recollect.operations import Recall
from recollect.records.record import Record
from recollect.stores.base import Line, View

_WHOLE = 1 << SHARE_BITS
#: At most so many standing instructions and preferences come with an answer.
STANDING = 10
#: Confidence is 1 / (1 + exp(4.42 - 2.50 f)), where f is the score times the root of what the question weighs: the
#: chance that the hit belongs to a question that this memory can answer, fitted on questions put to right and wrong
#: memories.
_CONFIDENCE = ("4.42", "2.50")


def recall(
    operation: Recall,
    moment: View,
    line: Line,
    words: WordView,
    scope: Scope,
    now: int,
    language: str | None,
    asking: Asking | None = None,
) -> Hits:
    """The hits of a question at a moment.

    words      the index at that moment
    now        in microseconds of 1970: records that are due are not there
    language   of the memory, where it has one
    asking     the question's vector, where there is an embedder

    Cost: in proportion to the postings of the question's words, and to the hits that the filter turns away.
    """
    words = words.at(now)
    if scope.fixed:
        # As if there were nothing else: neither a word, nor a length, nor a name of others has a part in it.
        words = words.only(_seen_by(moment, line, scope))
    assert operation.reference is not None, "the engine sets it"
    question = read(operation.question, words, operation.reference.date(), operation.language or language)
    dense, note = (None, "") if asking is None else asking.score(line, words.table)
    scores = score(question, words, dense)
    where = AllOf.of(scope.filter, operation.where)
    narrowed = None if isinstance(operation.where, Everything) else moment.narrowed(line, operation.where)
    totals = scores.totals
    if narrowed is not None:
        totals = totals * words.table.mask(narrowed)[scores.numbers]
    chosen: list[tuple[int, Record]] = []
    for place in ranked(scores.asked.kernels, scores.numbers, totals, words.table):
        record = _record(moment, line, words.table.id(int(scores.numbers[place])))
        if where.matches(record):
            if operation.min_confidence and _confidence(int(totals[place]), scores) < operation.min_confidence:
                break  # all that follow score less
            chosen.append((place, record))
            if len(chosen) == operation.k:
                break
    hits = _hits(chosen, scores)
    standing = _standing(moment, line, words, scores, where)
    plan = Plan(
        operation.question,
        operation.k,
        question.asked,
        scores.mass * 2 / 5 / ONE,
        int(np.count_nonzero(scores.totals)),
        narrowed is not None,
        (note,) if note else (),
        None if asking is None or scope.fixed else asking.reached(moment, line),
        scores.asked.kernels.name,
    )
    head = moment.head(line)
    # The root tells of others too, so a scope does not see it.
    return Hits(hits, plan, head.seq, "" if scope.fixed else head.root.hash.hex(), standing)


def _record(moment: View, line: Line, record_id: str) -> Record:
    stored = moment.get(line, record_id)
    if stored is None:  # the index and the moment belong together, so the tables are not what they were
        raise DamagedStoreError(f"namespace {line.namespace!r}", f"record {record_id!r} cannot be found")
    return Record.load(stored.payload)


def _standing(moment: View, line: Line, words: WordView, scores: Scores, where: Filter) -> tuple[Hit, ...]:
    """The standing instructions and preferences: those that fit the question best, then the newest."""
    table = words.table
    marked = table.governing
    if not marked:
        return ()
    places = np.flatnonzero(np.isin(scores.numbers, marked)).tolist()
    reached = {int(scores.numbers[place]): place for place in places}
    totals = {number: int(scores.totals[place]) for number, place in reached.items()}
    order = sorted(
        marked,
        key=lambda number: (-totals.get(number, 0), -int(table.micros[number]), table.id(number).encode("utf-8")),
    )
    chosen: list[tuple[int | None, Record]] = []
    for number in order:
        record = _record(moment, line, table.id(number))
        if where.matches(record):
            chosen.append((reached.get(number), record))
            if len(chosen) == STANDING:
                break
    return _hits(chosen, scores)


def _seen_by(moment: View, line: Line, scope: Scope) -> list[str]:
    """The ids of the records that a scope may see."""
    return [record.id for record in moment.select(line, scope.filter, order="id", now=-(2**63))]


def _hits(chosen: Sequence[tuple[int | None, Record]], scores: Scores) -> tuple[Hit, ...]:
    """Records as hits, explained: each with its place in the scores, None where the question does not reach it."""
    places = [place for place, _ in chosen if place is not None]
    found = iter(zip(scores.shares(places).tolist(), scores.matches(places), strict=True))
    out = []
    for place, record in chosen:
        shares, matches = next(found) if place is not None else ([], [])
        whole = sum(shares)
        words = tuple(
            Word(match.word, match.like, match.share / _WHOLE, match.own / _WHOLE, match.lent_by) for match in matches
        )
        why = Why({name: share / _WHOLE for name, share in zip(SHARES, shares, strict=False) if share}, words)
        out.append(Hit(record=record, score=whole / _WHOLE, confidence=_confidence(whole, scores), why=why))
    return tuple(out)


def _confidence(score: int, scores: Scores) -> float:
    return logistic(score, scores.mass * 2 // 5, *_CONFIDENCE)
