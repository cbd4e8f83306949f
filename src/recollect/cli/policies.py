"""The commands of policies: redact a text, judge its salience, and show or set the policies of a namespace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json
from recollect.cli.files import text_of
from recollect.errors import InvalidArgumentError
from recollect.operations import GetPolicies
from recollect.operations.upkeep import HANDLINGS, REDACTIONS, Handling, Redaction
from recollect.policies import CATEGORIES, LEVELS, Level, judge
from recollect.policies import redact as redact_text

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
    redacted = redact_text(text_of(path), categories or CATEGORIES)
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
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False), default="-")
@click.option("--strict", is_flag=True, help="Reject also what is short and has no word of importance.")
@common
def salience(settings: Settings, path: Path, strict: bool) -> None:
    """Judge each line of PATH ("-": standard input) by whether it is worth remembering.

    It needs no store. Exit code 0 also if lines are rejected.
    """
    lines = [line for line in text_of(path).splitlines() if line.strip()]
    verdicts = [judge(line, "strict" if strict else "normal") for line in lines]
    if settings.as_json:
        print_json([{"text": line, **each._asdict()} for line, each in zip(lines, verdicts, strict=True)])
        return
    for line, each in zip(lines, verdicts, strict=True):
        click.echo(f"{'accepted' if each.accepted else 'rejected'} ({each.reason}, {each.score}): {render.plain(line)}")


@app.command()
@click.option("--redaction", type=click.Choice(REDACTIONS), help="Keep, redact or refuse texts with secrets in them.")
@_only
@click.option("--salience", type=click.Choice(LEVELS), help="How strictly texts are judged by their salience.")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="CLASS=HANDLING",
    help=f"What happens to a class of origin: {', '.join(HANDLINGS)}. May be repeated.",
)
@click.option("--flagged", type=click.Choice(HANDLINGS), help="What happens to texts that look like an attack.")
@click.option(
    "--record-origins/--no-record-origins",
    default=None,
    help="Whether classes of origin are recorded and limit writers.",
)
@common
def policies(
    settings: Settings,
    redaction: Redaction | None,
    categories: tuple[str, ...],
    salience: Level | None,
    origins: tuple[str, ...],
    flagged: Handling | None,
    record_origins: bool | None,
) -> None:
    """Show or set the policies of the namespace, which every text must obey, whichever process writes it.

    A policy that is not named stays as it is.
    """
    if categories and redaction in (None, "keep"):
        raise click.UsageError("--only requires --redaction redact or refuse")
    stated = dict(_handling(each) for each in origins)
    sets = bool(stated) or any(each is not None for each in (redaction, salience, flagged, record_origins))
    with settings.open(create=sets) as memory:
        current = memory.execute(GetPolicies())
        if sets:
            memory.set_policies(
                redaction=redaction or current.redaction,
                categories=current.categories if redaction is None else categories or CATEGORIES,
                salience=salience or current.salience,
                origins={**current.origins, **stated},
                flagged=flagged or current.flagged,
                record_origins=current.record_origins if record_origins is None else record_origins,
            )
            current = memory.execute(GetPolicies())
    if settings.as_json:
        print_json(current.to_json())
        return
    kept = current.redaction == "keep"
    secrets = (
        "every text is kept as it is" if kept else f"{current.redaction} texts with {', '.join(current.categories)}"
    )
    judged = "" if current.salience == "off" else f"; salience {current.salience}"
    kept_away = "".join(f"; {handling} {origin}" for origin, handling in current.origins.items())
    flags = "" if current.flagged == "store" else f"; {current.flagged} what looks like an attack"
    ignored = "" if current.record_origins else "; classes of origin are not recorded"
    click.echo(f"namespace {settings.namespace}: {secrets}{judged}{kept_away}{flags}{ignored}")


def _handling(text: str) -> tuple[Any, Any]:
    origin, sign, handling = text.partition("=")
    if not sign:
        raise InvalidArgumentError("--origin", text, "must be CLASS=HANDLING, such as web=quarantine")
    return origin, handling
