"""The verification of proofs (`ledger.proofs`), with nothing but the root or head that the verifier trusts.

Verification is strict: each statement has one form, and any other is refused. Keys are neither missing nor unknown,
empty siblings are left out, and everything in a proof, the number of entries of the log included, is bound by its
hashes. Whatever the proof is, it is refused in time linear in its size. docs/proofs.md specifies all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from recollect.arguments.signatures import named
from recollect.errors import InvalidArgumentError
from recollect.ledger.entries import LogEntry
from recollect.ledger.log_tree import EMPTY_TREE, head_of, leaf_of, tree_of_inclusion, trees_of_consistency
from recollect.ledger.merkle import EMPTY, leaf_hash_at, node_hash, path_of, salted_version
from recollect.ledger.parts import RECORDS, memory_root
from recollect.ledger.proofs import ABSENCE, ABSENCE_2, CONSISTENCY, MERGE, PRESENCE, PRESENCE_2, Proof
from recollect.records.codec import varint

#: A trusted root of a namespace or head of a log, in hex or as bytes, or the old and the new head.
Trusted: TypeAlias = str | bytes | Sequence[str | bytes]

_COMMON = frozenset(("proof", "id", "root", "levels", "siblings"))
_INTACT_KEYS = _COMMON | {"version", "salt", "payload"}
_ERASED_KEYS = _COMMON | {"version", "erased"}
_ABSENCE_KEYS = _COMMON | {"path", "leaf"}
_PART_KEYS = frozenset(("part", "parts"))
_LOG_KEYS = ("seq", "parents", "time", "actor", "reason", "changes", "size", "path", "head")
_CONSISTENCY_KEYS = frozenset(("proof", "old", "new", "path"))
_MERGE_KEYS = frozenset(("proof", "merge", "merged"))
_RULE = "must be a root or the head of a log, as 64 lowercase hex digits or 32 bytes, or a pair (old, new) of heads"
_MAX_LEVELS = 256
_MAX_SEQ = 2**63 - 1
#: The first bytes of a payload: the number of the field `id`, and the type of a text.
_ID_FIELD = b"\1\1"


@named
def verify(proof: object, root: Trusted) -> bool:
    """Return whether a proof proves what it states.

    A proof of presence (`memory.prove`) states that the record `proof["id"]` is live in the version `proof["version"]`,
    whose canonical bytes are `proof["payload"]` unless they have been erased; a proof of absence, that no record has
    the id `proof["id"]`. Both are relative to a root of the namespace, or to the head of a log that contains the commit
    `proof["log"]["seq"]`. A proof of consistency (`memory.prove_log`) states that the log with the new head begins with
    the entries of the log with the old head. A proof of a merge (`memory.prove_merge`) states that the commit
    `proof["merge"]["log"]["seq"]` merges the commit `proof["merged"]["log"]["seq"]` of another branch.

    Args:
        proof: The proof: any value that was read from JSON.
        root: What the verifier trusts: a root (`memory.root`) or the head of a log (`memory.head().log`), as 64
            lowercase hex digits or 32 bytes. For a proof of consistency, the new head, so that it extends
            `proof["old"]["head"]`, or a pair of the old and the new head. For one of a merge, the head of the log that
            has the merge, or a pair of that of the branch that was merged and of that.

    Returns:
        True if it is proved. False otherwise, whatever the proof is.

    Raises:
        InvalidArgumentError: `root` is not a root or head, nor a pair of them.

    Cost:
        Linear in the size of the proof.
    """
    trusted = _trusted(root)
    if type(proof) is not dict or type(kind := proof.get("proof")) is not str:
        return False
    try:
        if kind == CONSISTENCY:
            return _verify_consistency(proof, trusted)
        if kind == MERGE:
            return _verify_merge(proof, trusted)
        if kind in (PRESENCE, ABSENCE, PRESENCE_2, ABSENCE_2):
            present = kind in (PRESENCE, PRESENCE_2)
            return _verify_record(proof, trusted, present=present, of_part=kind in (PRESENCE_2, ABSENCE_2))
    except ValueError:  # a part does not have its form
        pass
    return False


def _trusted(root: Trusted) -> tuple[bytes, ...]:
    """Return a trusted root or head, or the two of a pair. Raise InvalidArgumentError if it is neither."""
    values = tuple(root) if isinstance(root, (list, tuple)) else (root,)
    out = []
    for each in values:
        try:
            out.append(each if isinstance(each, bytes) else _hash(each))
        except ValueError:
            break
    if len(out) != len(values) or not 1 <= len(out) <= 2 or any(len(each) != 32 for each in out):
        raise InvalidArgumentError("root", root, _RULE)
    return tuple(out)


def _verify_record(proof: Proof, trusted: tuple[bytes, ...], *, present: bool, of_part: bool) -> bool:
    keys = frozenset(proof) - {"log"}
    if of_part:
        if not keys >= _PART_KEYS:
            return False
        keys -= _PART_KEYS
    if keys not in ((_INTACT_KEYS, _ERASED_KEYS) if present else (_ABSENCE_KEYS,)):
        return False
    record_id, root, siblings = _text(proof["id"]), _hash(proof["root"]), _siblings(proof)
    path = path_of(record_id)
    if present:
        version = _hash(proof["version"])
        if "erased" in keys:
            bound = proof["erased"] is True
        else:
            salt, payload = _hash(proof["salt"]), _bytes(proof["payload"])
            raw = record_id.encode("utf-8")
            has_id = payload.startswith(_ID_FIELD + varint(len(raw)) + raw)
            bound = has_id and salted_version(salt, payload) == version
        end = leaf_hash_at(path, version)
    else:
        bound, end = _hash(proof["path"]) == path, EMPTY
        if proof["leaf"] is not None:
            other, version = (_hash(each) for each in _parts(proof["leaf"], ("path", "version")))
            # The leaf of another id, which would not be the only one here if there were one of this id.
            bound = bound and other != path and _same_bits(other, path, len(siblings))
            end = leaf_hash_at(other, version)
    if not bound or _fold(end, path, siblings) != root:
        return False
    anchors = {root}
    if of_part:
        whole = _root_of_memory(proof, root)
        if whole is None:
            return False
        anchors.add(root := whole)
    if "log" in proof:
        found = _in_log(proof["log"], root, of_part=of_part)
        if found is None:
            return False
        anchors.add(found.head)
    return len(trusted) == 1 and trusted[0] in anchors


def _root_of_memory(proof: Proof, root: bytes) -> bytes | None:
    """Return the root of the memory in which a proof shows the root of its part; None if it does not show that."""
    part, parts = _text(proof["part"]), proof["parts"]
    if type(parts) is not dict:
        raise ValueError("not an object")
    roots = {_text(name): _hash(each) for name, each in parts.items()}
    if RECORDS not in roots or any(each == EMPTY for name, each in roots.items() if name != RECORDS):
        return None  # a part that is empty is left out, but the records are not
    return memory_root(roots) if roots.get(part) == root else None


def _siblings(proof: Proof) -> list[bytes]:
    """Return the siblings of a proof, from the root down, the empty ones included."""
    levels = _text(proof["levels"])
    present = iter(_hashes(proof["siblings"]))
    if len(levels) > _MAX_LEVELS or levels.strip("01") or levels.endswith("0"):
        raise ValueError("the levels are not those of a path")  # a leaf whose sibling is empty is pulled up
    siblings = [EMPTY if each == "0" else next(present, EMPTY) for each in levels]
    if next(present, None) is not None or siblings.count(EMPTY) != levels.count("0"):
        raise ValueError("the siblings do not match the levels")
    return siblings


def _fold(node: bytes, path: bytes, siblings: Sequence[bytes]) -> bytes:
    """Return the root above a node at the end of a path."""
    for level in range(len(siblings) - 1, -1, -1):
        one = path[level >> 3] >> (7 - (level & 7)) & 1
        node = node_hash(siblings[level], node) if one else node_hash(node, siblings[level])
    return node


def _same_bits(one: bytes, other: bytes, count: int) -> bool:
    """Return whether two paths have the same first bits."""
    return (int.from_bytes(one) ^ int.from_bytes(other)) >> (_MAX_LEVELS - count) == 0


class _InLog(NamedTuple):
    """A commit that a proof shows in a log.

    Attributes:
        entry: Its entry.
        head: The head of the log.
    """

    entry: LogEntry
    head: bytes


def _in_log(log: object, root: bytes, *, of_part: bool) -> _InLog | None:
    """Return the commit with a root that a proof shows in a log; None if it does not show that."""
    keys = (*_LOG_KEYS, "parts") if of_part else _LOG_KEYS
    seq, parents, time, actor, reason, changes, size, path, stated, *history = _parts(log, keys)
    entry = LogEntry(
        _integer(seq, 1),
        tuple(_parent(each, with_entry=of_part) for each in _list(parents)),
        _integer(time, -(2**63)),
        None if actor is None else _hash(actor),
        None if reason is None else _hash(reason),
        root,
        _hash(changes),
        _hash(history[0]) if of_part else None,
    )
    tree = tree_of_inclusion(leaf_of(entry.hash()), entry.seq - 1, _integer(size, 1), _hashes(path))
    if tree is None or (head := head_of(size, tree)) != _hash(stated):
        return None
    return _InLog(entry, head)


def _verify_merge(proof: Proof, trusted: tuple[bytes, ...]) -> bool:
    if proof.keys() != _MERGE_KEYS:
        return False
    root, log = _parts(proof["merge"], ("root", "log"))
    branch, other_root, other_log = _parts(proof["merged"], ("branch", "root", "log"))
    merge = _in_log(log, _hash(root), of_part=True)
    merged = _in_log(other_log, _hash(other_root), of_part=True)
    if merge is None or merged is None:
        return False
    parent = (_text(branch), merged.entry.seq, merged.entry.hash())
    # The first parent is the commit before: of the same branch, or of the one that it continues.
    return parent in merge.entry.parents[1:] and trusted in ((merge.head,), (merged.head, merge.head))


def _verify_consistency(proof: Proof, trusted: tuple[bytes, ...]) -> bool:
    if proof.keys() != _CONSISTENCY_KEYS:
        return False
    heads, logs = [], []
    for name in ("old", "new"):
        size, tree, head = _parts(proof[name], ("size", "hash", "head"))
        logs.append((_integer(size, 0), _hash(tree)))
        heads.append(head_of(*logs[-1]))
        if heads[-1] != _hash(head):
            return False
    (old, old_tree), (new, new_tree) = logs
    path = _hashes(proof["path"])
    if old == new:
        shown = not path and old_tree == new_tree
    elif not old:
        shown = not path and old_tree == EMPTY_TREE
    else:
        shown = trees_of_consistency(old, new, old_tree, path) == (old_tree, new_tree)
    return shown and tuple(heads[-len(trusted) :]) == trusted


# The parts of a proof. Each function raises ValueError for a value that does not have the form.


def _parts(value: object, names: Sequence[str]) -> list[Any]:
    if type(value) is not dict or value.keys() != set(names):
        raise ValueError("not an object with these keys")
    return [value[name] for name in names]


def _list(value: object) -> list[Any]:
    if type(value) is not list:
        raise ValueError("not a list")
    return value


def _parent(value: object, *, with_entry: bool) -> tuple[str, int] | tuple[str, int, bytes]:
    parent = _list(value)
    if len(parent) != 2 and not (with_entry and len(parent) == 3):
        raise ValueError("not a parent")
    branch, seq = _text(parent[0]), _integer(parent[1], 0)
    return (branch, seq) if len(parent) == 2 else (branch, seq, _hash(parent[2]))


def _integer(value: object, least: int) -> int:
    if type(value) is not int or not least <= value <= _MAX_SEQ:
        raise ValueError("not an integer in the range")
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise ValueError("not a text")
    return value


def _bytes(value: object) -> bytes:
    raw = bytes.fromhex(text := _text(value))
    if raw.hex() != text:
        raise ValueError("not in lowercase hex")
    return raw


def _hash(value: object) -> bytes:
    if len(raw := _bytes(value)) != 32:
        raise ValueError("not a hash")
    return raw


def _hashes(value: object) -> list[bytes]:
    return [_hash(each) for each in _list(value)]
