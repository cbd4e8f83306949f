"""`RetentionCalls`: how long records stay. The calls that set and apply the retention of a namespace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from recollect import filters as f
from recollect.arguments.signatures import all_named
from recollect.errors import OriginError
from recollect.memory.consolidation import LARGEST, Consolidation, Group, groups_of
from recollect.operations import Now, Sweep
from recollect.operations.retention import (
    ApplyRetention,
    Due,
    GetRetention,
    Retention,
    RetentionRule,
    SetRetention,
)
from recollect.records.record import Record

#: Minimum number of records of a group that a rule consolidates: that of `consolidate`.
_SMALLEST = 10
#: Maximum number of records that are consolidated in one commit.
_AT_ONCE = 1000


@all_named
class RetentionCalls(Consolidation):
    """The calls on how long records stay (docs/retention.md)."""

    def set_retention(
        self,
        rules: Iterable[RetentionRule | Mapping[str, Any]] = (),
        *,
        keep_versions: str | timedelta | None = None,
    ) -> None:
        """Set how long the records of this namespace stay, all of it; without arguments, remove it.

            memory.set_retention(
                [
                    RetentionRule("court order", where="user=ana", action="hold"),
                    RetentionRule("old chats", where="kind=conversation and origin<=tool", after="90d"),
                ],
                keep_versions="30d",
            )

        It is stored in the store and applies to existing records, too. Nothing is removed by this call, nor by any
        ordinary write: `apply_retention` and `sweep` do so. `apply_retention(rules)` shows beforehand what they would
        remove.

        Args:
            rules: The rules, or their JSON forms. The first one that applies to a record decides about it.
            keep_versions: How long the texts of former versions stay after they were replaced or removed, in all parts
                of the memory: "30d", or a timedelta. Moments that are longer ago then lack these records. None: they
                stay.

        Raises:
            InvalidArgumentError: An argument is invalid.
            OriginError: This memory writes as less than the user.
            ScopeError: This memory is scoped.
            StoreError: The store failed.
        """
        kept: Any = keep_versions
        self.execute(SetRetention(rules=rules, keep_versions=kept))  # type: ignore[arg-type]

    def retention(self) -> Retention:
        """Return how long the records of this namespace stay.

        Raises:
            ScopeError: This memory is scoped.
        """
        found: Retention = self.execute(GetRetention())
        return found

    def apply_retention(
        self,
        rules: Iterable[RetentionRule | Mapping[str, Any]] | None = None,
        *,
        keep_versions: str | timedelta | None = None,
        dry_run: bool = True,
        samples: int | None = 10,
        actor: str | None = None,
    ) -> list[Due]:
        """Return what is due by the retention of this namespace; with `dry_run=False`, remove it.

            for due in memory.apply_retention():
                print(due.rule, due.action, due.count, due.oldest)
            memory.apply_retention(dry_run=False)

        Records are removed in commits of at most 1,000, with the reason "retention: NAME" of the rule. One that another
        writer changes meanwhile stays until the next time, and if the rules are changed, nothing more is removed. If
        nothing is due, there is no commit.

        Args:
            rules: In a dry run, show what these rules and `keep_versions` would do. Default: those that are set.
            keep_versions: See `set_retention`.
            dry_run: Change nothing.
            samples: Maximum number of ids that are listed for each rule; None: all.
            actor: Who removes it; recorded in the commits.

        Returns:
            A `Due` for each rule by which something is due, or was removed.

        Raises:
            InvalidArgumentError: An argument is invalid, or rules are passed and it is no dry run.
            OriginError: This memory writes as less than the user, and it is no dry run.
            ScopeError: This memory is scoped.
            StoreError: The store failed; what was committed before stays removed.

        Cost:
            Reads the records that can be due, and the commits that have become older than `keep_versions` since the
            last time. A rule that erases reads all versions of the namespace.
        """
        stated: Any = rules
        kept: Any = keep_versions
        return self._apply(
            ApplyRetention(dry_run=dry_run, rules=stated, keep_versions=kept, samples=samples), actor=actor
        )

    def sweep(self, limit: int = 1000) -> int:
        """Remove expired records, and what is due by the retention of the namespace, and return how many there were.

        The log names each expired record with the cause "expired". Reads never return them, and each commit removes up
        to 1,000 of them. Call this for a memory that is seldom written to, or that has rules of retention. A memory
        that writes as less than the user removes only expired records.

        Args:
            limit: Maximum number of records to remove, 1 or more. Those that expired first are removed first.

        Raises:
            ScopeError: This memory is scoped.

        Cost:
            One durable commit for the expired records, in proportion to their number, and that of `apply_retention`.
        """
        swept: int = self.execute(Sweep(limit=limit))
        if swept < limit:
            with suppress(OriginError):
                done = self._apply(ApplyRetention(dry_run=False, samples=0, limit=limit - swept))
                swept += sum(each.count for each in done if each.action != "thin")
        return swept

    def _apply(self, operation: ApplyRetention, actor: str | None = None) -> list[Due]:
        done: list[Due] = self.execute(operation, actor=actor)
        if not any(each.action == "consolidate" for each in done):
            return done
        # The engine lists what is old enough. What of it can be summarised is found here, as `consolidate` finds it.
        listing = replace(operation, dry_run=True, samples=None, limit=None)
        listed: list[Due] = self.execute(listing)
        old = {each.rule: each.samples for each in listed if each.action == "consolidate"}
        return [
            self._summarised(each, old.get(each.rule, ()), operation, actor) if each.action == "consolidate" else each
            for each in done
        ]

    def _summarised(self, due: Due, old: Sequence[str], operation: ApplyRetention, actor: str | None) -> Due:
        """Consolidate what a rule has made due, unless it is a dry run, and return what was, or would be."""
        records = {each.id: each for each in self.find(f.id(*old), order="id")} if old else {}
        now: datetime = self.execute(Now())
        done: list[Record] = []
        for groups in _bundles(groups_of(records.values(), _SMALLEST, max(len(records), _SMALLEST), now)):
            if operation.limit is not None and len(done) >= operation.limit:
                break
            result = self.consolidate(
                where=f.id(*(each.id for group in groups for each in group)),
                min_count=_SMALLEST,
                dry_run=operation.dry_run,
                actor=actor,
                reason=f"retention: {due.rule}",
            )
            done += [records[each] for group in result.groups if not group.reason for each in group.sources]
        return replace(
            due,
            count=len(done),
            bytes=sum(len(each.to_bytes()) for each in done),
            samples=tuple(each.id for each in done)[: operation.samples],
            left=len(old) - len(done),
        )


def _bundles(groups: Iterable[Group]) -> Iterator[list[Sequence[Record]]]:
    """Yield what is consolidated in one commit: records of different groups, so that each becomes one summary.

    A group that is too large for one summary is cut, its oldest records first; too few of its newest ones stay.
    """
    cut = [[each.records[begin : begin + LARGEST] for begin in range(0, len(each.records), LARGEST)] for each in groups]
    for number in range(max(map(len, cut), default=0)):
        bundle: list[Sequence[Record]] = []
        for pieces in cut:
            if number < len(pieces) and len(pieces[number]) >= _SMALLEST:
                if sum(map(len, bundle)) + len(pieces[number]) > _AT_ONCE:
                    yield bundle
                    bundle = []
                bundle.append(pieces[number])
        if bundle:
            yield bundle
