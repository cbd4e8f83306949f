CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE namespaces (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE
) STRICT;

-- A branch that continues another one has that branch and its last common commit as base. The other columns state how
-- far the trie pages of old roots have been dropped (stores.values.Trimmed).
CREATE TABLE branches (
    number          INTEGER PRIMARY KEY,
    namespace       INTEGER NOT NULL REFERENCES namespaces,
    name            TEXT NOT NULL,
    base_branch     INTEGER REFERENCES branches,
    base_seq        INTEGER,
    trimmed         INTEGER NOT NULL DEFAULT 0,
    kept            INTEGER NOT NULL DEFAULT 0,
    trimmed_changes INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace, name)
) STRICT;

-- The log. `parents` is NULL if the only parent is the previous commit; otherwise JSON, [[branch, seq], ...]. `page` is
-- 0 for the empty root, and NULL if the pages of the root have been dropped. `replaced` names the pages of the previous
-- root that this one does not have, until that root has been examined (encode_pages). `parts` are the newest commits of
-- the other parts of the memory (ledger.parts); NULL in a part's own log, and in commits of format 3.
CREATE TABLE commits (
    branch   INTEGER NOT NULL REFERENCES branches,
    seq      INTEGER NOT NULL,
    parents  TEXT,
    time     INTEGER NOT NULL,
    actor    TEXT,
    reason   TEXT,
    root     BLOB NOT NULL,
    entry    BLOB NOT NULL,
    page     INTEGER,
    replaced BLOB, parts BLOB,
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

-- What stands for an actor or a reason in the entry of its commit after the text was redacted.
CREATE TABLE redactions (
    branch     INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    name       TEXT NOT NULL,
    commitment BLOB NOT NULL,
    PRIMARY KEY (branch, seq, name)
) STRICT, WITHOUT ROWID;

-- Every version ever stored: immutable, addressed by hash within its namespace. The payload is NULL once removed.
CREATE TABLE versions (
    number    INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    payload   BLOB,
    UNIQUE (namespace, hash)
) STRICT;

-- Why a version has no payload any more, 'erased' or 'thinned', and its id, which is NULL once redacted.
CREATE TABLE removed_payloads (
    version INTEGER PRIMARY KEY REFERENCES versions,
    cause   TEXT NOT NULL,
    id      TEXT
) STRICT;

-- The version of each live id, with copies of the fields that filters use most. In a branch that has a base, a head
-- without a version states that an id of the base is not live.
CREATE TABLE heads (
    number       INTEGER PRIMARY KEY,
    branch       INTEGER NOT NULL,
    id           TEXT NOT NULL,
    version      INTEGER REFERENCES versions,
    kind         TEXT,
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

-- Commits that were given a name, or only a number. The pages of their roots are kept.
CREATE TABLE snapshots (
    branch INTEGER NOT NULL REFERENCES branches,
    number INTEGER NOT NULL,
    name   TEXT,
    seq    INTEGER NOT NULL,
    time   INTEGER NOT NULL,
    PRIMARY KEY (branch, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX snapshots_by_name ON snapshots (branch, name) WHERE name IS NOT NULL;
