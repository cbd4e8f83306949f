"""Full-text search: catches the index of `grep` up to the store, and reads the records that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack

from recollect.common.deadlines import checked, within
from recollect.engine.follower import changed_since
from recollect.engine.results import RecordList
from recollect.engine.scope import Scope
from recollect.errors import DamagedStoreError
from recollect.ledger.commits import Branch
from recollect.operations import Grep
from recollect.records.record import Record
from recollect.stores.base import Store, View
from recollect.stores.derived.fulltext import FullText, Updates
from recollect.stores.values import expired, in_order


def grep(
    operation: Grep,
    branch: Branch,
    scope: Scope,
    store: Store,
    index: FullText,
    reads_at: Callable[[View, Branch], int],
    staged: Callable[[View], Sequence[Record | str]] = lambda view: (),
) -> RecordList:
    """Return the records that match a full-text query.

    Args:
        branch: The branch to read.
        scope: The scope of the caller.
        index: The full-text index of the store.
        reads_at: Returns the time that decides which records have expired (`Core.reads_at`).
        staged: Returns what replaces the records of a view: records that differ, and ids that have none. They are the
            uncommitted changes of a batch, or what a past moment had instead.

    Raises:
        InvalidQueryError: The query is malformed.
    """
    with ExitStack() as stack:
        views: list[View] = []

        def updates_since(reached: int, root: bytes | None) -> Updates:
            stack.close()  # the previous view is not needed any more
            view = stack.enter_context(store.read())
            views[:] = [view]
            head = view.head(branch)
            changed = changed_since(view, branch, reached, root or b"")
            if changed is None:
                texts = ((each, Record.load(stored.payload).text) for each, stored in view.versions(branch))
                return Updates(head.seq, head.root.hash, bool(reached), texts)
            return Updates(head.seq, head.root.hash, False, _texts(view, branch, changed))

        with store.read():
            pass  # raises if the store is closed or forked, before the file and locks of the index are used
        with within(None):  # the index catches up, which is kept as a whole
            ids = index.search(branch, operation.query, updates_since)
        stored = ((record_id, views[0].get(branch, record_id)) for record_id in checked(ids))
        records = {each: Record.load(version.payload) for each, version in stored if version is not None}
        if mismatched := [each for each, record in records.items() if record.id != each]:
            raise DamagedStoreError(store.path, f"record {mismatched[0]!r} has another id in its payload")
        now = reads_at(views[0], branch)
        replaced = staged(views[0])
    if replaced:
        staged_index = FullText(None, "batch")
        written = {each.id: each for each in replaced if isinstance(each, Record)}
        for each in replaced:
            records.pop(each if isinstance(each, str) else each.id, None)
        staged_updates = Updates(1, b"", False, [(each.id, each.text) for each in written.values()])
        records |= {
            each: written[each]
            for each in staged_index.search(branch, operation.query, lambda seq, root: staged_updates)
        }
        staged_index.close()
    where = operation.where
    found = (
        shown
        for record in records.values()
        if scope.admits(record) and not expired(record, now) and where.matches(shown := scope.shown(record))
    )
    return RecordList(in_order(found, "newest")[: operation.limit])


def _texts(view: View, branch: Branch, ids: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the id and text of each record; the text is None if the record is not stored."""
    for record_id in ids:
        stored = view.get(branch, record_id)
        yield record_id, Record.load(stored.payload).text if stored else None
