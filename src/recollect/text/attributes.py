"""Attributes that a text states: where a person lives, what their favourite colour is, when the deadline is.

Only attributes that have one value at a time are found, by conservative rules: a statement in the present, of a subject
that is named or is the speaker. Questions, conditions, negations, plans, wishes and the past state nothing here, so a
text rather states too little than something that it does not say. English only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import NamedTuple

from recollect.text import dates
from recollect.text.pieces import SENTENCE_END

#: Maximum number of characters of a sentence that is analysed, and of a text.
_LONGEST, _MOST = 600, 20_000
_LINE = re.compile(r"[^\r\n]+")
#: A sentence with one of these states nothing for certain, or nothing of the present.
_UNCERTAIN = (
    r"\b(?:if|unless|whether|would|wouldn't|could|might|maybe|perhaps|possibly|probably|wish|hope|hoping|imagine|"
    r"suppose|pretend|plan|plans|planning|thinking of|thinking about|considering|used to|formerly|previously|"
    r"no longer|not|never|isn't|aren't|don't|doesn't|won't|wasn't|was|were|lived|worked|had been|until|once|"
    r"about to|like to|love to|dream|dreaming|said|says|asked|example|e\.g\.)\b"
)
#: Words that every statement that is found here has, in lower case; most sentences have none.
_SIGNS = (
    " in ",
    " to ",
    " as ",
    " at ",
    " for ",
    " is ",
    "'s ",
    "'m ",
    "’s ",
    "’m ",
    " am ",
    "earn",
    " make ",
    " makes ",
)
_NAME = r"[A-ZÀ-ÖØ-Þ][\w'-]{1,30}(?: [A-ZÀ-ÖØ-Þ][\w'-]{1,30}){0,2}"
_RELATIVE = (
    "sister|brother|mother|father|mom|mum|dad|wife|husband|partner|girlfriend|boyfriend|son|daughter|boss|manager|"
    "dog|cat|best friend|landlord|doctor|team|company|car|grandmother|grandfather|grandma|grandpa|roommate"
)
_SUBJECT = rf"(?P<subject>\bI|\b[Mm]y (?:{_RELATIVE})|(?<![\w.] )\b{_NAME}|\b{_NAME})"
_NOW = r"(?:(?:now|currently|just|recently|still|also|actually) ){0,2}"
_IS = r"(?:'m|’m|'s|’s| am| is)"
#: A value ends before one of these.
_END = r"(?=[.,;:!?)\n]| (?:and|but|because|since|so|which|where|who|when|while|with|now|at the moment|these days)\b|$)"
_SHORT = rf"(?P<value>[^.,;:!?()\n]{{1,60}}?){_END}"
_PLACE = rf"(?P<value>(?:the )?{_NAME}(?:, {_NAME}){{0,2}})"
_OWNER = rf"(?P<subject>\b[Mm]y|\b[Oo]ur|\b[Tt]he|\b{_NAME}['’]s|\b[Mm]y (?:{_RELATIVE})['’]s)"
#: Nouns of which a subject has one at a time.
_SINGLE = (
    "phone number|phone|e-?mail(?: address)?|address|birthday|date of birth|age|name|nickname|surname|middle name|"
    "job|job title|role|occupation|profession|employer|salary|income|budget|deadline|due date|start date|"
    "launch date|release date|wedding date|anniversary|hometown|home town|nationality|height|weight|blood type|"
    "shoe size|star sign|zodiac sign|major|native language|mother tongue|password hint|time zone|timezone|status|"
    "capital|version|port|currency|goal weight|target|marital status"
)
_OCCUPATION = (
    r"(?:[a-z][\w/&-]{0,20} ){0,3}(?:\w{2,20}(?:ologist|ician|engineer|eer)|accountant|actor|actress|analyst|architect|"
    "artist|attorney|baker|banker|barista|biologist|builder|carpenter|cashier|chef|chemist|coach|consultant|cook|"
    "counselor|dancer|dentist|designer|developer|director|doctor|driver|economist|editor|electrician|farmer|"
    "firefighter|freelancer|gardener|guide|hairdresser|historian|journalist|judge|lawyer|lecturer|librarian|manager|"
    "marketer|midwife|model|musician|nurse|officer|painter|paralegal|pharmacist|photographer|physicist|pilot|plumber|"
    "police officer|postman|producer|professor|programmer|psychologist|receptionist|reporter|researcher|scientist|"
    "secretary|singer|social worker|soldier|student|surgeon|surveyor|tailor|teacher|technologist|therapist|"
    "translator|tutor|veterinarian|vet|waiter|waitress|writer)"
)


class Fact(NamedTuple):
    """An attribute that a text states.

    Attributes:
        attribute: The attribute, such as "home" or "favourite colour".
        value: The value, as it is written.
        subject: Whose attribute it is: a name, the speaker, "SPEAKER's sister"; None if the text does not say.
        start: The index of the first character of the statement.
        end: The index after its last character.
    """

    attribute: str
    value: str
    subject: str | None
    start: int
    end: int


@cache
def _uncertain() -> re.Pattern[str]:
    return re.compile(_UNCERTAIN, re.IGNORECASE)


@cache
def _rules() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the attributes with their patterns. They are compiled when a text is first read: it takes a while."""
    return tuple(
        (attribute, re.compile(pattern))
        for attribute, pattern in (
            ("home", rf"{_SUBJECT}(?: {_NOW}lives?|{_IS} {_NOW}living) {_NOW}in {_PLACE}"),
            ("home", rf"{_SUBJECT}(?: have| has|'ve|’ve|'s|’s)? {_NOW}(?:moved|relocated) (?:back )?to {_PLACE}"),
            ("home", rf"{_SUBJECT}{_IS} (?:[^.;:!?\n]{{1,60}}? )??(?:based|living) in {_PLACE}"),
            ("employer", rf"{_SUBJECT}(?: {_NOW}works?|{_IS} {_NOW}working) (?:at|for) (?P<value>(?:the )?{_NAME})"),
            ("job", rf"{_SUBJECT}(?: {_NOW}works?|{_IS} {_NOW}working) as (?:an?|the) {_SHORT}"),
            ("job", rf"{_SUBJECT}{_IS} {_NOW}an? (?P<value>{_OCCUPATION})\b"),
            ("job", rf"{_SUBJECT}{_IS} {_NAME}, an? (?P<value>{_OCCUPATION})\b"),
            ("age", rf"{_SUBJECT}(?:, who)?{_IS} {_NOW}(?P<value>[1-9][0-9]?|1[01][0-9])"
                    r"(?= years? old\b|,| and\b|\.|$)"),
            ("name", rf"(?P<subject>\bI){_IS} (?P<value>{_NAME})(?=,|\.|$| and\b)"),
            ("partner", rf"{_SUBJECT}(?:{_IS}| have been|'ve been|’ve been| has been) {_NOW}"
                        rf"(?:married to|engaged to|dating) (?P<value>{_NAME})"),
            ("income", rf"{_SUBJECT}(?: {_NOW}(?:earns?|makes?)|{_IS} (?:[^.;:!?\n]{{1,60}}? )??earning) (?P<value>"
                       r"(?:around |about |roughly )?[$€£]?[0-9][0-9.,]{0,12}k?(?: (?:dollars|euros|pounds))?)"
                       r"(?= (?:a|per) (?:year|month|hour|week)| annually| monthly| yearly)"),
            ("favourite", rf"{_OWNER} (?:all-time )?(?:favou?rite|fave) (?P<of>[a-z][\w ]{{1,25}}?)"
                          rf"(?: is|'s|’s) {_SHORT}"),
            ("", rf"{_OWNER} (?P<of>{_SINGLE})(?: is|'s|’s) (?:now |currently )?{_SHORT}"),
        )
    )  # fmt: skip


def stated(text: str, *, speaker: str | None = None) -> list[Fact]:
    """Return the attributes that a text states, in order.

    >>> [each[:3] for each in stated("I live in Oslo and my favorite color is blue. Did you move?", speaker="Ana")]
    [('home', 'Oslo', 'Ana'), ('favourite colour', 'blue', 'Ana')]
    >>> stated("I might move to Rome. I used to live in Oslo. If I lived in Paris, I would paint.")
    []

    Args:
        text: The text. Of a long one, the first 20,000 characters are read.
        speaker: Who says it: the subject of "I" and "my". None: such subjects are None.
    """
    found: dict[tuple[int, int], Fact] = {}
    for start, sentence in _sentences(text[:_MOST]):
        lower = f"{sentence.lower()} "
        if len(sentence) > _LONGEST or not any(sign in lower for sign in _SIGNS):
            continue
        for clause_start, clause in _clauses(sentence):
            if _uncertain().search(clause):
                continue
            for attribute, pattern in _rules():
                for match in pattern.finditer(clause):
                    fact = _fact(match, attribute, speaker, start + clause_start)
                    if fact is not None:
                        found.setdefault((fact.start, fact.end), fact)
    return sorted(found.values(), key=lambda fact: (fact.start, fact.end))


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    for line in _LINE.finditer(text):
        start = line.start()
        for end in SENTENCE_END.finditer(line[0]):
            stop = line.start() + end.end()
            yield start, text[start:stop].strip(" ") if text[start] != " " else text[start:stop]
            start = stop
        if start < line.end():
            yield start, text[start : line.end()]


#: What joins a statement to something else that is not part of it: "I live in Oslo, can you help me?"
_JOINT = re.compile(r", (?=(?:but|and|so|can|could|do|what|how|should|is|are|will|would|which)\b)| but ")


def _clauses(sentence: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a sentence between "but" and the like; one that ends with a question mark asks."""
    start = 0
    for joint in _JOINT.finditer(sentence):
        yield start, sentence[start : joint.start()]
        start = joint.end()
    if not sentence.rstrip().endswith("?"):
        yield start, sentence[start:]


#: Names of one attribute.
_SAME = {
    "phone": "phone number", "e-mail": "email", "e-mail address": "email", "email address": "email",
    "date of birth": "birthday", "hometown": "home town", "timezone": "time zone", "due date": "deadline",
    "occupation": "job", "profession": "job", "job title": "job", "role": "job", "salary": "income",
}  # fmt: skip


def _fact(match: re.Match[str], attribute: str, speaker: str | None, offset: int) -> Fact | None:
    parts = match.groupdict()
    value = parts["value"].strip(" \"'“”‘’")
    if not value or value.casefold() in _EMPTY:
        return None
    of = (parts.get("of") or "").strip().lower().replace("color", "colour")
    name = f"favourite {of}" if attribute == "favourite" else attribute or _SAME.get(of, of)
    return Fact(name, value, _subject(parts["subject"], speaker), offset + match.start(), offset + match.end())


#: Values that say nothing, or that something else follows.
_EMPTY = frozenset(
    "a an the this that it what here there also still very so too just really going getting important good great bad "
    "ok okay fine ready due coming soon near over tight strict flexible high low big small up done clear".split()
)
_PRONOUNS = frozenset("it that this he she they we you there here what who which where".split())


def _subject(text: str, speaker: str | None) -> str | None:
    """Return whose attribute it is, in words that do not depend on who speaks."""
    plain = text.strip()
    lower = plain.lower()
    if lower in ("i", "my", "our"):
        return speaker
    if lower == "the":
        return None
    owned = lower.startswith("my ")
    bare = re.sub(r"['’]s$", "", plain[3:] if owned else plain)
    if owned:
        return None if speaker is None else f"{speaker}'s {bare.lower()}"
    return None if bare.lower() in _PRONOUNS else bare


_ARTICLES = re.compile(r"^(?:the|a|an|around|about|roughly|approximately|~|in|at|on)\s+", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[^\w%$€£@.+/:, -]")


def same_value(one: str, other: str) -> bool:
    """Return whether two values of an attribute do not disagree: they are equal, or one is more exact.

    >>> same_value("Oslo", "oslo, Norway"), same_value("the 3rd of March", "March 3, 2026"), same_value("10k", "9k")
    (True, True, False)
    """
    first, second = _normal(one), _normal(other)
    if first == second:
        return True
    when, then = dates.named(one, date(2000, 1, 1)), dates.named(other, date(2000, 1, 1))
    if when.days and then.days:
        return bool(when.days & then.days) and (not when.years or not then.years or bool(when.years & then.years))
    if _amount(first) is not None and _amount(first) == _amount(second):
        return True
    words, others = first.replace(",", " ").split(), second.replace(",", " ").split()
    shorter, longer = sorted((words, others), key=len)
    return bool(shorter) and (longer[: len(shorter)] == shorter or longer[-len(shorter) :] == shorter)


_AMOUNT = re.compile(
    r"[$€£]?\s?([0-9][0-9,]*(?:\.[0-9]+)?)\s?(k|thousand|m|million)?"
    r"(?:\s?(?:dollars|euros|pounds|usd|eur|years?(?: old)?))?"
)


def _normal(value: str) -> str:
    value = _PUNCTUATION.sub("", value.casefold()).strip(" .,:;")
    return _ARTICLES.sub("", _ARTICLES.sub("", value)).strip()


def _amount(value: str) -> float | None:
    match = _AMOUNT.fullmatch(value)
    if match is None:
        return None
    factor = {"k": 1000, "thousand": 1000, "m": 1_000_000, "million": 1_000_000}.get(match[2] or "", 1)
    return float(match[1].replace(",", "")) * factor
