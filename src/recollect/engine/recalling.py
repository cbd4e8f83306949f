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
from recollect.indexes.ranking import ranked
from recollect.indexes.signals import read, score
from recollect.indexes.words import Scores, WordView
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
    total = scores.total()
    where = AllOf.of(scope.filter, operation.where)
    narrowed = None if isinstance(operation.where, Everything) else moment.narrowed(line, operation.where)
    passed = int(np.count_nonzero(total))
    if narrowed is not None:
        total = total * words.table.mask(narrowed)
    chosen: list[tuple[int, Record]] = []
    for number in ranked(total, words.table):
        stored = moment.get(line, words.table.ids[number])
        if stored is None:  # the index and the moment belong together, so the tables are not what they were
            raise DamagedStoreError(
                f"namespace {line.namespace!r}", f"record {words.table.ids[number]!r} cannot be found"
            )
        record = Record.load(stored.payload)
        if where.matches(record):
            if operation.min_confidence and _confidence(int(total[number]), scores) < operation.min_confidence:
                break  # all that follow score less
            chosen.append((number, record))
            if len(chosen) == operation.k:
                break
    hits = _hits(chosen, scores)
    standing = _standing(moment, line, words, scores, where)
    plan = Plan(
        operation.question,
        operation.k,
        question.asked,
        scores.mass * 2 / 5 / ONE,
        passed,
        narrowed is not None,
        (note,) if note else (),
        None if asking is None or scope.fixed else asking.reached(moment, line),
    )
    head = moment.head(line)
    # The root tells of others too, so a scope does not see it.
    return Hits(hits, plan, head.seq, "" if scope.fixed else head.root.hash.hex(), standing)


def _standing(moment: View, line: Line, words: WordView, scores: Scores, where: Filter) -> tuple[Hit, ...]:
    """The standing instructions and preferences: those that fit the question best, then the newest."""
    table = words.table
    marked = (table.standing[: table.count] != 0) & table.alive[: table.count]
    total = scores.total()
    order = sorted(
        (int(number) for number in np.flatnonzero(marked)),
        key=lambda number: (-int(total[number]), -int(table.micros[number]), table.ids[number].encode("utf-8")),
    )
    chosen: list[tuple[int, Record]] = []
    for number in order:
        stored = moment.get(line, table.ids[number])
        if stored is not None and where.matches(record := Record.load(stored.payload)):
            chosen.append((number, record))
            if len(chosen) == STANDING:
                break
    return _hits(chosen, scores)


def _seen_by(moment: View, line: Line, scope: Scope) -> list[str]:
    """The ids of the records that a scope may see."""
    return [record.id for record in moment.select(line, scope.filter, order="id", now=-(2**63))]


def _hits(chosen: Sequence[tuple[int, Record]], scores: Scores) -> tuple[Hit, ...]:
    """Documents and their records as hits, explained."""
    out = []
    for (number, record), matches in zip(chosen, scores.matches([number for number, _ in chosen]), strict=True):
        shares = {name: int(column[number]) for name, column in scores.shares.items()}
        whole = sum(shares.values())
        words = tuple(
            Word(match.word, match.like, match.share / _WHOLE, match.own / _WHOLE, match.lent_by) for match in matches
        )
        why = Why({name: share / _WHOLE for name, share in shares.items() if share}, words)
        out.append(Hit(record=record, score=whole / _WHOLE, confidence=_confidence(whole, scores), why=why))
    return tuple(out)


def _confidence(score: int, scores: Scores) -> float:
    return logistic(score, scores.mass * 2 // 5, *_CONFIDENCE)
