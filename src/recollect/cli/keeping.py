"""Commands that maintain a store: backup, restore, rescue, migrate."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from recollect.cli.app import Settings, app, common, print_json
from recollect.errors import printable
from recollect.memory.opening import store_file
from recollect.stores.base import Backup
from recollect.stores.maintenance.backup import restore as restore_store
from recollect.stores.maintenance.migrate import migrate as migrate_store
from recollect.stores.maintenance.rescue import rescue as rescue_store

#: So many of the lost are named; the rest are counted. With --json all are.
_NAMED = 50
_FILE = click.Path(path_type=Path)


def _tell(backup: Backup) -> None:
    verified = ", verified" if backup.verified else ""
    click.echo(f"{backup.path}: {backup.bytes} bytes{verified}")
    for branch, held in backup.branches.items():
        click.echo(f"  namespace {branch.namespace}: {held.records} records, {held.seq} commits, root {held.root}")


@app.command()
@click.argument("dest", type=_FILE)
@click.option("--verify", is_flag=True, help="Verify the copy and recompute its roots before it replaces DEST.")
@click.option("--force", is_flag=True, help="Replace DEST even if it is not a backup.")
@common
def backup(settings: Settings, dest: Path, verify: bool, force: bool) -> None:
    """Copy the store to the file DEST, as it is at one moment. Others can write meanwhile."""
    with settings.open(read_only=True) as memory:
        made = memory.backup(dest, verify=verify, force=force)
    if settings.as_json:
        print_json(made.to_json())
    else:
        _tell(made)


@app.command()
@click.argument("source", type=_FILE)
@click.option("--force", is_flag=True, help="Also replace an existing store. It is renamed, not deleted.")
@common
def restore(settings: Settings, source: Path, force: bool) -> None:
    """Restore the store from the backup SOURCE, after verifying it."""
    made = restore_store(source, store_file(settings.db), force=force)
    if settings.as_json:
        print_json(made.to_json())
        return
    _tell(made)
    if made.kept is not None:
        click.echo(f"what was there before is {made.kept}")


@app.command()
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
@common
def rescue(settings: Settings, old: Path, new: Path) -> None:
    """Copy all intact records of the corrupt store OLD into a new store NEW. OLD is only read.

    Every record whose hash still verifies is saved, and the rest is listed. The exit code is 1 where something is
    lost.
    """
    report = rescue_store(old, new)
    if settings.as_json:
        print_json(report.to_json())
    else:
        for namespace, records in report.records.items():
            whole = ", with the root of the old store" if report.same[namespace] else ""
            click.echo(f"namespace {namespace}: {records} records, {report.commits[namespace]} commits{whole}")
        for lost in report.lost[:_NAMED]:
            click.echo(f"  lost: {printable(str(lost))}", err=True)
        if len(report.lost) > _NAMED:
            click.echo(f"  and {len(report.lost) - _NAMED} more lost: --json names all", err=True)
        click.echo(f"{new}: {sum(report.records.values())} records saved, {len(report.lost)} things lost")
    if report.lost:
        sys.exit(1)


@app.command()
@click.option("--dry-run", is_flag=True, help="Migrate a copy and leave the store unchanged.")
@common
def migrate(settings: Settings, dry_run: bool) -> None:
    """Migrate the store to the format of this release, after making a verified backup beside it."""
    done = migrate_store(store_file(settings.db), dry_run=dry_run)
    if settings.as_json:
        print_json(done.to_json())
        return
    if done.before == done.after:
        click.echo(f"{done.path}: format {done.before}, the newest: nothing to do")
        return
    how = "would be migrated" if dry_run else "migrated"
    click.echo(f"{done.path}: {how} from format {done.before} to {done.after}")
    for step in done.steps:
        click.echo(f"  {step}")
    if done.backup is not None:
        click.echo(f"the store as it was is {done.backup}")
