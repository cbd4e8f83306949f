"""The rules by which attributes are found, in English, German, Spanish and French.

Only attributes that have one value at a time are found, by conservative rules: a statement in the present, of a subject
that is named or is the speaker. Questions, conditions, negations, plans, wishes, quotations and the past state nothing
here, so a text rather states too little than something that it does not say. The rules of a language are in a file of
its own, which en.toml explains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from recollect.common.regexes import regex
from recollect.text.attributes.plausible import measured, plausible
from recollect.text.clauses import clauses_in, sentences_in
from recollect.text.languages import detected
from recollect.text.manner import without_quotes
from recollect.text.patterns import expanded
from recollect.text.words import runs

#: The languages that have rules.
LANGUAGES = ("en", "de", "es", "fr")
#: Maximum number of characters of a sentence that is analysed, and of a text.
_LONGEST, _MOST = 600, 20_000
#: Number of characters in which English is detected: then the rules of other languages are not tried.
_DETECTED = 1000
#: What joins a statement to something else that is not part of it: "I live in Oslo, can you help me?"
_JOINT = regex(
    r", (?=(?:but|and|so|can|could|do|what|how|should|is|are|will|would|which|aber|und|kannst|pero|y|puedes|mais|et)\b)"
    r"| (?:but|aber|pero|mais) "
)


_COMMA = regex(r"[,;:] +| (?:and|und|y|et) ", re.IGNORECASE)


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


class _Rule(NamedTuple):
    attribute: str
    value: str
    pattern: re.Pattern[str]
    needs: tuple[str, ...]
    certain: bool


class _Language(NamedTuple):
    """The rules of a language.

    Attributes:
        signs: A sentence without any of these, in lower case, states nothing.
        uncertain: A clause with this states nothing for certain.
        conditional: With this, no part of a sentence does, unless "but" or the like separates it.
        names: The names of attributes in this language, and the common one.
        mine: What stands before what belongs to the speaker: "my".
        things: Topics that are not specific: "the deadline" is another one in another conversation.
    """

    signs: tuple[str, ...]
    uncertain: re.Pattern[str]
    conditional: re.Pattern[str]
    rules: tuple[_Rule, ...]
    names: Mapping[str, str]
    mine: re.Pattern[str]
    things: frozenset[str]


@cache
def _read(code: str) -> dict[str, Any]:
    import tomllib  # with the rules, so that what states nothing does not load it

    return tomllib.loads(Path(__file__).with_name(f"{code}.toml").read_text("utf-8"))


@cache
def described(code: str) -> tuple[dict[str, Any], ...]:
    """Return the rules of a language as its file describes them, with the parts put in."""
    content = _read(code)
    known = {**_read("shared")["parts"], **content["parts"]}
    return tuple({**each, "pattern": expanded(each["pattern"], known)} for each in content["rule"])


@cache
def _language(code: str) -> _Language:
    """Return the rules of a language. They are compiled when a text first may state something: it takes a while."""
    content = _read(code)
    rules = (
        _Rule(
            each["attribute"],
            each.get("value", ""),
            re.compile(each["pattern"], re.IGNORECASE),
            tuple(each.get("needs", ())),
            each.get("certain", False),
        )
        for each in described(code)
    )
    return _Language(
        tuple(content["signs"]),
        re.compile(content["uncertain"], re.IGNORECASE),
        re.compile(content["conditional"], re.IGNORECASE),
        tuple(rules),
        content.get("names", {}),
        re.compile(content["mine"], re.IGNORECASE),
        frozenset(content.get("things", "").split()),
    )


@cache
def _signs(code: str) -> tuple[str, ...]:
    return tuple(_read(code)["signs"])


def stated(text: str, *, speaker: str | None = None) -> list[Fact]:
    """Return the attributes that a text states, in order.

    >>> [each[:3] for each in stated("I live in Oslo and my favorite color is blue. Did you move?", speaker="Ana")]
    [('home', 'Oslo', 'Ana'), ('favourite colour', 'blue', 'Ana')]
    >>> stated("I might move to Rome. I used to live in Oslo. If I lived in Paris, I would paint.")
    []
    >>> [each[:2] for each in stated("Ich wohne jetzt in Graz.", speaker="Ana")]
    [('home', 'Graz')]

    Args:
        text: The text. Of a long one, the first 20,000 characters are read.
        speaker: Who says it: the subject of "I" and "my". None: such subjects are None.
    """
    found: dict[tuple[str, int], Fact] = {}
    text = text[:_MOST]
    codes = LANGUAGES[:1] if detected([run for run, _ in runs(text[:_DETECTED])]) == LANGUAGES[0] else LANGUAGES
    for start, sentence in sentences_in(without_quotes(text)):
        if len(sentence) > _LONGEST:
            continue
        lower = f" {sentence.lower()} "
        for code in codes:
            if any(sign in lower for sign in _signs(code)):
                for fact in _in_sentence(_language(code), start, sentence, speaker):
                    found.setdefault((fact.attribute, fact.start), fact)
    return sorted(found.values(), key=lambda fact: (fact.start, fact.end))


def _in_sentence(language: _Language, start: int, sentence: str, speaker: str | None) -> Iterator[Fact]:
    """Yield what a sentence states: as a whole if nothing in it is uncertain, or else clause by clause."""
    asks = sentence.rstrip().endswith("?")
    parts = [(start, sentence)]
    if asks or language.uncertain.search(sentence):
        parts = list(_certain(language, start, sentence))
    lower = sentence.lower()
    for rule in language.rules:
        if rule.needs and not any(each in lower for each in rule.needs):
            continue
        for at, part in [(start, sentence)] if rule.certain and not asks else parts:
            for match in rule.pattern.finditer(part):
                fact = _fact(match, rule, language, speaker, at)
                if fact is not None:
                    yield fact


def _certain(language: _Language, start: int, sentence: str) -> Iterator[tuple[int, str]]:
    """Yield the clauses of a sentence that state something for certain; the last one of a question asks."""
    pieces = []
    at = 0
    for joint in _JOINT.finditer(sentence):
        pieces.append((start + at, sentence[at : joint.start()]))
        at = joint.end()
    if not sentence.rstrip().endswith("?"):
        pieces.append((start + at, sentence[at:]))
    whole = sentence.rstrip().endswith("?") or language.conditional.search(sentence) is not None
    for place, piece in pieces:
        for clause in clauses_in(place, piece):
            if not language.uncertain.search(clause[1]):
                yield clause
            elif not whole:
                yield from (part for part in _divided(*clause) if not language.uncertain.search(part[1]))


def _divided(start: int, text: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a text between commas and "and": what negates one of them says nothing about the others."""
    at = 0
    for joint in _COMMA.finditer(text):
        yield start + at, text[at : joint.start()]
        at = joint.end()
    yield start + at, text[at:]


#: Names of one attribute.
_SAME = {
    "phone": "phone number", "e-mail": "email", "e-mail address": "email", "email address": "email",
    "date of birth": "birthday", "hometown": "home town", "timezone": "time zone", "due date": "deadline",
    "occupation": "job", "profession": "job", "job title": "job", "role": "job", "salary": "income",
    "residence": "home", "location": "home", "city": "home", "lives in": "home", "home city": "home",
    "place of residence": "home", "workplace": "employer", "company": "employer", "works at": "employer",
    "telephone": "phone number", "mobile": "phone number", "spouse": "partner", "boss": "manager",
    "supervisor": "manager", "line manager": "manager", "landlady": "landlord", "gp": "doctor",
    "girlfriend": "partner", "boyfriend": "partner", "husband": "partner", "wife": "partner", "fiancé": "partner",
    "fiancée": "partner", "fiance": "partner", "fiancee": "partner", "trainer": "coach",
    "number of kids": "number of children", "number of cat": "number of cats", "number of katze": "number of cats",
    "number of gato": "number of cats", "number of chat": "number of cats", "time of deadline": "deadline",
    "time of birthday": "birthday", "time of due date": "deadline",
}  # fmt: skip


def attribute_name(name: str) -> str:
    """Return the name of an attribute in one form.

    >>> attribute_name("Phone_Number"), attribute_name("occupation"), attribute_name("Favorite color")
    ('phone number', 'job', 'favourite colour')
    """
    plain = " ".join(name.replace("_", " ").replace("-", " ").lower().split())
    plain = plain.replace("color", "colour").replace("favorite", "favourite")
    return _SAME.get(plain, plain)


def _fact(match: re.Match[str], rule: _Rule, language: _Language, speaker: str | None, offset: int) -> Fact | None:
    groups = {name.rstrip("_23"): text for name, text in match.groupdict().items() if text is not None}
    value = rule.value or groups.get("value", "").strip(" \"'“”‘’.,;:!")
    value = _ADVERBS.sub("", value)
    if not value or value.casefold() in _EMPTY or value.casefold() in _PRONOUNS:
        return None
    of, topic = (groups.get(name, "").strip().lower() for name in ("of", "topic"))
    name = rule.attribute.replace("{of}", language.names.get(of, of)).replace("{topic}", _topic(topic))
    whose = groups.get("subject")
    if (noun := groups.get("noun")) is not None:
        subject = None if speaker is None else f"{speaker}'s {noun.lower()}"
    elif whose is None or (topic and topic not in language.things):
        subject = speaker
    else:
        subject = _subject(whose, speaker, language)
    name, rest = attribute_name(name), match.string[match.end() :]
    if not rule.value and not plausible(name, value, rest):
        return None
    said = f"{match[0]}{rest[:20]}"
    return Fact(measured(name, said), value, subject, offset + match.start(), offset + match.end())


def _topic(topic: str) -> str:
    """Return a topic in one form: "deadline for the proposal" is the "proposal deadline"."""
    head, joined, rest = topic.partition(" for the ")
    return f"{rest} {head}" if joined else topic


#: What stands before a value that is so by now.
_ADVERBS = regex(r"^(?:inzwischen|mittlerweile|jetzt|nun|now|ahora|maintenant)\s+", re.IGNORECASE)
#: Values that say nothing, or that something else follows.
_EMPTY = frozenset(
    "a an the this that it what here there also still very so too just really going getting important good great bad "
    "ok okay fine ready due coming soon near over tight strict flexible high low big small up done clear".split()
)
_PRONOUNS = frozenset(
    "it that this he she they we you there here what who which where er sie es das dies el ella esto il elle ce".split()
)
_PARENTS = frozenset("mum mom dad mama papa maman mamá papá".split())
_SPEAKERS = frozenset("i we ich wir yo nosotros je j' j’ on me mir".split())


def _subject(text: str, speaker: str | None, language: _Language) -> str | None:
    """Return whose attribute it is, in words that do not depend on who speaks."""
    plain = text.strip()
    lower = plain.lower()
    mine = language.mine.match(lower)
    if lower in _SPEAKERS or (mine is not None and mine.end() == len(lower)):
        return speaker
    if lower in ("the", "der", "die", "das", "el", "la", "le", "les", "los", "las", "l'", "l’"):
        return None
    if mine is not None:
        bare = re.sub(r"['’]s$", "", lower[mine.end() :]).strip()
        return None if speaker is None else f"{speaker}'s {bare}"
    bare = re.sub(r"['’]s$", "", plain)
    if bare.lower() in _PARENTS:
        return None if speaker is None else f"{speaker}'s {bare.lower()}"
    return None if bare.lower() in _PRONOUNS else bare
