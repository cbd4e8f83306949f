"""Neighbours: a turn that has no word of the question ranks below the turn next to it that has them.

What surrounding turns lend is added up, and saturates early in a short turn, so "he only answers by letter" could come
before the turn about the garden next to it. Such a turn gets at most a part of the greatest share of words of those
that lend to it, in their manner: what is above that is taken away by the negative share "limit". Its date, its speaker
or the kind of answer that it provides may still lift it above the other one. What answers a question may come before
it: a lender that ends with a question lowers nothing by that.
"""

from __future__ import annotations

import numpy as np

from recollect.indexes.documents.columns import NONE, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import BITS, ONE
from recollect.indexes.kernels.factors import factor_of
from recollect.indexes.kernels.types import RAW
from recollect.indexes.parameters import FROM_AFTER, FROM_BEFORE, MOST_LENT
from recollect.indexes.scoring.scores import NOTHING, Scores
from recollect.text.answers import INSTRUCTION

_WORDS, _TRIGRAM, _CONTEXT, _SESSION, _PAIR, _TITLE = range(len(RAW))
_BEFORE, _AFTER = tuple(range(len(FROM_BEFORE))), tuple(range(len(FROM_AFTER)))


def limits(scores: Scores, best: int | None) -> Ints:
    """Return what is taken from each document of `scores`, 0 or less; empty if nothing is.

    Args:
        best: Only these best documents are limited, and others that the question reaches may be missing; None: all are
            there.

    Cost:
        O(documents), and eight steps for each one that has no word of its own. With `best`, the turns around it that
        may have more are explained.
    """
    reached, table = scores.reached, scores.query.view.table
    shares, numbers = reached.shares, reached.numbers
    lent = shares[_CONTEXT]
    own = shares[_WORDS] + shares[_TRIGRAM] + shares[_TITLE]
    without = (lent > 0) & (own + shares[_PAIR] == 0) & (table.standing[numbers] == 0)
    without &= (table.offers[numbers] & INSTRUCTION) == 0  # of imported text, too
    if not without.any():
        return NOTHING
    of_words = own + lent
    of_words[own == 0] = 0
    if best is None:
        at = without.nonzero()[0]
        excess = _of_all(scores, at, of_words)
    else:
        at, _ = scores.best(best)
        at = at[without[at]]
        if not len(at):
            return NOTHING
        excess = _of_best(scores, at, of_words)
    above = excess > 0
    if not above.any():
        return NOTHING
    at = at[above]
    factors = factor_of(numbers[at], table, scores.about)
    if len(scores.placed):
        factors = factors * scores.placed[at] >> BITS
    out: Ints = np.zeros(len(numbers), dtype=np.int64)
    out[at] = -(excess[above] * factors >> BITS)
    return out


def _of_all(scores: Scores, at: Ints, of_words: Ints) -> Ints:
    """Return by how much the shares at some indexes are too great, among all documents that the question reaches."""
    numbers, table = scores.numbers, scores.query.view.table
    order = numbers.argsort()
    ascending, session = numbers[order], scores.reached.shares[_SESSION, at]
    most: Ints = np.zeros(len(at), dtype=np.int64)
    for links, steps in ((table.before, _BEFORE), (table.after, _AFTER)):
        turn = numbers[at]
        for _ in steps:
            turn = np.where(turn == NONE, NONE, links[turn]).astype(np.int64)
            turn[turn >= table.count] = NONE
            index = order[np.minimum(ascending.searchsorted(turn), len(order) - 1)]
            lends = (numbers[index] == turn) & (of_words[index] > 0)
            np.maximum(most, _allowed(of_words[index], session, turn, table), out=most, where=lends)
    return _excess(scores, at, most)


def _of_best(scores: Scores, at: Ints, of_words: Ints) -> Ints:
    """Return the same if only the best documents are there. Mostly, the turn that lends most is one of them."""
    numbers, table = scores.numbers.tolist(), scores.query.view.table
    known = dict(zip(numbers, of_words.tolist(), strict=True))
    links, count = ((table.before, _BEFORE), (table.after, _AFTER)), table.count
    of: list[int] = []  # for each turn around a document: the document, by its place in `at`, and the turn
    turns: list[int] = []
    for place, index in enumerate(at.tolist()):
        for column, steps in links:
            turn = numbers[index]
            for _ in steps:
                turn = int(column[turn])
                if turn == NONE or turn >= count:
                    break
                of.append(place)
                turns.append(turn)
    most = _most_of(scores, at, of, turns, [known.get(turn, 0) for turn in turns])
    excess = _excess(scores, at, most)
    # More turns can only allow more. Without any, those that lend are not among the best.
    doubtful = set(((excess > 0) | (most == 0)).nonzero()[0].tolist())
    others = sorted({turn for place, turn in zip(of, turns, strict=True) if place in doubtful and turn not in known})
    if not others:
        return excess
    known |= zip(others, _explained(scores, others), strict=True)
    return _excess(scores, at, _most_of(scores, at, of, turns, [known.get(turn, 0) for turn in turns]))


def _most_of(scores: Scores, at: Ints, of: list[int], turns: list[int], words: list[int]) -> Ints:
    """Return what the documents at some indexes may have at most, by the words of the turns around them; 0 by none."""
    table = scores.query.view.table
    place, of_words = np.array(of, dtype=np.int64), np.array(words, dtype=np.int64)
    session = scores.reached.shares[_SESSION, at][place]
    allowed = _allowed(of_words, session, np.array(turns, dtype=np.int64), table)
    most: Ints = np.zeros(len(at), dtype=np.int64)
    np.maximum.at(most, place, np.where(of_words > 0, allowed, 0))
    return most


def _allowed(of_words: Ints, session: Ints, turns: Ints, table: Table) -> Ints:
    """Return what turns allow others around them to have, in their manner: that of a question lowers nothing."""
    weights = table.weight[turns].astype(np.int64)
    weights[table.asks[turns] & (weights < ONE)] = ONE
    of, out_of = MOST_LENT
    out: Ints = (of_words * of // out_of + session) * weights >> BITS
    return out


def _excess(scores: Scores, at: Ints, most: Ints) -> Ints:
    """Return by how much the shares at some indexes are above what they may be, before any factor."""
    shares = scores.reached.shares
    allowed = (most << BITS) // scores.query.view.table.weight[scores.numbers[at]]
    out: Ints = np.minimum(shares[_CONTEXT, at] + shares[_SESSION, at] - allowed, shares[_CONTEXT, at])
    return np.where(most > 0, out, 0)


def _explained(scores: Scores, numbers: list[int]) -> list[int]:
    """Return the shares of words, with what others lend, of documents that have one in their own texts; else 0."""
    query = scores.query
    of = np.array(numbers, dtype=np.int64)
    found = query.kernels.matched(query.postings, query.view.table, query.weights, of)
    total, has_own = (found.shares + found.titles).sum(axis=1), (found.own | found.titles).any(axis=1)
    shares: list[int] = (total * has_own).tolist()
    return shares
