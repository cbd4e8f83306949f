"""Commands that import and export records."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import tzinfo
from pathlib import Path
from typing import Any

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json, zone_option
from recollect.errors import ImportFormatError, InvalidArgumentError, StoreIOError
from recollect.evaluation import DATASET_IMPORTERS
from recollect.importers import IMPORTERS, ImportReport, watching
from recollect.importers.jsonl import is_export, write_jsonl
from recollect.importers.run import Source, import_source
from recollect.memory import Memory
from recollect.stores.sqlite.header import part_path

#: The importers by the name of their format.
_FORMATS = {**DATASET_IMPORTERS, **IMPORTERS}
#: Maximum number of invalid items that are listed; the others are counted.
_NAMED = 20
#: A note on a namespace's root: whether it equals the one that the export states, if it states one.
_ROOTS = {
    None: "",
    True: ", same root as the export",
    False: ", another root than the export: the namespace has other records, or the store has another key",
}


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int], object]]:
    """Show a progress bar if stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("remembering"), BarColumn(), TextColumn("{task.completed} items"), TimeElapsedColumn())
    with Progress(*columns, console=render.console(stderr=True), transient=True) as bar:
        task = bar.add_task("import", total=None)
        yield lambda done: bar.update(task, completed=done)


@app.command("import")
@click.argument("format", type=click.Choice(tuple(_FORMATS)))
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--follow-links", is_flag=True, help="Also read files that links in a folder point to outside of it.")
@click.option(
    "--as", "name", help="Text and Markdown: a name before the path of each file, such as that of the project."
)
@click.option(
    "--forget-deleted",
    is_flag=True,
    help="With --as: forget documents of that name whose files were deleted from the folder.",
)
@click.option("--watch", is_flag=True, help="Keep importing what changes in a folder, until Ctrl-C.")
@zone_option
@common
def import_(
    settings: Settings,
    format: str,  # noqa: A002
    paths: tuple[Path, ...],
    follow_links: bool,
    name: str | None,
    forget_deleted: bool,
    watch: bool,
    zone: tzinfo,
) -> None:
    """Remember the contents of files of a FORMAT. Run it again to add only what is new.

    A text or Markdown file that is imported again replaces what it was.
    """
    importer = _FORMATS[format]
    options: dict[str, Any] = {"follow_links": follow_links, "name": name, "forget_deleted": forget_deleted}
    reports = []
    refused = []
    first = next((path for path in paths if os.path.exists(path)), paths[0])
    # The first source is opened before the store, so that an invalid path creates no store.
    source: Source | None = Source(importer, first, zone, **options)
    paths = (first, *(path for path in paths if path is not first))
    if watch:
        if len(paths) > 1:
            raise InvalidArgumentError("paths", len(paths), "were passed, and --watch takes one folder")
        watching.library()
    with settings.open(create=True) as memory:
        if watch:
            _watch(settings, watching.watch(memory, importer, first, zone=zone, **options), first)
            return
        for path in paths:
            try:
                source = source or Source(importer, path, zone, **options)
            except ImportFormatError as error:  # the other files are still imported
                refused.append((path, error))
                continue
            with _progress(settings.as_json) as progress:
                reports.append((path, import_source(memory, source, progress=progress)))
            source = None
    if settings.as_json:
        done = [{"path": str(path), **report.to_json()} for path, report in reports]
        print_json(done + [{"path": str(path), **refusal.to_json()} for path, refusal in refused])
    else:
        for path, report in reports:
            _show(path, report)
        for _, refusal in refused:
            click.echo(f"error: {refusal}", err=True)
        click.echo(f"times without a time zone were read as {zone}")
    if refused or any(report.damaged for _, report in reports):
        sys.exit(1)


def _show(path: Path, report: ImportReport) -> None:
    """Print the report of an import."""
    click.echo(
        f"{path}: {report.created} remembered, {report.updated} updated, {report.unchanged} already there"
        + (f", {report.forgotten} forgotten" if report.forgotten else "")
        + (f", {report.expired} expired and omitted" if report.expired else "")
    )
    if report.replaced:
        click.echo(f"  replaced documents: {report.replaced}")
    for name, count in report.namespaces.items():
        click.echo(f"  namespace {name}: {count}{_ROOTS[report.roots.get(name)]}")
    for damage in report.damaged[:_NAMED]:
        click.echo(f"  not imported: {damage.place}: {damage.reason}", err=True)
    if len(report.damaged) > _NAMED:
        click.echo(f"  and {len(report.damaged) - _NAMED} more items not imported", err=True)


def _watch(settings: Settings, reports: Iterator[ImportReport], folder: Path) -> None:
    """Print each report of a folder that is watched, until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        for report in reports:
            if settings.as_json:
                click.echo(json.dumps({"path": str(folder), **report.to_json()}, ensure_ascii=False))
            else:
                _show(folder, report)


def _write_export(path: Path, memories: list[Memory], replace: bool) -> int:
    """Write the export next to `path`, rename it when it is complete, and return the number of records."""
    store = str(memories[0].stats()["store"]["path"]) if memories else ""
    if any(str(path.absolute()) == store + suffix or _same(path, store + suffix) for suffix in ("", "-wal", "-shm")):
        raise InvalidArgumentError("path", str(path), "is the store itself: give another path")
    if os.path.exists(path) and not path.is_file():
        raise InvalidArgumentError("path", str(path), "is not a regular file: give another path")
    if os.path.exists(path) and not replace and not _is_export(path):
        raise InvalidArgumentError("path", str(path), "exists and is not an export: give another path, or --force")
    part = Path(part_path(str(path)))
    try:
        try:
            # Readable only by its owner, as the store is, regardless of the umask and of the replaced file.
            descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                count = sum(write_jsonl(each, file) for each in memories)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StoreIOError(str(path), error.strerror or str(error)) from error
    return count


def _is_export(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_export(file.read(20))
    except OSError:
        return False


def _same(one: Path, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


@app.command()
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--all", "everything", is_flag=True, help="Export all namespaces.")
@click.option("--force", is_flag=True, help="Replace PATH even if it is not an export.")
@common
def export(settings: Settings, path: Path, everything: bool, force: bool) -> None:
    """Write the records to PATH ("-": standard output) as JSON lines. `import jsonl` restores the same root."""
    with settings.open() as memory:
        chosen: list[Memory] = [memory.namespace(name) for name in memory.namespaces()] if everything else [memory]
        if str(path) == "-":
            stdout: Any = sys.stdout
            stdout.reconfigure(encoding="utf-8", newline="\n")
            for each in chosen:
                write_jsonl(each, stdout)
            return
        count = _write_export(path, chosen, force)
    if settings.as_json:
        print_json({"path": str(path), "records": count})
    else:
        click.echo(f"{path}: {count} records")
