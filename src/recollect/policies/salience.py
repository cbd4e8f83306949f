"""`judge` says whether a text is worth remembering: what an agent says about its own next step is not.

The rules, the first one that applies decides:

1. A text that consists of file paths is rejected ("path").
2. A text under 8 characters is rejected ("short"). A character of a script that writes words in few characters counts
   as more of them: three for Chinese and Japanese, two for Korean.
3. Sentences that narrate a step of the work ("Let me check the logs...") are left out. If at most 8 characters remain,
   the text is rejected ("narration"); else the rest is judged by the following rules.
4. A text with a word of importance (an error, an incident, a decision, a preference) is accepted ("signal").
5. A text of 60 or more characters that is not only questions is accepted ("fact").
6. Any other text is accepted at the level "normal", because most of what people say is short, and rejected at "strict"
   ("other").

`salience_words.toml` has the words of each language. All languages apply to every text, so that nothing depends on
detecting one: a rejection needs two words of one language at the beginning of a sentence. Texts are compared after
NFKC and case folding, with white space collapsed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import dropwhile, islice, product
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError
from recollect.text.folding import folded
from recollect.text.unicode import normalized

#: How strictly a text is judged. "off" accepts every text.
Level: TypeAlias = Literal["off", "normal", "strict"]
LEVELS: tuple[Level, ...] = get_args(Level)
#: A text under `SHORTEST` characters is rejected; one of `LONG` or more states something.
SHORTEST, LONG = 8, 60
#: The score of each reason. A text is accepted from the score of its level on.
SCORES = {"path": 0.0, "short": 0.0, "narration": 0.1, "other": 0.5, "fact": 0.8, "signal": 1.0}
_LEAST = {"off": 0.0, "normal": 0.5, "strict": 0.8}
#: Characters of scripts whose words have few characters.
_DENSE = regex("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_HANGUL = regex("[\uac00-\ud7a3]")
_SENTENCE_END = regex(r"[.!?\u2026]+|[\u3002\uff01\uff1f\n\r]")
_WORD = regex(r"[^\W_]+(?:'[^\W_]+)*")
#: Maximum number of words of importance that a verdict lists.
_MOST_FOUND = 5
#: Ends of file names that have no path before them. Others may be host names or abbreviations.
_EXTENSIONS = frozenset(
    "bash bat c cc cfg conf cpp cs css csv db dll env exe gif go gz h hpp html ini ipynb java jpg js json jsx kt lock "
    "log lua md mjs org pdf php pl png py pyc pyi r rb rs rst scala sh so sql sqlite svg swift tar toml ts tsv tsx txt "
    "vue wasm xml yaml yml zip".split()
)


#: Why a text is rejected, by the reason of its verdict, as the rest of a sentence that begins "the text".
WHY = {
    "narration": "narrates a step of the work and states nothing",
    "path": "is a file path and nothing else",
    "short": f"has fewer than {SHORTEST} characters",
    "other": f"has fewer than {LONG} characters, or only asks, and has no word of importance",
}


class Judgement(NamedTuple):
    """A judgement whether a text is worth remembering.

    Attributes:
        accepted: Whether it is.
        score: How much it is, 0 to 1: the score of the reason (`SCORES`).
        reason: The rule that decided: "signal", "fact", "other", "narration", "short" or "path".
        found: What the rule found: the first words of importance, or the sentences that narrate.
    """

    accepted: bool
    score: float
    reason: str
    found: tuple[str, ...] = ()


def judge(text: str, level: Level = "normal") -> Judgement:
    """Return whether a text is worth remembering, and why.

    >>> judge("Let me check the logs...")
    Judgement(accepted=False, score=0.1, reason='narration', found=('let me check the logs',))
    >>> judge("Let me check the logs... The outage was caused by a full disk.")
    Judgement(accepted=True, score=1.0, reason='signal', found=('outage', 'caused by'))
    >>> judge("We met at the lake.").accepted, judge("We met at the lake.", "strict").accepted
    (True, False)

    Args:
        text: The text, in any language.
        level: "normal" rejects narration, bare file paths and texts under 8 characters; "strict" also what is short and
            has no word of importance; "off" rejects nothing.

    Raises:
        InvalidArgumentError: `text` is not text, or there is no such level.

    Cost:
        Linear in the text: about a microsecond for ten characters.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError("text", text, "must be text")
    if level not in LEVELS:
        raise InvalidArgumentError("level", level, f"must be one of {', '.join(LEVELS)}")
    reason, found = _judged(folded(normalized("NFKC", text)).strip())
    score = SCORES[reason]
    return Judgement(score >= _LEAST[level], score, reason, found)


def _judged(text: str) -> tuple[str, tuple[str, ...]]:
    parts = text.split()
    if parts and all(map(_is_path, parts)):
        return "path", ()
    if _size(parts) < SHORTEST:
        return "short", ()
    kept: list[str] = []
    narrated: list[str] = []
    questions = 0
    for sentence, end in _sentences(text):
        if _narrates(sentence):
            narrated.append(sentence)
        else:
            kept.append(sentence)
            questions += end in ("?", "\uff1f")
    rest = " ".join(kept).split()
    if narrated and _size(rest) <= SHORTEST:
        return "narration", tuple(narrated)
    signals = tuple(dict.fromkeys(islice(_signals(" ".join(rest)), _MOST_FOUND)))
    if signals:
        return "signal", signals
    return ("fact" if _size(rest) >= LONG and questions < len(kept) else "other"), ()


def _size(parts: Iterable[str]) -> int:
    """Return the number of characters of a text given by its parts between white space, dense scripts weighted."""
    text = " ".join(parts)
    return len(text) + (0 if text.isascii() else 2 * len(_DENSE.findall(text)) + len(_HANGUL.findall(text)))


def _is_path(part: str) -> bool:
    """Return whether a text without white space is a path; the numbers of a line and a column may follow it."""
    path, *numbers = part.strip("`'\"()[]<>,;").replace("\\", "/").split(":")
    if len(path) == 1 and numbers and numbers[0].startswith("/"):  # the letter of a drive
        path = numbers.pop(0)
    if not path.strip("/.~") or not all(number.isdecimal() for number in numbers):
        return False
    folder, slash, name = path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    if not slash:
        return bool(stem) and extension in _EXTENSIONS
    if path[0] in "/.~" or not name:
        return True
    return bool(folder and dot) and 0 < len(extension) <= 6 and extension.isalnum()


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield the sentences of a text that are not empty, each with the last character of what ends it."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if end[0][0] in ".!?\u2026" and text[end.end() : end.end() + 1].strip(" \"')]\n\r\t"):
            continue  # inside a number or a name
        sentence = text[start : end.start()].strip()
        start = end.end()
        if sentence:
            yield sentence, end[0][-1]
    if text[start:].strip():
        yield text[start:].strip(), ""


class _Words(NamedTuple):
    """The words of all languages.

    Attributes:
        fillers: Words that may come before narration.
        narration: The words that narration begins with.
        longest: The number of words of the longest of these.
        prefixes: Texts that narration begins with in scripts without spaces.
        signals: Words of importance.
        phrases: Those of two words.
        beginnings: What begins words of importance.
        sizes: The lengths of these.
        unspaced: Words of importance in scripts without spaces.
    """

    fillers: frozenset[str]
    narration: frozenset[tuple[str, ...]]
    longest: int
    prefixes: tuple[str, ...]
    signals: frozenset[str]
    phrases: frozenset[tuple[str, str]]
    beginnings: frozenset[str]
    sizes: tuple[int, ...]
    unspaced: re.Pattern[str]


@cache
def _words() -> _Words:
    import tomllib  # with the words, so that what judges nothing does not load it

    data = tomllib.loads(Path(__file__).with_name("salience_words.toml").read_text("utf-8"))
    fillers = frozenset(each for language in data.values() for each in _folded(language["fillers"]))
    narration: set[tuple[str, ...]] = set()
    prefixes: list[str] = []
    signals: set[str] = set()
    unspaced: list[str] = []
    for language in data.values():
        starts = [*_folded(language["alone"]), *_combined(language)]
        if language["spaces"]:
            narration |= {_after_fillers(_WORD.findall(each), fillers) for each in starts}
        else:
            prefixes += starts
        (signals.update if language["spaces"] else unspaced.extend)(_folded(language["signals"]))
    beginnings = {each[:-1] for each in signals if each.endswith("*")}
    words = {tuple(_WORD.findall(each)) for each in signals if not each.endswith("*")}
    return _Words(
        fillers,
        frozenset(narration),
        max(map(len, narration)),
        tuple(prefixes),
        frozenset(each[0] for each in words if len(each) == 1),
        frozenset((each[0], each[1]) for each in words if len(each) == 2),
        frozenset(beginnings),
        tuple(sorted({len(each) for each in beginnings})),
        re.compile("|".join(sorted(unspaced))),
    )


def _after_fillers(words: Sequence[str], fillers: Collection[str]) -> tuple[str, ...]:
    """Return words without the fillers that they begin with."""
    return tuple(dropwhile(fillers.__contains__, words))


def _folded(words: Iterable[str]) -> list[str]:
    return [folded(normalized("NFKC", each)) for each in words]


def _combined(language: Any) -> Iterator[str]:
    """Yield each combination of a beginning and what may follow it."""
    for pair in language["narration"]:
        between = " " if language["spaces"] else ""
        yield from map(between.join, product(_folded(pair["starts"]), _folded(pair["then"])))


def _narrates(sentence: str) -> bool:
    known = _words()
    rest = sentence.lstrip(" ,，、-*#>")
    if rest.startswith(known.prefixes):
        return True
    words: list[str] = []
    for found in _WORD.finditer(sentence):
        if words or found[0] not in known.fillers:
            words.append(found[0])
            if len(words) == known.longest:
                break
    return any(tuple(words[:count]) in known.narration for count in range(1, len(words) + 1))


def _signals(text: str) -> Iterator[str]:
    """Yield the words of importance in a text."""
    known = _words()
    previous = ""
    for each in _WORD.finditer(text):
        word = each[0]
        if word in known.signals or any(word[:size] in known.beginnings for size in known.sizes):
            yield word
        if (previous, word) in known.phrases:
            yield f"{previous} {word}"
        previous = word
    if _DENSE.search(text):
        yield from (each[0] for each in known.unspaced.finditer(text))
