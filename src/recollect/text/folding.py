"""Folding: the form of a text in which its words are compared."""

from __future__ import annotations

import re

from recollect.text.unicode import around_unknown, fold, normalized

#: Typographic characters and their ASCII equivalents. Often they are the only non-ASCII characters of a text.
_PLAIN = str.maketrans("\u2018\u2019\u02bc\u201c\u201d\u2013\u2014\u2026\u00a0\u2022", "'''\"\"--. *")
_MARKS = re.compile("[\u0300-\u036f]")
#: Default-ignorable code points, which are no part of a word: the soft hyphen, joiners, marks of direction, fillers and
#: selectors of variants; skin tones, which vary an emoji, and marks that enclose a character. A zero-width space is not
#: among them: it separates words.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\u20dd-\u20e0"
    "\u20e2-\u20e4\u3164\ufe00-\ufe0f\ufeff\uffa0\U0001f3fb-\U0001f3ff\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef]+"
)


def folded(text: str) -> str:
    """Return `text` folded, with plain apostrophes, without Latin, Greek and Cyrillic accents and ignorable characters.

    This is the form in which words are compared.

    >>> folded("Fahr\\u00adrad \\u26f5\\ufe0f") == "fahrrad \\u26f5"
    True
    """
    if not text.isascii():
        text = text.translate(_PLAIN)
    if text.isascii():
        return text.lower()
    text = fold(_IGNORABLE.sub("", text))
    if not _needs_unmarking(text):
        return text
    return around_unknown(text, lambda part: normalized("NFC", _MARKS.sub("", normalized("NFD", part))))


_MARKED = re.compile("[\u00c0-\u052f\u1e00-\u1fff\u0300-\u036f]")


def _needs_unmarking(text: str) -> bool:
    return _MARKED.search(text) is not None
