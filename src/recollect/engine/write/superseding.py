"""Supersession: a new fact replaces an old one from a time on. Both stay, and their validities meet at that time.

The new record takes over the fields of the old one that the caller does not pass, except those that belong to its text.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from recollect.engine.results import Outcome
from recollect.engine.scope import Scope
from recollect.engine.write.drafts import Intake, draft
from recollect.engine.write.writer import Writer
from recollect.errors import InvalidArgumentError, ValidityError
from recollect.filters.tree import ValidAt
from recollect.operations import Remember, Supersede
from recollect.records.identity import same_text
from recollect.records.record import FIELD_NAMES
from recollect.text.manner import WISHES

#: The fields that belong to a text: when and where it was said, when it is true, and where it came from.
_OF_THE_TEXT = frozenset(
    ("id", "content", "media_type", "position", "time", "valid_from", "valid_to", "supersedes", "derived_from")
)


def supersede(operation: Supersede, writer: Writer, scope: Scope, now: datetime, intake: Intake) -> Outcome:
    """Store the new record and close the validity of the old one.

    If the second write is refused, the first one is staged already, so the transaction must not be committed.

    Raises:
        UnknownRecordError: There is no live record with this id.
        ValidityError: The old record is not valid at that time.
        InvalidArgumentError: It has the same text.
        InvalidRecordError: The new record would be invalid.
        ScopeError: The new record would lie outside the scope.
        QuotaError: The records do not fit in the quota.
        RejectedError: The policies of the namespace do not allow the text.
    """
    existing = writer.find(operation.id)
    at = now if operation.at is None else operation.at
    if not ValidAt(at).matches(existing):
        ends = [None if end is None else end.isoformat() for end in (existing.valid_from, existing.valid_to)]
        raise ValidityError(operation.id, at.isoformat(), *ends)
    shown = scope.shown(existing)
    fields: dict[str, Any] = {
        **{name: getattr(shown, name) for name in FIELD_NAMES if name not in _OF_THE_TEXT},
        "tags": [tag for tag in shown.tags if tag not in WISHES],  # these follow from the text
        **operation.fields,
        "valid_from": at,
        "supersedes": (shown.id,),
    }
    new = draft(Remember(content=operation.content, fields=fields), scope, now, intake)
    if same_text(new.record, existing):
        raise InvalidArgumentError(
            "content", operation.content, f"is the text of record {operation.id!r} already: change fields with update()"
        )
    return writer.replace(existing, writer.admitted(new), at)
