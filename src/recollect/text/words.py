"""From text to terms: the words that an index counts.

A run of letters, marks and digits is a word; apostrophes inside it are kept until it is clear whether it is a
stop-word ("don't"), then the word ends at the first one ("Caroline's"), or begins there ("l'été"). Words are folded
(case, compatibility variants, Latin accents), stop-words dropped, the rest stemmed. Scripts written without spaces
have no such words: their runs give character n-grams instead, so that any part of a sentence can be found, and a text
may mix all of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import TypeAlias

from recollect.text import _unicode14
from recollect.text.english import IRREGULAR
from recollect.text.folding import folded
from recollect.text.languages import ENGLISH, detected, known, stemmer, stop_words
from recollect.text.unicode import ASTRAL, PIECE, in_parts, one_of

#: Blocks whose words are not separated by spaces, and the sizes of the n-grams that stand for words there. A Chinese
#: character is nearly a word, so single ones count too; a Thai letter says as little as a Latin one.
_IDEOGRAPHS = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_KANA = "\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = "\uac00-\ud7a3"
_SOUTH_EAST = "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
_GRAM_SIZES = ((re.compile(f"[{_IDEOGRAPHS}{_KANA}]"), (1, 2)), (re.compile(f"[{_HANGUL}]"), (2,)))
_SOUTH_EAST_SIZES = (3,)
_UNSPACED = re.compile(f"[{_IDEOGRAPHS}{_KANA}{_HANGUL}{_SOUTH_EAST}]")
_ASCII_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
#: A longer run is no word of any language (a hash, a key, base64): it counts by its beginning.
MAX_WORD = 64


#: So many different words stay at hand, of each language.
_MOST_KEPT = 100_000


#: One counted word: the index term, and the folded word that it came from ("" for an n-gram). Nothing but a tuple, as
#: many stay at hand: those of a class of their own the collector would look at, each time that it looks at all objects.
Term: TypeAlias = tuple[str, str]

_NO_TERM: Term = ("", "")


#: What any text may have beside what is in proportion to its length: folded characters that are read, terms.
_SPARE = 1024


@cache
def _pattern(astral: bool) -> re.Pattern[str]:
    """A run of a script without spaces, or else a word with at most one inner apostrophe.

    astral  whether the texts may have characters beyond the Basic Multilingual Plane
    """
    letters = one_of(_unicode14.WORD, astral=astral)
    # The blocks have punctuation too (the middle dot of names in kana), and room that later Unicodes fill.
    unspaced = "|".join(f"(?:(?={letters})[{block}])+" for block in (_IDEOGRAPHS + _KANA, _HANGUL, _SOUTH_EAST))
    spaced = f"(?![{_IDEOGRAPHS}{_KANA}{_HANGUL}{_SOUTH_EAST}]){letters}"
    # No ASCII digit after the apostrophe, as in _ASCII_WORD: an emoji elsewhere must not change what "5'10" gives.
    return re.compile(f"({unspaced})|((?:{spaced})+(?:'(?:(?![0-9]){spaced})+)?)")


@lru_cache(maxsize=100_000)
def stem(word: str, language: str = ENGLISH) -> str:
    """The stem of a folded word: Snowball's; English (Porter2) irregular forms are first led to their base.

    >>> stem("running"), stem("went"), stem("go"), stem("hauser", "de")
    ('run', 'go', 'go', 'haus')
    """
    base = IRREGULAR.get(word, word) if language == ENGLISH else word
    return str(stemmer(language).stemWord(base))


#: A folded run of what words are made of, and whether it is of a script without spaces.
Run = tuple[str, bool]


def runs(text: str) -> list[Run]:
    """The runs of a text that words are made of."""
    return [(run, _is_unspaced(run)) for run in _runs(text)]


def _runs(text: str) -> Sequence[str]:
    """The same without their kinds, which most who ask do not need."""
    if len(text) > PIECE and not text.isascii():
        return _runs_by_parts(text)
    read = folded(text)
    if read.isascii() and len(read) <= len(text):
        return _ascii_runs(read)
    return _found(read[: _most_characters(text)] if len(read) > len(text) else read)


def _most_characters(text: str) -> int:
    """How many characters of a folded text are read: three for two bytes of its UTF-8, and `_SPARE`.

    No text that means something has more: those that become longer (U+FDFA, one sign for four words; U+3316,
    "kilometre" in kana) stand among others.
    """
    return 3 * len(text.encode("utf-8", "surrogatepass")) // 2 + _SPARE


def _found(text: str) -> list[str]:
    """The runs of a folded text."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return [unspaced or word for unspaced, word in _pattern(ASTRAL.search(text) is not None).findall(text)]


@cache
def _of_runs() -> re.Pattern[str]:
    """What runs consist of."""
    return re.compile(f"(?:{one_of(_unicode14.WORD)}|')*+")


def _runs_by_parts(text: str) -> list[str]:
    """The runs of a long text, folded piece by piece: folded, it may be many times as long, and words come again."""
    out: list[str] = []
    known: dict[str, str] = {}
    left = _most_characters(text)
    for part in in_parts(text, folded, _of_runs()):
        out += [known.setdefault(run, run) for run in _found(part[:left])]
        left -= len(part)
        if left <= 0:
            break
    return out


def _ascii_runs(text: str) -> Sequence[str]:
    """The runs of a folded text that is all ASCII."""
    return _kept_runs(text) if len(text) <= _SHORT else _ASCII_WORD.findall(text)


@lru_cache(maxsize=8)  # the words of a text are counted, and rules look whether they have any to read it for
def _kept_runs(text: str) -> tuple[str, ...]:
    return tuple(_ASCII_WORD.findall(text))


def language_of(text: str, tag: str | None = None) -> str:
    """The language that a text's words are read in: that of its tag, else the one that it seems to be written in.

    >>> language_of("Where is it?"), language_of("Wo ist der Schlüssel und wer hat ihn?"), language_of("x", "fr-CA")
    ('en', 'de', 'fr')
    """
    return known(tag) or (_spoken(_runs(text)) if tag is None else None) or ENGLISH


def _is_unspaced(run: str) -> bool:
    """Whether a run is of a script without spaces: none has characters of both kinds."""
    return not run.isascii() and _UNSPACED.match(run) is not None


def _spoken(of: Sequence[str]) -> str | None:
    return detected(of if all(map(str.isascii, of)) else [run for run in of if not _is_unspaced(run)])


def terms(text: str, language: str = ENGLISH) -> list[Term]:
    """The terms of a text in their order, stop-words dropped.

    >>> [term for term, _ in terms("Caroline's cats don't like the ferries; 我喜欢")]
    ['carolin', 'cat', 'like', 'ferri', '我', '喜', '欢', '我喜', '喜欢']
    """
    return _terms(_runs(text), language, text)


def analyzed(text: str, tag: str | None = None) -> tuple[str, list[Term]]:
    """The language of a text, as `language_of` tells it, and its terms in it: both for one reading."""
    found = _runs(text)
    language = known(tag) or (_spoken(found) if tag is None else None) or ENGLISH
    return language, _terms(found, language, text)


def _terms(of: Sequence[str], language: str, text: str) -> list[Term]:
    """The terms of runs; of a text that has more than `most_terms`, so many of them."""
    kept = _kept(language)
    try:
        out = [each for run in of if (each := kept[run]) is not _NO_TERM]
    except KeyError:  # a word that did not come before, or a script without spaces
        out = _terms_of_new(of, language, kept, text)
    return out if len(out) <= len(text) + _SPARE else out[: most_terms(text)]


def most_terms(text: str) -> int:
    """How many terms of a text count: three for four bytes of its UTF-8, and `_SPARE`.

    Written out, no text has so many: a word has a letter and a blank, an ideograph three bytes for its two terms. Only
    signs that stand for whole phrases (U+3316 for the eleven terms of "kilometre" in kana) can have more.
    """
    return 3 * len(text.encode("utf-8", "surrogatepass")) // 4 + _SPARE


#: Longer runs of a script without spaces do not come again.
_SHORT_RUN = 8


def _terms_of_new(of: Sequence[str], language: str, kept: dict[str, Term], text: str) -> list[Term]:
    out: list[Term] = []
    most = None
    short: dict[str, list[Term]] = {}  # what short runs gave in this text
    for run in of:
        term = kept.get(run)
        if term is None:
            if run in short:
                out += short[run]
                continue
            if _is_unspaced(run):
                if len(out) + 2 * len(run) > len(text):  # perhaps too many
                    most = most_terms(text) if most is None else most
                    run = run[: max(most - len(out), 0)]
                    if not run:
                        break
                grams = [(gram, "") for gram in ngrams(run)]
                out += grams
                if len(run) <= _SHORT_RUN:
                    short[run] = grams
                continue
            word = _content_word(run, stop_words(language))
            term = (stem(word, language), word) if word else _NO_TERM
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[run] = term
        if term is not _NO_TERM:
            out.append(term)
    return out


@cache
def _kept(language: str) -> dict[str, Term]:
    """What runs of spaced scripts gave in a language: words come again and again."""
    return {}


def _content_word(raw: str, dropped: frozenset[str]) -> str:
    """The word of a match, or "" for a stop-word."""
    if raw in dropped:
        return ""
    word, _, rest = raw.partition("'")
    if rest and len(word) == 1:
        word = rest  # what was left out stands before the apostrophe: l'été, d'accord, o'neil
    word = word[:MAX_WORD]
    return "" if word in dropped else word


def ngrams(run: str) -> list[str]:
    """The character n-grams that stand for words in a run of a script without spaces. A short run gives itself."""
    sizes = next((sizes for pattern, sizes in _GRAM_SIZES if pattern.match(run)), _SOUTH_EAST_SIZES)
    grams = [run[at : at + size] for size in sizes for at in range(len(run) - size + 1)]
    return grams or [run]


def ends_with_question(text: str) -> bool:
    """Whether the text ends by asking, so that what follows it is an answer."""
    return text.rstrip().endswith(("?", "？", "؟", "⁇"))


def trigrams(word: str) -> frozenset[str]:
    """The set of character trigrams of `#word#`.

    >>> sorted(trigrams("cat"))
    ['#ca', 'at#', 'cat']
    """
    marked = f"#{word}#"
    return frozenset(marked[at : at + 3] for at in range(len(marked) - 2))


#: What was found in a longer text than this is not kept for the next who asks: it takes many times the text's bytes.
_SHORT = 8192
#: Runs of letters in a text that is all ASCII and in lower case.
_LETTERS = re.compile(r"[a-z]+|[0-9]")


def letters(text: str) -> frozenset[str] | None:
    """The runs of ASCII letters of a text, in lower case, and its digits; None for a text that has other characters.

    What rules that are written in English look for before they read: where none of their words is, they find nothing.

    >>> sorted(letters("Who's on 1st?")), letters("Où?")
    (['1', 'on', 's', 'st', 'who'], None)
    """
    return _kept_letters(text) if len(text) <= _SHORT else _letters(text)


def _letters(text: str) -> frozenset[str] | None:
    text = text.replace("\u2019", "'")
    if not text.isascii():
        return None
    found = _ascii_runs(text.lower())
    if all(map(str.isalpha, found)):
        return frozenset(found)
    # A run that has more than letters is made of them, digits and at most one apostrophe.
    parts = [[run] if run.isalpha() else _LETTERS.findall(run) for run in found]
    return frozenset(chain.from_iterable(parts))


_kept_letters = lru_cache(maxsize=8)(_letters)  # several rules look at one text
