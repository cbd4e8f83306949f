"""The words of dates in a language, and how a question is divided into them.

words/*.json has the words with their categories. A category has its words with a value each, or the words of the values
from 0 or 1 on, or those of each name; `rules` says what they mean together. `flags` has what is special about a
language: `bare_weekday` (a day of the week needs no word before it), `bare` (nor does a holiday or a season),
`bareyear`, `bare_weekend`, `lower` (months and days of the week have no capital letter), `nouns` (all nouns have one),
`compounds` (as "Oktoberwoche"), `noun_chains` (as "May roses"), `prepositions`, `past_weekend` (this weekend is the
last), `week_and_day`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import Any

from recollect.common.regexes import regex
from recollect.text.dates.grammar import PhraseWord
from recollect.text.dates.holidays import holiday, words_file
from recollect.text.dates.spans import century, decade_of
from recollect.text.dates.times import Recurring
from recollect.text.languages import stop_words

#: The languages in which dates are read.
CODES = ("en", "de", "es", "fr", "it", "ja", "nl", "pt", "zh")
_TABLES: Mapping[str, Mapping[str, Any]] = {code: words_file(code) for code in CODES}
#: Words of a language that mean something else in others, or in names, are listed here and count only in its questions.
_UNSPACED = frozenset(("zh", "ja"))
#: Words that all languages with blanks between words have: what is counted, and what stands before a sum, too.
_SHARED = {
    "MEASURE": "€ $ £ ¥ eur usd gbp chf euro euros dollar dollars pounds yen % g kg mg km m cm mm l ml kcal kw kwh "
    "mb gb tb rpm hz w watt watts volt volts",
    "CURRENCY": "€ $ £ ¥ eur usd gbp chf",
}

_NUMERIC = (
    r"(?P<weekyear>(?<![\w-])[wW]\d\d[ /-](?:19|20)\d\d(?![\w-]))|(?=\d)(?:"
    r"(?P<isoweek>(?<![\dA-Za-z./-])(?:19|20)\d\d[ -]?[wW]\d\d(?:-?[1-7])?(?![\dA-Za-z-]))"
    r"|(?P<compact>(?<![\dA-Za-z./-])(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?![./-]?\d|[A-Za-z]))"
    r"|(?P<ymd>(?<![\d./-])(?:19|20)\d\d(?P<sep>[-/.])(?:0?[1-9]|1[0-2])(?P=sep)(?:0?[1-9]|[12]\d|3[01])(?![\d]|[-/.]\d))"
    r"|(?P<dmy>(?<![\d./-])\d{1,2}(?P<sep2>[./-])\d{1,2}(?P=sep2)(?:(?:19|20)\d\d|\d\d)(?!\d|[./-]\d))"
    r"|(?P<ym>(?<![\d./-])(?:19|20)\d\d[-/.](?:0[1-9]|1[0-2])(?![\d]|[-/.]\d))"
    r"|(?P<years>(?<![\d./-])(?:19|20)\d\d[/-](?:19|20)?\d\d(?![\d]|[-/.]\d))"
    r"|(?P<my>(?<![\w./-])(?:0?[1-9]|1[0-2])/(?:19|20)\d\d(?![\d]|[-/.]\d))"
    r"|(?P<dm>(?<![\d./-])(?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])\.(?![\d]))"
    r"|(?P<mixed>\d+(?:[./:-]\d+){2,}|\d+[.,:]\d+))"
)
_DECADE = r"(?P<decade>(?:19|20)\d0(?:'?s|ern?)\b|['’]?(?:\d0'?s|[5-9]0ern?)\b)"
_CLOCK = r"(?P<clock>\d{1,2}[:.h][0-5]\d(?!\d)(?:\s?[ap]\.?m\b)?|\d{1,2}\s?(?:[ap]\.?m\b|o'clock|uhr\b|uur\b|h\b))"
_SHORT_YEAR = r"(?P<short>(?:(?<!\w)|(?<=[a-z]{2}[a-km-z])|(?<=[qhtk][1-4]))['’]\d\d\b)"
_NUMBER = r"(?P<number>\d+)"


_DIGRAPHS = {ord(vowel): f"{vowel_of}e" for vowel, vowel_of in (("ä", "a"), ("ö", "o"), ("ü", "u"))}


def plain(text: str) -> str:
    """Return a text in lower case without accents: people leave them out."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFD", text.casefold())
    return unicodedata.normalize("NFC", "".join(each for each in parts if not "\u0300" <= each <= "\u036f"))


def plain_forms(phrase: str, code: str) -> set[str]:
    """Return a phrase without accents; in German also with "ae" for "ä", as people type it."""
    forms = {plain(phrase)}
    if code == "de" and not phrase.isascii():
        forms.add(plain(phrase.casefold().translate(_DIGRAPHS)))
    return forms


class Lexicon:
    """The words of a language."""

    def __init__(self, code: str) -> None:
        table = dict(_TABLES[code])
        self.code = code
        self.spaced = code not in _UNSPACED
        self.flags = frozenset(table.pop("flags", "").split())
        table.pop("shared", None)
        self.unsure = frozenset(map(plain, table.pop("unsure", "").split()))
        self._lowercase = frozenset(table.pop("lowercase", "").split())
        self._suffix: str = table.pop("day_suffix", "")
        self._entries: dict[tuple[str, ...], dict[str, Any]] = {}
        for category, written in table.items():
            for phrase, value in _values(category, written):
                self._add(phrase, category.upper(), value)
        for phrase, number in _numbers(table.get("numbers", {})):
            self._add(phrase, "NUM", number)
        for category, phrases in _SHARED.items() if self.spaced else ():
            for phrase in phrases.split():
                self._add(phrase, category, None)
        for of in self._entries.values():
            _derive(of, self.spaced)
        self._longest: dict[str, int] = {}
        for key in self._entries:
            self._longest[key[0]] = max(len(key), self._longest.get(key[0], 0))

    def _add(self, phrase: str, category: str, value: object) -> None:
        """Add a word as it is written, and without accents."""
        forms = {phrase.casefold(), *plain_forms(phrase, self.code)} if len(phrase) > 1 else {phrase.casefold()}
        for form in forms:
            key = (tuple(_PARTS.findall(form)) or (form,)) if self.spaced else tuple(form)
            self._entries.setdefault(key, {}).setdefault(category, value)

    @cached_property
    def sets(self) -> frozenset[frozenset[str]]:
        """Return the sets of categories that words have."""
        return frozenset(map(frozenset, self._entries.values())) | {frozenset(of) for of in _OF_NUMBERS}

    def divided(self, text: str, sure: bool = True) -> Iterator[PhraseWord]:
        """Yield the words of a text; those that no date has are without categories.

        Args:
            sure: Whether the text is in this language. If not, words with a capital letter are names.
        """
        return self._words(text, sure) if self.spaced else self._characters(text)

    def is_function(self, word: str) -> bool:
        """Return whether a word that no date has is no noun, as far as that can be seen.

        After "the 10th", a noun says of what it is the tenth.
        """
        if "nouns" in self.flags:
            return not word[:1].isupper()
        return not self.spaced or plain(word) in self._functions

    @cached_property
    def articles(self) -> frozenset[str]:
        """The words between a preposition and a time."""
        return frozenset(key[0] for key, of in self._entries.items() if len(key) == 1 and "THE" in of)

    @cached_property
    def _functions(self) -> frozenset[str]:
        return frozenset(map(plain, stop_words(self.code)))

    def _words(self, text: str, sure: bool) -> Iterator[PhraseWord]:
        pieces = list(self._pieces.finditer(text))
        parts = [found[0].casefold().replace("’", "'") for found in pieces]
        at = 0
        while at < len(pieces):
            found = pieces[at]
            if found["word"]:
                of, length = self._longest_entry(parts, at)
                if length == 1 and found[0][0].isupper() and at and self._is_name(pieces, at, of, sure):
                    of = {}
                if length == 0 and (split := compounds(self.code).get(parts[at])) is not None:
                    yield from (PhraseWord(self._entries[(part,)], found.start(), found.end()) for part in split)
                else:
                    length = max(length, 1)
                    yield PhraseWord(of, found.start(), pieces[at + length - 1].end())
                at += max(length, 1)
                continue
            yield PhraseWord(self._of_piece(found), *found.span())
            at += 1

    def _is_name(self, pieces: list[re.Match[str]], at: int, of: Mapping[str, Any], sure: bool) -> bool:
        """Return whether a word with a capital letter within a sentence is a name: "Wednesday Addams", "Avril"."""
        word = pieces[at][0]
        if "MEASURE" in of:
            return False
        if word.casefold() in self._lowercase or (not sure and "lower" in self.flags and "HOLIDAY" not in of):
            return True
        if _NAMES.isdisjoint(of):
            return False
        after = pieces[at + 1][0] if at + 1 < len(pieces) else ""
        if "SEASON" in of and "lower" in self.flags:
            return True
        named = after[:1].isupper() and (after.casefold(),) not in self._entries
        if "nouns" in self.flags:  # all nouns have one
            return False
        return named or ("lower" in self.flags and plain(word) in self.unsure)

    def _longest_entry(self, parts: list[str], at: int) -> tuple[Mapping[str, Any], int]:
        words: list[str] = []
        best: tuple[Mapping[str, Any], int] = ({}, 0)
        most = self._longest.get(parts[at], 0)
        number = at
        while number < len(parts) and len(words) < most:
            if parts[number] not in _HYPHENS or number == at:
                words.append(parts[number])
                of = self._entries.get(tuple(words))
                if of is not None:
                    best = of, number + 1 - at
            number += 1
        return best

    @cached_property
    def _pieces(self) -> re.Pattern[str]:
        number = rf"(?P<day>\d{{1,2}}(?!\d)(?:{self._suffix}))(?!\w)|{_NUMBER}" if self._suffix else _NUMBER
        before = r"\w" if self.spaced else "0-9A-Za-z"
        word = r"(?P<word>[^\W\d_]+)" if self.spaced else "(?P<word>(?!))"
        return re.compile(
            rf"{_NUMERIC}|{_DECADE}|{_CLOCK}|{_SHORT_YEAR}|(?<![{before}.,]){number}|\d+|(?P<poss>['’]s\b)|{word}|(?P<sign>[^\w\s'’])",
            re.IGNORECASE,
        )

    def _of_piece(self, found: re.Match[str]) -> Mapping[str, Any]:
        kind = found.lastgroup
        # sep groups follow their form
        text = found[0]
        if found["ymd"] or found["dmy"]:
            return {"DASHED": text} if re.fullmatch(r"\d\d?-\d\d?-\d\d", text) else {"NUMERIC": text}
        if found["compact"]:
            return {"NUMERIC": f"{text[:4]}-{text[4:6]}-{text[6:]}"}
        if found["isoweek"]:
            _, _, rest = text.lower().partition("w")
            weekday = rest[2:].strip("-")
            return {"ISOWEEK": (int(text[:4]), int(rest[:2]), int(weekday) if weekday else None)}
        if found["weekyear"]:
            return {"ISOWEEK": (int(text[-4:]), int(text[1:3]), None)}
        if found["ym"]:
            year, month = int(text[:4]), int(text[5:])
            return {"YEARMONTH": (year, month)}
        if found["years"]:
            return {"YEARS": (int(text[:4]), int(text[5:]))}
        if found["my"]:
            month, year = map(int, text.split("/"))
            return {"YEARMONTH": (year, month)}
        if found["dm"]:
            day, month = map(int, text.split(".")[:2])
            return {"DAYANDMONTH": (day, month)} if self.code == "de" else {}
        if found["decade"]:
            digits = int("".join(filter(str.isdigit, text)))
            return {"DECADE": digits if digits > 100 else decade_of(digits)}
        if found["clock"]:
            return {"CLOCK": text}
        if found["short"]:
            return {"SHORTYEAR": century(int(text[1:]))}
        if self._suffix and found["day"]:
            value = int("".join(filter(str.isdigit, text)))
            if text.isdigit():
                return of_number(text)
            return {"DAY": value, "ORD": value, "SUREDAY": value} if 1 <= value <= 31 else {"ORD": value}
        if kind == "number":
            of = of_number(text)
            return of if self.spaced or "YEAR" not in of else {"PLAINYEAR": of["YEAR"], "NUM": of["NUM"]}
        if kind == "poss":
            return {"POSS": None}
        return self._entries.get((text,)) or {"SIGN": None}

    def _characters(self, text: str) -> Iterator[PhraseWord]:
        """Yield the words of a text in a script without spaces: at each place the longest."""
        lower = plain(text)
        if len(lower) != len(text):
            lower = text
        at = 0
        while at < len(text):
            word = self._longest_at(lower, text, at)
            if word.of or not text[at].isspace():
                yield word
            at = word.end

    def _longest_at(self, lower: str, text: str, at: int) -> PhraseWord:
        """Return the longest word at a place: a number, one of the lexicon, or a single character."""
        best = PhraseWord({}, at, at + 1)
        found = _CJK.match(lower, at)
        if found is not None and (of := _of_cjk(found)):
            best = PhraseWord(of, *found.span())
        numeric = self._pieces.match(text, at)
        if numeric is not None and numeric["sign"] is None and numeric.end() >= best.end + bool(best.of):
            best = PhraseWord(self._of_piece(numeric), *numeric.span())
        for length in range(min(self._longest.get(lower[at], 0), len(text) - at), 0, -1):
            entry = self._entries.get(tuple(lower[at : at + length]))
            if entry is not None and not (length == 1 and "SEASON" in entry and _NAME.match(text, at + 1)):
                return PhraseWord(entry, at, at + length) if at + length > best.end or not best.of else best
        return best


#: Categories of words that are parts of names, too.
_NAMES = frozenset("MONTH WEEKDAY SEASON HOLIDAY".split())
_HYPHENS = frozenset("-‐‑–")
#: Shorter words are words of other languages, too.
_SURE = 4
#: Numbers up to this one have words that show in which language a question is.
_MOST_SHOWING = 10
_PARTS = regex(r"'s\b|[^\W\d_]+|\d+|[^\w\s'-]")
#: Categories of which each phrase without digits has a word.
_ANCHORS = "near nearyear weekday weekdays month unit season holiday decade halfyearpost".split()
#: Categories of the parts of compounds.
_HEADS, _TAILS = ("month", "unit", "season"), ("unit", "halfword", "partword")
_OF_NUMBERS = (
    {"NUMERIC"}, {"ISOWEEK"}, {"DASHED"}, {"YEARMONTH"}, {"YEARS"}, {"DAYANDMONTH"}, {"DECADE"}, {"CLOCK"},
    {"SHORTYEAR"}, {"POSS"},
    {"DAY", "ORD", "SUREDAY"}, {"DAY", "NUM"}, {"NUM"}, {"YEAR", "NUM"}, {"YEAR"}, {"YEARLY", "MONTH"}, {"SIGN"},
    {"DAY", "SUREDAY"}, {"PLAINYEAR", "NUM"}, {"OLDYEAR", "NUM"}, {"NUMS"}, {"FUNCTION"},
)  # fmt: skip


def of_number(text: str) -> Mapping[str, Any]:
    """Return the categories of a number in digits."""
    if len(text) > 4:
        return {}
    value = int(text)
    if len(text) < 4:
        return {"DAY": value, "NUM": value} if 1 <= value <= 31 else {"NUM": value}
    category = "YEAR" if 1900 <= value < 2100 else "OLDYEAR" if 1000 <= value < 1900 else None
    return {category: value, "NUM": value} if category else {"NUM": value}


#: What makes a season of one character a part of a name or of another word.
_NAME = regex("[\u4e00-\u9fff]|さん|ちゃん|くん|さま")
_CJK_NUMBER = "[〇零一二三四五六七八九十两兩]"
_CJK = regex(
    rf"(?P<era>令和|平成|昭和)(?P<of_era>元|\d\d?|[一二三四五六七八九十]+)年"
    rf"|(?P<year>(?:1\d|20)\d\d|[一二][〇零一二三四五六七八九]{{3}})年(?![前代間间])"
    rf"|(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])月(?:份)?(?![亮球光食面君様]|さ[んま]|ちゃん)"
    rf"|(?P<day>3[01]|[12]\d|0?[1-9]|三十一?|二十[一二三四五六七八九]?|十[一二三四五六七八九]?|[一二三四五六七八九])(?:日|号|號)"
    rf"(?!前(?![后後])|[間间本後后目楼樓线線门門房院馆館厅廳桌车車机機店室棟坊球]|ほど|くらい|ぐらい|以上|以内|足らず|あまり)"
    rf"|(?P<decade>(?:19|20)?\d0|[二三四五六七八九]十)年代"
    rf"|(?P<several>(?:[一二三四五六七八两兩][二三四五六七八九两兩](?!{_CJK_NUMBER}))|[二三四五六七八九]?十[几幾数多来來]|[数几幾]十)"
    rf"|第(?P<nth>\d\d|{_CJK_NUMBER}{{2,3}})"
    rf"|(?P<number>(?!零.){_CJK_NUMBER}+)"
)
#: The years before the first ones of Japanese eras.
_ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925}
_CJK_DIGITS = {char: number for number, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}


def _cjk_value(text: str) -> int:
    """Return the value of a number below 100, or of digits one after the other."""
    if text.isascii():
        return int(text)
    if "十" not in text:
        return int("".join(str(_CJK_DIGITS[char]) for char in text))
    tens, _, ones = text.partition("十")
    return 10 * (_CJK_DIGITS[tens] if tens else 1) + (_CJK_DIGITS[ones] if ones else 0)


def _several(text: str) -> Mapping[str, Any]:
    """Return the least and greatest number that 三四, 十几, 二十多 or 数十 mean."""
    if text.endswith("十"):
        return {"NUMS": (20, 90)}
    if "十" in text:
        tens = 10 * _CJK_DIGITS.get(text[0], 1)
        if text[-1] in "来來":  # "about ten", "about twenty"
            return {"NUMS": (tens - 1, tens + 1)}
        return {"NUMS": (tens + 1, tens + 9)}
    least, most = (_CJK_DIGITS[char] for char in text)
    return {"NUMS": (least, most)} if least < most else {}


def _of_cjk(found: re.Match[str]) -> Mapping[str, Any]:
    kind = str(found.lastgroup)
    if found["era"]:
        kind = "of_era"
        if found[kind] == "元":
            return {"YEAR": _ERAS[found["era"]] + 1}
    if kind == "several":
        return _several(found[kind])
    try:
        value = _cjk_value(found[kind])
    except (KeyError, ValueError):  # no number: several tens
        return {}
    if kind == "nth":
        return {"ORD": value}
    if kind == "month":
        return {"MONTH": value, "YEARLY": Recurring.month_of(value)}
    if kind == "day":
        return {"DAY": value, "SUREDAY": value}
    if kind == "decade":
        return {"DECADE": value if value > 100 else decade_of(value)}
    if kind == "of_era":
        value += _ERAS[found["era"]]
    return {"YEAR": value} if kind in ("year", "of_era") else {"NUM": value}


def _derive(of: dict[str, Any], ordinals_are_days: bool) -> None:
    """Add what follows from the categories of a word."""
    if "MONTH" in of:
        of["YEARLY"] = Recurring.month_of(of["MONTH"])
    elif "SEASON" in of:
        of["YEARLY"] = Recurring.season_of(of["SEASON"])
    elif "HOLIDAY" in of:
        of["YEARLY"] = Recurring.of_holiday(holiday(of["HOLIDAY"]))
    elif "QUARTER" in of:
        of["YEARLY"] = Recurring.quarter_of(of["QUARTER"])
    elif "HALFYEAR" in of:
        of["YEARLY"] = Recurring.half_of(of["HALFYEAR"])
    if "ORD" in of and "WEEKDAY" in of:
        of["AMBIGUOUS"] = None
    if ordinals_are_days and "ORD" in of and 1 <= of["ORD"] <= 31 and "WEEKDAY" not in of and "PARTWORD" not in of:
        of["DAY"] = of["ORD"]


def _values(category: str, written: Any) -> Iterator[tuple[str, Any]]:
    """Yield the words of a category with their values, as the tables have them.

    A string has words separated by semicolons, each with a number as its value where it ends with one; a list has the
    words of 0 or 1 and so on; a table has those of each name.
    """
    if category == "numbers":
        return
    if isinstance(written, str):
        for phrase in filter(None, map(str.strip, written.split(";"))):
            words, _, last = phrase.rpartition(" ")
            valued = bool(words) and re.fullmatch(r"-?\d+(?:\.\d+)?", last) is not None
            number = (float(last) if "." in last else int(last)) if valued else None
            yield (words, number) if valued else (phrase, None)
    elif isinstance(written, list):
        first = 0 if category in ("weekday", "weekdays", "season", "partword", "partof", "partpost") else 1
        for value, phrases in enumerate(written, first):
            yield from ((phrase.strip(), value) for phrase in phrases.split(";") if phrase.strip())
    else:
        for name, phrases in written.items():
            yield from ((phrase.strip(), name) for phrase in phrases.split(";") if phrase.strip())


def _numbers(table: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the numbers in words from 1 to 99.

    `below` has the words from 1 on, `tens` from 20 on in steps of ten, those of which end with "+" being extended up to
    nineteen above; `joint` says how tens and ones are put together.
    """
    below = [each.split("|") for each in table.get("below", "").split()]
    yield from ((word.replace("_", " "), value) for value, words in enumerate(below, 1) for word in words)
    for ten, written in zip(range(20, 100, 10), table.get("tens", "").split(), strict=False):
        for word in written.removesuffix("+").split("|"):
            word = word.replace("_", " ")
            yield word, ten
            for value, words in enumerate(below[: 19 if written.endswith("+") else 9], 1):
                for ones in words:
                    for joint in table["joint"]:
                        yield joint.format(tens=word, ones=ones.replace("_", " ")), ten + value
    for phrase, value in _values("", table.get("other", "")):
        yield phrase, value


@cache
def words_in(code: str) -> frozenset[str]:
    """Return words of a language, without accents, of which each phrase without digits has one."""
    table = _TABLES[code]
    phrases = [phrase for category in _ANCHORS if category in table for phrase, _ in _values(category, table[category])]
    if code in _UNSPACED:
        return frozenset(map(plain, phrases))
    words = {max(_PARTS.findall(form), key=len) for phrase in phrases for form in plain_forms(phrase, code)}
    if "compounds" in table["flags"]:
        words.update(map(plain, compounds(code)))
    return frozenset(words)


@cache
def words_of_distances(code: str) -> frozenset[str]:
    """Return the numbers and the words beside them in "hace dos semanas", which tell languages apart."""
    table = _TABLES[code]
    phrases = [phrase for each in ("back", "ago", "about") for phrase, _ in _values(each, table.get(each, ""))]
    phrases += [phrase for phrase, number in _numbers(table.get("numbers", {})) if number <= _MOST_SHOWING]
    months = frozenset[str]().union(*map(words_in, CODES))  # "sept" is a number, and a month
    return frozenset(phrase for phrase in phrases if " " not in phrase) - months


@cache
def sure_words(code: str) -> frozenset[str]:
    """Return those of them that mean a date in a question in any language: no other language has them."""
    others = (words_in(other) for other in CODES if other != code)
    own = words_in(code).difference(map(plain, _TABLES[code].get("shared", "").split()), *others)
    return frozenset(word for word in own if len(word) >= _SURE)


@cache
def compounds(code: str) -> Mapping[str, tuple[str, str]]:
    """Map each compound of a language to its two parts, in the order in which they are said apart.

    "Oktoberwoche" is a "Woche im Oktober", "Montagabend" a "Montag abend"; so are "monatsende", "sommeranfang".
    """
    table = _TABLES[code]
    if "compounds" not in table["flags"]:
        return {}
    heads, tails = (
        [phrase for each in categories for phrase, _ in _values(each, table[each]) if " " not in phrase]
        for categories in (_HEADS, _TAILS)
    )
    found = {f"{head}{joint}{tail}": (tail, head) for head in heads for joint in ("", "s", "n") for tail in tails}
    days = [phrase for phrase, _ in _values("weekday", table["weekday"])]
    parts = [phrase for phrase, _ in _values("daypart", table["daypart"])]
    return found | {f"{day}{part}": (day, part) for day in days for part in parts}


@cache
def lexicon(code: str) -> Lexicon:
    """Return the words of a language in `CODES`."""
    return Lexicon(code)
