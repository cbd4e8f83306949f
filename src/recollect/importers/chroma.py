"""Documents of Chroma: its SQLite file with all collections, or what `collection.get()` returns, as JSON.

A document becomes a record of kind `knowledge`, whose id is the name of the collection and its own id. One without text
is stored with its metadata, and not searched. A later import updates the documents that Chroma has changed. Embeddings
are not imported. chromadb need not be installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from recollect.importers.base import (
    LEADS_OUT,
    Damage,
    Item,
    NamedImporter,
    Omission,
    SeenIds,
    format_error,
    leads_out,
    load_json,
)
from recollect.importers.databases import Database, is_database, opened, text_of
from recollect.importers.versions import VERSIONS
from recollect.quoting import printable
from recollect.records.messages.parts import NOTHING
from recollect.records.messages.values import UnreadableError, instant, kind_of

_FILE = "chroma.sqlite3"
#: The keys under which Chroma stores the text and the address of a document among its metadata.
_DOCUMENT, _URI = "chroma:document", "chroma:uri"
#: The columns of a value. Early releases lack the last one.
_VALUES = ("string_value", "int_value", "float_value", "bool_value")
_ARRAYS, _QUEUE, _ABOUT = "embedding_metadata_array", "embeddings_queue", "collection_metadata"
#: The tables that are read, with their columns.
_READ = {
    "collections": ("id", "name", "database_id"),
    "databases": ("id", "name"),
    "segments": ("id", "scope", "collection"),
    "embeddings": ("id", "segment_id", "embedding_id", "created_at"),
    "embedding_metadata": ("id", "key", *_VALUES[:3]),
}
#: Tables of Chroma with nothing that a user stored.
_OWN = (
    *("migrations", "acquire_write", "segment_metadata", "tenants", "maintenance_log", "max_seq_id"),
    *(_ARRAYS, _QUEUE, _ABOUT, "embeddings_queue_config"),
)
_DATABASE = "default_database"
#: The lists of the answer of `get()`, besides the ids.
_LISTS = ("documents", "metadatas", "uris")
#: Where the metadata of a record say what it was in Chroma.
_ORIGIN = "chroma"


class Chroma(NamedImporter):
    """`chroma.sqlite3`, the folder in which it is, or `{"ids": [...], "documents": [...], "metadatas": [...]}`."""

    name = "chroma"
    origin = "document"
    summary = "Chroma: its folder or chroma.sqlite3, or the JSON of collection.get(); documents with their metadata"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | Omission]:
        if os.path.isdir(path):
            file = path / _FILE
            if not os.path.lexists(file):
                raise format_error(path, "", f"is a folder that contains no {_FILE}")
            if not follow_links and leads_out(path, file):
                raise format_error(path, _FILE, LEADS_OUT)
            path = file
        if (not path.name.endswith(".json") and (path.name == _FILE or is_database(path))) or is_database(path):
            yield from self._database(path)
        else:
            yield from self._answer(path)

    # The SQLite file

    def _database(self, path: Path) -> Iterator[Item | Damage | Omission]:
        with opened(path) as database:
            for table, columns in _READ.items():
                database.need(table, *columns)
            for table in (_ARRAYS, _QUEUE, _ABOUT, "max_seq_id"):
                if table in database.tables:
                    database.need(table)
            try:
                there = list(_collections(database))
            except UnreadableError as error:
                raise format_error(path, "", str(error)) from None
            self.check_wanted(path, [each.name for each in there], "collection")
            seen = SeenIds()
            for collection in there:
                try:
                    count = _count(database, collection)
                    if self.wanted and collection.name not in self.wanted:
                        yield Omission("documents of other collections", count)
                        continue
                    yield from _documents(database, collection, seen)
                    yield from _waiting(database, collection)
                    yield Omission("embeddings", count)
                except UnreadableError as error:
                    yield Damage(f"the rest of the collection {printable(collection.name)!r}", str(error))
            try:
                yield Omission("settings and metadata of collections", database.count(_ABOUT))
            except UnreadableError as error:
                yield Damage(f"the table {_ABOUT}", str(error))
            yield from database.others((*_READ, *_OWN))

    # The answer of get()

    def _answer(self, path: Path) -> Iterator[Item | Damage | Omission]:
        data = load_json(path)
        ids = data.get("ids") if isinstance(data, dict) else None
        if not isinstance(ids, list):
            raise format_error(path, "", f'must be a folder with {_FILE}, or an object with the list "ids"')
        if any(isinstance(each, list) for each in ids):
            raise format_error(
                path, "", "is an answer of query(), which has a part of the collection: save that of get()"
            )
        self.check_wanted(path, [path.stem], "collection")
        lists: dict[str, list[Any]] = {}
        for key in _LISTS:
            values = data.get(key)
            if values is not None and (not isinstance(values, list) or len(values) != len(ids)):
                raise format_error(path, "", f'its "{key}" is not a list with an entry for each of its "ids"')
            lists[key] = values or [None] * len(ids)
        seen = SeenIds()
        for number, (own, *rest) in enumerate(zip(ids, *lists.values(), strict=True), 1):
            place = f"document {number}"
            try:
                document, metadata, uri = rest
                if not isinstance(own, str):
                    raise UnreadableError(f"its id is {kind_of(own)}, not text")
                if metadata is not None and not isinstance(metadata, dict):
                    raise UnreadableError(f"its metadata is {kind_of(metadata)}, not an object")
                yield _item(path.stem, own, document, uri, metadata or {}, {}, place, seen)
            except UnreadableError as error:
                yield Damage(place, str(error))
        for key in ("embeddings", "data"):
            values = data.get(key)
            yield Omission(key, 0 if values in NOTHING else len(ids))


class _Collection(NamedTuple):
    """A collection of a database.

    Attributes:
        id: Its id.
        name: Its name, with that of its database before it unless that is the default one.
        segment: The id of the segment with its documents.
    """

    id: str
    name: str
    segment: str


def _collections(database: Database) -> Iterator[_Collection]:
    """Yield the collections, by name. Raises UnreadableError."""
    query = """
        SELECT c.id, c.name, d.name, s.id FROM collections c
        LEFT JOIN databases d ON d.id = c.database_id
        JOIN segments s ON s.collection = c.id AND s.scope = 'METADATA' ORDER BY d.name, c.name, c.id"""
    for own, name, of, segment in database.rows(query):
        label = text_of(name, "name")
        if of not in (None, _DATABASE):
            label = f"{text_of(of, 'database')}/{label}"
        yield _Collection(text_of(own, "id"), label, text_of(segment, "segment"))


def _count(database: Database, collection: _Collection) -> int:
    ((count,),) = database.rows("SELECT count(*) FROM embeddings WHERE segment_id = ?", collection.segment)
    return int(count)


def _documents(database: Database, collection: _Collection, seen: SeenIds) -> Iterator[Item | Damage]:
    """Yield the documents of a collection. Raises UnreadableError."""
    query = "SELECT id, embedding_id, created_at FROM embeddings WHERE segment_id = ? ORDER BY id"
    for number, own, created in database.rows(query, collection.segment):
        place = printable(f"collection {collection.name!r}, document {own!r}"[:200])
        values = _values(database, number)
        try:
            time = {} if created is None else {"time": instant(created, UTC)}  # SQLite's times are in UTC
            document, uri = values.pop(_DOCUMENT, None), values.pop(_URI, None)
            yield _item(collection.name, text_of(own, "id"), document, uri, values, time, place, seen)
        except UnreadableError as error:
            yield Damage(place, str(error))


def _values(database: Database, number: int) -> dict[str, Any]:
    """Return the metadata of a document, its text and its address among them. Raises UnreadableError."""
    has_flags = database.has("embedding_metadata", *_VALUES)
    columns = ", ".join(_VALUES if has_flags else (*_VALUES[:3], "NULL"))
    query = f"SELECT key, {columns} FROM {{}} WHERE id = ? ORDER BY {{}}"
    out = {key: _value(row) for key, *row in database.rows(query.format("embedding_metadata", "key"), number)}
    if database.has(_ARRAYS, "id", "key", *_VALUES):
        for key, *row in database.rows(query.format(_ARRAYS, "rowid"), number):
            listed = out.setdefault(key, [])
            if isinstance(listed, list):
                listed.append(_value(row))
    return out


def _value(row: list[Any]) -> Any:
    *others, flag = row
    found = next((value for value in others if value is not None), None)
    return bool(flag) if found is None and flag is not None else found


def _waiting(database: Database, collection: _Collection) -> Iterator[Damage]:
    """Yield the changes that Chroma has in its queue and not yet in the tables. Raises UnreadableError."""
    if not database.has(_QUEUE, "seq_id", "topic") or not database.has("max_seq_id", "segment_id", "seq_id"):
        return
    done = 0
    for (seq,) in database.rows("SELECT seq_id FROM max_seq_id WHERE segment_id = ?", collection.segment):
        done = int.from_bytes(seq, "big") if isinstance(seq, bytes) else int(seq or 0)  # bytes until release 0.5
    query = f"SELECT count(*) FROM {_QUEUE} WHERE seq_id > ? AND topic LIKE '%/' || ?"
    ((count,),) = database.rows(query, min(done, 2**63 - 1), collection.id)
    if count:
        rule = f"{count} changes are in the queue only: open the folder with chromadb once, and import it again"
        yield Damage(printable(f"collection {collection.name!r}"), rule)


# Documents as records


def _item(
    collection: str,
    own: str,
    document: Any,
    uri: Any,
    values: Mapping[str, Any],
    time: dict[str, Any],
    place: str,
    seen: SeenIds,
) -> Item:
    """Return the item of a document. Raises UnreadableError."""
    for name, value in (("document", document), ("uri", uri)):
        if value is not None and not isinstance(value, str):
            raise UnreadableError(f"its {name} is {kind_of(value)}, not text")
    fields: dict[str, Any] = {
        # A "/" in the name is quoted, so that two documents never have one id.
        **seen.own(f"{collection.replace('%', '%25').replace('/', '%2F')}/{own}"),
        "content": document or "",
        "kind": "knowledge",
        "metadata": {_ORIGIN: {"collection": collection, "id": own}, **values},
        **time,
    }
    if not fields["content"].strip():  # a picture, or a vector only
        fields["searchable"] = False
    if uri:
        fields["source"] = uri
    return Item(namespace=None, fields=fields, place=place, form=VERSIONS)
