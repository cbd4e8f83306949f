"""Whether what a rule found can be meant: a value of the right kind, and nothing after it that changes what it says.

"My boss is Helga" names a boss and "my boss is German" does not; "I have two kids" counts children and "I have 25 kids
in my class" does not. The words are in shared.toml.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from recollect.common.regexes import regex
from recollect.text.folding import folded

#: Attributes of which a statement ends with its value, or with what may follow it.
_CLOSED = frozenset(("car", "seat", "income", "partner", "price", "number", "smoking"))
_AFTER = regex(
    r"\s*(?:\Z|[,.;:!?–—()\-\"”»]"
    r"|(?:and|but|so|because|since|now|today|these|at the moment|anymore|any|again|instead|from|with|near|where|which"
    r"|who|though|already|here|seats?|when|please|at (?:work|home)|(?:a|per) (?:month|year)|annually|yearly|monthly"
    r"|before|after|for (?:\w+ )?[0-9a-z]+ (?:months|years)"
    r"|und|aber|weil|denn|seit|jetzt|nun|mittlerweile|inzwischen|heute|ab|mit|wo|gerade|bitte|geworden|gezogen"
    r"|umgezogen|gewechselt|zusammen(?! (?:im|in|am|beim))|im (?:monat|jahr)|monatlich|jährlich|in der firma|netto"
    r"|brutto|y|pero|porque|desde|ahora|hoy|con|donde|al (?:mes|año)|mensuales|anuales|por favor"
    r"|et|mais|car|depuis|maintenant|aujourd|avec|où|par (?:mois|an)|s['’]il)\b)",
    re.IGNORECASE,
)
#: What makes another statement of one: "a doctor's daughter", "write in German: good morning".
_NEVER_AFTER = regex(r"(?:['’]s\b|: *\w)")
_NUMBERS = frozenset(("phone number", "budget"))
_PEOPLE = frozenset(
    "manager partner doctor dentist landlord coach teacher neighbour roommate therapist lawyer hairdresser".split()
)
_PLACES = frozenset(("home", "employer", "home town"))
_NET, _GROSS = (
    re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for words in ("net|netto|neto|nets?", "gross|brutto|bruto|bruts?")
)


@cache
def _never(name: str) -> frozenset[str]:
    import tomllib  # with the rules, so that what states nothing does not load it

    lists = tomllib.loads(Path(__file__).with_name("shared.toml").read_text("utf-8"))["never"]
    return frozenset(map(folded, lists[name].split()))


def plausible(attribute: str, value: str, rest: str) -> bool:
    """Return whether an attribute can have a value.

    >>> plausible("manager", "Helga", "."), plausible("manager", "German", ".")
    (True, False)

    Args:
        attribute: The attribute, in one form.
        value: The value, as it is written.
        rest: What follows in the sentence.
    """
    if _NEVER_AFTER.match(rest) or (attribute.split()[0] in _CLOSED and not _AFTER.match(rest)):
        return False
    first = folded(value.split()[0]).strip("'’")
    if attribute in _PEOPLE:
        return first not in _never("people")
    if attribute in _PLACES and first in _never("places"):
        return False
    if attribute in _NUMBERS:
        return any(each.isdigit() for each in value)
    if attribute.startswith("favourite"):
        return first not in _never("favourites")
    return first not in _never({"name": "names", "job": "jobs", "bank": "jobs", "major": "jobs"}.get(attribute, "any"))


def measured(attribute: str, said: str) -> str:
    """Return an attribute with what it is a measure of: an income before or after taxes.

    >>> measured("income", "I earn 3000 euros net")
    'net income'
    """
    if attribute == "income":
        return "net income" if _NET.search(said) else "gross income" if _GROSS.search(said) else attribute
    return attribute
