"""Tokenisation: from a text to the terms that the index counts.

A word is a run of letters, marks and digits. An inner apostrophe is kept until the run has been compared with the stop
words ("don't"); then the word ends at the first apostrophe ("Caroline's") or, after a single letter, begins there
("l'été"). Words are folded (case, compatibility variants), stop words are dropped, and the rest is stemmed without
accents. A stop word counts as it is written, or without its accents: "Nội" is not the Italian "noi". Runs of scripts
written without spaces become character n-grams instead, so that any part of a sentence can be found. An emoji is a
word. A word of letters and digits ("ral6021") is followed by its parts. A text may mix all of these. Tokens with signs
have terms of their own (`signs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import TypeAlias

from recollect.common.regexes import regex
from recollect.text import _unicode14
from recollect.text.english import IRREGULAR
from recollect.text.folding import folded, same_letters, without_accents
from recollect.text.languages import ENGLISH, TURKISH, detected, known, stemmer, stop_words
from recollect.text.unicode import ASTRAL, PIECE, in_parts, one_of

#: Blocks of scripts without spaces, and the sizes of the n-grams that replace words there. A Chinese character is
#: nearly a word, so single characters are indexed too; a single Thai letter carries as little meaning as a Latin one.
_IDEOGRAPHS = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_KANA = "\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = "\uac00-\ud7a3"
_SOUTH_EAST = "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
#: Emoji (the blocks of pictographs), and the letters of which two are a flag.
_EMOJI = "\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u2600-\u27bf\u2b1b\u2b1c\u2b50\u2b55\U0001f300-\U0001faff"
_FLAGS = "\U0001f1e6-\U0001f1ff"
_GRAM_SIZES = (
    (re.compile(f"[{_IDEOGRAPHS}{_KANA}]"), (1, 2)),
    (re.compile(f"[{_HANGUL}{_FLAGS}]"), (2,)),
    (re.compile(f"[{_EMOJI}]"), (1,)),
)
_SOUTH_EAST_SIZES = (3,)
#: Korean particles. A word of one syllable is found with one, too.
_PARTICLES = frozenset(
    "은 는 이 가 을 를 에 의 도 만 로 와 과 께 랑 요 에서 에게 한테 까지 부터 보다 처럼 마다 조차 "
    "밖에 이나 이랑 으로 에는 에도".split()
)
_UNSPACED = regex(f"[{_IDEOGRAPHS}{_KANA}{_HANGUL}{_SOUTH_EAST}{_EMOJI}{_FLAGS}]")
#: A short word of letters and digits, but no ordinal number.
_MIXED = regex(r"([a-z]{1,12})([0-9]{1,12})|(?![0-9]+(?:st|nd|rd|th)$)([0-9]{1,12})([a-z]{1,12})")
_ASCII_WORD = regex(r"[a-z0-9]+(?:'[a-z]+)?")
#: Longer runs are not words (but hashes, keys or base64); only their beginning is indexed.
MAX_WORD = 64


#: Maximum number of distinct words that are cached for each language.
_MAX_CACHED = 100_000


#: One counted word: the index term, and the folded word that it came from ("" for an n-gram). A plain tuple of strings,
#: because many are cached: the garbage collector does not track those, but would traverse instances of a class.
Term: TypeAlias = tuple[str, str]

_NO_TERM: Term = ("", "")


#: Folded characters and terms that any text may have in addition to the limit proportional to its length.
_SPARE = 1024


@cache
def _pattern(astral: bool) -> re.Pattern[str]:
    """Return a pattern for a run of a script without spaces, or for a word with at most one inner apostrophe.

    Args:
        astral: Whether the texts may contain characters beyond the Basic Multilingual Plane.
    """
    # The blocks also contain punctuation (the middle dot of names in kana) and code points that later Unicode versions
    # assign.
    blocks = (_IDEOGRAPHS + _KANA, _HANGUL, _SOUTH_EAST)
    unspaced = "|".join(f"{one_of(_unicode14.WORD, astral=astral, within=block)}+" for block in blocks)
    signs = f"[{_EMOJI}]+|[{_FLAGS}]+"
    spaced = one_of(_unicode14.WORD, astral=astral, without="".join(blocks))
    # No ASCII digit after the apostrophe, as in _ASCII_WORD: an emoji elsewhere in the text must not change the terms
    # of "5'10".
    return re.compile(f"({unspaced}|{signs})|((?:{spaced})+(?:'(?:(?![0-9]){spaced})+)?)")


@lru_cache(maxsize=100_000)
def stem(word: str, language: str = ENGLISH) -> str:
    """Return the Snowball stem of a folded word. English (Porter2) irregular forms are first replaced by their base.

    >>> stem("running"), stem("went"), stem("go"), stem("hauser", "de")
    ('run', 'go', 'go', 'haus')
    """
    base = IRREGULAR.get(word, word) if language == ENGLISH else word
    return str(stemmer(language).stemWord(base)).replace("ı", "i")  # other languages have one capital for both


#: A folded run of word characters, and whether it belongs to a script without spaces.
Run = tuple[str, bool]


def runs(text: str) -> list[Run]:
    """Return the runs of word characters of a text."""
    return [(run, is_unspaced(run)) for run in _runs(text)]


def marked_runs(text: str) -> Sequence[str]:
    """Return the runs of a text as they are written, with their accents (`same_letters`).

    >>> list(marked_runs("Où est l'Été ?"))
    ['où', 'est', "l'été"]
    """
    return _runs(text, same_letters)


def _runs(text: str, fold: Callable[[str], str] = folded) -> Sequence[str]:
    """Return the runs of a text without their kinds, which most callers do not need."""
    if len(text) > PIECE and not text.isascii():
        return _runs_by_parts(text, fold)
    read = fold(text)
    if read.isascii() and len(read) <= len(text):
        return _ascii_runs(read)
    return _found(read[: _most_characters(text)] if len(read) > len(text) else read)


def _most_characters(text: str) -> int:
    """Return how many characters of a folded text are read: three for two bytes of its UTF-8, and `_SPARE`.

    No ordinary text folds to more. Characters that become much longer (U+FDFA, one character for four words; U+3316,
    "kilometre" in kana) occur among others.
    """
    return 3 * len(text.encode("utf-8", "surrogatepass")) // 2 + _SPARE


def _found(text: str) -> list[str]:
    """Return the runs of a folded text."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    return [unspaced or word for unspaced, word in _pattern(ASTRAL.search(text) is not None).findall(text)]


@cache
def _of_runs() -> re.Pattern[str]:
    """Return a pattern for the characters that runs consist of."""
    return re.compile(f"(?:{one_of(_unicode14.WORD)}|')*+")


def _runs_by_parts(text: str, fold: Callable[[str], str]) -> list[str]:
    """Return the runs of a long text. It is folded piece by piece, since folding can lengthen it many times."""
    out: list[str] = []
    distinct: dict[str, str] = {}  # words recur: share one string for all occurrences
    left = _most_characters(text)
    for part in in_parts(text, fold, _of_runs()):
        out += [distinct.setdefault(run, run) for run in _found(part[:left])]
        left -= len(part)
        if left <= 0:
            break
    return out


def _ascii_runs(text: str) -> Sequence[str]:
    """Return the runs of a folded text that is all ASCII."""
    return _kept_runs(text) if len(text) <= _SHORT else _ASCII_WORD.findall(text)


@lru_cache(maxsize=8)  # the tokeniser and several rules read the same text
def _kept_runs(text: str) -> tuple[str, ...]:
    return tuple(_ASCII_WORD.findall(text))


def language_of(text: str, tag: str | None = None) -> str:
    """Return the language of a text's words: that of its tag, or else the detected one, or else English.

    >>> language_of("Where is it?"), language_of("Wo ist der Schlüssel und wer hat ihn?"), language_of("x", "fr-CA")
    ('en', 'de', 'fr')
    """
    return known(tag) or (_detected_in(marked_runs(text)) if tag is None else None) or ENGLISH


def is_unspaced(run: str) -> bool:
    """Return whether a run belongs to a script without spaces. No run mixes both kinds."""
    return not run.isascii() and _UNSPACED.match(run) is not None


def _detected_in(found: Sequence[str]) -> str | None:
    return detected(found if all(map(str.isascii, found)) else [run for run in found if not is_unspaced(run)])


def terms(text: str, language: str = ENGLISH, *, divided: bool = True) -> list[Term]:
    """Return the terms of a text in order, without stop words.

    Args:
        divided: Whether the parts of a word of letters and digits follow it.

    >>> [term for term, _ in terms("Caroline's cats don't like the ferries; 我喜欢")]
    ['carolin', 'cat', 'like', 'ferri', '我', '喜', '欢', '我喜', '喜欢']
    >>> [term for term, _ in terms("RAL6021 in 10k")]
    ['ral6021', 'ral', '6021', '10k', '10']
    """
    return _terms(_runs_in(text, language), language, text, divided)


def analyzed(text: str, tag: str | None = None) -> tuple[str, list[Term]]:
    """Return the language of a text (`language_of`) and its terms in that language, tokenising it once."""
    found = marked_runs(text)
    language = known(tag) or (_detected_in(found) if tag is None else None) or ENGLISH
    if language == TURKISH and "I" in text:
        found = _runs_in(text, language)
    return language, _terms(found, language, text)


def _runs_in(text: str, language: str) -> Sequence[str]:
    """Return the runs of a text in a language: in Turkish, the capital of "ı" is "I"."""
    return marked_runs(text.replace("I", "ı") if language == TURKISH else text)


def _terms(found: Sequence[str], language: str, text: str, divided: bool = True) -> list[Term]:
    """Return the terms of runs, at most `most_terms` of them."""
    cached = _cached_terms(language)
    try:
        out = [each for run in found if (each := cached[run]) is not _NO_TERM]
    except KeyError:  # a word that is not cached, or a script without spaces
        out = _terms_of_new(found, language, cached, text, divided)
    return out if len(out) <= len(text) + _SPARE else out[: most_terms(text)]


def most_terms(text: str) -> int:
    """Return the maximum number of terms of a text: three for four bytes of its UTF-8, and `_SPARE`.

    Ordinary text has fewer: a word needs at least a letter and a blank, and an ideograph takes three bytes for its two
    terms. Only characters that stand for whole phrases (U+3316 for the eleven terms of "kilometre" in kana) can exceed
    it.
    """
    return 3 * len(text.encode("utf-8", "surrogatepass")) // 4 + _SPARE


#: Runs of a script without spaces up to this length are cached within a text. Longer ones rarely recur.
_SHORT_RUN = 8


def _terms_of_new(found: Sequence[str], language: str, cached: dict[str, Term], text: str, divided: bool) -> list[Term]:
    out: list[Term] = []
    most = None
    short: dict[str, list[Term]] = {}  # the n-grams of short runs of this text
    for run in found:
        term = cached.get(run)
        if term is None:
            if run in short:
                out += short[run]
                continue
            if is_unspaced(run):
                if len(out) + 2 * len(run) > len(text):  # the limit may be exceeded
                    most = most_terms(text) if most is None else most
                    run = run[: max(most - len(out), 0)]
                    if not run:
                        break
                grams = [(gram, "") for gram in ngrams(without_accents(run))]
                out += grams
                if len(run) <= _SHORT_RUN:
                    short[run] = grams
                continue
            word = without_accents(_content_word(run, stop_words(language)))
            term = (stem(word, language), word) if word else _NO_TERM
            if (parts := _MIXED.fullmatch(run)) is not None:  # not cached: it is several terms
                out.append(term)
                if divided:
                    out += [(part, part) for part in filter(None, parts.groups()) if len(part) > 1 or part.isdigit()]
                continue
            if len(cached) >= _MAX_CACHED:
                cached.clear()
            cached[run] = term
        if term is not _NO_TERM:
            out.append(term)
    return out


@cache
def _cached_terms(language: str) -> dict[str, Term]:
    """Return the cache of terms by run of spaced scripts, for one language."""
    return {}


def _content_word(raw: str, stopped: frozenset[str]) -> str:
    """Return the word of a run, or "" for a stop word."""
    if raw in stopped:
        return ""
    word, _, rest = raw.partition("'")
    if rest and len(word) == 1:
        word = rest  # an elision before the apostrophe: l'été, d'accord, o'neil
    word = word[:MAX_WORD]
    return "" if word in stopped else word


def ngrams(run: str) -> list[str]:
    """Return the n-grams of a run of a script without spaces, or the run itself if it is too short for any."""
    sizes = next((sizes for pattern, sizes in _GRAM_SIZES if pattern.match(run)), _SOUTH_EAST_SIZES)
    grams = [run[at : at + size] for size in sizes for at in range(len(run) - size + 1)]
    if run[1:] in _PARTICLES:
        grams.append(run[0])
    return grams or [run]


def ends_with_question(text: str) -> bool:
    """Return whether the text ends with a question, so that the next turn is an answer."""
    return text.rstrip().endswith(("?", "？", "؟", "⁇"))


def trigrams(word: str) -> frozenset[str]:
    """Return the set of character trigrams of `#word#`.

    >>> sorted(trigrams("cat"))
    ['#ca', 'at#', 'cat']
    """
    marked = f"#{word}#"
    return frozenset(marked[at : at + 3] for at in range(len(marked) - 2))


#: Results for longer texts are not cached: they take many times the bytes of the text.
_SHORT = 8192
#: Runs of letters, or single digits, of lower-case ASCII text.
_LETTERS = regex(r"[a-z]+|[0-9]")


def letters(text: str) -> frozenset[str] | None:
    """Return the lower-case runs of ASCII letters of a text, and its digits; None if the text has other characters.

    A cheap pre-check for rules written in English: if none of the words of a rule is present, the rule cannot match.

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
    # A run that is not all letters consists of letters, digits and at most one apostrophe.
    parts = [[run] if run.isalpha() else _LETTERS.findall(run) for run in found]
    return frozenset(chain.from_iterable(parts))


_kept_letters = lru_cache(maxsize=8)(_letters)  # several rules check the same text
