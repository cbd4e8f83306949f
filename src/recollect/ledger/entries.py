"""The entry of a commit: the hash that stands for the commit in the log.

It covers the number, the parents, the time, the actor, the reason, the root and the changes. Ids are covered by their
paths, and actor and reason by commitments, so that these texts can be redacted without changing the entry.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from recollect.ledger.commits import Commit
from recollect.ledger.merkle import path_of
from recollect.records.codec import varint

_ENTRY, _CHANGES, _NOTE, _NOTE_SALT = (
    b"recollect." + name + b".1\0" for name in (b"entry", b"changes", b"note", b"note-salt")
)


def commitment(name: str, text: str, seq: int, micros: int, key: bytes) -> bytes:
    """Return the 32 bytes that stand for the actor or the reason of a commit in its entry.

    Args:
        name: "actor" or "reason".
        text: The actor or the reason.
        seq: The number of the commit.
        micros: Its time, in microseconds since 1970.
        key: The store key.
    """
    raw, label = text.encode("utf-8"), name.encode("ascii")
    facts = varint(len(label)) + label + seq.to_bytes(8, "big") + micros.to_bytes(8, "big", signed=True)
    salt = hmac.digest(key, _NOTE_SALT + facts + hashlib.sha256(raw).digest(), "sha256")
    return hashlib.sha256(_NOTE + salt + raw).digest()


def entry_hash(commit: Commit, key: bytes, redacted: Mapping[str, bytes] | None = None) -> bytes:
    """Return the 32-byte entry of a commit. Its field `entry` is ignored.

    Args:
        commit: The commit.
        key: The store key.
        redacted: The commitments that stand for a redacted actor or reason, by name.
    """
    changes = bytearray(_CHANGES)
    for record_id, before, after, cause in commit.changes:
        raw = cause.encode("utf-8")
        changes += path_of(record_id)
        changes += b"\0" if before is None else b"\1" + before
        changes += b"\0" if after is None else b"\1" + after
        changes += varint(len(raw)) + raw
    seq = commit.seq.to_bytes(8, "big")
    out = bytearray(_ENTRY + seq + varint(len(commit.parents)))
    for branch, parent in commit.parents:
        raw = branch.encode("utf-8")
        out += varint(len(raw)) + raw + parent.to_bytes(8, "big")
    out += commit.micros.to_bytes(8, "big", signed=True)
    for name, text in (("actor", commit.actor), ("reason", commit.reason)):
        digest = (redacted or {}).get(name)
        if digest is None and text is not None:
            digest = commitment(name, text, commit.seq, commit.micros, key)
        out += b"\0" if digest is None else b"\1" + digest
    return hashlib.sha256(bytes(out + commit.root.hash) + hashlib.sha256(changes).digest()).digest()
