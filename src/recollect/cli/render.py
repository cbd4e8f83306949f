"""Output of results as tables in a terminal. Rich is imported when it is first needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

import click

from recollect.common.regexes import regex
from recollect.common.reprs import line, short_id
from recollect.engine.facets import called
from recollect.engine.history_results import Difference
from recollect.engine.results import Hit, Hits
from recollect.errors import AmbiguousIdError
from recollect.ledger.parts import RECORDS
from recollect.memory import Memory
from recollect.records.origins import UNTRUSTED
from recollect.records.record import Record
from recollect.text.unicode import nfc

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: Maximum length of a text in a table, in characters; `recollect get` prints all of it.
_MAX_CHARACTERS = 300
#: Minimum width of a terminal, in columns, for times of day and a column of explanations.
_WIDE_COLUMNS = 110
#: Minimum width for tables. With less, columns would have a few characters, and each row a dozen of lines.
_TABLE_COLUMNS = 60
#: Options of a column of ids.
_ID: dict[str, Any] = {"max_width": 20, "overflow": "fold"}


def console(*, stderr: bool = False) -> Console:
    """Return a console for stdout or stderr. Output to a file or pipe is 140 columns wide, unless COLUMNS is set."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr,
        highlight=False,
        soft_wrap=False,
        width=None if stream.isatty() or "COLUMNS" in os.environ else 140,
    )


@contextmanager
def progress(doing: str, *, quiet: bool) -> Iterator[Callable[..., object] | None]:
    """Show what is being done, for how long, and how much is done, if stderr is a terminal.

    Args:
        doing: What is being done.
        quiet: Whether to show nothing, because the result is printed as JSON.

    Yields:
        A function of the number done and of the total, if that is known; it need not be called. None if nothing is
        shown. (An operation with a function cannot be sent to another process.)
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, *times, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None, count="")

        def update(done: int, total: int | None = None) -> None:
            bar.update(task, completed=done, total=total, count=f"{done}" if total is None else f"{done} of {total}")

        yield update


def plain(text: str, limit: int = _MAX_CHARACTERS) -> str:
    """Make a text safe for a terminal: one line, control characters replaced by visible symbols, cut at `limit`."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    out = []
    for char in cut:
        if char in "\n\t\r":
            out.append(" ")
        elif ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0:
            out.append(chr(0x2400 + ord(char)) if ord(char) < 0x20 else "\u2421")
        else:
            out.append(char)
    return "".join(out)


def table(columns: Sequence[tuple[str, dict[str, Any]]], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on stdout; in a narrow terminal, each row as lines with a heading and a cell.

    Args:
        columns: Headings, each with the options of rich's `add_column`.
        rows: The cells of each row.
    """
    from rich.table import Table
    from rich.text import Text

    if console().width < _TABLE_COLUMNS and len(columns) > 1:
        for number, row in enumerate(rows):
            console().print(*[""] * bool(number), *_stacked([heading for heading, _ in columns], row), sep="\n")
        return
    out = Table(box=None, header_style="bold", pad_edge=False)
    for heading, options in columns:
        out.add_column(heading, **options)
    for row in rows:
        out.add_row(*(Text(cell) for cell in row))
    console().print(out)


def _stacked(headings: Sequence[str], row: Sequence[str]) -> Iterator[Text]:
    """Yield the lines of a row of a table for which there is no room: each cell that has a text, after its heading."""
    from rich.text import Text

    for heading, cell in zip(headings, row, strict=True):
        if cell.strip():
            yield Text.assemble((f"{heading}: ", "bold"), cell, overflow="fold")


def show_rows(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print texts as a table, the last column as wide as there is room; nothing if there are no rows."""
    cells = [[plain(cell) for cell in row] for row in rows]
    if cells:
        wide = {"ratio": 1, "overflow": "fold"}
        table([(name, wide if name == headings[-1] else {"overflow": "fold"}) for name in headings], cells)


def _is_wide() -> bool:
    return console().width >= _WIDE_COLUMNS


def when(record: Record, zone: tzinfo, *, wide: bool = True) -> str:
    """Return a record's time in a time zone for a table; in a narrow one its date."""
    return record.time.astimezone(zone).strftime("%Y-%m-%d %H:%M" if wide else "%Y-%m-%d") if record.time else ""


def moment(time: datetime, zone: tzinfo) -> str:
    """Return a time in a time zone, to the second."""
    return time.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")


def who(record: Record) -> str:
    """Return a record's speaker, role or user for a table."""
    return record.speaker or record.role or record.user or ""


def content(record: Record, limit: int = _MAX_CHARACTERS) -> str:
    """Return a record's text for a table, with its class of origin if the user has not said it and no role says so."""
    origin = record.effective_origin
    mark = f"[{origin}] " if origin in UNTRUSTED or (record.origin is not None and not record.has_authority) else ""
    if isinstance(record.content, bytes):
        return f"{mark}[{len(record.content)} bytes of {record.media_type}]"
    return mark + plain(record.content, limit)


def reasons(hit: Hit, hits: Hits) -> str:
    """Return a short explanation of a hit: the share of each signal, the words, and the record of a lent word."""
    total = hit.score or 1.0
    shares = ((name, round(100 * share / total)) for name, share in hit.why.shares.items())
    signals = " ".join(f"{name} {part}%" for name, part in shares if part)
    out = []
    known = {each.record.id: each.record for each in hits}
    for word in hit.why.words:
        shown = f"{word.word} as {word.like}" if word.like else word.word
        elsewhere = (
            f" (in {_lender(word.lent_by[0], known)})" if word.lent_by else " (in the title)" if word.title else ""
        )
        out.append(shown if word.own else shown + elsewhere)
    if hit.why.meaning:
        out.append(hit.why.meaning)
    return plain(": ".join(part for part in (signals, ", ".join(out)) if part), 200)


def _lender(record_id: str, texts: Mapping[str, Record]) -> str:
    """Return a record that lent a word: its id, shortened, and its first words."""
    record = texts.get(record_id)
    return short_id(record_id) if record is None else f'{short_id(record_id)} "{content(record, 30)}"'


def show_hits(hits: Hits, zone: tzinfo) -> None:
    """Print hits as a table: score, confidence, id, time in a time zone, speaker, text and explanation."""
    wide = _is_wide()
    short = short_ids(hit.record.id for hit in hits)
    columns: list[tuple[str, dict[str, Any]]] = [
        ("score", {"justify": "right"}),
        ("confidence", {"justify": "right"}),
        ("id", _ID),
        ("when", {"no_wrap": True}),
        ("who", {"max_width": 12, "overflow": "fold"}),
        ("what", {"ratio": 3, "overflow": "fold"}),
    ]
    rows = []
    for hit in hits:
        cells = [
            f"{hit.score:.3f}",
            f"{hit.confidence:.2f}",
            short[hit.record.id],
            when(hit.record, zone, wide=wide),
            plain(who(hit.record), 40),
        ]
        what = [content(hit.record), reasons(hit, hits)]
        rows.append([*cells, *what] if wide else [*cells, "\n".join(what)])
    table([*columns, ("why", {"ratio": 1, "overflow": "fold"})] if wide else columns, rows)


def explain(hits: Hits, lenders: Mapping[str, Record]) -> None:
    """Print the parts of each hit's score: one row for each signal (the shares add up to the score) and each word.

    Args:
        lenders: The turns that lent words, by id; of a missing one the id is shown.
    """
    rows: list[Sequence[str]] = []
    for number, hit in enumerate(hits, 1):
        rows.append((f"{number}", "score", f"{hit.score:.4f}", f"confidence {hit.confidence:.2f}"))
        notes = {"dense": hit.why.meaning}
        rows += [("", f"  {name}", f"{share:.4f}", notes.get(name, "")) for name, share in hit.why.shares.items()]
        for word in hit.why.words:
            like = f"as {word.like} " if word.like else ""
            lent_by = ", ".join(_lender(each, lenders) for each in word.lent_by)
            lent = f"{word.score - word.own:.4f} lent by {lent_by}" if lent_by else ""
            title = f"{word.title:.4f} by the title" if word.title else ""
            rows.append(("", f"    {plain(word.word, 40)}", f"{word.score:.4f}", plain(like + title + lent, 200)))
    table((("hit", {"justify": "right"}), ("signal", {}), ("share", {"justify": "right"}), ("", {"ratio": 1})), rows)


def show_records(records: Sequence[Record], zone: tzinfo) -> None:
    """Print records as a table, with their times in a time zone."""
    wide = _is_wide()
    short = short_ids(record.id for record in records)
    table(
        (
            ("id", _ID),
            ("kind", {"max_width": 12, "overflow": "fold"}),
            ("when", {"no_wrap": True}),
            ("who", {"max_width": 12, "overflow": "fold"}),
            ("what", {"ratio": 1, "overflow": "fold"}),
        ),
        (
            (short[each.id], plain(each.kind, 40), when(each, zone, wide=wide), plain(who(each), 40), content(each))
            for each in records
        ),
    )


# Ids on the command line: short forms in tables, and commands that accept the beginning of an id.
#
# Only ids in the form of a UUID are shortened, which Recollect derives. An id that a person chose is shown in full: its
# beginning may be the id of another record.

#: Minimum length of the beginning of an id, shown and accepted. A short word is more likely another id than a prefix.
_SHOWN, _ACCEPTED = 8, 4
_PAGE = 5000
#: Maximum number of candidates that are listed.
_NAMED = 5
_UUID = regex(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return the form of each id in a table: a UUID is cut to a beginning that is unique among the ids.

    >>> list(short_ids(["07da8130-e45f-5a7b-9c1d-0123456789ab", "07da8130-e45f-6a7b-9c1d-0123456789ab"]).values())
    ['07da8130-e45f-5', '07da8130-e45f-6']
    """
    ordered = sorted(set(ids))
    out = {}
    for before, each, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        length = max(_SHOWN, _shared(before, each) + 1, _shared(each, after) + 1)
        out[each] = each[:length] if _UUID.fullmatch(each) else each
    return out


def _shared(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def whole_id(memory: Memory, text: str, *, in_log: bool = False) -> str:
    """Return the id that `text` is, or of which it is the beginning. If there is none, return `text`.

    An id that the log has is never taken for the beginning of another: what was forgotten stays forgotten.

    Args:
        text: An id or its beginning, of 4 characters or more.
        in_log: Whether ids of forgotten records count, too.

    Raises:
        AmbiguousIdError: Several ids begin like this.

    Cost:
        A look-up for a whole id. Otherwise the records whose ids sort before it are read, about 10 microseconds each;
        with `in_log`, the whole log.
    """
    beginning = nfc(text)
    if len(beginning) < _ACCEPTED or memory.get(text) is not None or memory.changes(id=text, limit=1):
        return text
    found = {record.id for record in ids_that_begin(memory, beginning)}
    if in_log:
        changed = (change.id for commit in memory.changes() for change in commit.changes)
        found.update(each for each in changed if each.startswith(beginning))
    if len(found) > 1:
        more = [f"{len(found) - _NAMED} more"] if len(found) > _NAMED else []
        raise AmbiguousIdError(text, ", ".join([*sorted(found)[:_NAMED], *more]))
    return found.pop() if found else text


def ids_that_begin(memory: Memory, beginning: str) -> Iterator[Record]:
    """Yield the records whose ids begin like this, in the order of their ids.

    Cost: the records whose ids sort before it are read, too.
    """
    last = beginning.encode("utf-8", "surrogatepass")
    cursor: str | None = None
    while True:
        page = memory.find(order="id", limit=_PAGE, after=cursor)
        for record in page:
            if record.id.startswith(beginning):
                yield record
            elif record.id.encode("utf-8") > last:
                return
        cursor = page.cursor
        if cursor is None:
            return


def counted(parts: Mapping[str, int]) -> str:
    """Return the number of records of each part of a memory, as text.

    >>> counted({"records": 3, "terms": 1})
    '3 records, 1 terms of glossaries'
    """
    return ", ".join(f"{count} {called(name)}" for name, count in parts.items())


def difference(found: Difference) -> None:
    """Print what differs: + added, - removed."""
    if not found:
        click.echo("no differences", err=True)
    for name, part in found.each():
        if part and name != RECORDS:
            click.echo(f"{called(name)}:")
        _part(part)


def _part(found: Difference) -> None:
    def show(sign: str, colour: str, record: Record) -> None:
        click.secho(f"{sign} {plain(record.id)}  {plain(line(record.content, 300))}", fg=colour)

    for record in found.removed:
        show("-", "red", record)
    for record in found.added:
        show("+", "green", record)
    for each in found.changed:
        if each.before.content != each.after.content:
            show("-", "red", each.before)
            show("+", "green", each.after)
        for name in each.fields:
            if name != "content":
                before, after = (plain(str(getattr(record, name))) for record in (each.before, each.after))
                click.echo(f"  {plain(each.id)}  {name}: ", nl=False)
                click.secho(before, fg="red", nl=False)
                click.echo(" -> ", nl=False)
                click.secho(after, fg="green")
    for record_id in found.erased:
        click.echo(f"  {plain(record_id)}  a version was erased")
