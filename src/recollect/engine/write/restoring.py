"""Rollback and revert: earlier versions become the live ones again, in a new commit. Nothing is lost.

No quota applies, and no expired record is removed: the commit does what its caller asked for, and nothing else. A
version whose payload was erased stays erased.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from recollect.engine.history_results import Restored
from recollect.engine.write.writer import Writer
from recollect.errors import UnknownTargetError
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import is_redacted
from recollect.records.record import Record
from recollect.stores.base import Transaction


def rollback(transaction: Transaction, writer: Writer, branch: Branch, seq: int, unreadable: Set[bytes]) -> Restored:
    """Restore the state after a commit. Versions that are `unreadable` are not restored, and listed.

    Raises:
        DamagedStoreError: Another version cannot be read.

    Cost:
        Proportional to the changes since.
    """
    head = transaction.head(branch)
    differing = transaction.net_changes(branch, seq, head.seq)
    versions = {each: before for each, (before, _) in differing.items()}
    return _restore(transaction, writer, branch, versions, unreadable)


def revert(transaction: Transaction, writer: Writer, branch: Branch, seq: int, unreadable: Set[bytes]) -> Restored:
    """Take back the changes of a commit, except of records that were changed later.

    Versions that are `unreadable` are not restored, and listed.

    Raises:
        UnknownTargetError: There is no such commit.
        DamagedStoreError: Another version cannot be read.
    """
    commit = next(transaction.commits(branch, seq - 1, 1), None)
    if commit is None:
        raise UnknownTargetError(seq, f"its commits have the numbers 1 to {transaction.head(branch).seq}")
    versions: dict[str, bytes | None] = {}
    conflicts = []
    current = transaction.versions_at(branch, [each.id for each in commit.changes], transaction.head(branch).seq)
    for change in commit.changes:
        if current[change.id] == change.after:
            versions[change.id] = change.before
        else:
            conflicts.append(change.id)
    return _restore(transaction, writer, branch, versions, unreadable, tuple(sorted(conflicts)))


def _restore(
    transaction: Transaction,
    writer: Writer,
    branch: Branch,
    versions: Mapping[str, bytes | None],
    unreadable: Set[bytes],
    conflicts: tuple[str, ...] = (),
) -> Restored:
    """Make these versions the live ones of their ids; None: the id is not live."""
    changed = 0
    erased: list[str] = []
    damaged: list[str] = []
    for record_id in sorted(versions):
        version = versions[record_id]
        record: Record | None = None
        if version in unreadable:
            damaged.append(record_id)
            continue  # what is live now stays
        if version is not None:
            payload = None if is_redacted(record_id) else transaction.payload(branch, version)
            if payload is None:
                erased.append(record_id)
            else:
                record = Record.load(payload)
        changed += writer.restore(record_id, record)
    return Restored(seq=0, changed=changed, conflicts=conflicts, erased=tuple(erased), damaged=tuple(damaged))
