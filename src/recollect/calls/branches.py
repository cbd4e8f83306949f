"""The calls on branches: lines of history of a namespace that go on separately."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Self

from recollect.arguments.signatures import all_named
from recollect.calls.history import PRESENT, Target
from recollect.calls.namespace import NamespaceCalls
from recollect.engine.branch_results import BranchInfo, Merged
from recollect.engine.history_results import Difference
from recollect.errors import InvalidArgumentError, ScopeError
from recollect.ledger.commits import Branch
from recollect.ledger.parts import RECORDS
from recollect.operations import CreateBranch, Diff, DropBranch, ListBranches, MergeBranch, ReadHead, branch_name
from recollect.operations.branches import Choice, OnConflict
from recollect.records.record import Record


@all_named
class Branches(NamespaceCalls):
    """The calls on the branches of a namespace."""

    #: Whether it is another memory of another branch, or one that writes as another class of origin: leaving its block
    #: does not close the store.
    _is_view = False

    @property
    def branch_name(self) -> str:
        """The name of the branch that is read and written: "main", unless this memory is of another one (`on`)."""
        return self._branch.name

    def branch(self, name: str, *, at: Target | None = None) -> Self:
        """Create a branch, and return it as a memory: it has what this one has now, and goes on by itself.

            what_if = memory.branch("what-if")
            what_if.remember("Ana moved to Oslo", kind="user_fact", user="ana")
            assert memory.recall("Where does Ana live?") != what_if.recall("Where does Ana live?")

        A branch has everything that a memory has: records, glossary, outlines and other parts, history, snapshots,
        proofs, listeners. Its log begins with the commits that it continues, so commits are numbered on. Nothing that
        is written in one branch is seen in another, except an erasure, which reaches all of them. Quotas and policies
        are those of the namespace.

        Args:
            name: The name: 1 to 100 bytes without control characters. No name is used again, also of one that was
                dropped.
            at: The moment that it continues, as `at` takes it; default: the newest commit.

        Raises:
            BranchExistsError: There is or was a branch of this name.
            BranchLimitError: The namespace has 1,000, or 16 already continue one another.
            UnknownTargetError: There is no such moment.
            InvalidArgumentError: The name is invalid.
            ScopeError: This memory is scoped.
            StoreError: The store failed.

        Cost:
            One durable write, whatever this memory contains. The first write to the branch costs about 20 more, and
            one for each thousand records.
        """
        moment = None if at is None else self._moment(at).token
        made: BranchInfo = self.execute(CreateBranch(branch=name, moment=moment))
        return self._of_branch(made.name)

    def on(self, name: str) -> Self:
        """Return another branch of this namespace as a memory.

        Args:
            name: Its name; "main" is the one that every namespace begins with.

        Raises:
            UnknownBranchError: There is none of this name.
            ScopeError: This memory is scoped: take the branch of the memory that it was created from.
            StoreError: The store failed.
        """
        if self._scope.fixed:
            raise ScopeError(f"branch {name!r}", str(self._scope))
        found = self._of_branch(branch_name(name, "name"))
        found.execute(ReadHead())
        return found

    def branches(self, *, sizes: bool = False) -> list[BranchInfo]:
        """Return the branches of this namespace, the main one first, then by name.

        Args:
            sizes: Count the records and bytes of each, too.

        Raises:
            ScopeError: This memory is scoped.
            StoreError: The store failed.

        Cost:
            A few queries, whatever the branches contain. With `sizes`, it counts the records of each.
        """
        found: list[BranchInfo] = self.execute(ListBranches(sizes=sizes))
        return found

    def diff(
        self,
        old: Target | None = None,
        new: Target | None = None,
        *,
        branch: str | None = None,
        parts: Collection[str] | None = None,
    ) -> Difference:
        """Return how two moments differ: the records that were added, changed and removed, and those of other parts.

            memory.diff(40)                  # since commit 40
            memory.diff(branch="what-if")    # what that branch has, compared to this one

        Args:
            old: A moment of this branch: see `at`. Only with `branch`, it can be left out: the newest commit.
            new: Another moment; default: the newest commit. It may be earlier than `old`.
            branch: The name of another branch, of which `new` is a moment. Default: this one.
            parts: The parts of the memory to compare, by name: "records", or what facets keep. Default: all.

        Returns:
            The difference; false if there is none. `parts` has that of each other part that differs. Within a scope
            only the records that lay in it. What a merge would take is shown by `merge_branch(dry_run=True)`.

        Raises:
            InvalidArgumentError: Neither `old` nor `branch` is given.
            UnknownTargetError: There is no such moment.
            UnknownBranchError: There is no such branch.
            ScopeError: This memory is scoped, and a moment is named by something else than a time or a cursor, or a
                branch is named.
            StoreError: The store failed.

        Cost:
            Proportional to the changes between, or only to the difference if both are snapshots or recent. With
            another branch, to the changes of both since the last commit that both have.
        """
        if branch is None:
            if old is None:
                raise InvalidArgumentError("old", old, "must be a moment, unless a branch is named")
            return super().diff(old, new, parts=parts)
        other = self.on(branch)
        moments = self._moment(PRESENT if old is None else old), other._moment(PRESENT if new is None else new)
        operation = Diff(old=moments[0].token, new=moments[1].token, branch=branch, parts=parts)
        found: Difference = self.execute(operation)
        return found

    def merge_branch(
        self,
        name: str,
        *,
        on_conflict: OnConflict = "list",
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Merged:
        """Merge another branch into this one: one commit, which follows both.

            merged = memory.merge_branch("what-if")
            if merged.conflicts:
                merged = memory.resolve_merge(merged, {each.key: "theirs" for each in merged.conflicts})

        What only the other branch has changed since the last common commit becomes as it is there. Where both have
        changed a record, the changes are joined if they are of different fields; tags, links and the keys of metadata
        count each by itself. Otherwise, or if one has removed the record, it is a conflict. New turns of a conversation
        follow those of this branch. All parts of the memory are merged. The other branch stays as it is, and can be
        merged again when it has gone on.

        Args:
            name: The name of the other branch, such as "main".
            on_conflict: What becomes of conflicts. "list": nothing is written if there are any, and all are returned.
                "ours" or "theirs": the version of that branch counts. "newest": the one that was written last.
            dry_run: Change nothing: return what would be done.
            actor: Who merges; recorded in the commit.
            reason: Why; recorded in the commit.

        Raises:
            UnknownBranchError: There is none of this name.
            InvalidArgumentError: It is this branch itself.
            OriginError: This memory writes as less than the user.
            QuotaError: The records do not fit in the quota. Nothing was merged.
            RejectedError: A policy refuses a text of the other branch. Nothing was merged.
            ScopeError: This memory is scoped.
            StoreError: The store failed.

        Cost:
            Proportional to what the other branch has changed, however many records there are.
        """
        operation = MergeBranch(branch=name, on_conflict=on_conflict, dry_run=dry_run)
        merged: Merged = self.execute(operation, actor=actor, reason=reason)
        return merged

    def resolve_merge(
        self,
        merged: Merged,
        resolutions: Mapping[str | tuple[str, str], Choice | Record],
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Merged:
        """Write a merge whose conflicts were listed, with a decision about each.

        Args:
            merged: What `merge_branch` has returned.
            resolutions: For the id of each conflict, "ours" or "theirs", or "both": the version of this branch stays,
                and that of the other one is stored under the id followed by "~" and the name of the branch; or a
                record, which is stored. An id in another part of the memory is a pair of the part and the id
                (`Conflict.key`).

        Returns:
            The merge. If a conflict was not decided, nothing was written, and those that are left are listed.

        Raises:
            ConflictError: A branch has newer commits than when the conflicts were listed: merge again.
            InvalidArgumentError: A resolution is of no conflict, or is "both" for a term or a key, of which there is
                only one.
            And what `merge_branch` raises.
        """
        if not isinstance(merged, Merged):
            raise InvalidArgumentError("merged", merged, "must be what merge_branch has returned")
        if not isinstance(resolutions, Mapping):
            raise InvalidArgumentError("resolutions", resolutions, "must map ids to decisions")
        keys = [(RECORDS, key) if isinstance(key, str) else key for key in resolutions]
        for key in keys:
            if not (isinstance(key, tuple) and len(key) == 2 and all(isinstance(each, str) for each in key)):
                raise InvalidArgumentError("resolutions", key, "must name an id, or a pair of a part and an id")
        decided = tuple((*key, choice) for key, choice in zip(keys, resolutions.values(), strict=True))
        operation = MergeBranch(branch=merged.branch, resolutions=decided, ours=merged.ours, theirs=merged.theirs)
        written: Merged = self.execute(operation, actor=actor, reason=reason)
        return written

    def drop_branch(self, name: str) -> BranchInfo:
        """Remove a branch, with all that only it has, and return what it was. Its name stays taken.

        What was merged from it stays where it was merged. Memories of the branch raise UnknownBranchError from now on.

        Args:
            name: Its name; the main branch stays.

        Raises:
            UnknownBranchError: There is none of this name.
            BranchInUseError: Others continue it: drop those first.
            ScopeError: This memory is scoped.
            StoreError: The store failed.

        Cost:
            Proportional to what only the branch has.
        """
        dropped: BranchInfo = self.execute(DropBranch(branch=name))
        return dropped

    def _of_branch(self, name: str) -> Self:
        branch = Branch(self._branch.namespace, name)
        found = type(self)(self._present, branch, self._scope, self._place.origin)
        found._is_view = True
        return found
