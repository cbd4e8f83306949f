"""Documents as records: the storage of adapters whose frameworks keep texts with metadata in a collection.

A document is a record of the kind `document`: its text is the content, and its metadata, or all else that the framework
knows of it, is an object (`compat.objects`) by which it is filtered. `recall` finds documents together with all other
records, unless `kind=` excludes them.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import recollect
from recollect import Batch, Hit, Record
from recollect import filters as f
from recollect.compat.item_log import owned_by, owners_of
from recollect.compat.objects import object_metadata
from recollect.compat.searching import Condition, Order, Searcher
from recollect.compat.stored_json import safe_name, unlettered
from recollect.compat.storing import store_all
from recollect.errors import InvalidArgumentError
from recollect.operations import GetPolicies, Remember

KIND = "document"
#: The key of the metadata that has the id of a document.
_ID = "document"
#: A longer id is a digest in the id of the record, which has at most 255 bytes with its scope.
_MAX_ID_BYTES = 120


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it is stored.

    Attributes:
        id: Its id, any text.
        text: Its text; "" if it has none.
        value: What else there is of it, a JSON object.
    """

    id: str
    text: str
    value: Mapping[str, Any]


class Documents:
    """The documents of one collection in a memory, of one owner or of none.

    Args:
        memory: The memory. It stays open.
        actor: Who makes the changes, such as the name of the framework.
        collection: The name of the collection. Collections of other names, frameworks and owners are separate.
        user: The user to whom the documents belong; None: that of a scoped memory, or else none.
        agent: The agent; None as for `user`.
        waits: Whether a search first embeds the texts that have no vector; needs a memory with an embedder.

    Raises:
        InvalidArgumentError: The collection, the user or the agent is not a non-empty text.
        ScopeError: The memory is scoped to another user or agent.
    """

    def __init__(
        self,
        memory: recollect.Memory,
        *,
        actor: str,
        collection: str,
        user: str | None = None,
        agent: str | None = None,
        waits: bool = False,
    ) -> None:
        if not isinstance(collection, str) or not collection:
            raise InvalidArgumentError("collection", collection, "must be a text that is not empty")
        collection = unicodedata.normalize("NFC", collection)  # as the source of a record is
        self._memory = memory
        self._actor = actor
        owners = owners_of(memory, user=user, agent=agent)
        self._source = f"{actor}:{collection}"
        self._fields = {"kind": KIND, "source": self._source} | owners
        self._own = f.all_of(f.kind(KIND), f.source(self._source), owned_by(owners))
        if "conversation" not in memory.scope:
            self._own &= ~f.has("conversation")
        # The ids of two owners must differ: an id is that of one record of the memory.
        named = [self._source, *(f"{name}={value}" for name, value in sorted(owners.items()))]
        self._named = hashlib.sha256("\0".join(named).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._searcher = Searcher(memory, waits=waits)

    def put(self, documents: Sequence[StoredDocument], reason: str) -> None:
        """Store documents in one commit; each takes the place of the one with its id.

        Raises:
            TypeError: A value has no JSON form.
            InvalidRecordError: A text is not valid Unicode, or a document exceeds a limit of the memory.
            RejectedError: A policy of the memory refuses a secret.
            QuotaError: They do not fit in the quota.
            StoreError: The store failed.

        Nothing is stored if this raises.
        """
        if documents:
            with self._memory.batch(actor=self._actor, reason=reason) as batch:
                self.put_in(batch, documents)

    def put_in(self, batch: Batch, documents: Sequence[StoredDocument]) -> None:
        """Store documents in a batch. The errors are those of `put`."""
        policies = batch.execute(GetPolicies())
        last = {document.id: document for document in documents}
        store_all(batch, [self._remember(document, policies) for document in last.values()])

    def batch(self, reason: str) -> Any:
        """Return a context manager whose changes are one commit. See `Memory.batch`."""
        return self._memory.batch(actor=self._actor, reason=reason)

    def get(self, ids: Iterable[str], calls: Any = None) -> list[Record | None]:
        """Return the records of documents in the order of their ids; None for an id without one.

        Args:
            ids: The ids of the documents.
            calls: A batch, to read what it has changed.
        """
        named = [self.record_id(each) for each in ids]
        return [self._owned(record) for record in (calls or self._memory).get_all(named)]

    def delete(self, ids: Iterable[str], reason: str) -> int:
        """Delete documents in one commit and return how many there were. Unknown ids are no error."""
        named = [self.record_id(each) for each in ids]
        if not named:
            return 0
        with self.batch(reason) as batch:
            found = [record for record in batch.get_all(named) if self._owned(record) is not None]
            return int(batch.forget_all(dict.fromkeys(record.id for record in found)))

    def clear(self, reason: str) -> int:
        """Delete all documents in one commit and return how many there were. Their history stays in the log."""
        with self.batch(reason) as batch:
            return int(batch.forget_where(self._own, parts=("records",)))

    def change(self, condition: Condition, change: Callable[[Record], StoredDocument], reason: str) -> int:
        """Replace each document that fits by what a function returns, in one commit; return how many."""
        with self.batch(reason) as batch:
            found = list(filter(condition.holds, batch.find(self._own & condition.bound)))
            self.put_in(batch, [change(record) for record in found])
            return len(found)

    def delete_where(self, condition: Condition, reason: str) -> int:
        """Delete each document that fits, in one commit; return how many."""
        with self.batch(reason) as batch:
            found = filter(condition.holds, batch.find(self._own & condition.bound))
            return int(batch.forget_all([record.id for record in found]))

    def all(self, condition: Condition, order: Order = "newest") -> Iterator[Record]:
        """Yield the records of the documents that fit. See `Searcher.all`."""
        return self._searcher.all(condition.within(self._own), order)

    def count(self) -> int:
        """Return how many documents there are."""
        return int(self._memory.count(self._own))

    def recalled(self, query: str, condition: Condition, count: int, **options: Any) -> list[Hit]:
        """Return up to `count` documents that fit and answer a query, best first. See `Searcher.recalled`."""
        return self._searcher.recalled(query, condition.within(self._own), count, **options)

    def filled(self, query: str, condition: Condition, count: int, **options: Any) -> list[tuple[Record, Hit | None]]:
        """Return `count` documents that fit if there are as many, the hits first. See `Searcher.filled`."""
        return self._searcher.filled(query, condition.within(self._own), count, **options)

    def record_id(self, document_id: str) -> str:
        """Return the id of the record of a document."""
        data = document_id.encode("utf-8", "surrogatepass")
        is_readable = document_id.isascii() and document_id.isprintable() and 0 < len(data) <= _MAX_ID_BYTES
        own = document_id if is_readable else f"sha256:{hashlib.sha256(data).hexdigest()}"
        return f"document-{self._named}/{own}"

    def _owned(self, record: Record | None) -> Record | None:
        is_own = record is not None and record.kind == KIND and record.source == self._source
        return record if is_own else None

    def _remember(self, document: StoredDocument, policies: Any) -> Remember:
        try:
            metadata = {_ID: safe_name(document.id), **object_metadata(document.value, policies)}
        except (TypeError, ValueError) as error:
            raise TypeError(f"the metadata of the document {document.id!r} is not JSON: {error}") from error
        fields = {**self._fields, "metadata": metadata, "searchable": bool(document.text.strip())}
        return Remember(
            content=document.text,
            id=self.record_id(document.id),
            fields=fields,
            if_exists="update",
            standing=False,
        )


def document_id(record: Record) -> str:
    """Return the id of the document of a record."""
    return unlettered(record.metadata[_ID])
