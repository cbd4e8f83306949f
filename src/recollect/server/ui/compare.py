"""Texts for the eyes: what of a text is not visible, and how two texts differ, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

#: Characters that are not visible, or change how others are shown: controls, marks of direction, joiners, selectors.
_UNSEEN = re.compile(
    "([\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f])"
)
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
#: Maximum number of words, blanks and signs of each text that are compared. Longer texts differ as wholes.
_MOST = 2000


def is_plain(text: str) -> bool:
    """Return whether all of a text is visible."""
    return _UNSEEN.search(text) is None


class Sign(NamedTuple):
    """A part of a text.

    Attributes:
        text: The part.
        name: What is shown beside it, if it is a character that is not visible, such as "U+202E"; else "".
    """

    text: str
    name: str


def signs(text: str) -> Iterator[Sign]:
    """Yield the parts of a text: what is visible, and each character that is not.

    >>> [sign.name for sign in signs("a\\u202eb")]
    ['', 'U+202E', '']
    """
    for number, part in enumerate(_UNSEEN.split(text)):
        if number % 2:
            yield Sign(part, f"U+{ord(part):04X}")
        elif part:
            yield Sign(part, "")


class WordChange(NamedTuple):
    """A part of two texts: "same" in both, "gone" from the first, or "new" in the second."""

    kind: str
    text: str


def changes(old: str, new: str) -> list[WordChange]:
    """Return how one text becomes another one, word by word.

    >>> [(change.kind, change.text) for change in changes("I live in Rome", "I live in Oslo")]
    [('same', 'I live in '), ('gone', 'Rome'), ('new', 'Oslo')]
    """
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if len(before) > _MOST or len(after) > _MOST:
        whole = [WordChange("gone", old), WordChange("new", new)] if old != new else [WordChange("same", old)]
        return [each for each in whole if each.text]
    out = []
    for kind, begin, end, new_begin, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            out.append(WordChange("same", "".join(before[begin:end])))
            continue
        if end > begin:
            out.append(WordChange("gone", "".join(before[begin:end])))
        if new_end > new_begin:
            out.append(WordChange("new", "".join(after[new_begin:new_end])))
    return out
