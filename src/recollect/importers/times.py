"""The times of turns and documents that state none: those of what is around them in the source.

A turn without a time is of the time of the turn before it, or else after it, or else of its conversation: the time of
the import would make a question of last year the newest. The report counts them (`ImportReport.dated`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

from recollect.common.regexes import regex
from recollect.importers.base import Damage, Item
from recollect.records.messages.values import UnreadableError, instant

#: The names under which exports state the time of a conversation, the best first.
_NAMES = ("create_time", "created_at", "created", "start_time", "timestamp", "date", "update_time", "updated_at")
#: A day at the begin of the name of a file: daily notes.
_DAY = regex(r"(?<!\d)((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)")


def time_of_conversation(about: Mapping[str, Any], zone: tzinfo) -> datetime | None:
    """Return the time that a conversation states; None if it states none."""
    for name in _NAMES:
        if about.get(name) not in (None, ""):
            with suppress(UnreadableError):
                return instant(about[name], zone)
    return None


def day_of_name(name: str, zone: tzinfo) -> datetime | None:
    """Return the day that the name of a file begins with, as that of a daily note; None if it has none.

    >>> from datetime import UTC
    >>> day_of_name("2026-11-20 Friday.md", UTC).isoformat(), day_of_name("20261120.md", UTC).isoformat()
    ('2026-11-20T00:00:00+00:00', '2026-11-20T00:00:00+00:00')
    >>> day_of_name("release-2026-11-20.md", UTC), day_of_name("2026-02-30.md", UTC)
    (None, None)
    """
    found = _DAY.match(name)
    if found is None:
        return None
    with suppress(UnreadableError):
        return instant("-".join(found.groups()), zone)
    return None


def dated(
    turns: Iterable[Item | Damage], conversation: datetime | None, before: datetime | None = None
) -> Iterator[Item | Damage]:
    """Yield the turns of a conversation, each with a time if the source has any for it.

    Args:
        turns: The turns, in their order.
        conversation: The time of the conversation.
        before: The time of the turn before the first.
    """
    last = before
    waiting: list[Item | Damage] = []  # those before the first time
    for turn in turns:
        time = turn.fields.get("time") if isinstance(turn, Item) else None
        if time is not None:
            yield from (_at(each, time, "the turn after") for each in waiting)
            waiting, last = [], time
            yield turn
        elif last is None:
            waiting.append(turn)
        else:
            yield _at(turn, last, "the turn before")
    yield from (_at(each, conversation, "its conversation") for each in waiting)


def _at(turn: Item | Damage, time: datetime | None, of: str) -> Item | Damage:
    if isinstance(turn, Damage) or time is None:
        return turn
    return replace(turn, fields={**turn.fields, "time": time}, dated_by=of)
