"""The parts of a memory: its records, and what facets keep, each with a log and a root of its own.

One root covers them all: the Merkle tree of their names and roots. Each commit of a memory binds it, and the entries of
the newest commits of its parts. So the head of the memory's log covers the history of every part. A part that is empty
is left out, so that a memory whose outlines were all removed has the same root as one that never had any.
docs/proofs.md specifies the bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from recollect.ledger.log_tree import leaf_of, tree_of
from recollect.ledger.merkle import EMPTY
from recollect.records.codec import varint

#: The name of the part that has the records.
RECORDS = "records"
_PART, _MEMORY, _PARTS = (b"recollect." + name + b".1\0" for name in (b"part", b"memory", b"parts"))
_ONLY_PART, _ONE = _PART + bytes([len(RECORDS)]) + RECORDS.encode(), _MEMORY + (1).to_bytes(8, "big")
#: The bytes of a part that is stored, after its name: its seq, root and entry.
_SEQ_BYTES, _HASH_BYTES = 8, 32
_STORED_BYTES = _SEQ_BYTES + 2 * _HASH_BYTES
_sha256 = hashlib.sha256
_NO_PARTS = _sha256(_PARTS).digest()


class PartHead(NamedTuple):
    """The newest commit of a part.

    Attributes:
        name: The name of the part, one of `commits.RESERVED`.
        seq: The number of the commit in the log of the part.
        root: The root hash of the part after it.
        entry: Its hash in that log.
    """

    name: str
    seq: int
    root: bytes
    entry: bytes


def roots_of(records: bytes, parts: Iterable[PartHead]) -> dict[str, bytes]:
    """Return the roots of the parts that are not empty by name, and that of the records in any case."""
    return {RECORDS: records, **{each.name: each.root for each in parts if each.root != EMPTY}}


def memory_root(roots: Mapping[str, bytes]) -> bytes:
    """Return the root of a memory.

    Args:
        roots: The root of each part by its name (`roots_of`).
    """
    leaves = [leaf_of(_sha256(_PART + _prefixed(name) + roots[name]).digest()) for name in sorted(roots)]
    return _sha256(_MEMORY + len(leaves).to_bytes(_SEQ_BYTES, "big") + tree_of(leaves)).digest()


def stated_root(records: bytes, parts: Sequence[PartHead] | None) -> bytes:
    """Return the root that the entry of a commit binds: of the memory, or of the records if it states no parts."""
    if parts is None:
        return records
    if parts:
        return memory_root(roots_of(records, parts))
    only = _sha256(
        b"\0" + _sha256(_ONLY_PART + records).digest()
    ).digest()  # as below, with fewer calls: most have no parts
    return _sha256(_ONE + only).digest()


def parts_hash(parts: Sequence[PartHead]) -> bytes:
    """Return the hash of the newest commits of the parts, which the entry of a memory's commit binds."""
    if not parts:
        return _NO_PARTS
    written = [_PARTS]
    for name, seq, _, entry in parts:
        written += (_prefixed(name), seq.to_bytes(_SEQ_BYTES, "big"), entry)
    return _sha256(b"".join(written)).digest()


def encode_parts(parts: Iterable[PartHead]) -> bytes:
    """Return parts as bytes, for a store."""
    return b"".join(
        _prefixed(name) + seq.to_bytes(_SEQ_BYTES, "big") + root + entry for name, seq, root, entry in parts
    )


def decode_parts(raw: bytes) -> tuple[PartHead, ...]:
    """Return the parts that `encode_parts` has written.

    Raises:
        ValueError: The bytes are not those of parts.
    """
    out, at = [], 0
    while at < len(raw):
        length = raw[at]  # names are shorter than 128 bytes, so this is the whole varint
        name, at = raw[at + 1 : at + 1 + length].decode(), at + 1 + length
        rest, at = raw[at : at + _STORED_BYTES], at + _STORED_BYTES
        if len(rest) != _STORED_BYTES:
            raise ValueError("the parts of a commit are cut off")
        seq, root = int.from_bytes(rest[:_SEQ_BYTES], "big"), rest[_SEQ_BYTES : _SEQ_BYTES + _HASH_BYTES]
        out.append(PartHead(name, seq, root, rest[-_HASH_BYTES:]))
    return tuple(out)


def _prefixed(name: str) -> bytes:
    raw = name.encode()
    return varint(len(raw)) + raw
