"""What this process wrote last, for its own indexes: they need not read back and decode what is at hand.

It is only a short cut. Where a commit is missing (another process wrote it, it was let go, the history is another), the
store is asked for all that came, as it would be without this.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

from recollect.records.record import Record
from recollect.stores.base import Commit, Head, Line

#: A record takes about so much beside its text and its bytes.
_RECORD_BYTES = 600
#: What one write did: each id that it touched, with its record from then on; None where it has none.
Written = Mapping[str, Record | None]


class Recent:
    """The newest commits of this process, until an index has them.

    budget_bytes  how much memory they may take; the oldest are let go first
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._turn = threading.Lock()
        # Root, what was written, bytes; by line and seq, in the order of noting.
        self._commits: OrderedDict[tuple[Line, int], tuple[bytes, Written, int]] = OrderedDict()
        self._nbytes = 0

    def note(self, commit: Commit, written: Written) -> None:
        """Keep what a commit did, which is durable."""
        nbytes = sum(_RECORD_BYTES + 2 * len(record.to_bytes()) for record in written.values() if record is not None)
        with self._turn:
            place = Line(commit.namespace, commit.branch), commit.seq
            self._drop(place)  # of a history that was given up
            self._commits[place] = commit.root.hash, written, nbytes
            self._nbytes += nbytes
            while self._nbytes > self._budget_bytes:
                self._drop(next(iter(self._commits)))

    def since(self, line: Line, seq: int, head: Head) -> Written | None:
        """What the commits after `seq` did, up to a head; None where not all of them are here."""
        out: dict[str, Record | None] = {}
        root = b""
        with self._turn:
            if (line, head.seq) not in self._commits:
                return None
            for at in range(seq + 1, head.seq + 1):
                if (line, at) not in self._commits:
                    return None
                root, written, _ = self._commits[line, at]
                out.update(written)
        return out if root == head.root.hash else None

    def drop(self, line: Line, after: int, upto: int) -> None:
        """Let the commits of a line go that an index has now."""
        with self._turn:
            places = [(line, seq) for seq in range(after + 1, upto + 1)] if upto - after < len(self._commits) else None
            for place in list(self._commits) if places is None else places:
                if place[0] == line and after < place[1] <= upto:
                    self._drop(place)

    def _drop(self, place: tuple[Line, int]) -> None:
        gone = self._commits.pop(place, None)
        self._nbytes -= 0 if gone is None else gone[2]
