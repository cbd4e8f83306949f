"""A document store whose documents are records of a memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Self
from urllib.parse import urlsplit

from haystack import Document, default_from_dict, default_to_dict
from haystack.dataclasses import ByteStream
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy

import recollect
from recollect import Record
from recollect.compat.documents import Documents, StoredDocument, document_id
from recollect.compat.haystack.filters import META, condition
from recollect.compat.objects import value_of
from recollect.compat.opening import Closing, Place, opened
from recollect.compat.threads import awaited
from recollect.errors import UnsupportedError

_NAME = "haystack"
#: What a document without a text has in place of it.
_NO_TEXT = "no_text"


class RecollectDocumentStore(Closing):
    """Documents in a memory. Search needs no embedding model; embeddings that documents have come back as they were.

    Each method has one for asyncio with the same arguments and result, such as `write_documents_async`. Documents are
    returned oldest first.

    Args:
        memory: A path or address that `recollect.open` takes; the address of a server; or a memory, which stays open.
            A pipeline with a memory cannot be serialized.
        collection: The name of the collection. Documents of other collections are not found.
        user: The user to whom the documents belong; default: that of a scoped memory, or else none.
        agent: The agent to whom they belong; default as for `user`.

    Raises:
        InvalidArgumentError: A name is not a non-empty text.
        ScopeError: The memory is scoped to another user or agent.
        RecollectError: The memory cannot be opened.

    Cost:
        Each change is one durable commit. With a filter, the documents that the index admits are read.
    """

    def __init__(
        self,
        memory: Place = ":memory:",
        *,
        collection: str = _NAME,
        user: str | None = None,
        agent: str | None = None,
    ) -> None:
        self._stated = {"memory": memory, "collection": collection, "user": user, "agent": agent}
        self._opened = opened(memory)
        try:
            self._documents = Documents(self._opened.memory, actor=_NAME, collection=collection, user=user, agent=agent)
        except BaseException:
            self._opened.close()
            raise

    @property
    def memory(self) -> recollect.Memory:
        """The memory with the documents: its history, `context`, `erase` and all other calls."""
        return self._opened.memory

    def to_dict(self) -> dict[str, Any]:
        """Return the store as a dictionary.

        Raises:
            UnsupportedError: It was made with a memory, and not with a path or an address.
        """
        return default_to_dict(self, **stated(self._stated, "the document store"))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the store of a dictionary of `to_dict`."""
        return default_from_dict(cls, data)

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    # Writing

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Store documents in one commit and return how many.

        Args:
            documents: The documents. Their metadata must have a JSON form.
            policy: What happens to one whose id is stored: FAIL (and NONE), SKIP, or OVERWRITE, which keeps the earlier
                one in the history.

        Raises:
            ValueError: `documents` is no list of documents.
            DuplicateDocumentError: One is stored, or twice in the list, and the policy is FAIL.
            TypeError: Metadata has no JSON form.
            InvalidRecordError: A document exceeds a limit of the memory, or is not valid Unicode.
            RejectedError: A policy of the memory refuses a secret.
            StoreError: The store failed.

        Nothing is stored if this raises.
        """
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            raise ValueError("documents must be a list of Documents")
        chosen: dict[str, Document] = {}
        with self._documents.batch("write_documents") as batch:
            known = self._documents.get([each.id for each in documents], batch)
            for document, record in zip(documents, known, strict=True):
                if record is not None or document.id in chosen:
                    if policy in (DuplicatePolicy.NONE, DuplicatePolicy.FAIL):
                        raise DuplicateDocumentError(f"ID '{document.id}' already exists.")
                    if policy == DuplicatePolicy.SKIP:
                        continue
                chosen[document.id] = document
            self._documents.put_in(batch, [_stored(each) for each in chosen.values()])
        return len(chosen)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents in one commit. Unknown ids are no error. Their history stays, until `memory.erase`."""
        self._documents.delete(document_ids, "delete_documents")

    def delete_all_documents(self, recreate_index: bool = False) -> None:
        """Delete all documents of the collection in one commit.

        Args:
            recreate_index: Makes no difference: the index of a memory is derived from its records.
        """
        self._documents.clear("delete_all_documents")

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that fit in one commit and return how many."""
        return self._documents.delete_where(condition(filters, document_of), "delete_by_filter")

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Set keys of the metadata of the documents that fit, in one commit, and return how many."""

        def changed(record: Record) -> StoredDocument:
            document = document_of(record)
            return _stored(replace(document, meta={**document.meta, **meta}))

        return self._documents.change(condition(filters, document_of), changed, "update_by_filter")

    # Reading

    def count_documents(self) -> int:
        """Return the number of documents."""
        return self._documents.count()

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return the documents that fit a filter, or all, oldest first.

        Raises:
            FilterError: The filter lacks a key, has an unknown operator, or compares what cannot be compared.
            ValueError: The filter is no dictionary.
        """
        return [document_of(record) for record in self._records(filters)]

    def bm25_retrieval(self, query: str, filters: dict[str, Any] | None = None, top_k: int = 10) -> list[Document]:
        """Return up to `top_k` documents that answer a query, best first, with `recall`.

        Their `score` is the confidence, 0 to 1: the estimated probability that the document answers the query.

        Raises:
            ValueError: The query is blank, or `top_k` is no number, 0 or more.
            FilterError: As for `filter_documents`.
        """
        if not isinstance(query, str) or not query.strip():
            raise ValueError("the query must be a text that is not blank")
        if not isinstance(top_k, int) or top_k < 0:
            raise ValueError(f"top_k must be a number, 0 or more, not {top_k!r}")
        hits = self._documents.recalled(query, condition(filters, document_of), top_k)
        return [document_of(hit.record, hit.confidence) for hit in hits]

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Return the number of documents that fit."""
        return sum(1 for _ in self._records(filters))

    def count_unique_metadata_by_filter(self, filters: dict[str, Any], metadata_fields: list[str]) -> dict[str, int]:
        """Return how many values each of some keys of the metadata has among the documents that fit."""
        metas = self._metas(filters)
        return {each: len(_values(metas, _key(each))) for each in metadata_fields}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """Return the type of each key of the metadata: "keyword", "int", "float" or "boolean"."""
        types = {bool: "boolean", int: "int", float: "float"}
        return {
            key: {"type": types.get(type(value), "keyword")}
            for meta in self._metas(None)
            for key, value in meta.items()
            if value is not None
        }

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """Return the least and the greatest value of a key; None where it has none, or numbers among texts."""
        values = _values(self._metas(None), _key(metadata_field))
        compared = [value for value in values if isinstance(value, (int, float, str))]
        if not compared or len({isinstance(value, str) for value in compared}) > 1:
            return {"min": None, "max": None}
        return {"min": min(compared), "max": max(compared)}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: dict[str, Any] | None = None,
    ) -> tuple[list[Any], int]:
        """Return a page of the values of a key, by their text, and how many there are.

        Args:
            metadata_field: The key, with or without "meta." before it.
            search_term: Only values that contain it, in any case.
            from_: The number of values before the page.
            size: The number of values of the page.
            filters: Only values of documents that fit.
        """
        folded = (search_term or "").lower()
        values = [
            value for value in _values(self._metas(filters), _key(metadata_field)) if folded in str(value).lower()
        ]
        values.sort(key=lambda value: (str(value), type(value).__name__))
        return values[from_ : from_ + size], len(values)

    count_documents_async = awaited(count_documents)
    filter_documents_async = awaited(filter_documents)
    write_documents_async = awaited(write_documents)
    delete_documents_async = awaited(delete_documents)
    delete_all_documents_async = awaited(delete_all_documents)
    delete_by_filter_async = awaited(delete_by_filter)
    update_by_filter_async = awaited(update_by_filter)
    bm25_retrieval_async = awaited(bm25_retrieval)
    count_documents_by_filter_async = awaited(count_documents_by_filter)
    count_unique_metadata_by_filter_async = awaited(count_unique_metadata_by_filter)
    get_metadata_fields_info_async = awaited(get_metadata_fields_info)
    get_metadata_field_min_max_async = awaited(get_metadata_field_min_max)
    get_metadata_field_unique_values_async = awaited(get_metadata_field_unique_values)

    def _records(self, filters: Mapping[str, Any] | None) -> Iterator[Record]:
        return self._documents.all(condition(filters, document_of), order="oldest")

    def _metas(self, filters: Mapping[str, Any] | None) -> list[dict[str, Any]]:
        return [value_of(record)[META] for record in self._records(filters)]


def stated(arguments: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return arguments of a constructor as they are serialized.

    Raises:
        UnsupportedError: The memory is none that another process could open, or its address has a password.
    """
    if isinstance(arguments["memory"], recollect.Memory):
        raise UnsupportedError(f"serialization of {what}", "it was made with a memory: pass its path or its address")
    place = str(arguments["memory"])
    if "://" in place and urlsplit(place).password is not None:
        rule = "its address has a password: leave it out, and state it in PGPASSWORD or a file .pgpass"
        raise UnsupportedError(f"serialization of {what}", rule)
    return {**arguments, "memory": place}


def document_of(record: Record, score: float | None = None) -> Document:
    """Return the document of a record."""
    value = value_of(record)
    no_text = value.pop(_NO_TEXT, False)
    blob = value.pop("blob", None)
    if score is not None:
        value["score"] = score
    document = Document.from_dict({**value, "id": document_id(record), "content": None if no_text else record.text})
    if blob is None:
        return document
    data = base64.b64decode(blob["data"])
    return replace(document, blob=ByteStream(data, meta=blob["meta"], mime_type=blob["mime_type"]))


def _stored(document: Document) -> StoredDocument:
    fields = document.to_dict(flatten=False)
    value = {
        name: fields[name] for name in fields if fields[name] is not None and name not in ("id", "content", "blob")
    }
    if document.content is None:
        value[_NO_TEXT] = True
    if document.blob is not None:
        data = base64.b64encode(document.blob.data).decode("ascii")
        value["blob"] = {"data": data, "meta": document.blob.meta, "mime_type": document.blob.mime_type}
    return StoredDocument(document.id, document.content or "", value)


def _key(field: str) -> str:
    return field.removeprefix(f"{META}.")


def _values(metas: list[dict[str, Any]], key: str) -> list[Any]:
    """Return the different values of a key, of which 1, 1.0, True and "1" are four."""
    found = [meta[key] for meta in metas if meta.get(key) is not None]
    return list({(type(value), json.dumps(value, sort_keys=True)): value for value in found}.values())
