"""Files as records: the storage of adapters whose framework keeps the notes of a model in files.

    files = Files(memory, actor="anthropic", root="/memories")
    with files.change("create") as change:
        change.create("/memories/tea.md", "Ana prefers green tea.\\n")

A file is a record of the kind `memory_file` with its exact text as content, so that `recall` finds notes, and `history`
and `revert` apply to them. A folder exists while there is a file below it. Paths are names: nothing of the file system
is read or written, so no path leads out of the root and there are no symbolic links. The names of commands and the
texts of answers are left to the adapter.
"""

from __future__ import annotations

import hashlib
import posixpath
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import recollect
from recollect import filters as f
from recollect.compat.searching import Condition, Searcher
from recollect.compat.stored_json import safe_name, unlettered

KIND = "memory_file"
#: A path is a source, and a folder is part of a tag; both have at most 1,000 bytes.
MAX_PATH_BYTES = 900
#: A longer path has an id that is derived from it. An id has at most 255 bytes, of which a scope needs about a hundred.
MAX_ID_BYTES = 150
#: A longer text is stored as bytes, which are not searched: the limit of a text in a memory with default `Limits`.
MAX_TEXT_BYTES = 2**20
#: Up to this number of files are listed from their records, which a server sends as one answer. For more, the index
#: lists them without their texts. That is slower for few: a process that has not searched yet loads or builds it first.
FEW = 1000
#: What a name in a path may not contain: it could end a line of a listing, or is not valid Unicode.
_NOT_IN_PATHS = frozenset({"Cc", "Cs", "Zl", "Zp"})
_OWNERS = ("user", "agent", "conversation")


class PathError(ValueError):
    """No file can have this path. The message can be shown to a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file in a listing.

    Attributes:
        path: Its path.
        size: The size of its text in bytes, as UTF-8.
    """

    path: str
    size: int


def file_id(path: str) -> str:
    """Return the id of the record of a file: its path, or a digest of a path above `MAX_ID_BYTES`."""
    data = path.encode("utf-8")
    return path if len(data) <= MAX_ID_BYTES else f"sha256:{hashlib.sha256(data).hexdigest()}"


class Files:
    """The files of a memory below one root.

    Files are those of the scope of the memory: of its user, agent and conversation, and of no other ones. Without a
    scope, they are those that belong to no user, agent or conversation.

    Args:
        memory: The memory. It stays open.
        actor: Who makes the changes; recorded in each commit.
        root: The folder in which all files are, such as "/memories".
    """

    def __init__(self, memory: recollect.Memory, *, actor: str, root: str) -> None:
        self.root = root
        self._memory = memory
        self._actor = actor
        self._missing = [owner for owner in _OWNERS if owner not in memory.scope]
        self._own = f.all_of(f.kind(KIND), *(~f.has(owner) for owner in self._missing))

    def path(self, text: str) -> str:
        """Return a path in its canonical form: absolute, in NFC, without ".", ".." and empty names.

        Raises:
            PathError: It does not begin with the root, leads out of it, has a control character, or has more than
                `MAX_PATH_BYTES`.
        """
        if text != self.root and not text.startswith(f"{self.root}/"):
            raise PathError(f"Path must start with {self.root}, got: {text}")
        if any(unicodedata.category(character) in _NOT_IN_PATHS for character in text):
            raise PathError(f"Path {text!r} contains a control character")
        path = unicodedata.normalize("NFC", posixpath.normpath(text))
        if path != self.root and not path.startswith(f"{self.root}/"):
            raise PathError(f"Path {text} would escape {self.root} directory")
        if len(path.encode("utf-8")) > MAX_PATH_BYTES:
            raise PathError(f"Path {path[:40]}... is longer than {MAX_PATH_BYTES} bytes")
        return path

    def text(self, path: str) -> str | None:
        """Return the text of a file, or None if there is no file with this path. Paths are canonical here and below."""
        record = self.own(self._memory.get(file_id(path)))
        return None if record is None else text_of(record)

    def record(self, path: str, calls: Any = None) -> recollect.Record | None:
        """Return the record of a file, or None if there is no file with this path.

        Args:
            path: Its path.
            calls: A batch, to read what it has changed.
        """
        return self.own((calls or self._memory).get(file_id(path)))

    def recalled(self, folder: str, query: str, wanted: Callable[[str], bool], count: int) -> list[recollect.Hit]:
        """Return up to `count` files below a folder that answer a query, best first.

        Args:
            folder: The folder above them, however deep.
            query: What to look for, as for `Memory.recall`; a blank text finds nothing.
            wanted: Whether the file with a path is one.
            count: The maximum number of files.

        Cost:
            That of `Memory.recall`.
        """
        condition = Condition(self._below(folder), lambda record: wanted(path_of(record)))
        return Searcher(self._memory).recalled(query, condition, count)

    def is_folder(self, path: str) -> bool:
        """Return whether a path is the root, or there is a file below it.

        Cost:
            One record is read if the index is loaded, as it is once the memory was searched; otherwise up to all files.
        """
        return path == self.root or bool(self._memory.find(self._below(path), limit=1))

    def entries(self, folder: str) -> list[FileEntry]:
        """Return all files below a folder, in no particular order.

        Cost:
            Up to `FEW` texts are read. For more files, O(files) in the index and no text; the first call may have to
            load or build the index.
        """
        where = self._below(folder)
        found = self._memory.find(where, limit=FEW)
        if found.cursor is None:
            return [FileEntry(path=path_of(record), size=len(text_of(record).encode("utf-8"))) for record in found]
        return [_entry(str(value)) for value, _ in self._memory.values("meta.entry", where=where)]

    @contextmanager
    def change(self, reason: str) -> Iterator[FileChanges]:
        """Read and change files in one commit, which no other writer can come between.

        Args:
            reason: What is done, such as the name of a command. It stays in the log after an erasure, so it must not
                contain a path or a text.

        Raises:
            StoreBusyError: Another writer held the lock until the timeout.
        """
        with self._memory.batch(actor=self._actor, reason=reason) as batch:
            yield FileChanges(self, batch)

    def own(self, record: recollect.Record | None) -> recollect.Record | None:
        """Return a record if it is a file of this scope: another kind, or another's, may have an id like a path."""
        is_own = record is not None and record.kind == KIND and not any(getattr(record, each) for each in self._missing)
        return record if is_own else None

    def _below(self, folder: str) -> f.Filter:
        return self._own & f.tag(_tag(folder))


class FileChanges:
    """Changes of files that become one commit. Created by `Files.change`."""

    def __init__(self, files: Files, batch: recollect.Batch) -> None:
        self._files = files
        self._batch = batch

    @property
    def batch(self) -> recollect.Batch:
        """The batch, for other records of the same commit."""
        return self._batch

    def text(self, path: str) -> str | None:
        """Return the text of a file, or None if there is no file with this path."""
        record = self._files.own(self._batch.get(file_id(path)))
        return None if record is None else text_of(record)

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder. Call it before the first change.

        The lock of the batch keeps others from writing, so the memory itself answers as the batch would, and has the
        index, which a batch has not: without it, each file would be read.
        """
        return self._files.is_folder(path)

    def create(self, path: str, text: str, metadata: Mapping[str, Any] | None = None) -> recollect.Record:
        """Store a new file and return its record.

        Args:
            path: Its path.
            text: Its text.
            metadata: Metadata of the record, besides what a file has.

        Raises:
            FileExistsError: There is a file or a folder with this path.
            NotADirectoryError: A folder of the path is a file, which the error names.
            InvalidRecordError: The text is not valid Unicode, or too long.
        """
        self._check_free(path)
        content = _Content.of(text)
        return self._batch.remember(
            content.stored,
            id=file_id(path),
            kind=KIND,
            source=path,  # also makes it a document: what it states is not a standing instruction of the user
            tags=_tags(path),
            metadata={**(metadata or {}), "path": safe_name(path), "entry": f"{content.size} {safe_name(path)}"},
            media_type=content.media_type,
            searchable=content.searchable,
            expect=recollect.ABSENT,
        )

    def write(self, path: str, text: str, metadata: Mapping[str, Any] | None = None) -> recollect.Record:
        """Replace the text of a file and return its record. Its time, and tags and metadata of others, stay.

        Args:
            path: Its path.
            text: The new text.
            metadata: Keys of the metadata to set.

        Raises:
            FileNotFoundError: There is no file with this path.
            InvalidRecordError: The text is not valid Unicode, or too long.
        """
        record = self._files.own(self._batch.get(file_id(path)))
        if record is None:
            raise FileNotFoundError(path)
        content = _Content.of(text)
        return self._batch.update(
            record.id,
            content=content.stored,
            metadata={**record.metadata, **(metadata or {}), "entry": f"{content.size} {safe_name(path)}"},
            media_type=content.media_type,
            searchable=content.searchable,
        )

    def delete(self, path: str) -> int:
        """Delete a file, or all files of a folder, and return how many there were."""
        record = self._files.own(self._batch.get(file_id(path)))
        if record is not None:
            return int(self._batch.forget(record.id))
        return int(self._batch.forget_where(self._files._below(path), parts=["records"]))

    def move(self, old: str, new: str) -> int:
        """Give a file, or all files of a folder, another path, and return how many there were.

        Fields of the records stay, except id, source, tags of folders and the path in the metadata. The history before
        is that of the old ids.

        Raises:
            FileExistsError: There is a file or a folder with the new path.
            FileNotFoundError: There is none with the old path.
            NotADirectoryError: A folder of the new path is a file, which the error names.
            PathError: The new path lies below the old one.

        Cost:
            O(files), and their texts in memory.
        """
        if self._batch.get(file_id(new)) is not None or self.is_folder(new):
            raise FileExistsError(new)
        file = self._files.own(self._batch.get(file_id(old)))
        records = list(self._batch.find(self._files._below(old))) if file is None else [file]
        if not records:
            raise FileNotFoundError(old)
        self._check_folders(new)
        if new.startswith(f"{old}/"):
            raise PathError(f"{old} cannot be moved to {new}, which lies below it")
        moved = [_moved(record, self._files.path(new + path_of(record)[len(old) :])) for record in records]
        report = self._batch.remember_all(moved, on_error="raise")
        stored = [outcome.record and outcome.record.id for outcome in report.results]
        if stored != [record.id for record in moved]:
            raise FileExistsError(new)  # a record of another kind has the id of a file
        return self._batch.forget_all([record.id for record in records])

    def _check_free(self, path: str) -> None:
        self._check_folders(path)
        if self._batch.get(file_id(path)) is not None or self.is_folder(path):
            raise FileExistsError(path)

    def _check_folders(self, path: str) -> None:
        folders = _folders(path)
        for folder, record in zip(folders, self._batch.get_all(map(file_id, folders)), strict=True):
            if self._files.own(record) is not None:
                raise NotADirectoryError(folder)


@dataclass(frozen=True, slots=True)
class _Content:
    """The fields of a record that depend on the text of the file."""

    stored: str | bytes
    size: int
    media_type: str | None
    searchable: bool

    @classmethod
    def of(cls, text: str) -> _Content:
        data = text.encode("utf-8", "surrogatepass")  # the record refuses lone surrogates, with a better message
        if len(data) > MAX_TEXT_BYTES:
            return cls(data, len(data), "text/plain; charset=utf-8", True)
        return cls(text, len(data), None, bool(text.strip()))  # a record that is searched has a text that is not blank


def path_of(record: recollect.Record) -> str:
    """Return the path of a file: its source, which no policy changes."""
    assert record.source is not None, "every file has one"
    return record.source


def text_of(record: recollect.Record) -> str:
    """Return the text of a file."""
    return record.content if isinstance(record.content, str) else record.content.decode("utf-8")


def _folders(path: str) -> list[str]:
    """Return the folders above a path, the root first.

    >>> _folders("/memories/a/b.md")
    ['/memories', '/memories/a']
    """
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(2, len(names))]


def _tag(folder: str) -> str:
    return f"in:{folder}"


def _tags(path: str) -> list[str]:
    return [_tag(folder) for folder in _folders(path)]


def _entry(text: str) -> FileEntry:
    """Return the entry that the metadata has as one text, since `values` returns single values."""
    size, _, path = text.partition(" ")
    return FileEntry(path=unlettered(path), size=int(size))


def _moved(record: recollect.Record, path: str) -> recollect.Record:
    size = record.metadata["entry"].partition(" ")[0]
    added = set(record.tags).difference(_tags(path_of(record)))
    return record.changed(
        id=file_id(path),
        source=path,
        tags=[*added, *_tags(path)],
        metadata={**record.metadata, "path": safe_name(path), "entry": f"{size} {safe_name(path)}"},
    )
