"""Merging: one new record takes the place of several, from which it derives.

The new record is stored and the others go, with the cause "superseded", in one commit. Each of them must be as the
caller saw it: what another writer changed meanwhile would otherwise be lost.
"""

from __future__ import annotations

from datetime import datetime

from recollect.engine.results import Outcome
from recollect.engine.scope import Scope
from recollect.engine.write.drafts import Intake, draft
from recollect.engine.write.writer import Writer
from recollect.operations import Merge, Remember


def merge(operation: Merge, writer: Writer, scope: Scope, now: datetime, intake: Intake) -> Outcome:
    """Store the new record and remove its sources.

    If storing is refused, sources are removed already, so the transaction must not be committed.

    Raises:
        ConflictError: A source has another hash than expected.
        UnknownRecordError: There is no live record with one of the ids.
        InvalidRecordError: The new record would be invalid.
        ScopeError: The new record would lie outside the scope.
        QuotaError: The new record does not fit in the quota.
        RejectedError: The policies of the namespace do not allow the text.
    """
    sources = [writer.find(record_id, expected) for record_id, expected in operation.sources.items()]
    fields = {**operation.fields, "derived_from": tuple(operation.sources)}
    new = draft(Remember(content=operation.content, fields=fields), scope, now, intake)
    return writer.merge(sources, writer.admitted(new))
