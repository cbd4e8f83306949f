"""Entries of keyed memory as records: a key of any text as an id, and a value of any bytes as content."""

from __future__ import annotations

import hashlib
from typing import Any

from recollect.errors import InvalidRecordError
from recollect.records.record import Record, record_id
from recollect.text.unicode import nfc, normalized

#: The kind of an entry.
ENTRY = "entry"
#: Ids that begin with one of these are not keys as they are: digests, and what a scope qualifies.
_DIGEST, _NOT_PLAIN = "#", ("#", "@")
_BYTES = "application/octet-stream"


def id_of(key: str) -> str:
    """Return the id of a key in NFC: the key itself if it can be one, else a digest of it.

    >>> id_of("plan"), len(id_of("#")), len(id_of("")), len(id_of("k" * 1000))
    ('plan', 65, 65, 65)
    """
    if not key.startswith(_NOT_PLAIN):
        try:
            if record_id(key) == key:
                return key
        except InvalidRecordError:
            pass
    return _DIGEST + hashlib.sha256(key.encode("utf-8")).hexdigest()


def former_id_of(key: str) -> str | None:
    """Return the id that earlier releases gave a key in decomposed form (NFD); None if that is the form it has."""
    decomposed = normalized("NFD", key)
    return None if decomposed == key else _DIGEST + hashlib.sha256(decomposed.encode("utf-8")).hexdigest()


def entry_fields(key: str, record_id: str, writes: int, importance: float | None) -> dict[str, Any]:
    """Return the fields of an entry's record, all of them stated, except for its id, content and expiry.

    Args:
        key: The key.
        record_id: The id of the record.
        writes: How often it was written before: a value that is written again is a new version.
        importance: How important it is.
    """
    about: dict[str, Any] = {"writes": writes + 1}
    if record_id != key:
        about["key"] = key
    return {"kind": ENTRY, "importance": importance, "metadata": about}


def content_of(value: bytes) -> tuple[str | bytes, str | None]:
    """Return the content and the media type of a value: text, which recall finds, if it is UTF-8 and not blank.

    >>> content_of(b"go north"), content_of(b" ")
    (('go north', None), (b' ', 'application/octet-stream'))
    """
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return value, _BYTES
    return (text, None) if text.strip() else (value, _BYTES)


def key_of(record: Record) -> str:
    """Return the key of an entry; of one in a scope, seen from outside of it, with the qualifier of its id."""
    key = record.metadata.get("key")
    if not isinstance(key, str):
        return record.id
    key = nfc(key)
    for entry in (id_of(key), former_id_of(key)):
        if entry is not None and record.id.endswith(entry):
            return record.id.removesuffix(entry) + key
    return record.id


def value_of(record: Record) -> bytes:
    """Return the value of an entry."""
    return record.content.encode("utf-8") if isinstance(record.content, str) else record.content


def writes_of(record: Record | None) -> int:
    """Return how often an entry was written; 0 for none."""
    writes = 0 if record is None else record.metadata.get("writes", 0)
    return writes if isinstance(writes, int) else 0
