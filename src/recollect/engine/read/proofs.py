"""Proofs from a view of the store. A proof that would not verify is never returned."""

from __future__ import annotations

from recollect.engine.trees import LogTrees
from recollect.errors import DamagedStoreError, InvalidArgumentError, UnknownBranchError
from recollect.ledger import proofs
from recollect.ledger.commits import RESERVED, Branch, Head
from recollect.ledger.log_tiles import TiledTree
from recollect.ledger.log_tree import consistency_path, head_of, inclusion_path
from recollect.ledger.merkle import EMPTY, Leaf, leaf_hash_at, path_of, version_salt
from recollect.ledger.parts import RECORDS, roots_of
from recollect.ledger.proofs import BrokenTrieError, Proof, descend
from recollect.ledger.verifying import verify
from recollect.operations import Prove, ProveLog, ProveMerge
from recollect.stores.base import Store, View
from recollect.stores.roots import pages_at
from recollect.stores.values import Version


def prove(operation: Prove, view: View, branch: Branch, store: Store, log_trees: LogTrees) -> Proof:
    """Return the proof that a record is present in a part of a memory after a commit, or that its id is absent.

    Raises:
        InvalidArgumentError: There is no such commit or part, or the commit does not bind this part.
    """
    newest = view.head(branch).seq
    seq = seq_of("at", operation.at, newest)
    head = view.head_at(branch, seq) if seq else Head()
    assert head is not None
    known = () if branch.is_reserved else RESERVED
    seqs = {RECORDS: seq, **{each.name: each.seq for each in head.parts or () if each.root != EMPTY}}
    if operation.part not in (None, RECORDS, *known):
        raise InvalidArgumentError("part", operation.part, f"must be one of {', '.join((RECORDS, *known))}")
    if operation.part is not None and operation.part not in seqs:
        why = "is empty" if head.parts is not None else "is not bound, as the commit is of format 3,"
        raise InvalidArgumentError("part", operation.part, f"{why} after commit {seq}, so there is nothing to prove")
    log = _in_log(view, branch, seq, log_trees) if seq else None
    first: Proof | None = None
    for name in seqs if operation.part is None else (operation.part,):
        own = branch if name == RECORDS else branch.reserved(name)
        proof = _proof_in(own, seqs[name], name, head, operation.id, view, store, log)
        if "version" in proof:
            return proof
        first = first or proof
    assert first is not None
    return first


def _proof_in(
    branch: Branch, seq: int, name: str, head: Head, record_id: str, view: View, store: Store, log: Proof | None
) -> Proof:
    """Return the proof of an id in a part of a memory.

    Args:
        branch: The branch of the part.
        seq: The commit in the log of the part.
        name: Its name.
        head: The commit of the memory.
        log: That commit in the log of the memory.
    """
    path = path_of(record_id)
    root, pages = pages_at(view, branch, seq)
    try:
        descent = descend(root, path, pages.node)
    except BrokenTrieError as error:
        raise DamagedStoreError(store.path, str(error)) from error
    part = None if head.parts is None else proofs.ProvedPart(name, roots_of(head.root.hash, head.parts))
    leaf = descent.leaf
    if leaf is None or leaf.path != path:
        version = None if leaf is None else _version_of(view, branch, store, leaf).version
        proof = proofs.absence(record_id, root.hash, descent, version, log, part)
    else:
        version, payload = _version_of(view, branch, store, leaf)
        content = None if payload is None else (version_salt(record_id, payload, store.key), payload)
        proof = proofs.presence(record_id, root.hash, descent, version, content, log, part)
    if not verify(proof, head.memory_root):
        raise DamagedStoreError(store.path, f"what it has of {record_id!r} does not lead to the root of commit {seq}")
    return proof


def prove_log(operation: ProveLog, view: View, branch: Branch, log_trees: LogTrees) -> Proof:
    """Return the proof that the log after one commit begins with the log after an earlier one."""
    newest = view.head(branch).seq
    new = seq_of("new", operation.new, newest)
    old = seq_of("old", operation.old, new)

    def read(tree: TiledTree) -> Proof:
        before, after = (old, tree.tree_hash(old)), (new, tree.tree_hash(new))
        return proofs.consistency(before, after, consistency_path(tree.subtree, old, new))

    return log_trees.read(view, branch, read)


def prove_merge(operation: ProveMerge, view: View, branch: Branch, store: Store, log_trees: LogTrees) -> Proof:
    """Return the proof that a commit merges one of another branch.

    Raises:
        InvalidArgumentError: It is no merge.
        UnknownBranchError: The branch that was merged was dropped.
    """
    seq = seq_of("seq", operation.seq, view.head(branch).seq)
    commit = next(view.commits(branch, seq - 1, 1))
    found = next((parent for parent in commit.parents[1:] if len(parent) == 3), None)
    if found is None:
        raise InvalidArgumentError("seq", seq, "is not the number of a merge")
    other, number = Branch(branch.namespace, found[0]), found[1]
    head = view.head_at(other, number)
    if head is None:
        raise UnknownBranchError(other.name, other.namespace)
    proof = proofs.merge(
        (commit.memory_root, _in_log(view, branch, seq, log_trees)),
        other.name,
        (head.memory_root, _in_log(view, other, number, log_trees)),
    )
    if not verify(proof, proof["merge"]["log"]["head"]):
        raise DamagedStoreError(store.path, f"commit {seq} merges another branch {other.name!r} than it has")
    return proof


def _in_log(view: View, branch: Branch, seq: int, log_trees: LogTrees) -> Proof:
    """Return the part of a proof that shows a commit in the log of its branch."""
    newest = view.head(branch).seq

    def in_log(tree: TiledTree) -> Proof:
        path, log_head = inclusion_path(tree.subtree, seq - 1, newest), head_of(newest, tree.tree_hash(newest))
        return proofs.commit_in_log(log_trees.entry(tree, view, branch, seq), newest, path, log_head)

    return log_trees.read(view, branch, in_log)


def seq_of(name: str, target: int | None, newest: int) -> int:
    """Return the seq of the commit that an argument names; None is the newest.

    Raises:
        InvalidArgumentError: There is no such commit.
    """
    if target is None:
        return newest
    if target > newest:
        raise InvalidArgumentError(name, target, f"must be the number of a commit, at most {newest}")
    return target


def _version_of(view: View, branch: Branch, store: Store, leaf: Leaf) -> Version:
    """Return the version of a leaf."""
    found = view.numbered(branch, [leaf.number]).get(leaf.number)
    if found is None or leaf_hash_at(leaf.path, found.version) != leaf.hash:
        raise DamagedStoreError(store.path, f"version {leaf.number}, which a leaf of its Merkle trie names, is missing")
    return found
