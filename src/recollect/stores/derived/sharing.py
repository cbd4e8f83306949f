"""The segment files of a machine, and what it shares of them with others (`shared.SharedSegments`).

A machine without a usable file takes the segment that another one has written, checks it as a file, and saves it as
its own. Nothing here raises an error of the store but `remove_erased`: without what is shared, an index is rebuilt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recollect.errors import RecollectError
from recollect.indexes.words.segment import Segment
from recollect.ledger.commits import Branch
from recollect.stores.derived.segment_files import SegmentFiles
from recollect.stores.derived.shared import Made, SharedSegments

_log = logging.getLogger("recollect")
#: The size of the parts in which a segment is written, in bytes.
PART_BYTES = 2**22


class SegmentSharing:
    """What a machine reads and writes of the shared segments.

    Args:
        files: The files of this machine.
        shared: What it shares with others.
    """

    def __init__(self, files: SegmentFiles, shared: SharedSegments) -> None:
        self._files = files
        self._shared = shared
        self._unusable: set[Branch] = set()  # whose shared segment is replaced by the next one of this machine

    def read(self, branch: Branch, rules: str, newest: int) -> tuple[Segment, Made, NDArray[np.uint8]] | None:
        """Return the shared segment of a branch, what it claims to be built from, and its bytes; None if unusable.

        Args:
            newest: The newest commit of the caller's view: a segment of a later one is not used.
        """
        try:
            data = self._shared.read(branch, rules, newest)
        except RecollectError as error:
            _log.warning("the shared index of %r cannot be read, which changes no result: %s", branch.namespace, error)
            return None
        if data is None:
            return None
        found = self._files.decoded(branch, rules, data, f"of {branch.namespace!r} that machines share")
        if found is None:
            self._unusable.add(branch)
            return None
        return *found, data

    def distrust(self, branch: Branch) -> None:
        """Replace the shared segment of a branch by the next one of this machine, whichever is newer."""
        self._unusable.add(branch)

    def save(self, branch: Branch, data: NDArray[np.uint8], usable: Callable[[], bool]) -> None:
        """Save the bytes of a segment that was read as the file of this machine."""
        self._files.save(branch, [data.data], usable)

    def share(self, branch: Branch, rules: str) -> None:
        """Write the segment in the file of a branch for other machines, if it is worth that."""
        try:
            with self._files.parts(branch, rules, PART_BYTES) as opened:
                if opened is None:
                    return
                made, parts = opened
                if branch not in self._unusable and not self._shared.accepts(branch, made):
                    return
                if self._shared.write(branch, made, parts):
                    self._unusable.discard(branch)
        except (RecollectError, OSError) as error:
            _log.warning("the index of %r is not shared, which changes no result: %s", branch.namespace, error)

    def remove_erased(self, branch: Branch) -> None:
        """Remove the shared segments of a branch that may contain what was erased. Raise the store's errors."""
        self._shared.remove_erased(branch)
