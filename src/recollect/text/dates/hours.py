"""Times of the day that a question names: "in the evening", "before nine", "around noon", in the languages of dates.

A part of the day is a window of its minutes. With a day ("Monday evening") it is a time; without one, a question about
what was said or done means the last days. What people do every morning says nothing about when they said so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from recollect.common.regexes import regex

_HOUR, _DAY = 60, 24 * 60


class Window(NamedTuple):
    """A part of a day, in minutes from midnight on; the end, which is excluded, may be on the next day."""

    begin: int
    end: int


_MORNING, _FORENOON, _NOON = (
    Window(4 * _HOUR, 12 * _HOUR),
    Window(8 * _HOUR, 12 * _HOUR),
    Window(11 * _HOUR, 14 * _HOUR),
)
_AFTERNOON, _EVENING = Window(12 * _HOUR, 18 * _HOUR), Window(17 * _HOUR, 24 * _HOUR)
_NIGHT, _MIDNIGHT = Window(20 * _HOUR, 29 * _HOUR), Window(23 * _HOUR, 25 * _HOUR)
#: The words for parts of the day. The last part of a compound ("Montagabend", "maandagavond") is one, too.
_PARTS: tuple[tuple[Window, str], ...] = (
    (
        _FORENOON,
        r"forenoon|vormittags?|voormiddag|上午|午前",
    ),
    (
        _AFTERNOON,
        r"afternoons?|nachmittags?|après-midi|pomeriggio|namiddag|(?:por|de|esta) la tarde|esta tarde|ayer tarde"
        r"|à tarde|de tarde|da tarde|下午|午後",
    ),
    (
        _MORNING,
        r"mornings?|morgens|(?:am|heute|gestern|vorgestern|jeden) morgen|(?:heute|gestern|in der) früh|frühmorgens"
        r"|matin|matinée|(?:por|de|esta) la mañana|esta mañana|mattina|mattino|stamattina"
        r"|ochtends?|vanochtend|vanmorgen|(?:gister|vandaag) morgen|manhã|早上|早晨|今早|清晨|今朝|朝",
    ),
    (
        _NOON,
        r"noon|midday|lunchtime|lunch time|mittags?|midi|mediodía|mezzogiorno|middag|vanmiddag|meio-dia"
        r"|中午|正午|お?昼",
    ),
    (
        _MIDNIGHT,
        r"midnight|mitternacht|minuit|medianoche|mezzanotte|middernacht|meia-noite|半夜|午夜|真夜中",
    ),
    (
        _EVENING,
        r"evenings?|tonight|abends?|soir|soirée|sera|serata|stasera|avonds?|vanavond|晚上|傍晚|今晚|夕方|晩",
    ),
    (
        _NIGHT,
        r"nights?|overnight|nachts?|nuit|(?:por|de|esta) la noche|esta noche|anoche|notte|stanotte|vannacht"
        r"|à noite|de noite|da noite|esta noite|夜里|夜裡|昨晚|昨夜|夜",
    ),
)
_WEEKDAYS = (
    "montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag"
    "|maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag|gister"
)
_NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve",
    "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "una dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "une deux trois quatre cinq six sept huit neuf dix onze douze",
    "una due tre quattro cinque sei sette otto nove dieci undici dodici",
    "een twee drie vier vijf zes zeven acht negen tien elf twaalf",
    "uma duas três quatro cinco seis sete oito nove dez onze doze",
)
#: Words beside those for parts of the day.
_BESIDE = frozenset("esta heute ayer time jeden".split())
_HOURS = {word: number for line in _NUMBERS for number, word in enumerate(line.split(), 1)} | {"un": 1}
_BEFORE = (
    r"before|until|till|by|vor|bis|antes de(?: las?)?|hasta las?|avant|prima delle|prima dell'|voor|antes das?|até as?"
)
_AFTER = r"after|past|since|nach|ab|después de(?: las?)?|desde las?|après|dopo le|dopo l'|na|depois das?"
_AROUND = (
    r"at|around|about|um|gegen|kurz nach|kurz vor|a las?|sobre las?|hacia las?|à|vers|alle|verso le|rond|om|às"
    r"|por volta das?"
)
_CLOCK = regex(
    rf"(?<!\w)(?P<how>{_BEFORE}|{_AFTER}|{_AROUND}) (?:about |ungefähr |etwa )?"
    rf"(?:(?P<hour>\d{{1,2}})(?:[:.h](?P<minute>[0-5]\d))?|(?P<word>{'|'.join(sorted(_HOURS, key=len, reverse=True))}))"
    r"(?P<unit> ?(?:a\.?m\.?|p\.?m\.?|o'clock|uhr|heures?|h|uur|horas?)(?!\w))?"
    r"(?! ?[-/%€$£.,]?\d)(?P<rest>[^\w]*(?:$|(?:on|in|at|of|yesterday|today|last|this|am|im|gestern|heute|hier|ayer"
    r"|ieri|ontem|gisteren|de|du|del|van|da|the|monday|tuesday|wednesday|thursday|friday|saturday|sunday)(?!\w)))?",
    re.IGNORECASE,
)
#: Number of parts of the day that count: each is compared with the times of all documents.
_MOST = 4
#: Minutes before and after a time of the clock that are around it.
_NEAR = 45
#: An hour below this that is neither of the morning nor of the evening is taken for one after noon.
_EARLY = 7


@cache
def words_of_hours() -> frozenset[str]:
    """Return words of which a question in ASCII that names a time of the day has one, if it has no digits."""
    parts = {word for _, words in _PARTS for word in re.findall(r"[a-z]{4,}", words.replace("s?", ""))} - _BESIDE
    compounds = {f"{day}{part}" for day in _WEEKDAYS.split("|") for part in parts}
    return frozenset({f"{word}{end}" for word in parts | compounds for end in ("", "s")} | set(_HOURS))


@cache
def _pattern() -> re.Pattern[str]:
    named = "|".join(f"(?P<p{number}>{_with_compounds(words)})" for number, (_, words) in enumerate(_PARTS))
    return re.compile(named, re.IGNORECASE)


def _with_compounds(words: str) -> str:
    spaced = "|".join(each for each in words.split("|") if each.isascii() or not _is_unspaced(each))
    unspaced = [each for each in words.split("|") if _is_unspaced(each)]
    return "|".join([rf"(?<!\w)(?:{_WEEKDAYS})?(?:{spaced})(?!\w)", *unspaced])


def _is_unspaced(word: str) -> bool:
    return any("\u3040" <= char <= "\u9fff" for char in word)


def windows_in(question: str) -> tuple[Window, ...]:
    """Return the parts of the day that a question names, each once.

    Only the first four times of the clock count, or, without one, parts of the day.

    >>> windows_in("What did we say on Monday evening?"), windows_in("What did I eat around noon?")
    ((Window(begin=1020, end=1440),), (Window(begin=660, end=840),))
    >>> windows_in("Who called before nine?"), windows_in("Did I buy it before nine people came?")
    ((Window(begin=0, end=540),), ())
    """
    named = tuple(islice(_named(question), _MOST))
    clock = tuple(islice(_of_clock(question, named), _MOST))
    return tuple(dict.fromkeys(clock or named))


def _named(question: str) -> Iterator[Window]:
    for found in _pattern().finditer(question):
        assert found.lastgroup is not None
        yield _PARTS[int(found.lastgroup[1:])][0]


def _of_clock(question: str, named: Iterable[Window]) -> Iterator[Window]:
    """Yield what a time of the clock means; a part of the day beside it says which half of the day."""
    late = any(window.begin >= _NOON.begin for window in named)
    early = any(window.end <= _NOON.end and window.begin < _NOON.begin for window in named)
    for found in _CLOCK.finditer(question):
        unit = (found["unit"] or "").strip().casefold().replace(".", "")
        if not unit and found["minute"] is None and found["rest"] is None:
            continue  # "before nine people came"
        hour = _HOURS[found["word"].casefold()] if found["word"] else int(found["hour"])
        if hour > 24:
            continue
        if (unit == "pm" and hour < 12) or (late and hour < 12):
            hour += 12
        elif unit == "am" and hour == 12:
            hour = 0
        elif not unit and not early and found["minute"] is None and hour < _EARLY:
            hour += 12
        time = hour * _HOUR + int(found["minute"] or 0)
        how = found["how"].casefold()
        if re.fullmatch(_BEFORE, how):
            yield Window(0, time)
        elif re.fullmatch(_AFTER, how):
            yield Window(time, _DAY)
        else:
            yield Window(max(time - _NEAR, 0), time + _NEAR)
