"""Tokens whose signs matter: C++ and C, O+ and O-, .NET, -5, --no-cache, @ana, #42, a->b, 1.2.3, paths, and numbers.

A word is a run of letters and digits, so "C++" and "C" are the same word. Beside its words, a text therefore has a term
for such a token as a whole, which counts neither in its length nor in positions: a question with the sign finds the
text with the sign first. So has a number that is written in groups, without what is between them ("+49 30 1234567",
"1,240", "B-AB 1234"), and so have the beginnings of a hash, as people quote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from recollect.common.regexes import regex
from recollect.text.folding import folded

#: What terms of tokens with signs begin with; no word does.
SIGN = "~"
#: What terms of numbers begin with.
NUMBER = f"{SIGN}#"
#: Longer tokens are no names, but data.
_LONGEST = 64
#: Characters around a token that are no part of it.
_BEFORE, _AFTER = "([{<\"'`“”„«»‘’¿¡*_|…", ")]}>\"'`“”«»‘’*_|….,;:!?"
_TOKEN = regex(r"[^\s\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef]+")
#: Other minus signs and dashes, which are written for "-".
_MINUS = str.maketrans("\u2212\u2013\u2010\u2011", "----")
#: Signs that every token with a meaning of its own has, and what a token with nothing but hyphens or full stops has.
_SIGN = regex(r"[+#@$€£¥%&/\\=<>~^|:]|^[.-]|^[^\W_]{1,2}-$|\d[.-]|[.-]\d|[.]\w")
_LETTERS = regex(r"[^\W_]")
#: The name of a language or a mark: letters with pluses or a sharp, whatever follows.
_NAMED = regex(r"[^\W_]{1,12}(?:(?:\+\+|#)(?![^\W\d]|[+#])|\+(?![\w+#]))")
#: A number in groups of three digits, and its fraction.
_AMOUNT = regex(r"(?<![\w.,])\d{1,3}(?:([ ,.'’\u00a0\u202f])\d{3})(?:\1\d{3})*(?![\d])")
#: Digits in groups: telephone numbers, ISBNs, cards.
_GROUPS = regex(r"(?<![\w.,])\+?\(?\d{1,6}\)?(?:[ ./()\u00a0\u202f-]{1,2}\d{1,7}\b){1,8}(?:-?X\b)?")
#: A telephone number with the digits for abroad.
_ABROAD = regex(r"(?<!\w)00(\d{7,18})(?!\w)")
#: Capital letters and digits in groups: plates, IBANs, keys.
_CODE = regex(r"(?<![\w-])(?:[A-Z]{1,3}\d{0,4}|\d{1,4}[A-Z]{0,3})(?:[ -][A-Z\d]{1,4}\b){1,9}")
_FEWEST_DIGITS, _MOST_DIGITS = 7, 30
_HEX = regex(r"(?<![0-9a-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,64}(?![0-9a-z])", re.IGNORECASE)
#: A prefix of a hash has at least and at most this many digits in a term.
SHORTEST, LONGEST = 7, 16
#: Texts with none of these have no token with signs, no number in groups, and no hash.
#: (The first looks for the sign and then around it: an expression that begins with a sign takes a tenth of the time of
#: one that begins with what is before it.)
_ANY_SIGN = regex(
    r"[+#@$€£¥%&/\\=<>~^|.:-]"
    r"(?:(?<=[+#@$€£¥%&/\\=<>~^|])|(?<!\w[.-])(?<!:)(?=\w)|(?<=\w[.:])(?=\w)|(?<=\d-)|(?<=-)(?=\d)|(?<=\w-)(?!\w))"
)
_ANY_GROUPS = regex(r"(?<!\w)00\d{7}|[A-Z\d]\)?[ ,.'’/(\u00a0\u202f-]{1,2}[A-Z\d]")
_DIGIT = regex(r"\d")
_ANY_HEX = regex(r"[0-9a-fA-F]{8}")


def sign_terms(text: str) -> tuple[str, ...]:
    """Return the terms of the tokens of a text whose signs matter, and of its numbers, each once.

    >>> sign_terms("We moved from C to C++."), sign_terms("Take O-, not O+: it is -5 outside")
    (('~c++',), ('~o-', '~o+', '~-5'))
    >>> sign_terms("call +49 30 1234567"), sign_terms("it costs 1.240,00"), sign_terms("at 3f2a9c1d7")
    (('~+49', '~#49301234567'), ('~1.240,00', '~#1240'), ('~#3f2a9c1', '~#3f2a9c1d'))

    Cost:
        Linear in the text.
    """
    found, joined = signs(text), _joined(text)
    if not found and not joined:
        return ()
    return tuple(dict.fromkeys([*map(SIGN.__add__, found), *map(NUMBER.__add__, joined)]))


def asked_terms(question: str, words: Iterable[str]) -> list[tuple[str, str]]:
    """Return the terms that a question asks for beside its words, with what they are terms of.

    A number is found however it is written, and a hash by its beginning.

    Args:
        question: The text, as it was written.
        words: Its words, folded; those with digits are looked for as grouped numbers, too.
    """
    out = [(SIGN + token, token) for token in signs(question)]
    if _DIGIT.search(question) is None:
        return out
    joined = _joined(question)
    out += [(number, number) for number in joined]
    for number in [*joined, *(word for word in words if word.isalnum() and not word.isalpha())]:
        out.append((NUMBER + number, number))
        if len(number) > LONGEST:
            out.append((NUMBER + number[:LONGEST], number))
    return list(dict.fromkeys(out))


def _joined(text: str) -> list[str]:
    """Return the numbers of a text without what is between their groups, and the beginnings of its hashes."""
    out: list[str] = []
    if _DIGIT.search(text) is None:  # most texts stop here
        return out
    if _ANY_GROUPS.search(text) is not None:
        out += _numbers(text)
    if _ANY_HEX.search(text) is not None:
        out += _prefixes(text)
    return out


def signs(text: str) -> list[str]:
    """Return the tokens of a text whose signs matter, folded.

    >>> signs("Use `--no-cache` or a->b in ./src/main.c, and F#/.NET")
    ['--no-cache', 'a->b', './src/main.c', 'f#/.net', 'f#', '.net']
    """
    out: list[str] = []
    if not text.isascii():
        text = text.translate(_MINUS)
    if _ANY_SIGN.search(text) is None:
        return out
    for chunk in text.split() if text.isascii() else _TOKEN.findall(text):
        if chunk.isalnum():
            continue
        token = chunk.lstrip(_BEFORE).rstrip(_AFTER)
        if len(token) > _LONGEST or token.isalnum() or not _LETTERS.search(token) or not _SIGN.search(token):
            continue
        out.append(folded(token))
        if "/" in token or "," in token:
            parts = re.split(r"[/,;|]", token)
            out += [folded(part) for part in parts if _NAMED.fullmatch(part) or re.fullmatch(r"\.\w+", part)]
        elif (named := _NAMED.match(token)) is not None and named.end() < len(token):
            out.append(folded(named[0]))
    return out


#: Tokens with these say something else than their letters, however they are written otherwise.
_DISTINCT = regex(r"[+#@$€£¥<>=~^&|]|^-+\w|^\.\w|^[^\W_]{1,2}-$")


def distinct_signs(text: str) -> tuple[str, ...]:
    """Return the tokens of a text without whose signs it says something else, folded, in order: C++, O-, -5, .NET.

    >>> distinct_signs("C++ and/or C, from 10:30 on"), distinct_signs("C and/or C, from 10:30 on")
    (('c++',), ())
    """
    return tuple(token for token in signs(text) if _DISTINCT.search(token))


def _numbers(text: str) -> Iterator[str]:
    for found in _AMOUNT.finditer(text):
        yield re.sub(r"\D", "", found[0])
    for found in _GROUPS.finditer(text):
        digits = re.sub(r"\D", "", found[0]) + ("x" if found[0].endswith("X") else "")
        digits = digits.removeprefix("00") if found[0].startswith("00") else digits
        if _FEWEST_DIGITS <= len(digits) <= _MOST_DIGITS:
            yield digits
    for found in _ABROAD.finditer(text):
        yield found[1]
    for found in _CODE.finditer(text):
        code = re.sub(r"[^A-Z\d]", "", found[0])
        if any(map(str.isdigit, code)) and any(map(str.isalpha, code)) and len(code) >= _FEWEST_DIGITS - 2:
            yield code.lower()


def _prefixes(text: str) -> Iterator[str]:
    for found in _HEX.finditer(text):
        digits = found[0].lower()
        yield from (digits[:length] for length in range(SHORTEST, min(LONGEST, len(digits) - 1) + 1))
