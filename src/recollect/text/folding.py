"""Folding: the form of a text in which its words are compared.

Two levels: `same_letters` makes one of what are the same letters (case, compatibility variants, points and forms that
are left out at will, digits of any script), and `folded` also leaves out Latin, Greek and Cyrillic accents. Words are
searched by the second; where names or whole texts are compared, it is the first: "résumé" is not "resume".
"""

from __future__ import annotations

from recollect.common.regexes import regex
from recollect.text.unicode import around_unknown, fold, normalized

#: Typographic characters and their ASCII equivalents. Often they are the only non-ASCII characters of a text.
_PLAIN = str.maketrans("\u2018\u2019\u02bc\u201c\u201d\u2013\u2014\u2026\u00a0\u2022", "'''\"\"--. *")
_MARKS = regex("[\u0300-\u036f]")
#: Default-ignorable code points, which are no part of a word: the soft hyphen, joiners, marks of direction, fillers and
#: selectors of variants; skin tones, which vary an emoji, and marks that enclose a character. A zero-width space is not
#: among them: it separates words.
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\u20dd-\u20e0"
    "\u20e2-\u20e4\u3164\ufe00-\ufe0f\ufeff\uffa0\U0001f3fb-\U0001f3ff\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef"
)
_IGNORED = regex(f"[{IGNORABLE}]+")
#: Points of Arabic with tatweel, and of Hebrew, which writers leave out.
POINTS = "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed"
POINTS += "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
#: The zeros of the decimal digits of Unicode 14 beside the ASCII ones; the other digits follow them.
_ZEROS = (
    "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0de6\u0e50\u0ed0\u0f20\u1040\u1090\u17e0\u1810"
    "\u1946\u19d0\u1a80\u1a90\u1b50\u1bb0\u1c40\u1c50\ua620\ua8d0\ua900\ua9d0\ua9f0\uaa50\uabf0\uff10\U000104a0\U00010d30"
    "\U00011066\U000110f0\U00011136\U000111d0\U000112f0\U00011450\U000114d0\U00011650\U000116c0\U00011730\U000118e0"
    "\U00011950\U00011c50\U00011d50\U00011da0\U00016a60\U00016ac0\U00016b50\U0001d7ce\U0001d7d8\U0001d7e2\U0001d7ec\U0001d7f6"
    "\U0001e140\U0001e2f0\U0001e950\U0001fbf0"
)
#: Forms of alef, yeh and kaf; the Devanagari sign of a nasal vowel; digits.
_FORMS = {
    **dict.fromkeys(map(ord, "\u0622\u0623\u0625\u0671\u0672\u0673"), "\u0627"),
    **dict.fromkeys(map(ord, "\u0649\u06cc\u06d2\u0626"), "\u064a"),
    ord("\u06a9"): "\u0643",
    ord("\u0901"): "\u0902",
    **{ord(zero) + digit: str(digit) for zero in _ZEROS for digit in range(10)},
}
#: Katakana as hiragana: for words, and not for names, which are found within others then.
_HIRAGANA = {point: chr(point - 0x60) for point in range(0x30A1, 0x30F7)}
_KATAKANA = regex("[\u30a1-\u30f6]")
_POINT = regex(f"[{POINTS}]+")
#: Characters of scripts that have such points and forms, and digits that are not ASCII.
_OF_SCRIPTS = regex(r"[\u0590-\u06ff\u0900-\u097f]|(?![0-9])\d")
#: A nasal consonant with virama before a consonant of its place is written as anusvara, too.
_NASAL = regex(
    "\u0919\u094d(?=[\u0915-\u0918])|\u091e\u094d(?=[\u091a-\u091d])|\u0923\u094d(?=[\u091f-\u0922])"
    "|\u0928\u094d(?=[\u0924-\u0927])|\u092e\u094d(?=[\u092a-\u092d])"
)
_MARKED = regex("[\u00c0-\u052f\u1e00-\u1fff\u0300-\u036f]")


def folded(text: str) -> str:
    """Return `text` folded, with plain apostrophes, without Latin, Greek and Cyrillic accents and ignorable characters.

    This is the form in which words are compared.

    >>> folded("Fahr\\u00adrad \\u26f5\\ufe0f") == "fahrrad \\u26f5"
    True
    >>> folded("Résumé ١٢"), folded("ネコ") == folded("ねこ"), folded("हिन्दी") == folded("हिंदी")
    ('resume 12', True, True)
    """
    return without_accents(same_letters(text))


def same_letters(text: str) -> str:
    """Return `text` with one form of what are the same letters, digits and signs. Accents stay.

    >>> same_letters("Résumé"), same_letters("İstanbul")
    ('résumé', 'istanbul')

    Cost:
        Linear in the text.
    """
    if not text.isascii():
        text = text.translate(_PLAIN)
    if text.isascii():
        return text.lower()
    text = fold(_IGNORED.sub("", text)).replace("i\u0307", "i")
    return text if _OF_SCRIPTS.search(text) is None else around_unknown(text, _of_scripts)


def _of_scripts(text: str) -> str:
    return _NASAL.sub("\u0902", _POINT.sub("", text.translate(_FORMS)))


def without_accents(text: str) -> str:
    """Return a text that has one form of each letter without Latin, Greek and Cyrillic accents, and in one kana."""
    if text.isascii():
        return text
    if _KATAKANA.search(text) is not None:
        text = text.translate(_HIRAGANA)
    if _MARKED.search(text) is None:
        return text
    return around_unknown(text, lambda part: normalized("NFC", _MARKS.sub("", normalized("NFD", part))))
