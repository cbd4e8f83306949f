"""What kind of answer a question asks for, and what kinds a text offers.

"When ...?" is answered by a text that speaks of a time, "how many ...?" by one with a number, "who", "where" and
"which ...?" mostly by one with a name. What a text offers is found when it is stored; what a question wants, when it is
asked. The rules for questions are English, a seam for other languages; numbers and names are told in any script that
has digits and capitals.
"""

from __future__ import annotations

import re
from enum import IntFlag


class Kind(IntFlag):
    """Kinds of answers."""

    TIME = 1
    NUMBER = 2
    NAME = 4


_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_MONTHS = "january|february|march|april|june|july|august|september|october|november|december"
_TIME = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|recently|ago|since|weekend|(?:19|20)\d\d|{_WEEKDAYS}|{_MONTHS}"
    r"|(?:last|next|this|past|every) (?:day|night|morning|afternoon|evening|week|month|year|spring|summer|autumn|fall"
    r"|winter)|(?:[01]?\d|2[0-3]):[0-5]\d)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|few|couple|several"
    r"|once|twice|half)\b",
    re.IGNORECASE,
)
#: A capital that does not begin a sentence (nor is the word "I").
_NAME = re.compile(r"(?<=[\w,;'’)]\s)[\"'“‘(]?([^\W\d_]\w+)")

_WANTS_TIME = re.compile(
    r"^\W*(?:(?:and|so|but)\s+)?(?:when\b|(?:(?:in|on|at|during|since|by|for|until)\s+)?(?:what|which)\s+"
    r"(?:date|day|month|year|week|weekend|time|season)\b|how (?:long|recently)\b)",
    re.IGNORECASE,
)
_WANTS_NUMBER = re.compile(r"\bhow (?:many|much)\b|\bwhat (?:number|amount|percentage)\b", re.IGNORECASE)
_WANTS_NAME = re.compile(r"^\W*(?:who|where|which)\b|\b(?:names?|named|called|title)\b", re.IGNORECASE)
#: "What kind of X" asks for an X: "kind" says nothing about the subject.
_FRAME = re.compile(r"\b(?:what|which)\s+((?:kind|type|sort)s?\s+of)\b", re.IGNORECASE)


def wanted(question: str) -> Kind:
    """The kinds of answers that an English question asks for.

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
    """The kinds of answers that a text has.

    >>> offered("we met Ines two weeks ago")
    <Kind.TIME|NUMBER|NAME: 7>
    """
    out = Kind(0)
    if _TIME.search(text):
        out |= Kind.TIME
    if _NUMBER.search(text):
        out |= Kind.NUMBER
    if any(found[1][0].isupper() for found in _NAME.finditer(text)):
        out |= Kind.NAME
    return out


def subject_of(question: str) -> str:
    """The question without a frame such as "kind of", which the words of an answer do not share.

    >>> subject_of("What kind of tea does Ana like?")
    'What  tea does Ana like?'
    """
    return _FRAME.sub(lambda found: found.group()[: found.start(1) - found.start()], question)
