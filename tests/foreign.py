"""SQLite files of other programs, with the tables that these make, for the tests of their importers.

The schemas are those of mem0ai 2.2.1, langgraph-checkpoint-sqlite 3.1.2, openai-agents 0.24.0 and chromadb 1.5.9. Where
a test needs rows that these programs would refuse, the tables have the same columns and no constraints (`loose`).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

HISTORY = """
CREATE TABLE history (
    id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, created_at DATETIME,
    updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT
);
CREATE TABLE messages (
    id TEXT PRIMARY KEY, session_scope TEXT, role TEXT, content TEXT, name TEXT, created_at DATETIME
);
"""
STORE = """
CREATE TABLE store_migrations (v INTEGER PRIMARY KEY);
CREATE TABLE store (
    prefix text NOT NULL, key text NOT NULL, value text NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, expires_at TIMESTAMP, ttl_minutes REAL, PRIMARY KEY (prefix, key)
);
CREATE TABLE store_vectors (
    prefix text NOT NULL, key text NOT NULL, field_name text NOT NULL, embedding BLOB,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (prefix, key, field_name)
);
"""
SESSIONS = """
CREATE TABLE agent_sessions (
    session_id TEXT PRIMARY KEY, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE agent_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, message_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE
);
"""
BRANCHES = """
CREATE TABLE message_structure (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, message_id INTEGER NOT NULL,
    branch_id TEXT NOT NULL DEFAULT 'main', message_type TEXT NOT NULL, sequence_number INTEGER NOT NULL,
    user_turn_number INTEGER, branch_turn_number INTEGER, tool_name TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES agent_sessions(session_id) ON DELETE CASCADE,
    FOREIGN KEY (message_id) REFERENCES agent_messages(id) ON DELETE CASCADE
);
CREATE TABLE turn_usage (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, branch_id TEXT NOT NULL DEFAULT 'main',
    user_turn_number INTEGER NOT NULL, requests INTEGER DEFAULT 0
);
"""
CHROMA = """
CREATE TABLE databases (id TEXT PRIMARY KEY, name TEXT NOT NULL, tenant_id TEXT NOT NULL);
CREATE TABLE collections (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, dimension INTEGER, database_id TEXT NOT NULL, config_json_str TEXT,
    schema_str TEXT, UNIQUE (name, database_id)
);
CREATE TABLE collection_metadata (
    collection_id TEXT, key TEXT NOT NULL, str_value TEXT, int_value INTEGER, float_value REAL, bool_value INTEGER,
    PRIMARY KEY (collection_id, key)
);
CREATE TABLE segments (id TEXT PRIMARY KEY, type TEXT NOT NULL, scope TEXT NOT NULL, collection TEXT NOT NULL);
CREATE TABLE embeddings (
    id INTEGER PRIMARY KEY, segment_id TEXT NOT NULL, embedding_id TEXT NOT NULL, seq_id BLOB NOT NULL,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (segment_id, embedding_id)
);
CREATE TABLE embedding_metadata (
    id INTEGER REFERENCES embeddings(id), key TEXT NOT NULL, string_value TEXT, int_value INTEGER, float_value REAL,
    bool_value INTEGER, PRIMARY KEY (id, key)
);
CREATE TABLE embedding_metadata_array (
    id INTEGER NOT NULL REFERENCES embeddings(id), key TEXT NOT NULL, string_value TEXT, int_value INTEGER,
    float_value REAL, bool_value INTEGER
);
CREATE TABLE max_seq_id (segment_id TEXT PRIMARY KEY, seq_id INTEGER);
CREATE TABLE embeddings_queue (
    seq_id INTEGER PRIMARY KEY, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, operation INTEGER NOT NULL,
    topic TEXT NOT NULL, id TEXT NOT NULL, vector BLOB, encoding TEXT, metadata TEXT
);
CREATE VIRTUAL TABLE embedding_fulltext_search USING fts5(string_value, tokenize='trigram');
"""
DEFAULT = "00000000-0000-0000-0000-000000000000"
AT = "2026-05-04 09:30:00"


def loose(schema: str) -> str:
    """The tables of a schema with the same columns, and without types, keys and defaults."""
    out = []
    for name, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n?\);", schema, re.DOTALL):
        parts = re.sub(r"\([^()]*\)", "", body).split(",")
        words = [part.split()[0] for part in parts if part.strip()]
        columns = [word for word in words if word not in ("PRIMARY", "UNIQUE", "FOREIGN")]
        out.append(f"CREATE TABLE {name} ({', '.join(dict.fromkeys(columns))});")
    return "\n".join(out)


def made(path: Path, schema: str, **tables: Iterable[Mapping[str, Any]]) -> Path:
    """Write a database with these rows, each a mapping of columns, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(schema)
        add(database, **tables)
    return path


def add(database: sqlite3.Connection, **tables: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows and commit them."""
    with database:
        for table, rows in tables.items():
            for row in rows:
                # A text may be none: bytes that are no UTF-8 get into a file as well.
                places = ", ".join("CAST(? AS TEXT)" if isinstance(each, str) else "?" for each in row.values())
                values = [bindable(each) for each in row.values()]
                database.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", values)


def bindable(value: Any) -> Any:
    """A value as SQLite takes it: text as bytes, and what it cannot have as JSON."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, (dict, list)) or (isinstance(value, int) and not -(2**63) <= value < 2**63):
        return json.dumps(value)
    return value


# The files of each program


def history(path: Path, *events: Mapping[str, Any], messages: Iterable[Mapping[str, Any]] = ()) -> Path:
    """A history of mem0. An event has at least a memory_id, an event and a text."""
    rows = [
        {"id": f"h{number}", "created_at": f"{AT}+00:00", "is_deleted": 0, **event}
        for number, event in enumerate(events)
    ]
    return made(path, HISTORY, history=rows, messages=messages)


def store(path: Path, *items: Mapping[str, Any], **tables: Iterable[Mapping[str, Any]]) -> Path:
    """A store of LangGraph, whose values are JSON as bytes, as the store writes them."""
    rows = []
    for item in items:
        value = item.get("value", {})
        raw = value if isinstance(value, (str, bytes)) else json.dumps(value).encode()
        rows.append({"created_at": AT, "updated_at": AT, **item, "value": raw})
    return made(path, STORE, store=rows, **tables)


def sessions(path: Path, named: Mapping[str, Iterable[Any]], schema: str = SESSIONS) -> Path:
    """A file of SQLiteSession, by the ids of the sessions. An item that is text is stored as it is."""
    texts = [
        {"session_id": name, "message_data": item if isinstance(item, str) else json.dumps(item), "created_at": AT}
        for name, items in named.items()
        for item in items
    ]
    return made(path, schema, agent_sessions=[{"session_id": name} for name in named], agent_messages=texts)


def chroma(
    path: Path, collections: Mapping[str, Iterable[Mapping[str, Any]]], database: str = "default_database"
) -> Path:
    """A file of Chroma: of each collection, documents with "id", "document", "uri" and "metadata"."""
    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("collections", "segments", "embeddings", "embedding_metadata", "embedding_metadata_array")
    }
    number = 0
    for at, (name, documents) in enumerate(collections.items()):
        rows["collections"].append({"id": f"c{at}", "name": name, "database_id": DEFAULT})
        rows["segments"] += [
            {"id": f"{scope}{at}", "type": f"urn:chroma:segment/{scope}", "scope": scope, "collection": f"c{at}"}
            for scope in ("VECTOR", "METADATA")
        ]
        for document in documents:
            number += 1
            rows["embeddings"].append(
                {
                    "id": number,
                    "segment_id": f"METADATA{at}",
                    "embedding_id": document["id"],
                    "seq_id": number,
                    "created_at": AT,
                }
            )
            values = dict(document.get("metadata") or {})
            for key in ("document", "uri"):
                if document.get(key) is not None:
                    values[f"chroma:{key}"] = document[key]
            for key, value in values.items():
                listed = isinstance(value, list)
                table = rows["embedding_metadata_array" if listed else "embedding_metadata"]
                table += [{"id": number, "key": key, _column(each): each} for each in (value if listed else [value])]
    rows["max_seq_id"] = [{"segment_id": f"METADATA{at}", "seq_id": number} for at in range(len(collections))]
    return made(path, CHROMA, databases=[{"id": DEFAULT, "name": database, "tenant_id": "default_tenant"}], **rows)


def _column(value: Any) -> str:
    names = {bool: "bool_value", int: "int_value", float: "float_value"}
    return names.get(type(value), "string_value")
