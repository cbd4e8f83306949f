"""`entities` finds the names, dates, quantities, handles and addresses that a text mentions, by rules.

What has a form of its own (dates, addresses, ...) is found first. A name is a run of words with capital letters in
Latin script; the words in it, before it and after it decide its type. Of texts in other scripts only dates, quantities,
handles and addresses in Latin letters and digits are found. The result depends only on the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from recollect.common.regexes import regex
from recollect.text import dates
from recollect.text.entities import german
from recollect.text.entities import tables as patterns
from recollect.text.entities.tables import (
    ADJECTIVES,
    COMMON,
    CONNECTORS,
    FIRST_NAMES,
    GREETINGS,
    MOVING,
    NAME_ENDS,
    ORGANIZATION_BEGINS,
    ORGANIZATION_ENDS,
    PERSON_VERBS,
    PLACE_BEGINS,
    PLACE_CUES,
    PLACE_ENDS,
    PLACES,
    RELATIVES,
    TITLES,
    WORK,
)

#: The version of the rules. What is derived from mentions is derived again if it changes.
EXTRACTOR = "rules-2"
#: The types of mentions. "name" is a name whose type no rule decides.
TYPES = ("person", "organization", "place", "name", "date", "quantity", "handle", "address")
#: Maximum number of words of a name.
_MOST_WORDS = 6
_LATIN = "A-Za-zÀ-ÖØ-öø-ɏḀ-ỿ"
_WORD = regex(rf"[{_LATIN}0-9]++(?:['’-][{_LATIN}0-9]++)*+")
#: What is between two words of a name.
_GAP = regex(r"[ \t]|\. | & |['’] ")
#: What precedes the first word of a sentence, apart from blanks, quotes and brackets.
_ENDS = frozenset(".!?…:;\n\r•*|#>")
_POSSESSIVE = regex(r"['’](?:s|S)?$")
_CONTRACTED = regex(r"['’](?:m|ll|ve|re|d|t|s|all|am)$", re.IGNORECASE)
#: Words and single digits.
_LETTERS = regex(r"[a-z]+|[0-9]")
_BLANKS = regex(r"\s+")


class EntityMention(NamedTuple):
    """A mention of an entity in a text.

    Attributes:
        start: The index of its first character, in code points.
        end: The index after its last character.
        text: The characters.
        type: One of `TYPES`.
        name: The name of the entity: blanks joined, a handle without "@", a full date in ISO 8601.
    """

    start: int
    end: int
    text: str
    type: str
    name: str


class _Word(NamedTuple):
    start: int
    end: int
    text: str
    lower: str
    capital: bool
    initial: bool  # it begins a sentence


def entities(text: str, *, speaker: str | None = None) -> list[EntityMention]:
    """Return the mentions of entities in a text, in order; they do not overlap.

    >>> [(each.name, each.type) for each in entities("I met Ada Lovelace at Acme Corp in Oslo on March 3, 2026.")]
    [('Ada Lovelace', 'person'), ('Acme Corp', 'organization'), ('Oslo', 'place'), ('2026-03-03', 'date')]

    Args:
        speaker: The name of who says it, if that is known. Its parts are names of persons.

    Cost:
        Linear in the text: about 100 to 250 microseconds for a sentence.
    """
    found = list(_formed(text))
    taken = [False] * (len(text) + 1)
    for each in found:
        taken[each.start : each.end] = [True] * (each.end - each.start)
    words = list(_words(text, taken))
    speakers = frozenset(speaker.casefold().split()) if speaker else frozenset()
    found += _names(text, words, speakers)
    return sorted(found)


def _formed(text: str) -> Iterator[EntityMention]:
    """Yield the mentions that have a form of their own."""
    ends: list[tuple[int, int]] = []
    known = patterns.compiled()
    lower = text.lower()
    letters = set(_LETTERS.findall(lower))
    digits = not letters.isdisjoint("0123456789")
    for type_, pattern, group, possible in (
        ("address", known.address, 0, "@" in text or "://" in text or "www." in lower),
        ("handle", known.handle, 0, "@" in text),
        ("date", known.date, 0, digits or not letters.isdisjoint(patterns.DATE_WORDS)),
        ("date", known.year, 1, digits),
        ("date", known.month, 1, not letters.isdisjoint(patterns.MONTHS)),
        ("quantity", known.quantity, 0, digits or not letters.isdisjoint(patterns.NUMBER_WORDS)),
    ):
        if not possible:
            continue
        new = []
        for match in pattern.finditer(text):
            start, end = match.span(group)
            while type_ == "address" and text[end - 1] in ".,;:!?":
                end -= 1
            if not _overlaps(ends, start, end):
                new.append((start, end))
                found = text[start:end]
                yield EntityMention(start, end, found, type_, _canonical(found, type_))
        ends = sorted(ends + new) if new else ends


def _overlaps(ends: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    at = bisect_left(ends, (start, start))
    return (at < len(ends) and ends[at][0] < end) or (at > 0 and ends[at - 1][1] > start)


def _canonical(found: str, type_: str) -> str:
    name = _BLANKS.sub(" ", found).strip()
    if type_ == "handle":
        return name[1:]
    if type_ == "date":
        named = dates.named(name, date(2000, 1, 1))
        if len(named.years) == 1 and len(named.days) == 1:
            ((month, day),) = named.days
            (year,) = named.years
            try:
                return date(year, month, day).isoformat()
            except ValueError:  # 30 February
                return name
    return name


def _words(text: str, taken: Sequence[bool]) -> Iterator[_Word]:
    last = 0
    initial = True
    for match in _WORD.finditer(text):
        start, end = match.span()
        if not initial:
            initial = _begins(text, last, start)
        last = end
        word = match[0]
        if taken[start]:
            initial = False
            continue
        bare = _POSSESSIVE.sub("", word)
        yield _Word(start, start + len(bare), bare, bare.casefold(), bare[0].isupper(), initial)
        initial = False


def _begins(text: str, last: int, start: int) -> bool:
    """Return whether what is between two words ends a sentence."""
    between = text[last:start]
    if len(between) == 1:
        return between in _ENDS
    return any(char in _ENDS for char in between[:16])


def _names(text: str, words: Sequence[_Word], speakers: frozenset[str]) -> Iterator[EntityMention]:
    """Yield the names among words."""
    at = 0
    previous: EntityMention | None = None
    in_german = german.is_german(text, [word.lower for word in words])
    while at < len(words):
        if not words[at].capital:
            at += 1
            continue
        end = _run(text, words, at, in_german=in_german)
        first, last = _trimmed(words, at, end, speakers)
        if in_german:
            first += german.without_words_of_the_sentence([word.text for word in words[first:last]])
        roles = german.roles_before_a_name([word.text for word in words[first:last]]) if in_german else 0
        first += roles
        if first < last and not (in_german and not _is_name_in_german(words, first, last, speakers)):
            before = words[first - 1].lower if first and not words[first].initial else ""
            if before in ("at", "for", "as") and first > 1 and words[first - 2].lower in WORK:
                before = "work"
            after = words[last].lower if last < len(words) and not words[last].initial else ""
            start, stop = words[first].start, words[last - 1].end
            name = _BLANKS.sub(" ", text[start:stop])
            type_ = (
                "person" if roles else _type(text, words[first:last], before, after, speakers, previous, start, stop)
            )
            if type_:
                previous = EntityMention(start, stop, text[start:stop], type_, name)
                yield previous
        at = end


def _is_name_in_german(words: Sequence[_Word], first: int, last: int, speakers: frozenset[str]) -> bool:
    run = words[first:last]
    known = [_is_known(word.lower, speakers) for word in run]
    before = words[first - 1].lower if first and not words[first].initial else ""
    return german.is_name([word.text for word in run], before, known=known)


def _is_known(word: str, speakers: frozenset[str]) -> bool:
    """Return whether a word is the name of a person or a place, or an adjective of a place: "Wiener"."""
    adjective = word.removesuffix("er") if word.endswith("er") else ""
    return word in FIRST_NAMES or word in speakers or word in PLACES or adjective in PLACES


def _run(text: str, words: Sequence[_Word], at: int, *, in_german: bool) -> int:
    """Return the index after the run of words that begins with a capital letter at `at`."""
    end = at + 1
    while end < len(words) and end - at < _MOST_WORDS:
        gap = text[words[end - 1].end : words[end].start]
        if not _GAP.fullmatch(gap) or (words[end].initial and gap != ". "):
            break
        if gap == ". " and words[end - 1].lower not in TITLES and len(words[end - 1].text) > 1:
            break
        if words[end].capital:
            end += 1
            continue
        following = end + 1
        if (
            words[end].lower in CONNECTORS
            and words[end].lower not in ("and", "for", "y", "e", "und", "the")
            and (not in_german or words[end - 1].lower in FIRST_NAMES)  # "die Spülmaschine von Miele"
            and following < len(words)
            and words[following].capital
            and text[words[end].end : words[following].start] == " "
        ):
            end = following + 1
            continue
        break
    return end


def _trimmed(words: Sequence[_Word], first: int, last: int, speakers: frozenset[str]) -> tuple[int, int]:
    """Return the run without words that are no part of a name, at both ends."""
    while first < last:
        word = words[first]
        known = word.lower in FIRST_NAMES or word.lower in speakers or word.lower in PLACES
        plain = (
            word.lower in COMMON
            or word.lower in GREETINGS
            or word.lower in ADJECTIVES
            or word.lower in TITLES
            or _CONTRACTED.search(word.text) is not None
            or len(word.text) == 1
            or word.text.isdigit()
        )
        verbal = word.initial and word.lower.endswith(("ing", "ed", "ly")) and not known
        # Within a sentence, a capital letter makes such a word a part of a longer name: "Eastern Time Zone".
        inner = not word.initial and last - first > 1 and word.lower not in GREETINGS | TITLES
        if (not plain or (known and not word.initial) or inner or word.lower in PLACE_BEGINS) and not verbal:
            break
        first += 1
    while last > first and (words[last - 1].lower in CONNECTORS or words[last - 1].lower in COMMON):
        last -= 1
    return first, last


def _type(
    text: str,
    run: Sequence[_Word],
    before: str,
    after: str,
    speakers: frozenset[str],
    previous: EntityMention | None,
    start: int,
    stop: int,
) -> str:
    """Return the type of a name; "" if it is no name."""
    lowers = [word.lower for word in run]
    whole, head, tail = " ".join(lowers), lowers[0], lowers[-1]
    single = len(run) == 1
    if len(run) > 1 and tail in NAME_ENDS:
        return "name"
    if len(run) > 1 and (tail.rstrip(".") in ORGANIZATION_ENDS or (head in ORGANIZATION_BEGINS and "of" in lowers)):
        return "organization"
    if len(run) > 1 and tail in PLACE_ENDS:
        return "place"
    if single and _is_acronym(run[0].text) and whole not in PLACES:
        return ""
    if head in speakers or any(_is_short_for(head, each) for each in speakers):
        return "person"
    if whole in PLACES and not (whole in FIRST_NAMES and before not in PLACE_CUES):
        return "place"
    if head in FIRST_NAMES and len(run) <= 3 and not (before in MOVING and single and head in PLACES):
        return "person"
    if before in TITLES or before in RELATIVES or (before in GREETINGS and single):
        return "person"
    if single and _is_called(text, start, stop):
        return "person"
    if len(run) <= 2 and after in PERSON_VERBS:
        return "person"
    if before == "work":
        return "organization"
    follows_place = previous is not None and previous.type == "place" and text[previous.end : start] == ", "
    if follows_place or (len(run) > 1 and head in PLACE_BEGINS) or (len(run) <= 3 and before in PLACE_CUES):
        return "place"
    if single and run[0].initial:
        return ""  # as likely a word that begins a sentence
    return "name"


def _is_acronym(word: str) -> bool:
    return len(word) <= 6 and word.isupper() and word.isalpha()


def _is_short_for(word: str, name: str) -> bool:
    """Return whether a word is a short form of a name, such as "Mel" of "Melanie"."""
    return len(word) >= 3 and name.startswith(word)


def _is_called(text: str, start: int, stop: int) -> bool:
    """Return whether a word is the name of a person who is addressed: "Thanks, Kim!"."""
    after = text[stop : stop + 1]
    before = text[max(start - 2, 0) : start]
    if before != ", " or after not in ("!", "?", ".", ",", ""):
        return False
    words = _WORD.findall(text[max(start - 40, 0) : start - 2])
    return bool(words) and words[-1].casefold() in GREETINGS
