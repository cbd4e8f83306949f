"""Splitting: a long text as pieces that get an SDR each, so that any part of it is found like a short text."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.text.pieces import SENTENCE_END

#: Maximum number of characters of a piece.
LONGEST = 400
#: A piece is not ended before this many characters, if it can be longer.
_LEAST = 200


def split(text: str) -> list[str]:
    """Return the pieces of a text: as few as possible, each at most `LONGEST` characters, ended after a sentence if
    there is one, else at a blank.

    >>> split("One. Two."), [len(piece) for piece in split("word " * 100)]
    (['One. Two.'], [399, 99])
    >>> split(" ")
    []
    """
    return [piece for piece in map(str.strip, _split(text)) if piece]


def _split(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > LONGEST:
        window = text[start : start + LONGEST]
        ends = [found.end() for found in SENTENCE_END.finditer(window, _LEAST)]
        blanks = [at for at in range(len(window) - 1, _LEAST, -1) if window[at].isspace()][:1]
        end = ends[-1] if ends else blanks[0] if blanks else LONGEST
        yield window[:end]
        start += end
    yield text[start:]
