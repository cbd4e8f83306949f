"""Documents as columns: what is kept of each, in numbers.

A record becomes a `Document`; an index keeps documents as one column for each fact. Whoever gathers them, one by one
or many at once, takes their values from here.
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
#: The micros of what has no time: earlier than any.
NO_TIME = -(2**63)
NONE = -1
NO_IMPORTANCE = -1.0


#: The fields of records that filters ask for and whose texts many share: each has a column of numbers of texts.
FIELDS = ("kind", "role", "user", "agent", "conversation", "entity", "source")


class Document(NamedTuple):
    """A record as indexes see it.

    session   what context stays within: (conversation, session), or None for a record that is no turn
    place     the order within the session: position, time, id
    asks      whether it ends with a question, which the next turn answers
    micros, expires   in microseconds of 1970: NO_TIME where it has none, NEVER where it does not expire
    speaker   who said it: a name, or "" and the role ("\0user"); "" where nobody is named
    names     the terms of the speaker's name
    weight    what its kind of text counts for, with 16 bits of fraction (`text.manner`)
    civil     its local date (`civil_of`); 0 where it has no time
    offers    the kinds of answers that it has (`text.answers.Kind`)
    language  in which its words were read (`text.languages.CODES`)
    standing  the marks that make it govern other questions (`text.manner.MARKS`), as bits
    text      the digest that its text's vectors are kept under; b"" where there is no text
    fields    what it has in the fields of FIELDS, in their order
    importance  0 to 1; NO_IMPORTANCE where it has none
    marks     terms that are no words, each once: what filters ask for that no column holds (`filter_terms`)
    payload   the bytes of its record, so that a hit need not be read from the store; b"" where they stay there
    """

    id: str
    terms: list[Term]
    session: Session | None
    place: SortKey
    asks: bool
    micros: int
    expires: int
    speaker: str = ""
    names: tuple[str, ...] = ()
    weight: int = ONE
    civil: int = 0
    offers: int = 0
    language: int = 0
    standing: int = 0
    text: bytes = b""
    fields: tuple[str | None, ...] = (None,) * len(FIELDS)
    importance: float = NO_IMPORTANCE
    filter_terms: tuple[str, ...] = ()
    payload: bytes = b""


def civil_of(day: date) -> int:
    """A day as one number that rises with it.

    >>> civil_of(date(2026, 1, 31)) < civil_of(date(2026, 2, 1))
    True
    """
    return day.year << 9 | day.month << 5 | day.day


def renumbered(kept: Ints, count: int) -> Ints:
    """What becomes of each of `count` numbers where only `kept`, which rise, are left and get new numbers without gaps.

    NONE becomes of the others; the last place of all is where NONE itself leads, to NONE.

    >>> renumbered(np.array([0, 2]), 3).tolist()
    [0, -1, 1, -1]
    """
    out = np.full(count + 1, NONE, dtype=np.int64)
    out[kept] = np.arange(len(kept))
    return out


#: The columns and how each is kept. `before` and `after` are document numbers, NONE where there is none.
COLUMNS: dict[str, DTypeLike] = {
    "length": np.int32,
    "micros": np.int64,
    "expires": np.int64,
    "position": np.int64,
    "session": np.int32,
    "speaker": np.int32,
    "weight": np.int32,
    "civil": np.int32,
    "offers": np.int8,
    "language": np.int8,
    "standing": np.int8,
    "asks": np.bool_,
    "alive": np.bool_,
    "before": np.int32,
    "after": np.int32,
    "importance": np.float64,
    **dict.fromkeys(FIELDS, np.int32),
}


def values_of(document: Document, session: int, speaker: int, fields: Iterable[int]) -> tuple[Any, ...]:
    """The values of a document in the order of `COLUMNS`, alive and linked to no other.

    session, speaker, fields  their numbers, or NONE
    """
    return (
        len(document.terms),
        document.micros,
        document.expires,
        document.place[0],
        session,
        speaker,
        document.weight,
        document.civil,
        document.offers,
        document.language,
        document.standing,
        document.asks,
        True,
        NONE,
        NONE,
        document.importance,
        *fields,
    )
