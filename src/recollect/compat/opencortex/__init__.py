"""The memory of opencortex on Recollect: its fourteen functions, with underscores, and a class that has them.

    from recollect.compat.opencortex import ingest_ast, lookup_object, rollback_memory, snapshot_memory

    snapshot_memory()
    boats = ingest_ast({"type": "HEADLINE", "properties": {"ID": "boats", "TITLE": "Boats"}, "contents": []})
    lookup_object(boats).content
    rollback_memory()

The functions work on one memory of the process, which the first call opens at `memory_path()`. `OpencortexMemory` has
them as methods, for a program with more than one memory, or with a `recollect.Memory` of its own. Underneath are
outlines (`Memory.outline`). docs/opencortex.md lists the names, and what differs and why.
"""

from __future__ import annotations

from recollect.compat.opencortex.memory import OpencortexMemory
from recollect.compat.opencortex.objects import OrgObject, SimilarObject, cosine_similarity, org_id_new
from recollect.compat.opencortex.paths import file_name_nondirectory, memory_path
from recollect.compat.opencortex.process import (
    compute_merkle_hash,
    ingest_ast,
    list_objects_by_type,
    list_objects_with_attribute,
    load_memory_from_disk,
    lookup_object,
    process_memory,
    rollback_memory,
    save_memory_to_disk,
    semantic_search,
    snapshot_memory,
)
from recollect.compat.opencortex.trees import find_headline_missing_id

__all__ = [
    "OpencortexMemory",
    "OrgObject",
    "SimilarObject",
    "compute_merkle_hash",
    "cosine_similarity",
    "file_name_nondirectory",
    "find_headline_missing_id",
    "ingest_ast",
    "list_objects_by_type",
    "list_objects_with_attribute",
    "load_memory_from_disk",
    "lookup_object",
    "memory_path",
    "org_id_new",
    "process_memory",
    "rollback_memory",
    "save_memory_to_disk",
    "semantic_search",
    "snapshot_memory",
]
