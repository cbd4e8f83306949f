"""CSV files: each row is a record, and the header names the fields."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any

from recollect.importers.base import Damage, Item, TurnImporter, format_error, parse_json, read_text
from recollect.quoting import printable
from recollect.records.documents import bounded_id
from recollect.records.messages.values import UnreadableError, instant
from recollect.records.record import Fields

_DELIMITERS = (",", ";", "\t")


class Csv(TurnImporter):
    """A header with the column `content`, then rows; separated by commas, semicolons or tabs."""

    name = "csv"
    origin = "document"
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
    **dict.fromkeys(("pinned", "searchable"), _flag),
    "metadata": parse_json,
}


# Rows of named values as items: the common part of the importers of CSV and of JSON lines without a header.
#
# A name that is a field of a record fills that field; "content" is required. Other names go to the metadata. A row
# with a role or a conversation is a turn, and without a position it gets the next one in its conversation, so that
# importing a longer version of a file adds only the new turns.

TIMES = ("time", "valid_from", "valid_to", "expires")
#: The names that are fields of a record. Rows have text only, so `media_type` is not among them.
FIELDS = ("id", "content", *(name for name in Fields.__annotations__ if name not in ("media_type", "metadata")))


class RowImporter:
    """The rows of a source as items.

    Args:
        importer: The importer, which may have a default conversation.
        zone: The time zone of times without an offset.
    """

    def __init__(self, importer: TurnImporter, zone: tzinfo) -> None:
        self._conversation = importer.default_conversation
        self._zone = zone
        self._turns: dict[str, int] = {}

    def item(self, values: dict[str, Any], place: str) -> Item | Damage:
        """Return the item of a row, whose values have the types of a record's fields, except for times."""
        try:
            return Item(namespace=None, fields=self._fields(values), place=place)
        except UnreadableError as error:
            return Damage(place, str(error))

    def _fields(self, values: dict[str, Any]) -> dict[str, Any]:
        fields = {name: values[name] for name in FIELDS if values.get(name) is not None}
        if fields.get("searchable") is False:  # only such a record can be blank
            fields.setdefault("content", "")
        if not isinstance(fields.get("content"), str):
            raise UnreadableError("has no content" if "content" not in fields else "its content is not text")
        if self._conversation is not None:
            fields.setdefault("conversation", self._conversation)
        # Always stated: a mapping with a role and no kind would be read as a message of an API.
        fields.setdefault("kind", "conversation" if "conversation" in fields or "role" in fields else "knowledge")
        if isinstance(fields.get("id"), str):
            fields["id"] = bounded_id(fields["id"])
        conversation = fields.get("conversation")
        if fields["kind"] == "conversation" and isinstance(conversation, str):
            number = self._turns.get(conversation, 0)
            self._turns[conversation] = number + 1  # a damaged turn keeps its position
            fields.setdefault("position", number)
        for name in TIMES:
            if name in fields:
                fields[name] = instant(fields[name], self._zone)
        stated = values.get("metadata")
        if stated is not None and not isinstance(stated, dict):
            raise UnreadableError("its metadata is not an object")
        others = {key: value for key, value in values.items() if key not in (*FIELDS, "metadata") and value is not None}
        return {**fields, "metadata": {**others, **(stated or {})}}
