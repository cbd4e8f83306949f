"""All records of a memory, for tests that compare what was stored before and after."""

from __future__ import annotations

import recollect


def exported(memory: recollect.Memory) -> tuple[str, list[recollect.Record]]:
    """Return the root hash and the records of an export."""
    with memory.open_export() as export:
        return export.root, list(export.records)
