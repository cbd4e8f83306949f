"""Markdown files: each section becomes a piece of knowledge that begins with its heading.

`text.markdown` finds the sections. A heading without text below it is the title of the sections further down and no
piece of its own. Front matter is not text: its tags, date and title become those of every piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

from recollect.importers import front_matter
from recollect.importers.base import Damage
from recollect.importers.chunks import LONGEST, Documents, Piece, divided, slug
from recollect.messages.values import UnreadableError
from recollect.text.markdown import Section, front_matter_end, sections

#: Minimum number of characters of a piece in addition to its heading.
_LEAST_ROOM = 500
#: The name of the text before the first heading.
_TOP = "top"


class Markdown(Documents):
    """A Markdown file, or the Markdown files of a folder: sections, divided if they are long."""

    name = "markdown"
    summary = "Markdown: a file, or the .md and .markdown files of a folder; sections as knowledge"
    suffixes = (".md", ".markdown")

    def pieces(self, text: str, zone: tzinfo) -> Iterator[Piece | Damage]:
        lines = text.split("\n")
        start = front_matter_end(lines)
        fields: dict[str, Any] = {}
        common: dict[str, Any] = {}
        try:
            values = front_matter.parse("".join(f"{line}\n" for line in lines[1 : start - 1])) if start else None
            if values is None:
                start = 0  # two thematic breaks
            elif values:
                common["front_matter"] = values
        except UnreadableError as error:
            yield Damage("line 1", f"its front matter {error}; it was imported as text")
            yield from (
                Piece(part, 1, _TOP, number) for number, part in enumerate(divided("\n".join(lines[:start]), LONGEST))
            )
        if values := common.get("front_matter"):
            yield from _read(values, zone, fields, common)
        for section in sections(lines, start):
            metadata = {"headings": [*section.above, section.title] if section.level else [], **common}
            name = slug(section.title) if section.level else _TOP
            for number, (content, line) in enumerate(_parts(section, lines)):
                yield Piece(content, line, name, number, {**fields, "metadata": metadata})


def _read(values: dict[str, Any], zone: tzinfo, fields: dict[str, Any], common: dict[str, Any]) -> Iterator[Damage]:
    """Add what the front matter says of a document to the fields and the metadata of its pieces."""
    try:
        fields["tags"] = front_matter.tags_of(values)
    except UnreadableError as error:
        yield Damage("line 1", f"{error}; they are only in its metadata")
    try:
        fields["time"] = front_matter.time_of(values, zone)
    except UnreadableError as error:
        yield Damage("line 1", f"{error}; it is only in its metadata")
    if title := front_matter.title_of(values):
        common["title"] = title


def _parts(section: Section, lines: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the text of a section in pieces, each with its heading and the number of its first line, from 1."""
    heading = "\n".join(lines[section.first : section.body])
    body = lines[section.body : section.end]
    if not any(line.strip() for line in body):
        return
    room = max(LONGEST - len(heading) - 2, _LEAST_ROOM)
    if len(heading) + 1 + sum(len(line) + 1 for line in body) <= LONGEST:
        parts = [("\n".join(body), section.body)]
    else:
        parts = list(_packed(section, lines, room))
    for number, (text, at) in enumerate(parts):
        # The first part is the exact text of the file; the others repeat the heading above a blank line.
        gap = "\n" if number == 0 else "\n\n"
        content = (heading + gap + text if heading else text).rstrip().lstrip("\n")
        yield content, (section.first if number == 0 else at) + 1


def _packed(section: Section, lines: list[str], room: int) -> Iterator[tuple[str, int]]:
    """Yield the body of a section in pieces of complete blocks, long paragraphs divided, with their first lines."""
    start = end = section.body
    size = 0
    for first, last, is_code in _blocks(section, lines):
        more = sum(len(line) + 1 for line in lines[end:last])
        if size and size + more > room + 1:
            yield "\n".join(lines[start:end]), start
            start, size = first, 0
            more = sum(len(line) + 1 for line in lines[first:last])
        end, size = last, size + more
        if size > room + 1 and not is_code:
            yield from ((part, start) for part in divided("\n".join(lines[start:end]).strip("\n"), room))
            start, size = end, 0
    if size:
        yield "\n".join(lines[start:end]), start


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
