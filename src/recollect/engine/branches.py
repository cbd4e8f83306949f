"""The branches of a namespace: how they are created, listed and dropped.

What a store does not know of a branch is a setting of the namespace: when it was created, and whether it was merged or
dropped. That of a branch that was dropped stays, so that its name is not used again and a merge can be checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC
from typing import Any

from recollect.engine.branch_results import BranchInfo
from recollect.engine.core import Core
from recollect.engine.read.targets import point_of
from recollect.engine.scope import Place
from recollect.engine.settings import merge_setting
from recollect.errors import (
    BranchExistsError,
    BranchInUseError,
    BranchLimitError,
    DamagedStoreError,
    UnknownBranchError,
    UnsupportedError,
)
from recollect.filters.tree import EVERYTHING
from recollect.ledger.commits import MAIN, Branch
from recollect.operations import CreateBranch, DropBranch, ListBranches
from recollect.records.codec import datetime_of, microseconds
from recollect.stores import branches
from recollect.stores.base import Transaction, View
from recollect.stores.values import Continuing

#: Maximum number of branches of a namespace besides the main one.
MOST = 1000
#: Maximum number of branches of which each continues the one before.
DEEPEST = 16
#: The settings of branches: `branch/NAMESPACE`, a control character, and the name.
_PREFIX, _MARK, _AFTER_MARK = "branch/", "\x1f", "\x20"


def create(core: Core, place: Place, operation: CreateBranch) -> BranchInfo:
    """Create a branch.

    Raises:
        BranchExistsError: There is or was one of this name.
        BranchLimitError: The namespace has as many as it can have, or this one would continue too many others.
        UnsupportedError: The store is of a format that has no branches.
    """
    base, now = place.branch, core.now()
    branch = Branch(base.namespace, operation.branch)
    with core.store.write(base) as transaction:
        if not transaction.binds_parts:
            raise UnsupportedError("branches", "the store is of format 3: convert it first (`recollect migrate`)")
        if _noted(transaction, branch) is not None or transaction.head(branch).seq:
            raise BranchExistsError(branch.name, branch.namespace)
        if len(transaction.continuing(base.namespace)) >= MOST:
            raise BranchLimitError(base.namespace, "branches", MOST)
        point = None if operation.moment is None else point_of(operation.moment, base, core.cursors)
        head = transaction.head(base) if point is None else point.head_in(transaction, base)
        branches.begin(transaction, branch, base, head.seq)
        if sum(1 for _ in branches.line_of(transaction, branch)) > DEEPEST:
            raise BranchLimitError(base.namespace, "branches of which each continues the one before", DEEPEST)
        noted = {"created": microseconds(now)}
        _note(transaction, branch, noted)
        found = next(each for each in transaction.continuing(base.namespace) if each.branch == branch)
    return _info(found, noted)


def listed(core: Core, place: Place, operation: ListBranches) -> list[BranchInfo]:
    """Return the branches of the namespace, the main one first, then by name."""
    namespace = place.branch.namespace
    with core.store.read() as view:
        noted = _all_noted(view, namespace)
        main = Branch(namespace, MAIN)
        found = {main: BranchInfo(name=MAIN, seq=view.head(main).seq)}
        found |= {each.branch: _info(each, noted.get(each.branch.name, {})) for each in view.continuing(namespace)}
        begun_empty = (each for each in view.branches() if each.namespace == namespace and each not in found)
        found |= {each: BranchInfo(name=each.name, seq=view.head(each).seq) for each in begun_empty}
        if operation.sizes:
            found = {branch: _with_sizes(core, view, branch, info) for branch, info in found.items()}
    return list(found.values())


def drop(core: Core, place: Place, operation: DropBranch) -> BranchInfo:
    """Remove a branch.

    Raises:
        UnknownBranchError: There is none of this name.
        BranchInUseError: Others continue it.
    """
    branch, now = Branch(place.branch.namespace, operation.branch), core.now()
    with core.store.write(branch) as transaction:
        there = {each.branch: each for each in transaction.continuing(branch.namespace)}
        found = there.get(branch)
        if found is None:
            raise UnknownBranchError(branch.name, branch.namespace)
        others = [each.branch.name for each in there.values() if each.base.branch == branch]
        if others:
            raise BranchInUseError(branch.name, ", ".join(map(repr, others)))
        noted = _noted(transaction, branch) or {}
        entry = next(iter(transaction.entries(branch, found.seq - 1)), b"") if found.seq else b""
        info = _info(found, noted)
        dropped = {"time": microseconds(now), "seq": found.seq, "entry": entry.hex()}
        _note(transaction, branch, {**noted, "dropped": dropped})
        branches.remove(transaction, branch)
    core.dropped(branch)
    return info


def note_merged(transaction: Transaction, branch: Branch, seq: int, into: Branch) -> None:
    """Note that a branch was merged into another one up to a commit."""
    if transaction.base(branch) is not None:
        _note(transaction, branch, {**(_noted(transaction, branch) or {}), "merged": {"seq": seq, "into": into.name}})
    transaction.set_setting(merge_setting(into, branch), str(seq))


def _info(found: Continuing, noted: Mapping[str, Any]) -> BranchInfo:
    created, merged = noted.get("created"), noted.get("merged") or {}
    return BranchInfo(
        name=found.branch.name,
        base=found.base.branch.name,
        base_seq=found.base.seq,
        seq=found.seq,
        created=None if created is None else datetime_of(created).astimezone(UTC),
        merged_seq=merged.get("seq"),
        merged_into=merged.get("into"),
    )


def _with_sizes(core: Core, view: View, branch: Branch, info: BranchInfo) -> BranchInfo:
    records = view.count(branch, EVERYTHING, now=core.reads_at(view, branch))
    return replace(info, records=records, own_bytes=sum(own_bytes(view, part) for part in branch.family))


def own_bytes(view: View, branch: Branch) -> int:
    """Return the size of the live records that a branch does not have from the one that it continues, in bytes."""
    base = view.base(branch)
    if base is None:
        return view.nbytes(branch)
    changes = view.net_changes(branch, base.seq, view.head(branch).seq)
    versions = [after for _, after in changes.values() if after is not None]
    return sum(map(len, view.payloads(branch, versions).values()))


# What is noted of each branch


def _name(branch: Branch) -> str:
    return f"{_PREFIX}{branch.namespace}{_MARK}{branch.name}"


def _note(transaction: Transaction, branch: Branch, noted: Mapping[str, Any]) -> None:
    transaction.set_setting(_name(branch), json.dumps(noted, sort_keys=True))


def _noted(view: View, branch: Branch) -> dict[str, Any] | None:
    written = view.setting(_name(branch))
    return None if written is None else _decoded(written, branch.name)


def _all_noted(view: View, namespace: str) -> dict[str, dict[str, Any]]:
    first = f"{_PREFIX}{namespace}{_MARK}"
    found = view.settings(first, f"{_PREFIX}{namespace}{_AFTER_MARK}")
    return {name.removeprefix(first): _decoded(written, name) for name, written in found.items()}


def _decoded(written: str, name: str) -> dict[str, Any]:
    try:
        noted = json.loads(written)
        if not isinstance(noted, dict):
            raise TypeError("it is no object")
    except (ValueError, TypeError) as error:
        raise DamagedStoreError("the store", f"what is noted of branch {name!r} cannot be read: {error}") from None
    return noted
