"""Markdown files: each section becomes a piece of knowledge that begins with its heading.

Headings follow CommonMark 0.31 (ATX and setext headings, fenced code blocks, thematic breaks). Headings within quotes
and lists are part of the section. Front matter is not text; its plain `key: value` lines become metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from recollect.importers.chunks import LONGEST, Documents, Piece, divided

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)")
_BREAK = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
#: Lines that begin a list, a quote, a table or HTML: they cannot begin a setext heading.
_NOT_PLAIN = re.compile(r" {0,3}(?:[-+*](?:[ \t]|$)|[0-9]{1,9}[.)](?:[ \t]|$)|[>|<])")
_INDENTED = re.compile(r" {4}| {0,3}\t")
_ITEM = re.compile(r"[ \t]*(?:[-+*]|[0-9]{1,9}[.)])(?:[ \t]|$)")
#: Minimum number of characters of a piece in addition to its heading.
_LEAST_ROOM = 500


class Markdown(Documents):
    """A Markdown file, or the Markdown files of a folder: sections, divided if they are long."""

    name = "markdown"
    summary = "Markdown: a file, or the .md and .markdown files of a folder; sections as knowledge"
    suffixes = (".md", ".markdown")

    def pieces(self, text: str) -> Iterator[Piece]:
        lines = text.split("\n")
        start, front_matter = _front_matter(lines)
        common: dict[str, Any] = {"front_matter": front_matter} if front_matter else {}
        for section in _sections(lines, start):
            for content, line in section.parts():
                yield Piece(content, line, {"headings": section.headings, **common})


@dataclass
class _Section:
    """A heading and the lines below it.

    Attributes:
        first: The index of its first line.
        headings: The titles of the headings above it and its own.
        heading: The lines of its heading.
        body: The other lines.
        code: For each line of the body, the number of its fenced code block; 0 for none.
    """

    first: int
    headings: list[str] = field(default_factory=list)
    heading: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    code: list[int] = field(default_factory=list)

    def parts(self) -> Iterator[tuple[str, int]]:
        """Yield the text in pieces, each with its heading and the number of its first line."""
        heading = "\n".join(self.heading)
        room = max(LONGEST - len(heading) - 2, _LEAST_ROOM)
        if len(heading) + 1 + sum(len(line) + 1 for line in self.body) <= LONGEST:
            parts = [("\n".join(self.body), 0)]
        else:
            parts = list(self._packed(room)) or [("", 0)]
        for number, (text, at) in enumerate(parts):
            # The first part is the exact text of the file; the others repeat the heading above a blank line.
            gap = "\n" if number == 0 else "\n\n"
            content = (heading + gap + text if heading else text).rstrip()
            if content.strip():
                yield content.lstrip("\n"), self.first + 1 + (0 if number == 0 else len(self.heading) + at)

    def _packed(self, room: int) -> Iterator[tuple[str, int]]:
        """Yield the body in pieces of complete blocks, long paragraphs divided, with the index of their first line."""
        start = end = 0
        size = 0
        for first, last in self._blocks():
            more = sum(len(line) + 1 for line in self.body[end:last])
            if size and size + more > room + 1:
                yield "\n".join(self.body[start:end]), start
                start, size = first, 0
                more = sum(len(line) + 1 for line in self.body[first:last])
            end, size = last, size + more
            if size > room + 1 and not self.code[first]:
                yield from ((part, start) for part in divided("\n".join(self.body[start:end]).strip("\n"), room))
                start, size = end, 0
        if size:
            yield "\n".join(self.body[start:end]), start

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Yield the paragraphs and code blocks of the body as ranges of lines."""
        first = None
        for at, line in enumerate([*self.body, ""]):
            kind = self.code[at] if at < len(self.body) else 0
            if first is not None and (kind != self.code[first] or (not kind and not line.strip())):
                yield first, at
                first = None
            if first is None and (kind or line.strip()):
                first = at


def _front_matter(lines: list[str]) -> tuple[int, dict[str, str]]:
    """Return the number of lines of the front matter, and its plain pairs."""
    if lines[0].rstrip() != "---":
        return 0, {}
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return 0, {}
    pairs = {}
    for line in lines[1:end]:
        key, _, value = line.partition(": ")
        key, value = key.rstrip(), value.strip()
        if key and value and not key[0].isspace() and key[0] not in "#-" and value[0] not in "|>#":
            pairs[key] = _unquoted(value)
    return end + 1, pairs


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'" else value


def _sections(lines: list[str], start: int) -> Iterator[_Section]:
    listed = _listed(lines, start)
    fenced = _fenced(lines, start, listed)
    path: list[tuple[int, str]] = []
    section = _Section(start)
    plain: int | None = None  # the start of a paragraph in the body that may become a setext heading
    blank = True  # whether a block may begin here
    for at in range(start, len(lines)):
        line = lines[at]
        if fenced[at]:
            plain, blank = None, True
        elif heading := _ATX.fullmatch(line):
            yield section
            section = _opened(path, len(heading[1]), _title(heading[2] or ""), at, [line])
            plain, blank = None, True
            continue
        elif plain is not None and (underline := _UNDERLINE.fullmatch(line)):
            above = section.body[plain:]
            del section.body[plain:], section.code[plain:]
            yield section
            title = " ".join(part.strip() for part in above)
            section = _opened(path, 1 if underline[1][0] == "=" else 2, title, at - len(above), [*above, line])
            plain, blank = None, True
            continue
        elif not line.strip() or _BREAK.fullmatch(line):
            plain, blank = None, True
        elif blank:
            indented = _INDENTED.match(line) is not None
            plain = None if indented or _NOT_PLAIN.match(line) else len(section.body)
            blank = indented and not listed[at]  # a line of code is a block by itself
        elif _NOT_PLAIN.match(line):  # a list or quote needs no blank line before it
            plain = None
        section.body.append(line)
        section.code.append(fenced[at])
    yield section


def _title(text: str) -> str:
    """Return the text of an ATX heading, without its closing sequence.

    >>> _title("Birds  ##"), _title("C#"), _title("##")
    ('Birds', 'C#', '')
    """
    text = text.strip()
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else text


def _opened(path: list[tuple[int, str]], level: int, title: str, first: int, heading: list[str]) -> _Section:
    """Create the section of a heading, and update `path`, the headings above it and itself."""
    while path and path[-1][0] >= level:
        path.pop()
    path.append((level, title))
    return _Section(first, [each for _, each in path], heading)


def _listed(lines: list[str], start: int) -> list[bool]:
    """For each line, whether it may be part of a list item: one began before it, with no plain block since."""
    out, inside, blank = [False] * len(lines), False, True
    for at in range(start, len(lines)):
        line = lines[at]
        if _ITEM.match(line):
            inside = inside or not _INDENTED.match(line)
        elif blank and line.strip() and not line[0].isspace():
            inside = False
        out[at], blank = inside, not line.strip()
    return out


def _fenced(lines: list[str], start: int, listed: list[bool]) -> list[int]:
    """For each line, the number of its fenced code block, from 1; 0 for none."""
    out, number, at = [0] * len(lines), 0, start
    endless: set[str] = set()  # fences in lists that are not closed anywhere below
    while at < len(lines):
        opening = _FENCE.fullmatch(lines[at])
        if opening is None or (opening[2][0] == "`" and "`" in opening[3]):
            at += 1
            continue
        # Indented by more than three columns, it is a block in a list, or indented code that shows a fence.
        fence, deep = opening[2], len(opening[1].expandtabs(4)) > 3
        if deep and (not listed[at] or fence in endless):
            at += 1
            continue
        closing = re.compile(("[ \t]*" if deep else " {0,3}") + f"{fence[0]}{{{len(fence)},}}[ \t]*")
        end = next((each + 1 for each in range(at + 1, len(lines)) if closing.fullmatch(lines[each])), None)
        if end is None and deep:
            endless.add(fence)
            at += 1
            continue
        end = len(lines) if end is None else end
        number += 1
        out[at:end] = [number] * (end - at)
        at = end
    return out
