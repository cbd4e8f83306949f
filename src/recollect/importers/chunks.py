"""Chunks of documents: the common part of the importers of text files and Markdown.

A document is stored in pieces of kind "knowledge", numbered within the file. The id of a piece is its source and its
number, so that a paragraph that occurs twice is stored twice, and a second run finds every piece stored. Line ends
become "\\n", as in Python's text mode; otherwise a piece is the exact text of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import ImportFormatError, InvalidRecordError, printable
from recollect.importers.base import (
    Damage,
    Item,
    bounded_id,
    files_below,
    format_error,
    read_text,
)
from recollect.records.factories import knowledge
from recollect.records.record import Record

#: Maximum number of characters of a piece.
LONGEST = 2000
# After the punctuation and closing quotes or brackets; CJK punctuation needs no space after it.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？][」』”）]*")


class Piece(NamedTuple):
    """A piece of a document.

    Attributes:
        text: The text.
        line: The number of its first line, from 1.
        metadata: Further facts, such as the headings above it.
    """

    text: str
    line: int
    metadata: dict[str, Any]


class Documents:
    """An importer of text documents: one file, or the files of a folder. Subclasses define how a text is divided."""

    name: str
    summary: str
    exact = False
    suffixes: tuple[str, ...]

    def pieces(self, text: str) -> Iterator[Piece]:
        """Yield the pieces of a document, whose line ends are newlines."""
        raise NotImplementedError

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        if not os.path.isdir(path):
            if not os.path.isfile(path):
                raise format_error(path, "", "is not a regular file" if os.path.exists(path) else "does not exist")
            yield from self._document(Path(os.path.realpath(path)), path.name)
            return
        found = False
        for each in files_below(path, self.suffixes, follow_links=follow_links):
            found = True
            if isinstance(each, Damage):
                yield each
            else:
                yield from self._document(each.path, each.source)
        if not found:
            raise format_error(path, "", f"contains no file that ends in {' or '.join(self.suffixes)}")

    def _document(self, path: Path, source: str) -> Iterator[Item | Damage]:
        place = printable(source)
        try:
            text = read_text(path, follow=False)
            Record(id="piece", content="piece", source=source)
        except ImportFormatError as error:
            yield Damage(", ".join(part for part in (place, error.args[1]) if part), error.args[2])
            return
        except InvalidRecordError as error:
            yield Damage(place, f"its path cannot be the source of a record: it {error.args[2]}")
            return
        if "\0" in text:
            yield Damage(place, "is not text: it contains zero bytes")
            return
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        for index, piece in enumerate(self.pieces(text)):
            fields = knowledge(piece.text, source=source, chunk_index=index, metadata=piece.metadata)
            fields["id"] = bounded_id(f"{source}#{index}")
            yield Item(namespace=None, fields=fields, place=f"{place}, line {piece.line}")


def divided(text: str, longest: int) -> Iterator[str]:
    """Divide a text into pieces of at most `longest` characters.

    The cut is after the last sentence that fits; otherwise at a line end, at a space, or anywhere.

    >>> list(divided("One. Two three. Four", 12))
    ['One.', 'Two three.', 'Four']
    """
    start = 0
    while len(text) - start > longest:
        # One character more, to recognise a sentence that ends with the piece.
        window = text[start : start + longest + 1]
        ends = [end.end() for end in _SENTENCE_END.finditer(window) if end.end() <= longest]
        cut = ends[-1] if ends else max(window.rfind("\n", 1), 0) or max(window.rfind(" ", 1), 0) or longest
        piece = window[:cut].rstrip()
        if piece:
            yield piece
        start += cut
        while start < len(text) and text[start].isspace():
            start += 1
    if text[start:].strip():
        yield text[start:]
