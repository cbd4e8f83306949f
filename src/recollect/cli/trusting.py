"""The commands on who said what: endorse, lineage, taint, quarantine, audit."""

from __future__ import annotations

from typing import Any

import click

from recollect.calls.calls import stored
from recollect.cli import render
from recollect.cli.app import (
    Settings,
    app,
    common,
    completion,
    origin_option,
    print_json,
    where_option,
)
from recollect.cli.render import whole_id
from recollect.engine.history_results import AuditFinding, Lineage, Taint
from recollect.errors import InvalidArgumentError
from recollect.filters.tree import Filter
from recollect.memory import Memory
from recollect.operations.trust import MOST_LINKED, SIGNALS, AuditSignal, Endorse
from recollect.records.origins import ORIGINS, Origin

_reason = click.option("--reason", metavar="TEXT", help="Why; recorded in the commit.")
_limit = click.option(
    "--limit", type=click.IntRange(1, MOST_LINKED), default=MOST_LINKED, show_default=True, metavar="N",
    help="Maximum number of records.",
)  # fmt: skip


@app.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=completion("ids"))
@click.option(
    "--as", "raised", type=click.Choice(ORIGINS), default="user", show_default=True, help="The class that it gets."
)
@click.option("--expect", metavar="HASH", help="Endorse ID only if it has this hash (--json shows it).")
@_reason
@origin_option
@common
def endorse(settings: Settings, ids: tuple[str, ...], raised: Origin, expect: str | None, reason: str | None) -> None:
    """Say that the records IDs (or their first 4 characters) are the user's word; without one, list what waits for it.

    What they proposed then holds: as a standing instruction, pinned, or in the place of what they supersede. To turn a
    proposal down, forget it.
    """
    if raised == "owner" and settings.origin is None:
        settings.origin = "owner"  # who has the file is its owner
    if expect is not None and len(ids) != 1:
        raise click.UsageError("--expect is of one ID")
    with settings.open() as memory:
        if not ids:
            _show_findings(settings, memory, memory.audit(signals=["proposal"]), "proposals")
            return
        with memory.batch(reason=reason) as batch:
            raising = [Endorse(id=whole_id(memory, each), origin=raised, expect=expect) for each in ids]
            outcomes = [batch.execute(each) for each in raising]
            records = list(map(stored, outcomes))
    if settings.as_json:
        print_json(records[0].to_json() if len(records) == 1 else [record.to_json() for record in records])
        return
    for outcome, record in zip(outcomes, records, strict=True):
        already = " already" if outcome.status == "unchanged" else ""
        click.echo(f"{record.id} is{already} the word of the {record.effective_origin}: {render.plain(record.text)}")


@app.command()
@click.argument("id", shell_complete=completion("ids"))
@_limit
@common
def lineage(settings: Settings, id: str, limit: int) -> None:  # noqa: A002 - the field's name
    """Show what the record ID (or its first 4 characters) was made from, and whose word that is."""
    with settings.open() as memory:
        found: Lineage = memory.lineage(whole_id(memory, id, in_log=True), limit)
    if settings.as_json:
        print_json(found.to_json())
        return
    for each in found.records:
        state = "" if each.state == "live" else f", {each.state}"
        link = f"{each.link}: " if each.link else ""
        click.echo(f"{'  ' * each.depth}{link}{each.id} [{each.origin}{state}] {render.plain(each.text)}")
    click.echo(f"least class of origin: {found.least}{' (there is more: --limit)' if found.truncated else ''}")


@app.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=completion("ids"))
@click.option("--source", metavar="TEXT", help="Begin with all records from this path or address.")
@where_option
@_limit
@click.option("--forget", is_flag=True, help="Forget them all, in one commit: `recollect revert` takes it back.")
@_reason
@common
def taint(
    settings: Settings,
    ids: tuple[str, ...],
    source: str | None,
    where: Filter | None,
    limit: int,
    forget: bool,
    reason: str | None,
) -> None:
    """Show what was made from the records IDs, from a source, or from what matches."""
    if not ids and source is None and where is None:
        raise click.UsageError("name a record, --source or --where")
    with settings.open() as memory:
        whole = tuple(whole_id(memory, each, in_log=True) for each in ids)
        found: Taint = memory.taint(whole, source=source, where=where, limit=limit)
        forgotten = found.forget(reason) if forget else None
        seq = memory.changes(limit=1, newest_first=True)[0].seq if forgotten else 0
    if settings.as_json:
        print_json({**found.to_json(), **({} if forgotten is None else {"forgotten": forgotten})})
        return
    for depth, each in enumerate(found.by_depth):
        click.echo(f"{'begins with' if not depth else f'derived, {depth} links away'}: {', '.join(each)}")
    click.echo(f"records: {len(found)}{' (there are more: --limit)' if found.truncated else ''}")
    if forgotten is not None:
        undo = f"; `recollect revert {seq}` takes it back" if forgotten else ""
        click.echo(f"forgotten: {forgotten}{undo}")


@app.command()
@where_option
@click.option("--release", "released", multiple=True, metavar="ID", help="Store this record. May be repeated.")
@click.option("--reject", "rejected", multiple=True, metavar="ID", help="Forget this record. May be repeated.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, metavar="N", help="Maximum listed.")
@_reason
@common
def quarantine(
    settings: Settings,
    where: Filter | None,
    released: tuple[str, ...],
    rejected: tuple[str, ...],
    limit: int,
    reason: str | None,
) -> None:
    """List the records that a policy keeps apart, and release or reject some."""
    with settings.open() as memory:
        known = memory.quarantine
        listed = known(limit=None) if released or rejected else known(where, limit)
        every: dict[str, Any] = {each.id: each for each in listed}

        def ids(some: tuple[str, ...]) -> list[str]:
            return [_whole(each, every) for each in some]

        done = [stored(each).id for each in known.release(ids(released), reason=reason).results] if released else []
        gone = known.reject(ids(rejected), reason=reason) if rejected else 0
    if released or rejected:
        counts = {"released": done, "rejected": gone}
        named = f" ({', '.join(done)})" if done else ""
        print_json(counts) if settings.as_json else click.echo(f"released: {len(done)}{named}, rejected: {gone}")
        return
    if settings.as_json:
        print_json([each.to_json() for each in listed])
        return
    rows = [(each.id, each.effective_origin, each.source or each.speaker or "", each.text) for each in listed]
    render.show_rows(("id", "origin", "from", "text"), rows)
    click.echo(f"in quarantine: {len(rows)}")


def _whole(text: str, known: dict[str, Any]) -> str:
    """Return the id in quarantine that begins with a text."""
    found = [each for each in known if each == text] or [each for each in known if each.startswith(text)]
    if len(found) != 1:
        rule = "is not in quarantine" if not found else f"begins {len(found)} ids: type more of it"
        raise InvalidArgumentError("id", text, rule)
    return found[0]


@app.command()
@click.option("--since", metavar="SEQ", default="0", help="Only records that were changed after this commit.")
@where_option
@_limit
@click.option(
    "--signal",
    "signals",
    type=click.Choice(SIGNALS),
    multiple=True,
    help="Only this one. May be repeated.",
)
@common
def audit(settings: Settings, since: str, where: Filter | None, limit: int, signals: tuple[AuditSignal, ...]) -> None:
    """List what may be an attack on the memory among what the user has not said. Nothing is changed."""
    with settings.open() as memory:
        number = int(since) if since.isdecimal() else since
        found = memory.audit(since=number, where=where, limit=limit, signals=signals or SIGNALS)
        _show_findings(settings, memory, found, "findings")


def _show_findings(settings: Settings, memory: Memory, found: list[AuditFinding], what: str) -> None:
    hashes = {}
    if settings.as_json:
        records = memory.get_all([each.id for each in found])
        hashes = {record.id: record.hash for record in records if record is not None}
    if settings.as_json:
        print_json([{**each._asdict(), "hash": hashes.get(each.id)} for each in found])
        return
    rows = [(each.id, each.origin, each.signal, ", ".join(each.ids), each.text) for each in found]
    render.show_rows(("id", "origin", "signal", "about", "text"), rows)
    click.echo(f"{what}: {len(found)}")
