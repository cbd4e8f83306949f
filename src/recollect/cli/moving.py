"""Commands that move memories in and out: import, export."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path
from typing import Any

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json, zone_option
from recollect.errors import ImportFormatError, InvalidArgumentError, StoreIOError
from recollect.importers import IMPORTERS
from recollect.importers.jsonl import write_jsonl
from recollect.importers.run import import_path
from recollect.memory import Memory

#: So many damaged items are named; the rest are counted.
_NAMED = 20


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int], object]]:
    """A bar on a terminal; nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("remembering"), BarColumn(), TextColumn("{task.completed} items"), TimeElapsedColumn())
    with Progress(*columns, console=render.console(stderr=True), transient=True) as bar:
        task = bar.add_task("import", total=None)
        yield lambda done: bar.update(task, completed=done)


@app.command("import")
@click.argument("format", type=click.Choice(tuple(IMPORTERS)))
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True)
@zone_option
@common
def import_(settings: Settings, format: str, paths: tuple[Path, ...], zone: tzinfo) -> None:  # noqa: A002
    """Remember what files of a FORMAT hold. Run again, it adds only what is new."""
    importer = IMPORTERS[format]
    reports = []
    for path in paths:
        if not path.exists():  # before a store is made for nothing
            raise ImportFormatError(str(path), "", "there is no such file or folder")
    with settings.open(create=True) as memory:
        for path in paths:
            with _progress(settings.as_json) as progress:
                reports.append((path, import_path(memory, importer, path, zone=zone, progress=progress)))
    if settings.as_json:
        print_json([{"path": str(path), **report.to_json()} for path, report in reports])
    else:
        for path, report in reports:
            click.echo(
                f"{path}: {report.created} remembered, {report.updated} updated, {report.unchanged} held already"
            )
            for name, count in report.namespaces.items():
                click.echo(f"  namespace {name}: {count}")
            for damage in report.damaged[:_NAMED]:
                click.echo(f"  not imported: {damage.place}: {damage.reason}", err=True)
            if len(report.damaged) > _NAMED:
                click.echo(f"  and {len(report.damaged) - _NAMED} more items not imported", err=True)
        click.echo(f"times without a zone were taken as {zone}")
    if any(report.damaged for _, report in reports):
        sys.exit(1)


def _written_whole(path: Path, memories: list[Memory]) -> int:
    """Write the export beside `path` and put it there when it is whole; the number of records."""
    store = str(memories[0].stats()["store"]["path"]) if memories else ""
    if any(str(path.absolute()) == store + suffix or _same(path, store + suffix) for suffix in ("", "-wal", "-shm")):
        raise InvalidArgumentError("path", str(path), "is the store itself: give another path")
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        try:
            with beside.open("w", encoding="utf-8", newline="\n") as file:
                count = sum(write_jsonl(each, file) for each in memories)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise StoreIOError(str(path), error.strerror or str(error)) from error
    return count


def _same(one: Path, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


@app.command()
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--all", "everything", is_flag=True, help="All namespaces, not just one.")
@common
def export(settings: Settings, path: Path, everything: bool) -> None:
    """Write the records to PATH ("-": standard output) as JSON lines that `import jsonl` reads to the same root."""
    with settings.open() as memory:
        chosen: list[Memory] = [memory.namespace(name) for name in memory.namespaces()] if everything else [memory]
        if str(path) == "-":
            stdout: Any = sys.stdout
            stdout.reconfigure(encoding="utf-8", newline="\n")
            for each in chosen:
                write_jsonl(each, stdout)
            return
        count = _written_whole(path, chosen)
    if settings.as_json:
        print_json({"path": str(path), "records": count})
    else:
        click.echo(f"{path}: {count} records")
