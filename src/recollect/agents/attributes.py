"""The facts of a memory that state an attribute, cached by a manager and kept up to date from the log.

A new fact is compared with those of its attribute alone, without a search, so that checking costs little more than
recording. The cache is of one manager; it can be lost at any time, and is read again.
"""

from __future__ import annotations

import threading
from datetime import datetime

from recollect import filters as f
from recollect.errors import InvalidArgumentError
from recollect.memory import Memory
from recollect.memory.manager.contradictions import (
    ATTRIBUTE,
    KINDS,
    Contradiction,
    StatedAttribute,
    disagreeing,
    statements,
)
from recollect.records.record import Record


class KnownAttributes:
    """The statements of a memory, by attribute. Safe for use by several threads.

    Args:
        memory: The memory.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._cursor: int | str | None = None
        self._stated: dict[str, list[StatedAttribute]] = {}  # by the id of the record
        self._of: dict[str, dict[str, None]] = {}  # the ids of the records that state an attribute

    def contradicting(self, record: Record) -> list[Contradiction]:
        """Return the earlier facts that disagree with a record.

        Cost:
            The first call reads the facts with an attribute, later ones the commits since.
        """
        with self._lock:
            self._catch_up()
            out: list[Contradiction] = []
            now = self._memory.now()
            for new in statements(record):
                ids = self._of.get(new.attribute, {})
                known = (each for id_ in ids if id_ != record.id for each in self._stated[id_])
                same = [each for each in known if each[:3] == new[:3] and _is_live(each.record, now)]
                out += [each for each in disagreeing([*same, new]) if each.newer.id == record.id]
            return out

    def _catch_up(self) -> None:
        facts = f.kind(*KINDS) & f.meta(ATTRIBUTE)
        newest = self._memory.changes(limit=1, newest_first=True)
        if self._cursor is not None:
            try:
                commits = self._memory.changes(since=self._cursor)
            except InvalidArgumentError:  # the store has another history: an older copy was restored
                self._cursor = None
            else:
                changed = list(dict.fromkeys(change.id for commit in commits for change in commit.changes))
                for id_ in changed:
                    self._remove(id_)
                if changed:
                    self._put(self._memory.find(facts & f.id(*changed)))
        if self._cursor is None:
            self._stated, self._of = {}, {}
            self._put(self._memory.find(facts))
        self._cursor = newest[0].cursor if newest else 0

    def _put(self, records: list[Record]) -> None:
        for record in records:
            self._stated[record.id] = list(statements(record))
            for each in self._stated[record.id]:
                self._of.setdefault(each.attribute, {})[record.id] = None

    def _remove(self, id_: str) -> None:
        for each in self._stated.pop(id_, ()):
            self._of.get(each.attribute, {}).pop(id_, None)


def _is_live(record: Record, now: datetime) -> bool:
    return record.expires is None or record.expires > now
