"""Rivals: whether a text says something else of what another text says.

A text of a low class of origin that is to take the place of the user's word must be about the same: it shares most of
its words, and has another value where that one has its own: another number of the same things, another name, another
address. What only shares a subject, and what only repeats or adds to it, is no rival.

A rule of words sees no meaning. "The office is closed on Mondays" and "No one works at the office on Mondays" are no
rivals to it, and two true statements with different numbers of the same things are.
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from recollect.common.regexes import regex
from recollect.text.entities.german import is_noun
from recollect.text.words import language_of, stem, terms

#: The part of the words of the trusted text that a rival shares: if both have another value of the same sort, and share
#: two pairs of neighbouring words, or one; if only the rival has a value; and if it repeats nearly all of the other
#: one, its values too, and adds one.
_PHRASED, _SHARED, _GIVEN, _REPEATED = 0.4, 0.6, 0.5, 0.8
_PAIRS = 2
#: Number of words that rivals share at least; that count the same time; and of which only one has a value.
_LEAST_SHARED, _LEAST_OF_TIME, _LEAST_GIVEN = 2, 3, 3
#: Longer texts are read up to here, in characters.
_MOST_CHARACTERS = 20_000
_TOKEN = regex(r"[^\s,;:!?()\[\]{}<>\"“”„«»|]+")
_NUMBER = regex(r"[+\-]?\d(?:[\d.,'’]*\d)?")
#: A token that names one thing: an address, a path, a name of a program, a number of a telephone. "and/or" is none.
_CODE = regex(
    r"(?=.*[^\W\d_]).*\d.*|\d+(?:[\-/.]\d+)+|.*\w@\w.*|.*\w{2}[._]\w{2}.*|.*\w-\w.*/\w.*|.*\w/\w.*[-/]\w.*|.*\w\\\w.*"
)
_WORD = regex(r"[^\W\d_]+")
#: What a sentence begins with is in capitals without being a name.
_ENDS = (".", "!", "?", ":", "\n", "-", ">", "#", "*")
NUMBER, CODE, NAME = "number", "code", "name"
_TIME = "time"


class Claim(NamedTuple):
    """What of a text is compared.

    Attributes:
        terms: Its terms.
        pairs: Pairs of its terms that stand next to each other, or have one between them.
        counted: The numbers that it states of things, by the stem of what they count or name.
        values: Its numbers, codes and names, each with its sort.
    """

    terms: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    counted: dict[str, frozenset[str]]
    values: dict[str, str]


@lru_cache(maxsize=256)
def claim(text: str, language: str) -> Claim:
    """Return what of a text in a language is compared with others."""
    text = unicodedata.normalize("NFC", text[:_MOST_CHARACTERS])
    counted: dict[str, set[str]] = {}
    values: dict[str, str] = {}
    begins, number, before = True, "", ""
    for found in _TOKEN.finditer(text):
        token = found[0].strip(".'’*_`-–—#")
        low = token.casefold()
        is_number = _NUMBER.fullmatch(token) is not None
        if not token:
            pass
        elif is_number or low in _number_words():
            number = low
            if is_number:
                values[low] = NUMBER
                if before:
                    counted.setdefault(before, set()).add(low)
        else:
            word = _WORD.match(low)
            if number and word is not None:
                thing = _TIME if low in _units() else stem(low, language)
                counted.setdefault(thing, set()).add(number if thing != _TIME else f"{number} {stem(low, language)}")
            number = ""
            if _CODE.fullmatch(token):
                values[low] = CODE
                if before and any(map(str.isdigit, low)):
                    counted.setdefault(before, set()).add(low)
            elif (
                token[0].isupper()
                and not begins
                and low not in _calendar()
                and not (language == "de" and is_noun(token))
            ):
                values[low] = NAME
        before = "" if number or len(low) < 4 or _WORD.fullmatch(low) is None else stem(low, language)
        begins = found[0].endswith(_ENDS) or text[found.end() : found.end() + 1] in _ENDS
    things = {thing: frozenset(numbers) for thing, numbers in counted.items()}
    said = [term for term, _ in terms(text, language)]
    pairs = frozenset((*pairwise(said), *zip(said, said[2:], strict=False)))
    return Claim(frozenset(said), pairs, things, values)


def may_rival(text: str) -> bool:
    """Return whether a text states a value at all: without one, it is no rival of any."""
    said = claim(text, language_of(text))
    return bool(said.counted or said.values)


def is_rival(text: str, trusted: str) -> bool:
    """Return whether a text says something else of what a trusted one says.

    >>> is_rival("The maximum dose is twelve tablets a day.", "The dose is at most two tablets a day.")
    True
    >>> is_rival("The tablets are taken with water.", "The dose is at most two tablets a day.")
    False
    """
    if trusted.strip().strip(".").casefold() in text.casefold():  # it quotes it
        return False
    return any(_disagree(claim(text, each), claim(trusted, each)) for each in {language_of(text), language_of(trusted)})


def _disagree(new: Claim, old: Claim) -> bool:
    shared, pairs = new.terms & old.terms, len(new.pairs & old.pairs)
    if len(shared) < _LEAST_SHARED or not pairs:
        return False
    for thing, numbers in old.counted.items():
        least = _LEAST_OF_TIME if thing == _TIME else _LEAST_SHARED
        if len(shared) >= least and numbers.isdisjoint(others := new.counted.get(thing, numbers)) and others:
            return True
    share = len(shared) / len(old.terms)
    own = {sort for each, sort in old.values.items() if each not in new.values}
    given = {sort for each, sort in new.values.items() if each not in old.values}
    if own & given:
        return share >= (_PHRASED if pairs >= _PAIRS else _SHARED)
    least_share = _REPEATED if old.values else _GIVEN
    return bool(given) and pairs >= _PAIRS and len(shared) >= _LEAST_GIVEN and share >= least_share


@cache
def _number_words() -> frozenset[str]:
    return frozenset(_listed("numbers"))


@cache
def _units() -> frozenset[str]:
    return frozenset(_listed("time"))


@cache
def _calendar() -> frozenset[str]:
    return frozenset(_listed("calendar"))


def _listed(name: str) -> list[str]:
    import tomllib  # with the lists, so that what asks nothing does not load it

    stated = tomllib.loads(Path(__file__).with_name("rivals.toml").read_text("utf-8"))
    return str(stated[name]).split()
