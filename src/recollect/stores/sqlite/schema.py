"""The schema of the SQLite file: its tables, format numbers, and application id.

docs/file-format.md describes it in full. Payloads are inserted and never updated; a change of a record makes its head
point to another version.
"""

from __future__ import annotations

from pathlib import Path

#: In the file's header, at byte 68: "Rcl1".
APPLICATION_ID = 0x52636C31
#: The same for an encrypted file: "Rcl2". Releases without encryption take it for that of another application.
ENCRYPTED_ID = 0x52636C32
#: The format that this release reads and writes. A release can read a file if `least_reader` is at most its own format,
#: and write to it if `least_writer` is. Files of earlier formats are converted by `stores.maintenance.migrate`.
FORMAT = 4
#: The oldest format that this release can read and write.
READS_FROM = 3
#: The `least_reader` of new files.
LEAST_READER = 4
#: The `least_reader` and `least_writer` of files with a branch that continues another one: to releases that know no
#: branches, it would begin empty. The tables are those of format 4.
BRANCHED_FORMAT = 5
#: The names that the table `meta` must contain.
META = frozenset(("uuid", "format", "least_reader", "least_writer", "features", "key_check"))
#: What it contains besides, in files that were created since it was introduced.
NEWER_META = frozenset(("zone", "encrypted_pages"))
#: The entry of `features` in `meta` for a file whose pages have checksums.
PAGE_CHECKSUMS = "page checksums"
#: The formats whose tables this release knows exactly (`tables_of`).
FORMATS = (3, 4)
#: The entry of `features` in `meta` for a file whose derived ids depend on its private key.
KEYED_IDS = "keyed ids"

TABLES = "\n" + Path(__file__).with_name("schema.sql").read_text("utf-8")
#: What format 4 has added to `TABLES`.
_ADDED_IN_4 = ", parts BLOB"


def tables_of(number: int) -> str:
    """Return the statements that create the tables of a format; of a later one, those of this release."""
    return TABLES.replace(_ADDED_IN_4, "") if number == 3 else TABLES
