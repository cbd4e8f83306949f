"""Kinds of answers: those that a question expects, and those that a text provides.

"When ...?" expects a time, "how many ...?" a number, "who", "where" and "which ...?" mostly a name. The kinds of a text
are determined when it is indexed, those of a question when it is read. The rules for questions are English only;
numbers and names are recognised in any script that has digits and capitals.
"""

from __future__ import annotations

import re
from enum import IntFlag

from recollect.text.unicode import occurs
from recollect.text.words import letters


class Kind(IntFlag):
    """Kinds of answers."""

    TIME = 1
    NUMBER = 2
    NAME = 4


#: As plain integers: combining flags costs more than finding them.
_A_TIME, _A_NUMBER, _A_NAME = map(int, (Kind.TIME, Kind.NUMBER, Kind.NAME))
_KINDS = tuple(map(Kind, range(8)))


_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_MONTHS = "january|february|march|april|june|july|august|september|october|november|december"
_SINGLE = f"yesterday|today|tonight|tomorrow|recently|ago|since|weekend|{_WEEKDAYS}|{_MONTHS}"
_BEFORE_TIMES = "last|next|this|past|every"
_TIMES = "day|night|morning|afternoon|evening|week|month|year|spring|summer|autumn|fall|winter"
_TIME = re.compile(
    rf"\b(?:(?:19|20)\d\d|{_SINGLE}"
    rf"|(?:{_BEFORE_TIMES}) (?:{_TIMES})"
    r"|(?:[01]?\d|2[0-3]):[0-5]\d)\b",
    re.IGNORECASE,
)
_SINGLE_WORDS, _BEFORE_WORDS, _TIMES_WORDS = (frozenset(words.split("|")) for words in (_SINGLE, _BEFORE_TIMES, _TIMES))
_NUMBERS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|few|couple|several|once|twice"
    "|half"
)
_NUMBER = re.compile(rf"\d|\b(?:{_NUMBERS})\b", re.IGNORECASE)
_NUMBER_WORDS = frozenset(_NUMBERS.split("|"))
_DIGITS = frozenset("0123456789")
#: A capital letter that neither begins a sentence nor is the word "I".
_NAME = re.compile(r"(?<=[\w,;'’)]\s)[\"'“‘(]?([^\W\d_]\w+)")
#: The same for ASCII. Capitals are rare, so they are searched for first, and then the text before them is checked.
_ASCII_NAME = re.compile(r"[A-Z](?:(?<=[\w,;')]\s[A-Z])|(?<=[\w,;')]\s[\"'(][A-Z]))\w")

_WANTS_TIME = re.compile(
    r"^\W*(?:(?:and|so|but)\s+)?(?:when\b|(?:(?:in|on|at|during|since|by|for|until)\s+)?(?:what|which)\s+"
    r"(?:date|day|month|year|week|weekend|time|season)\b|how (?:long|recently)\b)",
    re.IGNORECASE,
)
_WANTS_NUMBER = re.compile(r"\bhow (?:many|much)\b|\bwhat (?:number|amount|percentage)\b", re.IGNORECASE)
_WANTS_NAME = re.compile(r"^\W*(?:who|where|which)\b|\b(?:names?|named|called|title)\b", re.IGNORECASE)
#: "What kind of X" asks for an X; "kind" is not part of the subject.
_FRAME = re.compile(r"\b(?:what|which)\s+((?:kind|type|sort)s?\s+of)\b", re.IGNORECASE)


def wanted(question: str) -> Kind:
    """Return the kinds of answers that an English question expects.

    >>> wanted("When did Ana move?"), wanted("Tell me about the garden.")
    (<Kind.TIME: 1>, <Kind: 0>)
    """
    out = Kind(0)
    if _WANTS_TIME.search(question):
        out |= Kind.TIME
    if _WANTS_NUMBER.search(question):
        out |= Kind.NUMBER
    if _WANTS_NAME.search(question):
        out |= Kind.NAME
    return out


def offered(text: str) -> Kind:
    """Return the kinds of answers that a text provides.

    >>> offered("we met Ines two weeks ago")
    <Kind.TIME|NUMBER|NAME: 7>
    """
    out = 0
    present = letters(text)  # a cheap pre-check: most texts lack the words of a rule
    digits = present is None or not _DIGITS.isdisjoint(present)
    if (present is None or _may_have_time(text, present, digits)) and occurs(_TIME, text):
        out |= _A_TIME
    if present is None or not _NUMBER_WORDS.isdisjoint(present):
        out |= _A_NUMBER if occurs(_NUMBER, text) else 0
    elif digits:
        out |= _A_NUMBER
    if occurs(_ASCII_NAME, text) or (
        not text.isascii() and any(found[1][0].isupper() for found in _NAME.finditer(text))
    ):
        out |= _A_NAME
    return _KINDS[out]


def _may_have_time(text: str, present: frozenset[str], digits: bool) -> bool:
    """Return whether an ASCII text has words or digits without which `_TIME` cannot match."""
    return (
        (digits and (":" in text or "19" in text or "20" in text))
        or not _SINGLE_WORDS.isdisjoint(present)
        or not (_BEFORE_WORDS.isdisjoint(present) or _TIMES_WORDS.isdisjoint(present))
    )


def subject_of(question: str) -> str:
    """Return the question without a phrase such as "kind of", which an answer does not repeat.

    >>> subject_of("What kind of tea does Ana like?")
    'What  tea does Ana like?'
    """
    return _FRAME.sub(lambda found: found.group()[: found.start(1) - found.start()], question)
