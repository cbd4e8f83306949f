"""The schema of the SQLite file: its tables, format numbers and application id.

docs/file-format.md describes it in full. Payloads are inserted and never updated; a change of a record makes its head
point to another version.
"""

from __future__ import annotations

#: In the file's header, at byte 68: "Rcl1".
APPLICATION_ID = 0x52636C31
#: The format that this release writes. A release can read a file if `least_reader` is at most its own format, and write
#: to it if `least_writer` is.
FORMAT = 2
#: The oldest formats that this release can read and write. Format 1 has the same tables, but no page checksums.
READS_FROM = 1
WRITES_FROM = 1
#: The `least_reader` of new files: a release of format 1 can read them, but would not write checksums.
LEAST_READER = 1
#: The names that the table `meta` must contain.
META = frozenset(("uuid", "format", "least_reader", "least_writer", "features", "key_check"))
#: The prefix of the names of settings (`View.setting`) in `meta`.
SETTING = "setting/"
#: The entry of `features` in `meta` for a file whose pages have checksums.
PAGE_CHECKSUMS = "page checksums"

#: The formats that have these tables.
FORMATS = (1, 2)
TABLES = """
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE namespaces (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE branches (
    number    INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL REFERENCES namespaces,
    name      TEXT NOT NULL,
    UNIQUE (namespace, name)
) STRICT;

-- The log. `parents` is NULL if the only parent is the previous commit; otherwise JSON, [[branch, seq], ...].
CREATE TABLE commits (
    branch  INTEGER NOT NULL REFERENCES branches,
    seq     INTEGER NOT NULL,
    parents TEXT,
    time    INTEGER NOT NULL,
    actor   TEXT,
    reason  TEXT,
    root    BLOB NOT NULL,
    page    INTEGER NOT NULL,
    PRIMARY KEY (branch, seq)
) STRICT, WITHOUT ROWID;

-- The changes of each commit, in order. `before` and `after` are hashes of versions.
CREATE TABLE changes (
    branch INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    place  INTEGER NOT NULL,
    id     TEXT NOT NULL,
    before BLOB,
    after  BLOB,
    cause  TEXT NOT NULL,
    PRIMARY KEY (branch, seq, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_by_id ON changes (branch, id);

-- Every version ever stored: immutable, addressed by hash within its namespace. The payload is NULL once erased.
CREATE TABLE versions (
    number    INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    payload   BLOB,
    UNIQUE (namespace, hash)
) STRICT;

-- The version of each live id, with copies of the fields that filters use most.
CREATE TABLE heads (
    number       INTEGER PRIMARY KEY,
    branch       INTEGER NOT NULL,
    id           TEXT NOT NULL,
    version      INTEGER NOT NULL REFERENCES versions,
    kind         TEXT NOT NULL,
    role         TEXT,
    speaker      TEXT,
    user         TEXT,
    agent        TEXT,
    conversation TEXT,
    session      TEXT,
    position     INTEGER,
    entity       TEXT,
    source       TEXT,
    time         INTEGER,
    importance   REAL,
    expires      INTEGER,
    UNIQUE (branch, id)
) STRICT;
CREATE INDEX heads_by_time ON heads (branch, time);
CREATE INDEX heads_by_kind ON heads (branch, kind, time);
CREATE INDEX heads_by_user ON heads (branch, user, time) WHERE user IS NOT NULL;
CREATE INDEX heads_by_conversation ON heads (branch, conversation, position) WHERE conversation IS NOT NULL;
CREATE INDEX heads_by_expiry ON heads (branch, expires) WHERE expires IS NOT NULL;
CREATE INDEX heads_by_entity ON heads (branch, entity, time) WHERE entity IS NOT NULL;

-- Pages of the Merkle tries, in the order in which they were written.
CREATE TABLE nodes (
    place INTEGER PRIMARY KEY,
    body  BLOB NOT NULL
) STRICT;
"""

#: The columns of `heads` that copy a field unchanged.
COPIED = ("kind", "role", "speaker", "user", "agent", "conversation", "session", "position", "entity", "source")
