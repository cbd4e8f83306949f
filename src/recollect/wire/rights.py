"""What a client needs to be allowed, for each operation: to read, to write, or to administer."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from recollect.operations import At, ExecuteBatch, Operation
from recollect.operations.base import REGISTRY

#: From the least to the greatest: each includes those before it.
Right: TypeAlias = Literal["read", "write", "admin"]
RIGHTS: tuple[Right, ...] = get_args(Right)
READ, WRITE, ADMIN = RIGHTS

#: The operations that read one namespace.
_READS = frozenset(
    "annotate_terms at changes count diff entities entity export find find_similar get get_policies get_quota grep "
    "head history namespaces neighbours now paths pin prove prove_log read_tree recall recall_sdrs recall_terms "
    "receipt replay shared_names snapshots stats valid_until vector_stats wait zone".split()
)
#: Those that change its records or mark a moment.
_WRITES = frozenset(
    "add_messages batch clear drop_snapshot embed_all forget forget_where merge remember remember_all revert rollback "
    "snapshot supersede sweep update".split()
)
#: Those that change what everybody must obey, remove for ever, or concern the whole store or the server's machine.
_ADMINISTERS = frozenset("backup check compact erase probe set_policies set_quota".split())
#: Those that concern all namespaces of the store, and so need a grant of all.
_OF_THE_STORE = frozenset("backup check compact probe".split())
_NEEDED: dict[str, Right] = {
    **dict.fromkeys(_READS, READ),
    **dict.fromkeys(_WRITES, WRITE),
    **dict.fromkeys(_ADMINISTERS, ADMIN),
}


def right_of(operation: Operation) -> Right:
    """Return the right that an operation needs; of a batch, the greatest of its parts, and at least to write.

    An operation that is not listed, such as one of another package, needs the greatest right.
    """
    if isinstance(operation, At):
        return right_of(operation.operation)
    needed = _NEEDED.get(operation.name, ADMIN)
    if isinstance(operation, ExecuteBatch):
        return max((needed, *map(right_of, operation.operations)), key=RIGHTS.index)
    return needed


def reads(name: str) -> bool:
    """Return whether what has a name only reads: any but an operation that writes or administers, and "store"."""
    return _NEEDED.get(name, READ) == READ and name != "store"


def concerns_all(operation: Operation) -> bool:
    """Return whether an operation, or one that is a part of it, concerns all namespaces of the store."""
    if isinstance(operation, At):
        return concerns_all(operation.operation)
    if isinstance(operation, ExecuteBatch):
        return any(map(concerns_all, operation.operations))
    return operation.name in _OF_THE_STORE


def can_have_key(operation: Operation) -> bool:
    """Return whether an operation can have an idempotency key: it is a batch, or writes and can be part of one."""
    return isinstance(operation, ExecuteBatch) or (operation.in_batch and right_of(operation) == WRITE)


def unlisted() -> set[str]:
    """Return the names of operations that no list has, and those of lists that are no operation. For a test."""
    return set(_NEEDED) ^ set(REGISTRY)
