"""Sparse distributed representations (SDRs): texts as 4096 bits by their character trigrams, and a memory of them.

    from recollect.sdr import SDRMemory

    with SDRMemory("notes.db") as memory:
        memory.store("Database connection pool exhausted", {"host": "db1"})
        memory.query("conection pool", limit=3)

The same text has the same bits on every machine, in every language, whatever PYTHONHASHSEED is.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Self

from recollect.facets.sdr.index.encoding import normalised
from recollect.facets.sdr.sdr import Sdr, SdrHit
from recollect.facets.sdr.table import read_table, write_table
from recollect.facets.sdr.texts import SdrText, encode, explain, hamming, overlap, rule_score
from recollect.memory.memory import Memory
from recollect.memory.opening import open as open_memory

__all__ = [
    "SDRMemory",
    "Sdr",
    "SdrHit",
    "SdrText",
    "encode",
    "explain",
    "hamming",
    "normalised",
    "overlap",
    "read_table",
    "rule_score",
    "write_table",
]


class SDRMemory(Sdr):
    """Texts with sparse codes in a store of their own: `Memory.sdr` of the memory at a path.

        with SDRMemory("notes.db") as memory:
            number = memory.store("Error 500 after the deployment")

    The same file may be open in several processes and threads. All calls are those of `Sdr`.

    Args:
        path: The path of the store; ":memory:" for one in memory.
        **options: As for `recollect.open`.

    Raises:
        StoreError: It cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], namespace: str = "default", **options: Any) -> None:
        self._memory = open_memory(path, namespace, **options)
        super().__init__(self._memory._beside("sdrs"))

    @property
    def memory(self) -> Memory:
        """The memory, with history, backups and everything else."""
        return self._memory

    def close(self) -> None:
        """Close the store."""
        self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
