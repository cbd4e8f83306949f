"""The command that computes missing vectors: embed."""

from __future__ import annotations

import sys
import warnings

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json
from recollect.memory import RecollectWarning

#: Maximum number of records without a vector that are listed; the others are counted.
_NAMED = 20


@app.command()
@click.option(
    "--batch-size", type=int, default=100, show_default=True, metavar="N", help="Number of texts for each request."
)
@common
def embed(settings: Settings, batch_size: int) -> None:
    """Compute missing vectors with the model of --embedder. Run it again to continue after an interruption."""
    with settings.open() as memory:
        with render.progress("embedding", quiet=settings.as_json) as show, warnings.catch_warnings():
            warnings.simplefilter("ignore", RecollectWarning)  # all failures are printed below
            done = memory.embed_all(batch_size, show)
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
