"""`Loopback`: an executor that sends everything through JSON bytes, as a client and a server would.

A memory that stands on it shows that operations, results and errors lose nothing on the way. What cannot be sent
(custom filters, functions that change records, progress callbacks) raises UnsupportedError.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from recollect.engine.core import Core
from recollect.engine.engine import Engine
from recollect.engine.executor import BatchExecutor, WrappingExecutor
from recollect.engine.feed import CommitLog
from recollect.engine.results import result_from_json, result_to_json
from recollect.engine.scope import Place, Scope
from recollect.errors import RecollectError
from recollect.indexes.words.index import WordIndex
from recollect.ledger.commits import Branch, Commit
from recollect.memory.memory import Memory
from recollect.operations import Operation, from_json
from recollect.stores.derived.fulltext import FullText
from recollect.wire import send_all


class Loopback(WrappingExecutor):
    """An `Executor` that passes JSON bytes to another one.

    Args:
        executor: The executor that executes the operations.
    """

    def execute(self, operation: Operation, place: Place) -> Any:
        """Execute an operation and return its result."""

        def serve(received: Operation) -> Any:
            return self.executor.execute(received, place)

        return send_all(operation, lambda each: _sent(each, serve))

    @contextmanager
    def batch(self, place: Place, expect_head: int | None) -> Iterator[_LoopbackBatch]:
        """Open a batch."""
        with self.executor.batch(place, expect_head) as opened:
            yield _LoopbackBatch(opened)

    def log(self, branch: Branch, scope: Scope, parts: Collection[str] | None = None) -> CommitLog:
        """Return the log of a branch as a scope sees it. Its commits pass through bytes."""
        return _LoopbackLog(self.executor.log(branch, scope, parts))


class _LoopbackLog:
    """A `CommitLog` whose commits pass through bytes."""

    def __init__(self, log: CommitLog) -> None:
        self.branch = log.branch
        self._log = log
        self.head, self.start, self.seq = log.head, log.start, log.seq

    def read(self, since: int) -> list[tuple[int, Commit | None]]:
        return [
            (seq, None if commit is None else Commit.from_json(_through_bytes(commit.to_json())))
            for seq, commit in self._log.read(since)
        ]


class _LoopbackBatch:
    """A `BatchExecutor` that passes JSON bytes to another one."""

    def __init__(self, executor: BatchExecutor) -> None:
        self._executor = executor

    def execute(self, operation: Operation) -> Any:
        return send_all(operation, lambda each: _sent(each, self._executor.execute))


def _sent(operation: Operation, serve: Callable[[Operation], Any]) -> Any:
    """Send an operation to `serve` and return its result; all of it passes through bytes."""
    received = from_json(_through_bytes(operation.to_json()))
    try:
        answer = {"result": result_to_json(received, serve(received))}
    except RecollectError as error:
        answer = {"error": error.to_json()}
    answer = _through_bytes(answer)
    if "error" in answer:
        raise RecollectError.from_json(answer["error"])
    return result_from_json(operation, answer["result"])


def _through_bytes(data: Any) -> Any:
    return json.loads(json.dumps(data, allow_nan=False).encode("utf-8"))


# Access to the internals of a memory, for tests and benchmarks of Recollect itself.


def core_of(memory: Memory) -> Core:
    """Return the core of the engine that a memory uses in this process."""
    executor = memory._executor
    while not isinstance(executor, Engine):  # a wrapper, such as `Loopback`
        executor = executor.executor  # type: ignore[attr-defined]
    return executor.core


def beside(memory: Memory, what: str) -> Memory:
    """Return what a facet stores beside the records of a memory, such as "terms", as a memory."""
    return memory._beside(what)


def full_text_of(memory: Memory) -> FullText:
    """Return the full-text index of a memory."""
    return core_of(memory).fulltext


def index_of(memory: Memory, branch: Branch | None = None) -> WordIndex:
    """Return the word index of a branch, which must be loaded; default: that of the memory."""
    entry = core_of(memory).keeper.entries.get(branch or memory._branch)
    assert entry is not None
    assert entry.value is not None
    return entry.value.index
