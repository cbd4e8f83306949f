"""Names: the texts by which a record is found and grouped, such as its user, its conversation and its tags.

A name is one line in NFC, so that the two forms in which Unicode writes "é" are one user. A record that an earlier
release stored with another form keeps its bytes, which its hash covers, and is read under the composed name.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from recollect.common.regexes import regex
from recollect.errors import InvalidRecordError
from recollect.text.unicode import has_surrogate, nfc

#: The name of the branch that every namespace begins with.
MAIN = "main"
MAX_ID_BYTES = 255
MAX_NAME_BYTES = 1000
#: The fields that are names, next to the tags.
NAMES = frozenset(
    ("media_type", "role", "speaker", "user", "agent", "conversation", "session", "entity", "source", "language")
)
_CONTROL = regex(r"[\x00-\x1f\x7f-\x9f]")


def is_plain(value: object, most: int) -> TypeGuard[str]:
    """Return whether a value passes every check of a name as it is: short printable ASCII, as most names are."""
    return type(value) is str and value.isascii() and value.isprintable() and 0 < len(value) <= most


def checked_name(field: str, value: object, most_bytes: int = MAX_NAME_BYTES) -> str:
    """Return a name in NFC.

    Raises:
        InvalidRecordError: It is not text on one line, is empty, or is too long.
    """
    if is_plain(value, most_bytes):
        return value
    if not isinstance(value, str):
        raise InvalidRecordError(field, value, "must be text")
    if not value:
        raise InvalidRecordError(field, value, "is empty; leave it out instead")
    if has_surrogate(value):
        raise InvalidRecordError(field, value, "contains a lone surrogate, which is not valid Unicode")
    if _CONTROL.search(value):
        raise InvalidRecordError(field, value, "contains a control character")
    if len(value) > most_bytes or len(value.encode("utf-8")) > most_bytes:
        raise InvalidRecordError(field, value, f"is longer than {most_bytes} bytes")
    composed = nfc(str.__str__(value))  # for a `class Role(str, Enum)`, the validated text and not the result of str()
    if len(composed.encode("utf-8")) > most_bytes:
        raise InvalidRecordError(field, value, f"is longer than {most_bytes} bytes once composed (NFC)")
    return composed


def composed(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with the names among them in NFC, unchecked: for what is compared before there is a record."""
    names = {name: nfc(fields[name]) for name in NAMES & fields.keys() if isinstance(fields[name], str)}
    return {**fields, **names}


def in_order(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return tags sorted: they are a set, so the order in which they were passed is not part of a record."""
    return tuple(sorted(tags, key=lambda tag: tag.encode("utf-8")))


def uncomposed(values: dict[str, Any]) -> dict[str, Any]:
    """Compose the names among decoded fields in place, and return those that had another form, as they were."""
    out = {}
    for field in NAMES & values.keys():
        value = values[field]
        if not value.isascii() and (name := nfc(value)) != value:
            out[field], values[field] = value, name
    tags = values.get("tags")
    if tags and not all(map(str.isascii, tags)):
        composed_tags = in_order(tuple(dict.fromkeys(map(nfc, tags))))
        if composed_tags != tags:
            out["tags"], values["tags"] = tags, composed_tags
    return out
