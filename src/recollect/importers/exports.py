"""The files of an export: one JSON file, the folder that a program wrote, or the zip file that it sent."""

from __future__ import annotations

import fnmatch
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import ImportFormatError
from recollect.importers.base import (
    Damage,
    Item,
    UnreadFile,
    files_below,
    format_error,
    load_json,
    open_file,
    parse_json,
)
from recollect.importers.messages import can_name, untaken
from recollect.quoting import printable
from recollect.records.messages.values import UnreadableError

#: Maximum size of a file within a zip file, in bytes. A small zip file can unpack to any size.
_MOST_UNPACKED = 2**31
_JSON, _CHATS = ".json", "conversations*.json"
_ZIP = b"PK\x03\x04"
#: What Python raises for zip files that are damaged, encrypted, or packed in a way that it does not know.
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, NotImplementedError, ValueError, EOFError, OSError,
    IndexError,
)  # fmt: skip


class ExportFile(NamedTuple):
    """A file of an export.

    Attributes:
        name: Its path within the export.
        load: Parses it. It may raise ImportFormatError.
    """

    name: str
    load: Callable[[], Any]


def export_files(path: Path, *, follow_links: bool) -> list[ExportFile | Damage | UnreadFile]:
    """Return the files of an export, sorted by path: those of JSON, and what cannot be read or is something else.

    Args:
        path: A JSON file, whatever its name is; a folder; or a zip file.

    Raises:
        ImportFormatError: It is none of these.
    """
    if os.path.isdir(path):
        return list(_of_folder(path, follow_links=follow_links))
    return list(_of_zip(path)) if _is_zip(path) else [ExportFile(path.name, partial(load_json, path))]


def _of_folder(path: Path, *, follow_links: bool) -> Iterator[ExportFile | Damage | UnreadFile]:
    for each in files_below(path, None, follow_links=follow_links):
        if isinstance(each, Damage):
            yield each._replace(file=each.place)
        elif each.source.lower().endswith(_JSON):
            yield ExportFile(printable(each.source), partial(load_json, each.path))
        else:
            yield UnreadFile(printable(each.source))


def _is_zip(path: Path) -> bool:
    try:
        with open_file(path) as file:
            return file.read(4) == _ZIP or zipfile.is_zipfile(file)  # a file that is cut off begins as one only
    except (OSError, ValueError):
        return False  # `load_json` says why


def _of_zip(path: Path) -> Iterator[ExportFile | Damage | UnreadFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.filename)
    except _DAMAGED as error:
        raise format_error(path, "", f"is a damaged zip file ({printable(error)})") from None
    for entry in entries:
        name = printable(entry.filename)
        if not name or name.endswith("/") or any(part.startswith((".", "__MACOSX")) for part in name.split("/")):
            continue  # a folder, or hidden, as in a folder
        if not entry.filename.lower().endswith(_JSON):
            yield UnreadFile(name)
        elif entry.file_size > (most := _MOST_UNPACKED if _has_chats(name) else _MOST_UNPACKED // 8):
            yield Damage(name, f"has more than {most} bytes: unpack it first", name)
        else:
            yield ExportFile(name, partial(_unpacked, path, entry))


def _unpacked(path: Path, found: zipfile.ZipInfo) -> Any:
    """Parse a file within a zip file. Raises ImportFormatError."""
    entry = printable(found.filename)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(found) as file:
            raw = file.read(_MOST_UNPACKED + 1)
    except _DAMAGED as error:
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


def name_of_chat(about: Mapping[str, Any], keys: Iterable[str], otherwise: str, taken: dict[str, int]) -> str:
    """Return the name under which a chat is stored, and mark it as taken.

    Args:
        about: The chat.
        keys: Its keys that may have a name, the best first.
        otherwise: The name of a chat that has none that is valid.
        taken: The names of the chats before, as `untaken` counts them.
    """
    stated = (about[key] for key in keys if isinstance(about.get(key), str))
    return untaken(next(filter(can_name, stated), otherwise), taken)


def exported_chats(
    path: Path,
    is_chat: Callable[[Any], bool],
    rule: str,
    *,
    follow_links: bool,
    beside: Callable[[str, Any], Iterator[Item]] | None = None,
) -> Iterator[ExportedChat | Item | Damage | UnreadFile]:
    """Yield the conversations of an export: those in its files conversations*.json.

    Args:
        path: A JSON file, a folder or a zip file.
        is_chat: Whether a JSON value is a conversation.
        rule: What a conversation must be, for messages: 'an object with a "mapping"'.
        beside: Returns the items of another JSON file of a folder or a zip file, by its name and contents.

    Raises:
        ImportFormatError: It is no export, raised before anything is yielded. A file of several is yielded as damage.
    """
    files = export_files(path, follow_links=follow_links)
    single = not os.path.isdir(path) and not _is_zip(path)
    chats = [each for each in files if isinstance(each, ExportFile) and (single or _has_chats(each.name))]
    if not chats and not any(isinstance(each, Damage) and _has_chats(each.file) for each in files):
        raise format_error(path, "", f"contains no file {_CHATS}")
    # The conversations first, so that a file that is none is refused before anything is stored.
    for each in (*chats, *(other for other in files if other not in chats)):
        if not isinstance(each, ExportFile):
            yield each
            continue
        if each not in chats and beside is None:
            yield UnreadFile(each.name)
            continue
        try:
            data = each.load()
            if each not in chats:
                items = list(beside(each.name, data)) if beside is not None else []
                yield from items
                if not items:
                    yield UnreadFile(each.name)
                continue
            values = [data] if is_chat(data) else data
            if not isinstance(values, list) or (values and not any(map(is_chat, values))):
                raise format_error(path, "", f"must be a list of conversations: each is {rule}{_other(data)}")
        except ImportFormatError as error:
            if len(chats) == 1 and each in chats:
                raise
            place = ", ".join(dict.fromkeys(part for part in (each.name, error.args[1]) if part))
            yield Damage(place, error.args[2], each.name)
            continue
        before = f"{each.name}, " if len(chats) > 1 else ""
        for number, value in enumerate(values, 1):
            place = f"{before}conversation {number}"
            if is_chat(value):
                yield ExportedChat(each.name, place, value)
            else:
                yield Damage(place, f"is not {rule}", each.name)


def _has_chats(name: str) -> bool:
    return fnmatch.fnmatch(name.rpartition("/")[2], _CHATS)


def _other(data: Any) -> str:
    """Return which format reads an export of another program, for a message."""
    for key, form in (("mapping", "chatgpt"), ("chat_messages", "claude")):
        if any(isinstance(each, dict) and key in each for each in (data if isinstance(data, list) else [data])):
            return f" (this is an export for the format {form})"
    return ""
