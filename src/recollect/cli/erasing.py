"""The command that removes contents permanently: erase."""

from __future__ import annotations

import sys

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json, where_option
from recollect.cli.ids import whole_id
from recollect.common.zones import zone_of
from recollect.engine.history_results import Erased
from recollect.filters.tree import AllOf, Filter, Is
from recollect.memory import Memory

#: What a reserved namespace has, for people.
_BESIDE = {"nodes": "nodes of outlines", "sdrs": "texts with sparse codes", "terms": "terms of glossaries"}


@app.command()
@click.argument("id", required=False)
@where_option
@click.option("--user", metavar="NAME", help="Everything of this user, also what was forgotten.")
@click.option("--agent", metavar="NAME", help="Everything of this agent.")
@click.option("--conversation", metavar="NAME", help="Everything of this conversation.")
@click.option("--redact", is_flag=True, help="Also remove the ids, and the actors and reasons of earlier commits.")
@click.option("--derived", is_flag=True, help="Also erase the records that derive from these.")
@click.option("--reason", metavar="TEXT", help="Why; recorded in the commit.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
def erase(
    settings: Settings,
    id: str | None,  # noqa: A002 - the field's name
    where: Filter | None,
    user: str | None,
    agent: str | None,
    conversation: str | None,
    redact: bool,
    derived: bool,
    reason: str | None,
    yes: bool,
) -> None:
    """Permanently remove the contents of the record ID, or of all records of which any version matches.

    All versions are erased, live and former. The log keeps that there were records, so that roots and proofs stay
    valid. Backups are not changed: those next to the store that still have the contents are listed.
    """
    fields = {"user": user, "agent": agent, "conversation": conversation}
    conditions = [Is(name, (value,)) for name, value in fields.items() if value is not None]
    if (id is None) == (where is None and not conditions):
        raise click.UsageError("pass either an id, or --where, --user, --agent or --conversation")
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("what is erased cannot be restored: confirm with --yes")
    with settings.open() as memory:
        what = AllOf.of(*([] if where is None else [where]), *conditions) if id is None else whole_id(memory, id)
        if not yes:
            _confirm(memory, what)
        erased = memory.erase(what, redact=redact, derived=derived, actor="recollect erase", reason=reason)
    print_json(erased.to_json()) if settings.as_json else _print(erased, derived=derived)
    if not erased.ids and not erased.beside:
        sys.exit(1)


def _confirm(memory: Memory, what: Filter | str) -> None:
    if isinstance(what, str):
        click.confirm(f"Erase every version of {render.plain(what)}? It cannot be restored.", abort=True)
        return
    found = memory.find(what, limit=5)
    render.show_records(found, zone_of(memory.zone))
    count = memory.count(what)
    question = f"Erase every version of {count} records, and of former ones that match? They cannot be restored."
    click.confirm(question, abort=True)


def _print(erased: Erased, *, derived: bool) -> None:
    if not erased.ids and not erased.beside:
        click.echo("no record matches: nothing was erased", err=True)
        return
    click.echo(f"erased: {len(erased.ids)} records, {erased.versions} versions")
    for name, count in erased.beside:
        click.echo(f"erased beside them: {count} {_BESIDE.get(name, name)}")
    for each in erased.derived if not derived else ():
        click.echo(f"  derives from what was erased: {render.plain(each)} (erase it with --derived)", err=True)
    for path in erased.copies:
        click.echo(f"  still has it: {render.plain(path)}", err=True)
    if erased.pending:
        click.echo("  not complete: another process reads or writes the store; the next one that opens it continues")
