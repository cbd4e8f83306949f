"""The operations on branches: creating, listing, merging and dropping them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from recollect.arguments.checks import check_choice, check_count, check_flag, check_text
from recollect.errors import InvalidArgumentError
from recollect.operations.base import ADMIN, READ, WRITE, Operation, branch_name
from recollect.records.names import MAIN
from recollect.records.record import Record

#: What becomes of a record that two branches have changed, unless they changed different fields. "list": nothing is
#: written, and all conflicts are returned; "ours", "theirs": the version of that branch counts; "newest": the one that
#: was written last.
OnConflict: TypeAlias = Literal["list", "ours", "theirs", "newest"]
ON_CONFLICT: tuple[OnConflict, ...] = get_args(OnConflict)
#: What a conflict is resolved by: the version of one branch, or "both", where theirs is stored under another id.
Choice: TypeAlias = Literal["ours", "theirs", "both"]
CHOICES: tuple[Choice, ...] = get_args(Choice)


@dataclass(frozen=True, kw_only=True)
class CreateBranch(Operation, name="create_branch", right=WRITE, result="BranchInfo", in_batch=False):
    """Create a branch that continues the one of the operation. The result is its `BranchInfo`.

    Attributes:
        branch: The name of the new branch.
        moment: The token of the moment from which it continues (`Pin`); None: the newest commit.
    """

    branch: str
    moment: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "branch", branch_name(self.branch, "name"))
        if self.branch == MAIN:
            raise InvalidArgumentError("name", self.branch, "is that of the branch that every namespace begins with")
        if self.moment is not None:
            check_text("moment", self.moment)

    @property
    def branches(self) -> tuple[str, ...]:
        """The names of the other branches that it concerns."""
        return (self.branch,)


@dataclass(frozen=True, kw_only=True)
class ListBranches(Operation, name="branches", right=READ, result="list[BranchInfo]", in_batch=False):
    """List the branches of the namespace. The result is a list of `BranchInfo`, the main branch first.

    Attributes:
        sizes: Count the records and bytes of each, too.
    """

    sizes: bool = False

    def __post_init__(self) -> None:
        check_flag("sizes", self.sizes)


@dataclass(frozen=True, kw_only=True)
class DropBranch(Operation, name="drop_branch", right=ADMIN, result="BranchInfo", in_batch=False):
    """Remove a branch with all that only it has. The result is the `BranchInfo` that it had.

    Attributes:
        branch: Its name.
    """

    branch: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "branch", branch_name(self.branch, "name"))
        if self.branch == MAIN:
            raise InvalidArgumentError("name", self.branch, "is the main branch, which stays")

    @property
    def branches(self) -> tuple[str, ...]:
        """The names of the other branches that it concerns."""
        return (self.branch,)


@dataclass(frozen=True, kw_only=True)
class MergeBranch(Operation, name="merge_branch", right=WRITE, result="Merged", in_batch=False):
    """Merge another branch into the one of the operation, in a commit with two parents. The result is a `Merged`.

    Attributes:
        branch: The name of the other branch.
        on_conflict: What becomes of a record that both have changed: see `ON_CONFLICT`.
        resolutions: What becomes of some of them: (part, id, choice). A choice is one of `CHOICES`, or a record.
        ours: Merge only if this is the newest commit of the branch of the operation.
        theirs: Merge only if this is the newest commit of the other branch.
        dry_run: Change nothing: the result is what would be done.
    """

    branch: str
    on_conflict: OnConflict = "list"
    resolutions: tuple[tuple[str, str, Choice | Record], ...] = ()
    ours: int | None = None
    theirs: int | None = None
    dry_run: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "branch", branch_name(self.branch, "name"))
        check_choice("on_conflict", self.on_conflict, ON_CONFLICT)
        object.__setattr__(self, "resolutions", tuple(map(_resolution, self.resolutions)))
        check_count("ours", self.ours, least=0, optional=True)
        check_count("theirs", self.theirs, least=0, optional=True)
        check_flag("dry_run", self.dry_run)

    @property
    def branches(self) -> tuple[str, ...]:
        """The names of the other branches that it concerns."""
        return (self.branch,)


@dataclass(frozen=True, kw_only=True)
class ProveMerge(Operation, name="prove_merge", right=READ, result="dict", in_batch=False):
    """Prove that a commit merges one of another branch. The result is a dict (`ledger.proofs`).

    Attributes:
        seq: The number of the merge.
    """

    seq: int

    def __post_init__(self) -> None:
        check_count("seq", self.seq)


def _resolution(given: Any) -> tuple[str, str, Choice | Record]:
    """Check one of `MergeBranch.resolutions`."""
    if not isinstance(given, (tuple, list)) or len(given) != 3:
        raise InvalidArgumentError("resolutions", given, "must be a part, an id and a choice each")
    part, record_id, choice = given
    check_text("part", part)
    check_text("id", record_id)
    if isinstance(choice, Mapping):
        choice = Record.from_json(choice)
    if not isinstance(choice, Record):
        check_choice("choice", choice, CHOICES)
    return part, record_id, choice
