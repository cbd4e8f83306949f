"""Text normalisation that is the same on every Python, now and later.

Python's own tables move with every release (3.11 has Unicode 14, 3.13 has 15.1), and ids and scores must not move
with them. Code points that Unicode 14 does not know are therefore opaque here: they are never composed, folded or
joined to a word. For those it knows, Unicode's stability policy keeps normalisation and case folding fixed, and the
table of word characters is our own (`_unicode14`).

Nothing here is applied to what is stored: text is kept and hashed exactly as given. These forms serve ids, filters
and indexes.

Cost is linear in the text, whatever is in it, and no single call into Python's C code works on more than `PIECE`
characters where the text can be divided, so that other threads run. Canonical ordering in Python is an insertion sort,
quadratic in a run of combining marks, so long runs are put in their order before Python sees them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Literal

from recollect.text import _unicode14

UNICODE_VERSION = "14.0.0"
#: Characters that are worked on at once.
PIECE = 2**14
#: A run of this many characters that join the one before is sorted here. Shorter ones Python sorts fast enough.
LONG_RUN = 14

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


def _ranges(table: str) -> Iterator[tuple[int, int]]:
    """The first and last code point of each range of a table."""
    end = 0
    for pair in table.split():
        gap, length = pair.split(".")
        start = end + int(gap, 36)
        end = start + int(length, 36)
        yield start, end


def character_class(table: str) -> str:
    """The table as the inside of a regular expression's `[...]`."""
    return _class(_ranges(table))[1:-1]


#: A character beyond the Basic Multilingual Plane.
ASTRAL = re.compile("[\U00010000-\U0010ffff]")
#: Ranges beyond the Basic Multilingual Plane that are compared with one after the other.
_COMPARED = 20


def _class(ranges: Iterable[tuple[int, int]]) -> str:
    return "[" + "".join(f"\\U{start:08x}-\\U{end:08x}" for start, end in ranges) + "]"


def one_of(table: str, *, astral: bool = True) -> str:
    """A regular expression for one character of a table: what `[character_class(table)]` is, but fast.

    `re` has a bitmap for the Basic Multilingual Plane and compares with each range beyond it in turn, also where the
    character is in neither: with hundreds of ranges that is a microsecond for each character.

    astral  whether the texts that it is for may have characters beyond the Basic Multilingual Plane
    """
    found = list(_ranges(table))
    parts = [_class((start, min(end, 0xFFFF)) for start, end in found if start <= 0xFFFF)]
    high = [(max(start, 0x10000), end) for start, end in found if end > 0xFFFF] if astral else []
    for at in range(0, len(high), _COMPARED):
        some = high[at : at + _COMPARED]
        # Where no more than the first class is compared, most parts are passed over.
        parts.append(f"{_class([(some[0][0], some[-1][1])])}(?<={_class(some)})")
    return f"(?:{'|'.join(parts)})"


@cache
def _pattern(table: str, count: str, astral: bool) -> re.Pattern[str]:
    return re.compile(one_of(table, astral=astral) + count)


def _pattern_for(text: str, table: str, count: str = "") -> re.Pattern[str]:
    """The characters of a table, in the form that is fast for a text."""
    return _pattern(table, count, ASTRAL.search(text) is not None)


@cache
def word_class() -> str:
    """Letters, marks and digits of Unicode 14, for use inside `[...]`."""
    return character_class(_unicode14.WORD)


def is_known(char: str) -> bool:
    """Whether Unicode 14 knows a character."""
    return _pattern(_unicode14.UNKNOWN, "", True).match(char) is None


def words_in(text: str) -> set[str]:
    """The folded words of a text: its runs of letters, marks and digits."""
    out: set[str] = set()
    for part in in_parts(text, fold, _pattern(_unicode14.WORD, "*+", True)):
        out.update(_pattern_for(part, _unicode14.WORD, "++").findall(part))
    return out


def around_unknown(text: str, transform: Callable[[str], str]) -> str:
    """Apply `transform` to the stretches between code points that Unicode 14 does not know."""
    parts = _between(ASTRAL.search(text) is not None).split(text)
    if len(parts) == 1:
        return transform(text)
    # Each stretch once: a text may have an unknown character after every other.
    become = {part: transform(part) for part in set(parts[::2])}
    parts[::2] = [become[part] for part in parts[::2]]
    return "".join(parts)


@cache
def _between(astral: bool) -> re.Pattern[str]:
    """What Unicode 14 does not know, to divide a text by: stretches of either kind in turn."""
    return re.compile(f"({one_of(_unicode14.UNKNOWN, astral=astral)}++)")


def normalized(form: Form, text: str) -> str:
    """What `unicodedata.normalize` gives for a text that Unicode 14 knows, whatever runs of marks are in it.

    Cost: O(n log n) in the longest run of marks, O(n) in all else.
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
    """The stretches of a text that can be normalised by themselves; those with a long run are in order already."""
    start = 0
    for run in many.finditer(text):
        *before, last = divided(text[start : run.start()])
        yield from before
        # What follows the run does not join it.
        yield _in_order(form, last + run.group())
        start = run.end()
    yield from divided(text[start:])


def _in_order(form: Form, text: str) -> str:
    """A text decomposed, its marks in canonical order (Unicode 14, section 3.11, D109)."""
    decomposition: Form = "NFD" if form in ("NFC", "NFD") else "NFKD"
    text = text.translate({ord(char): unicodedata.normalize(decomposition, char) for char in set(text)})
    classes = {char: unicodedata.combining(char) for char in set(text)}
    starters = 0
    # By the starters before it, then by its class. Sorting is stable, as canonical ordering is.
    ranks = [(starters := starters + (classes[char] == 0)) << 8 | classes[char] for char in text]
    return "".join([text[at] for at in sorted(range(len(text)), key=ranks.__getitem__)])


def divided(text: str) -> list[str]:
    """A text in pieces of about `PIECE` characters, at least one, which can be normalised and folded by themselves.

    A piece is longer only where no character in it begins a stretch of its own.
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
    """A character that joins nothing before it."""
    return re.compile(f"(?!{one_of(_unicode14.JOINING)})[\\s\\S]")


def in_parts(text: str, transform: Callable[[str], str], inner: re.Pattern[str]) -> Iterator[str]:
    """What `transform` makes of the pieces of a text (`divided`), in parts that divide no run.

    inner  matches the longest run, be it empty, from where it is asked; runs have no direction
    """
    unread: list[str] = []
    rest = size = 0  # how many characters of what is unread were read before, and how many it has
    pieces = divided(text)
    for number, piece in enumerate(pieces, 1):
        unread.append(transform(piece))
        size += len(unread[-1])
        if number == len(pieces):
            yield "".join(unread)
        elif size >= 2 * rest:  # a long run is not read again for each of its pieces
            read = "".join(unread)
            run = inner.match(read[::-1])
            rest = 0 if run is None else run.end()
            unread, size = [read[len(read) - rest :]], rest
            yield read[: len(read) - rest]


#: No match of a pattern that `occurs` is asked for is longer, in characters.
_LONGEST_MATCH = 64


def occurs(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a pattern of at most `_LONGEST_MATCH` characters is found in a text, which is read by windows.

    It may look one character behind and ahead (`\\b`).
    """
    for start in range(0, len(text), PIECE):
        end = start + PIECE + _LONGEST_MATCH + 1
        found = pattern.search(text, start, end)
        # What ends where the window does may go on in the text; then it begins in the next window, too.
        if found is not None and (found.end() < end or end >= len(text)):
            return True
    return False


def nfc(text: str) -> str:
    """Canonical composition: `e` and a combining acute become one letter. Used for ids and identity.

    Cost: O(text), and as `normalized` for runs of marks.
    """
    if text.isascii():
        return text
    return around_unknown(text, lambda part: normalized("NFC", part))


def fold(text: str) -> str:
    """The form in which two texts are compared without regard to case or compatibility variants.

    Cost: O(text); it may be up to eighteen times as long (U+FDFA).

    >>> fold("Straße ＡＢＣ")
    'strasse abc'
    """
    if text.isascii():
        return text.lower()
    return around_unknown(text, _fold)


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    once = normalized("NFKC", normalized("NFKC", text).casefold())
    # Folding can break the composed form and composing can expose a capital, so the pair is done twice: that is a
    # fixed point (Unicode 14, section 3.13, D146).
    again = once.casefold()
    return once if again == once else normalized("NFKC", again)


def has_surrogate(text: str) -> bool:
    """Whether the text holds a lone surrogate, which no UTF-8 can carry."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
