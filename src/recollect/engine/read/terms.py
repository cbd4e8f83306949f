"""Questions about the terms of a glossary, answered from an index of them."""

from __future__ import annotations

from recollect.engine.index.terms import Terms
from recollect.engine.term_results import Annotation, FoundTerm, SharedName
from recollect.operations.terms import AnnotateTerms, RecallTerms, SharedNames


class TermsOfAgent:
    """The terms of an agent as they are at a time.

    Args:
        terms: The terms.
        now: Terms that expire at or before this time (microseconds since 1970) are ignored.
    """

    def __init__(self, terms: Terms, now: int) -> None:
        self._index = terms.at(now)
        self._records = terms.records

    def recall(self, operation: RecallTerms) -> list[FoundTerm]:
        """Return the terms that answer a question, best first."""
        found = self._index.search(operation.question, operation.limit, typos=operation.typos)
        if operation.minimum is not None:
            found = [each for each in found if each.score >= operation.minimum]
        return [FoundTerm(self._records[each.id], each.score, each.exact, each.words) for each in found]

    def annotate(self, operation: AnnotateTerms) -> list[Annotation]:
        """Return where terms occur in a text."""
        records = self._records
        return [
            Annotation(each.start, each.end, each.name, tuple(records[id_] for id_ in each.ids))
            for each in self._index.mentions(operation.text)
        ]

    def shared_names(self, operation: SharedNames) -> list[SharedName]:
        """Return the names that several terms have."""
        terms = self._index.terms
        return [
            SharedName(name, tuple(terms[each].key for each in term_ids))
            for name, term_ids in self._index.shared_names()
        ]
