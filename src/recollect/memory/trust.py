"""`Trust`: who said what. The calls that raise a class of origin, and that follow what was made from what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls, stored
from recollect.engine.history_results import AuditFinding, Erased, Lineage, Taint
from recollect.engine.results import Outcome
from recollect.filters.text_form import Where, as_filter, check_filter
from recollect.filters.tree import Is, Nothing
from recollect.operations import Erase, ForgetAll
from recollect.operations.trust import MOST_LINKED, SIGNALS, Audit, AuditSignal, Endorse, TraceLineage, TraceTaint
from recollect.records.origins import Origin
from recollect.records.record import Record


@all_named
class Trust(Calls):
    """The calls on who said what (docs/trust.md)."""

    def endorse(
        self,
        id: str,  # noqa: A002 - the field's name
        origin: Origin = "user",
        *,
        expect: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Record:
        """Raise the class of origin of a record, and return it: from now on it counts as said by that class.

            proposal = memory.as_origin("assistant").remember("Always answer in French.", user="ana")
            memory.endorse(proposal.id, expect=proposal.hash, reason="Ana confirmed it")

        It is the only way up. What the record has proposed then holds: as a standing instruction, pinned, or in the
        place of the records that it supersedes. Nothing that derives from it is changed.

        Args:
            id: The id of the record.
            origin: The class that it gets, at most that of this memory (`as_origin`). A lower one than it has changes
                nothing.
            expect: The hash of the version that was read: a writer may state another proposal meanwhile.
            actor: Who endorses it; recorded in the commit.
            reason: Why; recorded in the commit.

        Raises:
            UnknownRecordError: There is no live record with this id.
            ConflictError: `expect` is not met.
            OriginError: The class is above that of this memory.
            InvalidArgumentError: There is no such class.
            StoreError: The store failed.
        """
        outcome: Outcome = self.execute(Endorse(id=id, origin=origin, expect=expect), actor=actor, reason=reason)
        return stored(outcome)

    def audit(
        self,
        *,
        since: int | str = 0,
        where: Where | None = None,
        limit: int = 1000,
        signals: Iterable[AuditSignal] = SIGNALS,
    ) -> list[AuditFinding]:
        """Return what may be an attack on the memory among what the user has not said. Nothing is changed.

            for finding in memory.audit():
                print(finding.signal, finding.origin, finding.text)

        Wording is a weak signal: a plain false statement has none, and an honest text may be found. Nothing is done
        about a finding unless a policy says so (`set_policies(flagged="quarantine")`).

        Args:
            since: Only records that were changed after this commit: a seq, or the cursor of one.
            where: Only records that match this filter or text form of one.
            limit: Maximum number of records that are looked at, the newest first, at most 10,000.
            signals: Only these; default: all that an `AuditFinding` can have. With "proposal" alone, it is the list of
                what waits for an endorsement, and costs a search.

        Returns:
            The findings by record, the newest first.

        Raises:
            InvalidArgumentError: An argument is invalid.
            StoreError: The store failed.

        Cost:
            Two recalls for each record that is not the word of the user or the owner.
        """
        condition = as_filter(where)
        check_filter(condition)
        wanted: Any = signals
        audit = Audit(since=since, where=condition, limit=limit, signals=wanted)
        found: list[AuditFinding] = self.execute(audit)
        return found

    def lineage(self, id: str, limit: int = MOST_LINKED) -> Lineage:  # noqa: A002 - the field's name
        """Return what a record was made from: what it derives from and replaces, what these do, and so on.

            for each in memory.lineage(summary.id).records:
                print("  " * each.depth, each.origin, each.state, each.text)

        Args:
            id: The id of the record, also of one that was forgotten.
            limit: Maximum number of records, at most 10,000.

        Raises:
            UnknownRecordError: There has never been a record with this id.

        Cost:
            A look-up of the record and of its last commit for each record.
        """
        found: Lineage = self.execute(TraceLineage(id=id, limit=limit))
        return found

    def taint(
        self,
        ids: str | Record | Iterable[str | Record] = (),
        *,
        source: str | None = None,
        where: Where | None = None,
        limit: int = MOST_LINKED,
    ) -> Taint:
        """Return what was made from some records: what derives from them, what derives from that, and so on.

            tainted = memory.taint(source="https://pages.example/poisoned")
            print(tainted.by_depth)
            tainted.forget("a poisoned page")

        Args:
            ids: The id of a record, or several. A record that was forgotten counts, too.
            source: Begin with all records from this source, also those that were merged into others.
            where: Begin with all records that match this filter, or text form of one.
            limit: Maximum number of records, at most 10,000.

        Returns:
            The ids by depth. Its `forget` is one commit, which `revert` takes back; its `erase` is for ever.

        Raises:
            InvalidArgumentError: Nothing to begin with was named, or a filter is invalid.

        Cost:
            A look-up in the index for each record. The first call also reads the records that derive from others than
            these.
        """
        named: Any = (ids,) if isinstance(ids, (str, Record)) else ids
        condition = Nothing() if where is None else as_filter(where)
        found: Taint = self.execute(
            TraceTaint(
                ids=tuple(each.id if isinstance(each, Record) else each for each in named),
                source=source,
                where=condition,
                limit=limit,
            )
        )
        return found.bind(_Actions(self))


class _Actions:
    """What a memory does with the records of a taint."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def forget(self, ids: tuple[str, ...], reason: str | None, actor: str | None) -> int:
        """Forget records in one commit, and return how many there were."""
        count: int = self._calls.execute(ForgetAll(ids=ids), actor=actor, reason=reason)
        return count

    def erase(self, ids: tuple[str, ...], redact: bool) -> Erased:
        """Erase records."""
        erased: Erased = self._calls.execute(Erase(where=Is("id", ids), redact=redact, parts=("records",)))
        return erased
