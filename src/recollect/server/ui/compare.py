"""Texts for the eyes: what of a text is not visible, and how two texts differ, word by word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from recollect.common.regexes import regex

#: Characters that are not visible, or change how others are shown: controls, marks of direction, joiners, selectors.
_UNSEEN = regex(
    "([\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f])"
)
#: A word or a sign, with the blanks after it.
_WORDS = regex(r"\w+\s*|[^\w\s]\s*|\s+")
#: Maximum number of words of each text that are compared, and of pairs of equal ones: the comparison may take that much
#: time several times over. Texts that have more differ as wholes.
_MOST, _MOST_PAIRS = 3000, 20_000
#: How much of what is the same is shown before and after a change, in characters.
_AROUND = 90


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


def changes(old: str, new: str, *, whole: bool = True) -> list[WordChange]:
    """Return how one text becomes another one, word by word.

    Args:
        whole: Whether all is returned that is the same; otherwise what is near a change, with "…" for the rest.

    >>> [(change.kind, change.text) for change in changes("I live in Rome.", "I live in Oslo.")]
    [('same', 'I live in '), ('gone', 'Rome'), ('new', 'Oslo'), ('same', '.')]
    """
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    ended = "".join(before[len(before) - end :])
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    out = [WordChange("same", old[: len(old) - len(ended) - sum(map(len, before))])]
    if max(len(before), len(after)) > _MOST or _pairs(before, after) > _MOST_PAIRS:
        out += [WordChange("gone", "".join(before)), WordChange("new", "".join(after))]
    else:
        for kind, begin, stop, new_begin, new_stop in SequenceMatcher(None, before, after, False).get_opcodes():
            if kind == "equal":
                out.append(WordChange("same", "".join(before[begin:stop])))
            else:
                out.append(WordChange("gone", "".join(before[begin:stop])))
                out.append(WordChange("new", "".join(after[new_begin:new_stop])))
    out.append(WordChange("same", ended))
    found = [each for each in out if each.text]
    return found if whole else [_shortened(each, at, len(found)) for at, each in enumerate(found)]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many items two sequences have in common at their beginning."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _pairs(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many pairs of equal items two sequences have."""
    counts = Counter(other)
    return sum(counts[each] for each in one)


def _shortened(change: WordChange, at: int, count: int) -> WordChange:
    """Return a change without most of a long text that is the same."""
    text = change.text
    if change.kind != "same" or len(text) <= 2 * _AROUND:
        return change
    begin = text[:_AROUND] if at > 0 else ""
    end = text[-_AROUND:] if at < count - 1 else ""
    return change._replace(text=f"{begin}…{end}")
