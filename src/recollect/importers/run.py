"""Running an importer: items into a memory, in batches, and a report of what became of each.

Promises: what was committed stays, whatever happens after; the same source again changes nothing; every item is
counted or reported as damaged with its place. Nothing but a batch is held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import InvalidArgumentError, RecollectError, ScopeError, StoreError
from recollect.importers.base import Damage, Importer, Item, Promise
from recollect.records.record import Record

if TYPE_CHECKING:
    from recollect.engine.results import Outcome
    from recollect.memory import Batch, Memory

#: So many items are one commit.
BATCH = 1000


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of the items of a source.

    created, unchanged, updated  how many records
    differing   how many of the unchanged are held with other values than the source has; those were kept
    expired     how many records of an export were due by now, and were left out
    renumbered  how many got another id than their own, because another text is held under it
    damaged     what could not be remembered, in the order of the source
    namespaces  how many items each namespace holds of the source
    roots       by namespace, whether its root is now the one that the source promises; not so where it holds other
                records too, or the store has another key
    """

    created: int = 0
    unchanged: int = 0
    updated: int = 0
    differing: int = 0
    renumbered: int = 0
    expired: int = 0
    damaged: tuple[Damage, ...] = ()
    namespaces: dict[str, int] = field(default_factory=dict)
    roots: dict[str, bool] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "created": self.created,
            "unchanged": self.unchanged,
            "updated": self.updated,
            "differing": self.differing,
            "renumbered": self.renumbered,
            "expired": self.expired,
            "damaged": [damage._asdict() for damage in self.damaged],
            "namespaces": dict(self.namespaces),
            "roots": dict(self.roots),
        }


class Source:
    """What is to be imported, with its beginning read, so that it is known to be of the format.

    zone          in which times without an offset are taken
    follow_links  whether links within a folder are followed to what lies outside it

    Raises: ImportFormatError.
    """

    def __init__(self, importer: Importer, path: Path, zone: tzinfo = UTC, *, follow_links: bool = False) -> None:
        self.exact = importer.exact
        items = importer.read(path, zone, follow_links=follow_links)
        self.items = chain([each for each in (next(items, None),) if each is not None], items)


def import_source(memory: Memory, source: Source, *, progress: Callable[[int], object] | None = None) -> ImportReport:
    """Remember what a source holds.

    progress  is called with the number of items done, after each commit

    Raises: StoreError where the store fails: what was committed stays, and running it again goes on from there.
    """
    run = _Run(memory, source.exact, progress)
    for each in source.items:
        run.take(each)
    run.flush()
    return run.report()


def import_path(
    memory: Memory,
    importer: Importer,
    path: Path,
    *,
    zone: tzinfo = UTC,
    follow_links: bool = False,
    progress: Callable[[int], object] | None = None,
) -> ImportReport:
    """Remember what is at `path`: `import_source` of a `Source`, with the errors of both."""
    return import_source(memory, Source(importer, path, zone, follow_links=follow_links), progress=progress)


class _Run:
    """An import under way: the batch that is being gathered, and what became of those before."""

    def __init__(self, memory: Memory, exact: bool, progress: Callable[[int], object] | None) -> None:
        self._memory = memory
        self._hold = _held_exactly if exact else _held
        self._progress = progress
        self._batch: list[tuple[int, Item]] = []
        self._taken = 0
        self._done = 0
        self._damaged: list[tuple[int, Damage]] = []
        self._outcomes: dict[str, int] = dict.fromkeys(
            ("created", "unchanged", "updated", "differing", "renumbered", "expired"), 0
        )
        self._namespaces: dict[str, int] = {}
        self._roots: dict[str, bool] = {}

    def take(self, each: Item | Damage | Promise) -> None:
        if isinstance(each, Promise):
            self.flush()
            self._keep(each)
            return
        self._taken += 1
        if isinstance(each, Damage):
            self._damaged.append((self._taken, each))
            return
        if self._batch and (self._batch[0][1].namespace != each.namespace or len(self._batch) == BATCH):
            self.flush()
        self._batch.append((self._taken, each))

    def flush(self) -> None:
        """Commit the batch."""
        if not self._batch:
            return
        batch, self._batch = self._batch, []
        namespace = batch[0][1].namespace
        try:
            memory = self._memory if namespace is None else self._memory.namespace(namespace)
        except InvalidArgumentError as error:
            results: list[Outcome | RecollectError | None] = [error] * len(batch)
        else:
            results = self._hold(memory, [item for _, item in batch])
            held = sum(result is not None and not isinstance(result, RecollectError) for result in results)
            if held:
                self._namespaces[memory.name] = self._namespaces.get(memory.name, 0) + held
        for (number, item), result in zip(batch, results, strict=True):
            if isinstance(result, RecollectError):
                self._damaged.append((number, Damage(item.place, str(result))))
                continue
            if result is None:
                self._outcomes["expired"] += 1
                continue
            self._outcomes[result.status] += 1
            self._outcomes["differing"] += result.status == "unchanged" and bool(result.differing)
            self._outcomes["renumbered"] += result.asked_id is not None
        self._done += len(batch)
        if self._progress is not None:
            self._progress(self._done)

    def _keep(self, promise: Promise) -> None:
        with suppress(ScopeError, InvalidArgumentError):  # what is damaged, or a scope, has no root to compare
            memory = self._memory if promise.namespace is None else self._memory.namespace(promise.namespace)
            memory.root  # noqa: B018 - a scope has none
            kept = memory.export_records()[0] == promise.root
            self._roots[memory.name] = self._roots.get(memory.name, True) and kept

    def report(self) -> ImportReport:
        damaged = tuple(damage for _, damage in sorted(self._damaged, key=lambda each: each[0]))
        return ImportReport(damaged=damaged, namespaces=self._namespaces, roots=self._roots, **self._outcomes)


def _held(memory: Memory, items: Iterable[Item]) -> list[Outcome | RecollectError | None]:
    """What became of each item, remembered as anything is. Raises: StoreError."""
    fields = [item.fields for item in items]
    report = memory.remember_all(fields)
    failed = {each.place: each.reason for each in report.failed}
    for reason in failed.values():
        if isinstance(reason, StoreError):
            raise reason
    outcomes = iter(report.results)
    return [failed[place] if place in failed else next(outcomes) for place in range(len(fields))]


def _held_exactly(memory: Memory, items: Iterable[Item]) -> list[Outcome | RecollectError | None]:
    """What became of each item, a whole record to be held as it is; None where it is due. Raises: StoreError."""
    results: list[Outcome | RecollectError | None] = []
    with memory.batch() as batch:
        now = memory.now()
        for item in items:
            try:
                record = Record(**item.fields)
                due = record.expires is not None and record.expires <= now
                results.append(None if due else _restored(batch, record))
            except StoreError:
                raise
            except RecollectError as error:
                results.append(error)
    return results


def _restored(batch: Batch, record: Record) -> Outcome:
    """Store exactly this record under its id, in place of what has that id."""
    from recollect.memory.calls import remember_operation

    outcome: Outcome = batch.execute(replace(remember_operation(record), if_exists="update"))
    return outcome
