"""Proofs as plain JSON: what a root or the head of a log commits to.

A proof states that a record is present in a version, that an id is absent, or that one log extends another. It is a
dictionary of texts, integers and lists, with hashes in lowercase hex. `ledger.verifying` verifies it, and
docs/proofs.md specifies it byte by byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from recollect.ledger.descent import Descent
from recollect.ledger.entries import LogEntry
from recollect.ledger.log_tree import head_of
from recollect.ledger.merkle import EMPTY, path_of

#: A proof: a dictionary that `json.dumps` writes.
Proof: TypeAlias = dict[str, Any]
#: The kinds of proofs, with the number of their form.
PRESENCE, ABSENCE, CONSISTENCY = (f"recollect/{name}/1" for name in ("presence", "absence", "consistency"))


def presence(
    record_id: str,
    root: bytes,
    descent: Descent,
    version: bytes,
    content: tuple[bytes, bytes] | None,
    log: Proof | None,
) -> Proof:
    """Return the proof that a record is present.

    Args:
        record_id: The id, as it is stored.
        root: The root.
        descent: The way to the leaf.
        version: The version.
        content: The salt and the payload of the version; None if the payload has been erased.
        log: The commit of the root in the log (`commit_in_log`), if any.
    """
    proof = {"proof": PRESENCE, **_place(record_id, root, descent), "version": version.hex()}
    if content is None:
        proof["erased"] = True
    else:
        proof |= {"salt": content[0].hex(), "payload": content[1].hex()}
    return proof if log is None else {**proof, "log": log}


def absence(record_id: str, root: bytes, descent: Descent, version: bytes | None, log: Proof | None) -> Proof:
    """Return the proof that an id is absent; `version` is that of the leaf where its path ends, if there is one."""
    leaf = None
    if descent.leaf is not None and version is not None:
        leaf = {"path": descent.leaf.path.hex(), "version": version.hex()}
    proof = {
        "proof": ABSENCE,
        **_place(record_id, root, descent),
        # Any id whose path ends there is absent. So that a proof is about one id, it states the path, too.
        "path": path_of(record_id).hex(),
        "leaf": leaf,
    }
    return proof if log is None else {**proof, "log": log}


def _place(record_id: str, root: bytes, descent: Descent) -> Proof:
    return {
        "id": record_id,
        "root": root.hex(),
        "levels": "".join("0" if each == EMPTY else "1" for each in descent.siblings),
        "siblings": [each.hex() for each in descent.siblings if each != EMPTY],
    }


def commit_in_log(entry: LogEntry, size: int, path: Sequence[bytes], head: bytes) -> Proof:
    """Return the part of a proof that shows the commit of its root in a log of `size` entries."""
    return {
        "seq": entry.seq,
        "parents": [list(parent) for parent in entry.parents],
        "time": entry.micros,
        "actor": None if entry.actor is None else entry.actor.hex(),
        "reason": None if entry.reason is None else entry.reason.hex(),
        "changes": entry.changes.hex(),
        "size": size,
        "path": [each.hex() for each in path],
        "head": head.hex(),
    }


def consistency(old: tuple[int, bytes], new: tuple[int, bytes], path: Sequence[bytes]) -> Proof:
    """Return the proof that a log extends another; each is the number of its entries and its tree hash."""
    old_log, new_log = (
        {"size": size, "hash": tree.hex(), "head": head_of(size, tree).hex()} for size, tree in (old, new)
    )
    return {"proof": CONSISTENCY, "old": old_log, "new": new_log, "path": [each.hex() for each in path]}
