"""Identity of facts: which records state the same fact, and the id of a record that was stored without one.

The derived id is a UUIDv5 over the kind, the fields in `SCOPE`, the text and an ordinal, each with a length prefix, so
that different lists of parts never have the same bytes. The ordinal distinguishes facts that are otherwise equal: the
second "ok" of a conversation, or a fact whose id was given to another text by an update. In a store with a private key
it is a UUIDv8 over the same parts and the key, so that a guess of an erased text cannot be confirmed without the key.
"""

from __future__ import annotations

import hashlib
import hmac
import uuid
from collections.abc import Hashable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any

from recollect.records.codec import length_prefixed, varint
from recollect.records.names import MAX_ID_BYTES
from recollect.records.record import Record, RecordId, checked
from recollect.text.unicode import nfc

_KEYED = b"recollect.id.1\0"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "record.recollect")
#: The fields that are part of the identity of a fact, next to kind and text.
SCOPE = ("user", "agent", "conversation", "session", "speaker", "role", "entity", "source", "parent")
_scope = attrgetter("kind", *SCOPE)


def derived_id(record: Record, ordinal: int = 0, key: bytes | None = None) -> RecordId:
    """Return the id derived from a record's kind, scope and text and an ordinal, as a UUID in text form.

    The text is normalised to NFC first, so that two encodings of one letter give the same id.

    Args:
        key: The private key on which the id depends too; None for none.
    """
    name = _prefix(*_scope(record)) + length_prefixed(_composed(record.content))
    # uuid.uuid5 takes bytes only from 3.12 on; Latin-1 would re-encode them, so the digest is computed here (RFC 9562).
    name += varint(ordinal)
    if key is None:
        digest = bytearray(hashlib.sha1(name, usedforsecurity=False).digest()[:16])
        digest[6] = digest[6] & 0x0F | 0x50  # version 5
    else:
        digest = bytearray(hmac.digest(key, _KEYED + name, "sha256")[:16])
        digest[6] = digest[6] & 0x0F | 0x80  # version 8
    digest[8] = digest[8] & 0x3F | 0x80  # the variant of RFC 9562
    text = digest.hex()
    return RecordId(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")


@lru_cache(maxsize=256)
def _prefix(*parts: str | None) -> bytes:
    """The bytes from which an id is derived, up to the text. Cached: consecutive records often share them."""
    return _NAMESPACE.bytes + length_prefixed(*(_composed(part) if part else b"" for part in parts))


def identified(key: bytes | None = None, /, **fields: Any) -> Record:
    """Build a record of these fields under their derived id.

    Args:
        key: The private key on which the id depends too.
        fields: The fields of the record.

    Raises:
        InvalidRecordError: A field is invalid.
    """
    record = checked(id="draft", **fields)
    # Safe: no other code has a reference to the record yet.
    object.__setattr__(record, "id", derived_id(record, 0, key))
    return record


def derived_conversation(
    user: str | None, agent: str | None, role: str | None, content: str, key: bytes | None = None
) -> str:
    """Return the name of a conversation that was stored without one, derived from its owners and first message."""
    return identified(key, kind="conversation", content=content, user=user, agent=agent, role=role).id


def _composed(part: str | bytes) -> bytes:
    return part if isinstance(part, bytes) else nfc(part).encode("utf-8")


def fact_key(record: Record) -> Hashable:
    """Return what a record has in common with those that state the same fact: kind, scope and text."""
    return (_scope(record), text_key(record.content))


def same_fact(one: Record, other: Record) -> bool:
    """Return whether two records state the same fact: same kind, scope and text."""
    return _scope(one) == _scope(other) and text_key(one.content) == text_key(other.content)


def same_text(one: Record, other: Record) -> bool:
    """Return whether two records have the same text or the same bytes."""
    return text_key(one.content) == text_key(other.content)


def text_key(content: str | bytes) -> str | bytes:
    """Return the form in which contents are compared: NFC."""
    return content if isinstance(content, bytes) else nfc(content)


def numbered_ids(wanted: str) -> Iterator[RecordId]:
    """Yield an id, then the id with a counter: for an id that another text already has.

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


def derived_ids(record: Record, ordinal: int = 0, key: bytes | None = None) -> Iterator[RecordId]:
    """Yield the derived ids of a record for rising ordinals, from `ordinal` on."""
    while True:
        yield derived_id(record, ordinal, key)
        ordinal += 1
