"""The display of results: in a Python prompt, in a notebook and with rich.

A result describes itself as a `ShownTable`; text and HTML are made from it. Both are bounded, however large the result
is: texts are cut to one line and long lists to their first rows. Content is data and never markup: HTML is escaped,
control characters are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any, NamedTuple, TypeVar

from recollect.quoting import printable

T = TypeVar("T", bound=type)
I = TypeVar("I")  # noqa: E741 - an item
#: Maximum number of rows, of characters of a cell in text, and of an id before it is shortened.
MAX_ROWS = 10
MAX_CELL = 60
_MAX_ID = 12
_SHORT_ID = 8


class ShownTable(NamedTuple):
    """The short form in which a result shows itself.

    Attributes:
        title: What it is, in a few words.
        columns: The headings of the columns.
        rows: The first rows, at most `MAX_ROWS`.
        total: How many rows there are in all.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]] = ()
    total: int = 0


def table(title: str, columns: tuple[str, ...], items: Sequence[I], row: Callable[[I], tuple[str, ...]]) -> ShownTable:
    """Return the table of a list: `row` returns the cells of an item, and is called for the first ones only."""
    first = [items[number] for number in range(min(len(items), MAX_ROWS))]
    return ShownTable(title, columns, [row(item) for item in first], len(items))


def line(text: str | bytes, limit: int = MAX_CELL) -> str:
    """Return a text on one printable line, cut to `limit` characters. Takes no time on a long text.

    >>> line("Ana prefers" + chr(10) + "window seats"), line("x" * 100, 5), line(b"PNG")
    ('Ana prefers window seats', 'xxxx…', '[3 bytes]')
    """
    if isinstance(text, bytes):
        return f"[{len(text)} bytes]"
    out = printable(" ".join(text[: 4 * limit].split()))
    return out if len(out) <= limit and len(text) <= 4 * limit else out[: limit - 1] + "…"


def short_id(record_id: str) -> str:
    """Return an id for a reader: a long one, such as a UUID, is cut to its first characters.

    >>> short_id("note-2"), short_id("07da8130-e45f-5a7b-9c1d-0123456789ab")
    ('note-2', '07da8130…')
    """
    return record_id if len(record_id) <= _MAX_ID else record_id[:_SHORT_ID] + "…"


def shows_itself(kind: T) -> T:
    """Decorate a class so that its `_table` is its repr, and what notebooks and rich show of it.

    Not a base class: `records.frozen` needs classes that have none.
    """
    methods: dict[str, Callable[[Any], Any]] = {
        "__repr__": lambda self: as_text(self._table()),
        "__rich_repr__": lambda self: _for_rich(self._table()),
        "_repr_html_": lambda self: as_html(self._table()),
    }
    for name, method in methods.items():
        setattr(kind, name, method)
    return kind


def as_text(shown: ShownTable) -> str:
    """Return a table as text: its title, and a line for each row."""
    if not shown.rows:
        return f"<{shown.title}>"
    widths = [max(map(len, cells)) for cells in zip(*shown.rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in shown.rows]
    return "\n  ".join([f"<{shown.title}:", *map(str.rstrip, lines), *_more(shown)]) + ">"


def _more(shown: ShownTable) -> list[str]:
    rest = shown.total - len(shown.rows)
    return [f"... and {rest} more"] if rest > 0 else []


def _for_rich(shown: ShownTable) -> Iterator[Any]:
    yield shown.title
    for row in shown.rows:
        yield dict(zip(shown.columns, row, strict=True))
    yield from _more(shown)


def as_html(shown: ShownTable) -> str:
    """Return a table as HTML, with every text escaped."""
    if not shown.rows:
        return f"<p>{escape(shown.title)}</p>"
    head, body = _row("th", shown.columns), "".join(_row("td", row) for row in shown.rows)
    more = "".join(f"<p>{text}</p>" for text in _more(shown))
    return f"<table><caption>{escape(shown.title)}</caption><thead>{head}</thead><tbody>{body}</tbody></table>{more}"


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
