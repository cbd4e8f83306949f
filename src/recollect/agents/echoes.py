"""No feedback loop: what a model was given from memory and only repeats is not stored again.

A model that is shown "Ana lives in Oslo" and then asked for facts will state it as a new one, and a memory that stores
it would count its own answer as evidence. `EchoExecutor` notes what recall and context return through one memory
object, and answers a fact or a piece of knowledge that only repeats it with the outcome "echo".

What it notes is bounded, stays in this process and is no part of the ledger: it does not survive the memory object, is
not shared with others, and forgets what was returned longest ago. Losing it stores a fact twice and loses nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from recollect.engine.executor import BatchExecutor, Executor, WrappingExecutor
from recollect.engine.results import Failed, Hits, Outcome, Report
from recollect.engine.scope import Place, Scope
from recollect.ledger.commits import Branch
from recollect.memory import Memory
from recollect.operations import ExecuteBatch, Operation, Recall, Remember, RememberAll
from recollect.records.record import Record
from recollect.text.summaries import Statement, shingles, statement

#: The kinds that are compared with what was returned. Turns of a conversation are always stored.
KINDS = ("knowledge", "user_fact", "entity")
#: Share of the pairs of words of a text that must occur in what was returned.
_OVERLAP = Fraction(8, 10)
#: Maximum number of returned records that are noted, and of characters of each.
_MOST, _MOST_READ = 2000, 10_000
#: Words that stand for the person whom a fact is about.
_SUBJECTS = frozenset(("user", "i", "he", "she", "they"))


class _Served(NamedTuple):
    """A record that was returned.

    Attributes:
        what: What it states.
        pairs: Its shingles, and each of its stems.
    """

    record: Record
    what: Statement
    pairs: frozenset[tuple[str, ...]]


def without_echoes(memory: Memory) -> Memory:
    """Return a memory with a guard against feedback loops: what it answered is not stored again as a new fact.

    A model that is shown a memory states it again, and a program that stores what the model states would count its
    own answers as evidence. Through the memory that this returns, a fact about a user or an entity or a piece of
    knowledge is not stored if it only repeats what `recall` or `context` of the same memory returned: four fifths
    of its pairs of words, and all of its numbers and names. Turns of conversations are always stored.

    `execute` then returns an outcome with the status "echo" and the ids of the sources; `remember` and the
    `record_*` calls return the first source, with a RecollectWarning. Facts with an id, `expect` or another
    `if_exists` than "keep" are stored, since the caller knows which record they mean.

    It compares with the last 2,000 records that were returned, in this process. That survives neither the memory
    that this returns nor a restart. Each scope and namespace that is opened from it has a guard of its own.

    Args:
        memory: The memory, which itself stays without a guard.
    """
    return Memory(EchoExecutor(memory._executor), memory._branch, memory._scope, memory._place.origin)


class EchoGuard:
    """The records that one memory object returned lately. Safe for use by several threads.

    Args:
        most: Maximum number of records that are noted; those that were returned longest ago are dropped.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._served: OrderedDict[str, _Served] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, records: Iterable[Record]) -> None:
        """Note records that were returned."""
        for record in records:
            if not isinstance(record.content, str):
                continue
            key = record.hash
            with self._lock:
                known = self._served.pop(key, None)
            if known is None:
                what = statement(record.content[:_MOST_READ], record.language)
                known = _Served(record, what, shingles(what.stems) | {(stem,) for stem in what.stems})
            with self._lock:
                self._served[key] = known
                while len(self._served) > self._most:
                    self._served.popitem(last=False)

    def repeated(self, operation: Remember) -> tuple[Record, ...]:
        """Return the records that a text only repeats; none if it says something else, or is no fact or knowledge."""
        fields = operation.fields
        if (
            not isinstance(operation.content, str)
            or operation.exact
            or operation.id is not None
            or str(fields.get("kind") or KINDS[0]).casefold() not in KINDS
            or fields.get("conversation") is not None
        ):
            return ()
        with self._lock:
            served = [each for each in self._served.values() if _same_owner(each.record, fields)]
        if not served:
            return ()
        what = statement(operation.content[:_MOST_READ], fields.get("language"))
        names = _names(fields)
        stems = tuple(stem for stem in what.stems if stem not in names)
        wanted = shingles(stems)
        if not wanted:
            return ()
        sources = [each for each in served if wanted & each.pairs and bool(each.what.negations) == bool(what.negations)]
        covered = wanted & frozenset().union(*(each.pairs for each in sources))
        numbers = {number for each in sources for number in each.what.numbers}
        words = {word for each in sources for word in each.what.words} | names
        if len(covered) < _OVERLAP * len(wanted) or not set(what.numbers) <= numbers or not what.names <= words:
            return ()
        return _fewest(covered, sources)


def _fewest(covered: frozenset[tuple[str, ...]], sources: list[_Served]) -> tuple[Record, ...]:
    """Return few records that together have these pairs: each time the one that has most of the rest."""
    chosen: list[Record] = []
    left = covered
    while left:
        best = max(sources, key=lambda each: len(left & each.pairs))
        chosen.append(best.record)
        left -= best.pairs
    return tuple(chosen)


def _same_owner(record: Record, fields: Any) -> bool:
    """Return whether a record can be the source of a fact: it is not about another user."""
    return record.user is None or fields.get("user") in (None, record.user)


def _names(fields: Any) -> frozenset[str]:
    """Return the stems of whom a fact is about. A source often says "I" instead."""
    metadata = fields.get("metadata")
    named = metadata.get("entity_name") if isinstance(metadata, dict) else None
    text = " ".join(str(each) for each in (fields.get("user"), fields.get("entity"), named) if each)
    return frozenset(statement(text.replace("_", " ")).stems) | _SUBJECTS


class EchoExecutor(WrappingExecutor):
    """An `Executor` that stores no echo of what it returned.

    Args:
        executor: The executor that executes the operations.
    """

    def __init__(self, executor: Executor) -> None:
        super().__init__(executor)
        self._guards: dict[tuple[Branch, Scope], EchoGuard] = {}

    def _guard(self, branch: Branch, scope: Scope) -> EchoGuard:
        """Return what was returned from a namespace within a scope: others do not learn of it."""
        return self._guards.setdefault((branch, scope), EchoGuard())

    def execute(self, operation: Operation, place: Place) -> Any:
        """Execute an operation, except for facts that are echoes."""
        guard = self._guard(place.branch, place.scope)
        return _guarded(operation, place.scope, guard, lambda each: self.executor.execute(each, place))

    @contextmanager
    def batch(self, place: Place, expect_head: int | None) -> Iterator[BatchExecutor]:
        """Open a batch that stores no echo."""
        with self.executor.batch(place, expect_head) as opened:
            yield _EchoBatch(opened, place.scope, self._guard(place.branch, place.scope))


class _EchoBatch:
    """A `BatchExecutor` that stores no echo."""

    def __init__(self, executor: BatchExecutor, scope: Scope, guard: EchoGuard) -> None:
        self._executor = executor
        self._scope = scope
        self._guard = guard

    def execute(self, operation: Operation) -> Any:
        return _guarded(operation, self._scope, self._guard, self._executor.execute)


def _guarded(operation: Operation, scope: Scope, guard: EchoGuard, execute: Any) -> Any:
    """Execute an operation without the parts that are echoes, and return its result with their outcomes."""
    if isinstance(operation, Recall):
        hits: Hits = execute(operation)
        guard.note(hit.record for hit in (*hits, *hits.standing))
        return hits
    if isinstance(operation, Remember):
        return _echo(operation, scope, guard) or execute(operation)
    if isinstance(operation, RememberAll):
        echoes = {at: echo for at, item in enumerate(operation.items) if (echo := _echo(item, scope, guard))}
        if not echoes:
            return execute(operation)
        others = [at for at in range(len(operation.items)) if at not in echoes]
        report: Report = execute(replace(operation, items=tuple(operation.items[at] for at in others)))
        failed = [Failed(each.item, others[each.index], each.reason) for each in report.failed]
        places = [at for at in others if at not in {each.index for each in failed}]
        results = {**dict(zip(places, report.results, strict=True)), **echoes}
        return Report(tuple(results[at] for at in sorted(results)), tuple(failed))
    if isinstance(operation, ExecuteBatch):
        found = {
            at: echo
            for at, part in enumerate(operation.operations)
            if isinstance(part, Remember) and (echo := _echo(part, scope, guard))
        }
        rest = [part for at, part in enumerate(operation.operations) if at not in found]
        results_of_rest = iter(execute(replace(operation, operations=tuple(rest))))
        return [found[at] if at in found else next(results_of_rest) for at in range(len(operation.operations))]
    return execute(operation)


def _echo(operation: Remember, scope: Scope, guard: EchoGuard) -> Outcome | None:
    """Return the outcome of an operation that would store an echo."""
    if operation.expect is not None or operation.if_exists != "keep":
        return None
    filled = {**operation.fields, **dict(scope.fixed)}
    sources = guard.repeated(replace(operation, fields=filled) if scope.fixed else operation)
    return Outcome(sources[0], "echo", sources=tuple(each.id for each in sources)) if sources else None
