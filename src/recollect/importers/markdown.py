"""Markdown files: each section becomes a piece of knowledge that begins with its heading.

`text.pieces` finds the sections. A heading without text below it is a piece unless the next heading is deeper: then it
is the title of the sections below. Front matter, YAML or TOML, is not text: its tags, date and title become those of
every piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

from recollect.importers import front_matter
from recollect.importers.base import Damage
from recollect.importers.chunks import DocumentImporter, Piece
from recollect.records.messages.values import UnreadableError
from recollect.text.markdown import front_matter_end
from recollect.text.pieces import LONGEST, TOP, Lines, divided, paragraphs, sections_of


class Markdown(DocumentImporter):
    """A Markdown file, or the Markdown files of a folder: sections, divided if they are long."""

    name = "markdown"
    summary = "Markdown: a file, or the .md and .markdown files of a folder; sections as knowledge"
    suffixes = (".md", ".markdown")

    def pieces(self, text: str, zone: tzinfo) -> Iterator[Piece | Damage]:
        lines = Lines(text)
        start = front_matter_end(lines.lines)
        fields: dict[str, Any] = {}
        common: dict[str, Any] = {}
        try:
            inner = "".join(f"{line}\n" for line in lines.lines[1 : start - 1])
            parse = front_matter.parse_toml if lines.lines[0].startswith("+") else front_matter.parse
            values = parse(inner) if start else None
            if values is None:
                start = 0  # two thematic breaks
            elif values:
                common["front_matter"] = values
        except UnreadableError as error:
            yield Damage("line 1", f"its front matter {error}; it was imported as text")
            spans = divided(text, 0, lines.end(start - 1), LONGEST)
            yield from (Piece(text[slice(*span)], 1, TOP, part) for part, span in enumerate(spans))
        if values := common.get("front_matter"):
            yield from _read(values, zone, fields, common)
        for each in sections_of(lines, start):
            metadata = {"headings": list(each.headings or ()), **common}
            # The first part begins with the heading; the others repeat it above a blank line.
            repeated = f"{each.heading}\n\n" if each.part and each.heading else ""
            content = repeated + text[each.start : each.end]
            yield Piece(content, each.line + 1, each.name, each.part, {**fields, "metadata": metadata})


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


# Plain text files: each paragraph is a piece of knowledge.


class Text(DocumentImporter):
    """A text file, or the .txt files of a folder: paragraphs, separated by blank lines or form feeds."""

    name = "text"
    summary = "Text: a file, or the .txt files of a folder and its subfolders; paragraphs as knowledge"
    suffixes = (".txt",)

    def pieces(self, text: str, zone: tzinfo) -> Iterator[Piece]:
        for each in paragraphs(text):
            yield Piece(text[each.start : each.end], each.line + 1, each.name, each.part)
