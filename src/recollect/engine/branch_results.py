"""The results of the operations on branches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from recollect.arguments.json_form import JsonForm
from recollect.ledger.parts import RECORDS
from recollect.records.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchInfo(JsonForm, what="a branch"):
    """A branch of a namespace.

    Attributes:
        name: Its name.
        base: The name of the branch that it continues; None for one that begins empty, such as the main one.
        base_seq: The commit of that branch that it continues; 0 for its beginning.
        seq: The number of its newest commit, counted from the beginning of the branch that it continues.
        created: When it was created (UTC); None for one that begins empty.
        merged_seq: The newest commit of it that was merged into another branch; None if none was.
        merged_into: The name of that branch.
        copy_of: The name that it has in another copy of the store, of which it has the commits (`merge_copy`).
        records: The number of its records, where sizes were asked for.
        own_bytes: The bytes of records that are stored for it alone, where sizes were asked for.
    """

    name: str
    base: str | None = None
    base_seq: int = 0
    seq: int = 0
    created: datetime | None = None
    merged_seq: int | None = None
    merged_into: str | None = None
    copy_of: str | None = None
    records: int | None = None
    own_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict(JsonForm, what="a conflict"):
    """A record that two branches have changed, and not to the same.

    Attributes:
        id: Its id.
        part: The part of the memory that it belongs to: "records", or what a facet keeps.
        base: What both branches had; None if the record is new in both, or was erased.
        ours: What this branch has; None if it removed the record.
        theirs: What the other branch has; None if it removed the record.
        fields: The fields that both have changed; () if the record is new in both, or one has removed it.
    """

    id: str
    part: str = RECORDS
    base: Record | None = None
    ours: Record | None = None
    theirs: Record | None = None
    fields: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The part and the id: what `Memory.resolve_merge` calls it."""
        return self.part, self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged(JsonForm, what="a merge"):
    """The result of a merge of a branch into another one.

    Attributes:
        branch: The name of the branch that was merged.
        seq: The commit of the merge; None if nothing was written: because of conflicts, or because this branch has all
            that the other one has changed.
        taken: How many records are as in the other branch: new, changed or removed.
        joined: How many have changes of both branches, in different fields.
        kept: How many stayed as they are, although the other branch has changed them, too.
        conflicts: What was not decided. The merge is written when each is (`Memory.resolve_merge`).
        ours: The newest commit of this branch before the merge.
        theirs: The newest commit of the other branch.
        parts: How many records are as in the other branch, of each part of the memory besides the records.
    """

    branch: str
    seq: int | None = None
    taken: int = 0
    joined: int = 0
    kept: int = 0
    conflicts: tuple[Conflict, ...] = ()
    ours: int = 0
    theirs: int = 0
    parts: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether a merge was written."""
        return self.seq is not None
