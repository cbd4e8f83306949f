"""The command that computes missing vectors: embed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json
from recollect.memory import RecollectWarning

#: Maximum number of records without a vector that are listed; the others are counted.
_NAMED = 20


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], object] | None]:
    """Show a progress bar if stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("embedding"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=render.console(stderr=True), transient=True) as bar:
        task = bar.add_task("embed", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@app.command()
@click.option(
    "--batch-size", type=int, default=100, show_default=True, metavar="N", help="Number of texts for each request."
)
@common
def embed(settings: Settings, batch_size: int) -> None:
    """Compute missing vectors with the model of --embedder. Run it again to continue after an interruption."""
    with settings.open() as memory:
        with _progress(settings.as_json) as progress, warnings.catch_warnings():
            warnings.simplefilter("ignore", RecollectWarning)  # all failures are printed below
            done = memory.embed_all(batch_size, progress)
        stats = memory.vector_stats()
    if settings.as_json:
        print_json({"done": done, **stats})
    else:
        click.echo(f"{done} texts embedded by {stats['model']}, {stats['dimensions']} dimensions")
        click.echo(f"{stats['embedded']} of {stats['total']} records have a vector ({stats['coverage']:g}%)")
        for failed in stats["failed"][:_NAMED]:
            click.echo(f"  no vector: {failed['id']}: {render.plain(failed['reason'])}", err=True)
        if len(stats["failed"]) > _NAMED:
            click.echo(f"  and {len(stats['failed']) - _NAMED} more records without a vector", err=True)
    if stats["failed"]:
        sys.exit(1)
