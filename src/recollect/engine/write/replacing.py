"""Writes that put records in the place of others: supersede, merge, rollback and revert.

Supersession: a new fact replaces an old one from a time on. Both stay, and their validities meet at that time.

The new record takes over the fields of the old one that the caller does not pass, except those that belong to its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from recollect.engine.family import kept_kinds
from recollect.engine.history_results import Restored
from recollect.engine.results import Outcome
from recollect.engine.scope import Scope
from recollect.engine.write.drafts import Intake, draft
from recollect.engine.write.writer import Writer
from recollect.errors import InvalidArgumentError, ValidityError
from recollect.filters.tree import ValidAt
from recollect.ledger.commits import Branch, Commit
from recollect.ledger.merkle import is_redacted
from recollect.operations import Merge, Remember, Supersede
from recollect.records.identity import same_text
from recollect.records.record import FIELD_NAMES, Record
from recollect.stores.base import Transaction
from recollect.text.manner import WISHES

#: The fields that belong to a text: when and where it was said, when it is true, and where it came from.
_OF_THE_TEXT = frozenset(
    "id content media_type position time valid_from valid_to supersedes derived_from origin".split()
)


def supersede(operation: Supersede, writer: Writer, scope: Scope, now: datetime, intake: Intake) -> Outcome:
    """Store the new record and close the validity of the old one.

    If the second write is refused, the first one is staged already, so the transaction must not be committed.

    Raises:
        UnknownRecordError: There is no live record with this id.
        ValidityError: The old record is not valid at that time.
        InvalidArgumentError: It has the same text.
        InvalidRecordError: The new record would be invalid.
        ScopeError: The new record would lie outside the scope.
        QuotaError: The records do not fit in the quota.
        RejectedError: The policies of the namespace do not allow the text.
    """
    existing = writer.find(operation.id)
    at = now if operation.at is None else operation.at
    if not ValidAt(at).matches(existing):
        ends = [None if end is None else end.isoformat() for end in (existing.valid_from, existing.valid_to)]
        raise ValidityError(operation.id, at.isoformat(), *ends)
    shown = scope.shown(existing)
    fields: dict[str, Any] = {
        **{name: getattr(shown, name) for name in FIELD_NAMES if name not in _OF_THE_TEXT},
        "tags": [tag for tag in shown.tags if tag not in WISHES],  # these follow from the text
        **operation.fields,
        "valid_from": at,
        "supersedes": (shown.id,),
    }
    new = draft(Remember(content=operation.content, fields=fields), scope, now, intake)
    if same_text(new.record, existing):
        raise InvalidArgumentError(
            "content", operation.content, f"is the text of record {operation.id!r} already: change fields with update()"
        )
    return writer.replace(existing, writer.admitted(new), at)


# Merging: one new record takes the place of several, from which it derives.
#
# The new record is stored and the others go, with the cause "superseded", in one commit. Each of them must be as the
# caller saw it: what another writer changed meanwhile would otherwise be lost.


def merge(operation: Merge, writer: Writer, scope: Scope, now: datetime, intake: Intake) -> Outcome:
    """Store the new record and remove its sources.

    If storing is refused, sources are removed already, so the transaction must not be committed.

    Raises:
        ConflictError: A source has another hash than expected.
        UnknownRecordError: There is no live record with one of the ids.
        InvalidRecordError: The new record would be invalid.
        ScopeError: The new record would lie outside the scope.
        QuotaError: The new record does not fit in the quota.
        RejectedError: The policies of the namespace do not allow the text.
    """
    sources = [writer.find(record_id, expected) for record_id, expected in operation.sources.items()]
    fields = {**operation.fields, "derived_from": tuple(operation.sources)}
    new = draft(Remember(content=operation.content, fields=fields), scope, now, intake)
    return writer.merge(sources, writer.admitted(new))


# Rollback and revert: earlier versions become the live ones again, in a new commit. Nothing is lost.
#
# No quota applies, and no expired record is removed: the commit does what its caller asked for, and nothing else. A
# version whose payload was erased stays erased.


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


def revert(
    transaction: Transaction, writer: Writer, branch: Branch, commit: Commit, unreadable: Set[bytes]
) -> Restored:
    """Take back the changes of a commit, except of records that were changed later.

    Versions that are `unreadable` are not restored, and listed.

    Raises:
        DamagedStoreError: Another version cannot be read.
    """
    versions: dict[str, bytes | None] = {}
    conflicts = []
    current = transaction.versions_at(branch, [each.id for each in commit.changes], transaction.head(branch).seq)
    for change in commit.changes:
        if change.before == change.after:
            continue
        if current[change.id] == change.after:
            versions[change.id] = change.before
        else:
            conflicts.append(change.id)
    return _restore(transaction, writer, branch, versions, unreadable, conflicts)


def _restore(
    transaction: Transaction,
    writer: Writer,
    branch: Branch,
    versions: Mapping[str, bytes | None],
    unreadable: Set[bytes],
    conflicts: Sequence[str] = (),
) -> Restored:
    """Make these versions the live ones of their ids; None: the id is not live. What a facet keeps always stays."""
    kept = kept_kinds(branch)
    writer.check_restoring(len(versions))
    refused = list(conflicts)
    changed = 0
    erased: list[str] = []
    damaged: list[str] = []
    for record_id in sorted(versions):
        version = versions[record_id]
        record: Record | None = None
        # It may be corrupt, and is then replaced unread, which only the user and the owner may do.
        stored = transaction.get(branch, record_id) if kept or not writer.speaks_for_the_user else None
        live = None if stored is None else Record.load(stored.payload)
        if kept and live is not None and live.kind in kept:
            continue
        if version in unreadable:
            damaged.append(record_id)
            continue  # what is live now stays
        if version is not None:
            payload = None if is_redacted(record_id) else transaction.payload(branch, version)
            if payload is None:
                erased.append(record_id)
                if _is_thinned(transaction, branch, version):
                    continue  # what is live now stays: no one has asked to remove it
            else:
                record = Record.load(payload)
        if (live and not writer.may_change(live)) or (record and not writer.may_make(record)):
            refused.append(record_id)
            continue  # it is, or would be again, of a higher class than the writer
        changed += writer.restore(record_id, record)
    refused.sort()
    return Restored(seq=0, changed=changed, conflicts=tuple(refused), erased=tuple(erased), damaged=tuple(damaged))


def _is_thinned(transaction: Transaction, branch: Branch, version: bytes) -> bool:
    """Return whether a version has lost its text because it was a former one for long enough."""
    removed = transaction.removed(branch, [version]).get(version)
    return removed is not None and removed.cause == "thinned"
