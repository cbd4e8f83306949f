"""Text normalisation that is the same on every Python, now and later.

Python's own tables move with every release (3.11 has Unicode 14, 3.13 has 15.1), and ids and scores must not move
with them. Code points that Unicode 14 does not know are therefore opaque here: they are never composed, folded or
joined to a word. For those it knows, Unicode's stability policy keeps normalisation and case folding fixed, and the
table of word characters is our own (`_unicode14`).

Nothing here is applied to what is stored: text is kept and hashed exactly as given. These forms serve ids, filters
and indexes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache

from recollect import _unicode14

UNICODE_VERSION = "14.0.0"


def character_class(table: str) -> str:
    """The table as the inside of a regular expression's `[...]`."""
    out, end = [], 0
    for pair in table.split():
        gap, length = pair.split(".")
        start = end + int(gap, 36)
        end = start + int(length, 36)
        out.append(f"\\U{start:08x}-\\U{end:08x}")
    return "".join(out)


@cache
def _unknown() -> re.Pattern[str]:
    return re.compile(f"[{character_class(_unicode14.UNKNOWN)}]")


@cache
def word_class() -> str:
    """Letters, marks and digits of Unicode 14, for use inside `[...]`."""
    return character_class(_unicode14.WORD)


def around_unknown(text: str, transform: Callable[[str], str]) -> str:
    """Apply `transform` to the stretches between code points that Unicode 14 does not know."""
    out, start = [], 0
    for unknown in _unknown().finditer(text):
        out.append(transform(text[start : unknown.start()]))
        out.append(unknown.group())
        start = unknown.end()
    out.append(transform(text[start:]))
    return "".join(out)


def nfc(text: str) -> str:
    """Canonical composition: `e` and a combining acute become one letter. Used for ids and identity."""
    if text.isascii():
        return text
    return around_unknown(text, lambda part: unicodedata.normalize("NFC", part))


def fold(text: str) -> str:
    """The form in which two texts are compared without regard to case or compatibility variants.

    >>> fold("Straße ＡＢＣ")
    'strasse abc'
    """
    if text.isascii():
        return text.lower()
    # Folding can break the composed form and composing can expose a capital, so the pair is done twice: that is a
    # fixed point (Unicode 14, section 3.13, D146).
    return around_unknown(text, lambda part: _fold_once(_fold_once(part)))


def _fold_once(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def has_surrogate(text: str) -> bool:
    """Whether the text holds a lone surrogate, which no UTF-8 can carry."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
