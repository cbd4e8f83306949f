"""Kinds of answers: those that a question expects, and those that a text provides.

"When ...?" expects a time, "how many ...?" a number, "who", "where" and "which ...?" mostly a name, "what did ...?" a
statement about the past, "why ...?" a reason. The kinds of a text are determined when it is indexed, those of a
question when it is read. The rules for questions, reasons and the past are English only; numbers and names are
recognised in any script that has digits and capitals.
"""

from __future__ import annotations

import re
from enum import IntFlag
from functools import lru_cache

from recollect.common.regexes import regex
from recollect.text.unicode import occurs
from recollect.text.words import letters


class Kind(IntFlag):
    """Kinds of answers."""

    TIME = 1
    NUMBER = 2
    NAME = 4
    PAST = 8
    REASON = 16


#: Bits beside those of the kinds: the text is a standing instruction, or only asks (`text.asking`).
INSTRUCTION = 32
ASKS = 64
#: As plain integers: combining flags costs more than finding them.
_A_TIME, _A_NUMBER, _A_NAME, _A_PAST, _A_REASON = map(int, Kind)
_KINDS = tuple(map(Kind, range(32)))


_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_MONTHS = "january|february|march|april|june|july|august|september|october|november|december"
_SINGLE = f"yesterday|today|tonight|tomorrow|recently|ago|since|weekend|{_WEEKDAYS}|{_MONTHS}"
_BEFORE_TIMES = "last|next|this|past|every"
_TIMES = "day|night|morning|afternoon|evening|week|month|year|spring|summer|autumn|fall|winter"
_TIME = regex(
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
_NUMBER = regex(rf"\d|\b(?:{_NUMBERS})\b", re.IGNORECASE)
_NUMBER_WORDS = frozenset(_NUMBERS.split("|"))
_DIGITS = frozenset("0123456789")
#: Days and months are written with capitals, but are times and no names.
_CALENDAR = frozenset(word.capitalize() for word in f"{_WEEKDAYS}|{_MONTHS}".split("|"))
#: A capital letter that neither begins a sentence nor is the word "I".
_NAME = regex(r"(?<=[\w,;'’)]\s)[\"'“‘(]?([^\W\d_]\w+)")
#: The same for ASCII. Capitals are rare, so they are searched for first, and then the text before them is checked.
_ASCII_NAME = regex(
    rf"(?!(?:{'|'.join(sorted(_CALENDAR))})\b)[A-Z](?:(?<=[\w,;')]\s[A-Z])|(?<=[\w,;')]\s[\"'(][A-Z]))\w"
)

#: Forms of the past that do not end in -ed.
_PAST_FORMS = (
    "ate|became|began|bought|broke|brought|built|came|caught|chose|cut|did|drew|drove|fell|felt|flew|forgot|found|gave"
    "|got|grew|had|heard|held|kept|knew|led|left|lost|made|met|paid|put|ran|read|rode|said|sang|sat|saw|sent|set|slept"
    "|sold|spent|spoke|stood|swam|taught|thought|threw|told|took|was|went|were|woke|won|wore|wrote"
)
#: In lower case, which is several times faster than ignoring case: a subject or a conjunction, at most two adverbs, and
#: a form of the past.
_PAST = regex(
    r"\b(?:i|you|he|she|it|we|they|just|also|and|finally|recently|that|who)(?:'ve|'d| have| had)?"
    r"(?: (?:\w+ly|just|also|even|never|ever|once|already|still|both|all|then)){0,2}"
    rf" (?:{_PAST_FORMS}|(?!need|indeed|excited)\w+ed)\b"
)
_PAST_WORDS = frozenset(_PAST_FORMS.split("|"))
_REASONS = "because|since|cause|wanted|why|reason|reasons"
_REASON = regex(rf"\b(?:{_REASONS}|inspir\w+|motivat\w+|passion\w*|so (?:that|i)\b)")
_REASON_WORDS = frozenset(_REASONS.split("|"))
_REASON_BEGINS = ("inspir", "motivat", "passion")
_ENDS_IN_ED = regex(r"[a-z]ed\b")

_WANTS_TIME = regex(
    r"^\W*(?:(?:and|so|but)\s+)?(?:when\b|(?:(?:in|on|at|during|since|by|for|until)\s+)?(?:what|which)\s+"
    r"(?:date|day|month|year|week|weekend|time|season)\b|how (?:long|recently)\b)",
    re.IGNORECASE,
)
_WANTS_NUMBER = regex(r"\bhow (?:many|much)\b|\bwhat (?:number|amount|percentage)\b", re.IGNORECASE)
_WANTS_NAME = regex(r"^\W*(?:who|where|which)\b|\b(?:names?|named|called|title)\b", re.IGNORECASE)
_WANTS_PAST = frozenset("did was were has had".split())
_WANTS_REASON = regex(r"\bwhy\b|\breasons?\b|\bwhat (?:\w+ )?(?:motivate|inspire|made|makes|make|drove)", re.IGNORECASE)
#: Words without which it cannot match an ASCII question.
_REASON_QUESTIONS = frozenset("why reason reasons what".split())
#: What has a title or a name: "what book ..." asks for one, as "which ..." does.
_NAMED = frozenset(
    "album area artist author band book brand city company country film game location movie place region series show "
    "song state title tournament".split()
)


def wanted(question: str) -> Kind:
    """Return the kinds of answers that an English question expects.

    >>> wanted("When did Ana move?"), wanted("Tell me about the garden.")
    (<Kind.TIME|PAST: 9>, <Kind: 0>)
    """
    out = 0
    present = letters(question)
    if _WANTS_TIME.search(question):
        out |= _A_TIME
    if _WANTS_NUMBER.search(question):
        out |= _A_NUMBER
    if _WANTS_NAME.search(question) or not _NAMED.isdisjoint(listed(question)):
        out |= _A_NAME
    if not _WANTS_PAST.isdisjoint(present or question.lower().split()):
        out |= _A_PAST
    if (present is None or not _REASON_QUESTIONS.isdisjoint(present)) and _WANTS_REASON.search(question):
        out |= _A_REASON
    return _KINDS[out]


def offered(text: str) -> Kind:
    """Return the kinds of answers that a text provides.

    >>> offered("we met Ines two weeks ago")
    <Kind.TIME|NUMBER|NAME|PAST: 15>
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
        not text.isascii()
        and any(found[1][0].isupper() and found[1] not in _CALENDAR for found in _NAME.finditer(text))
    ):
        out |= _A_NAME
    low = text.lower()
    if (present is None or not _PAST_WORDS.isdisjoint(present) or _ENDS_IN_ED.search(low)) and occurs(_PAST, low):
        out |= _A_PAST
    if (
        present is None
        or "so" in present
        or not _REASON_WORDS.isdisjoint(present)
        or any(map(low.__contains__, _REASON_BEGINS))
    ) and occurs(_REASON, low):
        out |= _A_REASON
    return _KINDS[out]


def _may_have_time(text: str, present: frozenset[str], digits: bool) -> bool:
    """Return whether an ASCII text has words or digits without which `_TIME` cannot match."""
    return (
        (digits and (":" in text or "19" in text or "20" in text))
        or not _SINGLE_WORDS.isdisjoint(present)
        or not (_BEFORE_WORDS.isdisjoint(present) or _TIMES_WORDS.isdisjoint(present))
    )


#: The noun of "what X has ...", "which X does ..." or "how many kinds of X ...": up to four words that end before an
#: auxiliary, an article, a preposition or a name.
_LISTED = regex(
    r"\b(?:[Ww]hat|[Ww]hich|[Hh]ow many)\s+(?:(?:kind|type|sort|piece|item)s?\s+of\s+)?((?:[a-z][a-z'-]*\s+){1,4})"
)
_NO_NOUN = frozenset(
    "a an the is are was were am be been do does did has have had can could will would shall should may might must of "
    "in on at to for from with by about as that which who i you he she it we they my your his her our their and or "
    "both".split()
)


@lru_cache(maxsize=8)  # several rules read the same question
def listed(question: str) -> tuple[str, ...]:
    """Return the words of the noun that an English question asks for, in the singular; empty if there is none.

    >>> listed("Which outdoor activities does Ana like?"), listed("What did Ana buy?")
    (('outdoor', 'activity'), ())
    """
    found = _LISTED.search(question + " ")
    if found is None:
        return ()
    noun = []
    for word in found[1].split():
        if word in _NO_NOUN:
            break
        noun.append(singular(word))
    return tuple(noun)


_IRREGULAR = {"series": "series", "species": "species", "movies": "movie", "people": "person"}


def singular(word: str) -> str:
    """Return the singular of an English noun, by its ending.

    >>> [singular(word) for word in ("activities", "dishes", "classes", "pets", "series", "bus")]
    ['activity', 'dish', 'class', 'pet', 'series', 'bus']
    """
    if word in _IRREGULAR or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us")):
        return _IRREGULAR.get(word, word)
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("shes", "ches", "sses", "xes")):
        return word[:-2]
    return word[:-1]
