"""Trees whose nodes are merged one by one, such as outlines: each node still has its parent, and none is in a circle.

A node under which one of the branches has added or moved others is not removed; and one that this branch has moved is
not moved by the other branch into what is below it.
"""

from __future__ import annotations

from collections.abc import Iterator

from recollect.engine.scope import linked_id
from recollect.ledger.commits import Branch
from recollect.records.record import Record
from recollect.stores.base import View


class Trees:
    """The nodes of a part of a memory as they are after a merge.

    Args:
        view: The transaction, before anything is merged.
        ours: The part in this branch.
        theirs: The part in the other branch.
        puts: What is stored, by id; None: it is removed. It is changed.
    """

    def __init__(self, view: View, ours: Branch, theirs: Branch, puts: dict[str, Record | None]) -> None:
        self._view = view
        self._ours = ours
        self._theirs = theirs
        self._puts = puts

    def mend(self, since: int) -> list[str]:
        """Change what is stored so that the trees are whole. Return the ids that stay as they are in this branch.

        Args:
            since: The newest commit of the part of this branch that the other one has.

        Cost:
            If anything is removed, that of reading what this branch has changed since.
        """
        kept = [each for each in sorted(self._puts) if self._puts.get(each) is not None and self._is_circle(each)]
        for each in kept:
            del self._puts[each]
        for each in sorted(self._puts):
            if (record := self._puts[each]) is not None:
                self._restore_above(record)
        if None in self._puts.values():
            kept += self._needed(since)
        return kept

    def _is_circle(self, record_id: str) -> bool:
        """Return whether a node that is taken would be below itself."""
        record = self._puts[record_id]
        seen = {record_id}
        while record is not None and record.parent is not None:
            above = linked_id(record.id, record.parent)
            if above is None or above in seen:
                return above in seen
            seen.add(above)
            record = self._after(above)
        return False

    def _restore_above(self, record: Record) -> None:
        """Keep the nodes above one that is taken, as the other branch has them, if this branch has removed them."""
        for above in self._above(record):
            if self._after(above) is None:
                there = self._view.get(self._theirs, above)
                if there is None:
                    return
                self._puts[above] = Record.load(there.payload)

    def _needed(self, since: int) -> Iterator[str]:
        """Yield the nodes that are not removed, as this branch has added or moved others to below them."""
        changed = [each for each in self._view.changed(self._ours, since) if each not in self._puts]
        for stored in self._view.several(self._ours, changed).values():
            for above in self._above(Record.load(stored.payload)):
                if above in self._puts and self._puts[above] is None:
                    del self._puts[above]
                    yield above

    def _above(self, record: Record) -> Iterator[str]:
        """Yield the ids of the nodes above one, from its parent on."""
        seen = {record.id}
        following: Record | None = record
        while following is not None and following.parent is not None:
            above = linked_id(following.id, following.parent)
            if above is None or above in seen:
                return
            seen.add(above)
            yield above
            following = self._after(above)

    def _after(self, record_id: str) -> Record | None:
        """Return a node as it is after the merge."""
        if record_id in self._puts:
            return self._puts[record_id]
        stored = self._view.get(self._ours, record_id)
        return None if stored is None else Record.load(stored.payload)
