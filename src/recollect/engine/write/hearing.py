"""Turns that are stored one by one, or as records: which of them may repeat what a tool has returned.

This is known from the turns that are stored before them. `messages.Addition` does the same for a list of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from recollect.engine.write.drafts import Draft, is_turn
from recollect.records.messages.tools import Hearing, exchange
from recollect.records.origins import Origin
from recollect.records.record import Record


def with_heard(
    drafts: Sequence[Draft],
    before: Callable[[Draft], Iterable[Record]],
    writer: Origin,
    known: Container[int] = frozenset(),
) -> list[Draft]:
    """Return drafts, of which the turns of tools, and those that may repeat them, have the class of these.

    Args:
        drafts: The drafts, in the order in which they are stored.
        before: Returns the stored turns before one, the last first.
        writer: The class of who stores them.
        known: The numbers of those that are stored already.
    """
    out: list[Draft] = []
    hearings: dict[tuple[Any, ...], Hearing] = {}
    for number, each in enumerate(drafts):
        record = each.record
        if record.role is None or each.exact or not is_turn(record) or (record.role == "user" and len(drafts) == 1):
            out.append(each)
            continue
        key = record.conversation, record.user
        if key not in hearings:
            own = (turn for turn in before(each) if None in (turn.user, record.user) or turn.user == record.user)
            hearings[key] = Hearing({}, exchange(own))
        hearing = hearings[key]
        if number in known:
            hearing.note_calls(record.metadata)
        else:
            each = each._replace(heard=hearing.of(record.role, record.speaker, record.metadata, writer))
        out.append(each)
    return out
