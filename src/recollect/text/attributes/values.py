"""Values of attributes: whether two of them disagree."""

from __future__ import annotations

import re
from datetime import date

from recollect.common.regexes import regex
from recollect.text import dates
from recollect.text.folding import folded

_ARTICLES = regex(
    r"^(?:the|a|an|around|about|roughly|approximately|~|in|at|on|by|der|die|das|dem|den|ein|eine|einer|um|am|im|el|la|los"
    r"|las|un|una|al|a|le|les|une|du|à|au|chez)\s+",
    re.IGNORECASE,
)
_PUNCTUATION = regex(r"[^\w%$€£@.+/:, -]")
#: Numbers in words.
_NUMBERS = {
    word: number
    for number, words in enumerate(
        "zero null cero zéro|one ein eins eine einen uno un una une|two zwei dos deux|three drei tres trois"
        "|four vier cuatro quatre|five fünf cinco cinq|six sechs seis six|seven sieben siete sept|eight acht ocho huit"
        "|nine neun nueve neuf|ten zehn diez dix|eleven elf once onze|twelve zwölf doce douze".split("|")
    )
    for word in map(folded, words.split())
}
#: Days of the week, from Monday.
_DAYS = {
    folded(word): day
    for day, words in enumerate(
        "monday montag montags lunes lundi|tuesday dienstag dienstags martes mardi"
        "|wednesday mittwoch mittwochs miércoles mercredi|thursday donnerstag donnerstags jueves jeudi"
        "|friday freitag freitags viernes vendredi|saturday samstag samstags sábado samedi"
        "|sunday sonntag sonntags domingo dimanche".split("|")
    )
    for word in words.split()
}
#: Countries and parts of them, folded: a town may be in one.
_COUNTRIES = frozenset(
    folded(name)
    for name in (
        "England|Scotland|Wales|Ireland|Northern Ireland|UK|Britain|USA|US|America|Canada|California|Texas|Australia"
        "|New Zealand|India|China|Japan|Brazil|Mexico|Argentina|Austria|Germany|Switzerland|France|Italy|Spain|Portugal"
        "|Netherlands|Belgium|Denmark|Sweden|Norway|Finland|Poland|Greece|Turkey|Ukraine|Romania|Hungary|Croatia"
        "|Österreich|Deutschland|Schweiz|Frankreich|Italien|Spanien|Bayern|Tirol|Kärnten|Steiermark|Schottland|England"
        "|España|México|Colombia|Chile|Perú|Andalucía|Cataluña|Galicia|Francia|Alemania|Italia|Escocia"
        "|Espagne|Allemagne|Autriche|Suisse|Belgique|Bretagne|Provence|Normandie|Alsace|Écosse|Italie|Québec"
    ).split("|")
)
_CLOCK = regex(
    r"(?<![\d.,/-])(\d{1,2})(?:(?:[:.]| ?h ?| uhr )([0-5]\d)|( ?h(?:eures?)?(?!\w)| ?uhr\b)|(?= ?[ap]\.?m))?"
    r"( ?[ap]\.?m)?(?![\d/])"
)
_AFTERNOON = regex(
    r"\b(?:p\.?m|evening|afternoon|abends|nachmittags|de la tarde|de la noche|du soir|de l.apres-midi)\b"
)
_HALF_DAY = 12 * 60


def same_value(one: str, other: str, attribute: str = "", *, exact: bool = False) -> bool:
    """Return whether two values of an attribute do not disagree: they are equal, or one is more exact.

    >>> same_value("Oslo", "oslo, Norway"), same_value("the 3rd of March", "March 3, 2026"), same_value("10k", "9k")
    (True, True, False)
    >>> same_value("two", "2"), same_value("8 pm", "20 h"), same_value("Friday at 10", "Friday at 11:30")
    (True, True, False)

    Args:
        attribute: The attribute, if it is known: a home in a country and one in a town need not disagree.
        exact: Of two values, one of which has more words at an end, only those are the same in which a comma divides
            them: "Oslo, Norway", and not "senior engineer".
    """
    first, second = _normal(one), _normal(other)
    if first == second or _initials(one, other) or _initials(other, one):
        return True
    if attribute == "home" and not exact and (_COUNTRIES.isdisjoint((first,)) != _COUNTRIES.isdisjoint((second,))):
        return True  # one may be in the other
    days, other_days = _weekdays(first), _weekdays(second)
    if days and other_days and days.isdisjoint(other_days):
        return False
    clock, other_clock = _clock(first), _clock(second)
    if clock is not None and other_clock is not None and (days or other_days or (_is_time(first) and _is_time(second))):
        return clock == other_clock or (min(clock, other_clock) < _HALF_DAY and (clock - other_clock) % _HALF_DAY == 0)
    if days and other_days:
        return True
    when, then = dates.named(one, date(2000, 1, 1)), dates.named(other, date(2000, 1, 1))
    if when.days and then.days:
        return bool(when.days & then.days) and (not when.years or not then.years or bool(when.years & then.years))
    if _amount(first) is not None and _amount(first) == _amount(second):
        return True
    if attribute == "home":  # a part of a town is often written with a hyphen
        first, second = first.replace("-", " "), second.replace("-", " ")
    words, others = first.replace(",", " ").split(), second.replace(",", " ").split()
    shorter, longer = sorted((words, others), key=len)
    if exact:
        return words == others or shorter in [each.partition(",")[0].split() for each in (first, second) if "," in each]
    return bool(shorter) and (longer[: len(shorter)] == shorter or longer[-len(shorter) :] == shorter)


def _initials(short: str, long: str) -> bool:
    """Return whether a value is the initials of the other one: "NYC", "New York City"; a last one may be left out."""
    letters = "".join(word[0] for word in long.split()).upper()
    return 2 <= len(short) <= 4 and short.isupper() and len(letters) >= 2 and short in (letters, f"{letters}C")


def _weekdays(value: str) -> frozenset[int]:
    return frozenset(_DAYS[word] for word in value.replace(",", " ").split() if word in _DAYS)


def _is_time(value: str) -> bool:
    return (
        bool(re.search(r"[0-9] ?(?::|h\b|h ?[0-9])|heures?\b|\buhr\b|[0-9] ?[ap]\.?m\b", value))
        or value.strip().isdigit()
    )


def _clock(value: str) -> int | None:
    """Return the time of day that a value names, in minutes from midnight; None if it names none."""
    words = [str(_NUMBERS[word]) if word in _NUMBERS else word for word in value.split()]
    found = _CLOCK.search(" ".join(words))
    if found is None or int(found[1]) > 24:
        return None
    minutes = int(found[1]) * 60 + int(found[2] or 0)
    late = (found[4] or "").strip().startswith("p") or _AFTERNOON.search(value) is not None
    return minutes + _HALF_DAY if late and minutes < _HALF_DAY else minutes


_AMOUNT = regex(
    r"[$€£]?\s?([0-9][0-9,]*(?:\.[0-9]+)?)\s?(k|thousand|m|million)?"
    r"(?:\s?(?:dollars|euros?|pounds|usd|eur|pesos|years?(?: old)?|jahre(?: alt)?|años|ans|€))?"
)


def _normal(value: str) -> str:
    value = _PUNCTUATION.sub("", folded(value)).strip(" .,:;")
    return _ARTICLES.sub("", _ARTICLES.sub("", value)).strip()


def _amount(value: str) -> float | None:
    match = _AMOUNT.fullmatch(str(_NUMBERS.get(value, value)))
    if match is None:
        return None
    factor = {"k": 1000, "thousand": 1000, "m": 1_000_000, "million": 1_000_000}.get(match[2] or "", 1)
    return float(match[1].replace(",", "")) * factor
