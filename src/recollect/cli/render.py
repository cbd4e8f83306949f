"""Output of results as tables in a terminal. Rich is imported when it is first needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from recollect.engine.results import Hit, Hits
from recollect.records.record import Record
from recollect.reprs import short_id

if TYPE_CHECKING:
    from rich.console import Console

#: Maximum length of a text in a table, in characters; `recollect show` prints all of it.
_MAX_CHARACTERS = 300
#: Minimum width of a terminal, in columns, in which an id of 36 characters is not wrapped.
_WIDE_COLUMNS = 110


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
    """Print a table on stdout.

    Args:
        columns: Headings, each with the options of rich's `add_column`.
        rows: The cells of each row.
    """
    from rich.table import Table
    from rich.text import Text

    out = Table(box=None, header_style="bold", pad_edge=False)
    for heading, options in columns:
        out.add_column(heading, **options)
    for row in rows:
        out.add_row(*(Text(cell) for cell in row))
    console().print(out)


def _id_column(ids: Iterable[str]) -> dict[str, Any]:
    """Return the options of a column of ids. They are not wrapped in a wide terminal, so that they can be copied."""
    widest = min(36, max(map(len, ids), default=0))
    return {"overflow": "fold", "max_width": 36, "min_width": widest if console().width >= _WIDE_COLUMNS else None}


def when(record: Record) -> str:
    """Return a record's time for a table."""
    return record.time.strftime("%Y-%m-%d %H:%M") if record.time else ""


def who(record: Record) -> str:
    """Return a record's speaker, role or user for a table."""
    return record.speaker or record.role or record.user or ""


def content(record: Record, limit: int = _MAX_CHARACTERS) -> str:
    """Return a record's text for a table."""
    if isinstance(record.content, bytes):
        return f"[{len(record.content)} bytes of {record.media_type}]"
    return plain(record.content, limit)


def reasons(hit: Hit, hits: Hits) -> str:
    """Return a short explanation of a hit: the share of each signal, the words, and the record of a lent word."""
    total = hit.score or 1.0
    shares = ((name, round(100 * share / total)) for name, share in hit.why.shares.items())
    signals = " ".join(f"{name} {part}%" for name, part in shares if part)
    out = []
    for word in hit.why.words:
        shown = f"{word.word} as {word.like}" if word.like else word.word
        elsewhere = (
            f" (in {_lender(word.lent_by[0], hits)})" if word.lent_by else " (in the title)" if word.title else ""
        )
        out.append(shown if word.own else shown + elsewhere)
    return plain(": ".join(part for part in (signals, ", ".join(out)) if part), 200)


def _lender(record_id: str, hits: Hits) -> str:
    """Return a record that lent a word: its first words if it is a hit too, otherwise its id, shortened."""
    text = next((content(hit.record, 30) for hit in hits if hit.record.id == record_id), "")
    return f'"{text}"' if text else short_id(record_id)


def show_hits(hits: Hits) -> None:
    """Print hits as a table: score, confidence, id, time, speaker, text and explanation."""
    table(
        (
            ("score", {"justify": "right"}),
            ("sure", {"justify": "right"}),
            ("id", _id_column(hit.record.id for hit in hits)),
            ("when", {"no_wrap": True}),
            ("who", {}),
            ("what", {"ratio": 3, "overflow": "fold"}),
            ("why", {"ratio": 1, "overflow": "fold"}),
        ),
        (
            (
                f"{hit.score:.3f}",
                f"{hit.confidence:.2f}",
                hit.record.id,
                when(hit.record),
                plain(who(hit.record), 40),
                content(hit.record),
                reasons(hit, hits),
            )
            for hit in hits
        ),
    )


def explain(hits: Hits) -> None:
    """Print the parts of each hit's score: one row for each signal (the shares add up to the score) and each word."""
    rows: list[Sequence[str]] = []
    for number, hit in enumerate(hits, 1):
        rows.append((f"{number}", "score", f"{hit.score:.4f}", f"confidence {hit.confidence:.2f}"))
        rows += [("", f"  {name}", f"{share:.4f}", "") for name, share in hit.why.shares.items()]
        for word in hit.why.words:
            like = f"as {word.like} " if word.like else ""
            lenders = ", ".join(_lender(each, hits) for each in word.lent_by)
            lent = f"{word.score - word.own:.4f} lent by {lenders}" if lenders else ""
            title = f"{word.title:.4f} by the title" if word.title else ""
            rows.append(("", f"    {plain(word.word, 40)}", f"{word.score:.4f}", plain(like + title + lent, 200)))
    table((("hit", {"justify": "right"}), ("signal", {}), ("share", {"justify": "right"}), ("", {"ratio": 1})), rows)


def show_records(records: Sequence[Record]) -> None:
    """Print records as a table."""
    table(
        (
            ("id", _id_column(record.id for record in records)),
            ("kind", {}),
            ("when", {"no_wrap": True}),
            ("who", {}),
            ("what", {"ratio": 1, "overflow": "fold"}),
        ),
        (
            (record.id, plain(record.kind, 40), when(record), plain(who(record), 40), content(record))
            for record in records
        ),
    )
