"""Messages of a chat as turns, with metadata: for adapters of memories that are given what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
        metadata: Metadata of all, besides what a message has; set also where a message is stored already.
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
    failed = {one.index for one in report.failed}
    kept = [own for index, own in enumerate(each) if index not in failed] if each else [{}] * len(outcomes)
    pairs = zip(outcomes, kept, strict=True)
    return [with_metadata(batch, outcome, {**(metadata or {}), **own}, valid_to) for outcome, own in pairs]


def with_metadata(batch: Batch, outcome: Outcome, metadata: Mapping[str, Any], valid_to: datetime | None) -> Outcome:
    """Set metadata and the end of validity of a record that was stored, or was there; return the outcome of both."""
    record = outcome.record
    if record is None or outcome.status not in ("created", "unchanged"):
        return outcome
    changed = {**record.metadata, **metadata}
    if changed == dict(record.metadata) and valid_to in (None, record.valid_to):
        return outcome
    ends: dict[str, Any] = {} if valid_to is None else {"valid_to": valid_to}
    updated = batch.update(record.id, metadata=changed, **ends)
    return replace(outcome, record=updated, status="created" if outcome.status == "created" else "updated")


def worthy(report: Report) -> list[Outcome]:
    """Return the outcomes of a report, in which nothing has failed but what is not worth remembering.

    Raises:
        RecollectError: What another item failed with.
    """
    for failed in report.failed:
        if not (isinstance(failed.reason, RejectedError) and failed.reason.verdict.policy == "salience"):
            raise failed.reason
    return list(report.results)
