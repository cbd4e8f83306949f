"""Exports: a snapshot of all live records with their root, read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

from recollect.engine.results import Export
from recollect.engine.scope import Scope
from recollect.errors import DamagedStoreError, StoreBusyError
from recollect.filters.tree import EVERYTHING
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import update
from recollect.records.record import Record
from recollect.stores.base import Store, View
from recollect.stores.roots import Overlay
from recollect.stores.values import in_order


def export(branch: Branch, scope: Scope, store: Store, reads_at: Callable[[View, Branch], int]) -> Export:
    """Open a view and return its live records by ascending id. Closing the export closes the view.

    If an open view would keep others from reading and writing, the records are listed at once instead.

    Args:
        branch: The branch to read.
        scope: The scope of the caller. Within one, all records are in memory: its ids have another order.
        reads_at: Returns the time that decides which records have expired (`Core.reads_at`).
    """
    with ExitStack() as stack:
        view = stack.enter_context(store.read())
        now = reads_at(view, branch)
        if scope.fixed:
            records = in_order(map(scope.shown, view.select(branch, scope.filter, order="id", now=now)), "id")
            return Export("", len(records), iter(records))
        root, expired = view.head(branch).root, view.due(branch, now, 2**62)
        if expired:
            root = update(root, dict.fromkeys(expired), Overlay(view))
        count = view.count(branch, EVERYTHING, now=now)
        all_records = view.select(branch, EVERYTHING, order="id", now=now)
        if store.capabilities.snapshots:
            return Export(root.hash.hex(), count, _Read(all_records, store), stack.pop_all())
        return Export(root.hash.hex(), count, list(all_records))


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
