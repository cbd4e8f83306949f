"""Unicode normalisation and case folding with the same results on every Python version.

The tables of Python change with its releases (3.11 has Unicode 14, 3.13 has 15.1), but ids and scores must not change.
Code points that are unassigned in Unicode 14 are therefore opaque here: they are never composed, folded or made part of
a word. For assigned code points, Unicode's stability policy keeps normalisation and case folding fixed, and the table
of word characters is our own (`_unicode14`).

None of these forms is stored: text is stored and hashed exactly as it was passed. They serve ids, filters and indexes.

The cost is linear in the length of any text. No single call into Python's C code works on more than `PIECE` characters
if the text can be divided, so other threads can run. Python orders combining marks by insertion sort, which is
quadratic in the length of a run of marks; long runs are therefore sorted here before Python processes them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Literal

from recollect.common.regexes import regex
from recollect.text import _unicode14

UNICODE_VERSION = "14.0.0"
#: Number of characters that are processed at a time.
PIECE = 2**14
#: Runs of at least this many joining characters are sorted here. Python sorts shorter ones fast enough.
LONG_RUN = 14

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


def _ranges(table: str) -> Iterator[tuple[int, int]]:
    """Yield the first and last code point of each range of a table."""
    end = 0
    for pair in table.split():
        gap, length = pair.split(".")
        start = end + int(gap, 36)
        end = start + int(length, 36)
        yield start, end


def character_class(table: str) -> str:
    """Return a table as the content of a character class `[...]` of a regular expression."""
    return _class(_ranges(table))[1:-1]


#: A character beyond the Basic Multilingual Plane.
ASTRAL = regex("[\U00010000-\U0010ffff]")
#: Number of ranges beyond the Basic Multilingual Plane that one alternative of a pattern compares in turn.
_COMPARED = 20


def _class(ranges: Iterable[tuple[int, int]]) -> str:
    return "[" + "".join(f"\\U{start:08x}-\\U{end:08x}" for start, end in ranges) + "]"


def one_of(table: str, *, astral: bool = True, within: str = "", without: str = "") -> str:
    """Return a regular expression for one character of a table: equivalent to `[character_class(table)]`, but fast.

    `re` uses a bitmap for the Basic Multilingual Plane and compares a character with each range beyond it in turn, even
    if the character is in neither. With hundreds of ranges that takes a microsecond per character.

    Args:
        table: A table of `_unicode14`.
        astral: Whether the texts may contain characters beyond the Basic Multilingual Plane.
        within: Only those of the table that are in this character class, the content of `[...]`.
        without: Only those that are not in this one. Looking ahead for either would take as long as the table itself.
    """
    found = list(_ranges(table))
    if within:
        found = [common for span in _spans(within) for each in found if (common := _common(each, span))]
    for begin, end in _spans(without):
        apart = [((start, min(last, begin - 1)), (max(start, end + 1), last)) for start, last in found]
        found = [each for both in apart for each in both if each[0] <= each[1]]
    parts = [_class((start, min(end, 0xFFFF)) for start, end in found if start <= 0xFFFF)]
    high = [(max(start, 0x10000), end) for start, end in found if end > 0xFFFF] if astral else []
    for at in range(0, len(high), _COMPARED):
        some = high[at : at + _COMPARED]
        # The first class, one range that covers all of these, rejects most characters at once.
        parts.append(f"{_class([(some[0][0], some[-1][1])])}(?<={_class(some)})")
    return f"(?:{'|'.join(parts)})"


def _spans(content: str) -> list[tuple[int, int]]:
    """Return the first and the last character of each range of a character class that has no escapes."""
    return [(ord(found[1]), ord(found[2] or found[1])) for found in re.finditer(r"(.)(?:-(.))?", content)]


def _common(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int] | None:
    start, end = max(one[0], other[0]), min(one[1], other[1])
    return (start, end) if start <= end else None


@cache
def _pattern(table: str, count: str, astral: bool) -> re.Pattern[str]:
    return re.compile(one_of(table, astral=astral) + count)


def _pattern_for(text: str, table: str, count: str = "") -> re.Pattern[str]:
    """Return a pattern for characters of a table, in the form that is fastest for `text`."""
    return _pattern(table, count, ASTRAL.search(text) is not None)


def is_known(char: str) -> bool:
    """Return whether a character is assigned in Unicode 14."""
    return _pattern(_unicode14.UNKNOWN, "", True).match(char) is None


def words_in(text: str) -> set[str]:
    """Return the folded words of a text: its runs of letters, marks and digits."""
    out: set[str] = set()
    for part in in_parts(text, fold, _pattern(_unicode14.WORD, "*+", True)):
        out.update(_pattern_for(part, _unicode14.WORD, "++").findall(part))
    return out


def around_unknown(text: str, transform: Callable[[str], str]) -> str:
    """Apply `transform` to the stretches between code points that are unassigned in Unicode 14."""
    parts = _between(ASTRAL.search(text) is not None).split(text)
    if len(parts) == 1:
        return transform(text)
    # Transform each distinct stretch once: every other character of a text may be unassigned.
    become = {part: transform(part) for part in set(parts[::2])}
    parts[::2] = [become[part] for part in parts[::2]]
    return "".join(parts)


@cache
def _between(astral: bool) -> re.Pattern[str]:
    """Return a pattern that splits a text at runs of code points that are unassigned in Unicode 14."""
    return re.compile(f"({one_of(_unicode14.UNKNOWN, astral=astral)}++)")


def normalized(form: Form, text: str) -> str:
    """Return `unicodedata.normalize(form, text)` for a text without unassigned code points, fast for any run of marks.

    Cost:
        O(n log n) in the longest run of marks, O(n) otherwise.
    """
    if len(text) < LONG_RUN:
        return unicodedata.normalize(form, text)
    if text.isascii():
        return text
    many = _pattern_for(text, _unicode14.JOINING, f"{{{LONG_RUN},}}+")
    if len(text) <= PIECE and many.search(text) is None:
        return unicodedata.normalize(form, text)
    return "".join([unicodedata.normalize(form, piece) for piece in _pieces(form, text, many)])


def _pieces(form: Form, text: str, many: re.Pattern[str]) -> Iterator[str]:
    """Yield stretches of a text that can be normalised independently, long runs of marks already in canonical order."""
    start = 0
    for run in many.finditer(text):
        *before, last = divided(text[start : run.start()])
        yield from before
        # The character after the run does not join it.
        yield _in_order(form, last + run.group())
        start = run.end()
    yield from divided(text[start:])


def _in_order(form: Form, text: str) -> str:
    """Return a decomposed text with its marks in canonical order.

    Source:
        Unicode 14, section 3.11, D109.
    """
    decomposition: Form = "NFD" if form in ("NFC", "NFD") else "NFKD"
    text = text.translate({ord(char): unicodedata.normalize(decomposition, char) for char in set(text)})
    classes = {char: unicodedata.combining(char) for char in set(text)}
    starters = 0
    # Rank: the number of starters up to the character, then its combining class. Sorting is stable, as canonical
    # ordering requires.
    ranks = [(starters := starters + (classes[char] == 0)) << 8 | classes[char] for char in text]
    return "".join([text[at] for at in sorted(range(len(text)), key=ranks.__getitem__)])


def divided(text: str) -> list[str]:
    """Split a text into pieces of about `PIECE` characters that can be normalised and folded independently.

    There is at least one piece. A piece is longer only if no character in it is a boundary for normalisation.
    """
    out, start = [], 0
    while len(text) - start > PIECE:
        found = _beginning().search(text, start + PIECE)
        if found is None:
            break
        out.append(text[start : found.start()])
        start = found.start()
    out.append(text[start:])
    return out


@cache
def _beginning() -> re.Pattern[str]:
    """Return a pattern for a character that joins nothing before it."""
    return re.compile(f"(?!{one_of(_unicode14.JOINING)})[\\s\\S]")


def in_parts(text: str, transform: Callable[[str], str], inner: re.Pattern[str]) -> Iterator[str]:
    """Yield the transformed pieces of a text (`divided`), in parts that split no run.

    Args:
        text: The text to transform.
        transform: The function to apply to each piece.
        inner: Matches the longest run, possibly empty, from a position on. It is applied to reversed text, so it must
            match a run in either direction.
    """
    pending: list[str] = []
    rest = size = 0  # `rest`: characters of `pending` that were searched before; `size`: characters of `pending`
    pieces = divided(text)
    for number, piece in enumerate(pieces, 1):
        pending.append(transform(piece))
        size += len(pending[-1])
        if number == len(pieces):
            yield "".join(pending)
        elif size >= 2 * rest:  # search again only after doubling: a long run is not searched for each of its pieces
            read = "".join(pending)
            run = inner.match(read[::-1])
            rest = 0 if run is None else run.end()
            pending, size = [read[len(read) - rest :]], rest
            yield read[: len(read) - rest]


#: Maximum length in characters of a match of a pattern passed to `occurs`.
_LONGEST_MATCH = 64


def occurs(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a pattern matches anywhere in a text, searching one window at a time.

    Args:
        pattern: Matches at most `_LONGEST_MATCH` characters. It may look one character behind and ahead (`\\b`).
        text: The text to search.
    """
    for start in range(0, len(text), PIECE):
        end = start + PIECE + _LONGEST_MATCH + 1
        found = pattern.search(text, start, end)
        # A match that ends at the end of the window may be cut off; the next window contains it, too.
        if found is not None and (found.end() < end or end >= len(text)):
            return True
    return False


def nfc(text: str) -> str:
    """Return the canonical composition of a text, in which `e` and a combining acute are one letter.

    Used for ids and identity.

    Cost:
        O(n); see `normalized` for runs of marks.
    """
    if text.isascii():
        return text
    return around_unknown(text, lambda part: normalized("NFC", part))


def fold(text: str) -> str:
    """Return the form in which texts are compared without regard to case or compatibility variants.

    >>> fold("Straße ＡＢＣ")
    'strasse abc'

    Cost:
        O(n). The result may be up to eighteen times as long as the text (U+FDFA).
    """
    if text.isascii():
        return text.lower()
    return around_unknown(text, _fold)


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    once = normalized("NFKC", normalized("NFKC", text).casefold())
    # Folding can break the composed form, and composing can expose a capital letter. Applying both twice reaches a
    # fixed point (Unicode 14, section 3.13, D146).
    again = once.casefold()
    return once if again == once else normalized("NFKC", again)


def has_surrogate(text: str) -> bool:
    """Return whether the text contains a lone surrogate, which UTF-8 cannot encode."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
