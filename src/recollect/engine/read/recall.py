"""Recall: analyses a question, scores all documents, and returns the best records with explanations.

A recall is a pure function of the live records of a view, the question and the time. Each signal gives every document
an integer share, and the score is the sum of the shares. A filter decides which hits are returned, never their scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from recollect.common.deadlines import current
from recollect.engine.index.vectors import NO_VECTORS, QuestionVector
from recollect.engine.read.concise import concise
from recollect.engine.read.explaining import Explained, Explanations
from recollect.engine.read.filter_bounds import UNBOUNDED, bounds, of_scope, searched
from recollect.engine.read.record_loader import LateRecord, Records
from recollect.engine.read.replaced import NONE_REPLACED, Replacements, replaced
from recollect.engine.read.validity import by_validity, lapsed_at, time_in_question
from recollect.engine.results import Hit, Hits, LeftOut, Plan, Why, hit_without_why
from recollect.engine.scope import Scope
from recollect.filters.tree import AllOf, Everything, Filter
from recollect.indexes.documents.columns import Flags, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import BITS, ONE, SHARE_BITS, log_ratio, logistic_of
from recollect.indexes.parameters import STANDING
from recollect.indexes.scoring.dense import COSINE_BITS, Dense
from recollect.indexes.scoring.priors import Prior, with_prior
from recollect.indexes.scoring.ranking import ranked
from recollect.indexes.scoring.rivals import BEST_RIVALS, Contest, has_rivals, may_have_rivals, prevailing
from recollect.indexes.scoring.scores import NOTHING, Scores
from recollect.indexes.scoring.signals import Question, read, score
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch
from recollect.operations import AUTO_CONFIDENCE, Recall
from recollect.records.codec import datetime_of, microseconds
from recollect.records.frozen import unchecked
from recollect.records.record import Record, aware
from recollect.stores.base import ReadView
from recollect.text.change import Holds
from recollect.text.dates import NO_DATES, described

_WHOLE = 1 << SHARE_BITS
#: The name under which a table keeps the first of its documents with standing tags.
_STANDING_FIRST = "standing first"
#: Up to this many documents with standing tags that a question reaches are ordered one by one.
_FEW_STANDING = 32
#: If at most this many records are not valid, the best are searched for without computing all scores.
_FEW_LAPSED = 1000
#: How many of the best documents are computed to find rivals: at first, and if too many of these can be none.
_WITH_RIVALS = BEST_RIVALS * 3 // 2, BEST_RIVALS * 5
#: Confidence is 1 / (1 + exp(2.22 + 0.49 ln n - 2.34 f)), where n is the number of records and f the score times the
#: square root of the question's weight: the probability that the hit belongs to a question that this memory can answer,
#: fitted on questions that were put to right and wrong memories of 5 to 700 records (scripts/fit_confidence.py).
#: In hundredths: what is subtracted from the logit for any memory, and for each factor of e in its records.
_DOUBT, _DOUBT_BY_RECORDS = 222, 49
_SLOPE = "2.34"
#: The same with vectors, where f is the score without the share of meaning, and what the greatest cosine of any record
#: would add to a score counts besides: it says more about whether the memory has an answer.
_DOUBT_BESIDE_VECTORS, _DOUBT_BY_RECORDS_BESIDE_VECTORS, _OF_CLOSEST = 256, 66, 3942
_SLOPE_BESIDE_VECTORS = "1.48"
_hit, _why = unchecked(Hit), unchecked(Why)
#: A record with its score, and its index in the scores; None if it has no score.
Scored = tuple[int | None, int, Record | LateRecord]


def recall(
    operation: Recall,
    view: ReadView,
    branch: Branch,
    words: WordView,
    scope: Scope,
    now: int,
    language: str | None,
    cursor: Callable[..., str],
    question_vector: QuestionVector | None = None,
) -> Hits:
    """Return the hits of a question at a view.

    Args:
        operation: The operation. Its reference time is in the time zone in which the question names days.
        view: The view of the store.
        branch: The branch to search.
        words: The index at that view.
        scope: The scope of the caller.
        now: Records that expire at or before this time (microseconds since 1970) are ignored.
        language: The language of the memory, if it has one.
        cursor: Returns the cursor of a seq within the scope, with a salt.
        question_vector: The vector of the question; None without an embedder.

    Cost:
        In proportion to the postings of the question's words, and to the number of hits that the filter rejects.
    """
    words = searched(words.at(now))
    deadline = current()
    if deadline is not None:
        words = words.until(deadline)
    if scope.fixed:
        # Statistics too must not depend on records outside the scope: words, lengths and names.
        table = words.table
        words = words.narrowed(scope, lambda: of_scope(scope, table))
    assert operation.reference is not None, "the engine sets it"
    question = read(operation.question, words, operation.reference, operation.language or language)
    dense, note = (None, "") if question_vector is None else question_vector.score(branch, words.table)
    if dense is not None and dense.greatest is None:  # vectors outside of the scope must make no difference
        dense, note = None, NO_VECTORS
    # None if every record passes, so that no record need be checked.
    where = (
        None if not scope.fixed and isinstance(operation.where, Everything) else AllOf.of(scope.filter, operation.where)
    )
    # The scope's own filter rejects nothing here, since `words` is narrowed to the scope.
    filtered = not isinstance(operation.where, Everything)
    limits = bounds(operation.where, words) if filtered else UNBOUNDED
    # Unless the bounds are exact, the filter may reject any of the best documents, so all are ranked.
    best = operation.k if limits.exact or not filtered else None
    prior = _prior(operation)
    # Nor do the best have the greatest confidence if priors or meaning are a part of their scores.
    best = best if prior is None and (dense is None or not operation.min_confidence) else None
    span = time_in_question(question.dates, operation.reference)
    links = NONE_REPLACED if span is None else replaced(view, branch, words)
    lapsed = NOTHING if span is None else lapsed_at(span, words.table, links)
    contest = _contest(question, words, span)
    scores, of_standing = _scores(question, words, links, dense, best, limits.upper, lapsed, contest)
    if prior is not None:
        same, scores = of_standing is scores, with_prior(scores, prior, words.table)
        of_standing = scores if same else with_prior(of_standing, prior, words.table)
    among, least = limits.upper, operation.min_confidence
    if least == "auto":
        least = AUTO_CONFIDENCE
    records, certain = Records(view, branch, words.table), _certain(scores, dense)

    def is_certain(total: int, index: int) -> bool | None:
        """Return whether a hit has the least confidence; None if neither it nor the following ones do."""
        if not least or certain(total - scores.beside([index])[0]) >= least:
            return True
        return None if prior is None and (dense is None or certain(total) < least) else False

    chosen: list[Scored] = []
    order = scores.ranked(operation.k)
    if where is None and not least:
        best_of_all = list(islice(order, operation.k))
        late = records.late(scores.numbers[[index for index, _ in best_of_all]].tolist())
        chosen = [(index, total, record) for (index, total), record in zip(best_of_all, late, strict=True)]
    else:
        for index, total, record in records.of(scores.numbers, order, operation.k):
            if where is None or where.matches(record):
                if not (enough := is_certain(total, index)):
                    if enough is None:
                        break
                    continue
                chosen.append((index, total, record))
                if len(chosen) == operation.k:
                    break
    words.check()
    standing = _standing(records, words.table, of_standing, where, among, lapsed)
    if of_standing is scores:  # explaining all together costs little more than explaining one
        found = _hits([*chosen, *standing], scores, dense, certain, scope)
        hits, governing = found[: len(chosen)], found[len(chosen) :]
    else:
        hits = _hits(chosen, scores, dense, certain, scope)
        governing = _hits(standing, of_standing, dense, certain, scope)
    plan = Plan(
        operation.question,
        operation.k,
        question.asked,
        scores.mass * 2 / 5 / ONE,
        of_standing.reached.passed,
        None if among is None else int(np.count_nonzero(among & words.table.alive[: len(among)])),
        (note,) if note else (),
        None if question_vector is None or dense is None or scope.fixed else question_vector.reached(view, branch),
        None if dense is None or dense.greatest is None else dense.greatest / (1 << COSINE_BITS),
        None if dense is None or dense.greatest is None else dense.floor / (1 << COSINE_BITS),
        "" if question_vector is None or dense is None or scope.fixed else question_vector.as_text(),
        scores.query.kernels.name,
        "" if question.dates == NO_DATES else described(question.dates),
    )
    left_out: tuple[LeftOut, ...] = ()
    if operation.concise:
        hits, left_out = concise(hits)
    head = view.head(branch)
    reference = aware("reference", operation.reference)
    if scope.fixed:  # seq and root would reveal changes outside the scope
        return Hits(hits, plan, 0, "", governing, cursor(head.seq, salt=now), reference, None, left_out)
    root, time = head.root.hash.hex(), datetime_of(now)
    return Hits(hits, plan, head.seq, root, governing, "", reference, time, left_out)


def _scores(
    question: Question,
    view: WordView,
    links: Replacements,
    dense: Dense | None,
    best: int | None,
    among: Flags | None,
    lapsed: Ints,
    contest: Contest | None,
) -> tuple[Scores, Scores]:
    """Return the scores of a question with the validity of the records and their rivals, and without both.

    The latter are those of standing records. What these replace must not matter to them: it can be among the documents
    whose scores are not computed.
    """
    if contest is None and not len(lapsed):
        scores = score(question, view, dense, best, among)
        return scores, scores
    if contest is not None and contest.holds is not Holds.NOW:
        lapsed = NOTHING
    if best is not None and (found := _of_best(question, view, dense, best, among, lapsed, contest)) is not None:
        return found

    def scored(admitted: Ints | None) -> Scores:
        return score(question, view, dense, admitted=admitted)

    scores = valid = scored(None)
    if len(lapsed):
        valid = by_validity(scores, scored, lapsed, links)
    if contest is not None and len(prevails := prevailing(valid, contest, lapsed)):
        valid = replace(valid, prevails=prevails)
    return (valid, scores) if among is None else (valid.within(among), scores.within(among))


def _of_best(
    question: Question,
    view: WordView,
    dense: Dense | None,
    best: int,
    among: Flags | None,
    lapsed: Ints,
    contest: Contest | None,
) -> tuple[Scores, Scores] | None:
    """Return what `_scores` does from the scores of the best documents alone; None if they do not decide it.

    Whatever is lost by those that are not valid, the best of the others are among these; and if none of them is among
    these, none is so good that what replaces it would be. The same holds for rivals.
    """
    if len(lapsed) > _FEW_LAPSED or (among is not None and len(lapsed)):
        return None
    wanted = (best if among is None else 0) + len(lapsed)
    for at_first in (0,) if contest is None else _WITH_RIVALS:
        scores = score(question, view, dense, wanted, at_first=at_first)
        if np.isin(scores.numbers, lapsed).any():
            return None
        if contest is None:
            return scores, scores
        if not has_rivals(scores, max(wanted, at_first)):
            continue
        prevails = prevailing(scores, contest, NOTHING)
        if among is None:
            return replace(scores, prevails=prevails), scores
        if len(prevails):
            return None
        scores = score(question, view, dense, best, among)
        return scores, scores
    return None


def _contest(question: Question, view: WordView, span: tuple[int, int] | None) -> Contest | None:
    """Return which of several rivals a question asks for; None if it does not say so, and can have none."""
    if question.request.order or question.request.summary:
        return None
    if question.holds is not None:
        return Contest(question.holds, beside=question.beside)
    if question.dates.spans or question.dates.years:
        return None if span is None else Contest(Holds.NOW, span[1])
    if question.present and may_have_rivals(question.asked, view):
        return Contest(Holds.NOW, implied=True)
    return None


def _standing(
    records: Records, table: Table, scores: Scores, where: Filter | None, among: Flags | None, lapsed: Ints
) -> list[Scored]:
    """Return the standing instructions and preferences that are valid: the most relevant first, then the newest."""
    if where is None and among is None and not len(lapsed):
        few = _few_standing(table, scores)
        if few is not None:
            found = records.several([number for number, _, _ in few], standing=True)
            return [(index, total, record) for (_, index, total), record in zip(few, found, strict=True)]
    standing = table.governing if among is None else table.governing[among[table.governing]]
    if len(lapsed):
        standing = np.setdiff1d(standing, lapsed)
    if not len(standing):
        return []
    totals = np.ones(len(standing), dtype=np.int64)  # above 0, so that records without a score are included
    reached = table.standing[scores.numbers].nonzero()[0]
    if len(lapsed):
        reached = reached[~np.isin(scores.numbers[reached], lapsed)]
    index_of: dict[int, int] = {}
    if len(reached):
        indexes = standing.searchsorted(scores.numbers[reached])
        totals[indexes] += scores.totals_at(reached)
        index_of = dict(zip(indexes.tolist(), reached.tolist(), strict=True))

    def best(count: int) -> tuple[Ints, Ints]:
        indexes = scores.query.kernels.best(totals, standing, table, count)
        return indexes, totals[indexes]

    chosen: list[Scored] = []
    order = ranked(best, standing, table, STANDING)
    for index, total, record in records.of(standing, order, STANDING, standing=True):
        if where is None or where.matches(record):
            chosen.append((index_of.get(index), total - 1, record))
            if len(chosen) == STANDING:
                break
    return chosen


def _few_standing(table: Table, scores: Scores) -> list[tuple[int, int | None, int]] | None:
    """Return what `_standing` does without a filter: the documents, with their indexes in the scores and their scores.

    Those that the question does not reach come last, and which of these are first depends on the table alone. None if
    the question reaches many, or one without a score.
    """
    first: list[int] | None = table.derived.get(_STANDING_FIRST)
    if first is None:
        first = table.derived[_STANDING_FIRST] = _first_standing(table, scores)
    if not first:
        return []
    at = table.standing[scores.numbers].nonzero()[0]
    if len(at) > _FEW_STANDING:
        return None
    numbers, totals = scores.numbers[at].tolist(), scores.totals_at(at).tolist() if len(at) else []
    if min(totals, default=1) <= 0:
        return None
    ids, micros = table.rows.ids(numbers), table.micros[numbers].tolist()
    ranks = [(-total, ~time, ids[number].encode()) for number, time, total in zip(numbers, micros, totals, strict=True)]
    reached = sorted(zip(ranks, numbers, at.tolist(), totals, strict=True))
    out: list[tuple[int, int | None, int]] = [(number, index, total) for _, number, index, total in reached]
    out += [(number, None, 0) for number in first if number not in ids]
    return out[:STANDING]


def _first_standing(table: Table, scores: Scores) -> list[int]:
    """Return the first of the documents with standing tags, if a question reaches none."""
    numbers = table.governing
    ones = np.ones(len(numbers), dtype=np.int64)

    def best(count: int) -> tuple[Ints, Ints]:
        indexes = scores.query.kernels.best(ones, numbers, table, count)
        return indexes, ones[indexes]

    order = ranked(best, numbers, table, STANDING)
    return [int(numbers[index]) for index, _ in islice(order, STANDING)]


def _hits(
    chosen: Sequence[Scored], scores: Scores, dense: Dense | None, certain: Callable[[int], float], scope: Scope
) -> tuple[Hit, ...]:
    """Return records as hits, which are explained when that is read."""
    indexes = [index for index, _, _ in chosen if index is not None]
    # What is known of a record before the question says nothing about an answer, and its meaning counts by the closest.
    beside = iter(scores.beside(indexes))
    nothing = certain(0)
    shown = scope.shown_id if scope.fixed else None
    explained: list[Explained] = []
    explanations = Explanations()
    out = []
    for index, total, record in chosen:
        own = record if shown is None or isinstance(record, LateRecord) else scope.shown(record)
        if index is None:
            assert isinstance(own, Record)
            assert isinstance(record, Record)
            replaces = record.supersedes if shown is None else tuple(map(shown, record.supersedes))
            out.append(_hit(own, 0.0, nothing, _why({}, (), replaces, None)))
            continue
        cosine = None if dense is None else dense.cosine_of(int(scores.numbers[index]))
        out.append(hit_without_why(own, total / _WHOLE, certain(total - next(beside)), explanations, len(explained)))
        explained.append(Explained(index, record, cosine))
    explanations.begin(scores, explained, shown)
    return tuple(out)


def _certain(scores: Scores, dense: Dense | None) -> Callable[[int], float]:
    """Return a function from the rest of a hit's score to its confidence, by the records and the vectors of the memory.

    Its constants are quotients of integers: the same everywhere.
    """
    records = log_ratio(max(1, scores.query.view.table.live_count), 1)
    if dense is None:
        offset, slope = _DOUBT * ONE + _DOUBT_BY_RECORDS * records, _SLOPE
    else:
        offset = _DOUBT_BESIDE_VECTORS * ONE + _DOUBT_BY_RECORDS_BESIDE_VECTORS * records
        offset -= _OF_CLOSEST * dense.closest >> SHARE_BITS - BITS
        slope = _SLOPE_BESIDE_VECTORS
    return logistic_of(scores.mass * 2 // 5, str(offset / (100 * ONE)), slope)


def _prior(operation: Recall) -> Prior | None:
    """Return what recency and importance add; None for nothing."""
    if not operation.recency and not operation.importance:
        return None
    assert operation.reference is not None
    kept = operation.importance_half_life
    return Prior(
        operation.recency,
        _micros(operation.recency_half_life),
        operation.importance,
        None if kept is None else _micros(kept),
        microseconds(operation.reference),
    )


def _micros(seconds: float) -> int:
    return max(1, round(seconds * 1_000_000))
