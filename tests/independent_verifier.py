"""A verifier of proofs that was written from docs/proofs.md alone. It imports nothing of the package.

`python independent_verifier.py TRUSTED [NEW_HEAD] < PROOF.json` exits with 0 if it is proved, and with 1 if it is not.
"""

import json
import sys
from hashlib import sha256
from typing import Any

KEYS = {"proof", "id", "root", "levels", "siblings"}


def demand(condition: object) -> None:
    if not condition:
        raise ValueError("not proved")


def H(name: bytes, *content: bytes) -> bytes:  # noqa: N802 - its name in the specification
    return sha256(b"recollect." + name + b".1\0" + b"".join(content)).digest()


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + varint(number // 128)


def octets(value: Any, digits: int | None = None) -> bytes:
    demand(type(value) is str and set(value) <= set("0123456789abcdef") and digits in (None, len(value)))
    return bytes.fromhex(value)


def hashes(value: Any) -> list[bytes]:
    demand(type(value) is list)
    return [octets(each, 64) for each in value]


def integer(value: Any, least: int = 0) -> bytes:
    demand(type(value) is int and least <= value < 2**63)
    return int.to_bytes(value, 8, "big", signed=True)


def text(value: Any) -> bytes:
    demand(type(value) is str)
    raw: bytes = value.encode("utf-8")
    return varint(len(raw)) + raw


def fields(value: Any, *names: str) -> list[Any]:
    demand(type(value) is dict and set(value) == set(names))
    return [value[name] for name in names]


def leaf_of(path: bytes, version: bytes) -> bytes:
    return sha256(b"recollect.leaf.2\0" + path + version).digest()


# The loop of RFC 9162, over one node (inclusion) or over the old and the new one (consistency).
def climb(nodes: list[bytes], path: list[bytes], f: int, s: int) -> list[bytes]:
    for sibling in path:
        demand(s)
        if f % 2 or f == s:
            nodes = [sha256(b"\1" + sibling + node).digest() for node in nodes]
            while f % 2 == 0 and f:
                f, s = f // 2, s // 2
        else:
            nodes = [*nodes[:-1], sha256(b"\1" + nodes[-1] + sibling).digest()]
        f, s = f // 2, s // 2
    demand(s == 0)
    return nodes


def head_of_log(log: Any, root: bytes) -> bytes:
    names = "seq parents time actor reason changes size path head"
    seq, parents, time, actor, reason, changes, size, path, head = fields(log, *names.split())
    demand(type(parents) is list and all(type(each) is list and len(each) == 2 for each in parents))
    content = integer(seq, 1) + varint(len(parents))
    content += b"".join(text(branch) + integer(number) for branch, number in parents) + integer(time, -(2**63))
    for note in (actor, reason):
        content += b"\0" if note is None else b"\1" + octets(note, 64)
    leaf = sha256(b"\0" + H(b"entry", content, root, octets(changes, 64))).digest()
    number = integer(size, seq)
    (tree,) = climb([leaf], hashes(path), seq - 1, size - 1)
    expected = H(b"log", number, tree)
    demand(octets(head, 64) == expected)
    return expected


def check_record(proof: dict[str, Any], trusted: list[bytes], own: list[set[str]]) -> None:
    demand(proof.keys() - {"log"} in [KEYS | each for each in own])
    name, root, empty, levels = text(proof["id"]), octets(proof["root"], 64), H(b"empty"), proof["levels"]
    demand(type(levels) is str and len(levels) <= 256 and set(levels) <= {"0", "1"} and levels[-1:] != "0")
    listed, path = hashes(proof["siblings"]), H(b"path", proof["id"].encode("utf-8"))
    demand(len(listed) == levels.count("1") and empty not in listed and proof.get("path", path.hex()) == path.hex())
    bits = f"{int.from_bytes(path, 'big'):0256b}"[: len(levels)]
    if "version" in proof:
        version = octets(proof["version"], 64)
        node = leaf_of(path, version)
        demand(proof.get("erased", True) is True)
        if "payload" in proof:
            payload = octets(proof["payload"])
            demand(payload.startswith(b"\1\1" + name))
            demand(version == H(b"version", octets(proof["salt"], 64), payload))
    elif proof["leaf"] is None:
        node = empty
    else:
        other, version = (octets(each, 64) for each in fields(proof["leaf"], "path", "version"))
        demand(other != path and f"{int.from_bytes(other, 'big'):0256b}".startswith(bits))
        node = leaf_of(other, version)
    for bit, level in zip(reversed(bits), reversed(levels), strict=True):
        sibling = listed.pop() if level == "1" else empty
        node = H(b"node", sibling, node) if bit == "1" else H(b"node", node, sibling)
    demand(node == root)
    accepted = [root, head_of_log(proof["log"], root)] if "log" in proof else [root]
    demand(len(trusted) == 1 and trusted[0] in accepted)


def check_consistency(proof: dict[str, Any], trusted: list[bytes]) -> None:
    _, old, new, shown = fields(proof, "proof", "old", "new", "path")
    (m, old_hash, old_head), (n, new_hash, new_head) = (fields(each, "size", "hash", "head") for each in (old, new))
    first, second, path = octets(old_hash, 64), octets(new_hash, 64), hashes(shown)
    heads = [H(b"log", integer(m), first), H(b"log", integer(n), second)]
    demand(heads == [octets(old_head, 64), octets(new_head, 64)])
    if m == n or m == 0:
        demand(not path and first == (second if m == n else sha256().digest()))
    else:
        demand(m < n and path)
        path = path if m & (m - 1) else [first, *path]
        ones = (m ^ (m - 1)).bit_length() - 1  # at the end of m - 1: as many as m ends in zeros
        demand(climb([path[0], path[0]], path[1:], (m - 1) >> ones, (n - 1) >> ones) == [first, second])
    demand(heads[-len(trusted) :] == trusted)


def verify(proof: Any, *trusted: bytes) -> bool:
    """Return whether a parsed proof is proved by a root or head, or by an old and a new head, of 32 bytes each."""
    try:
        kind = proof["proof"] if type(proof) is dict and "proof" in proof else None
        if kind == "recollect/presence/1":
            check_record(proof, list(trusted), [{"version", "salt", "payload"}, {"version", "erased"}])
        elif kind == "recollect/absence/1":
            check_record(proof, list(trusted), [{"path", "leaf"}])
        elif kind == "recollect/consistency/1":
            check_consistency(proof, list(trusted))
        return kind in ("recollect/presence/1", "recollect/absence/1", "recollect/consistency/1")
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(not verify(json.load(sys.stdin), *map(bytes.fromhex, sys.argv[1:])))
