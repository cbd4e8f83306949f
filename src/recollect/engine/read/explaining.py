"""The explanations of an answer: computed together, when the first one is read.

Most programs use the records of an answer and never read why they were found, which takes a fifth of a recall to say.
So a hit refers to the `Explanations` of its answer, and asks for its own when `Hit.why` is read.

Until then an answer keeps the view of the index from which it was computed. If a program collects answers, only the
latest few do so: older ones that are still in use are explained.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import compress
from typing import NamedTuple
from weakref import ref

from recollect.engine.read.record_loader import LateRecord
from recollect.engine.results import Why, Word
from recollect.indexes.fixed_point import SHARE_BITS
from recollect.indexes.kernels.types import SHARES
from recollect.indexes.scoring.scores import Scores
from recollect.records.frozen import unchecked, unchecked_tuple
from recollect.records.record import Record

#: The latest answers of a process that may be without explanations.
MOST_UNREAD = 32
_WHOLE = 1 << SHARE_BITS
#: Fast constructors: the words of twenty hits are several hundred objects.
_why, _word = unchecked(Why), unchecked_tuple(Word)


class Explained(NamedTuple):
    """A hit that is to be explained.

    Attributes:
        at: The index of the document in the scores.
        record: The record.
        cosine: Its similarity in meaning, if it has one (`Why.cosine`).
    """

    at: int
    record: Record | LateRecord
    cosine: float | None


class Explanations:
    """The explanations of the hits of an answer, by their places. `begin` says what these are."""

    __slots__ = ("__weakref__", "_hits", "_scores", "_shown", "_whys")

    def __init__(self) -> None:
        self._scores: Scores | None = None
        self._hits: Sequence[Explained] = ()
        self._shown: Callable[[str], str] | None = None
        self._whys: list[Why] = []

    def begin(self, scores: Scores, hits: Sequence[Explained], shown: Callable[[str], str] | None) -> None:
        """Wait for one of the explanations to be read. Called once, before that.

        Args:
            scores: The scores that the hits are from. Only those of the hits are kept.
            hits: These hits, in the order of the answer.
            shown: Returns the id that the scope of the caller shows for a stored one; None if it shows all as they are.
        """
        if not hits:
            return
        self._scores, self._hits, self._shown = scores.picked([each.at for each in hits]), hits, shown
        _latest.append(ref(self))
        while len(_latest) > MOST_UNREAD:
            oldest = _oldest()
            if oldest is not None:
                with suppress(Exception):  # it is raised to who reads that answer
                    oldest.compute()

    def at(self, place: int) -> Why:
        """Return the explanation of the hit at a place."""
        self.compute()
        return self._whys[place]

    def compute(self) -> None:
        """Compute all explanations, and drop the scores and the index. Threads may do so at once: all get the same.

        Cost:
            O(hits x terms x log occurrences).
        """
        hits, scores = self._hits, self._scores  # in this order: another thread may drop both now
        if scores is None:
            return
        if scores.query.postings.ending is not None:  # the time for the recall, which is over
            scores = replace(scores, query=replace(scores.query, postings=scores.query.postings._replace(ending=None)))
        found = zip(hits, scores.explained(range(len(hits)), _word, _WHOLE), strict=True)
        self._whys = [self._made(hit, shares, words) for hit, (_, shares, words) in found]
        self._scores = None
        self._hits = ()

    def _made(self, hit: Explained, shares: list[float], words: list[Word]) -> Why:
        shown = self._shown
        replaces = hit.record.supersedes
        if shown is not None:
            replaces = tuple(map(shown, replaces))
            words = [word._replace(lent_by=tuple(map(shown, word.lent_by))) for word in words]
        stated = dict(compress(zip(SHARES, shares, strict=True), shares))
        why: Why = _why(stated, tuple(words), replaces, hit.cosine)
        return why


#: The latest answers, in order.
_latest: deque[ref[Explanations]] = deque()


def _oldest() -> Explanations | None:
    try:
        return _latest.popleft()()
    except IndexError:  # other threads took the others
        return None
