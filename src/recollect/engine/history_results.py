"""The results of the operations on the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from recollect.arguments.json_form import JsonForm, is_result, json_form
from recollect.errors import UnsupportedError
from recollect.ledger.commits import Commit
from recollect.ledger.parts import RECORDS
from recollect.records.origins import Origin, least
from recollect.records.record import FIELD_NAMES, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(JsonForm, what="a rollback"):
    """The result of a rollback or of a revert.

    Attributes:
        seq: The number of the newest commit, which is a new one if anything was changed.
        changed: The number of records that were changed.
        conflicts: The ids of the records that were not restored because they were changed later (revert only), or
            because they are, or would be, of a higher class of origin than the caller's.
        erased: The ids of the records that were not restored because their text was erased, or removed from the former
            versions by the retention of the namespace (`set_retention`).
        damaged: The ids of the records that were not restored because their version is corrupt.
        parts: The same for each other part of the memory in which anything was changed or not restored, by its name.
    """

    seq: int
    changed: int
    conflicts: tuple[str, ...] = ()
    erased: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    parts: Mapping[str, Restored] = field(default_factory=dict)

    def each(self) -> Iterator[tuple[str, Restored]]:
        """Yield the name of each part, the records first, with what was restored of it."""
        yield RECORDS, self
        yield from self.parts.items()

    def __bool__(self) -> bool:
        """Return whether anything was changed or could not be restored."""
        return bool(self.changed or self.conflicts or self.erased or self.damaged or any(self.parts.values()))


@is_result()
@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """The result of an erasure.

    Attributes:
        ids: The ids of the records that were erased, sorted.
        versions: The number of versions that lost their contents.
        derived: The ids of the records that derive from an erased one (`derived_from`), directly or through others, and
            still have contents, or had when this began: with `derived=True`, `ids` has them, too.
        pending: Whether something is left to do: former states of the contents are still in a file, because a reader
            needs them, or another process was in the way. It is continued after the next write, and when the store is
            opened or closed.
        copies: The paths of other stores in the folder of this one that have contents which were erased, or may have
            them: backups, replaced and rescued stores. They are not changed. For a store on a server, what the server
            keeps of them for a while.
        commits: The numbers of the commits that erased records, one for each thousand; in the log of a part, if only
            that part was named; () within a scope.
        parts: How many records were erased of each other part of the memory that had any, by its name, such as "terms".
        dry_run: Whether nothing was erased: the other attributes say what would be.
    """

    ids: tuple[str, ...]
    versions: int
    derived: tuple[str, ...] = ()
    pending: bool = False
    copies: tuple[str, ...] = ()
    commits: tuple[int, ...] = ()
    parts: Mapping[str, int] = field(default_factory=dict)
    dry_run: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "ids": list(self.ids),
            "versions": self.versions,
            "derived": list(self.derived),
            "pending": self.pending,
            "copies": list(self.copies),
            "commits": list(self.commits),
            "parts": dict(self.parts),
            **({"dry_run": True} if self.dry_run else {}),
        }

    @classmethod
    @json_form("an erasure")
    def from_json(cls, data: Mapping[str, Any]) -> Erased:
        """Rebuild a result from its JSON form."""
        parts = data["parts"] if "parts" in data else data["beside"]  # as earlier releases called it
        return cls(
            ids=tuple(data["ids"]),
            versions=data["versions"],
            derived=tuple(data["derived"]),
            pending=data["pending"],
            copies=tuple(data["copies"]),
            commits=tuple(data["commits"]),
            parts=dict(parts),
            dry_run=data.get("dry_run", False),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRecord(JsonForm, what="a changed record"):
    """A record that two moments have in different versions.

    Attributes:
        before: The record at the first moment.
        after: The record at the second moment.
    """

    before: Record
    after: Record

    @property
    def id(self) -> str:
        """The id of the record."""
        return self.after.id

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that differ."""
        return tuple(name for name in FIELD_NAMES if getattr(self.before, name) != getattr(self.after, name))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, with the names of the fields that differ."""
        return {**JsonForm.to_json(self), "fields": list(self.fields)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(JsonForm, what="a difference"):
    """The difference of two moments. The records are sorted by id.

    Attributes:
        added: The records that only the second moment has.
        changed: The records that both have, in different versions.
        removed: The records that only the first moment has.
        erased: The ids of records that differ, and of which a version was erased.
        parts: The same for each other part of the memory that differs, by its name.
    """

    added: tuple[Record, ...]
    changed: tuple[ChangedRecord, ...]
    removed: tuple[Record, ...]
    erased: tuple[str, ...] = ()
    parts: Mapping[str, Difference] = field(default_factory=dict)

    def each(self) -> Iterator[tuple[str, Difference]]:
        """Yield the name of each part, the records first, with its difference."""
        yield RECORDS, self
        yield from self.parts.items()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.erased or any(self.parts.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordVersion(JsonForm, what="a version of a record"):
    """The effect of a commit on a record.

    Attributes:
        commit: The commit, with the change of this record only.
        cause: The cause of the change, such as "written" or "forgotten".
        record: The record after the commit; None if it was not live any more, or if its text was erased.
        erased: Whether the record was live after the commit, and its text was erased, or removed by the retention of
            the namespace.
    """

    commit: Commit
    cause: str
    record: Record | None
    erased: bool


class Deviation(NamedTuple):
    """A difference between a receipt and its replay.

    Attributes:
        what: "seq", "root" or "log": the history is another one; "embedder": the memory has another one; "hits" or
            "standing": a hit is another one, or has another version or score.
        rank: The index of the hit, from 0; None for the others.
        receipt: What the receipt has; None if it has no such hit.
        store: What the store has; None if there is no such hit.
        reason: Why, if that is known: "erased" for a hit whose text was erased.
    """

    what: str
    rank: int | None
    receipt: Any
    store: Any
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed(JsonForm, what="a replay"):
    """The result of replaying a receipt.

    Attributes:
        rules_changed: Whether other rules compute the scores now than when the receipt was written.
        deviations: What is different; () if the answer and the history are the same.
    """

    rules_changed: bool
    deviations: tuple[Deviation, ...]

    @property
    def status(self) -> str:
        """The finding of the replay: "same", "different" or "rules changed".

        "rules changed": the rules are others, and nothing but hits and scores differs, perhaps not even these.
        """
        if self.rules_changed and all(
            each.what in ("hits", "standing") and not each.reason for each in self.deviations
        ):
            return "rules changed"
        return "different" if self.deviations else "same"

    def __bool__(self) -> bool:
        """Return whether the replay gave the same answer, by the same rules."""
        return self.status == "same"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "status": self.status,
            "rules_changed": self.rules_changed,
            "deviations": [each._asdict() for each in self.deviations],
        }


# Who said what.


@is_result("a finding")
class AuditFinding(NamedTuple):
    """Something about a record that may be an attack on the memory. It is a reason to look, and no proof.

    Attributes:
        id: The record.
        origin: Its class of origin.
        signal: "imperative": an order to a model; "addresses": words to or about a model, its user or its prompt;
            "hidden": text that a reader does not see; "rival": it says something else than the user; "burst": nearly
            the same was said three times within a day; "proposal": it would govern, or replace a record of a higher
            class, if it were endorsed.
        text: The part of the text that was found, or the text.
        ids: Other records that it is about: what it rivals or would replace, or its likes.
    """

    id: str
    origin: Origin
    signal: str
    text: str
    ids: tuple[str, ...] = ()


# What was made from what.


@is_result("a record of a lineage")
class LinkedRecord(NamedTuple):
    """A record that another one was made from.

    Attributes:
        id: Its id.
        depth: How many links lead to it; 0 for the record that was asked for.
        origin: Its class of origin; "unknown" if it is not there any more.
        state: "live"; "former": forgotten, merged or expired; "erased"; or "unknown": there was never one, or not in
            this scope.
        text: Its text.
        link: The field that names it, "derived_from" or "supersedes"; "" for the record that was asked for.
        child: The id of the record that names it.
        seq: The commit that changed it last; 0 within a scope.
        actor: Who made that commit.
        reason: Why.
    """

    id: str
    depth: int
    origin: Origin
    state: str
    text: str = ""
    link: str = ""
    child: str = ""
    seq: int = 0
    actor: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage(JsonForm, what="a lineage"):
    """What a record was made from, breadth first.

    Attributes:
        records: The record itself, and then what it derives from and replaces.
        truncated: Whether there are more than were asked for.
    """

    records: tuple[LinkedRecord, ...]
    truncated: bool = False

    @property
    def least(self) -> Origin:
        """The least trusted class of origin among the records."""
        return least(each.origin for each in self.records)


@is_result()
@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """What was made from some records, breadth first.

    Attributes:
        by_depth: The ids of the records by how many links lead to them. Those at 0 are where it began.
        truncated: Whether there are more than were asked for.
    """

    by_depth: tuple[tuple[str, ...], ...]
    truncated: bool = False
    _actions: TaintActions | None = field(default=None, compare=False, repr=False)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all of them."""
        return tuple(each for ids in self.by_depth for each in ids)

    def __len__(self) -> int:
        return sum(map(len, self.by_depth))

    def bind(self, actions: TaintActions) -> Taint:
        """Return it with what forgets and erases records."""
        return replace(self, _actions=actions)

    def forget(self, reason: str | None = None, *, actor: str | None = None) -> int:
        """Forget the records, in one commit, which `revert` takes back, and return how many were live.

        Args:
            reason: Why; recorded in the commit.
            actor: Who forgets them; recorded in the commit.

        Raises:
            UnsupportedError: There are more records than were asked for.
        """
        return self._acting().forget(self.ids, reason, actor)

    def erase(self, *, redact: bool = False) -> Erased:
        """Erase the records for ever, in all versions (`Memory.erase`).

        Args:
            redact: Also replace their ids.

        Raises:
            UnsupportedError: There are more records than were asked for.
        """
        return self._acting().erase(self.ids, redact)

    def _acting(self) -> TaintActions:
        if self._actions is None:
            raise UnsupportedError("an action on a taint", "it is not the answer of a memory: ask for it again")
        if self.truncated:
            raise UnsupportedError("an action on a part of a taint", "there are more records: name fewer to begin with")
        return self._actions

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"by_depth": [list(ids) for ids in self.by_depth], "truncated": self.truncated}

    @classmethod
    @json_form("a taint")
    def from_json(cls, data: Mapping[str, Any]) -> Taint:
        """Rebuild it from its JSON form."""
        return cls(by_depth=tuple(map(tuple, data["by_depth"])), truncated=data["truncated"])


class TaintActions(Protocol):
    """What a memory does with the records of a taint."""

    def forget(self, ids: tuple[str, ...], reason: str | None, actor: str | None) -> int:
        """Forget records in one commit, and return how many there were."""

    def erase(self, ids: tuple[str, ...], redact: bool) -> Erased:
        """Erase records."""
