"""Observation of calls: a debug log line for each operation, and a callback from which metrics and traces are made.

What is reported never contains texts, ids, filters or other content of records and questions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from recollect.arguments.checks import is_integer
from recollect.engine.results import Hits, Report
from recollect.errors import RecollectError

_log = logging.getLogger("recollect")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """An operation that has ended.

    Attributes:
        operation: The name of the operation, such as "remember" (`recollect.operations`); a `with memory.batch()` block
            is one "batch".
        scoped: Whether the memory was restricted to a scope.
        seconds: How long it took.
        count: How many results it returned: records, hits, commits or outcomes; the number itself, if it returned one.
        error: The code of the error that it raised; the name of the class of an error that is not a RecollectError; ""
            if it succeeded.
    """

    operation: str
    namespace: str
    scoped: bool
    seconds: float
    count: int
    error: str


OnCall = Callable[[Call], object]


class CallLog:
    """Reports calls.

    Args:
        on_call: Called with each call when it has ended, in the thread of the caller. An exception that it raises is
            logged and has no other effect.
    """

    def __init__(self, on_call: OnCall | None = None) -> None:
        self._on_call = on_call

    @property
    def active(self) -> bool:
        """True if there is a callback, or the logger accepts debug lines."""
        return self._on_call is not None or _log.isEnabledFor(logging.DEBUG)

    @contextmanager
    def block(self, operation: str, namespace: str, scoped: bool) -> Iterator[list[int]]:
        """Report the block as a call when it ends. It sets the only item of the list to the number of results."""
        began = time.perf_counter()
        count = [0]
        code = ""
        try:
            yield count
        except BaseException as error:
            code = error.code if isinstance(error, RecollectError) else type(error).__name__
            raise
        finally:
            seconds = time.perf_counter() - began
            self.report(Call(operation, namespace, scoped, seconds, 0 if code else count[0], code))

    def observed(self, operation: str, namespace: str, scoped: bool, run: Callable[[], T]) -> T:
        """Run a call and report it."""
        with self.block(operation, namespace, scoped) as count:
            result = run()
            count[0] = _count(result)
            return result

    def report(self, call: Call) -> None:
        """Log a call and pass it to the callback."""
        _log.debug(
            "%s in %r%s: %.3f ms, %d results%s",
            call.operation,
            call.namespace,
            " (scoped)" if call.scoped else "",
            call.seconds * 1000,
            call.count,
            f", error {call.error}" if call.error else "",
        )
        if self._on_call is not None:
            try:
                self._on_call(call)
            except Exception:  # noqa: BLE001 - the callback may raise anything, and must not fail the call
                _log.exception("on_call failed on %s", call.operation)


def _count(result: Any) -> int:
    if result is None:
        return 0
    if isinstance(result, Report):
        return len(result.results)
    if is_integer(result):
        return result
    return len(result) if isinstance(result, (list, Hits)) else 1
