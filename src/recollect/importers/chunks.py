"""Chunks of documents: the common part of the importers of text files and Markdown.

A document is stored in pieces of kind "knowledge", which `text.pieces` finds and `records.documents` names. Line ends
become "\\n", as in Python's text mode; otherwise a piece is the exact text of the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import tzinfo
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import ImportFormatError, InvalidRecordError
from recollect.importers.base import (
    Damage,
    FoundFile,
    ImportedDocument,
    Item,
    files_below,
    format_error,
    read_text,
)
from recollect.importers.embeds import PICTURES
from recollect.importers.times import day_of_name
from recollect.quoting import printable
from recollect.records.documents import PieceNames, piece_id
from recollect.records.factories import knowledge
from recollect.records.record import Record
from recollect.text.unicode import fold, nfc


class Piece(NamedTuple):
    """A piece of a document.

    Attributes:
        text: Its text, or the bytes of a picture; the fields then have the media type.
        line: The number of its first line, from 1.
        name: Its name; several pieces may have the same.
        part: Its number among the parts of a long section or paragraph, from 0.
        fields: Further fields of its record.
    """

    text: str | bytes
    line: int
    name: str
    part: int = 0
    fields: dict[str, Any] = {}  # noqa: RUF012 - never changed


class Folder:
    """The folder that documents are imported from, or that of the one file.

    Args:
        path: The folder.
        prefix: What the sources of its files begin with.
        follow_links: Whether links to files outside of it are followed.
        single: Whether only one file is imported: then only pictures beside it are read.
    """

    def __init__(self, path: Path, prefix: str, *, follow_links: bool, single: bool = False) -> None:
        self.path, self.prefix, self.follow_links, self.single = path, prefix, follow_links, single
        #: The files that were embedded so far, by their path in the folder.
        self.seen: set[str] = set()

    @cached_property
    def is_vault(self) -> bool:
        """Whether it is a vault of Obsidian, in which the name of a note is its title."""
        return (self.path / ".obsidian").is_dir()

    def picture(self, at: str, target: str, *, anywhere: bool) -> FoundFile | Damage | None:
        """Return the picture that a document embeds; None if there is none.

        Args:
            at: Its path in the folder, if the target is relative to the document.
            target: Its target.
            anywhere: Whether a file of that name anywhere in the folder is meant, as by a wikilink.
        """
        paths = {nfc(at), nfc(os.path.normpath(target))}
        if self.single:  # only what the document names, and no other file beside it
            paths = {nfc(at)} if nfc(at).rpartition("/")[0] == "" else set()
        named = self._pictures.get(fold(at.rpartition("/")[2]), [])
        exact = [each for each in named if nfc(path_of(each)) in paths]
        return next(iter(exact or (named if anywhere and not self.single else [])), None)

    @cached_property
    def _pictures(self) -> dict[str, list[FoundFile | Damage]]:
        """Its pictures by their names, in folded case."""
        found: dict[str, list[FoundFile | Damage]] = {}
        for each in files_below(self.path, PICTURES, follow_links=self.follow_links, deep=not self.single):
            name = each.source if isinstance(each, FoundFile) else each.place
            found.setdefault(fold(name.rpartition("/")[2]), []).append(each)
        return found


def path_of(file: FoundFile | Damage) -> str:
    """Return the path of a file that was found below a folder."""
    return file.source if isinstance(file, FoundFile) else file.place


class DocumentImporter:
    """An importer of text documents: one file, or the files of a folder. Subclasses define how a text is divided."""

    name: str
    summary: str
    suffixes: tuple[str, ...]

    def pieces(self, text: str, zone: tzinfo, title: str = "") -> Iterator[Piece | Damage]:
        """Yield the pieces of a document, whose line ends are newlines. The place of damage is that within it.

        Args:
            text: The text.
            zone: The time zone of dates without an offset.
            title: The title of a document that states none; "": it has none.
        """
        raise NotImplementedError

    def embedded(self, document: ImportedDocument, folder: Folder) -> Iterator[ImportedDocument | Damage]:
        """Yield the files that a document embeds, each once for a folder."""
        yield from ()

    def read(
        self,
        path: Path,
        zone: tzinfo,
        *,
        follow_links: bool = False,
        prefix: str = "",
        wanted: Callable[[str], bool] | None = None,
    ) -> Iterator[ImportedDocument | Damage]:
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
            single = Folder(path.parent, prefix, follow_links=follow_links, single=True)
            yield from self._document(Path(os.path.realpath(path)), prefix + path.name, zone, single)
            return
        found = False
        folder = Folder(path, prefix, follow_links=follow_links)
        for each in files_below(path, self.suffixes, follow_links=follow_links):
            found = True
            if isinstance(each, Damage):
                if wanted is None or wanted(each.place):
                    yield each._replace(file=each.place)
            elif wanted is None or wanted(each.source):
                yield from self._document(each.path, prefix + each.source, zone, folder)
        if not found and wanted is None:
            raise format_error(path, "", f"contains no file that ends in {' or '.join(self.suffixes)}")

    def _document(self, path: Path, source: str, zone: tzinfo, folder: Folder) -> Iterator[ImportedDocument | Damage]:
        source = nfc(source)  # as records have it
        place = printable(source)
        try:
            text = read_text(path, follow=False)
            Record(id="piece", content="piece", source=source)
        except ImportFormatError as error:
            yield Damage(", ".join(part for part in (place, error.args[1]) if part), error.args[2], place)
            return
        except InvalidRecordError as error:
            yield Damage(place, f"its path cannot be the source of a record: it {error.args[2]}", place)
            return
        if "\0" in text:
            yield Damage(place, "is not text: it contains zero bytes", place)
            return
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        items: list[Item] = []
        names = PieceNames()
        day = day_of_name(path.name, zone)
        for piece in self.pieces(text, zone, path.stem if folder.is_vault else ""):
            if isinstance(piece, Damage):
                yield Damage(f"{place}, {piece.place}", piece.reason, place)
                continue
            fields: dict[str, Any] = knowledge(piece.text, source=source, chunk_index=piece.part, **piece.fields)
            fields["id"] = piece_id(source, names.of(piece.name, piece.part))
            dated_by = "the name of its file" if day is not None and fields.get("time") is None else ""
            if dated_by:
                fields["time"] = day
            where = f"{place}, line {piece.line}"
            items.append(Item(namespace=None, fields=fields, place=where, dated_by=dated_by, file=place))
        document = ImportedDocument(source, tuple(items))
        yield document
        yield from self.embedded(document, folder)
