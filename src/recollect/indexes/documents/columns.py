"""Documents as columns: the numbers that the index stores for each record.

A record becomes a `Document`; an index stores documents as one column for each property. Code that adds documents,
singly or in bulk, gets the values of the columns from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from recollect.indexes.fixed_point import ONE
from recollect.text.words import Term

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]
Flags = NDArray[np.bool_]
SortKey = tuple[int, int, str]
Session = tuple[str, str]
NEVER = 2**63 - 1
#: `micros` of a document without a time: earlier than any other.
NO_TIME = -(2**63)
NONE = -1
NO_IMPORTANCE = -1.0


#: The record fields with a column of text numbers: fields used in filters whose values recur in many records.
FIELDS = ("kind", "role", "user", "agent", "conversation", "entity", "source")


#: The fields that a group of turns have in common. All fields that a scope can fix are among them.
GROUPED = tuple(map(FIELDS.index, ("user", "agent", "conversation")))


class Document(NamedTuple):
    """A record in the form that indexes store.

    Attributes:
        id: The id of the record.
        terms: The terms of its text, with the words that they come from.
        session: The session, (conversation, session), within which context applies; None for a record that is not a
            turn.
        place: The sort key within the session: position, time, id.
        asks: Whether it ends with a question, which the next turn answers.
        micros: Its time in microseconds since 1970; NO_TIME if it has none.
        expires: Its expiry in microseconds since 1970; NEVER if it has none.
        speaker: The name of its speaker, or a NUL character and its role; "" if it has neither.
        names: The terms of the speaker's name.
        manner: The weight of its manner, with 16 bits of fraction (`text.manner`).
        civil: Its local date (`civil_of`); 0 if it has no time.
        offers: The kinds of answers that it provides (`text.answers.Kind`), and INSTRUCTION if it is one.
        language: The number of the language in which its words were read (`text.languages.CODES`).
        standing: Its standing tags as bits, in the order of `text.manner.STANDING_TAGS`.
        text: The digest that the vectors of its text are stored under; b"" if there is no text.
        fields: The values of the fields in FIELDS, in their order.
        importance: 0 to 1; NO_IMPORTANCE if it has none.
        filter_terms: Terms that are not words, each once, for filters on properties without a column.
        titles: The terms of the titles above it, with the words that they come from, each once.
        valid_from: The start of its validity in microseconds since 1970; NO_TIME if it has none.
        valid_to: The end of its validity in microseconds since 1970, excluded; NEVER if it has none.
        signs: The terms of its tokens whose signs matter, each once (`text.signs`).
        payload: The bytes of its record, so that a hit need not be read from the store; b"" if only the store has them.
    """

    id: str
    terms: list[Term]
    session: Session | None
    sort_key: SortKey
    asks: bool
    micros: int
    expires: int
    speaker: str = ""
    names: tuple[str, ...] = ()
    manner: int = ONE
    civil: int = 0
    offers: int = 0
    language: int = 0
    standing: int = 0
    text: bytes = b""
    fields: tuple[str | None, ...] = (None,) * len(FIELDS)
    importance: float = NO_IMPORTANCE
    filter_terms: tuple[str, ...] = ()
    titles: tuple[Term, ...] = ()
    valid_from: int = NO_TIME
    valid_to: int = NEVER
    signs: tuple[str, ...] = ()
    payload: bytes = b""


def civil_of(day: date) -> int:
    """Return a day as a number that increases with it.

    >>> civil_of(date(2026, 1, 31)) < civil_of(date(2026, 2, 1))
    True
    """
    return day.year << 9 | day.month << 5 | day.day


def day_of(civil: int) -> date:
    """Return the day of a number of `civil_of`.

    >>> day_of(civil_of(date(2026, 1, 31)))
    datetime.date(2026, 1, 31)
    """
    return date(civil >> 9, civil >> 5 & 15, civil & 31)


def renumbered(kept: Ints, count: int) -> Ints:
    """Map `count` numbers to new ones without gaps if only `kept`, which is ascending, remain.

    Numbers that do not remain become NONE. The additional last element maps NONE, as an index, to NONE.

    >>> renumbered(np.array([0, 2]), 3).tolist()
    [0, -1, 1, -1]
    """
    out = np.full(count + 1, NONE, dtype=np.int64)
    out[kept] = np.arange(len(kept))
    return out


#: The columns and their types. `before` and `after` are document numbers, or NONE.
COLUMNS: dict[str, DTypeLike] = {
    "length": np.int32,
    "micros": np.int64,
    "expires": np.int64,
    "position": np.int64,
    "session": np.int32,
    "speaker": np.int32,
    "manner": np.int32,
    "weight": np.int32,
    "group": np.int32,
    "civil": np.int32,
    "offers": np.int8,
    "language": np.int8,
    "standing": np.int8,
    "asks": np.bool_,
    "alive": np.bool_,
    "before": np.int32,
    "after": np.int32,
    "importance": np.float64,
    "valid_from": np.int64,
    "valid_to": np.int64,
    **dict.fromkeys(FIELDS, np.int32),
}


def values_of(document: Document, session: int, group: int, speaker: int, fields: Iterable[int]) -> tuple[Any, ...]:
    """Return the values of a document in the order of `COLUMNS`: alive, and linked to no other.

    Args:
        session: The number of its session, or NONE.
        group: The number of its group (`GROUPED`), or NONE.
        speaker: The number of its speaker, or NONE.
        fields: The numbers of its field values, or NONE.
    """
    return (
        len(document.terms),
        document.micros,
        document.expires,
        document.sort_key[0],
        session,
        speaker,
        document.manner,
        document.manner,
        group,
        document.civil,
        document.offers,
        document.language,
        document.standing,
        document.asks,
        True,
        NONE,
        NONE,
        document.importance,
        document.valid_from,
        document.valid_to,
        *fields,
    )
