"""Turns that are stored one by one, or as records: which of them may repeat what a tool has returned.

A list of messages says so itself (`messages.Addition`). Of other turns it is known from those that were stored before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from recollect.engine.write.drafts import Draft, is_turn
from recollect.records.messages.tools import Hearing, exchange
from recollect.records.record import Record


def with_heard(drafts: Sequence[Draft], before: Callable[[Draft], Iterable[Record]]) -> list[Draft]:
    """Return drafts, of which the turns of tools, and those that may repeat them, have the class of these.

    Args:
        drafts: The drafts, in the order in which they are stored.
        before: Returns the stored turns before one, the last first.
    """
    out: list[Draft] = []
    hearings: dict[tuple[Any, ...], Hearing] = {}
    for each in drafts:
        record = each.record
        if record.role is None or each.exact or not is_turn(record) or (record.role == "user" and len(drafts) == 1):
            out.append(each)
            continue
        key = record.conversation, record.user, record.agent
        if key not in hearings:
            own = (turn for turn in before(each) if (turn.conversation, turn.user, turn.agent) == key)
            hearings[key] = Hearing({}, exchange(own))
        out.append(each._replace(heard=hearings[key].of(record.role, record.speaker, record.metadata)))
    return out
