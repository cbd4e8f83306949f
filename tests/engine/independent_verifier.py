"""A verifier written only from docs/proofs.md: `verified(proof, trusted)`. It imports nothing of the package."""

import hashlib
import re
from typing import Any, TypeVar, cast

T = TypeVar("T")
EMPTY = hashlib.sha256(b"recollect.empty.1\0").digest()


def need(holds: bool) -> None:
    if not holds:
        raise ValueError("not as specified")


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def named(name: str, *parts: bytes) -> bytes:
    """H("NAME" ...), where the name has its number."""
    return sha(f"recollect.{name}\0".encode(), *parts)


def varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def lp(content: bytes) -> bytes:
    return varint(len(content)) + content


def typed(value: object, kind: type[T]) -> T:
    """The value, if it is of exactly this type: True is no integer."""
    need(type(value) is kind)
    return cast(T, value)


def fields(value: object, keys: str) -> dict[Any, Any]:
    need(typed(value, dict).keys() == set(keys.split()))
    return typed(value, dict)


def integer(value: object, low: int = 0) -> int:
    need(low <= typed(value, int) < 2**63)
    return typed(value, int)


def octets(value: object, form: str = "[0-9a-f]{64}") -> bytes:
    need(re.fullmatch(form, typed(value, str)) is not None)
    return bytes.fromhex(typed(value, str))


def hashes(value: object) -> list[bytes]:
    return [octets(each) for each in typed(value, list)]


def record(proof: dict[Any, Any], present: bool, second: bool) -> list[bytes]:
    """Verify presence or absence; return the roots, and the head of the log if there is one."""
    keys = "path leaf" if not present else "version erased" if "erased" in proof else "version salt payload"
    p = fields(proof, "proof id root levels siblings " + keys + " part parts" * second + " log" * ("log" in proof))
    ident, root, levels, siblings = typed(p["id"], str).encode(), octets(p["root"]), p["levels"], hashes(p["siblings"])
    need(re.fullmatch("([01]{0,255}1)?", typed(levels, str)) is not None)
    need(len(siblings) == levels.count("1") and EMPTY not in siblings)
    path = named("path.1", ident)
    bits = f"{int.from_bytes(path):0256b}"[: len(levels)]
    if present:
        node = named("leaf.2", path, octets(p["version"]))
        need(p.get("erased", True) is True)
        if "erased" not in p:
            payload = octets(p["payload"], "(?:[0-9a-f]{2})*")
            need(payload.startswith(b"\1\1" + lp(ident)))
            need(octets(p["version"]) == named("version.1", octets(p["salt"]), payload))
    else:
        need(octets(p["path"]) == path)
        node = EMPTY
        if p["leaf"] is not None:
            other, version = (octets(fields(p["leaf"], "path version")[key]) for key in ("path", "version"))
            need(other != path and f"{int.from_bytes(other):0256b}".startswith(bits))
            node = named("leaf.2", other, version)
    for bit, listed in zip(reversed(bits), reversed(levels), strict=True):
        sibling = siblings.pop() if listed == "1" else EMPTY
        node = named("node.1", sibling, node) if bit == "1" else named("node.1", node, sibling)
    need(node == root)
    roots = [root]
    if second:
        parts = {typed(name, str).encode(): octets(each) for name, each in typed(p["parts"], dict).items()}
        need(b"records" in parts and EMPTY not in [parts[each] for each in parts if each != b"records"])
        need(root == parts.get(typed(p["part"], str).encode()))
        leaves = [sha(b"\0", named("part.1", lp(each), parts[each])) for each in sorted(parts)]
        roots.append(named("memory.1", len(leaves).to_bytes(8), tree(leaves)))
    return [*roots, commit(p["log"], roots[-1], second)] if "log" in p else roots


def tree(leaves: list[bytes]) -> bytes:
    """The tree of RFC 9162 over leaves that are hashed already."""
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return sha(b"\1", tree(leaves[:k]), tree(leaves[k:]))


def commit(value: object, root: bytes, second: bool) -> bytes:
    """Verify that a commit with this root is in the log; return the head of the log."""
    return entered(value, root, second)[1]


def entered(value: object, root: bytes, second: bool) -> tuple[bytes, bytes]:
    """The same; return the entry, too."""
    log = fields(value, "seq parents time actor reason changes size path head" + " parts" * second)
    seq, parents = integer(log["seq"], 1), typed(log["parents"], list)
    size, start = integer(log["size"], seq), integer(log["time"], -(2**63)).to_bytes(8, signed=True)
    entry = seq.to_bytes(8) + varint(len(parents))
    for parent in parents:
        need(len(typed(parent, list)) == 2 or (second and len(parent) == 3))
        entry += lp(typed(parent[0], str).encode()) + integer(parent[1]).to_bytes(8)
        entry += b"".join([b"\1", *map(octets, parent[2:])] if parent[2:] else [b"\0"]) if second else b""
    notes = [b"\0" if note is None else b"\1" + octets(note) for note in (log["actor"], log["reason"])]
    bound = [root, octets(log["changes"])] + ([octets(log["parts"])] if second else [])
    entry = named("entry.2" if second else "entry.1", entry, start, *notes, *bound)
    leaf = sha(b"\0", entry)
    head = named("log.1", size.to_bytes(8), fold(seq - 1, size - 1, leaf, hashes(log["path"]))[1])
    need(octets(log["head"]) == head)
    return entry, head


def fold(f: int, s: int, start: bytes, path: list[bytes]) -> tuple[bytes, bytes]:
    """The loop over the path of inclusion (its r is b) and of consistency (a and b)."""
    a = b = start
    for c in path:
        need(s > 0)
        if f & 1 or f == s:
            a, b = sha(b"\1", c, a), sha(b"\1", c, b)
            while f and not f & 1:
                f, s = f >> 1, s >> 1
        else:
            b = sha(b"\1", b, c)
        f, s = f >> 1, s >> 1
    need(s == 0)
    return a, b


def consistency(proof: object) -> list[bytes]:
    """Verify consistency; return the old and the new head."""
    p = fields(proof, "proof old new path")
    path, (old, new) = hashes(p["path"]), (fields(p[key], "size hash head") for key in ("old", "new"))
    (m, n), trees = (integer(state["size"]) for state in (old, new)), (octets(old["hash"]), octets(new["hash"]))
    heads = [octets(old["head"]), octets(new["head"])]
    need(heads == [named("log.1", size.to_bytes(8), tree) for size, tree in zip((m, n), trees, strict=True)])
    if m == n or m == 0:
        need(not path and trees[0] == (trees[1] if m == n else sha()))
    else:
        need(m < n and len(path) > 0)
        first, *others = path if m & (m - 1) else [trees[0], *path]
        odd = (m & -m).bit_length() - 1  # how often m - 1 is halved while it is odd
        need(fold(m - 1 >> odd, n - 1 >> odd, first, others) == trees)
    return heads


def merge(proof: object) -> list[bytes]:
    """Verify a merge; return the head of the log of the merged branch, and that of the one with the merge."""
    p = fields(proof, "proof merge merged")
    merging, merged = fields(p["merge"], "root log"), fields(p["merged"], "branch root log")
    other, its_head = entered(merged["log"], octets(merged["root"]), second=True)
    _, head = entered(merging["log"], octets(merging["root"]), second=True)
    need([typed(merged["branch"], str), merged["log"]["seq"], other.hex()] in merging["log"]["parents"][1:])
    return [its_head, head]


def verified(proof: object, trusted: str | tuple[str, str]) -> bool:
    """Return whether the proof (a parsed JSON value) proves its statement relative to the trusted hash or hashes."""
    pair = type(trusted) is tuple and len(trusted) == 2
    given = [octets(each) for each in (trusted if pair else [trusted])]
    try:
        kind = typed(proof, dict).get("proof")
        if kind == "recollect/consistency/1":
            return consistency(proof)[-len(given) :] == given
        if kind == "recollect/merge/1":
            return merge(proof)[-len(given) :] == given
        found = re.fullmatch("recollect/(presence|absence)/([12])", typed(kind, str))
        need(not pair and found is not None)
        assert found is not None
        return given[0] in record(typed(proof, dict), found[1] == "presence", found[2] == "2")
    except ValueError:
        return False
