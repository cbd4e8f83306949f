"""Memories of past moments: an executor that executes every operation as of a moment."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NoReturn

from recollect.arguments.checks import is_integer
from recollect.engine.executor import BatchExecutor, Executor, WrappingExecutor
from recollect.engine.feed import CommitLog, Feed
from recollect.engine.results import Moment
from recollect.engine.scope import Place, Scope
from recollect.errors import InvalidArgumentError, ReadOnlyMemoryError, RecollectError
from recollect.ledger.commits import Branch, Snapshot
from recollect.operations import At, Operation, Pin
from recollect.records.record import aware

#: What names a moment: the number of a commit, a root or a snapshot's name, a time, or a snapshot.
Target = int | str | datetime | Snapshot


def pin_of(target: Target | None, index: int | None) -> Pin:
    """Return the operation that finds a moment.

    Raises:
        InvalidArgumentError: Not exactly one of both was passed, or it is of another type.
    """
    if (target is None) == (index is None):
        raise InvalidArgumentError("target", target, "must be a seq, a time, a root or a snapshot, or pass index=")
    if isinstance(target, datetime):
        try:
            return Pin(time=aware("target", target))
        except RecollectError as error:
            raise InvalidArgumentError("target", target, str(error.args[2])) from None
    if isinstance(target, str):
        return Pin(named=target)
    if isinstance(target, Snapshot):
        return Pin(seq=target.seq, root=target.root)
    if target is not None and not is_integer(target):
        raise InvalidArgumentError("target", target, "must be a seq, an aware datetime, a root, or a snapshot's name")
    return Pin(seq=target, index=index)


class PastExecutor(WrappingExecutor):
    """An `Executor` that executes each operation as of a moment. What is no reading operation is refused.

    Other namespaces are read as of the same time.

    Args:
        executor: The executor of the present.
        branch: The branch of the moment.
        moment: The moment.
    """

    def __init__(self, executor: Executor, branch: Branch, moment: Moment) -> None:
        super().__init__(executor)
        self._moment = moment
        self._moments = {branch: moment}

    @property
    def location(self) -> str:
        """Where the store is, and the time of the moment."""
        return f"{self.executor.location} as of {self._moment.time.isoformat()}"

    def execute(self, operation: Operation, place: Place) -> Any:
        """Execute an operation as of the moment."""
        moment = self._moments.get(place.branch)
        if moment is None:
            pin = Pin(time=self._moment.time)
            moment = self._moments[place.branch] = self.executor.execute(pin, Place(place.branch))
        return self.executor.execute(At(moment=moment.token, operation=operation), place)

    def batch(self, place: Place, expect_head: int | None) -> AbstractContextManager[BatchExecutor]:
        """Refuse: a batch writes."""
        self._refuse("a batch")

    def log(self, branch: Branch, scope: Scope) -> CommitLog:
        """Refuse: there are no commits to wait for."""
        self._refuse("waiting for commits")

    @property
    def feed(self) -> Feed:
        """Refuse: there are no commits to wait for."""
        self._refuse("waiting for commits")

    def close(self) -> None:
        """Refuse: the store is that of the present."""
        self._refuse("closing the store, which is shared,")

    @staticmethod
    def _refuse(what: str) -> NoReturn:
        raise ReadOnlyMemoryError(what)
