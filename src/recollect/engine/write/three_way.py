"""Merging two versions of a record that began as one: field by field, where they changed different fields.

Tags and links are sets: what either version added is there, and what either removed is gone. Metadata are merged key by
key. All else is one value: if both versions changed it, and not to the same, the field is in conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from recollect.engine.write.classes import with_class
from recollect.records.origins import least
from recollect.records.record import FIELD_NAMES, Record

#: The fields that are sets.
_SETS = ("tags", "supersedes", "derived_from")
#: Fields that are one value together: a media type is that of the content, and the ends of a validity are in order.
_TOGETHER = (("content", "media_type"), ("valid_from", "valid_to"), ("unknown",))
_SINGLE = tuple(
    (name,)
    for name in FIELD_NAMES
    if name not in ("id", "origin", "metadata", *_SETS) and all(name not in each for each in _TOGETHER)
)
_ABSENT = object()


def three_way(base: Record, ours: Record, theirs: Record) -> tuple[Record, tuple[str, ...]]:
    """Return two versions of a record as one, and the fields in conflict, in which it is as ours.

    Its class of origin is the lower one of both.

    Args:
        base: The version that both began as.
        ours: The version of this branch.
        theirs: The version of the other branch.

    Raises:
        InvalidRecordError: The values of different fields do not go together.
    """
    changes: dict[str, Any] = {}
    conflicts: list[str] = []
    for names in (*_SINGLE, *_TOGETHER):
        before, own, other = ([getattr(each, name) for name in names] for each in (base, ours, theirs))
        if _exact(other) in (_exact(before), _exact(own)):
            continue
        if _exact(own) == _exact(before):
            changes.update(zip(names, other, strict=True))
        else:
            conflicts.append(names[0])
    for name in _SETS:
        changes[name] = _united(*(getattr(each, name) for each in (base, ours, theirs)))
    metadata, differing = _by_key(base.metadata, ours.metadata, theirs.metadata)
    changes["metadata"] = metadata
    conflicts += [f"metadata.{key}" for key in differing]
    merged = ours.changed(**changes)
    lower = least((ours.effective_origin, theirs.effective_origin))
    return with_class(merged, lower), tuple(sorted(conflicts))


def _exact(values: list[Any]) -> list[Any]:
    """Return values so that times are the same only with the same offset, as their bytes are."""
    return [(each, each.utcoffset()) if isinstance(each, datetime) else each for each in values]


def _united(base: Iterable[str], ours: Iterable[str], theirs: Iterable[str]) -> tuple[str, ...]:
    """Return a set with what either side added, without what either removed, in the order of ours.

    >>> _united("abc", "abd", "bce")
    ('b', 'd', 'e')
    """
    before, own, other = tuple(base), tuple(ours), tuple(theirs)
    kept = (each for each in own if each in other or each not in before)
    added = (each for each in other if each not in before)
    return tuple(dict.fromkeys((*kept, *added)))


def _by_key(
    base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return metadata merged by their keys, and the keys in conflict, which are as in ours.

    >>> _by_key({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "c": 3})
    ({'a': 2, 'c': 3}, [])
    >>> _by_key({"a": 1}, {"a": 2}, {"a": 3})
    ({'a': 2}, ['a'])
    """
    merged, differing = dict(ours), []
    for key in sorted({*base, *ours, *theirs}):
        before, own, other = (each.get(key, _ABSENT) for each in (base, ours, theirs))
        if _same(other, before) or _same(other, own):
            continue
        if not _same(own, before):
            differing.append(key)
        elif other is _ABSENT:
            del merged[key]
        else:
            merged[key] = other
    return merged, differing


def _same(one: object, other: object) -> bool:
    """Return whether two JSON values are the same. 1 and 1.0 are not."""
    return type(one) is type(other) and one == other
