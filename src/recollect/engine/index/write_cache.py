"""What this process wrote last, for its own indexes: they need not read back and decode what is at hand.

It is only a short cut. Where it does not lead from the root that an index stands at to the root of the moment (another
process wrote in between, something was let go, the history is another), the store is asked for all that came.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from recollect.ledger.commits import Branch, Commit, Head
from recollect.records.record import Record

#: About what a commit takes, each id in it, and a record beside its content and its bytes.
_COMMIT_BYTES, _ID_BYTES, _RECORD_BYTES = 500, 200, 600
#: Metadata takes about so many bytes for each of its record's: an empty object in it is an object of Python's.
_METADATA_BYTES = 20
#: What one write did: each id that it touched, with its record from then on; None where it has none.
Written = Mapping[str, Record | None]


class _Step(NamedTuple):
    """From a root to the next."""

    before: bytes
    after: bytes
    written: Written
    nbytes: int


class WriteCache:
    """The newest commits of this process, until an index has them.

    budget_bytes  how much memory they may take; those of the line that was written to the longest ago are let go first
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._lock = threading.Lock()
        self._branches: OrderedDict[Branch, dict[int, _Step]] = OrderedDict()  # by seq
        self._nbytes = 0

    def note(self, commit: Commit, before: bytes, written: Written) -> None:
        """Keep what a commit did, which is durable, and the root before it."""
        branch = Branch(commit.namespace, commit.branch)
        step = _Step(before, commit.root.hash, written, _COMMIT_BYTES + sum(map(_bytes_of, written.values())))
        with self._lock:
            steps = self._branches.setdefault(branch, {})
            self._branches.move_to_end(branch)
            self._nbytes -= steps[commit.seq].nbytes if commit.seq in steps else 0  # of a history that was given up
            steps[commit.seq] = step
            self._nbytes += step.nbytes
            while self._nbytes > self._budget_bytes:
                _, oldest = self._branches.popitem(last=False)
                self._nbytes -= sum(each.nbytes for each in oldest.values())

    def since(self, branch: Branch, seq: int, root: bytes, head: Head) -> Written | None:
        """What the commits did that lead from a seq and its root to a head; None where not all of them are here."""
        out: dict[str, Record | None] = {}
        with self._lock:
            steps = self._branches.get(branch, {})
            if head.seq not in steps:
                return None
            for at in range(seq + 1, head.seq + 1):
                step = steps.get(at)
                if step is None or step.before != root:
                    return None
                root = step.after
                out.update(step.written)
        return out if root == head.root.hash else None

    def drop(self, branch: Branch, upto: int) -> None:
        """Let the commits of a line go that an index has now."""
        with self._lock:
            steps = self._branches.get(branch, {})
            for seq in list(filter(lambda seq: seq <= upto, steps)):
                self._nbytes -= steps.pop(seq).nbytes
            if not steps:
                self._branches.pop(branch, None)

    def clear(self) -> None:
        """Let all go."""
        with self._lock:
            self._branches.clear()
            self._nbytes = 0


def _bytes_of(record: Record | None) -> int:
    """About how much memory an id and its record take."""
    if record is None:
        return _ID_BYTES
    payload_bytes = len(record.to_bytes())
    payload_bytes *= _METADATA_BYTES if record.metadata else 1
    return _ID_BYTES + _RECORD_BYTES + sys.getsizeof(record.content) + payload_bytes
