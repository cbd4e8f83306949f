"""The commands of redaction: redact a text, and show or set the policies of a namespace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from recollect.cli.app import Settings, app, common, print_json
from recollect.errors import InvalidArgumentError
from recollect.operations.upkeep import REDACTIONS, Redaction
from recollect.redaction import CATEGORIES
from recollect.redaction import redact as redact_text

_only = click.option(
    "--only",
    "categories",
    multiple=True,
    type=click.Choice(CATEGORIES),
    help="What to look for. May be repeated. Default: all of them.",
)


@app.command()
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False), default="-")
@_only
@common
def redact(settings: Settings, path: Path, categories: tuple[str, ...]) -> None:
    """Print the text of PATH ("-": standard input) without keys, passwords, addresses and numbers of people.

    It needs no store. What was found is counted on standard error; exit code 0 also if there is nothing to replace.
    """
    try:
        text = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        redacted = redact_text(text.decode("utf-8"), categories or CATEGORIES)
    except UnicodeDecodeError:
        raise InvalidArgumentError("path", str(path), "is not UTF-8 text") from None
    if settings.as_json:
        print_json({"text": redacted.text, "found": dict(redacted.found)})
        return
    stdout: Any = sys.stdout
    stdout.reconfigure(encoding="utf-8", newline="")
    click.echo(redacted.text, nl=False)
    if redacted.found:
        counts = ", ".join(f"{count} {name}" for name, count in redacted.found.items())
        click.echo(f"redacted: {counts}", err=True)


@app.command()
@click.option("--redaction", type=click.Choice(REDACTIONS), help="Keep, redact or refuse texts with secrets in them.")
@_only
@common
def policies(settings: Settings, redaction: Redaction | None, categories: tuple[str, ...]) -> None:
    """Show or set the policies of the namespace, which every text must obey, whichever process writes it."""
    if categories and redaction in (None, "keep"):
        raise click.UsageError("--only requires --redaction redact or refuse")
    with settings.open(create=redaction is not None) as memory:
        if redaction is not None:
            memory.set_policies(redaction=redaction, categories=categories or CATEGORIES)
        current = memory.policies()
    if settings.as_json:
        print_json(current.to_json())
    elif current.redaction == "keep":
        click.echo(f"namespace {settings.namespace}: every text is kept as it is")
    else:
        click.echo(f"namespace {settings.namespace}: {current.redaction} texts with {', '.join(current.categories)}")
