"""The schema of the SQLite file: its tables, format numbers, application id, and the lists of pages in a column.

docs/file-format.md describes it in full. Payloads are inserted and never updated; a change of a record makes its head
point to another version.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from recollect.records.codec import read_varint, varint

#: In the file's header, at byte 68: "Rcl1".
APPLICATION_ID = 0x52636C31
#: The format that this release reads and writes. A release can read a file if `least_reader` is at most its own format,
#: and write to it if `least_writer` is. Files of earlier formats are converted by `stores.maintenance.migrate`.
FORMAT = 4
#: The oldest format that this release can read and write.
READS_FROM = 3
#: The `least_reader` of new files.
LEAST_READER = 4
#: The names that the table `meta` must contain.
META = frozenset(("uuid", "format", "least_reader", "least_writer", "features", "key_check"))
#: What it contains besides, in files that were created since it was introduced.
NEWER_META = frozenset(("zone",))
#: The prefix of the names of settings (`View.setting`) in `meta`.
SETTING = "setting/"
#: The entry of `features` in `meta` for a file whose pages have checksums.
PAGE_CHECKSUMS = "page checksums"
#: The formats whose tables this release knows exactly (`tables_of`).
FORMATS = (3, 4)
#: The entry of `features` in `meta` for a file whose derived ids depend on its private key.
KEYED_IDS = "keyed ids"

TABLES = "\n" + (files("recollect.stores.sqlite") / "schema.sql").read_text("utf-8")
#: What format 4 has added to `TABLES`.
_ADDED_IN_4 = ", parts BLOB"
#: The columns of `heads` that copy a field unchanged.
COPIED = ("kind", "role", "speaker", "user", "agent", "conversation", "session", "position", "entity", "source")


def tables_of(number: int) -> str:
    """Return the statements that create the tables of a format; of a later one, those of this release."""
    return TABLES.replace(_ADDED_IN_4, "") if number == 3 else TABLES


def encode_pages(pages: Iterable[int]) -> bytes:
    """Encode page numbers, in any order: ascending, each as the difference to the one before.

    Every difference is above 0, so that an overflow page that was replaced by zeros is noticed.

    >>> encode_pages([300, 2]).hex()
    '02aa02'
    """
    out = bytearray()
    last = 0
    for page in sorted(pages):
        out += varint(page - last)
        last = page
    return bytes(out)


def decode_pages(data: bytes) -> list[int]:
    """Decode the bytes of `encode_pages`.

    >>> decode_pages(bytes.fromhex("02aa02"))
    [2, 300]

    Raises:
        ValueError: They are not such bytes.
    """
    out: list[int] = []
    at = last = 0
    while at < len(data):
        difference, at = read_varint(data, at)
        if not difference:
            raise ValueError("a list of pages contains a zero")
        last += difference
        out.append(last)
    return out
