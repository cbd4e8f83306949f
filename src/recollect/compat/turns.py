"""Messages of a chat as turns, with metadata: for adapters of memories that are given what was said."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect import Batch, Outcome, Report
from recollect import filters as f
from recollect.compat.objects import clean
from recollect.errors import RejectedError
from recollect.operations import Remember, RememberAll


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
        metadata: Metadata of those that are stored now, besides what a message has.
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
    changed: dict[int, Remember] = {}
    for at, (outcome, own) in enumerate(zip(outcomes, kept, strict=True)):
        record, added = outcome.record, {**(metadata or {}), **own}
        if record is not None and outcome.status == "created" and (added or valid_to is not None):
            fields: dict[str, Any] = {"metadata": {**record.metadata, **added}, "valid_to": valid_to}
            changed[at] = Remember(content=record.content, id=record.id, fields=fields, if_exists="update")
    if changed:  # one operation, since each is a round trip to a server
        updated = batch.execute(RememberAll(items=tuple(changed.values()), on_error="raise")).results
        for at, after in zip(changed, updated, strict=True):
            outcomes[at] = replace(outcomes[at], record=after.record)
    return outcomes


def append_turns(
    batch: Batch,
    messages: Sequence[Mapping[str, Any]],
    conversation: str,
    *,
    keys: Sequence[str] | None = None,
    **owners: Any,
) -> list[Outcome]:
    """Append the messages of a chat, also those that repeat earlier ones, in a batch; return the outcomes.

    For frameworks that pass each message once, or say which one it is. `add_turns` would take a conversation that says
    the same again for one that goes on from there in another way.

    Args:
        batch: The batch, whose lock keeps other processes from appending at the same position.
        messages: Dictionaries with "role" and "content", a text. Lone surrogates in it are replaced.
        conversation: The name of the conversation.
        keys: What tells each message from all others of the conversation: one that is stored already is not appended.
            None: they are all new.
        **owners: `user` and `agent`.

    Raises:
        RejectedError: Another policy than salience does not allow a text.
        RecollectError: A message is invalid, or the store failed.
    """
    named = [secrets.token_hex(16) for _ in messages] if keys is None else keys
    ids = [f"turn-{_digest(conversation, *owners.values(), key)}" for key in named]
    stored = dict(zip(ids, batch.get_all(ids), strict=True))
    new = [(name, message) for name, message in zip(ids, messages, strict=True) if stored[name] is None]
    last = batch.find(f.conversation(conversation) & f.kind("conversation"), limit=1, order="last")
    first = (last[0].position or 0) + 1 if last else 0
    of_all = {name: value for name, value in owners.items() if value is not None}
    of_all |= {"kind": "conversation", "conversation": conversation}
    items = [
        {**message, **of_all, "content": clean(message["content"]), "id": each, "position": first + at}
        for at, (each, message) in enumerate(new)
    ]
    return worthy(batch.remember_all(items)) if items else []


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode("utf-8")).hexdigest()[:40]


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
