"""The pieces of a document: paragraphs of plain text and sections of Markdown, as spans of the text.

A piece is a range of the text, in characters (code points), so its text is `text[start:end]` and its location is known
exactly. Line ends are "\\n", "\\r\\n" and "\\r"; they stay as they are. Every character belongs to at most one piece.
Between pieces are only white space, and, in Markdown, headings without text below them, which are the titles of the
sections further down.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from recollect.text.markdown import Section, front_matter_end, sections

#: Maximum number of characters of a piece, without the heading that it begins with; fenced code may be longer.
LONGEST = 2000
#: Minimum number of characters of a piece in addition to its heading.
_LEAST_ROOM = 500
#: Maximum number of characters of a piece's name.
_LONGEST_NAME = 60
#: Number of words of a paragraph that name it, so that a change further down leaves the name.
_NAMING = 4
#: The name of the text before the first heading.
TOP = "top"
_LINE_END = re.compile(r"\r\n|\r|\n")
#: The end of a sentence: after the punctuation and closing quotes or brackets; CJK punctuation needs no space after it.
SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？][」』”）]*")
_WORD = re.compile(r"[^\W_]+")


class Span(NamedTuple):
    """A piece of a document.

    Attributes:
        start: The index of its first character.
        end: The index after its last character.
        line: The number of its first line, from 0.
        name: Its name; several pieces may have the same.
        part: Its number among the parts of a long section or paragraph, from 0.
        headings: The titles of the headings above it, outermost first, and that of its own. None: it has no headings.
        heading: The text of its own heading, which is part of the first part.
    """

    start: int
    end: int
    line: int
    name: str
    part: int = 0
    headings: tuple[str, ...] | None = None
    heading: str = ""


class Lines:
    """The lines of a text, and where they are in it.

    Attributes:
        text: The text.
        lines: The lines, without their ends.
        starts: The index of the first character of each.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        ends = list(_LINE_END.finditer(text))
        self.starts = [0, *(end.end() for end in ends)]
        stops = chain((end.start() for end in ends), (len(text),))
        self.lines = [text[start:stop] for start, stop in zip(self.starts, stops, strict=True)]

    def end(self, line: int) -> int:
        """Return the index after the last character of a line."""
        return self.starts[line] + len(self.lines[line])

    def trimmed(self, start: int, end: int) -> tuple[int, int]:
        """Return a range without line ends at its beginning and white space at its end."""
        while end > start and self.text[end - 1].isspace():
            end -= 1
        while start < end and self.text[start] in "\r\n":
            start += 1
        return start, end


def paragraphs(text: str) -> Iterator[Span]:
    """Yield the paragraphs of a text, which blank lines separate. A long one is divided.

    >>> text = "One\\ntwo.\\n\\n\\nThree."
    >>> [(text[each.start : each.end], each.name) for each in paragraphs(text)]
    [('One\\ntwo.', 'one'), ('Three.', 'three')]
    """
    lines = Lines(text)
    first = None
    for number, line in enumerate([*lines.lines, ""]):
        if line.strip():
            first = number if first is None else first
        elif first is not None:
            name = slug(lines.lines[first], _NAMING)
            found = divided(text, *lines.trimmed(lines.starts[first], lines.end(number - 1)), LONGEST)
            yield from (Span(*span, first, name, part) for part, span in enumerate(found))
            first = None


def markdown_pieces(text: str) -> Iterator[Span]:
    """Yield the sections of a Markdown text, as `sections_of` does. Front matter is a piece of its own."""
    lines = Lines(text)
    start = front_matter_end(lines.lines)
    if start:
        found = divided(text, *lines.trimmed(0, lines.end(start - 1)), LONGEST)
        yield from (Span(*span, 0, TOP, part) for part, span in enumerate(found))
    yield from sections_of(lines, start)


def sections_of(lines: Lines, start: int = 0) -> Iterator[Span]:
    """Yield the sections of a Markdown text, each with its heading.

    A long section is divided between its blocks, and a long paragraph at the ends of sentences. Fenced code is never
    divided.

    Args:
        lines: The text.
        start: The first line that is Markdown: that after the front matter.
    """
    for section in sections([line.replace("\0", "\ufffd") for line in lines.lines], start):
        headings = (*section.above, section.title) if section.level else ()
        heading = "\n".join(lines.lines[section.first : section.body])
        name = slug(section.title) if section.level else TOP
        for part, (begin, end, line) in enumerate(_parts(section, lines, heading)):
            yield Span(begin, end, line, name, part, headings, heading)


def _parts(section: Section, lines: Lines, heading: str) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of a section's text, and the number of the first line of each."""
    body = lines.lines[section.body : section.end]
    if not any(line.strip() for line in body):
        return
    room = max(LONGEST - len(heading) - 2, _LEAST_ROOM)
    if len(heading) + 1 + sum(len(line) + 1 for line in body) <= LONGEST:
        found = [(lines.starts[section.body], lines.end(section.end - 1), section.body)]
    else:
        found = list(_packed(section, lines, room))
    if heading:
        found[0] = (lines.starts[section.first], found[0][1], section.first)
    yield from ((*lines.trimmed(start, end), line) for start, end, line in found)


def _packed(section: Section, lines: Lines, room: int) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of a section's body: complete blocks, long paragraphs divided, with their first lines."""
    start = end = section.body
    size = 0
    for first, last, is_code in _blocks(section, lines.lines):
        more = sum(len(line) + 1 for line in lines.lines[end:last])
        if size and size + more > room + 1:
            yield lines.starts[start], lines.end(end - 1), start
            start, size = first, 0
            more = sum(len(line) + 1 for line in lines.lines[first:last])
        end, size = last, size + more
        if size > room + 1 and not is_code:
            found = divided(lines.text, *lines.trimmed(lines.starts[start], lines.end(end - 1)), room)
            yield from ((*span, start) for span in found)
            start, size = end, 0
    if size:
        yield lines.starts[start], lines.end(end - 1), start


def _blocks(section: Section, lines: list[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield the paragraphs and the fenced code blocks of a section's body: first line, end, and whether it is code."""
    at = section.body
    for begin, after in (*section.code, (section.end, section.end)):
        first = None
        for number in range(at, begin):
            if lines[number].strip():
                first = number if first is None else first
            elif first is not None:
                yield first, number, False
                first = None
        if first is not None:
            yield first, begin, False
        if begin < after:
            yield begin, after, True
        at = after


def slug(text: str, words: int | None = None) -> str:
    """Return words of a text as a name: in lower case, joined with "-"; "section" if there is none.

    >>> slug("Backups & Größe!"), slug("The boiler is serviced in May.", 3), slug("***")
    ('backups-größe', 'the-boiler-is', 'section')
    """
    found = _WORD.findall(text[: 20 * _LONGEST_NAME].lower())[:words]
    return "-".join(found)[:_LONGEST_NAME].rstrip("-") or "section"


def divided(text: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """Divide a range of a text into ranges of at most `longest` characters.

    The cut is after the last sentence that fits; otherwise at a line end, at a space, or anywhere.

    >>> text = "One. Two three. Four"
    >>> [text[slice(*span)] for span in divided(text, 0, len(text), 12)]
    ['One.', 'Two three.', 'Four']
    """
    while end - start > longest:
        # One character more, to recognise a sentence that ends with the piece.
        window = text[start : start + longest + 1]
        ends = [found.end() for found in SENTENCE_END.finditer(window) if found.end() <= longest]
        cut = ends[-1] if ends else max(window.rfind("\n", 1), 0) or max(window.rfind(" ", 1), 0) or longest
        if piece := window[:cut].rstrip():
            yield start, start + len(piece)
        start += cut
        while start < end and text[start].isspace():
            start += 1
    if text[start:end].strip():
        yield start, end
