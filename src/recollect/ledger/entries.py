"""Log entries: one hash for each commit, over everything that the commit states.

An entry binds the number, parents, time, actor, reason, root and changes of its commit, and its hash is a leaf of the
log (`ledger.log_tree`). In its second version, it also binds the other parts of the memory (`ledger.parts`). Actor and
reason enter as salted commitments. So both can be redacted later, and a proof need not show them: with a private store
key, a commitment cannot be confirmed by guessing. docs/proofs.md specifies the bytes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recollect.ledger.commits import CAUSES, Change, Commit, Parent
from recollect.ledger.merkle import PUBLIC_KEY, keyed_hash, path_in_log
from recollect.ledger.parts import parts_hash
from recollect.records.codec import varint

_ENTRY, _ENTRY_2, _CHANGES, _NOTE, _NOTE_SALT = (
    b"recollect." + name + b"\0" for name in (b"entry.1", b"entry.2", b"changes.1", b"note.1", b"note-salt.1")
)
#: A seq; and a seq with a time in microseconds since 1970, which may be negative.
_SEQ, _SEQ_AND_TIME = struct.Struct(">Q"), struct.Struct(">Qq")
#: Before a hash that is present, and in place of one that is not.
_PRESENT, _ABSENT = b"\1", b"\0"
_sha256 = hashlib.sha256


def _prefixed(raw: bytes) -> bytes:
    """Return bytes after their length."""
    return varint(len(raw)) + raw


_CAUSE = {cause: _prefixed(cause.encode()) for cause in CAUSES}


class LogEntry(NamedTuple):
    """The contents that the hash of a log entry covers.

    Attributes:
        seq: The number of the commit.
        parents: (branch, seq) of its parents; in version 2, optionally also the entry of the parent.
        micros: Its time, in microseconds since 1970.
        actor: The commitment to its actor, 32 bytes; None if it has none.
        reason: The commitment to its reason, 32 bytes; None if it has none.
        root: The root hash after it: in version 2 that of the memory (`parts.memory_root`).
        changes: The hash of its changes.
        parts: The hash of the newest commits of the parts (`parts.parts_hash`); None in version 1.
    """

    seq: int
    parents: tuple[Parent, ...]
    micros: int
    actor: bytes | None
    reason: bytes | None
    root: bytes
    changes: bytes
    parts: bytes | None = None

    def hash(self) -> bytes:
        """Return the hash of the entry."""
        seq, parents, micros, actor, reason, root, changes, parts = self
        written = [_ENTRY if parts is None else _ENTRY_2, _SEQ.pack(seq), varint(len(parents))]
        for branch, parent, *entry in parents:
            written += (_prefixed(branch.encode("utf-8")), _SEQ.pack(parent))
            if parts is not None:
                written += (_PRESENT, *entry) if entry else (_ABSENT,)
        written += (
            micros.to_bytes(8, "big", signed=True),
            _ABSENT if actor is None else _PRESENT + actor,
            _ABSENT if reason is None else _PRESENT + reason,
            root,
            changes,
            parts or b"",
        )
        return _sha256(b"".join(written)).digest()


def entry_of(commit: Commit, key: bytes = PUBLIC_KEY, redacted: Mapping[str, bytes] | None = None) -> LogEntry:
    """Return the log entry of a commit.

    Args:
        key: The store key, from which the salts of actor and reason are derived.
        redacted: The commitments that stand for a redacted "actor" or "reason", which the commit does not have any
            more.
    """
    actor, reason = commit.actor, commit.reason
    committed = redacted or {}
    return LogEntry(
        commit.seq,
        commit.parents,
        commit.micros,
        committed.get("actor") if actor is None else note_hash("actor", actor, commit.seq, commit.micros, key),
        committed.get("reason") if reason is None else note_hash("reason", reason, commit.seq, commit.micros, key),
        commit.memory_root,
        changes_hash(commit.changes),
        None if commit.parts is None else parts_hash(commit.parts),
    )


def entry_hash(commit: Commit, key: bytes = PUBLIC_KEY, redacted: Mapping[str, bytes] | None = None) -> bytes:
    """Return the hash of the log entry of a commit. See `entry_of`.

    Cost:
        About 4 us for a commit with one change, and 2 us more for each of actor and reason.
    """
    return entry_of(commit, key, redacted).hash()


def changes_hash(changes: Sequence[Change]) -> bytes:
    """Return the hash of the changes of a commit, in their order. A redacted id gives the same hash as the id."""
    written = [_CHANGES]
    for record_id, before, after, cause in changes:
        written += (
            path_in_log(record_id),
            _ABSENT if before is None else _PRESENT + before,
            _ABSENT if after is None else _PRESENT + after,
            _CAUSE.get(cause) or _prefixed(cause.encode("utf-8")),
        )
    return _sha256(b"".join(written)).digest()


def note_hashes(commit: Commit, key: bytes = PUBLIC_KEY) -> dict[str, bytes]:
    """Return the commitments to the "actor" and the "reason" of a commit, those that it has."""
    notes = {"actor": commit.actor, "reason": commit.reason}
    return {
        name: note_hash(name, text, commit.seq, commit.micros, key) for name, text in notes.items() if text is not None
    }


def note_hash(name: str, text: str, seq: int, micros: int, key: bytes = PUBLIC_KEY) -> bytes:
    """Return the commitment to the "actor" or the "reason" of the commit with this seq and time."""
    raw = text.encode("utf-8")
    salted = _NOTE_SALT + _prefixed(name.encode()) + _SEQ_AND_TIME.pack(seq, micros) + _sha256(raw).digest()
    return _sha256(_NOTE + keyed_hash(key, salted) + raw).digest()
