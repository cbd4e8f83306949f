"""Commits written directly to a store, without the engine, for tests of stores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from recollect.ledger.commits import Branch, Change, Commit, Head, Snapshot, Stored
from recollect.ledger.entries import entry_hash
from recollect.ledger.merkle import Live, version_hash
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import Store, Transaction
from recollect.stores.roots import newest_trie
from recollect.testing.strategies import START

BRANCH = Branch("tenant")
OTHER = Branch("another tenant")
NOW = microseconds(START + timedelta(days=3))
EARLY = microseconds(START - timedelta(days=1))


def stored(record: Record, key: bytes) -> Stored:
    """A record in the form in which stores receive it."""
    payload = record.to_bytes()
    return Stored(version_hash(record.id, payload, key), payload)


def write(
    store: Store,
    puts: Iterable[Record] = (),
    drops: Iterable[str] = (),
    branch: Branch = BRANCH,
    reason: str | None = None,
) -> Commit:
    """Make one commit, as the engine would."""
    with store.write(branch) as transaction:
        return write_into(transaction, store.key, puts, drops, branch, reason)


def write_into(
    transaction: Transaction,
    key: bytes,
    puts: Iterable[Record],
    drops: Iterable[str] = (),
    branch: Branch = BRANCH,
    reason: str | None = None,
    drop_cause: str = "forgotten",
) -> Commit:
    """Make one commit inside a transaction."""
    changes: dict[str, Change] = {}
    live: dict[str, Live | None] = {}
    for record in puts:
        current = transaction.get(branch, record.id)
        version = stored(record, key)
        before = changes[record.id].before if record.id in changes else current and current.version
        changes[record.id] = Change(record.id, before, version.version, "written")
        live[record.id] = Live(version.version, transaction.put(branch, record, version))
    for record_id in drops:
        current = transaction.get(branch, record_id)
        assert current is not None
        changes[record_id] = Change(record_id, current.version, None, drop_cause)
        transaction.drop(branch, record_id)
        live[record_id] = None
    head = transaction.head(branch)
    trie = newest_trie(transaction, branch)
    commit = Commit(
        namespace=branch.namespace,
        branch=branch.name,
        seq=head.seq + 1,
        parents=((branch.name, head.seq),) if head.seq else (),
        micros=max(EARLY, head.micros + 1),
        actor="tester",
        reason=reason,
        root=trie.update(live, transaction),
        changes=tuple(changes.values()),
    )
    commit = replace(commit, entry=entry_hash(commit, key))
    transaction.append(commit, trie.replaced)
    return commit


def snapshot(number: int, head: Head, name: str | None = None) -> Snapshot:
    return Snapshot(number=number, name=name, seq=head.seq, root=head.root.hash.hex(), micros=EARLY)


def note(record_id: str, content: str = "text", **fields: object) -> Record:
    return Record(id=record_id, content=content, **fields)  # type: ignore[arg-type]
