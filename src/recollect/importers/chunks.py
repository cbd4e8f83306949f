"""Pieces of documents: what text files and Markdown have in common.

A document is remembered in pieces of kind "knowledge", numbered through the file. The id of a piece is its source and
number, so that a paragraph that occurs twice is held twice, and a second run finds every piece held. Line ends are
"\\n" whatever the file has, as text mode reads them; otherwise a piece is exactly what the file says.
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

#: Pieces are at most so many characters long, where they can be divided.
LONGEST = 2000
# After the mark and the quotes or brackets that close with it; CJK marks need no space behind them.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？][」』”）]*")


class Piece(NamedTuple):
    """A piece of a document, with the number of its first line and what else is known of it."""

    text: str
    line: int
    metadata: dict[str, Any]


class Documents:
    """An importer of text documents: one file, or all of a folder. A format says how a text is divided."""

    name: str
    summary: str
    exact = False
    suffixes: tuple[str, ...]

    def pieces(self, text: str) -> Iterator[Piece]:
        """The pieces of a document's text, whose line ends are newlines."""
        raise NotImplementedError

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        if not os.path.isdir(path):
            if not os.path.isfile(path):
                raise format_error(path, "", "is not a regular file" if os.path.exists(path) else "is not there")
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
            raise format_error(path, "", f"holds no file that ends in {' or '.join(self.suffixes)}")

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
            yield Damage(place, "is not text: it holds zero bytes")
            return
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        for index, piece in enumerate(self.pieces(text)):
            fields = knowledge(piece.text, source=source, chunk_index=index, metadata=piece.metadata)
            fields["id"] = bounded_id(f"{source}#{index}")
            yield Item(namespace=None, fields=fields, place=f"{place}, line {piece.line}")


def divided(text: str, longest: int) -> Iterator[str]:
    """`text` in pieces of at most `longest` characters: cut behind a sentence, else at a line's end, a space, anywhere.

    >>> list(divided("One. Two three. Four", 12))
    ['One.', 'Two three.', 'Four']
    """
    start = 0
    while len(text) - start > longest:
        # One character more, so that a sentence is seen to end where the piece does.
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
