"""`Reader`: what a reading operation is executed on.

The present, an open batch and a past moment are readers, so each operation that reads is written once (`engine.reads`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from datetime import datetime
from typing import Any, Protocol, TypeVar

from recollect.engine.read.queries import Reading
from recollect.engine.results import Export, RecordList
from recollect.engine.scope import Scope
from recollect.engine.write.drafts import Intake
from recollect.errors import ScopeError
from recollect.filters.tree import Filter
from recollect.ledger.commits import Branch
from recollect.ledger.proofs import Proof
from recollect.ledger.receipts import Receipt as ReceiptForm
from recollect.operations import Count, Find, Grep, Prove, Receipt

T = TypeVar("T")


class Reader(Protocol):
    """The records of a branch at one moment, as a scope sees them.

    The classes of `engine.readers` implement it. They differ in the view of the store, the index, the
    clock and the vectors.

    Attributes:
        scope: The scope of the caller.
        intake: The limits and the default language of the memory.
        now: The time of the moment, in the zone of the store.
    """

    branch: Branch
    scope: Scope
    intake: Intake
    now: datetime

    def part(self, branch: Branch) -> Reader:
        """Return a reader of another part of the memory, at the same moment."""

    def on_view(self, read: Callable[[Reading], T]) -> T:
        """Call `read` with a view for reading commits, settings, or records by their ids."""

    def on_records(self, read: Callable[[Reading], T], operation: Find | Count | None = None) -> T:
        """Call `read` with a view for looking for records.

        Args:
            read: What to call.
            operation: Use the index if the store would otherwise read all records for this operation.
        """

    def on_index(self, read: Callable[[Reading], T]) -> T:
        """Call `read` with a view and the word index at it."""

    def on_vectors(self, text: str, read: Callable[[Reading], T], *, asking: bool = False) -> T:
        """Call `read` with a view, the word index and the vector of a text, if there is an embedder.

        Args:
            text: What is embedded.
            read: What to call.
            asking: Whether the text is a question, of which the names of speakers are not embedded.
        """

    def followed(self, index: str, key: Hashable, read: Callable[[Any, int], T], own: Hashable = None) -> T:
        """Call `read` with the index of a facet, and the time that decides which records have expired.

        Args:
            index: The name of the index (`engine.facets.FacetIndex`).
            key: What decides which records the index has.
            read: What to call.
            own: The key of an index that suffices for this read, with fewer records. It is used where no index is
                cached, so that not more is read than needed. None: `key`.
        """

    def note_uses(self, reading: Reading, record_ids: Iterable[str]) -> None:
        """Note that records were used, if the quota evicts by use."""

    def embed_missing(self) -> tuple[str, ...]:
        """Embed the texts that have no vector. Return notes about those that could not be embedded."""

    def embed_candidates(self, where: Filter) -> tuple[str, ...]:
        """Embed the texts without a vector of the records that match. Return notes if some still have none."""

    def grep(self, operation: Grep) -> RecordList:
        """Return the records that match a full-text query."""


class CommittedReader(Reader, Protocol):
    """A `Reader` outside of a batch."""

    def export(self, parts: Collection[str] | None) -> Export:
        """Open a snapshot of the live records of parts of the memory; None: of all."""

    def prove(self, operation: Prove) -> Proof:
        """Return a proof that a record is stored or not."""

    def receipt(self, operation: Receipt) -> ReceiptForm:
        """Return the receipt of an answer."""


def check_whole(scope: Scope, what: str) -> None:
    """Raise ScopeError within a scope; `what` names what it may not use."""
    if scope.fixed:
        raise ScopeError(what, str(scope))
