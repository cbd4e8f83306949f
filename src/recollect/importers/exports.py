"""The files of an export: one JSON file, the folder that a program wrote, or the zip file that it sent."""

from __future__ import annotations

import fnmatch
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import ImportFormatError, printable
from recollect.importers.base import (
    Damage,
    FoundFile,
    files_below,
    format_error,
    load_json,
    open_file,
    parse_json,
)
from recollect.records.messages.values import UnreadableError

#: Maximum size of a file within a zip file, in bytes. A small zip file can unpack to any size.
_MOST_UNPACKED = 2**31
_DAMAGED = (zipfile.BadZipFile, zlib.error)


class ExportFile(NamedTuple):
    """A file of an export.

    Attributes:
        name: Its path within the export.
        load: Parses it. It may raise ImportFormatError.
    """

    name: str
    load: Callable[[], Any]


def export_files(path: Path, pattern: str, *, follow_links: bool) -> list[ExportFile | Damage]:
    """Return the JSON files of an export whose names match, sorted by path; and what cannot be read.

    Args:
        path: A JSON file, whatever its name is; a folder; or a zip file.
        pattern: The names of the files in a folder or a zip file, such as "conversations*.json".

    Raises:
        ImportFormatError: It is none of these, or contains no such file.
    """
    if os.path.isdir(path):
        found = list(_of_folder(path, pattern, follow_links=follow_links))
    elif _is_zip(path):
        found = list(_of_zip(path, pattern))
    else:
        return [ExportFile(path.name, lambda: load_json(path))]
    if not any(isinstance(each, ExportFile) for each in found):
        raise format_error(path, "", f"contains no file {pattern} that can be read")
    return found


def _of_folder(path: Path, pattern: str, *, follow_links: bool) -> Iterator[ExportFile | Damage]:
    for each in files_below(path, (".json",), follow_links=follow_links):
        name = each.source if isinstance(each, FoundFile) else each.place
        if fnmatch.fnmatch(os.path.basename(name), pattern):
            yield (
                each._replace(file=name)
                if isinstance(each, Damage)
                else ExportFile(name, partial(load_json, each.path))
            )


def _is_zip(path: Path) -> bool:
    try:
        with open_file(path) as file:
            return zipfile.is_zipfile(file)
    except (OSError, ValueError):
        return False  # `load_json` says why


def _of_zip(path: Path, pattern: str) -> Iterator[ExportFile | Damage]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.filename)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise format_error(path, "", f"is a damaged zip file ({printable(error)})") from None
    for entry in entries:
        if entry.is_dir() or not fnmatch.fnmatch(entry.filename.rpartition("/")[2], pattern):
            continue
        if entry.file_size > _MOST_UNPACKED:
            name = printable(entry.filename)
            yield Damage(name, f"has more than {_MOST_UNPACKED} bytes: unpack it first", name)
        else:
            yield ExportFile(printable(entry.filename), partial(_unpacked, path, entry.filename))


def _unpacked(path: Path, entry: str) -> Any:
    """Parse a file within a zip file. Raises ImportFormatError."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(entry) as file:
            raw = file.read(_MOST_UNPACKED + 1)
    except (RuntimeError, NotImplementedError, ValueError, EOFError, OSError, *_DAMAGED) as error:
        raise format_error(path, entry, f"cannot be unpacked ({printable(error)})") from None
    if len(raw) > _MOST_UNPACKED:
        raise format_error(path, entry, f"has more than {_MOST_UNPACKED} bytes: unpack it first")
    try:
        return parse_json(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise format_error(path, entry, f"is not text in UTF-8 (byte {error.start})") from None
    except UnreadableError as error:
        raise format_error(path, entry, str(error)) from None


class ExportedChat(NamedTuple):
    """A conversation of an export.

    Attributes:
        file: The file that it is in.
        place: Its location in the source.
        value: Its JSON object.
    """

    file: str
    place: str
    value: dict[str, Any]


def exported_chats(
    path: Path, is_chat: Callable[[Any], bool], rule: str, *, follow_links: bool
) -> Iterator[ExportedChat | Damage]:
    """Yield the conversations of an export: those in its files conversations*.json.

    Args:
        path: A JSON file, a folder or a zip file.
        is_chat: Whether a JSON value is a conversation.
        rule: What a conversation must be, for messages: 'an object with a "mapping"'.

    Raises:
        ImportFormatError: It is no export, raised before anything is yielded. A file of several is yielded as damage.
    """
    files = export_files(path, "conversations*.json", follow_links=follow_links)
    for each in files:
        if isinstance(each, Damage):
            yield each
            continue
        try:
            data = each.load()
            values = [data] if is_chat(data) else data
            if not isinstance(values, list) or (values and not any(map(is_chat, values))):
                raise format_error(path, "", f"must be a list of conversations: each is {rule}")
        except ImportFormatError as error:
            if len(files) == 1:
                raise
            yield Damage(", ".join(part for part in (each.name, error.args[1]) if part), error.args[2], each.name)
            continue
        before = f"{each.name}, " if len(files) > 1 else ""
        for number, value in enumerate(values, 1):
            place = f"{before}conversation {number}"
            if is_chat(value):
                yield ExportedChat(each.name, place, value)
            else:
                yield Damage(place, f"is not {rule}", each.name)
