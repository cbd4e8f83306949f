"""The roots of a store: the trie pages of old ones, and the comparison of the newest ones with the records.

Every commit replaces some pages of the trie. The pages of the newest root, of snapshots, and of a root about every
`KEPT_EVERY` changes are kept. `trim` drops the others, so that a file does not grow by them with each commit, in
bounded steps after the commits and not within them. The log determines every root, so any old one can be recomputed
from the nearest stored one before it (`pages_at`).
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from recollect.errors import DamagedStoreError, StoreError
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import EMPTY, Pages, Root, Trie, check, root_of, update
from recollect.ledger.parts import memory_root, roots_of
from recollect.ledger.proofs import Walk
from recollect.stores.base import Store, Transaction, View
from recollect.stores.values import BranchSummary, Trimmed

#: The pages of a root are kept after at least this many changes. A lower number makes the file larger, a higher one
#: makes it slower to recompute a root.
KEPT_EVERY = 2**14
#: Number of unnamed snapshots that are kept.
UNNAMED_SNAPSHOTS = 20
#: Maximum number of commits and (except for a single commit) of pages that one step examines and drops.
STEP_COMMITS, STEP_PAGES = 256, 4096


class Overlay:
    """Pages that are not stored, above those of a view: for a root that has no stored pages."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._pages: dict[int, bytes] = {}

    def node(self, page: int) -> bytes:
        return self._pages[page] if page in self._pages else self._view.node(page)

    def nodes(self, pages: Sequence[int]) -> dict[int, bytes]:
        own = {page: self._pages[page] for page in pages if page in self._pages}
        return own | self._view.nodes([page for page in pages if page not in own])

    def add_node(self, body: bytes) -> int:
        page = 2**62 + len(self._pages)
        self._pages[page] = body
        return page


def pages_at(view: View, branch: Branch, seq: int) -> tuple[Root, Pages]:
    """Return the root after a commit, and its pages: those that are stored, or else recomputed ones.

    Args:
        seq: The number of the commit; 0 for the empty root.

    Raises:
        DamagedStoreError: The recomputed root is not that of the commit.

    Cost:
        Without stored pages, applies the changes since the nearest earlier root that has some: up to `KEPT_EVERY`, and
        those of one more commit.
    """
    kept, root = view.stored_root(branch, seq)
    overlay = Overlay(view)
    if kept == seq:
        return root, overlay
    root = update(root, view.lives(branch, kept, seq), overlay)
    if root.hash != view.root_at(branch, seq):
        raise DamagedStoreError(branch.namespace, f"the changes up to commit {seq} do not lead to its root")
    return root, overlay


def newest_trie(view: View, branch: Branch) -> Trie:
    """Return the trie of the newest root of a branch, to be updated.

    If the branch continues a commit whose pages were dropped, the first update writes pages of its own for everything:
    it must not share those of other roots, which can be dropped without it.
    """
    head = view.head(branch)
    if head.root.page or head.root.hash == EMPTY:
        return Trie(head.root)
    return Trie(head.root, {each: live for each, live in view.lives(branch, 0, head.seq).items() if live is not None})


def trim(store: Store, branch: Branch) -> bool:
    """Drop the pages of the oldest roots that have not been examined yet, except of those to keep, in a bounded step.

    Safe while others read, write and trim.

    Returns:
        Whether there are more roots to examine.
    """
    with store.read() as view:
        before, marked = view.trimmed(branch), _marked(view, branch)
        seqs, pages, after = _next_step(view, branch, before, marked)
        more = after.seq < view.head(branch).seq
    if after == before:
        return False
    with store.write(branch, shared=True) as transaction:
        # Otherwise another process has trimmed, or has created a snapshot or a branch, since.
        if transaction.trimmed(branch) == before and _marked(transaction, branch) == marked:
            transaction.drop_roots(branch, seqs, pages, after)
    return more


def _marked(view: View, branch: Branch) -> set[int]:
    """Return the commits whose pages are kept because a snapshot marks them, or a branch continues them."""
    return {each.seq for each in view.snapshots(branch)} | view.forks(branch)


def _next_step(view: View, branch: Branch, before: Trimmed, marked: Set[int]) -> tuple[list[int], list[int], Trimmed]:
    """Return the commits whose roots lose their pages, these pages, and the new value of `View.trimmed`."""
    seq, kept, changes = before
    commits = {each.seq: each for each in view.untrimmed(branch, seq, seq + STEP_COMMITS)}
    above = view.stored_root(branch, kept)[1].page
    seqs: list[int] = []
    pages: list[int] = []
    while seq + 1 in commits and len(pages) < STEP_PAGES:
        page = commits[seq].page if seq else 0
        if seq in marked or changes >= KEPT_EVERY:
            kept, changes, above = seq, 0, page or above
        elif seq != kept and page:
            # The pages up to that number are those of the kept root, or of older ones.
            pages.extend(each for each in commits[seq + 1].replaced if each > above)
            seqs.append(seq)
        seq += 1
        changes += commits[seq].changes
    return seqs, pages, Trimmed(seq, kept, changes)


def release(transaction: Transaction, branch: Branch, seq: int) -> None:
    """Drop the pages of a root that was kept for a snapshot or a branch, unless it is still needed."""
    trimmed = transaction.trimmed(branch)
    if seq >= trimmed.kept or seq in _marked(transaction, branch):
        return  # `trim` has not examined it yet, or it is the root that the next steps start from
    found, root = transaction.stored_root(branch, seq)
    earlier, before = transaction.stored_root(branch, seq - 1)
    later, after = transaction.stored_root(branch, seq + 1, newer=True)
    if (
        found == seq
        and root.page
        and transaction.count_changes(branch, earlier, later, 2 * KEPT_EVERY) < 2 * KEPT_EVERY
    ):
        pages = Walk(transaction.node).pages_only_in(root, after, before.page)
        transaction.drop_roots(branch, [seq], pages, trimmed)


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
        roots: dict[Branch, bytes] = {}
        for branch in view.branches():
            versions = {record_id: stored.version for record_id, stored in view.versions(branch)}
            roots[branch] = root_of(versions)
            out[branch] = BranchSummary(view.head(branch).seq, roots[branch].hex(), len(versions))
        for branch, summary in out.items():
            head = view.head(branch)
            if head.parts is not None:
                parts = []
                for each in head.parts:
                    # Without commits of its own, a part that continues another one has the root that is stated.
                    part = branch.reserved(each.name)
                    unwritten = each.root if view.base(part) is not None else EMPTY
                    parts.append(each._replace(root=roots.get(part, unwritten)))
                root = memory_root(roots_of(roots[branch], parts))
                out[branch] = summary._replace(root=root.hex())
    return out


class _ReadPages:
    """Read-only access to the trie pages of a view."""

    def __init__(self, view: View) -> None:
        self.node, self.nodes = view.node, view.nodes

    def add_node(self, body: bytes) -> int:
        raise AssertionError("checking writes nothing")
