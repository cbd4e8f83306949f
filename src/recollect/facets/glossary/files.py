"""The terms of a glossary as CSV and as JSON, to be edited elsewhere and read again.

Both have the fields of `FIELDS`. In CSV, the aliases are one cell: a line of CSV itself, with ";" between them. What is
read is checked whole, so an error means that nothing was taken from it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from recollect.errors import ImportFormatError, InvalidArgumentError
from recollect.facets.glossary.values import StatedTerm

FIELDS = ("key", "value", "category", "aliases", "description", "expires")
_REQUIRED = ("key", "value")
#: What `Glossary.list_all` returns besides. It follows from the agent and the key, so it is not read.
_DERIVED = frozenset({"agent_id", "entry_id"})
_ALIASES = ";"


def to_csv(terms: Iterable[StatedTerm]) -> str:
    """Return terms as CSV with a header (RFC 4180)."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(FIELDS)
    for term in terms:
        expires = "" if term.expires is None else term.expires.isoformat()
        writer.writerow([*term[:3], _line(term.aliases), term.description, expires])
    return out.getvalue()


def to_json(terms: Iterable[StatedTerm]) -> str:
    """Return terms as a JSON array of objects. One that never expires has no "expires"."""
    rows = []
    for term in terms:
        row = {**term._asdict(), "aliases": list(term.aliases)}
        row["expires"] = None if term.expires is None else term.expires.isoformat()
        rows.append({name: value for name, value in row.items() if name != "expires" or value is not None})
    return json.dumps(rows, ensure_ascii=False, indent=2)


def from_csv(text: str) -> list[StatedTerm]:
    """Return the terms of CSV with a header. "key" and "value" are required, and other fields may be absent.

    Raises:
        ImportFormatError: It is not such a file.
    """
    return list(_checked("the CSV text", "line", _rows(text)))


def from_json(text: str) -> list[StatedTerm]:
    """Return the terms of a JSON array of objects.

    Raises:
        ImportFormatError: It is not such an array.
    """
    what = "the JSON text"
    try:
        rows = json.loads(_without_mark(text))
    except (ValueError, RecursionError) as error:
        raise ImportFormatError(what, "", f"is not JSON ({error})") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ImportFormatError(what, "", "must be an array of objects")
    return list(_checked(what, "term", enumerate(rows, 1)))


def _rows(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows of CSV by field, with the number of their last line."""
    if not isinstance(text, str):
        raise InvalidArgumentError("text", text, "must be text")
    reader = csv.reader(io.StringIO(_without_mark(text), newline=""), strict=True)
    header: list[str] = []
    try:
        header = next(reader, [])
        if len(set(header)) < len(header) or not set(_REQUIRED) <= set(header):
            rule = f"the first line must name the fields {', '.join(FIELDS)}, of which only key and value are required"
            raise ImportFormatError("the CSV text", "line 1", rule)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                rule = f"has {len(cells)} fields, and the first line has {len(header)}"
                raise ImportFormatError("the CSV text", f"line {reader.line_num}", rule)
            row: dict[str, Any] = dict(zip(header, cells, strict=True))
            row["aliases"] = _split(row.get("aliases", ""))
            row["expires"] = row.get("expires") or None
            yield reader.line_num, row
    except csv.Error as error:
        raise ImportFormatError("the CSV text", f"line {reader.line_num}", f"is not CSV ({error})") from None


def _checked(what: str, place: str, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[StatedTerm]:
    """Yield the terms of rows whose fields are complete and have the right types, with different keys."""
    places: dict[str, int] = {}
    for number, row in rows:
        here = f"{place} {number}"
        unknown = sorted(row.keys() - {*FIELDS} - _DERIVED)
        if unknown:
            raise ImportFormatError(what, here, f"has an unknown field {unknown[0]!r}; fields are {', '.join(FIELDS)}")
        for name in _REQUIRED:
            if not isinstance(row.get(name), str) or not row[name].strip():
                raise ImportFormatError(what, here, f"has no text in the field {name}")
        texts = {name: row.get(name) or "" for name in ("category", "description")}
        aliases = row.get("aliases") or []
        if not all(isinstance(text, str) for text in texts.values()):
            raise ImportFormatError(what, here, "the category and the description must be texts")
        if not isinstance(aliases, list) or not all(isinstance(each, str) and each.strip() for each in aliases):
            raise ImportFormatError(what, here, "the aliases must be a list of texts")
        first = places.setdefault(row["key"].lower(), number)
        if first != number:
            raise ImportFormatError(what, here, f"has the key {row['key']!r}, as {place} {first}")
        expires = _time(what, here, row.get("expires"))
        yield StatedTerm(row["key"], row["value"], texts["category"], tuple(aliases), texts["description"], expires)


def _time(what: str, place: str, value: object) -> datetime | None:
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ImportFormatError(what, place, "expires must be a time with its zone, such as 2027-01-31T12:00:00+00:00")
    return time


def _line(aliases: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=_ALIASES).writerow(aliases)
    return out.getvalue().removesuffix("\r\n")


def _split(cell: str) -> list[str]:
    lines = list(csv.reader(io.StringIO(cell, newline=""), delimiter=_ALIASES, strict=True))
    return [alias for line in lines for alias in line]


def _without_mark(text: str) -> str:
    """Return a text without the byte order mark that spreadsheets write."""
    if not isinstance(text, str):
        raise InvalidArgumentError("text", text, "must be text")
    return text.removeprefix("\ufeff")
