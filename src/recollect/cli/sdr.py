"""The commands of sparse codes: sdr store, query, forget, stats, import, export."""

from __future__ import annotations

import json
from pathlib import Path

import click

from recollect.cli import render
from recollect.cli.app import NumberRange, Settings, app, common, print_json
from recollect.errors import InvalidArgumentError
from recollect.sdr import read_table, write_table


@app.group()
def sdr() -> None:
    """Store and find texts by sparse codes of their character trigrams."""


@sdr.command()
@click.argument("text")
@click.option("--metadata", metavar="JSON", default="{}", help="A JSON object to store with the text.")
@common
def store(settings: Settings, text: str, metadata: str) -> None:
    """Store TEXT and print its number."""
    try:
        data = json.loads(metadata)
    except (ValueError, RecursionError):
        raise InvalidArgumentError("--metadata", metadata, "must be a JSON object") from None
    with settings.open(create=True) as memory:
        number = memory.sdr.store(text, data)
    if settings.as_json:
        print_json({"id": number})
    else:
        click.echo(str(number))


@sdr.command()
@click.argument("text")
@click.option("-k", "--limit", type=click.IntRange(1), default=5, show_default=True, help="Maximum number of texts.")
@click.option("--minimum", type=NumberRange(0, 1), default=0.0, help="The least score, inclusive.")
@click.option("--rule", is_flag=True, help="Rank by 1 - hamming / 4096 of the 80 lowest bits, as sdr-memory does.")
@common
def query(settings: Settings, text: str, limit: int, minimum: float, rule: bool) -> None:
    """Show the texts that are closest to TEXT, with the trigrams that they share."""
    with settings.open() as memory:
        found = memory.sdr.query(text, limit, rule=rule, minimum=minimum)
    if settings.as_json:
        print_json(found)
        return
    rows = [(f"{hit['score']:.3f}", str(hit["id"]), hit["text"], " ".join(hit["shared"])) for hit in found]
    render.show_rows(("score", "id", "text", "shared"), rows)


@sdr.command()
@click.argument("number", metavar="ID", type=int)
@common
def forget(settings: Settings, number: int) -> None:
    """Remove the text with the number ID. Its history stays."""
    with settings.open() as memory:
        done = memory.sdr.forget(number)
    if settings.as_json:
        print_json({"forgotten": done})
    else:
        click.echo(f"forgotten: {int(done)}")


@sdr.command()
@common
def stats(settings: Settings) -> None:
    """Show how many texts there are."""
    with settings.open() as memory:
        known = memory.sdr.stats()
    if settings.as_json:
        print_json(known)
    else:
        click.echo(f"texts: {known['memories']}, highest number: {known['last_id']}, bits of a code: {known['bits']}")


@sdr.command("import")
@click.argument("path", metavar="FILE.sqlite", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@common
def import_(settings: Settings, path: Path) -> None:
    """Store the texts of a table of sdr-memory with their numbers and times, all or none."""
    texts = read_table(path)
    with settings.open(create=True) as memory:
        count = memory.sdr.restore(texts)
    known = len(texts) - count
    if settings.as_json:
        print_json({"imported": count, "known": known})
    else:
        click.echo(f"imported: {count}, known already: {known}")


@sdr.command()
@click.argument("path", metavar="FILE.sqlite", type=click.Path(path_type=Path, dir_okay=False))
@common
def export(settings: Settings, path: Path) -> None:
    """Write all texts to a table of sdr-memory in the SQLite file FILE.sqlite. A file with such a table is replaced."""
    with settings.open() as memory:
        count = write_table(path, memory.sdr.texts())
    if settings.as_json:
        print_json({"written": str(path), "texts": count})
    else:
        click.echo(f"written: {count} texts to {render.plain(str(path))}")
