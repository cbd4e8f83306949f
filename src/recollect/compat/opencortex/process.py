"""The functions of opencortex on one memory of the process, which the first call opens at `memory_path()`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import recollect
from recollect.compat.opencortex.memory import OpencortexMemory
from recollect.compat.opencortex.objects import OrgObject, SimilarObject, hash_of_values

_lock = threading.Lock()
_memory: OpencortexMemory | None = None


def process_memory() -> OpencortexMemory:
    """Return the memory of the process. The first call opens it.

    Raises:
        StoreError: The file cannot be opened, or is no memory. It is left as it is, and the next call tries again.
    """
    global _memory
    with _lock:
        if _memory is None:
            _memory = OpencortexMemory()
        return _memory


def ingest_ast(ast: Mapping[str, Any], parent_id: str | None = None) -> str:
    """Store a tree of an editor, and return the id of its root. See `OpencortexMemory.ingest_ast`."""
    return process_memory().ingest_ast(ast, parent_id)


def lookup_object(id: str) -> OrgObject | None:  # noqa: A002 - the name of opencortex
    """Return an object, or None. See `OpencortexMemory.lookup_object`."""
    return process_memory().lookup_object(id)


def list_objects_by_type(type: str) -> list[OrgObject]:  # noqa: A002 - the name of opencortex
    """Return the objects of a type. See `OpencortexMemory.list_objects_by_type`."""
    return process_memory().list_objects_by_type(type)


def list_objects_with_attribute(attribute: str, value: Any = None) -> list[OrgObject]:
    """Return the objects that have an attribute. See `OpencortexMemory.list_objects_with_attribute`."""
    return process_memory().list_objects_with_attribute(attribute, value)


def semantic_search(query: str, limit: int = 10, minimum: float = 0.5) -> list[SimilarObject]:
    """Return the objects that are most similar to a text. See `OpencortexMemory.semantic_search`."""
    return process_memory().semantic_search(query, limit, minimum)


def compute_merkle_hash(
    id: str,  # noqa: A002 - the name of opencortex
    type: str | None = None,  # noqa: A002 - the name of opencortex
    attributes: Mapping[str, Any] | None = None,
    content: str | None = None,
    children: Iterable[str] = (),
) -> str:
    """Return the Merkle hash of a stored object, or of values. See `OpencortexMemory.compute_merkle_hash`.

    The hash of values opens no memory.
    """
    if type is not None:
        return hash_of_values(id, type, attributes, content, children)
    return process_memory().compute_merkle_hash(id, type, attributes, content, children)


def snapshot_memory() -> recollect.Snapshot:
    """Mark the state of all objects. See `OpencortexMemory.snapshot_memory`."""
    return process_memory().snapshot_memory()


def rollback_memory(index: int = 0) -> recollect.Restored:
    """Restore all objects as they were at a snapshot. See `OpencortexMemory.rollback_memory`."""
    return process_memory().rollback_memory(index)


def save_memory_to_disk(path: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of the file, or of a copy. See `OpencortexMemory.save_memory_to_disk`."""
    return process_memory().save_memory_to_disk(path)


def load_memory_from_disk(path: str | os.PathLike[str] | None = None) -> Path:
    """Open the file of `memory_path()`, or another one, check it, and return its path.

    See `OpencortexMemory.load_memory_from_disk`.
    """
    global _memory
    with _lock:
        memory = _memory or OpencortexMemory(path)
        try:
            file = memory.load_memory_from_disk(path)
        except BaseException:
            if memory is not _memory:
                memory.close()
            raise
        _memory = memory
    return file
