"""Whether what a store holds agrees with the roots in its log, on any store: computed from the records alone."""

from __future__ import annotations

from recollect.errors import StoreError
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import check, root_of
from recollect.stores.base import BranchSummary, Store, View


def disagreements(store: Store) -> list[str]:
    """Where a line's records do not come to the root of its newest commit, in words."""
    problems: list[str] = []
    try:
        with store.read() as view:
            branches = view.branches()
    except StoreError as error:
        return [f"which namespaces there are cannot be read: {error.args[1]}"]
    for branch in branches:
        # Each in a view of its own: an error in reading ends a view.
        try:
            with store.read() as view:
                versions = {record_id: stored.version for record_id, stored in view.versions(branch)}
                problem = check(view.head(branch).root, versions, _ReadPages(view))
        except StoreError as error:
            problem = f"it cannot be compared with its root: {error.args[1]}"
        if problem:
            problems.append(f"namespace {branch.namespace!r}: {problem}")
    return problems


def held(store: Store) -> dict[Branch, BranchSummary]:
    """What every line holds: its root computed from the definition, of the records that are there."""
    out = {}
    with store.read() as view:
        for branch in view.branches():
            versions = {record_id: stored.version for record_id, stored in view.versions(branch)}
            out[branch] = BranchSummary(view.head(branch).seq, root_of(versions).hex(), len(versions))
    return out


class _ReadPages:
    """The pages of a view, for checking."""

    def __init__(self, view: View) -> None:
        self.node = view.node

    def add_node(self, body: bytes) -> int:
        raise AssertionError("checking writes nothing")
