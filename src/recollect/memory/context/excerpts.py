"""Excerpts: the passages of a long text that matter for a question, as offsets into the text.

Passages are exact pieces of the text. `joined` marks what was left out between them with "[...]".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from recollect.common.regexes import regex
from recollect.memory.context.values import Span
from recollect.text.pieces import SENTENCE_END
from recollect.text.words import language_of, runs, stem, terms

#: Maximum number of characters of a passage that is chosen as a whole. A shorter text is not shortened.
LONGEST = 160
#: Blanks between two passages that do not separate them.
_FEW_BLANKS = 4
#: Maximum number of characters of a text that are analysed, and characters around a word of the question.
_MOST_ANALYSED = 65_536
_AROUND = 1000
#: Share of the greatest weight from which on a sentence is one of the best.
_NEARLY = 0.7
GAP = "[...]"
_FENCE = regex(r"[ \t]*(?:```|~~~)")
_LINE = regex(r"[^\n]*\n?")
#: The beginning of a sentence up to a blank, or, if there is none, as many characters as a passage may have.
_PIECE = regex(rf"\S.{{0,{LONGEST - 2}}}\S(?!\S)|\S{{1,{LONGEST}}}", re.DOTALL)


def joined(text: str, spans: Sequence[Span]) -> str:
    """Return passages of a text, with "[...]" for what was left out between, before and after them.

    >>> joined("One. Two. Three.", [(0, 4), (10, 16)]), joined("One. Two.", [(5, 9)])
    ('One. [...] Three.', '[...] Two.')
    """
    out, at = [], 0
    for start, end in spans:
        if text[at:start].strip():
            out.append(GAP)
        out.append(text[start:end].strip("\n"))
        at = end
    if text[at:].strip():
        out.append(GAP)
    lines = any("\n" in text[start:end] for start, end in spans)
    return ("\n" if lines else " ").join(out)


def without_repeated_code(text: str) -> tuple[Span, ...] | None:
    """Return the passages of a text without those lines of its code blocks that add no word to it; None for the whole.

    All prose remains, and of each code block the lines with a word that neither the prose nor an earlier line has.
    """
    if len(text) <= LONGEST or not _has_code(text):
        return None
    lines = [found.span() for found in _LINE.finditer(text) if found.group()]
    inside, code = False, []
    known: set[str] = set()
    for start, end in lines:
        fence = _FENCE.match(text, start, end) is not None
        code.append(inside and not fence)
        inside ^= fence
        if not code[-1]:
            known.update(_words(text[start:end]))
    kept: list[Span] = []
    for (start, end), is_code in zip(lines, code, strict=True):
        if is_code:
            words = _words(text[start:end])
            if words <= known:
                continue
            known |= words
        if kept and kept[-1][1] == start:
            kept[-1] = (kept[-1][0], end)
        else:
            kept.append((start, end))
    return tuple(kept) if len(joined(text, kept)) < len(text) else None


def _has_code(text: str) -> bool:
    return "```" in text or "~~~" in text


def _words(line: str) -> set[str]:
    return {run for run, _ in runs(line) if len(run) > 2 or run.isdigit()}


def passages(text: str, words: Mapping[str, float], room: int) -> tuple[Span, ...]:
    """Return the passages of a text that best match the words of a question.

    Args:
        words: The words of the question and their weights.
        room: Maximum number of UTF-8 bytes of the passages and the marks between them, 0 or more.

    Returns:
        Passages in the order of the text: sentences with words of the question, and what surrounds them as far as there
        is room; the beginning of the text if no sentence has such a word. Empty if nothing fits.

    Cost:
        O(n) for a text of n characters to find the words in it; only the surroundings of some of them are analysed.
    """
    language = language_of(text[:2000])
    weights = {stem(word, language): weight for word, weight in words.items()}
    sentences = [span for start, end in _windows(text, weights) for span in _sentences(text, start, end)]
    found = [_weight(text[start:end], weights, language) for start, end in sentences]
    sizes = [len(text[start:end].encode("utf-8")) + len(GAP) + 2 for start, end in sentences]
    order = sorted(range(len(sentences)), key=lambda number: (-found[number] / (sizes[number] + 40) ** 0.5, number))
    best = max(found, default=0.0)
    chosen: dict[int, None] = {}

    def choose(number: int) -> None:
        nonlocal room
        if 0 <= number < len(sentences) and number not in chosen and sizes[number] <= room:
            chosen[number] = None
            room -= sizes[number]

    for number in order:
        if found[number] <= 0.0 and chosen:
            break
        choose(number)
        if found[number] >= _NEARLY * best:  # what is next to one of the best explains it, first what follows
            choose(number + 1)
            choose(number - 1)
    grown = list(chosen)
    for number in grown:  # what is left of the room goes to what surrounds them
        before = len(chosen)
        choose(number + 1)
        choose(number - 1)
        grown += list(chosen)[before:]
    return _merged(text, [sentences[number] for number in sorted(chosen)])


def _windows(text: str, stems: Iterable[str]) -> Iterator[Span]:
    """Yield the parts of a text to look for passages in: all of it, or, if it is long, the surroundings of words."""
    if len(text) <= _MOST_ANALYSED:
        yield 0, len(text)
        return
    pattern = "|".join(re.escape(each[: max(3, len(each) - 1)]) for each in sorted(stems)) or r"\S"
    search = re.compile(pattern, re.IGNORECASE).search
    at = room = 0
    found = search(text)
    while found is not None and room < _MOST_ANALYSED:
        start, end = max(at, found.start() - _AROUND), min(len(text), found.end() + _AROUND)
        yield start, end
        at, room = end, room + end - start
        found = search(text, end)
    if room == 0:
        yield 0, _MOST_ANALYSED


def _sentences(text: str, first: int, last: int) -> Iterator[Span]:
    """Yield the sentences of a part of a text, without blanks around them.

    A line end ends a sentence, and a long sentence is divided.
    """
    for line in _LINE.finditer(text, first, last):
        start = line.start()
        ends = [found.end() for found in SENTENCE_END.finditer(text, start, line.end())]
        for end in (*ends, line.end()):
            for piece in _PIECE.finditer(text, start, end):
                yield piece.start(), piece.start() + len(piece.group().rstrip())
            start = end


def _weight(sentence: str, weights: Mapping[str, float], language: str) -> float:
    # Exact, so that it does not depend on the order of a set.
    return math.fsum(weights.get(term, 0.0) for term in {term for term, _ in terms(sentence, language)})


def _merged(text: str, spans: Sequence[Span]) -> tuple[Span, ...]:
    """Join spans with only blanks between them."""
    out: list[Span] = []
    for start, end in spans:
        if out and start - out[-1][1] <= _FEW_BLANKS and not text[out[-1][1] : start].strip():
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return tuple(out)
