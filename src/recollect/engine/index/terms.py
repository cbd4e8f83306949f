"""The terms of each agent, derived from the records of a glossary like every other index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from recollect.engine.follower import RecordFollower
from recollect.engine.scope import Scope
from recollect.errors import InvalidArgumentError
from recollect.filters.tree import AllOf, Is
from recollect.indexes.terms.index import TermIndex
from recollect.ledger.commits import Branch
from recollect.operations.terms import Tokenizer
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.records.terms import entry_of
from recollect.stores.base import ReadView
from recollect.text.words import terms as words_of

#: Limit on the memory of the terms of all glossaries together, in bytes.
_MOST_BYTES = 2**28
#: Approximate memory of a term with its record, and of a token of it.
_TERM_BYTES, _TOKEN_BYTES = 4000, 120


class TermsOf(NamedTuple):
    """What decides which terms an index has, and how their texts are read.

    Attributes:
        branch: The branch of the glossary.
        scope: The scope of the caller.
        agent: The agent.
        tokenizer: Returns the tokens of a text; None: words.
    """

    branch: Branch
    scope: Scope
    agent: str
    tokenizer: Tokenizer | None = None


def words(text: str) -> list[str]:
    """Return the words of a text without their endings, and without stop words."""
    return [term for term, _ in words_of(text, divided=False)]


class Terms:
    """The terms of one agent as a scope sees them.

    Args:
        key: What decides which terms these are.
        records: Records, of which the terms are taken.

    Attributes:
        index: The terms, by the stored ids of their records.
        records: The records as the scope shows them, by their stored ids.
    """

    def __init__(self, key: TermsOf, records: Iterable[Record]) -> None:
        self._key = key
        self.index = TermIndex(words if key.tokenizer is None else checked_tokenizer(key.tokenizer))
        self.records: dict[str, Record] = {}
        self._expiries: dict[str, int] = {}
        for record in records:
            self.put(record)

    def put(self, record: Record) -> None:
        """Insert the term of a record, or replace it."""
        self.remove(record.id)
        entry = entry_of(record)
        if entry is None or record.agent != self._key.agent or not self._key.scope.admits(record):
            return
        if record.expires is not None:
            self._expiries[record.id] = microseconds(record.expires)
        self.records[record.id] = self._key.scope.shown(record)
        self.index.put(record.id, entry.key, entry.aliases, entry.text)

    def remove(self, record_id: str) -> None:
        """Remove the term of a record, if it is there."""
        self._expiries.pop(record_id, None)
        self.records.pop(record_id, None)
        self.index.remove(record_id)

    def at(self, now: int) -> TermIndex:
        """Return the index without the terms that have expired at a time, in microseconds since 1970.

        They are not needed again: the time of the reads of a store never goes back.
        """
        for record_id in [each for each, expiry in self._expiries.items() if expiry <= now]:
            self.remove(record_id)
        return self.index

    @property
    def nbytes(self) -> int:
        """The approximate memory of the terms, in bytes."""
        return _TERM_BYTES * len(self.index) + _TOKEN_BYTES * self.index.tokens


def terms_at(view: ReadView, key: TermsOf, now: int) -> Terms:
    """Return the terms of an agent, read from all of its records."""
    where = AllOf.of(key.scope.filter, Is("agent", (key.agent,)))
    return Terms(key, view.select(key.branch, where, order="id", now=now))


def terms_follower() -> RecordFollower[TermsOf, Terms]:
    """Return the terms of the agents of a store, caught up by the log."""
    return RecordFollower(_MOST_BYTES, terms_at)


def checked_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer whose results are checked."""

    def tokens(text: str) -> Sequence[str]:
        found = tokenizer(text)
        if isinstance(found, (str, bytes, Mapping)) or not all(isinstance(each, str) for each in found):
            raise InvalidArgumentError("tokenizer", found, "must return a list of texts")
        return found

    return tokens
