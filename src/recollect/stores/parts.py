"""How the log of a memory follows its other parts.

What a facet keeps has a log of its own. Each commit to it is followed, in the same transaction, by a commit to the log
of the memory that changes no record and states the new heads of all parts. So the log of the memory has an order of
everything, one number names a state of all parts, and one root covers them.
"""

from __future__ import annotations

from recollect.ledger.commits import RESERVED, Branch, Commit
from recollect.ledger.entries import entry_hash
from recollect.ledger.parts import PartHead
from recollect.stores.base import Transaction, View


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


def follow(transaction: Transaction, part: Commit, key: bytes) -> Commit:
    """Append the commit to the log of a memory that states a new commit of one of its parts.

    Args:
        part: The commit, which the transaction has appended. It is later than the head of the memory.
        key: The store key.
    """
    branch = Branch(part.namespace, part.branch)
    new = PartHead(branch.reserved_name, part.seq, part.root.hash, part.entry)
    parts = {each.name: each for each in parts_of(transaction, branch.owner)} | {new.name: new}
    return state(transaction, branch.owner, tuple(parts[name] for name in sorted(parts)), part.micros, key)


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
        parents=((memory.name, head.seq),) if head.seq else (),
        micros=micros,
        actor=actor,
        reason=reason,
        root=head.root,
        changes=(),
        parts=parts,
    )
    object.__setattr__(commit, "entry", entry_hash(commit, key))  # safe: nothing else has seen it yet
    transaction.append(commit)
    return commit
