"""The calls on branches: lines of history of a namespace that go on separately."""

from __future__ import annotations

from typing import Self

from recollect.arguments.signatures import all_named
from recollect.calls.history import Target
from recollect.calls.namespace import NamespaceCalls
from recollect.engine.branch_results import BranchInfo
from recollect.ledger.commits import Branch
from recollect.operations import CreateBranch, DropBranch, ListBranches, ReadHead, branch_name


@all_named
class Branches(NamespaceCalls):
    """The calls on the branches of a namespace."""

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
        """Return another branch of this namespace as a memory with the same scope.

        Args:
            name: Its name; "main" is the one that every namespace begins with.

        Raises:
            UnknownBranchError: There is none of this name.
            StoreError: The store failed.
        """
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
        return type(self)(self._present, branch, self._scope, self._place.origin)
