"""Two copies of a store that went on in both places: merging the other one into this one, with one call."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import PurePath

from recollect.arguments.json_form import JsonForm
from recollect.arguments.signatures import named
from recollect.engine.branch_results import Merged
from recollect.engine.branches import MAX_DEVICE_BYTES
from recollect.engine.engine import Engine
from recollect.engine.joining import join, namespaces_of
from recollect.errors import (
    InvalidArgumentError,
    QuotaError,
    RecollectError,
    RejectedError,
    ScopeError,
    UnsupportedError,
)
from recollect.ledger.commits import MAIN, Branch
from recollect.memory.memory import Memory
from recollect.memory.opening import open_store
from recollect.operations import branch_name, check_label
from recollect.operations.branches import OnConflict
from recollect.stores.sealing.keys import Secret
from recollect.stores.sealing.secrets import secret_or_default
from recollect.stores.sqlite.encryption import is_encrypted

#: How long opening the copy waits for another process, in seconds.
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedCopy(JsonForm, what="a merge of a copy"):
    """What became of a branch of another copy of the store.

    Attributes:
        namespace: Its namespace.
        branch: The name of the branch that has its commits here. It is its own name if nothing was committed to that
            branch here since.
        into: Its own name: that of the branch that it was merged into.
        commits: How many commits were written to `branch`.
        erased: With the main branch, how many records the copy has erased, and were therefore erased here, in all
            branches.
        merged: The merge into the branch of its own name; None if it is that branch, or there is none of this name.
    """

    namespace: str
    branch: str
    into: str
    commits: int
    erased: int
    merged: Merged | None = None


@named
def merge_copy(
    memory: Memory,
    copy: str | os.PathLike[str],
    *,
    device: str | None = None,
    on_conflict: OnConflict = "list",
    secret: Secret | None = None,
    actor: str | None = None,
    reason: str | None = None,
) -> list[MergedCopy]:
    """Merge another copy of a store into it: a file that was copied, and was written in both places since.

    All namespaces and branches are merged. What the copy has committed since the common history becomes a branch, with
    the same entries in its log, and is merged into the branch of the same name (`Memory.merge_branch`). Where nothing
    was committed here since, that branch goes on with these commits. What was erased in one of both is erased in the
    other one. The copy is only read; to bring it up to date, merge this store into it in the same way.

    Args:
        memory: The store, in this process. Its namespace and branch do not matter.
        copy: The path of the copy, which has the id and the key of the store.
        device: What branches of the copy are called here, which cannot have their own name. Default: the name of the
            file without its suffix.
        on_conflict: What becomes of records that both have changed: as for `Memory.merge_branch`. With "list", a branch
            that has conflicts is not merged; `Memory.on(into).resolve_merge` merges it.
        secret: The secret of an encrypted copy, also if that of the store is another one. Default: that in the file
            that RECOLLECT_SECRET_FILE names.
        actor: Who merges; recorded in the commits of the merges.
        reason: Why; recorded in the commits of the merges.

    Returns:
        What became of each branch of the copy that has anything that this store lacks. A merge is false if it has
        conflicts, or if this store has all that the commits have changed.

    Raises:
        InvalidArgumentError: It is no copy of the store, or it is the store itself.
        UnsupportedError: The memory is on a server or of the past, or the store has no branches.
        ScopeError: The memory is scoped.
        OriginError: The memory writes as less than the user.
        QuotaError, RejectedError: The quota or a policy refuses what a branch has. Its commits are here as a branch
            that is not merged; the next call merges it. All others are merged.
        DamagedStoreError: The copy is corrupt.
        StoreError: A store failed.

    Cost:
        Reads the entries of both, and writes and merges what is new.
    """
    if not isinstance(memory, Memory):
        raise InvalidArgumentError("memory", memory, "must be a memory: recollect.open returns one")
    engine = memory._executor
    if not isinstance(engine, Engine):
        raise UnsupportedError("merging a copy", "it needs a memory of a store in this process, of the present")
    if memory._scope.fixed:
        raise ScopeError("a copy of the store", str(memory._scope))
    for name, text in (("actor", actor), ("reason", reason)):
        if text is not None:
            check_label(name, text)
    called = branch_name(PurePath(os.fspath(copy)).stem if device is None else device, "device")
    if called == MAIN or len(called.encode()) > MAX_DEVICE_BYTES:
        rule = f"must be a name of at most {MAX_DEVICE_BYTES} bytes, and not {MAIN!r}: pass another one (--device)"
        raise InvalidArgumentError("device", called, rule)
    store = engine.core.store
    opens = secret_or_default(secret) if secret is not None or is_encrypted(os.fspath(copy)) else None
    opened = open_store(copy, False, True, store.key, _TIMEOUT_S, "full", None, secret=opens)
    out: list[MergedCopy] = []
    refused: list[RecollectError] = []
    with closing(opened) as other:
        for namespace in namespaces_of(other):
            main = memory if memory._branch == Branch(namespace) else memory.namespace(namespace)
            joined, erased = join(engine.core, main._place._replace(actor=actor, reason=reason), other, called)
            for each in joined:
                merged = None
                if each.is_merged:
                    into = main if each.into == MAIN else main.on(each.into)
                    try:
                        merged = into.merge_branch(each.branch, on_conflict=on_conflict, actor=actor, reason=reason)
                    except (QuotaError, RejectedError) as error:  # the others are merged all the same
                        refused.append(error)
                if each.commits or (merged is not None and (merged or merged.conflicts)):
                    done = MergedCopy(
                        namespace=namespace,
                        branch=each.branch,
                        into=each.into,
                        commits=each.commits,
                        erased=erased if each.into == MAIN else 0,
                        merged=merged,
                    )
                    out.append(done)
    if refused:
        raise refused[0]
    return out
