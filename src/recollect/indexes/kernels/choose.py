"""Selection of kernels: NumPy at first, the compiled ones once they are loaded. Reads the environment, starts a thread.

NumPy is always available. The compiled kernels take half a second to load, or many seconds to compile if numba's cache
lacks them, which pays off only if many questions are scored. They are therefore loaded in the background once NumPy has
done as much work as loading costs, and NumPy is used until they are ready. What the cache lacks is compiled by another
process (`compile_apart`). RECOLLECT_KERNELS=numpy or =numba overrides the choice; numba is then loaded, and if
necessary compiled, by the first question. numba is the extra `fast`: without it NumPy serves, and a warning says so
where the compiled kernels would have repaid.

The end of the process waits for neither. The thread is a daemon, but a process that ends while a thread is inside LLVM
can crash. So the thread loads in short steps, each under a lock that the end of the process takes and keeps.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable, Generator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from recollect.indexes.kernels import compile_apart
from recollect.indexes.kernels.types import Kernels

_log = logging.getLogger("recollect")
#: The number of occurrences that NumPy walks in about the time that loading the compiled kernels takes.
_REPAID = 5_000_000
#: The fixed cost of a question in NumPy, in occurrences.
_QUESTION = 20_000
#: Why there are no compiled kernels if numba is not installed.
WITHOUT_NUMBA = "numba is not installed: pip install 'recollect[fast]'"
K = TypeVar("K")

_ending = threading.Event()
_in_step = threading.Lock()


def _end() -> None:
    """Wait for the step in progress, and let no other begin."""
    _ending.set()
    while True:
        try:
            _in_step.acquire()
        except KeyboardInterrupt:  # a step takes a fraction of a second, and the process must not end inside it
            continue
        return


def _after_fork() -> None:
    global _in_step
    _in_step = threading.Lock()  # the thread that may have held it does not exist in the child


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Choice(Generic[K]):
    """The selection among the kernels of one kind.

    Args:
        by_numpy: Returns the NumPy kernels; called only when they are needed.
        compiled: The name of the module of the compiled kernels; imported only when they are needed. Its `loaded()`
            returns them, and its `loading()` does so step by step.
    """

    def __init__(self, by_numpy: Callable[[], K], compiled: str) -> None:
        self._by_numpy, self._module = by_numpy, compiled
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
        if wanted == "numba":
            if not self.failure:
                self._attempt(self._load)
            if self._compiled is not None:
                return self._compiled
        elif wanted != "numpy":
            self._done += occurrences + _QUESTION
            if self._done > _REPAID and self._loading is None:
                with self._lock:
                    if self._loading is None:
                        self._start()
        return self._by_numpy()

    def _start(self) -> None:
        loading = threading.Thread(
            target=self._attempt, args=(self._load_in_background,), name="recollect-kernels", daemon=True
        )
        self._loading = loading
        try:
            loading.start()
        except RuntimeError as error:  # no thread can be started; try again later
            _log.warning("the compiled kernels cannot be loaded now (%s); using NumPy", error)
            self._try_later()

    def _try_later(self) -> None:
        self._done = 0
        self._loading = None

    def _attempt(self, load: Callable[[], None]) -> None:
        try:
            load()
        except Exception as error:  # noqa: BLE001 - for any error of the compiler, NumPy gives the same results
            reason = WITHOUT_NUMBA if _is_missing(error) else f"{type(error).__name__}: {error}"
            self.failure = f"the compiled kernels cannot be loaded ({reason}); NumPy gives the same results, slower"
            _log.warning("%s", self.failure)

    def _load(self) -> None:
        self._compiled = import_module(self._module).loaded()

    def _load_in_background(self) -> None:
        if self._load_from_cache():
            return
        status = compile_apart.start(self._module).wait()
        if status == compile_apart.BUSY:
            self._try_later()
        elif status or not self._load_from_cache():
            raise RuntimeError(
                f"compiling them in another process ended with status {status}; "
                "RECOLLECT_KERNELS=numba compiles them in this one, which shows the reason"
            )

    def _load_from_cache(self) -> bool:
        """Load the kernels step by step; return False if numba's cache does not have all of them."""
        steps = _steps(self._module)
        while True:
            with _in_step:
                if _ending.is_set():
                    raise SystemExit  # ends this thread only
                try:
                    next(steps)
                except StopIteration as stop:
                    self._compiled = stop.value
                    return self._compiled is not None


def _steps(module: str) -> Generator[None, None, Any]:
    """Load the kernels of a module in steps of at most some tenths of a second, without compiling any.

    Returns:
        The kernels; None if numba's cache does not have all of them.

    Raises:
        RuntimeError: numba has no folder for its cache.
    """
    for name in ("llvmlite.binding", "numba", module):
        import_module(name)
        yield
    compiling = import_module("recollect.indexes.kernels.numba.compiling")
    if compiling.cache_folder is None:
        raise RuntimeError("numba's cache has no folder that can be written: set NUMBA_CACHE_DIR")
    loading = import_module(module).loading()
    while True:
        try:
            with compiling.cached_only():
                next(loading)
        except StopIteration as stop:
            return stop.value
        except compiling.NotCachedError:
            return None
        yield


def has_numba() -> bool:
    """Return whether numba is installed, without importing it."""
    return find_spec("numba") is not None


def _is_missing(error: Exception) -> bool:
    return isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] in ("llvmlite", "numba")


def _by_numpy() -> Kernels:
    from recollect.indexes.kernels import with_numpy as numpy_kernels

    return numpy_kernels.KERNELS


def choice() -> Choice[Kernels]:
    """Return a new selection among the kernels for words."""
    return Choice(_by_numpy, "recollect.indexes.kernels.numba.kernels")


_CHOICE = choice()


serving = _CHOICE.serving
