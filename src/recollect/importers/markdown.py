"""Markdown files: each section becomes a piece of knowledge that begins with its heading.

`text.pieces` finds the sections. A heading without text below it is a piece unless the next heading is deeper: then it
is the title of the sections below. Front matter, YAML or TOML, is not text: its tags, date, title and aliases become
those of every piece. Pictures are records of their own, whether they are in the text as base64 or are embedded files
of the folder.
"""

from __future__ import annotations

import mimetypes
import posixpath
from collections.abc import Iterator
from contextlib import suppress
from datetime import tzinfo
from typing import Any

from recollect.errors import InvalidRecordError
from recollect.importers import front_matter
from recollect.importers.base import Damage, FoundFile, ImportedDocument, Item, open_file, why_unreadable
from recollect.importers.chunks import DocumentImporter, Folder, Piece, path_of
from recollect.importers.embeds import PICTURES, Link, links_of, media_name, without_base64_media
from recollect.quoting import printable
from recollect.records.documents import piece_id
from recollect.records.factories import knowledge
from recollect.records.messages.values import UnreadableError
from recollect.records.record import Record
from recollect.text.markdown import front_matter_end
from recollect.text.pieces import LONGEST, TOP, Lines, divided, paragraphs, sections_of
from recollect.text.unicode import nfc


class Markdown(DocumentImporter):
    """A Markdown file, or the Markdown files of a folder: sections, divided if they are long."""

    name = "markdown"
    origin = "document"
    summary = "Markdown: a file, or the .md and .markdown files of a folder; sections as knowledge"
    suffixes = (".md", ".markdown")

    def pieces(self, text: str, zone: tzinfo, title: str = "") -> Iterator[Piece | Damage]:
        text, media = without_base64_media(text)
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
        found = list(sections_of(lines, start))
        if title and "title" not in common and not any(len(each.headings or ()) == 1 for each in found):
            common["title"] = title
        for each in found:
            # The first part begins with the heading; the others repeat it above a blank line.
            repeated = f"{each.heading}\n\n" if each.part and each.heading else ""
            content = repeated + text[each.start : each.end]
            metadata = {"headings": list(each.headings or ()), **common, **_linked(content)}
            yield Piece(content, each.line + 1, each.name, each.part, {**fields, "metadata": metadata})
        for number, one in enumerate(media, 1):
            if one.content is None:
                yield Damage(f"line {one.line}", "its base64 is damaged, and was left out")
                continue
            metadata = {**common, **({"caption": one.caption} if one.caption.strip() else {})}
            about = {**fields, "media_type": one.media_type, "metadata": metadata}
            yield Piece(one.content, one.line, media_name(number), 0, about)

    def embedded(self, document: ImportedDocument, folder: Folder) -> Iterator[ImportedDocument | Damage]:
        texts = [item.fields["content"] for item in document.items if isinstance(item.fields["content"], str)]
        note = document.source.removeprefix(folder.prefix)
        for link in (link for text in texts for link in links_of(text) if link.embedded):
            if not link.target.lower().endswith(PICTURES):
                continue
            at = posixpath.normpath(posixpath.join(posixpath.dirname(note), link.target))
            found = folder.picture(at, link.target, anywhere=link.is_wiki)
            if found is None or path_of(found) in folder.seen:
                continue
            folder.seen.add(path_of(found))
            if isinstance(found, Damage):
                yield found._replace(file=found.place)
            else:
                yield from _picture(found, folder.prefix + found.source, document, _caption(link))


def _caption(link: Link) -> str:
    """Return the text for a picture, or else the name of its file. Obsidian may have its size there (300x200)."""
    parts = [part for part in link.text.split("|") if part.strip() and not part.strip().replace("x", "").isdigit()]
    return parts[0].strip() if parts else posixpath.splitext(posixpath.basename(link.target))[0]


def _picture(file: FoundFile, source: str, note: ImportedDocument, caption: str) -> Iterator[ImportedDocument | Damage]:
    """Yield a picture as a document of one record, with the time and the tags of the note that embeds it."""
    source = nfc(source)
    place = printable(source)
    try:
        Record(id="picture", content="picture", source=source)
    except InvalidRecordError as error:
        yield Damage(place, f"its path cannot be the source of a record: it {error.args[2]}", place)
        return
    try:
        with open_file(file.path, follow=False) as opened:
            content = opened.read()
    except (OSError, ValueError) as error:
        yield Damage(place, why_unreadable(error), place)
        return
    about = {name: note.items[0].fields[name] for name in ("time", "tags") if name in note.items[0].fields}
    fields = knowledge(
        content,
        source=source,
        chunk_index=0,
        media_type=mimetypes.guess_type(source)[0] or "application/octet-stream",
        metadata={"caption": caption},
        **about,
    )
    fields["id"] = piece_id(source, media_name(1))
    yield ImportedDocument(source, (Item(namespace=None, fields=fields, place=place, file=place),))


def _linked(text: str) -> dict[str, list[str]]:
    """Return the metadata of a piece about the notes that it links to, and the files that it shows."""
    links = list(links_of(text))
    out = {
        "links": list(dict.fromkeys(link.target for link in links if link.media_type is None)),
        "embedded": [link.target for link in links if link.embedded and link.media_type is not None],
    }
    return {name: targets for name, targets in out.items() if targets}


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
        with suppress(UnreadableError):
            fields["time"] = front_matter.time_of({**values, "date": None, "Date": None}, zone)
    if title := front_matter.title_of(values):
        common["title"] = title
    if aliases := front_matter.aliases_of(values):
        common["aliases"] = aliases


# Plain text files: each paragraph is a piece of knowledge.


class Text(DocumentImporter):
    """A text file, or the .txt files of a folder: paragraphs, separated by blank lines or form feeds."""

    name = "text"
    origin = "document"
    summary = "Text: a file, or the .txt files of a folder and its subfolders; paragraphs as knowledge"
    suffixes = (".txt",)

    def pieces(self, text: str, zone: tzinfo, title: str = "") -> Iterator[Piece]:
        for each in paragraphs(text):
            yield Piece(text[each.start : each.end], each.line + 1, each.name, each.part)
