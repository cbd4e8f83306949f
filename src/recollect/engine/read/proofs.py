"""Proofs from a view of the store. A proof that would not verify is never returned."""

from __future__ import annotations

from recollect.engine.trees import LogTrees
from recollect.errors import DamagedStoreError, InvalidArgumentError
from recollect.ledger import proofs
from recollect.ledger.commits import Branch
from recollect.ledger.log_tiles import TiledTree
from recollect.ledger.log_tree import consistency_path, head_of, inclusion_path
from recollect.ledger.merkle import Leaf, leaf_hash_at, path_of, version_salt
from recollect.ledger.proofs import BrokenTrieError, Proof, descend
from recollect.ledger.verifying import verify
from recollect.operations import Prove, ProveLog
from recollect.stores.base import Store, View
from recollect.stores.roots import pages_at
from recollect.stores.values import Version


def prove(operation: Prove, view: View, branch: Branch, store: Store, log_trees: LogTrees) -> Proof:
    """Return the proof that a record is present after a commit, or that its id is absent."""
    newest = view.head(branch).seq
    seq = seq_of("at", operation.at, newest)
    record_id, path = operation.id, path_of(operation.id)
    root, pages = pages_at(view, branch, seq)
    try:
        descent = descend(root, path, pages.node)
    except BrokenTrieError as error:
        raise DamagedStoreError(store.path, str(error)) from error
    log = None
    if seq:

        def in_log(tree: TiledTree) -> Proof:
            path, head = inclusion_path(tree.subtree, seq - 1, newest), head_of(newest, tree.tree_hash(newest))
            return proofs.commit_in_log(log_trees.entry(tree, view, branch, seq), newest, path, head)

        log = log_trees.read(view, branch, in_log)
    leaf = descent.leaf
    if leaf is None or leaf.path != path:
        version = None if leaf is None else _version_of(view, branch, store, leaf).version
        proof = proofs.absence(record_id, root.hash, descent, version, log)
    else:
        version, payload = _version_of(view, branch, store, leaf)
        content = None if payload is None else (version_salt(record_id, payload, store.key), payload)
        proof = proofs.presence(record_id, root.hash, descent, version, content, log)
    if not verify(proof, root.hash):
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
