"""The import of the reference memory server's file when a server first starts with it. The file stays as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from recollect.errors import ImportFormatError
from recollect.importers.knowledge_graph import KnowledgeGraph
from recollect.importers.run import Source, import_source
from recollect.server.mcp.tools import Access

#: The environment variable with the path of the file.
GRAPH_VARIABLE = "MEMORY_FILE_PATH"


def import_graph(access: Access, path: str, *, report: Callable[[str], object]) -> None:
    """Import a file, unless it was imported before. A record states that it was.

    Deleting what was imported does not bring it back at the next start, and neither does forgetting that record.

    Args:
        access: Where to store it.
        path: The file; "~" is the user's home, and relative paths start at the current folder.
        report: Called with each line for the user.
    """
    try:
        file = Path(path).expanduser().absolute()
        size = file.stat().st_size if file.is_file() else None
    except (OSError, RuntimeError, ValueError) as error:
        report(f"{GRAPH_VARIABLE} was not imported: {error}")
        return
    if not file.exists():
        report(f"there is no file {file} ({GRAPH_VARIABLE}), so nothing was imported")
        return
    if size is not None and size <= 1:
        return  # an empty graph is an empty line
    if access.read_only:
        report(f"{file} was not imported, because the server can only read")
        return
    done_id = f"imported-{hashlib.sha256(str(file).encode('utf-8', 'surrogateescape')).hexdigest()[:24]}"
    memory = access.reading()
    before = memory.get(done_id)
    if before is not None or memory.changes(id=done_id, limit=1):
        if before is not None and before.metadata.get("file") not in (None, _facts_of(file)):
            report(f"{file} has changed since its import; `recollect import mcp-memory` adds what is new")
        return
    try:
        source = Source(KnowledgeGraph(), file)  # before the store is created
    except ImportFormatError as error:
        report(f"{GRAPH_VARIABLE} was not imported: {error}")
        return
    memory = access.writing()
    done = import_source(memory, source)
    count = done.created + done.updated + done.unchanged
    memory.remember(
        f"Imported the knowledge graph in {file.name}: {count} records.",
        id=done_id,
        kind="import",
        metadata={"records": count, "damaged": len(done.damaged), "file": _facts_of(file)},
    )
    report(f"imported {count} records from {file}, which is not changed from now on")
    for damage in done.damaged:
        report(f"not imported: {damage.place}: {damage.reason}")


def _facts_of(file: Path) -> list[int] | None:
    """Return the size and the time of change of a file. A digest would confirm guesses of what is erased later."""
    try:
        facts = file.stat()
    except OSError:
        return None
    return [facts.st_size, facts.st_mtime_ns] if file.is_file() else None
