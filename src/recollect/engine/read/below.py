"""Which records lie below others in a tree: level by level, by the index where it is loaded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from recollect.engine.index.filter_terms import link_term
from recollect.engine.scope import Scope
from recollect.filters.tree import AllOf, Links
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch
from recollect.stores.base import ReadView


@dataclass(frozen=True, slots=True)
class Below:
    """The trees of a branch, as a scope sees them at a time.

    Attributes:
        view: The view of the store.
        branch: The branch.
        scope: The scope of the caller.
        words: The index at that view; None: records are read.
        now: Records that expire at or before this time do not count.
    """

    view: ReadView
    branch: Branch
    scope: Scope
    words: WordView | None
    now: int

    def __call__(self, ids: tuple[str, ...]) -> list[str]:
        """Return the ids of the records that lie below some records. A cycle of parents ends where it began.

        Cost:
            With the index, one look-up for each record that is found; without, all records once for each level.
        """
        found: dict[str, None] = {}
        level = list(ids)
        while level:
            level = [each for each in dict.fromkeys(self._children(level)) if each not in found]
            found |= dict.fromkeys(level)
        return list(found)

    def _children(self, ids: list[str]) -> Iterable[str]:
        if self.words is None:
            where = AllOf.of(self.scope.filter, Links("parent", tuple(ids)))
            records = self.view.select(self.branch, where, order="id", now=self.now)
            return [self.scope.shown_id(record.id) for record in records]
        words = self.words.at(self.now)
        table = words.table
        flags = words.having([link_term("parent", each) for each in ids]) & table.alive[: table.count]
        for name, value in self.scope.fixed:
            flags &= table.having(name, [value])
        return sorted(self.scope.shown_id(table.id(number)) for number in np.flatnonzero(flags).tolist())
