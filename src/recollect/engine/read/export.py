"""Exports: a snapshot of all live records with their root, read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace

from recollect.engine.results import Export, ExportedPart
from recollect.engine.scope import Scope
from recollect.errors import DamagedStoreError, StoreBusyError
from recollect.filters.tree import EVERYTHING
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import update
from recollect.ledger.parts import RECORDS
from recollect.records.record import Record
from recollect.stores.base import Store, View
from recollect.stores.roots import Overlay
from recollect.stores.values import in_order


def export(
    branches: Mapping[str, Branch],
    memory: Branch,
    scope: Scope,
    store: Store,
    reads_at: Callable[[View, Branch], int],
) -> Export:
    """Open a view and return its live records by ascending id. Closing the export closes the view.

    If an open view would keep others from reading and writing, the records are listed at once instead.

    Args:
        branches: The branches of the parts to read, by name.
        memory: The branch of the operation.
        scope: The scope of the caller. Within one, all records are in memory: its ids have another order.
        reads_at: Returns the time that decides which records have expired (`Core.reads_at`).
    """
    with ExitStack() as stack:
        view = stack.enter_context(store.read())
        stays_open = store.capabilities.snapshots and not scope.fixed
        opened = {}
        for name, branch in branches.items():
            each = _export(view, branch, scope, reads_at(view, branch))
            records = _Read(each.records, store) if stays_open else iter(list(each.records))
            opened[name] = replace(each, name=name, records=records)
        return joined(opened, memory, stack.pop_all() if stays_open else None)


def joined(opened: Mapping[str, ExportedPart], memory: Branch, resources: ExitStack | None = None) -> Export:
    """Return an export of several parts of a memory, by name."""
    own = opened.get(memory.reserved_name or RECORDS, ExportedPart("", "", 0, iter(())))
    others = [each for each in opened.values() if each is not own and each.count]
    return Export(own.root, own.count, own.records, resources, others)


def _export(view: View, branch: Branch, scope: Scope, now: int) -> ExportedPart:
    """Return the live records of a branch."""
    if scope.fixed:
        records = in_order(map(scope.shown, view.select(branch, scope.filter, order="id", now=now)), "id")
        return ExportedPart("", "", len(records), iter(records))
    root, expired = view.head(branch).root, view.due(branch, now, 2**62)
    if expired:
        root = update(root, dict.fromkeys(expired), Overlay(view))
    count = view.count(branch, EVERYTHING, now=now)
    return ExportedPart("", root.hash.hex(), count, view.select(branch, EVERYTHING, order="id", now=now))


class _Read:
    """The records of an export, which begins again if pages of the store had to be renewed (`Store.renew`)."""

    def __init__(self, records: Iterator[Record], store: Store) -> None:
        self._records = records
        self._store = store

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        try:
            return next(self._records)
        except DamagedStoreError as error:
            if self._store.renew(error):
                raise StoreBusyError(error.args[0], "another SQLite wrote pages of it; export again") from error
            raise
