"""How the log of a memory follows its other parts.

What a facet keeps has a log of its own. Each commit to it is followed, in the same transaction, by a commit to the log
of the memory that changes no record and states the new heads of all parts. So the log of the memory has an order of
everything, one number names a state of all parts, and one root covers them.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.ledger.commits import RESERVED, Branch, Commit
from recollect.ledger.entries import entry_hash
from recollect.ledger.parts import PartHead
from recollect.stores.base import Transaction, View
from recollect.stores.branches import parents_of
from recollect.stores.roots import newest_trie


def parts_of(view: View, memory: Branch) -> tuple[PartHead, ...]:
    """Return the newest commits of the parts of a memory besides its records, by name.

    Cost:
        None if the newest commit states them, as each does that was written in format 4; otherwise O(log n) for each.
    """
    head = view.head(memory)
    return newest_parts(view, memory) if head.parts is None or not head.seq else head.parts


def newest_parts(view: View, memory: Branch) -> tuple[PartHead, ...]:
    """Return the newest commits of the parts of a memory as their own logs have them."""
    return tuple(head for name in RESERVED if (head := _head_of(view, memory.reserved(name))) is not None)


def _head_of(view: View, part: Branch) -> PartHead | None:
    """Return the newest commit of a part; None if it has none."""
    head = view.head(part)
    if not head.seq:
        return None
    return PartHead(part.reserved_name, head.seq, head.root.hash, next(iter(view.entries(part, head.seq - 1))))


def parts_after(view: View, memory: Branch, commits: Sequence[Commit]) -> tuple[PartHead, ...]:
    """Return the newest commits of the parts of a memory besides its records, by name, after further ones.

    Args:
        commits: The newest commits of some parts, which the memory does not state yet.
    """
    parts = {each.name: each for each in parts_of(view, memory)}
    for each in commits:
        name = Branch(each.namespace, each.branch).reserved_name
        parts[name] = PartHead(name, each.seq, each.root.hash, each.entry)
    return tuple(parts[name] for name in sorted(parts))


def follow(transaction: Transaction, memory: Branch, commits: Sequence[Commit], key: bytes) -> Commit:
    """Append the commit to the log of a memory that states new commits of its parts.

    Args:
        commits: The commits, which the transaction has appended. They are later than the head of the memory.
        key: The store key.
    """
    micros = max(each.micros for each in commits)
    return state(transaction, memory, parts_after(transaction, memory, commits), micros, key)


def state(
    transaction: Transaction,
    memory: Branch,
    parts: tuple[PartHead, ...],
    micros: int,
    key: bytes,
    actor: str | None = None,
    reason: str | None = None,
) -> Commit:
    """Append a commit to the log of a memory that states the newest commits of its parts and changes no record."""
    head = transaction.head(memory)
    commit = Commit(
        namespace=memory.namespace,
        branch=memory.name,
        seq=head.seq + 1,
        parents=parents_of(transaction, memory, head),
        micros=micros,
        actor=actor,
        reason=reason,
        root=newest_trie(transaction, memory).update({}, transaction),
        changes=(),
        parts=parts,
    )
    object.__setattr__(commit, "entry", entry_hash(commit, key))  # safe: nothing else has seen it yet
    transaction.append(commit)
    return commit
