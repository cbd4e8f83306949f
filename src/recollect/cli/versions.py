"""Commands on the history: history, diff, snapshot, snapshots, rollback, revert."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import tzinfo

import click

from recollect.calls.calls import zone_of_store
from recollect.cli import render
from recollect.cli.app import Settings, app, common, completion, part_option, print_json
from recollect.cli.render import whole_id
from recollect.common.reprs import line
from recollect.engine.history_results import Restored
from recollect.errors import UnknownRecordError
from recollect.facets.outline.outline import Outline
from recollect.ledger.commits import Snapshot
from recollect.memory.memory import Memory
from recollect.operations import target_of

#: The arguments of a command that takes a snapshot or drops one (`take_snapshot`).
NAME = click.argument("name", required=False)
DROP = click.option("--drop", is_flag=True, help="Remove the snapshot called NAME instead. Its commit stays.")


def print_snapshots(settings: Settings, found: list[Snapshot], zone: tzinfo) -> None:
    """Print snapshots, newest first, as a table or as JSON."""
    if settings.as_json:
        print_json([each.to_json() for each in found])
        return
    render.table(
        (("name", {"overflow": "fold"}), ("commit", {"justify": "right"}), ("time", {"no_wrap": True}), ("root", {})),
        ((render.plain(each.name or ""), str(each.seq), render.moment(each.time, zone), each.root) for each in found),
    )


def take_snapshot(settings: Settings, of: Callable[[Memory], Memory | Outline], name: str | None, drop: bool) -> None:
    """Take a snapshot, or drop one, and print it.

    Args:
        settings: Those of the command line.
        of: What has the snapshots: the memory, or its outlines.
        name: The name of the snapshot.
        drop: Whether to drop the one called `name`.
    """
    if drop and name is None:
        raise click.UsageError("--drop needs the NAME of a snapshot")
    with settings.open() as memory:
        owner = of(memory)
        made = owner.drop_snapshot(name) if drop and name is not None else owner.snapshot(name)
        print_json(made.to_json()) if settings.as_json else print_snapshots(settings, [made], zone_of_store(memory))


@app.command()
@NAME
@DROP
@common
def snapshot(settings: Settings, name: str | None, drop: bool) -> None:
    """Mark the newest commit as a snapshot, called NAME. Unnamed ones are kept until there are 20 newer ones."""
    take_snapshot(settings, lambda memory: memory, name, drop)


@app.command()
@common
def snapshots(settings: Settings) -> None:
    """List the snapshots, newest first."""
    with settings.open() as memory:
        print_snapshots(settings, memory.snapshots(), zone_of_store(memory))


@app.command()
@click.argument("to")
@click.option("--reason", metavar="TEXT", help="Why; recorded in the commit.")
@click.option("--dry-run", is_flag=True, help="Only show what would be added, removed and changed.")
@part_option
@common
def rollback(settings: Settings, to: str, reason: str | None, dry_run: bool, parts: tuple[str, ...] | None) -> None:
    """Restore the memory as it was at the moment TO, in a new commit: all records, and what facets keep.

    TO is the number of a commit, an ISO 8601 time, a root, or the name of a snapshot. Nothing is lost: rolling back to
    the commit before takes it back.
    """
    with settings.open() as memory:
        if dry_run:
            found = memory.diff(memory.seq, target_of(to, zone_of_store(memory)), parts=parts)
            print_json(found.to_json()) if settings.as_json else render.difference(found)
            return
        target = target_of(to, zone_of_store(memory))
        restored = memory.rollback(target, parts=parts, actor="recollect rollback", reason=reason)
    print_restored(settings, restored)


@app.command()
@click.argument("seq", type=click.IntRange(min=1))
@click.option("--reason", metavar="TEXT", help="Why; recorded in the commit.")
@common
def revert(settings: Settings, seq: int, reason: str | None) -> None:
    """Take back the changes of the commit SEQ, in a new commit.

    Records that were changed later stay as they are and are listed; the exit code is then 1.
    """
    with settings.open() as memory:
        restored = memory.revert(seq, actor="recollect revert", reason=reason)
    print_restored(settings, restored)


def print_restored(settings: Settings, restored: Restored, command: str = "recollect rollback") -> None:
    """Print what was restored, and exit with 1 if something was not.

    Args:
        settings: Those of the command line.
        restored: What was restored.
        command: The command that takes it back, without its argument.
    """
    missing = [
        (why, record_id)
        for _, part in restored.each()
        for why, ids in (
            ("was changed later", part.conflicts),
            ("was erased", part.erased),
            ("is corrupt", part.damaged),
        )
        for record_id in ids
    ]
    if settings.as_json:
        print_json(restored.to_json())
    else:
        counts = {name: part.changed for name, part in restored.each()}
        click.echo(f"changed {render.counted(counts)}; the newest commit is {restored.seq}")
        if any(counts.values()):
            click.echo(f"to take it back: {command} {restored.seq - 1}")
        for why, record_id in missing:
            click.echo(f"  not restored: {render.plain(record_id)} {why}", err=True)
    if missing:
        sys.exit(1)


@app.command()
@click.argument("old")
@click.argument("new", required=False)
@part_option
@common
def diff(settings: Settings, old: str, new: str | None, parts: tuple[str, ...] | None) -> None:
    """Show what was added (+), removed (-) and changed from the moment OLD to NEW. Default of NEW: now.

    A moment is the number of a commit, an ISO 8601 time, a root, or the name of a snapshot.
    """
    with settings.open() as memory:
        zone = zone_of_store(memory)
        found = memory.diff(target_of(old, zone), None if new is None else target_of(new, zone), parts=parts)
    print_json(found.to_json()) if settings.as_json else render.difference(found)


@app.command()
@click.argument("id", shell_complete=completion("ids"))
@common
def history(settings: Settings, id: str) -> None:  # noqa: A002 - the field's name
    """Show every version of the record ID, oldest first."""
    with settings.open() as memory:
        whole = whole_id(memory, id, in_log=True)
        versions, zone = memory.history(whole), zone_of_store(memory)
        if not versions:
            raise UnknownRecordError(whole, memory.name)
    if settings.as_json:
        print_json([each.to_json() for each in versions])
        return
    render.table(
        (
            ("commit", {"justify": "right"}),
            ("time", {"no_wrap": True}),
            ("cause", {}),
            ("by", {"overflow": "fold"}),
            ("content", {"overflow": "fold"}),
        ),
        (
            (
                str(each.commit.seq),
                render.moment(each.commit.time, zone),
                each.cause,
                render.plain(": ".join(part for part in (each.commit.actor, each.commit.reason) if part)),
                "(erased)"
                if each.erased
                else ""
                if each.record is None
                else render.plain(line(each.record.content, 300)),
            )
            for each in versions
        ),
    )
