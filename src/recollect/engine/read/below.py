"""Which records lie below others in a tree: level by level, by the index where it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.engine.index.filter_terms import link_term
from recollect.engine.scope import Scope, linked_id, qualifier_of, unqualified
from recollect.filters.tree import AllOf, Custom, Filter, Links
from recollect.indexes.words.index import WordView
from recollect.ledger.commits import Branch
from recollect.records.record import Record
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

    def __call__(self, ids: tuple[str, ...]) -> Filter:
        """Return the filter that the records below some records match. A cycle of parents ends where it began.

        A parent that was named in a scope is one of that scope.

        Cost:
            With the index, one look-up for each record that is found; without, all records once for each level.
        """
        found: dict[str, None] = {}
        level, strangers = list(ids), False
        while level:
            children, others = self._children(level)
            strangers = strangers or others
            level = [each for each in dict.fromkeys(children) if each not in found]
            found |= dict.fromkeys(level)
        parents = frozenset((*ids, *found))
        named = Links("parent", tuple(sorted({unqualified(each) for each in parents})))
        # Only where records of other scopes name parents with the same ids, as each record must then be looked at.
        return AllOf.of(named, Custom(lambda record: _parent(record.id, record) in parents)) if strangers else named

    def _children(self, ids: list[str]) -> tuple[list[str], bool]:
        """Return the ids of the children of some records, and whether others name parents with the same ids."""
        above, names = set(ids), [unqualified(each) for each in ids]
        if self.words is None:
            where = AllOf.of(self.scope.filter, Links("parent", tuple(dict.fromkeys(names))))
            records = self.view.select(self.branch, where, order="id", now=self.now)
            shown = {
                shown_id: _parent(shown_id, each) for each in records for shown_id in (self.scope.shown_id(each.id),)
            }
            children = [each for each, parent in shown.items() if parent in above]
            return children, len(children) < len(shown)
        words = self.words.at(self.now)
        table = words.table
        seen = table.alive[: table.count]
        for name, value in self.scope.fixed:
            seen = seen & table.having(name, [value])
        of_qualifier: dict[str, list[str]] = {}
        for each in ids:
            of_qualifier.setdefault(qualifier_of(each), []).append(unqualified(each))
        out: list[str] = []
        others = False
        for qualifier, parents in of_qualifier.items():
            flags = words.having([link_term("parent", each) for each in parents]) & seen
            children = [self.scope.shown_id(table.id(number)) for number in np.flatnonzero(flags).tolist()]
            own = [each for each in children if qualifier_of(each) == qualifier]
            others = others or len(own) < len(children)
            out += own
        return sorted(out), others


def _parent(shown_id: str, record: Record) -> str | None:
    return linked_id(shown_id, record.parent)
