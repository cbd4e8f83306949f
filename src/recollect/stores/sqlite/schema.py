"""The SQLite file: its tables, its numbers, and what makes a file one of ours.

docs/file-format.md describes the same for people. Payloads are inserted and never updated; what changes is which
version a head points to.
"""

from __future__ import annotations

#: In the file's header, at byte 68: "Rcl1".
APPLICATION_ID = 0x52636C31
#: The format that this release writes. A release reads a file whose `least_reader` is at most its own format, and
#: writes to it where `least_writer` is.
FORMAT = 2
#: The oldest formats that this release reads, and writes. Format 1 has the same tables, and pages without checksums.
READS_FROM = 1
WRITES_FROM = 1
#: What `least_reader` says of new files: a release of format 1 could read them, but would not keep the checksums.
LEAST_READER = 1
#: What the table `meta` names.
META = frozenset(("uuid", "format", "least_reader", "least_writer", "features", "key_check"))
#: What the names of settings (`View.setting`) begin with, in `meta`.
SETTING = "setting/"
#: In `meta.features`, of a file whose pages carry checksums.
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

-- The log. `parents` is NULL for a commit that simply follows the one before; else JSON, [[branch, seq], ...].
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

-- What each commit did, in order. `before` and `after` are hashes of versions.
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

-- Every version ever held: immutable, addressed by hash within its namespace. The payload is NULL once erased.
CREATE TABLE versions (
    number    INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    payload   BLOB,
    UNIQUE (namespace, hash)
) STRICT;

-- Which version each live id has, with copies of the fields that filters ask for most.
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

-- Pages of the Merkle tries, in the order of writing.
CREATE TABLE nodes (
    place INTEGER PRIMARY KEY,
    body  BLOB NOT NULL
) STRICT;
"""

#: The columns of `heads` that copy a field as it is.
COPIED = ("kind", "role", "speaker", "user", "agent", "conversation", "session", "position", "entity", "source")
