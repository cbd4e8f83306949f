"""`SDRMemory`, a store of texts with sparse codes: one file, opened by its path."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Self

from recollect.memory.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.memory.sdr.sdr import Sdr


class SDRMemory(Sdr):
    """Texts with sparse codes in a store of their own: `Memory.sdr` of the memory at a path.

        with SDRMemory("notes.db") as memory:
            number = memory.store("Error 500 after the deployment")

    The same file may be open in several processes and threads. All calls are those of `Sdr`.

    Args:
        path: The path of the store; ":memory:" for one in memory.
        namespace: The namespace.
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
