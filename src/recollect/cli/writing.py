"""Commands that write: remember, update, supersede, forget, erase, quota."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import tzinfo
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from recollect.calls.calls import zone_of_store
from recollect.calls.owners import Owners
from recollect.cli import render
from recollect.cli.app import (
    USER_VARIABLE,
    Settings,
    app,
    common,
    completion,
    origin_option,
    owner_option,
    part_option,
    print_json,
    time_of,
    where_option,
    zone_option,
)
from recollect.cli.render import whole_id
from recollect.engine.history_results import Erased
from recollect.engine.results import Outcome
from recollect.engine.scope import Scope
from recollect.engine.write.drafts import Intake, draft
from recollect.errors import InvalidArgumentError
from recollect.filters import all_of, everything
from recollect.filters.tree import AllOf, Filter, Is
from recollect.ledger.parts import RECORDS
from recollect.memory import Memory
from recollect.operations import (
    IF_EXISTS,
    SCOPED,
    WHEN_FULL,
    Forget,
    IfExists,
    Per,
    Remember,
    Supersede,
    Update,
    WhenFull,
)
from recollect.records.origins import RANKS
from recollect.records.record import utc_now

F = TypeVar("F", bound=Callable[..., Any])
_TEXTS = (
    "kind",
    "role",
    "speaker",
    "agent",
    "conversation",
    "session",
    "entity",
    "source",
    "parent",
    "language",
)
_NUMBERS = {"position": int, "order": int, "importance": float, "trust": float}
_TIMES = ("time", "valid-from", "valid-to", "expires")


def field_options(command: F) -> F:
    """Add an option for each field of a record to a command."""
    out: Any = zone_option(command)
    out = click.option("--pinned/--not-pinned", default=None, help="Never evict the record.")(out)
    out = click.option("--searchable/--not-searchable", default=None, help="Whether recall finds it. Default: yes.")(
        out
    )
    for name in reversed(_TIMES):
        out = click.option(f"--{name}", metavar="ISO8601")(out)
    for name, kind in _NUMBERS.items():
        out = click.option(f"--{name}", type=kind)(out)
    out = click.option("--meta", multiple=True, metavar="KEY=VALUE", help="VALUE may be JSON. May be repeated.")(out)
    for name in ("supersedes", "derived-from"):
        out = click.option(f"--{name}", multiple=True, metavar="ID", help="May be repeated.")(out)
    out = click.option("--tag", "tags", multiple=True, metavar="TAG", help="May be repeated.")(out)
    for name in reversed(_TEXTS):
        out = click.option(f"--{name}", metavar="TEXT")(out)
    return out  # type: ignore[no-any-return]


def _fields(options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that were set by options."""
    zone: tzinfo | None = options.pop("zone")
    meta = options.pop("meta")
    fields = {name: value for name, value in options.items() if value is not None and value != ()}
    for name in ("time", "valid_from", "valid_to", "expires"):
        if name in fields:
            fields[name] = time_of(name, fields[name], zone)
    if meta:
        fields["metadata"] = dict(_pair(each) for each in meta)
    return fields


def _pair(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign:
        raise InvalidArgumentError("--meta", text, "must be KEY=VALUE")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


def _print_outcome(settings: Settings, outcome: Outcome) -> None:
    outcome.checked()
    if settings.as_json:
        print_json(outcome.to_json())
        return
    record = outcome.record
    if record is None and outcome.status == "quarantined":
        click.echo("rejected from quarantine before; nothing was changed")
        return
    if record is None:
        click.echo("already forgotten; nothing was changed")
        return
    note = ""
    origin = record.effective_origin
    is_lower = settings.origin is not None and RANKS[origin] < RANKS[settings.origin]
    if is_lower and outcome.status in ("created", "updated"):
        note = f" (as the word of the {origin}: neither what it is from, nor a token, has more)"
    if outcome.differing:
        others = [name for name in outcome.differing if name != "origin"]
        advice = "--if-exists update changes them" if others else "`recollect endorse` raises it"
        note = f" (kept its {', '.join(outcome.differing)}; {advice})"
    if outcome.asked_id:
        note = f" (id {outcome.asked_id} has another text)"
    if outcome.status == "proposed" and not outcome.asked_id:
        note = " (what it asks for is not for its class of origin: `recollect endorse` makes it so)"
    elif outcome.status == "proposed":
        note = f" (instead of {outcome.asked_id}, which is of a higher class: `recollect endorse` puts it in its place)"
    if outcome.status == "quarantined":
        note = " (a policy keeps it apart: `recollect quarantine` lists it)"
    click.echo(f"{outcome.status}: {record.id}{note}")


@app.command()
@click.argument("content")
@click.option("--id", "id_", metavar="ID", help="The record's id. Default: derived from the text.")
@click.option("--expect", metavar="HASH", help="Write only if the record has this hash, or is absent (absent).")
@click.option("--if-exists", type=click.Choice(IF_EXISTS), default="keep", show_default=True)
@owner_option("user", f"Default: {USER_VARIABLE}.", envvar=USER_VARIABLE)
@click.option("--ttl", type=float, metavar="SECONDS", help="Seconds until the record expires.")
@field_options
@origin_option
@common
def remember(
    settings: Settings,
    content: str,
    id_: str | None,
    expect: str | None,
    if_exists: IfExists,
    ttl: float | None,
    **options: Any,
) -> None:
    """Remember CONTENT ("-" reads standard input without the final newline). Creates the store if it is missing."""
    if content == "-":
        content = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").removesuffix("\n")
    operation = Remember(content=content, id=id_, fields=_fields(options), expect=expect, if_exists=if_exists, ttl=ttl)
    draft(operation, Scope(), utc_now(), Intake())  # validates it, so that an invalid record creates no store
    with settings.open(create=True) as memory:
        _print_outcome(settings, memory.execute(operation))


@app.command()
@click.argument("id", shell_complete=completion("ids"))
@click.option("--content", metavar="TEXT", help="The new text.")
@click.option("--expect", metavar="HASH", help="Write only if the record has this hash.")
@owner_option("user", "The new user.")
@click.option("--drop", multiple=True, metavar="FIELD", help="Remove a field. May be repeated.")
@field_options
@origin_option
@common
def update(
    settings: Settings,
    id: str,  # noqa: A002 - the field's name
    content: str | None,
    expect: str | None,
    drop: tuple[str, ...],
    **options: Any,
) -> None:
    """Change fields of the record ID (or its first 4 characters). New tags and metadata replace the existing ones."""
    changes = _fields(options) | dict.fromkeys(drop)
    if content is not None:
        changes["content"] = content
    Update(id=id, changes=changes, expect=expect)  # validates it before the store is opened
    with settings.open() as memory:
        operation = Update(id=whole_id(memory, id), changes=changes, expect=expect)
        _print_outcome(settings, memory.execute(operation))


@app.command()
@click.argument("id", shell_complete=completion("ids"))
@click.argument("content")
@click.option("--at", metavar="ISO8601", help="The time from which CONTENT is true. Default: now.")
@zone_option
@origin_option
@common
def supersede(settings: Settings, id: str, content: str, at: str | None, zone: tzinfo | None) -> None:  # noqa: A002
    """Replace the record ID (or its first 4 characters) by CONTENT from a time on. Both stay; their validities meet."""
    time = None if at is None else time_of("at", at, zone)
    Supersede(id=id, content=content, at=time)  # validates it before the store is opened
    with settings.open() as memory:
        _print_outcome(settings, memory.execute(Supersede(id=whole_id(memory, id), content=content, at=time)))


@app.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=completion("ids"))
@where_option
@owner_option("user", "Only records of this user, and none that is shared.")
@owner_option("agent", "Only records of this agent.")
@owner_option("conversation", "Only records of this conversation.")
@click.option("--expect", metavar="HASH", help="Write only if the record has this hash.")
@click.option("--yes", is_flag=True, help="Do not ask before forgetting the records that match a filter.")
@part_option
@common
def forget(
    settings: Settings,
    ids: tuple[str, ...],
    where: Filter | None,
    user: str | None,
    agent: str | None,
    conversation: str | None,
    expect: str | None,
    yes: bool,
    parts: tuple[str, ...] | None,
) -> None:
    """Forget the records with these IDs, or all that match a filter, in all parts of the memory. Their history stays.

    The beginning of an id is enough, from 4 characters on, if no other begins like it.
    """
    owners = Owners.checked({}, user, agent, conversation)
    if owners.named:
        where = all_of(everything() if where is None else where, *owners.own)
    if not ids and where is None:
        raise click.UsageError("pass ids, or select what to forget by --where FILTER or --user NAME")
    if ids and where is not None:
        raise click.UsageError("pass either ids or what selects records, such as --where, not both")
    if ids and parts is not None:
        raise click.UsageError("--part applies to what --where or an owner selects: ids are those of records")
    if where is not None and expect is not None:
        raise click.UsageError("--expect applies to single records and cannot be combined with --where")
    for each in ids:
        Forget(id=each, expect=expect)  # validates it before the store is opened
    with settings.open() as memory:
        if where is not None:
            _forget_where(settings, memory, where, yes, parts)
            return
        operations = [Forget(id=whole_id(memory, each), expect=expect) for each in ids]
        with memory.batch() as batch:
            outcomes = [batch.execute(operation) for operation in operations]
    if settings.as_json:
        print_json([outcome.to_json() for outcome in outcomes])
        return
    for outcome in outcomes:
        _print_outcome(settings, outcome)


@app.command()
@click.option("--records", type=int, metavar="N", help="Maximum number of records.")
@click.option("--bytes", "nbytes", type=int, metavar="N", help="Maximum total size of the records, in bytes.")
@click.option(
    "--when-full",
    type=click.Choice([each.replace(" ", "-") for each in WHEN_FULL]),
    default="refuse",
    show_default=True,
    help="When full: refuse writes, or evict the least recently used, the least important or the oldest records.",
)
@click.option(
    "--per", type=click.Choice(SCOPED), help="Apply the quota to each of them, not to the namespace as a whole."
)
@click.option(
    "--low-water",
    type=float,
    metavar="SHARE",
    help="Evict down to this share of the limit, such as 0.9, so that not every write evicts.",
)
@click.option("--none", is_flag=True, help="Remove the quota.")
@common
def quota(
    settings: Settings,
    records: int | None,
    nbytes: int | None,
    when_full: str,
    per: Per | None,
    low_water: float | None,
    none: bool,
) -> None:
    """Show or set the quota of the namespace. It applies to every process that writes."""
    if none and (records is not None or nbytes is not None):
        raise click.UsageError("pass either limits or --none, not both")
    sets = none or records is not None or nbytes is not None
    if not sets and click.get_current_context().get_parameter_source("when_full") is not ParameterSource.DEFAULT:
        raise click.UsageError("--when-full requires --records or --bytes")
    if per is not None and (none or not sets):
        raise click.UsageError("--per requires --records or --bytes")
    if low_water is not None and (none or not sets or when_full == "refuse"):
        raise click.UsageError("--low-water requires --records or --bytes, and a --when-full that evicts")
    with settings.open(create=sets and not none) as memory:
        if sets:
            policy = cast(WhenFull, when_full.replace("-", " "))
            share = 1.0 if low_water is None else low_water
            memory.set_quota(records=records, bytes=nbytes, when_full=policy, per=per, low_water=share)
        current = cast("dict[str, Any] | None", memory.stats().get("quota"))
    if settings.as_json:
        print_json(current)
    elif current is None:
        click.echo(f"namespace {settings.namespace}: no quota")
    else:
        each = "" if current["per"] is None else f" for each {current['per']}"
        usage = ", ".join(
            f"{current[f'{what}_used']} {what} in all, up to {current[what]}{each}"
            if each
            else f"{current[f'{what}_used']} of {current[what]} {what}"
            for what in ("records", "bytes")
            if current[what] is not None
        )
        mark = "" if current["low_water"] == 1 else f", down to {current['low_water']:g} of the limit"
        click.echo(f"namespace {settings.namespace}: {usage}; when full: {current['when_full']}{mark}")


def _forget_where(settings: Settings, memory: Any, where: Filter, yes: bool, parts: tuple[str, ...] | None) -> None:
    if not yes:
        counts = _matching(memory, where, parts)
        if counts and not sys.stdin.isatty():
            raise click.UsageError("this forgets everything that matches: confirm with --yes")
        if RECORDS in counts:
            render.show_records(memory.find(where, limit=5), zone_of_store(memory))
        if counts:
            click.confirm(f"Forget what matches: {render.counted(counts)}?", abort=True)
    count = memory.forget_where(where, parts=parts)
    if settings.as_json:
        print_json({"forgotten": count, "parts": count.parts})
    else:
        click.echo(f"forgotten: {render.counted(count.parts) or 0}")


def _matching(memory: Any, where: Filter, parts: tuple[str, ...] | None) -> dict[str, int]:
    """Return how many records of each part of a memory match; parts without any are left out."""
    counts = {name: memory._part(name).count(where) for name in memory.stats(parts=parts)["parts"]}
    return {name: count for name, count in counts.items() if count}


@app.command()
@click.argument("id", required=False, shell_complete=completion("ids"))
@where_option
@owner_option("user", "Everything of this user, also what was forgotten.")
@owner_option("agent", "Everything of this agent.")
@owner_option("conversation", "Everything of this conversation.")
@click.option("--redact", is_flag=True, help="Also remove the ids, and the actors and reasons of earlier commits.")
@click.option("--derived", is_flag=True, help="Also erase the records that derive from these.")
@part_option
@click.option("--reason", metavar="TEXT", help="Why; recorded in the commit.")
@click.option("--dry-run", is_flag=True, help="Only show what would be erased.")
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
    parts: tuple[str, ...] | None,
    reason: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Permanently remove the contents of the record ID, or of all records of which any version matches.

    With a filter, in all parts of the memory, unless --part names some; ID is that of a record, unless --part names
    another part. All versions are erased, live and former. The log keeps that there were records, so that roots and
    proofs stay valid. Backups are not changed: those next to the store that still have the contents are listed.
    """
    fields = {"user": user, "agent": agent, "conversation": conversation}
    conditions = [Is(name, (value,)) for name, value in fields.items() if value is not None]
    if (id is None) == (where is None and not conditions):
        raise click.UsageError("pass either an id, or --where, --user, --agent or --conversation")
    if not yes and not dry_run and not sys.stdin.isatty():
        raise click.UsageError("what is erased cannot be restored: confirm with --yes, or look with --dry-run")
    with settings.open() as memory:
        if id is None:
            what: Filter | str = AllOf.of(*([] if where is None else [where]), *conditions)
        else:
            what = whole_id(memory._part(parts[0]) if parts is not None else memory, id)
        if not yes and not dry_run:
            _confirm(memory, what, parts)
        options: dict[str, Any] = {"redact": redact, "derived": derived, "parts": parts, "dry_run": dry_run}
        erased = memory.erase(what, **options, actor="recollect erase", reason=reason)
    print_json(erased.to_json()) if settings.as_json else _print(erased, derived=derived)
    if not erased.ids and not erased.parts:
        sys.exit(1)


def _confirm(memory: Memory, what: Filter | str, parts: tuple[str, ...] | None) -> None:
    if isinstance(what, str):
        click.confirm(f"Erase every version of {render.plain(what)}? It cannot be restored.", abort=True)
        return
    counts = _matching(memory, what, parts)
    if RECORDS in counts:
        render.show_records(memory.find(what, limit=5), zone_of_store(memory))
    matching = render.counted(counts) or "nothing that is live"
    question = f"Erase every version of {matching}, and of former ones that match? They cannot be restored."
    click.confirm(question, abort=True)


def _print(erased: Erased, *, derived: bool) -> None:
    if not erased.ids and not erased.parts:
        click.echo("no record matches: nothing was erased", err=True)
        return
    done = "would be erased" if erased.dry_run else "erased"
    click.echo(f"{done}: {len(erased.ids)} records, {erased.versions} versions")
    if erased.parts:
        click.echo(f"{done} of other parts: {render.counted(erased.parts)}")
    for each in erased.derived if not derived else ():
        click.echo(f"  derives from what was erased: {render.plain(each)} (erase it with --derived)", err=True)
    for path in erased.copies:
        click.echo(f"  still has it: {render.plain(path)}", err=True)
    if erased.pending:
        click.echo("  not complete: another process reads or writes the store; the next one that opens it continues")
