"""CSV files: each row is a record, and the header names the fields."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any

from recollect.errors import printable
from recollect.importers.base import Damage, Item, TurnImporter, format_error, parse_json, read_text
from recollect.importers.rows import FIELDS, RowImporter
from recollect.records.messages.values import UnreadableError

_DELIMITERS = (",", ";", "\t")


class Csv(TurnImporter):
    """A header with the column `content`, then rows; separated by commas, semicolons or tabs."""

    name = "csv"
    summary = "CSV: a header that names fields of records, one of them content; other columns become metadata"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        text = read_text(path)
        first = text.lstrip().partition("\n")[0]
        delimiter = max(_DELIMITERS, key=first.count)  # the first of them if the header is a single name
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            names = [name.strip() for name in next((row for row in reader if any(row)), [])]
        except csv.Error as error:
            raise format_error(path, "line 1", f"is not CSV ({error})") from None
        names = [name.lower() if name.lower() in (*FIELDS, "metadata") else name for name in names]
        if "content" not in names:
            raise format_error(path, "line 1", 'is not a header with a column "content"')
        double = next((name for name in names if names.count(name) > 1), None)
        if double is not None:
            raise format_error(path, "line 1", f"has two columns {printable(double)[:80]!r}")
        yield from _items(reader, names, RowImporter(self, zone))


def _items(reader: Any, names: list[str], rows: RowImporter) -> Iterator[Item | Damage]:
    while True:
        place = f"line {reader.line_num + 1}"
        try:
            row = next(reader, None)
        except csv.Error as error:
            if "field limit" in str(error):  # the rest of the field would be read as rows
                yield Damage(f"{place} and all lines after it", f"has a field that is too long ({error})")
                return
            yield Damage(place, f"is not CSV ({error})")
            continue
        if row is None:
            return
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(names):
            yield Damage(place, f"has {len(row)} values, but the header has {len(names)} columns")
            continue
        try:
            values = {name: _value(name, cell) for name, cell in zip(names, row, strict=True) if name and cell.strip()}
        except UnreadableError as error:
            yield Damage(place, str(error))
        else:
            yield rows.item(values, place)


def _value(name: str, cell: str) -> Any:
    """Return a cell as the type of its field. Raises UnreadableError."""
    read = _TYPES.get(name)
    if read is None:
        return cell
    try:
        return read(cell.strip())
    except ValueError as error:
        reason = str(error) if isinstance(error, UnreadableError) else "is not valid"
        raise UnreadableError(f"its {name} {printable(cell)[:80]!r} {reason}") from None


def _list(cell: str) -> list[str]:
    """Return the values of a list: JSON, or separated by commas or semicolons."""
    if cell.startswith("["):
        value = parse_json(cell)
        return value if isinstance(value, list) else [cell]
    return [part.strip() for part in cell.replace(";", ",").split(",") if part.strip()]


def _time(cell: str) -> str | float:
    """Return seconds since 1970 as a number, and any other time as text."""
    try:
        return float(cell)
    except ValueError:
        return cell


def _flag(cell: str) -> bool:
    value = parse_json(cell.lower())
    if not isinstance(value, bool):
        raise UnreadableError("is neither true nor false")
    return value


_TYPES: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("position", "order"), int),
    **dict.fromkeys(("importance", "trust"), float),
    **dict.fromkeys(("time", "valid_from", "valid_to", "expires"), _time),
    **dict.fromkeys(("tags", "supersedes", "derived_from"), _list),
    "pinned": _flag,
    "metadata": parse_json,
}
