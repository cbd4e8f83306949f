"""Plain text files: each paragraph is a piece of knowledge."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from recollect.importers.chunks import DocumentImporter, Piece
from recollect.text.pieces import paragraphs


class Text(DocumentImporter):
    """A text file, or the .txt files of a folder: paragraphs, separated by blank lines or form feeds."""

    name = "text"
    summary = "Text: a file, or the .txt files of a folder and its subfolders; paragraphs as knowledge"
    suffixes = (".txt",)

    def pieces(self, text: str, zone: tzinfo) -> Iterator[Piece]:
        for each in paragraphs(text):
            yield Piece(text[each.start : each.end], each.line + 1, each.name, each.part)
