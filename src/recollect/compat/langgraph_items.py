"""The form in which an item of a store for LangGraph is stored: one record for each namespace and key.

This needs no LangGraph, so that an import can store items as `recollect.compat.langgraph` does.
The value is in the metadata (`compat.objects`), and its words are the content, for recall. `time` is that of the last
put.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from recollect import Record
from recollect.common.regexes import regex
from recollect.compat.objects import VALUE, clean, object_metadata, value_of
from recollect.compat.stored_json import loaded, safe_name, unlettered

if TYPE_CHECKING:
    from langgraph.store.base import Item

#: The kind of the records.
KIND = "item"
#: The names in their metadata, besides those of `compat.objects`: the namespace, the key, the time of the first put and
#: the minutes to live.
NAMESPACE, KEY, CREATED, TTL = "namespace", "key", "created", "ttl"

#: Maximum size of an id and of a name that is readable, in bytes.
_ID_BYTES, _NAME_BYTES = 200, 900
#: A text of fewer words is indexed with its key, of which it may be the only explanation: "colour: blue".
_FEW_WORDS = 4
#: What separates labels, and what no name of a record may contain. A label in which it occurs is quoted.
_QUOTES = regex(r"(?:%[0-9a-f]{2})+")
_QUOTED = regex(r"[%/\x00-\x1f\x7f-\x9f\ud800-\udfff]")

I = TypeVar("I", bound="Item")  # noqa: E741 - an item


def path_of(namespace: Sequence[str]) -> str:
    """Return a namespace as a text from which `namespace_of` gets it back.

    >>> path_of(("users", "a/b"))
    'users/a%2fb'
    """
    return "/".join(_QUOTED.sub(_quoted, label) for label in namespace)


def _quoted(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02x}" for byte in found[0].encode("utf-8", "surrogatepass"))


def namespace_of(path: str) -> tuple[str, ...]:
    """Return the namespace of a path.

    >>> namespace_of("users/a%2fb")
    ('users', 'a/b')
    """
    return tuple(_QUOTES.sub(_unquoted, label) for label in path.split("/")) if path else ()


def _unquoted(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "surrogatepass")


def source_of(namespace: Sequence[str]) -> str:
    """Return the `source` of the records of a namespace: its path, or a digest of a long one."""
    return _name("langgraph", path_of(namespace))


def is_path(source: str) -> bool:
    """Return whether a source has the path of its namespace."""
    return source.startswith("langgraph:")


def namespace_in(source: str) -> tuple[str, ...]:
    """Return the namespace that a source has the path of."""
    return namespace_of(source.removeprefix("langgraph:"))


def tag_of(prefix: Sequence[str]) -> str:
    """Return the tag of the records in a namespace and below it."""
    return _name("ns", path_of(prefix))


def _name(head: str, path: str) -> str:
    encoded = path.encode("utf-8")
    return f"{head}:{path}" if len(encoded) <= _NAME_BYTES else f"{head}#{sha256(encoded).hexdigest()}"


def id_of(namespace: Sequence[str], key: str) -> str:
    """Return the id of the record of an item: readable where all of it is ASCII and short."""
    text = f"{path_of(namespace)}//{path_of((key,))}"
    if text.isascii() and len(text) <= _ID_BYTES:
        return f"lg/{text}"
    return f"lg#{sha256(text.encode('utf-8')).hexdigest()}"


class StoredItem(NamedTuple):
    """The record of an item that was put, without its times.

    Attributes:
        id: The id of the record.
        fields: Its other fields, without the times.
        minutes: The minutes that it lives; None if it does not expire.
    """

    id: str
    fields: dict[str, Any]
    minutes: float | None


def stored_form(
    namespace: tuple[str, ...],
    key: str,
    value: Mapping[str, Any],
    paths: Sequence[str] | None,
    minutes: float | None,
    policies: Any,
) -> StoredItem:
    """Return what is stored of an item.

    Args:
        namespace: Its namespace.
        key: Its key.
        value: Its value.
        paths: The paths of the texts to index; None: it is not indexed.
        minutes: The minutes that it lives; None if it does not expire.
        policies: The policies of the memory.
    """
    of_value = object_metadata(value, policies)
    same: dict[str, Any] = loaded(of_value[VALUE])
    metadata: dict[str, Any] = {NAMESPACE: list(map(safe_name, namespace)), KEY: safe_name(key), **of_value}
    if minutes is not None:
        metadata[TTL] = float(minutes)
    words = "" if paths is None else "\n".join(_words(same, paths))
    fields = {
        "content": clean(words if paths is not None else "\n".join(_words(same, ["$"]))),
        "searchable": bool(words.strip()),
        "kind": KIND,
        "source": source_of(namespace),
        "tags": [tag_of(namespace[:length]) for length in range(1, len(namespace) + 1)],
        "metadata": metadata,
    }
    return StoredItem(id_of(namespace, key), fields, minutes)


def _words(value: dict[str, Any], paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        if path == "$":
            yield from _leaves("", value)
        else:
            from langgraph.store.base import get_text_at_path, tokenize_path

            yield from (text for text in get_text_at_path(value, tokenize_path(path)) if text.strip())


def _leaves(name: str, value: object) -> Iterator[str]:
    """Yield the texts and numbers in a value, those of few words after their keys."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(key, each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(name, each)
    elif value is not None and str(value).strip():
        yield f"{name}: {value}" if name and len(str(value).split()) < _FEW_WORDS else str(value)


def item_of(record: Record, kind: type[I], **more: Any) -> I:
    """Return the item of a record."""
    assert record.time is not None, "every put states it"
    item: I = kind(
        value=value_of(record),
        key=unlettered(record.metadata[KEY]),
        namespace=namespace_in_metadata(record),
        created_at=datetime.fromisoformat(record.metadata[CREATED]),
        updated_at=record.time.astimezone(UTC),
        **more,
    )
    return item


def namespace_in_metadata(record: Record) -> tuple[str, ...]:
    """Return the namespace of a record's item."""
    return tuple(map(unlettered, record.metadata[NAMESPACE]))


def put_at(now: datetime, before: Record | None) -> tuple[datetime, datetime]:
    """Return when an item was first put and when it is put now: later than when it was last put."""
    if before is None or before.time is None:
        return now, now
    return datetime.fromisoformat(before.metadata[CREATED]), max(now, before.time + timedelta(microseconds=1))
