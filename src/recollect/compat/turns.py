"""Messages of a chat as turns, with metadata: for adapters of memories that are given what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect import Batch, Outcome, Report
from recollect.errors import RejectedError


def add_turns(
    batch: Batch,
    messages: Sequence[Any],
    *,
    metadata: Mapping[str, Any] | None = None,
    each: Sequence[Mapping[str, Any]] = (),
    valid_to: datetime | None = None,
    **options: Any,
) -> list[Outcome]:
    """Store the messages of a chat that are not stored yet, in a batch, and return the outcomes.

    Args:
        batch: The batch.
        messages: Dictionaries with "role" and "content", in order.
        metadata: Metadata of all that are stored, besides what a message has.
        each: Metadata of each message, which then must be one turn each.
        valid_to: When they cease to be true; None: never.
        **options: Arguments of `Memory.add_messages`: `user`, `agent`, `conversation` and `time`.

    Returns:
        The outcomes in the order of the messages, without those that are not worth remembering.

    Raises:
        RejectedError: Another policy than salience does not allow a text.
        RecollectError: What `Memory.add_messages` raises, or a message failed with.
    """
    report = batch.add_messages(messages, **options)
    outcomes = worthy(report)
    failed = {each.index for each in report.failed}
    kept = [own for index, own in enumerate(each) if index not in failed] if each else [{}] * len(outcomes)
    for outcome, own in zip(outcomes, kept, strict=True):
        record, added = outcome.record, {**(metadata or {}), **own}
        if record is not None and outcome.status == "created" and (added or valid_to is not None):
            batch.update(record.id, metadata={**record.metadata, **added}, valid_to=valid_to)
    return outcomes


def worthy(report: Report) -> list[Outcome]:
    """Return the outcomes of a report, in which nothing has failed but what is not worth remembering.

    Raises:
        RecollectError: What another item failed with.
    """
    for failed in report.failed:
        if not (isinstance(failed.reason, RejectedError) and failed.reason.verdict.policy == "salience"):
            raise failed.reason
    return list(report.results)
