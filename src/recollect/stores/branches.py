"""How a branch continues another one: its beginning, and what becomes its own with its first write.

A new branch is a row that names a commit. Its log is that of the other branch up to there, so it costs the same
whatever that branch contains. With its first write it gets heads of its own, and its first commit names as its parent
the entry of the commit that it continues, so that its log proves what it began with.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from recollect.ledger.commits import RESERVED, Branch, Head, Parent
from recollect.ledger.merkle import Root
from recollect.ledger.proofs import Walk
from recollect.stores.base import Transaction, View
from recollect.stores.roots import release


def begin(transaction: Transaction, branch: Branch, base: Branch, seq: int) -> None:
    """Create a branch of a memory that continues another one after a commit, with all parts of the memory.

    Args:
        transaction: A transaction of the memory.
        branch: The new branch.
        base: The branch that it continues.
        seq: The commit of that branch; 0 for its beginning.
    """
    head = (transaction.head_at(base, seq) if seq else None) or Head()
    if head.seq and head.parts is None:  # of format 3: the parts are those of its time
        seqs = {name: _seq_at(transaction, base.reserved(name), head.micros) for name in RESERVED}
    else:
        seqs = {each.name: each.seq for each in head.parts or ()}
    for name in RESERVED:  # also those that are empty: an erasure and a removal concern all that continue one
        _begin(transaction, branch.reserved(name), base.reserved(name), seqs.get(name, 0))
    _begin(transaction, branch, base, seq)


def _seq_at(view: View, branch: Branch, micros: int) -> int:
    """Return the newest commit of a branch that is not later than a time; 0 for none."""

    def time_of(seq: int) -> int:
        head = view.head_at(branch, seq)
        assert head is not None, "the log has no gaps"
        return head.micros

    return bisect_right(range(1, view.head(branch).seq + 1), micros, key=time_of)


def _begin(transaction: Transaction, branch: Branch, base: Branch, seq: int) -> None:
    # A commit that the other branch continues itself is one of the branch before it.
    while (further := transaction.base(base)) is not None and seq <= further.seq:
        base = further.branch
    transaction.continue_from(branch, base, seq)


def settle(transaction: Transaction, branch: Branch) -> dict[str, bytes]:
    """Give a branch heads of its own, unless it has them or begins empty, so that it can be written.

    Returns:
        The ids of what was erased since the commit that it continues, with their versions: the next commit states that
        they are gone.

    Cost:
        Once, that of its records in few statements.
    """
    base = transaction.base(branch)
    if base is None or base.own_heads:
        return {}
    return transaction.take_heads(branch)


def parents_of(view: View, branch: Branch, head: Head) -> tuple[Parent, ...]:
    """Return the parents of the next commit of a branch that does not begin with the memory.

    Args:
        head: The newest commit of the branch.
    """
    if not head.seq:
        return ()
    base = view.base(branch)
    if base is None or head.seq > base.seq:
        return ((branch.name, head.seq),)
    if branch.is_reserved:  # the commit of the memory that states it binds the hashes
        return ((base.branch.name, head.seq),)
    return ((base.branch.name, head.seq, next(iter(view.entries(branch, head.seq - 1)))),)


def line_of(view: View, branch: Branch) -> Iterator[Branch]:
    """Yield a branch, the one that it continues, and so on."""
    following: Branch | None = branch
    while following is not None:
        yield following
        base = view.base(following)
        following = None if base is None else base.branch


def remove(transaction: Transaction, branch: Branch) -> None:
    """Remove a branch of a memory with all its parts. No other one continues it."""
    for part in branch.family:
        base = transaction.base(part)
        if base is None:
            continue
        transaction.remove(part, _own_pages(transaction, part, base.seq) if base.own_heads else [])
        release(transaction, base.branch, base.seq)


def _own_pages(view: View, branch: Branch, begins: int) -> list[int]:
    """Return the pages that only the roots of a branch have."""
    stored, root = view.stored_root(branch, begins)
    # What it shares with the root that it continues has lower numbers. It shares nothing if that has no pages.
    above, walk = root.page if stored == begins else 0, Walk(view.node)
    pages: set[int] = set()
    seq, newest = begins, view.head(branch).seq
    while seq < newest:
        seq, root = view.stored_root(branch, seq + 1, newer=True)
        pages.update(walk.pages_only_in(root, Root(), above))
    return sorted(pages)
