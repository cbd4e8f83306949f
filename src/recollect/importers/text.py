"""Plain text files: each paragraph is a piece of knowledge."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from recollect.importers.chunks import LONGEST, Documents, Piece, divided, slug

#: Number of words of a paragraph that name it, so that a change further down leaves the name.
_NAMING = 4


class Text(Documents):
    """A text file, or the .txt files of a folder: paragraphs, separated by blank lines."""

    name = "text"
    summary = "Text: a file, or the .txt files of a folder and its subfolders; paragraphs as knowledge"
    suffixes = (".txt",)

    def pieces(self, text: str, zone: tzinfo) -> Iterator[Piece]:
        first, paragraph = 1, list[str]()
        for number, line in enumerate([*text.split("\n"), ""], 1):
            if line.strip():
                first = first if paragraph else number
                paragraph.append(line)
            elif paragraph:
                parts = divided("\n".join(paragraph).rstrip(), LONGEST)
                named = slug(paragraph[0], _NAMING)
                yield from (Piece(part, first, named, at) for at, part in enumerate(parts))
                paragraph = []
