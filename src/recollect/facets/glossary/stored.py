"""The terms of each agent, derived from the records of a glossary, and the questions about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from recollect.engine.facets import Execution, ExpiringIndex
from recollect.engine.reader import Reader
from recollect.engine.scope import Scope
from recollect.errors import InvalidArgumentError
from recollect.facets.glossary.index.index import TermIndex
from recollect.facets.glossary.operations import (
    AnnotateTerms,
    Annotation,
    FoundTerm,
    RecallTerms,
    SharedName,
    SharedNames,
    Tokenizer,
)
from recollect.facets.glossary.records import entry_of
from recollect.filters.tree import AllOf, Is
from recollect.ledger.commits import Branch
from recollect.records.record import Record
from recollect.stores.base import ReadView
from recollect.text.words import terms as words_of

#: Approximate memory of a term with its record, and of a token of it.
_TERM_BYTES, _TOKEN_BYTES = 4000, 120


class TermsOf(NamedTuple):
    """A key that says which terms an index has, and how their texts are read.

    Attributes:
        branch: The branch of the glossary.
        scope: The scope of the caller.
        tokenizer: Returns the tokens of a text; None: words.
    """

    branch: Branch
    scope: Scope
    agent: str
    tokenizer: Tokenizer | None = None


def words(text: str) -> list[str]:
    """Return the words of a text without their endings, and without stop words."""
    return [term for term, _ in words_of(text, divided=False)]


class Terms(ExpiringIndex):
    """The terms of one agent as a scope sees them. Changed in place: a caller locks it.

    Args:
        key: What decides which terms these are.
        records: Records, of which the terms are taken.
    """

    def __init__(self, key: TermsOf, records: Iterable[Record]) -> None:
        self._key = key
        self._index = TermIndex(words if key.tokenizer is None else checked_tokenizer(key.tokenizer))
        self._records: dict[str, Record] = {}  # as the scope shows them, by their stored ids
        super().__init__(records)

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

    @property
    def nbytes(self) -> int:
        """The approximate memory of the terms, in bytes."""
        return _TERM_BYTES * len(self._index) + _TOKEN_BYTES * self._index.tokens

    def _insert(self, record: Record) -> bool:
        entry = entry_of(record)
        if entry is None or record.agent != self._key.agent or not self._key.scope.admits(record):
            return False
        self._records[record.id] = self._key.scope.shown(record)
        self._index.put(record.id, entry.key, entry.aliases, entry.text)
        return True

    def _discard(self, record_id: str) -> None:
        self._records.pop(record_id, None)
        self._index.remove(record_id)


def _terms_at(view: ReadView, key: TermsOf, now: int) -> Terms:
    where = AllOf.of(key.scope.filter, Is("agent", (key.agent,)))
    return Terms(key, view.select(key.branch, where, order="id", now=now))


def checked_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer whose results are checked."""

    def tokens(text: str) -> Sequence[str]:
        found = tokenizer(text)
        if isinstance(found, (str, bytes, Mapping)) or not all(isinstance(each, str) for each in found):
            raise InvalidArgumentError("tokenizer", found, "must return a list of texts")
        return found

    return tokens


def _on_terms(query: Callable[[Terms, Any], Any]) -> Callable[[Reader, Any], Any]:
    """Return what executes an operation on the terms of the agent that it names."""

    def read(reader: Reader, operation: Any) -> Any:
        if isinstance(operation, RecallTerms):
            reader.intake.limits.check_question(operation.question)
        key = TermsOf(reader.branch, reader.scope, operation.agent, getattr(operation, "tokenizer", None))
        return reader.followed("terms", key, lambda terms, now: query(terms.at(now), operation))

    return read


EXECUTION = Execution(
    {
        RecallTerms: _on_terms(Terms.recall),
        AnnotateTerms: _on_terms(Terms.annotate),
        SharedNames: _on_terms(Terms.shared_names),
    },
    _terms_at,
)
