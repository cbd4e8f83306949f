"""Which records are the same fact, and the id of one that has none of its own.

The derived id is a UUIDv5 over the kind, the scope, the text and an ordinal, each behind its length, so that no two
different lists of parts meet. The ordinal tells apart what is otherwise equal: the second "ok" of a conversation, or
a fact whose first id was since given another text.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any

from recollect.records.codec import length_prefixed, varint
from recollect.records.record import MAX_ID_BYTES, Record, RecordId, checked
from recollect.text.unicode import nfc

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "record.recollect")
#: The fields that say whose, of what, and where from: part of what makes a fact the same fact.
SCOPE = ("user", "agent", "conversation", "session", "speaker", "role", "entity", "source", "parent")
_scope = attrgetter("kind", *SCOPE)


def derived_id(record: Record, ordinal: int = 0) -> RecordId:
    """The id that `record`'s kind, scope, text and `ordinal` give: a UUID in its usual text form.

    The text counts in its composed form (NFC): one letter typed in two ways is one letter.
    """
    name = _begun(*_scope(record)) + length_prefixed(_composed(record.content))
    # uuid.uuid5 takes bytes only from 3.12 on; Latin-1 would re-encode them, so the digest is made here (RFC 9562).
    digest = bytearray(hashlib.sha1(name + varint(ordinal), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50  # version 5
    digest[8] = digest[8] & 0x3F | 0x80  # the variant of RFC 9562
    text = digest.hex()
    return RecordId(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")


@lru_cache(maxsize=256)
def _begun(*parts: str | None) -> bytes:
    """What an id is derived from, up to the text: many records in a row have the same."""
    return _NAMESPACE.bytes + length_prefixed(*(_composed(part) if part else b"" for part in parts))


def identified(**fields: Any) -> Record:
    """A record of these fields under the id that is derived from them. Raises: InvalidRecordError."""
    record = checked(id="draft", **fields)
    # As `Record` itself does with what it has checked: nobody has seen the record yet.
    object.__setattr__(record, "id", derived_id(record))
    return record


def _composed(part: str | bytes) -> bytes:
    return part if isinstance(part, bytes) else nfc(part).encode("utf-8")


def same_fact(held: Record, given: Record) -> bool:
    """Whether `given` says what `held` says: same kind, scope and text."""
    return (
        held.kind == given.kind
        and all(getattr(held, name) == getattr(given, name) for name in SCOPE)
        and _text_key(held) == _text_key(given)
    )


def same_text(held: Record, given: Record) -> bool:
    """Whether two records hold the same text, or the same bytes."""
    return _text_key(held) == _text_key(given)


def _text_key(record: Record) -> str | bytes:
    return record.content if isinstance(record.content, bytes) else nfc(record.content)


def numbered_ids(wanted: str) -> Iterator[RecordId]:
    """`wanted`, then `wanted` with a counter: for an id that another text already holds.

    >>> ids = numbered_ids("note"); next(ids), next(ids), next(ids)
    ('note', 'note-2', 'note-3')
    """
    yield RecordId(wanted)
    counter = 2
    while True:
        suffix = f"-{counter}"
        stem = wanted.encode("utf-8")[: MAX_ID_BYTES - len(suffix)].decode("utf-8", "ignore")
        yield RecordId(stem + suffix)
        counter += 1


def derived_ids(record: Record, ordinal: int = 0) -> Iterator[RecordId]:
    """The derived ids of `record` for the ordinals 0, 1, 2, ..., or from another one on."""
    while True:
        yield derived_id(record, ordinal)
        ordinal += 1
