"""The patterns of redaction: read from the data files, compiled, and applied to a text.

`secrets_by_name.toml` explains how a pattern is described. This module finds what a pattern hides in one text; what is
found by several patterns is put together by `redaction`.
"""

from __future__ import annotations

import bisect
import re
import string
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from recollect.common.regexes import regex
from recollect.text.patterns import expanded

FILES = ("secrets_by_form.toml", "secrets_by_name.toml", "people.toml")

#: What characters are read as. U+0130 is here because it is the only one that is longer in lower case.
_ASCII = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_ASCII |= dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " ") | dict.fromkeys("‐‑‒–—―−", "-")
_ASCII |= dict.fromkeys("“”„«»", '"') | dict.fromkeys("‘’‚‹›", "'") | {"\u0130": "I"}
_DIGITS = frozenset(string.digits)
#: What no reader sees: colours and other sequences of a terminal, characters without a width, the soft hyphen.
_UNSEEN_STARTS = "\x1b\u00ad\u200b\u2060\ufeff"
_UNSEEN = regex(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b[()][A-Z0-9]|[\u00ad\u200b\u2060\ufeff]")


class FoldedText:
    """A text as the patterns read it.

    Attributes:
        text: The text with ASCII in place of full-width forms, and of the spaces, dashes and quotation marks of all
            scripts, and without what no reader sees, such as the colours of a terminal.
        lower: The same in lower case.
        digits: The number of its digits.
    """

    def __init__(self, original: str) -> None:
        self._cuts: list[int] = []  # the places in `text` before which something was removed,
        self._removed: list[int] = []  # and the number of characters removed up to each
        self.text = original
        if any(each in original for each in _UNSEEN_STARTS):
            self._remove_unseen()
        characters = frozenset(self.text)
        for each in () if self.text.isascii() else characters & _ASCII.keys():
            self.text = self.text.replace(each, _ASCII[each])
            characters |= {_ASCII[each]}
        self.lower = self.text.lower()
        self.digits = sum(map(self.text.count, characters & _DIGITS))
        self._characters = (characters, frozenset("".join(characters).lower()))
        self._places: dict[tuple[bool, tuple[str, ...]], list[int]] = {}

    def _remove_unseen(self) -> None:
        removed = 0
        for found in _UNSEEN.finditer(self.text):
            self._cuts.append(found.start() - removed)
            removed += found.end() - found.start()
            self._removed.append(removed)
        self.text = _UNSEEN.sub("", self.text)

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of `text`, which is not empty, begins and ends in the original."""
        return self._original(start), self._original(end - 1) + 1

    def _original(self, place: int) -> int:
        cut = bisect.bisect_right(self._cuts, place)
        return place + self._removed[cut - 1] if cut else place

    def contains(self, part: str, *, lower: bool) -> bool:
        """Return whether a text contains a part. Most have a character that it has not, which a set answers faster."""
        return self._characters[lower].issuperset(part) and part in (self.lower if lower else self.text)

    def places(self, starts: tuple[str, ...], *, lower: bool) -> list[int]:
        """Return where one of the starts of a pattern begins, in order."""
        if (places := self._places.get((lower, starts))) is None:
            text = self.lower if lower else self.text
            found: set[int] = set()
            for start in starts:
                if start.startswith("/"):
                    found.update(each.start() for each in _compiled(start.strip("/")).finditer(text))
                elif self.contains(start, lower=lower):
                    found.update(_places(text, start))
            # Several patterns have the same starts.
            places = self._places[lower, starts] = sorted(found)
        return places


def _places(text: str, start: str) -> Iterator[int]:
    place = text.find(start)
    while place >= 0:
        yield place
        place = text.find(start, place + 1)


class Pattern(NamedTuple):
    """A pattern. The data files explain its fields. It is compiled when a text first contains what it starts with."""

    category: str
    source: str
    mark: str
    check: Callable[[str], bool] | None
    shorter: bool
    lower: bool
    contains: tuple[str, ...]
    starts: tuple[str, ...]
    digits: int

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Pattern:
        """Return a pattern from its description, in which the parts are put in."""
        return cls(
            category=described["category"],
            source=described["pattern"],
            mark=described["with"],
            check=CHECKS[described["check"]] if "check" in described else None,
            shorter=described.get("shorter", False),
            lower=described.get("lower", False),
            contains=tuple(described.get("contains", ())),
            starts=tuple(described.get("starts", ())),
            digits=described.get("digits", 0),
        )

    def spans(self, read: FoldedText) -> Iterator[tuple[int, int]]:
        """Yield the parts of a text that this pattern hides, as places in the original: in order, without overlap."""
        text = read.lower if self.lower else read.text
        if read.digits < self.digits:
            return
        if self.contains and not any(read.contains(each, lower=self.lower) for each in self.contains):
            return
        for found in self._matches(read, text):
            start, end = _hidden(found)
            if self.check:
                end = start + _valid(text[start:end], self.check, self.shorter)
            if start < end and not text.startswith(marks(), start) and text[start:end].strip("*"):
                yield read.original(start, end)

    def _matches(self, read: FoldedText, text: str) -> Iterator[re.Match[str]]:
        if not self.starts:
            yield from _compiled(self.source).finditer(text)
            return
        end = 0
        for start in read.places(self.starts, lower=self.lower):
            if start >= end and (found := _compiled(self.source).match(text, start)):
                yield found
                end = found.end()


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.VERBOSE)


def _hidden(found: re.Match[str]) -> tuple[int, int]:
    """Return the part of a match that is hidden: of its groups `hide...` the one that took part, or all of it."""
    groups = [group for name, group in found.re.groupindex.items() if name.startswith("hide")]
    return next((found.span(group) for group in groups if found[group] is not None), (0, 0) if groups else found.span())


def _valid(found: str, check: Callable[[str], bool], shorter: bool) -> int:
    """Return the length of the longest beginning that is valid: all of it, or without its last groups."""
    while found and not check(found):
        found = found[: max(found.rfind(" "), found.rfind("-"), 0)] if shorter else ""
    return len(found)


@cache
def patterns() -> tuple[Pattern, ...]:
    """Return all patterns."""
    return tuple(Pattern.of({**each, "pattern": expanded(each["pattern"], parts())}) for each in descriptions())


@cache
def marks() -> tuple[str, ...]:
    """Return what stands for something that is hidden, also in lower case."""
    found = {each["with"] for each in descriptions()}
    return tuple(sorted({*found, *map(str.lower, found)}))


@cache
def descriptions() -> list[dict[str, Any]]:
    """Return the patterns as the files describe them, with their examples, and with names of `starts` replaced."""
    starts = {f"&{name}": each for content in _contents() for name, each in content.get("starts", {}).items()}
    return [
        {**each, "starts": [start for name in each.get("starts", ()) for start in starts.get(name, [name])]}
        for content in _contents()
        for each in content["pattern"]
    ]


@cache
def parts() -> dict[str, str]:
    """Return the parts that patterns refer to, in the order in which they refer to each other: to earlier ones."""
    return {name: part for content in _contents() for name, part in content.get("parts", {}).items()}


@cache
def _contents() -> list[dict[str, Any]]:
    import tomllib  # with the patterns, so that what redacts nothing does not load it

    folder = Path(__file__).parent
    return [tomllib.loads((folder / name).read_text(encoding="utf-8")) for name in FILES]


# Check digits and forms that a pattern of redaction cannot express. Each function takes the text that was found.

_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_CHINESE_WEIGHTS, _CHINESE_DIGITS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2), "10X98765432"
#: What a letter or digit at an odd position of an Italian codice fiscale counts.
_ITALIAN_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            *(1, 0, 5, 7, 9, 13, 15, 17, 19, 21),
            *(1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        ),
        strict=True,
    )
)


def luhn(found: str) -> bool:
    """Return whether a text has 13 to 19 digits with a valid check digit (ISO/IEC 7812-1).

    >>> luhn("4111 1111 1111 1111"), luhn("4111 1111 1111 1112")
    (True, False)
    """
    digits = _digits(found)
    doubled = sum(sum(divmod(2 * each, 10)) for each in digits[-2::-2])
    return 13 <= len(digits) <= 19 and (doubled + sum(digits[-1::-2])) % 10 == 0


def iban(found: str) -> bool:
    """Return whether a text is an IBAN with valid check digits (ISO 13616).

    >>> iban("DE89 3704 0044 0532 0130 00"), iban("DE88 3704 0044 0532 0130 00")
    (True, False)
    """
    plain = found.replace(" ", "").replace("-", "")
    return 15 <= len(plain) <= 34 and int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1


def identity_letters(found: str) -> bool:
    """Return whether a Spanish DNI or NIE, or an Italian codice fiscale, has its check letter. A British NINO has none.

    >>> identity_letters("12345678Z"), identity_letters("X1234567L"), identity_letters("12345678A")
    (True, True, False)
    """
    plain = found.replace(" ", "")
    if len(plain) == 16:
        counted = sum(_ITALIAN_ODD[each] for each in plain[:15:2])
        counted += sum(int(each) if each.isdigit() else ord(each) - ord("A") for each in plain[1:15:2])
        return ord(plain[15]) - ord("A") == counted % 26
    if plain[:2].isalpha():
        return True
    return plain[-1] == _DNI[int({"X": "0", "Y": "1", "Z": "2"}.get(plain[0], plain[0]) + plain[1:-1]) % 23]


def identity_digits(found: str) -> bool:
    """Return whether a Brazilian CPF, a Chinese resident number or a French NIR has its check digits.

    >>> identity_digits("111.444.777-35"), identity_digits("11010519491231002X"), identity_digits("255081416802538")
    (True, True, True)
    """
    plain = found.replace(" ", "").upper()
    if "." in plain:
        digits = _digits(plain)
        return all(
            sum(digit * weight for digit, weight in zip(digits, range(count + 1, 1, -1), strict=False)) * 10 % 11 % 10
            == digits[count]
            for count in (9, 10)
        )
    if len(plain) == 18:
        total = sum(int(each) * weight for each, weight in zip(plain, _CHINESE_WEIGHTS, strict=False))
        return plain[17] == _CHINESE_DIGITS[total % 11]
    corsican = {"A": 1_000_000, "B": 2_000_000}
    number = int(plain[:13].replace("A", "0").replace("B", "0")) - corsican.get(plain[6], 0)
    return 97 - number % 97 == int(plain[13:])


def named_id(found: str) -> bool:
    """Return whether a text that is called an identity number has at least five digits.

    >>> named_id("Aadhaar: 1234 5678 9012"), named_id("tax 2026")
    (True, False)
    """
    return len(_digits(found)) >= 5


def ten_digits(found: str) -> bool:
    """Return whether a text has ten to twelve digits, as phone numbers with their area have.

    >>> ten_digits("020 7946 0958"), ten_digits("0123 4567")
    (True, False)
    """
    return 10 <= len(_digits(found)) <= 12


def _digits(text: str) -> list[int]:
    return [int(each) for each in text if each.isdigit()]


#: The checks by the name that the patterns use.
CHECKS: dict[str, Callable[[str], bool]] = {
    check.__name__: check for check in (luhn, iban, identity_letters, identity_digits, named_id, ten_digits)
}
