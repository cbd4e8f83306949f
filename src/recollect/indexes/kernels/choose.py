"""Which kernels serve: the only module of `indexes` that reads the environment and starts a thread.

The NumPy form is always there. The compiled one costs seconds to load, or more where nothing of it is cached, and pays
for that only once much has been scored: so it is loaded in the background when as much work was done as loading costs,
and NumPy serves until it is ready. RECOLLECT_KERNELS=numpy or =numba settles it beforehand.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from recollect.indexes.kernels.types import Kernels

_log = logging.getLogger("recollect")
#: Occurrences that NumPy walks in about the time that loading the compiled kernels takes.
_REPAID = 5_000_000
#: What a question costs NumPy beside its occurrences, counted in such.
_QUESTION = 20_000
K = TypeVar("K")


class Choice(Generic[K]):
    """Which kernels of a kind serve.

    by_numpy, by_numba  give the kernels; each is called only when these are wanted
    """

    def __init__(self, by_numpy: Callable[[], K], by_numba: Callable[[], K]) -> None:
        self._by_numpy, self._by_numba = by_numpy, by_numba
        self._lock = threading.Lock()
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
                with self._lock:
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
