"""Verification of a store's records against the roots in its log. Works on any store, from the records alone."""

from __future__ import annotations

from recollect.errors import StoreError
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import check, root_of
from recollect.stores.base import Store, View
from recollect.stores.values import BranchSummary


def disagreements(store: Store) -> list[str]:
    """Describe each branch whose records do not match the root of its newest commit."""
    problems: list[str] = []
    try:
        with store.read() as view:
            branches = view.branches()
    except StoreError as error:
        return [f"the list of namespaces cannot be read: {error.args[1]}"]
    for branch in branches:
        # Use a view for each branch: a read error ends a view.
        try:
            with store.read() as view:
                head = view.head(branch)
                lives = {each: live for each, live in view.lives(branch, 0, head.seq).items() if live is not None}
                problem = check(head.root, lives, _ReadPages(view))
                if {each: stored.version for each, stored in view.versions(branch)} != {
                    each: live.version for each, live in lives.items()
                }:
                    problem = "the live records are not those that the log leads to"
        except StoreError as error:
            problem = f"its records cannot be compared with its root: {error.args[1]}"
        if problem:
            problems.append(f"namespace {branch.namespace!r}: {problem}")
    return problems


def branch_summaries(store: Store) -> dict[Branch, BranchSummary]:
    """Summarize every branch; each root is computed from the records, by its definition."""
    out = {}
    with store.read() as view:
        for branch in view.branches():
            versions = {record_id: stored.version for record_id, stored in view.versions(branch)}
            out[branch] = BranchSummary(view.head(branch).seq, root_of(versions).hex(), len(versions))
    return out


class _ReadPages:
    """Read-only access to the trie pages of a view."""

    def __init__(self, view: View) -> None:
        self.node = view.node

    def add_node(self, body: bytes) -> int:
        raise AssertionError("checking writes nothing")
