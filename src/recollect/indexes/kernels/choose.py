"""Selection of kernels: the only module of `indexes` that reads the environment and starts a thread.

NumPy is always available. The compiled kernels take seconds to load, longer if they are not cached, which pays off only
if many questions are scored. They are therefore loaded in the background once NumPy has done as much work as loading
costs, and NumPy is used until they are ready. RECOLLECT_KERNELS=numpy or =numba overrides the choice.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from recollect.indexes.kernels.types import Kernels

_log = logging.getLogger("recollect")
#: The number of occurrences that NumPy walks in about the time that loading the compiled kernels takes.
_REPAID = 5_000_000
#: The fixed cost of a question in NumPy, in occurrences.
_QUESTION = 20_000
K = TypeVar("K")


class Choice(Generic[K]):
    """The selection among the kernels of one kind.

    Args:
        by_numpy: Returns the NumPy kernels; called only when they are needed.
        by_numba: Returns the compiled kernels; called only when they are needed.
    """

    def __init__(self, by_numpy: Callable[[], K], by_numba: Callable[[], K]) -> None:
        self._by_numpy, self._by_numba = by_numpy, by_numba
        self._lock = threading.Lock()
        self._done = 0
        self._loading: threading.Thread | None = None
        self._compiled: K | None = None
        self.failure = ""

    def serving(self, occurrences: int) -> K:
        """Return the kernels for a question that walks this many occurrences."""
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
                with self._lock:
                    if self._loading is None:
                        # Not a daemon thread: the compiler must not be interrupted when the process ends.
                        loading = threading.Thread(target=self._load, name="recollect-kernels")
                        try:
                            loading.start()
                        except RuntimeError as error:  # no thread can be started; try again later
                            _log.warning("the compiled kernels cannot be loaded now (%s); using NumPy", error)
                            self._done = 0
                        else:
                            self._loading = loading
        return self._by_numpy()

    def _load(self) -> None:
        try:
            self._compiled = self._by_numba()
        except Exception as error:  # noqa: BLE001 - for any error of the compiler, NumPy gives the same results
            self.failure = f"the compiled kernels cannot be loaded ({type(error).__name__}: {error}); using NumPy"
            _log.warning("%s", self.failure)


def _by_numpy() -> Kernels:
    from recollect.indexes.kernels import with_numpy as numpy_kernels

    return numpy_kernels.KERNELS


def _by_numba() -> Kernels:
    from recollect.indexes.kernels.numba import kernels as numba_kernels

    return numba_kernels.loaded()


def choice() -> Choice[Kernels]:
    """Return a new selection among the kernels for words."""
    return Choice(_by_numpy, _by_numba)


_CHOICE = choice()


serving = _CHOICE.serving
