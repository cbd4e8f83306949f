"""JSON lines: exports of this package, from which the identical records can be imported, and lines without a header.

In an export, the first line is a header, `{"recollect": {"format": 1, "namespace": ..., "root": ..., "records": n}}`.
Each line after it is a record (`Record.to_json`), optionally with its "hash". Another header can follow, for another
namespace. The records of a file with one header go to the namespace that the user chose; with several, to those of the
headers.

One line is in memory at a time. Damaged lines are reported and the others are imported; a file that ends before the
number of records in its header is reported, too.

A file whose first line is an object with "content" is a list of things to remember (`rows`), not an export.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import tzinfo
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TextIO

from recollect.errors import InvalidArgumentError, InvalidRecordError, RecollectError
from recollect.importers.base import (
    Damage,
    Item,
    Promise,
    TurnImporter,
    check_memory,
    format_error,
    open_file,
    parse_json,
    why_unreadable,
)
from recollect.importers.tables import RowImporter
from recollect.records.messages.values import UnreadableError, kind_of
from recollect.records.record import Record, fields_from_json, record_id
from recollect.records.redacted import redacted

if TYPE_CHECKING:
    from recollect.memory import Memory

FORMAT = 1
_HEADER = "recollect"
#: Maximum bytes of a line: enough for 10 MiB of content with every byte escaped, which larger limits can allow.
_LONGEST_LINE = 2**28


#: Progress is reported after this many records.
_REPORTED = 1000


class JsonLines(TurnImporter):
    """An export of this package, or an object with "content" in each line."""

    name = "jsonl"
    summary = 'JSON lines: an export, whose records come back exactly as they were, or {"content": ...} in each line'

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | Promise]:
        if not os.path.isfile(path):
            rule = "is not a regular file" if os.path.exists(path) else "does not exist"
            raise format_error(path, "", rule)
        try:
            with open_file(path) as file:
                headers = _count_headers(path, file)
        except OSError as error:
            raise format_error(path, "", why_unreadable(error)) from None
        try:
            with open_file(path) as file:
                yield from _items(file, headers > 1) if headers else _rows(file, RowImporter(self, zone))
        except OSError as error:
            yield Damage("the rest of the file", why_unreadable(error))


class _Header(NamedTuple):
    namespace: str
    records: int
    root: str | None
    place: str


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield the number and the bytes of each line that is not empty; None for a line that is too long for a record."""
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
    """Parse the JSON object of a line. Raises UnreadableError."""
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
                raise UnreadableError(f"is a header with an invalid namespace, which {error.args[2]}") from None
    raise UnreadableError("is not a header with a format, a namespace and the number of records")


def is_export(beginning: bytes) -> bool:
    """Return whether a file or an unreadable line begins like a header. No record has this key."""
    return beginning.lstrip().startswith(b'{"recollect"')


def _count_headers(path: Path, file: BinaryIO) -> int:
    """Count the headers, damaged ones too; 0 if the file is a list of rows. (A row with a hash has lost its header.)

    Raises:
        ImportFormatError: The first line is neither a header nor a row.
    """
    found = 0
    for number, line in _lines(file):
        if found and (line is None or b'"recollect"' not in line):
            continue  # it is parsed later, when it is imported
        try:
            value = _value(line)
            if not found and "content" in value and not value.keys() & {_HEADER, "hash"}:
                return 0
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


def _rows(file: BinaryIO, rows: RowImporter) -> Iterator[Item | Damage]:
    for number, line in _lines(file):
        try:
            yield rows.item(_value(line), f"line {number}")
        except UnreadableError as error:
            yield Damage(f"line {number}", str(error))


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
                raise UnreadableError("follows a damaged header, so its namespace is unknown")
            namespace = header.namespace if several else None
            yield Item(namespace=namespace, fields=_fields(value), place=place, exact=True)
        except UnreadableError as error:
            yield Damage(place, str(error))
    yield from _ended(header, passed, several)


def _ended(header: _Header | None, passed: int, several: bool) -> Iterator[Damage | Promise]:
    """Yield what can be checked after the last record of a header: their number and the root."""
    if header is not None and passed != header.records:
        yield Damage(header.place, f"the header says {header.records} records, but {passed} lines follow it")
    if header is not None and header.root is not None:
        yield Promise(header.namespace if several else None, header.root)


def _fields(value: dict[str, Any]) -> dict[str, Any]:
    """Return the validated fields of the line of a record. Raises UnreadableError."""
    promised = value.pop("hash", None)
    for names in (("id",), ("content", "data")):
        present = [name for name in names if value.get(name) is not None]
        if len(present) != 1:
            raise UnreadableError(f"has {'both' if present else 'no'} {' and '.join(present) or ' or '.join(names)}")
    try:
        fields = fields_from_json(value)
        record = Record(**fields)
    except RecollectError as error:
        raise UnreadableError(str(error)) from None
    if promised is not None and promised != record.hash:
        raise UnreadableError(f"its hash is {record.hash}, which differs from the one in the line")
    return fields


def write_jsonl(
    memory: Memory,
    file: TextIO,
    *,
    progress: Callable[[int, int], object] | None = None,
    redact: bool = False,
) -> int:
    """Write a header and every record of a memory, by ascending id, as JSON lines.

    Args:
        memory: The memory. The header has the root of its records; within a scope there is none.
        file: A UTF-8 text file without newline translation (`open(path, "w", encoding="utf-8", newline="\\\\n")`).
        progress: Called with the number of records written so far and the total.
        redact: Replace keys, passwords, addresses and numbers of people (`recollect.policies.redact`). The header then
            has no root, since these are other records.

    Returns:
        The number of records.

    Raises:
        InvalidArgumentError: `file` is a path, or another argument is invalid.
    """
    check_memory(memory)
    if not hasattr(file, "write"):
        rule = 'must be a file, such as open(path, "w", encoding="utf-8", newline="\\n")'
        raise InvalidArgumentError("file", file, rule)
    with memory.open_export() as export:
        root = None if redact else export.root or None
        about = {"format": FORMAT, "namespace": memory.name, "root": root, "records": export.count}
        exported = map(redacted, export.records) if redact else export.records
        records = ({**record.to_json(), "hash": record.hash} for record in exported)
        for number, value in enumerate(chain([{_HEADER: about}], records)):
            file.write(json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n")
            if progress is not None and (number % _REPORTED == 0 or number == export.count):
                progress(number, export.count)
        return export.count
