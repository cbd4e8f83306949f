"""Chunks of documents: the common part of the importers of text files and Markdown.

A document is stored in pieces of kind "knowledge". The id of a piece is its source and its name within it, such as the
slug of its heading, so that it stays the same if the file is edited elsewhere. Line ends become "\\n", as in Python's
text mode; otherwise a piece is the exact text of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import ImportFormatError, InvalidRecordError, printable
from recollect.importers.base import (
    Damage,
    Document,
    Item,
    bounded_id,
    files_below,
    format_error,
    read_text,
)
from recollect.records.factories import knowledge
from recollect.records.record import Record
from recollect.text.unicode import nfc

#: Maximum number of characters of a piece.
LONGEST = 2000
#: Maximum number of characters of a piece's name.
_LONGEST_NAME = 60
#: Bytes of a source that the ids of its pieces begin with, even if the ids are shortened (`bounded_id`).
_PREFIX_BYTES = 200
# After the punctuation and closing quotes or brackets; CJK punctuation needs no space after it.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？][」』”）]*")
_WORD = re.compile(r"[^\W_]+")


class Piece(NamedTuple):
    """A piece of a document.

    Attributes:
        text: The text.
        line: The number of its first line, from 1.
        name: Its name; several pieces may have the same.
        part: Its number among the parts of a long section or paragraph, from 0.
        fields: Further fields of its record.
    """

    text: str
    line: int
    name: str
    part: int = 0
    fields: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Documents:
    """An importer of text documents: one file, or the files of a folder. Subclasses define how a text is divided."""

    name: str
    summary: str
    suffixes: tuple[str, ...]

    def pieces(self, text: str, zone: tzinfo) -> Iterator[Piece | Damage]:
        """Yield the pieces of a document, whose line ends are newlines. The place of damage is that within it."""
        raise NotImplementedError

    def read(
        self,
        path: Path,
        zone: tzinfo,
        *,
        follow_links: bool = False,
        prefix: str = "",
        wanted: Callable[[str], bool] | None = None,
    ) -> Iterator[Document | Damage]:
        """Yield the documents of a file or folder, and what cannot be read. See `Importer.read`.

        Args:
            path: The file or folder. It may be a link.
            zone: The time zone of dates without an offset.
            follow_links: Whether links within a folder to files outside of it are followed.
            prefix: A name before the path of each file in its source ("docs" for "docs/a.md").
            wanted: Whether to read a file of a folder, by its path in it; None: all, and there must be one.
        """
        prefix = f"{prefix}/" if prefix else ""
        if not os.path.isdir(path):
            if not os.path.isfile(path):
                raise format_error(path, "", "is not a regular file" if os.path.exists(path) else "does not exist")
            yield from self._document(Path(os.path.realpath(path)), prefix + path.name, zone)
            return
        found = False
        for each in files_below(path, self.suffixes, follow_links=follow_links):
            found = True
            if isinstance(each, Damage):
                if wanted is None or wanted(each.place):
                    yield each
            elif wanted is None or wanted(each.source):
                yield from self._document(each.path, prefix + each.source, zone)
        if not found and wanted is None:
            raise format_error(path, "", f"contains no file that ends in {' or '.join(self.suffixes)}")

    def _document(self, path: Path, source: str, zone: tzinfo) -> Iterator[Document | Damage]:
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
        items: list[Item] = []
        names = _Names()
        for piece in self.pieces(text, zone):
            if isinstance(piece, Damage):
                yield Damage(f"{place}, {piece.place}", piece.reason)
                continue
            fields = knowledge(piece.text, source=source, chunk_index=piece.part, **piece.fields)
            fields["id"] = bounded_id(f"{source}#{names.of(piece)}")
            items.append(Item(namespace=None, fields=fields, place=f"{place}, line {piece.line}"))
        yield Document(source, tuple(items))


class _Names:
    """The names of a document's pieces, each once."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}
        self._section = ""

    def of(self, piece: Piece) -> str:
        """Return the name of a piece: with a counter if an earlier one has it, and with the number of a further part.

        >>> names = _Names()
        >>> [names.of(Piece("", 1, name, part)) for name, part in (("a", 0), ("a", 1), ("a", 0), ("a-2", 0))]
        ['a', 'a/2', 'a-2', 'a-2-2']
        """
        if piece.part:
            return f"{self._section}/{piece.part + 1}"
        name = piece.name
        while name in self._used:
            counter = self._next[piece.name] = self._next.get(piece.name, 1) + 1
            name = f"{piece.name}-{counter}"
        self._used.add(name)
        self._section = name
        return name


def is_piece(record: Record) -> bool:
    """Return whether a record was made by an importer of documents, of this or an earlier release."""
    if record.kind != "knowledge" or record.source is None or "chunk_index" not in record.metadata:
        return False
    start = nfc(f"{record.source}#").encode("utf-8")[:_PREFIX_BYTES].decode("utf-8", "ignore")
    return record.id.startswith(start)


def slug(text: str, words: int | None = None) -> str:
    """Return words of a text as a name: in lower case, joined with "-"; "section" if there is none.

    >>> slug("Backups & Größe!"), slug("The boiler is serviced in May.", 3), slug("***")
    ('backups-größe', 'the-boiler-is', 'section')
    """
    found = _WORD.findall(text[: 20 * _LONGEST_NAME].lower())[:words]
    return "-".join(found)[:_LONGEST_NAME].rstrip("-") or "section"


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
