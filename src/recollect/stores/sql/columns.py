"""The contents of single columns: copies of fields, parents of commits, lists of pages, and the names of settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from recollect.ledger.commits import Branch, Parent
from recollect.records.codec import microseconds, read_varint, varint
from recollect.records.record import Record

#: The prefix of the names of settings (`View.setting`) in `meta`.
SETTING = "setting/"
#: The columns of `heads` that copy a field unchanged.
COPIED = ("kind", "role", "speaker", "user", "agent", "conversation", "session", "position", "entity", "source")
#: The columns of `heads` whose values `head_fields` returns.
HEAD_COLUMNS = (*COPIED, "time", "importance", "expires")
_copied = attrgetter(*COPIED)


def head_fields(record: Record) -> tuple[Any, ...]:
    """Return the fields of which a head has a copy: the values of HEAD_COLUMNS."""
    return (
        *_copied(record),
        None if record.time is None else microseconds(record.time),
        record.importance,
        None if record.expires is None else microseconds(record.expires),
    )


def implicit_parents(branch: Branch, seq: int) -> tuple[Parent, ...]:
    """Return the parents of a commit that only follows the previous one. These are not stored."""
    return ((branch.name, seq - 1),) if seq > 1 else ()


def encoded_parents(parents: Sequence[Parent]) -> str:
    """Encode parents as JSON: a branch and a number each, and the entry of a commit of another branch.

    >>> encoded_parents([("main", 3), ("what-if", 5, bytes(2))])
    '[["main", 3], ["what-if", 5, "0000"]]'
    """
    return json.dumps([[branch, number, *(entry.hex() for entry in entries)] for branch, number, *entries in parents])


def decoded_parents(written: str) -> tuple[Parent, ...]:
    """Decode stored parents of a commit. Raise ValueError if they are invalid."""
    parents = json.loads(written)
    if not isinstance(parents, list) or not all(
        isinstance(each, list) and [type(part) for part in each] in ([str, int], [str, int, str]) for each in parents
    ):
        raise ValueError("the parents of a commit are not pairs of a branch and a number")
    return tuple((branch, number, *map(bytes.fromhex, entries)) for branch, number, *entries in parents)


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
