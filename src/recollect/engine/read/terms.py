"""Questions about the terms of a glossary, answered from an index of them."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.engine.index.terms import Terms
from recollect.engine.scope import Scope
from recollect.engine.term_results import Annotation, FoundTerm, SharedName
from recollect.ledger.commits import Branch
from recollect.operations.terms import AnnotateTerms, RecallTerms, SharedNames
from recollect.records.record import Record
from recollect.stores.base import ReadView


class Glossary:
    """The terms of an agent, with the view that their records are read from.

    Args:
        terms: The terms at this view.
        view: The view.
        branch: The branch of the glossary.
        scope: The scope of the caller.
        now: Terms that expire at or before this time (microseconds since 1970) are ignored.
    """

    def __init__(self, terms: Terms, view: ReadView, branch: Branch, scope: Scope, now: int) -> None:
        self._index = terms.at(now)
        self._view = view
        self._branch = branch
        self._scope = scope

    def recall(self, operation: RecallTerms) -> list[FoundTerm]:
        """Return the terms that answer a question, best first."""
        found = self._index.search(operation.question, operation.limit, typos=operation.typos)
        if operation.minimum is not None:
            found = [each for each in found if each.score >= operation.minimum]
        records = self._records(each.id for each in found)
        return [FoundTerm(records[each.id], each.score, each.exact, each.words) for each in found]

    def annotate(self, operation: AnnotateTerms) -> list[Annotation]:
        """Return where terms occur in a text."""
        found = self._index.mentions(operation.text)
        records = self._records(each for mention in found for each in mention.ids)
        return [
            Annotation(mention.start, mention.end, mention.name, tuple(records[each] for each in mention.ids))
            for mention in found
        ]

    def shared_names(self, operation: SharedNames) -> list[SharedName]:
        """Return the names that several terms have."""
        terms = self._index.terms
        return [
            SharedName(name, tuple(terms[each].key for each in term_ids))
            for name, term_ids in self._index.shared_names()
        ]

    def _records(self, record_ids: Iterable[str]) -> dict[str, Record]:
        """Return records as the scope shows them, by their stored ids."""
        stored = self._view.several(self._branch, list(dict.fromkeys(record_ids)))
        return {record_id: self._scope.shown(Record.load(each.payload)) for record_id, each in stored.items()}
