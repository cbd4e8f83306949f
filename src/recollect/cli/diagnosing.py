"""Commands about Recollect itself: doctor, demo."""

from __future__ import annotations

import sys

import click

from recollect.cli import demo as demonstration
from recollect.cli import render
from recollect.cli.app import SERVERS, Settings, app, common, print_json
from recollect.cli.doctor import Finding, examine, examine_closed, examine_installation
from recollect.errors import DamagedStoreError, NotAStoreError, StoreMissingError, UnsupportedError
from recollect.memory.opening import store_file


@app.command()
@click.option("--check", is_flag=True, help="Also read and verify everything in the store.")
@common
def doctor(settings: Settings, check: bool) -> None:
    """Examine the installation and the store: versions, active signals, the health of the file, and a test write.

    Before the first write, only the installation is examined.
    """
    try:
        memory = settings.open()
    except StoreMissingError as error:
        missing = bool(error.args[1])  # the folder of a path that was chosen
        findings = [*examine_installation(), Finding("store", str(error), not missing)]
    except (DamagedStoreError, NotAStoreError) as error:
        findings = examine_closed(store_file(settings.db), error, key=settings.key)
        if len(findings) == 1:  # the file contains no part of a store
            raise
    else:
        with memory, render.progress("checking" if check else "examining", quiet=settings.as_json):
            findings = examine(memory, check=check)
    if settings.as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        render.table(
            (("", {}), ("what", {}), ("finding", {"overflow": "fold"})),
            (("ok" if each.well else "!!", each.what, render.plain(each.finding, 1000)) for each in findings),
        )
    if not all(finding.well for finding in findings):
        sys.exit(1)


@app.command()
@common
def demo(settings: Settings) -> None:
    """Remember a sample conversation and answer eight questions about it, with explanations."""
    if settings.db is not None and settings.db.startswith(SERVERS):
        raise UnsupportedError("the demo", "it needs a file of its own, not a server: leave --db out")
    with demonstration.Demo(settings.db, settings.key) as shown:
        if settings.as_json:
            print_json(shown.to_json())
            return
        click.echo(shown.introduction)
        for answer in shown.answers():
            click.echo()
            click.secho(f"{answer.question}", bold=True, nl=False)
            click.echo(f"   [{answer.kind}: {answer.note}; {answer.milliseconds:.2f} ms]")
            render.show_hits(answer.hits, shown.zone)
        click.echo()
        click.echo(shown.farewell)
