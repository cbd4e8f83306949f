"""What scoring does with postings: the same functions twice, in NumPy and compiled, which give the same bits.

The NumPy form is always there. The compiled one costs seconds to load, or more where nothing of it is cached, and pays
for that only once much has been scored: so it is loaded in the background when as much work was done as loading costs,
and NumPy serves until it is ready. RECOLLECT_KERNELS=numpy or =numba settles it beforehand.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import Flags, Ints, Numbers
from recollect.indexes.documents.table import Table

_log = logging.getLogger("recollect")
#: Occurrences that NumPy walks in about the time that loading the compiled kernels takes.
_REPAID = 5_000_000
#: What a question costs NumPy beside its occurrences, counted in such.
_QUESTION = 20_000

#: The signals: the rows of `Reached.shares`, and those that stand beside them.
RAW = ("words", "trigram", "context", "session", "pair")
SHARES = (*RAW, "date", "dense")


class Postings(NamedTuple):
    """Where the terms of a question occur: `number << 16 | position`, rising within each term.

    base, tail  columns of occurrences
    spans       a row for each term: where it begins and ends in `base`, and in `tail`
    base_lengths, tail_lengths  beside each occurrence, the length of its document and whether the term occurs once more
        in it (`segments.lengths_of`)
    """

    base: Ints
    tail: Ints
    spans: Ints
    base_lengths: NDArray[np.uint16]
    tail_lengths: NDArray[np.uint16]


class Weights(NamedTuple):
    """What the terms of a question weigh, with 16 bits of fraction.

    terms     of each term, in documents
    sessions  of each term, in sessions
    like      whether the term stands in for an unknown word
    whole     of the question: what the shares are parts of
    pairs     a row for each pair of terms that may stand near each other: the terms, and the share
    live      sessions that have tokens, and how many tokens those have
    """

    terms: Ints
    sessions: Ints
    like: Flags
    whole: int
    pairs: Ints
    live: tuple[int, int]


class Reached(NamedTuple):
    """Documents that a question reaches, in no particular order, and their shares before any factor.

    shares  a row for each signal of `RAW`, a column for each document
    passed  how many are reached of those that count, where only the best of them are here too
    """

    numbers: Ints
    shares: Ints
    passed: int

    def within(self, among: Flags) -> Reached:
        """Those that are among some documents, where all that are reached are here."""
        places = np.flatnonzero(among[self.numbers])
        return Reached(self.numbers[places], self.shares.take(places, axis=1), len(places))


class About(NamedTuple):
    """What a question is about beside its words: a speaker (NONE for nobody), and kinds of answers (a bit each)."""

    speaker: int
    kinds: tuple[int, ...]


class Matched(NamedTuple):
    """What each term of a question gives to some documents: a row for each document, a column for each term.

    reached  whether the term has a share in the document, before any factor
    shares   the shares, times each document's factor
    own      the parts of them that the documents' own texts have
    lent     whether the rest is lent by the turns around
    around   the turns around each document, a column for each step, nearest before first; NONE where there is none
    lends    whether the turn around has the term itself: document, term, step
    """

    reached: Flags
    shares: Ints
    own: Ints
    lent: Flags
    around: Ints
    lends: Flags


class Kernels(Protocol):
    """The functions that walk postings."""

    name: str

    def tally(self, postings: Postings, table: Table) -> Ints:
        """A row for each term: how many live documents have it, how often, and in how many sessions."""
        ...

    def reach(self, postings: Postings, table: Table, weights: Weights, forced: Numbers) -> Reached:
        """The documents that have a share of a term, and those of `forced` (distinct), each once."""
        ...

    def reach_best(
        self, postings: Postings, table: Table, weights: Weights, about: About, wanted: int, among: Flags | None = None
    ) -> Reached:
        """Of what `reach` gives, where nothing is forced, at least the best `wanted` and all that tie with the last,
        by what `weigh` gives them without dates; and all that stand (`Table.standing`).

        among  the documents that count, with the shares that they have among all; None for all
        """
        ...

    def weigh(self, reached: Reached, dates: Ints, table: Table, about: About) -> Ints:
        """The totals: all shares, those of `dates` too (where there are any), times each document's factor."""
        ...

    def matched(self, postings: Postings, table: Table, weights: Weights, numbers: Ints, factors: Ints) -> Matched:
        """What the terms give to these documents, whose factors (16 bits of fraction) are given."""
        ...

    def best(self, totals: Ints, numbers: Ints, table: Table, wanted: int) -> Ints:
        """The places of the best `wanted` by total above 0, then by time, and of all that tie with the last."""
        ...

    def best_of(self, reached: Reached, dates: Ints, table: Table, about: About, wanted: int) -> tuple[Ints, Ints]:
        """`best` of what `weigh` would give, and their totals: documents that cannot be among them are not weighed."""
        ...


K = TypeVar("K")


class Choice(Generic[K]):
    """Which kernels of a kind serve.

    by_numpy, by_numba  give the kernels; each is called only when these are wanted
    """

    def __init__(self, by_numpy: Callable[[], K], by_numba: Callable[[], K]) -> None:
        self._by_numpy, self._by_numba = by_numpy, by_numba
        self._turn = threading.Lock()
        self._done = 0
        self._loading: threading.Thread | None = None
        self._compiled: K | None = None
        self.failure = ""

    def serving(self, occurrences: int) -> K:
        """The kernels for a question that walks so many occurrences."""
        if self._compiled is not None:
            return self._compiled
        wanted = os.environ.get("RECOLLECT_KERNELS", "auto")
        if wanted == "numba" and not self.failure:
            self._load()
            if self._compiled is not None:
                return self._compiled
        elif wanted != "numpy":
            self._done += occurrences + _QUESTION
            if self._done > _REPAID and self._loading is None:
                with self._turn:
                    if self._loading is None:
                        # No daemon: a compiler must not be cut off when the process ends.
                        loading = threading.Thread(target=self._load, name="recollect-kernels")
                        try:
                            loading.start()
                        except RuntimeError as error:  # no thread to be had; another time
                            _log.warning("the compiled kernels cannot be loaded now (%s); NumPy serves", error)
                            self._done = 0
                        else:
                            self._loading = loading
        return self._by_numpy()

    def _load(self) -> None:
        try:
            self._compiled = self._by_numba()
        except Exception as error:  # noqa: BLE001 - whatever a compiler may say, NumPy gives the same
            self.failure = f"the compiled kernels cannot be loaded ({type(error).__name__}: {error}); NumPy serves"
            _log.warning("%s", self.failure)


def _by_numpy() -> Kernels:
    from recollect.indexes.kernels import with_numpy as numpy_kernels

    return numpy_kernels.KERNELS


def _by_numba() -> Kernels:
    from recollect.indexes.kernels.numba import kernels as numba_kernels

    return numba_kernels.loaded()


def choice() -> Choice[Kernels]:
    """A new choice among the kernels for words."""
    return Choice(_by_numpy, _by_numba)


_CHOICE = choice()
serving = _CHOICE.serving
