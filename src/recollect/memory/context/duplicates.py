"""Duplicates: entries that say nothing that a chosen one does not say.

A record repeats another if both have the same words in the same order, apart from case, blanks and punctuation, and are
of the same user and speaker and about the same entity. Turns must be of the same day, too: "I paid the rent today" of
another month is another event; but a turn that only asks says the same on any day. Nothing that differs in a word, a
number or a sign is ever folded.
"""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Any

from recollect.records.record import Record
from recollect.text.asking import only_asks

#: Punctuation at the ends of words that makes no difference. Signs such as + - # < $ do.
_PUNCTUATION = ".,;:!?…\"'“”„‘’«»()[]"


class Chosen:
    """The chosen records by what they say.

    Args:
        zone: The time zone in which a turn is on a day.
    """

    def __init__(self, zone: tzinfo = UTC) -> None:
        self._zone = zone
        self._ids: dict[tuple[Any, ...], str] = {}

    def add(self, record: Record, text: str) -> str | None:
        """Add a record, unless a chosen one says the same: then return the id of that one.

        Args:
            record: The record.
            text: What is shown of it.

        >>> chosen, said = Chosen(), "Ana moved to Oslo in May 2021."
        >>> [chosen.add(Record(id=text, content=text), text) for text in (said, "Ana moved to Oslo in May 2022.")]
        [None, None]
        >>> chosen.add(Record(id="c", content="ana moved to Oslo, in May 2021!"), "ana moved to Oslo, in May 2021!")
        'Ana moved to Oslo in May 2021.'
        """
        words = (word.strip(_PUNCTUATION) for word in text.casefold().split())
        day = (
            record.time.astimezone(self._zone).date()
            if record.time is not None and record.kind == "conversation" and not only_asks(text)
            else None
        )
        who = (record.user, record.speaker or record.role, record.entity, record.metadata.get("success"))
        key = (*who, day, " ".join(filter(None, words)))
        same = self._ids.setdefault(key, record.id)
        return None if same == record.id else same
