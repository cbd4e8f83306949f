"""Watching a folder of documents: import it, then whatever changes in it, until the caller stops.

The library watchfiles reports the changes (extra `watch`); only this module imports it, when it is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import tzinfo
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from recollect.errors import InvalidArgumentError, MissingExtraError, printable
from recollect.importers.base import Importer
from recollect.importers.chunks import DocumentImporter
from recollect.importers.run import ImportReport, Source, import_source

if TYPE_CHECKING:
    from recollect.memory import Memory

#: Milliseconds that the watcher waits for a change before it yields an empty set.
_WAIT_MS = 200


def watch(
    memory: Memory,
    importer: Importer,
    folder: Path,
    *,
    zone: tzinfo | None = None,
    follow_links: bool = False,
    name: str | None = None,
    forget_deleted: bool = False,
    defaults: Mapping[str, Any] | None = None,
    changes: Iterable[set[str]] | None = None,
) -> Iterator[ImportReport]:
    """Import a folder of documents, then the files in it that change; yield a report of each import.

    A file that cannot be read is damage in a report, and is read again when it changes. What it was before stays. So a
    file that is being written may be imported in part, and is imported as a whole when it is complete.

    Args:
        memory: Where to store the documents.
        importer: The importer of text or Markdown.
        folder: The folder.
        zone: See `import_path`.
        follow_links: See `import_path`.
        name: See `import_path`.
        forget_deleted: Forget documents whose files are deleted. See `import_path`.
        defaults: See `import_path`.
        changes: The paths that changed, set by set, instead of those that the file system reports. The first set says
            that changes are recorded from now on.

    Raises:
        MissingExtraError: watchfiles is not installed.
        InvalidArgumentError: The path is not a folder, or see `Source`.
        ImportFormatError: The folder has no such file.
        StoreError: The store failed.
    """
    if not isinstance(importer, DocumentImporter):
        raise InvalidArgumentError("importer", importer.name, "does not import documents")
    if not os.path.isdir(folder):
        raise InvalidArgumentError("folder", printable(folder), "is not a folder, and only folders are watched")
    root = os.path.realpath(folder)
    changed = iter(_changes(root) if changes is None else changes)
    first = next(changed, set())  # from now on changes are recorded, so those during the first import are not missed
    options: dict[str, Any] = {"follow_links": follow_links, "name": name, "defaults": defaults}
    source = Source(importer, folder, zone, forget_deleted=forget_deleted, **options)
    yield import_source(memory, source)
    for paths in _all(first, changed):
        inside = {os.path.relpath(path, root).replace(os.sep, "/") for path in paths}

        def wanted(source: str, inside: set[str] = inside) -> bool:
            """Whether a file changed, or a folder that it is in, which may have come as a whole."""
            return any(source == each or source.startswith(f"{each}/") for each in inside)

        forget = forget_deleted and not all(os.path.lexists(os.path.join(root, each)) for each in inside)
        source = Source(importer, folder, zone, forget_deleted=forget, wanted=wanted, **options)
        report = import_source(memory, source)
        if report != ImportReport():
            yield report


def _all(first: set[str], rest: Iterator[set[str]]) -> Iterator[set[str]]:
    """Yield the sets that are not empty."""
    if first:
        yield first
    yield from (each for each in rest if each)


def library() -> ModuleType:
    """Return the library that watches.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import watchfiles
    except ImportError:
        raise MissingExtraError("watching a folder", "watchfiles", "watch") from None
    return watchfiles


def _changes(root: str) -> Iterator[set[str]]:
    for found in library().watch(root, yield_on_timeout=True, rust_timeout=_WAIT_MS, raise_interrupt=True):
        yield {path for _, path in found}
