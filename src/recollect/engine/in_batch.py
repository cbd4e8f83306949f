"""An open batch, as reading operations see it: the records with the uncommitted changes of the batch.

A batch holds the write lock, so no model is called: all other writers would have to wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from recollect.engine.read.full_text import grep
from recollect.engine.read.queries import Reading
from recollect.engine.results import RecordList
from recollect.engine.write.batch import Writing
from recollect.errors import UnsupportedError
from recollect.filters.tree import Filter
from recollect.operations import Count, Find, Grep

T = TypeVar("T")


class InBatch:
    """A `Reader` of an open transaction.

    Args:
        writing: The transaction.
    """

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self.branch = writing.branch
        self.scope = writing.scope
        self.intake = writing.services.intake
        self.now = writing.now

    def on_view(self, read: Callable[[Reading], T]) -> T:
        """Call `read` with the transaction. See `Reader.on_view`."""
        return read(self._writing.reading())

    def on_records(self, read: Callable[[Reading], T], operation: Find | Count | None = None) -> T:
        """Call `read` with the transaction. See `Reader.on_records`."""
        return read(self._writing.reading())

    def on_index(self, read: Callable[[Reading], T]) -> T:
        """Call `read` with the transaction and a copy of the index that has its changes. See `Reader.on_index`."""
        return read(self._writing.reading(self._writing.words()))

    def on_vectors(self, text: str, read: Callable[[Reading], T]) -> T:
        """Call `read` as `on_index` does: no text is embedded. See `Reader.on_vectors`."""
        return self.on_index(read)

    def followed(self, index: str, key: Hashable, read: Callable[[Any, int], T]) -> T:
        """Call `read` with the index of a facet, rebuilt if the batch has changes. See `Reader.followed`."""
        writing = self._writing
        if writing.writer.touched:
            now = writing.reads_at
            return read(writing.services.facets[index].read(writing.transaction, key, now), now)
        found: T = writing.services.followed(index, self.branch, key, read)  # no other writer can commit meanwhile
        return found

    def note_uses(self, reading: Reading, record_ids: list[str]) -> None:
        """Do nothing: the uses of a batch are not noted."""

    def embed_missing(self) -> tuple[str, ...]:
        """Refuse."""
        raise UnsupportedError("waiting for vectors", "a batch holds the write lock: recall with the memory")

    def embed_candidates(self, where: Filter) -> tuple[str, ...]:
        """Refuse."""
        raise UnsupportedError("embedding texts", "a batch holds the write lock: search with the memory")

    def grep(self, operation: Grep) -> RecordList:
        """Return the records that match a full-text query."""
        services, writer = self._writing.services, self._writing.writer
        staged = [writer.live(each) or each for each in writer.touched]
        store, fulltext, reads_at = services.store, services.fulltext, services.reads_at
        return grep(operation, self.branch, self.scope, store, fulltext, reads_at, lambda view: staged)
