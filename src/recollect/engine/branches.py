"""The branches of a namespace: how they are created, listed and dropped.

What a store does not know of a branch is a setting of the namespace: when it was created, and whether it was merged or
dropped. That of a branch that was dropped stays, so that its name is not used again and a merge can be checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC
from itertools import chain, count
from typing import Any

from recollect.engine.branch_results import BranchInfo
from recollect.engine.core import Core
from recollect.engine.read.targets import point_of
from recollect.engine.scope import Place
from recollect.engine.settings import Taken, set_merged
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
from recollect.operations.base import MAX_BRANCH_BYTES
from recollect.records.codec import datetime_of, microseconds
from recollect.stores import branches
from recollect.stores.base import Transaction, View
from recollect.stores.values import Continuing

#: Maximum number of branches of a namespace besides the main one.
MOST = 1000
#: Maximum number of branches of which each continues the one before.
DEEPEST = 16
#: What the notes of a branch call the name that it has in another copy of the store, of which it has the commits.
_COPY_OF = "copy_of"
#: What they call what that branch has of further copies.
_MERGED_THERE = "merged_there"
#: Maximum number of states of further copies that are noted for a branch of a copy, the newest ones.
_MOST_NOTED = 100
#: Maximum length of the name of a device, in bytes: a number may follow it in that of a branch.
MAX_DEVICE_BYTES = MAX_BRANCH_BYTES - 8
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
        if notes_of(transaction, branch) is not None or transaction.head(branch).seq:
            raise BranchExistsError(branch.name, branch.namespace)
        point = None if operation.moment is None else point_of(operation.moment, base, core.cursors)
        head = transaction.head(base) if point is None else point.head_in(transaction, base)
        branches.begin(transaction, branch, base, head.seq)
        check_room(transaction, branch)
        notes = {"created": microseconds(now)}
        _note(transaction, branch, notes)
        found = next(each for each in transaction.continuing(base.namespace) if each.branch == branch)
    return _info(found, notes)


def check_room(transaction: Transaction, branch: Branch) -> None:
    """Raise BranchLimitError if a namespace has too many branches with a new one, or it continues too many others."""
    if len(transaction.continuing(branch.namespace)) > MOST:
        raise BranchLimitError(branch.namespace, "branches", MOST)
    if sum(1 for _ in branches.line_of(transaction, branch)) > DEEPEST:
        raise BranchLimitError(branch.namespace, "branches of which each continues the one before", DEEPEST)


def listed(core: Core, place: Place, operation: ListBranches) -> list[BranchInfo]:
    """Return the branches of the namespace, the main one first, then by name."""
    namespace = place.branch.namespace
    with core.store.read() as view:
        notes = _all_notes(view, namespace)
        main = Branch(namespace, MAIN)
        found = {main: BranchInfo(name=MAIN, seq=view.head(main).seq)}
        found |= {each.branch: _info(each, notes.get(each.branch.name, {})) for each in view.continuing(namespace)}
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
        notes = notes_of(transaction, branch) or {}
        entry = next(iter(transaction.entries(branch, found.seq - 1)), b"") if found.seq else b""
        info = _info(found, notes)
        dropped = {"time": microseconds(now), "seq": found.seq, "entry": entry.hex()}
        _note(transaction, branch, {**notes, "dropped": dropped})
        branches.remove(transaction, branch)
    core.dropped(branch)
    return info


def note_merged(transaction: Transaction, branch: Branch, into: Branch, taken: Taken) -> None:
    """Note that a branch was merged into another one."""
    if transaction.base(branch) is not None:
        entry = next(iter(transaction.entries(branch, taken.seq - 1)), b"") if taken.seq else b""
        merged = {"seq": taken.seq, "into": into.name, "entry": entry.hex(), "at": taken.at}
        _note(transaction, branch, {**(notes_of(transaction, branch) or {}), "merged": merged})
    set_merged(transaction, branch, into, taken)


def _info(found: Continuing, notes: Mapping[str, Any]) -> BranchInfo:
    created, merged = notes.get("created"), notes.get("merged") or {}
    return BranchInfo(
        name=found.branch.name,
        base=found.base.branch.name,
        base_seq=found.base.seq,
        seq=found.seq,
        created=None if created is None else datetime_of(created).astimezone(UTC),
        merged_seq=merged.get("seq"),
        merged_into=merged.get("into"),
        copy_of=notes.get(_COPY_OF),
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


def note_joined(transaction: Transaction, branch: Branch, copy_of: str | None, micros: int) -> None:
    """Note a branch that was created for the commits of another copy of the store.

    Args:
        copy_of: The name of the branch of that copy, unless it is the same.
        micros: When it was created, in microseconds since 1970.
    """
    _note(transaction, branch, {"created": micros} if copy_of is None else {"created": micros, _COPY_OF: copy_of})


def joined_branches(view: View, namespace: str) -> list[tuple[Branch, str]]:
    """Return the branches that have commits of other copies of the store, each with the name that it has there."""
    notes = _all_notes(view, namespace)
    there = [each.branch for each in view.continuing(namespace)]
    return [(each, notes[each.name][_COPY_OF]) for each in there if _COPY_OF in notes.get(each.name, {})]


def merged_of_copies(view: View, into: Branch) -> list[tuple[Taken, str]]:
    """Return what a branch has of those of copies that have its name, each with its newest entry in hex.

    Also of those that were dropped, and of further copies that the copies had merged.
    """
    out: list[tuple[Taken, str]] = []
    for notes in _all_notes(view, into.namespace).values():
        merged = notes.get("merged") or {}
        if notes.get(_COPY_OF) == into.name and merged.get("into") == into.name:
            out.append((Taken(merged["seq"], merged["at"]), merged["entry"]))
            passed_on = (each for each in notes.get(_MERGED_THERE, ()) if each["at"] <= merged["seq"])
            out += [(Taken(each["seq"], merged["at"]), each["entry"]) for each in passed_on]
    return out


def learns_of_copies(view: View, ours: Branch, theirs: Branch) -> bool:
    """Return whether a branch of a copy has merged what this branch has not, of further copies."""
    known = {(taken.seq, entry) for taken, entry in merged_of_copies(view, ours)}
    return any(
        (each["seq"], each["entry"]) not in known and not is_at(view, ours, each["seq"], each["entry"])
        for each in (notes_of(view, theirs) or {}).get(_MERGED_THERE, ())
    )


def is_at(view: View, branch: Branch, seq: int, entry: str) -> bool:
    """Return whether a commit of a branch has an entry, in hex."""
    return next(iter(view.entries(branch, seq - 1)), b"").hex() == entry


def note_merged_there(transaction: Transaction, branch: Branch, merged: Iterable[tuple[Taken, str]]) -> None:
    """Note what a branch of a copy has of those of further copies, which have no branch here (`merged_of_copies`)."""
    first = dict[str, Taken]()
    for taken, entry in merged:
        if entry not in first or taken.at < first[entry].at:
            first[entry] = taken
    newest = sorted(first.items(), key=lambda each: (each[1].seq, each[0]))[-_MOST_NOTED:]
    found = [{"seq": taken.seq, "at": taken.at, "entry": entry} for entry, taken in newest]
    _note(transaction, branch, {**(notes_of(transaction, branch) or {}), _MERGED_THERE: found})


def name_of_joined(view: View, theirs: Branch, device: str) -> str:
    """Return a name that no branch has or had, for the commits of a branch of another copy of the store.

    That is its own name, if no branch here was ever called so.
    """
    of_device = device if theirs.name == MAIN else f"{theirs.name}@{device}"
    if len(of_device.encode()) > MAX_DEVICE_BYTES:
        of_device = device
    names = chain([theirs.name], [of_device], (f"{of_device}~{number}" for number in count(2)))
    return next(name for name in names if _is_free(view, Branch(theirs.namespace, name)))


def _is_free(view: View, branch: Branch) -> bool:
    return branch.name != MAIN and notes_of(view, branch) is None and not view.head(branch).seq


def _name(branch: Branch) -> str:
    return f"{_PREFIX}{branch.namespace}{_MARK}{branch.name}"


def _note(transaction: Transaction, branch: Branch, notes: Mapping[str, Any]) -> None:
    transaction.set_setting(_name(branch), json.dumps(notes, sort_keys=True))


def notes_of(view: View, branch: Branch) -> dict[str, Any] | None:
    written = view.setting(_name(branch))
    return None if written is None else _decoded(written, branch.name)


def _all_notes(view: View, namespace: str) -> dict[str, dict[str, Any]]:
    first = f"{_PREFIX}{namespace}{_MARK}"
    found = view.settings(first, f"{_PREFIX}{namespace}{_AFTER_MARK}")
    return {name.removeprefix(first): _decoded(written, name) for name, written in found.items()}


def _decoded(written: str, name: str) -> dict[str, Any]:
    try:
        notes = json.loads(written)
        if not isinstance(notes, dict):
            raise TypeError("it is no object")
    except (ValueError, TypeError) as error:
        raise DamagedStoreError("the store", f"what is noted of branch {name!r} cannot be read: {error}") from None
    return notes
