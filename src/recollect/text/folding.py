"""Folding: the form of a text in which its words are compared."""

from __future__ import annotations

import re

from recollect.text.unicode import around_unknown, fold, normalized

#: Typographic characters and their ASCII equivalents. Often they are the only non-ASCII characters of a text.
_PLAIN = str.maketrans("\u2018\u2019\u02bc\u201c\u201d\u2013\u2014\u2026\u00a0\u2022", "'''\"\"--. *")
_MARKS = re.compile("[\u0300-\u036f]")


def folded(text: str) -> str:
    """Return `text` folded, with plain apostrophes and without Latin, Greek and Cyrillic accents.

    This is the form in which words are compared.
    """
    if not text.isascii():
        text = text.translate(_PLAIN)
    if text.isascii():
        return text.lower()
    text = fold(text)
    if not _needs_unmarking(text):
        return text
    return around_unknown(text, lambda part: normalized("NFC", _MARKS.sub("", normalized("NFD", part))))


_MARKED = re.compile("[\u00c0-\u052f\u1e00-\u1fff\u0300-\u036f]")


def _needs_unmarking(text: str) -> bool:
    return _MARKED.search(text) is not None
