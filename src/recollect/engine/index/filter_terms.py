"""Marks: what filters ask of a record and no column of the index holds: its tags, its session, its metadata.

Each is a term of the index, found like a word, so that a filter on it costs what asking for a word does. Marks begin
with a character that no word has, and no question asks for one.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from zlib import crc32

from recollect.records.record import Record

#: Values of a key share so many marks: where each record has another value, each would be a term of its own. It is a
#: prime, so that whole numbers at equal distances are spread over all.
_VALUE_BUCKETS = 4093
#: A longer text, in characters, is there as its digest.
_MAX_TEXT = 64


def tag_term(tag: str) -> str:
    """The mark of the records that carry a tag."""
    return _term("t", tag)


def session_term(session: str) -> str:
    """The mark of the records of a session, in whatever conversation."""
    return _term("s", session)


def key_term(key: str) -> str:
    """The mark of the records whose metadata has a key."""
    return _term("k", key)


def value_term(key: str, value: object) -> str | None:
    """The mark of all records that have a value under a key, and of a few others; None of a list or an object.

    What is equal to Python has the same mark.

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
    """A mark; of a long text by its digest, with another letter, so that the index need not hold it twice."""
    if len(text) <= _MAX_TEXT:
        return f"\0{kind}{text}"
    return f"\0{kind.upper()}{blake2b(text.encode('utf-8'), digest_size=16).hexdigest()}"


def filter_terms_of(record: Record) -> tuple[str, ...]:
    """The marks of a record, each once and in their order: not in that of keys, which a record does not keep."""
    terms = [tag_term(tag) for tag in record.tags]
    if record.session is not None:
        terms.append(session_term(record.session))
    for key, value in record.metadata.items():
        terms.append(key_term(key))
        if (term := value_term(key, value)) is not None:
            terms.append(term)
    return tuple(sorted(set(terms)))
