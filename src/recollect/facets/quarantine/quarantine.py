"""`Quarantine`, what a policy keeps apart until a person has looked at it: `memory.quarantine`.

Its records are a part of the memory of their own, so no question, filter or export of the records can find them, and
what they say changes no score. They have a history, are in backups, and count towards the quota.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recollect.arguments.signatures import all_named
from recollect.calls.namespace import NamespaceCalls
from recollect.common.uncopied import Uncopied
from recollect.engine.results import RecordList, Report
from recollect.filters.text_form import Where, as_filter
from recollect.operations import Count, Find, ForgetAll
from recollect.operations.trust import Release
from recollect.records.record import Record


@all_named
class Quarantine(Uncopied):
    """The records in quarantine. Returned by `Memory.quarantine`.

        for record in memory.quarantine():
            print(record.id, record.effective_origin, record.text)
        memory.quarantine.release([record.id])

    Every call raises InvalidArgumentError for an invalid argument and StoreError if the store fails.
    """

    def __init__(self, memory: NamespaceCalls, kept: NamespaceCalls) -> None:
        self._memory = memory
        self._kept = kept

    def __call__(self, where: Where | None = None, limit: int | None = 100) -> RecordList:
        """Return the records in quarantine, newest first.

        Args:
            where: Only records that match this filter, or text form of one.
            limit: Maximum number of records; None: all.
        """
        found: RecordList = self._kept.execute(Find(where=as_filter(where), limit=limit))
        return found

    def __len__(self) -> int:
        """Return how many records are in quarantine."""
        count: int = self._kept.execute(Count())
        return count

    def __bool__(self) -> bool:
        return True  # also if it is empty

    def release(
        self, ids: str | Record | Iterable[str | Record], *, actor: str | None = None, reason: str | None = None
    ) -> Report:
        """Store records that are in quarantine, in one commit. Their class of origin stays as it is.

        Args:
            ids: Their ids, or one.
            actor: Who releases them; recorded in the commit.
            reason: Why; recorded in the commit.

        Raises:
            UnknownRecordError: One of them is not in quarantine; nothing was changed.
            OriginError: This memory writes as less than the user.
            QuotaError: They do not fit in the quota.
        """
        report: Report = self._memory.execute(Release(ids=_listed(ids)), actor=actor, reason=reason)
        return report

    def reject(
        self, ids: str | Record | Iterable[str | Record], *, actor: str | None = None, reason: str | None = None
    ) -> int:
        """Forget records that are in quarantine, in one commit, and return how many. Their history stays.

        The same text under the same id is then not kept again.

        Args:
            ids: Their ids, or one. One that is not in quarantine is ignored.
            actor: Who rejects them; recorded in the commit.
            reason: Why; recorded in the commit.
        """
        count: int = self._kept.execute(ForgetAll(ids=_listed(ids)), actor=actor, reason=reason)
        return count


def _listed(ids: str | Record | Iterable[str | Record]) -> tuple[Any, ...]:
    return (ids,) if isinstance(ids, (str, Record)) else tuple(ids)
