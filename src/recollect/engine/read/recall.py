"""The read path of recall: plan, score, order, explain.

A recall is a pure function of the records that are live at a moment, the question and the time. Each signal gives
every document an integer share; the score is their sum. A filter decides which hits are given, never what they score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np

from recollect.engine.index.vectors import QuestionVector
from recollect.engine.read.filter_bounds import UNBOUNDED, bounds, of_scope
from recollect.engine.read.record_loader import Records
from recollect.engine.results import Hit, Hits, Plan, Why, Word
from recollect.engine.scope import Scope
from recollect.filters.tree import AllOf, Everything, Filter
from recollect.indexes.documents.columns import Flags, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import ONE, SHARE_BITS, logistic, logistic_of
from recollect.indexes.kernels.types import SHARES
from recollect.indexes.scoring.ranking import ranked
from recollect.indexes.scoring.scores import Scores
from recollect.indexes.scoring.signals import read, score
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch
from recollect.operations import Recall
from recollect.records.record import Record
from recollect.records.unchecked import unchecked, unchecked_tuple
from recollect.stores.base import View

_WHOLE = 1 << SHARE_BITS
#: At most so many standing instructions and preferences come with an answer.
STANDING = 10
#: Confidence is 1 / (1 + exp(4.42 - 2.50 f)), where f is the score times the root of what the question weighs: the
#: chance that the hit belongs to a question that this memory can answer, fitted on questions put to right and wrong
#: memories.
_CONFIDENCE = ("4.42", "2.50")
#: Twenty hits with their words are some hundred objects: made without a call of ours for each.
_hit, _why = unchecked(Hit), unchecked(Why)
_word = unchecked_tuple(Word)


def recall(
    operation: Recall,
    view: View,
    branch: Branch,
    words: WordView,
    scope: Scope,
    now: int,
    language: str | None,
    cursor: Callable[[int], str],
    question_vector: QuestionVector | None = None,
) -> Hits:
    """The hits of a question at a moment.

    words      the index at that moment
    now        in microseconds of 1970: records that are due are not there
    language   of the memory, where it has one
    cursor     what a scope is given for a seq
    asking     the question's vector, where there is an embedder

    Cost: in proportion to the postings of the question's words, and to the hits that the filter turns away.
    """
    words = words.at(now)
    if scope.fixed:
        # As if there were nothing else: neither a word, nor a length, nor a name of others has a part in it.
        table = words.table
        words = words.narrowed(scope, lambda: of_scope(scope, table))
    assert operation.reference is not None, "the engine sets it"
    question = read(operation.question, words, operation.reference.date(), operation.language or language)
    dense, note = (None, "") if question_vector is None else question_vector.score(branch, words.table)
    # None where everything passes, as nobody need be asked then.
    where = (
        None if not scope.fixed and isinstance(operation.where, Everything) else AllOf.of(scope.filter, operation.where)
    )
    # (The scope's own filter turns nobody away here.)
    filtered = not isinstance(operation.where, Everything)
    limits = bounds(operation.where, words) if filtered else UNBOUNDED
    # Where the index does not tell all of the filter, that may turn away any of the best, so all are wanted.
    best = operation.k if limits.exact or not filtered else None
    scores = score(question, words, dense, best, limits.upper)
    among = limits.upper
    records = Records(view, branch, words.table)
    chosen: list[tuple[int | None, Record]] = []
    for index, total, record in records.of(scores.numbers, scores.ranked(operation.k), operation.k):
        if where is None or where.matches(record):
            if operation.min_confidence and _confidence(total, scores) < operation.min_confidence:
                break  # all that follow score less
            chosen.append((index, record))
            if len(chosen) == operation.k:
                break
    standing = _standing(records, words.table, scores, where, among)
    # Explained together, as that costs little more than for one of them.
    explained = _hits([*chosen, *standing], scores)
    hits, governing = explained[: len(chosen)], explained[len(chosen) :]
    plan = Plan(
        operation.question,
        operation.k,
        question.asked,
        scores.mass * 2 / 5 / ONE,
        scores.reached.passed,
        None if among is None else int(np.count_nonzero(among & words.table.alive[: len(among)])),
        (note,) if note else (),
        None if question_vector is None or scope.fixed else question_vector.reached(view, branch),
        scores.query.kernels.name,
    )
    head = view.head(branch)
    if scope.fixed:  # seq and root tell of others, too
        return Hits(_shown(hits, scope), plan, 0, "", _shown(governing, scope), cursor(head.seq))
    return Hits(hits, plan, head.seq, head.root.hash.hex(), governing)


def _shown(hits: tuple[Hit, ...], scope: Scope) -> tuple[Hit, ...]:
    """Hits with the ids that a scope shows."""
    return tuple(
        _hit(
            scope.shown(hit.record),
            hit.score,
            hit.confidence,
            _why(
                hit.why.shares,
                tuple(word._replace(lent_by=tuple(map(scope.shown_id, word.lent_by))) for word in hit.why.words),
            ),
        )
        for hit in hits
    )


def _standing(
    records: Records, table: Table, scores: Scores, where: Filter | None, among: Flags | None
) -> list[tuple[int | None, Record]]:
    """The standing instructions and preferences: those that fit the question best, then the newest."""
    standing = table.governing if among is None else table.governing[among[table.governing]]
    if not len(standing):
        return []
    totals = np.ones(len(standing), dtype=np.int64)  # above 0, so that none is left out
    reached = table.standing[scores.numbers].nonzero()[0]
    index_of: dict[int, int] = {}
    if len(reached):
        indexes = standing.searchsorted(scores.numbers[reached])
        totals[indexes] += scores.totals_at(reached)
        index_of = dict(zip(indexes.tolist(), reached.tolist(), strict=True))

    def best(count: int) -> tuple[Ints, Ints]:
        indexes = scores.query.kernels.best(totals, standing, table, count)
        return indexes, totals[indexes]

    chosen: list[tuple[int | None, Record]] = []
    for index, _, record in records.of(standing, ranked(best, standing, table, STANDING), STANDING):
        if where is None or where.matches(record):
            chosen.append((index_of.get(index), record))
            if len(chosen) == STANDING:
                break
    return chosen


def _hits(chosen: Sequence[tuple[int | None, Record]], scores: Scores) -> tuple[Hit, ...]:
    """Records as hits, explained: each with its place in the scores, None where the question does not reach it."""
    found = scores.explained([index for index, _ in chosen if index is not None], _word, _WHOLE)
    confidence = logistic_of(scores.mass * 2 // 5, *_CONFIDENCE)
    nothing = confidence(0)
    out = []
    for index, record in chosen:
        if index is None:
            out.append(_hit(record, 0.0, nothing, _why({}, ())))
            continue
        total, shares, words = next(found)
        why = _why(dict(compress(zip(SHARES, shares, strict=True), shares)), tuple(words))
        out.append(_hit(record, total / _WHOLE, confidence(total), why))
    return tuple(out)


def _confidence(score: int, scores: Scores) -> float:
    return logistic(score, scores.mass * 2 // 5, *_CONFIDENCE)
