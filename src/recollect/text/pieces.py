"""The pieces of a document: paragraphs of plain text and sections of Markdown, as spans of the text.

A piece is a range of the text, in characters (code points), so its text is `text[start:end]` and its location is known
exactly. Line ends are "\\n", "\\r\\n" and "\\r"; they stay as they are. Every character belongs to at most one piece.
Between pieces are only white space, and, in Markdown, headings without text directly below them that are the titles of
the sections below.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import NamedTuple

from recollect.common.regexes import regex
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
#: Added to the name of a heading that is a piece without a text below it, so that it takes no section's name.
_HEADING = "/heading"
_LINE_END = regex(r"\r\n|\r|\n")
#: What is between two form feeds, which end the pages of plain text.
_PAGE = regex(r"[^\f]+")
#: The end of a sentence: after the punctuation and closing quotes or brackets; CJK punctuation needs no space after it.
SENTENCE_END = regex(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？][」』”）]*")
_WORD = regex(r"[^\W_]+")


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

    def size(self, first: int, end: int) -> int:
        """Return the number of characters of lines from `first` to before `end`, the last line end counted as one."""
        return self.end(end - 1) - self.starts[first] + 1

    def trimmed(self, start: int, end: int) -> tuple[int, int]:
        """Return a range without line ends at its beginning and white space at its end."""
        while end > start and self.text[end - 1].isspace():
            end -= 1
        while start < end and self.text[start] in "\r\n":
            start += 1
        return start, end


def paragraphs(text: str) -> Iterator[Span]:
    """Yield the paragraphs of a text, which blank lines and form feeds separate. A long one is divided.

    >>> text = "One\\ntwo.\\n\\n\\nThree.\\fFour."
    >>> [(text[each.start : each.end], each.name) for each in paragraphs(text)]
    [('One\\ntwo.', 'one'), ('Three.', 'three'), ('Four.', 'four')]
    """
    lines = Lines(text)
    first = None
    for number, line in enumerate([*lines.lines, ""]):
        if line.strip():
            first = number if first is None else first
        elif first is not None:
            for page in _PAGE.finditer(text, lines.starts[first], lines.end(number - 1)):
                start, end = lines.trimmed(*page.span())
                if start < end:
                    at = bisect_right(lines.starts, start) - 1
                    name = slug(text[start : min(end, lines.end(at))], _NAMING)
                    found = divided(text, start, end, LONGEST)
                    yield from (Span(*span, at, name, part) for part, span in enumerate(found))
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
    found = sections([line.replace("\0", "\ufffd") for line in lines.lines], start)
    for section, following in pairwise([*found, None]):
        assert section is not None
        headings = (*section.above, section.title) if section.level else ()
        heading = "\n".join(lines.lines[section.first : section.body])
        name = slug(section.title) if section.level else TOP
        if any(line.strip() for line in lines.lines[section.body : section.end]):
            for part, (begin, end, line) in enumerate(_parts(section, lines, heading)):
                yield Span(begin, end, line, name, part, headings, heading)
        elif section.level and (following is None or following.level <= section.level):
            # It is the title of no section. A paragraph above a line of "---" is such a heading, too.
            begin, end = lines.trimmed(lines.starts[section.first], lines.end(section.body - 1))
            yield Span(begin, end, section.first, name + _HEADING, 0, headings, heading)


def _parts(section: Section, lines: Lines, heading: str) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of a section that has a text, and the number of the first line of each."""
    text = next(number for number in range(section.body, section.end) if lines.lines[number].strip())
    # The first part begins with the heading and the blank lines below it; another may repeat it above a blank line.
    above = lines.starts[text] - lines.starts[section.first] if heading else 0
    room = max(LONGEST - max(above, len(heading) + 2), _LEAST_ROOM)
    if lines.size(section.first, section.end) + (not heading) <= LONGEST:
        found = [(lines.starts[section.body], lines.end(section.end - 1), section.body)]
    else:
        found = list(_packed(section, lines, room))
    if heading:
        found[0] = (lines.starts[section.first], found[0][1], section.first)
    yield from ((*lines.trimmed(start, end), line) for start, end, line in found)


def _packed(section: Section, lines: Lines, room: int) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of a section's body: complete blocks, long paragraphs divided, with their first lines."""
    start = end = section.body
    for first, last, is_code in _blocks(section, lines.lines):
        if start < end and lines.size(start, last) > room + 1:
            yield lines.starts[start], lines.end(end - 1), start
            start = first
        end = last
        if lines.size(start, end) > room + 1 and not is_code:
            found = divided(lines.text, *lines.trimmed(lines.starts[start], lines.end(end - 1)), room)
            yield from ((*span, start) for span in found)
            start = end
    if start < end:
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
