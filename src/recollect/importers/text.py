"""Plain text files: each paragraph is a piece of knowledge."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.importers.chunks import LONGEST, Documents, Piece, divided


class Text(Documents):
    """A text file, or the .txt files of a folder: paragraphs, separated by blank lines."""

    name = "text"
    summary = "Text: a file, or the .txt files of a folder and its subfolders; paragraphs as knowledge"
    suffixes = (".txt",)

    def pieces(self, text: str) -> Iterator[Piece]:
        first, paragraph = 1, list[str]()
        for number, line in enumerate([*text.split("\n"), ""], 1):
            if line.strip():
                first = first if paragraph else number
                paragraph.append(line)
            elif paragraph:
                yield from (Piece(part, first, {}) for part in divided("\n".join(paragraph).rstrip(), LONGEST))
                paragraph = []
