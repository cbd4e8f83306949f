"""Proofs from a view of the store. A proof that would not verify is never returned."""

from __future__ import annotations

from recollect.engine.log_trees import LogTrees
from recollect.errors import DamagedStoreError, InvalidArgumentError
from recollect.ledger import proofs
from recollect.ledger.commits import Branch
from recollect.ledger.descent import BrokenTrieError, descend
from recollect.ledger.log_tiles import TiledTree
from recollect.ledger.log_tree import consistency_path, head_of, inclusion_path
from recollect.ledger.merkle import Leaf, Root, leaf_hash_at, path_of, version_salt
from recollect.ledger.proofs import Proof
from recollect.ledger.verifying import verify
from recollect.operations import Prove, ProveLog
from recollect.stores.base import Store, View


def prove(operation: Prove, view: View, branch: Branch, store: Store, log_trees: LogTrees) -> Proof:
    """Return the proof that a record is present after a commit, or that its id is absent."""
    newest = view.head(branch).seq
    seq = seq_of("at", operation.at, newest)
    record_id, path = operation.id, path_of(operation.id)
    root = _root(view, branch, seq)
    try:
        descent = descend(root, path, view.node)
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
        version = None if leaf is None else _version_of(view, branch, store, leaf, seq)
        proof = proofs.absence(record_id, root.hash, descent, version, log)
    else:
        version = _version_of(view, branch, store, leaf, seq, record_id)
        payload = view.payload(branch, version)
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


def _root(view: View, branch: Branch, seq: int) -> Root:
    """Return the root after a commit, with its first page."""
    head = view.head(branch)
    if seq in (0, head.seq):
        return head.root if seq else Root()
    return next(view.commits(branch, seq - 1, 1)).root


def _version_of(view: View, branch: Branch, store: Store, leaf: Leaf, seq: int, record_id: str | None = None) -> bytes:
    """Return the version of a leaf that is in the trie after a commit; `record_id`: its id, if that is known."""
    live = None if record_id is None else view.get(branch, record_id)
    if live is not None and leaf_hash_at(leaf.path, live.version) == leaf.hash:
        return live.version
    for commit in view.commits(branch, record_id=record_id, before=seq + 1, newest_first=True):
        for change in commit.changes:
            if change.after is not None and leaf_hash_at(leaf.path, change.after) == leaf.hash:
                return change.after
    raise DamagedStoreError(store.path, "the log does not contain the version of a leaf of its Merkle trie")
