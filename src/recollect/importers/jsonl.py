"""JSON lines of this package: records written out so that they come back to the bit.

The first line is a header, `{"recollect": {"format": 1, "namespace": ..., "root": ..., "records": n}}`; each line
after it is a record (`Record.to_json`), perhaps with its "hash". A header may follow for a further namespace. Records
of a file with one header go to the namespace that the user names; with several, each to its header's.

Reading holds one line at a time. Lines that are damaged are reported and the rest is read; so is a file that ends
before the records that its header promises.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TextIO

from recollect.errors import InvalidRecordError, RecollectError
from recollect.importers.base import (
    Damage,
    Item,
    Promise,
    UnreadableError,
    format_error,
    kind_of,
    open_file,
    parse_json,
    why_unreadable,
)
from recollect.records.record import Record, fields_from_json, record_id

if TYPE_CHECKING:
    from recollect.memory import Memory

FORMAT = 1
_HEADER = "recollect"
#: No record's line is longer: 10 MiB of content, each byte escaped, as a memory with larger limits may have.
_LONGEST_LINE = 2**28


class JsonLines:
    """An export of this package."""

    name = "jsonl"
    summary = "Recollect: JSON lines written by `recollect export`; records come back exactly as they were"
    exact = True

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | Promise]:
        if not os.path.isfile(path):
            rule = "is not a regular file" if os.path.exists(path) else "is not there"
            raise format_error(path, "", rule)
        try:
            with open_file(path) as file:
                several = _count_headers(path, file) > 1
        except OSError as error:
            raise format_error(path, "", why_unreadable(error)) from None
        try:
            with open_file(path) as file:
                yield from _items(file, several)
        except OSError as error:
            yield Damage("the rest of the file", why_unreadable(error))


class _Header(NamedTuple):
    namespace: str
    records: int
    root: str | None
    place: str


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not empty, with their numbers; None for one that is longer than any record's."""
    number = 0
    while line := file.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) <= _LONGEST_LINE or line.endswith(b"\n"):
            line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if line.strip():
                yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_LONGEST_LINE)
        yield number, None


def _value(line: bytes | None) -> dict[str, Any]:
    """The object that a line holds. Raises: UnreadableError."""
    if line is None:
        raise UnreadableError("is too long to be a record")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not text in UTF-8 (byte {error.start})") from None
    value = parse_json(text)
    if not isinstance(value, dict):
        raise UnreadableError(f"is {kind_of(value)}, not an object")
    return value


def _header(value: dict[str, Any], place: str) -> _Header:
    match value:
        case {"recollect": {"format": int(version), "namespace": str(namespace), "records": int(records)}}:
            if version != FORMAT:
                raise UnreadableError(f"is a header of format {version}; this release reads format {FORMAT}")
            try:
                root = value[_HEADER].get("root")
                return _Header(
                    record_id(namespace, "namespace"), records, root if isinstance(root, str) else None, place
                )
            except InvalidRecordError as error:
                raise UnreadableError(f"is a header whose namespace {error.args[2]}") from None
    raise UnreadableError("is not a header with a format, a namespace and the number of records")


def is_export(beginning: bytes) -> bool:
    """Whether a file, or a line that cannot be read, begins as a header does: no record has such a key."""
    return beginning.lstrip().startswith(b'{"recollect"')


def _count_headers(path: Path, file: BinaryIO) -> int:
    """How many headers there are, damaged ones too. Raises: ImportFormatError where the first line is none."""
    found = 0
    for number, line in _lines(file):
        if found and (line is None or b'"recollect"' not in line):
            continue  # it will be parsed once, when it is read
        try:
            value = _value(line)
            if not found:
                _header(value, "")
            found += _HEADER in value
        except UnreadableError as error:
            if not found:
                raise format_error(path, f"line {number}", str(error)) from None
            found += line is not None and is_export(line)
    if not found:
        raise format_error(path, "", "is empty")
    return found


def _items(file: BinaryIO, several: bool) -> Iterator[Item | Damage | Promise]:
    header: _Header | None = None
    passed = 0
    for number, line in _lines(file):
        place = f"line {number}"
        value: dict[str, Any] = {}
        reason: UnreadableError | None = None
        try:
            value = _value(line)
        except UnreadableError as error:
            reason = error
        if _HEADER in value or (reason is not None and line is not None and is_export(line)):
            yield from _ended(header, passed, several)
            header, passed = None, 0
            try:
                header = _header(value, place)
            except UnreadableError as error:
                yield Damage(place, str(reason or error))
            continue
        passed += 1
        try:
            if reason is not None:
                raise reason
            if header is None:
                raise UnreadableError("stands under a damaged header, so its namespace is not known")
            yield Item(namespace=header.namespace if several else None, fields=_fields(value), place=place)
        except UnreadableError as error:
            yield Damage(place, str(error))
    yield from _ended(header, passed, several)


def _ended(header: _Header | None, passed: int, several: bool) -> Iterator[Damage | Promise]:
    """What there is to say at the end of a header's records."""
    if header is not None and passed != header.records:
        yield Damage(header.place, f"the header promises {header.records} records; {passed} lines follow it")
    if header is not None and header.root is not None:
        yield Promise(header.namespace if several else None, header.root)


def _fields(value: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record's line, checked. Raises: UnreadableError."""
    promised = value.pop("hash", None)
    for names in (("id",), ("content", "data")):
        given = [name for name in names if value.get(name) is not None]
        if len(given) != 1:
            raise UnreadableError(f"has {'both' if given else 'no'} {' and '.join(given) or ' or '.join(names)}")
    try:
        fields = fields_from_json(value)
        record = Record(**fields)
    except RecollectError as error:
        raise UnreadableError(str(error)) from None
    if promised is not None and promised != record.hash:
        raise UnreadableError(f"its hash is {record.hash}, which is not the one that the line says")
    return fields


def write_jsonl(memory: Memory, file: TextIO) -> int:
    """Write a header and every record of a memory, by rising id, as JSON lines; how many records.

    The file should be UTF-8 with newlines as they are (`open(path, "w", encoding="utf-8", newline="\\\\n")`). The
    header's root is that of these records; a memory narrowed to a scope has none.
    """
    root, records = memory.export_records()
    about = {"format": FORMAT, "namespace": memory.name, "root": root or None, "records": len(records)}
    for value in ({_HEADER: about}, *({**record.to_json(), "hash": record.hash} for record in records)):
        file.write(json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n")
    return len(records)
