"""JSON lines: exports of this package, from which the identical records can be imported, and lines without a header.

In an export, the first line is a header, `{"recollect": {"format": 1, "namespace": ..., "root": ..., "records": n}}`.
Each line after it is a record (`Record.to_json`), optionally with its "hash". Another header can follow: of format 2
for what a facet keeps, with the name of this part of the memory as "part", or for another namespace. The records of a
file with one namespace go to the one that the user chose; with several, to those of the headers.

One line is in memory at a time. Damaged lines are reported and the others are imported; a file that ends before the
number of records in its header is reported, too.

A file whose first line is an object with "content" is a list of things to remember (`rows`), not an export.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator
from datetime import tzinfo
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
from recollect.ledger.commits import RESERVED
from recollect.ledger.parts import RECORDS
from recollect.records.messages.values import UnreadableError, kind_of
from recollect.records.record import fields_from_json, record_id, restored
from recollect.records.redacted import redacted
from recollect.stores.sealing.exports import is_sealed, opened
from recollect.stores.sealing.keys import Secret
from recollect.stores.sealing.secrets import secret_or_default

if TYPE_CHECKING:
    from recollect.engine.results import PartCounts
    from recollect.memory import Memory

#: The format of the header of records, and of that of another part: releases that know no parts refuse the latter.
FORMAT, PART_FORMAT = 1, 2
_HEADER = "recollect"
_MAGIC_BYTES = 8
#: Maximum bytes of a line: enough for 10 MiB of content with every byte escaped, which larger limits can allow.
_LONGEST_LINE = 2**28


#: Progress is reported after this many records.
_REPORTED = 1000


class JsonLines(TurnImporter):
    """An export of this package, or an object with "content" in each line.

    Args:
        secret: What opens an encrypted export. Default: the secret in the file that RECOLLECT_SECRET_FILE names.
    """

    name = "jsonl"
    origin = "unknown"
    summary = 'JSON lines: an export, whose records come back exactly as they were, or {"content": ...} in each line'

    def __init__(self, secret: Secret | None = None) -> None:
        self._secret = secret

    def _opened(self, path: Path) -> BinaryIO:
        file = open_file(path)
        try:
            if is_sealed(file.read(_MAGIC_BYTES)):
                return opened(file, str(path), secret_or_default(self._secret))
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | Promise]:
        if not os.path.isfile(path):
            rule = "is not a regular file" if os.path.exists(path) else "does not exist"
            raise format_error(path, "", rule)
        try:
            with self._opened(path) as file:
                namespaces = _namespaces(path, file)
        except OSError as error:
            raise format_error(path, "", why_unreadable(error)) from None
        try:
            with self._opened(path) as file:
                yield from _items(file, len(namespaces) > 1) if namespaces else _rows(file, RowImporter(self, zone))
        except OSError as error:
            yield Damage("the rest of the file", why_unreadable(error))


class _Header(NamedTuple):
    namespace: str
    records: int
    root: str | None
    place: str
    part: str = RECORDS


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
            stated = value[_HEADER]
            part, root = stated.get("part", RECORDS), stated.get("root")
            if version != (FORMAT if part == RECORDS else PART_FORMAT):
                known = f"this release reads format {FORMAT}, and {PART_FORMAT} with a part"
                raise UnreadableError(f"is a header of format {version}; {known}")
            if part not in (RECORDS, *RESERVED):
                raise UnreadableError(f"is a header of a part of the memory that is none of {', '.join(RESERVED)}")
            try:
                namespace = record_id(namespace, "namespace")
            except InvalidRecordError as error:
                raise UnreadableError(f"is a header with an invalid namespace, which {error.args[2]}") from None
            return _Header(namespace, records, root if isinstance(root, str) else None, place, part)
    raise UnreadableError("is not a header with a format, a namespace and the number of records")


def is_export(beginning: bytes) -> bool:
    """Return whether a file or an unreadable line begins like a header. No record has this key."""
    return beginning.lstrip().startswith(b'{"recollect"')


def _namespaces(path: Path, file: BinaryIO) -> set[str | int]:
    """Return the namespaces of the headers, and the number of the line for a damaged one; none for a list of rows.

    (A row with a hash has lost its header.)

    Raises:
        ImportFormatError: The first line is neither a header nor a row.
    """
    found: set[str | int] = set()
    for number, line in _lines(file):
        if found and (line is None or b'"recollect"' not in line):
            continue  # it is parsed later, when it is imported
        try:
            value = _value(line)
            if not found and "content" in value and not value.keys() & {_HEADER, "hash"}:
                return set()
            if not found or _HEADER in value:
                found.add(_header(value, "").namespace)
        except UnreadableError as error:
            if not found:
                raise format_error(path, f"line {number}", str(error)) from None
            if line is not None and is_export(line):
                found.add(number)
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
            yield Item(namespace=namespace, fields=_fields(value), place=place, exact=True, part=header.part)
        except UnreadableError as error:
            yield Damage(place, str(error))
    yield from _ended(header, passed, several)


def _ended(header: _Header | None, passed: int, several: bool) -> Iterator[Damage | Promise]:
    """Yield what can be checked after the last record of a header: their number and the root."""
    if header is not None and passed != header.records:
        yield Damage(header.place, f"the header says {header.records} records, but {passed} lines follow it")
    if header is not None and header.root is not None:
        yield Promise(header.namespace if several else None, header.root, header.part)


def _fields(value: dict[str, Any]) -> dict[str, Any]:
    """Return the validated fields of the line of a record. Raises UnreadableError."""
    promised = value.pop("hash", None)
    for names in (("id",), ("content", "data")):
        present = [name for name in names if value.get(name) is not None]
        if len(present) != 1:
            raise UnreadableError(f"has {'both' if present else 'no'} {' and '.join(present) or ' or '.join(names)}")
    try:
        fields = fields_from_json(value)
        record = restored(**fields)
    except RecollectError as error:
        raise UnreadableError(str(error)) from None
    if promised is not None and promised != record.hash:
        raise UnreadableError(f"its hash is {record.hash}, which differs from the one in the line")
    return fields


def write_jsonl(
    memory: Memory,
    file: TextIO,
    *,
    parts: Collection[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
    redact: bool = False,
) -> PartCounts:
    """Write a header and every record of a memory, by ascending id, as JSON lines, and then what facets keep.

    Args:
        memory: The memory. A header has the root of what follows it; within a scope there is none.
        file: A UTF-8 text file without newline translation (`open(path, "w", encoding="utf-8", newline="\\n")`).
        parts: The parts of the memory, by name: "records", or what facets keep ("terms", "nodes", "sdrs", "keys").
            Default: all.
        progress: Called with the number of records written so far and the total.
        redact: Replace keys, passwords, addresses and numbers of people (`recollect.policies.redact`). The headers then
            have no root, since these are other records.

    Returns:
        The number of records, which also has that of each part.

    Raises:
        InvalidArgumentError: `file` is a path, or another argument is invalid.
    """
    from recollect.engine.results import PartCounts

    check_memory(memory)
    if not hasattr(file, "write"):
        rule = 'must be a file, such as open(path, "w", encoding="utf-8", newline="\n")'
        raise InvalidArgumentError("file", file, rule)
    with memory.open_export(parts=parts) as export:
        written = {each.name: each.count for each in export.parts}
        sections = [(each.name, each.root, each.count, each.records) for each in export.parts]
        if parts is None or RECORDS in parts:
            written = {RECORDS: export.count, **written}
            sections.insert(0, (RECORDS, export.root, export.count, export.records))
        # A named part that is empty has a header, too, so that no export is an empty file.
        sections += [(name, "", 0, iter(())) for name in sorted(parts or ()) if name not in written]
        total, done = sum(written.values()), 0
        for name, root, count, records in sections:
            about = {"namespace": memory.name, "root": None if redact else root or None, "records": count}
            about |= {"format": FORMAT} if name == RECORDS else {"format": PART_FORMAT, "part": name}
            exported = map(redacted, records) if redact else records
            _write_line(file, {_HEADER: about})
            for record in exported:
                if progress is not None and done % _REPORTED == 0:
                    progress(done, total)
                _write_line(file, {**record.to_json(), "hash": record.hash})
                done += 1
        if progress is not None:
            progress(done, total)
        return PartCounts(written)


def _write_line(file: TextIO, value: dict[str, Any]) -> None:
    file.write(json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n")
