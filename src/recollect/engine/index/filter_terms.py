"""Filter terms: index terms for tags, links, session, metadata, flags and origin of a record, which have no column.

Each is found like a word, so a filter on it costs as much as looking up a word. Filter terms begin with a character
that no word contains, so no question matches one.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from zlib import crc32

from recollect.filters.tree import LINK_FIELDS, links_of
from recollect.records.origins import USER
from recollect.records.record import Record

#: Number of terms that the values of a metadata key are hashed to, so that a key with a different value in every record
#: does not add one term per record. It is prime, so that evenly spaced integers are spread over all of them.
_VALUE_BUCKETS = 4093
#: A longer text, in characters, is replaced by its digest.
_MAX_TEXT = 64


#: The term of pinned records.
PINNED_TERM = "\0p"
#: The term of records that are not searched.
UNSEARCHED_TERM = "\0u"
#: The class of origin of records without a term for it: that of most of them.
_COMMON_ORIGIN = USER
#: The kinds of the terms for the ids in a field.
_LINKS = {"supersedes": "r", "derived_from": "d", "parent": "c"}


def tag_term(tag: str) -> str:
    """Return the term of the records that have a tag."""
    return _term("t", tag)


def session_term(session: str) -> str:
    """Return the term of the records of a session, in any conversation."""
    return _term("s", session)


def link_term(field: str, record_id: str) -> str:
    """Return the term of the records that have an id in a field of LINK_FIELDS."""
    return _term(_LINKS[field], record_id)


def links_term(field: str) -> str:
    """Return the term of the records that have any id in a field of LINK_FIELDS."""
    return _term("l", field)


def origin_term(origin: str) -> str | None:
    """Return the term of the records of a class of origin; None for the class of records without a term."""
    return None if origin == _COMMON_ORIGIN else f"\0o{origin}"


def key_term(key: str) -> str:
    """Return the term of the records whose metadata has a key."""
    return _term("k", key)


def value_term(key: str, value: object) -> str | None:
    """Return the term of the records that have a value under a key, and of a few others; None for lists and objects.

    Values that are equal in Python have the same term.

    >>> value_term("n", 1) == value_term("n", 1.0) == value_term("n", True)
    True
    """
    if isinstance(value, str):
        number = crc32(value.encode("utf-8"))
    elif value is None:
        number = 1
    elif isinstance(value, float) and not value.is_integer():
        number = crc32(struct.pack(">d", value))
    elif isinstance(value, (int, float)):
        number = int(value)
    else:
        return None
    return _term("v", f"{number % _VALUE_BUCKETS:03x}{key}")


def _term(kind: str, text: str) -> str:
    """Return a term. A long text is replaced by its digest, with an upper-case kind, to keep the index small."""
    if len(text) <= _MAX_TEXT:
        return f"\0{kind}{text}"
    return f"\0{kind.upper()}{blake2b(text.encode('utf-8'), digest_size=16).hexdigest()}"


def filter_terms_of(record: Record) -> tuple[str, ...]:
    """Return the filter terms of a record, unique and sorted, since a record does not preserve the order of keys."""
    terms = [tag_term(tag) for tag in record.tags]
    if record.pinned:
        terms.append(PINNED_TERM)
    if not record.searchable:
        terms.append(UNSEARCHED_TERM)
    if (origin := origin_term(record.effective_origin)) is not None:
        terms.append(origin)
    if record.session is not None:
        terms.append(session_term(record.session))
    for field in LINK_FIELDS:
        if ids := links_of(record, field):
            terms.append(links_term(field))
            terms += [link_term(field, each) for each in ids]
    for key, value in record.metadata.items():
        terms.append(key_term(key))
        if (term := value_term(key, value)) is not None:
            terms.append(term)
    return tuple(sorted(set(terms)))
