"""Commands that maintain a store: backup, restore, copy, compact, rescue, migrate, embed."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json
from recollect.errors import InvalidArgumentError, UnsupportedError
from recollect.memory import RecollectWarning
from recollect.memory.opening import open_store, store_file
from recollect.quoting import printable
from recollect.stores.maintenance.backup import restore as restore_store
from recollect.stores.maintenance.copying import copy_store
from recollect.stores.maintenance.migrate import migrate as migrate_store
from recollect.stores.maintenance.rescue import rescue as rescue_store
from recollect.stores.sqlite.encryption import is_encrypted
from recollect.stores.values import Backup

#: Maximum number of lost items that are listed; the others are counted. With --json all are listed.
_NAMED = 50
_FILE = click.Path(path_type=Path)


def _print_backup(backup: Backup) -> None:
    verified = ", verified" if backup.verified else ""
    click.echo(f"{backup.path}: {backup.bytes} bytes{verified}")
    for branch, each in backup.branches.items():
        if branch.is_reserved:
            continue  # it belongs to a namespace that is listed
        click.echo(f"  namespace {branch.namespace}: {each.records} records, {each.seq} commits, root {each.root}")


@app.command()
@click.argument("dest", type=_FILE)
@click.option("--verify", is_flag=True, help="Verify the copy and recompute its roots before it replaces DEST.")
@click.option("--force", is_flag=True, help="Replace DEST even if it is not a backup.")
@common
def backup(settings: Settings, dest: Path, verify: bool, force: bool) -> None:
    """Copy a consistent snapshot of the store to the file DEST. Other processes can write meanwhile."""
    with settings.open(read_only=True) as memory, render.progress("copying", quiet=settings.as_json):
        result = memory.backup(dest, verify=verify, force=force)
    if settings.as_json:
        print_json(result.to_json())
    else:
        _print_backup(result)


@app.command()
@click.argument("source", type=_FILE)
@click.option("--force", is_flag=True, help="Also replace an existing store. It is renamed, not deleted.")
@common
def restore(settings: Settings, source: Path, force: bool) -> None:
    """Restore the store from the backup SOURCE, after verifying it."""
    result = restore_store(
        source, store_file(settings.db), force=force, key=settings.key, secret=settings.secret_of(str(source))
    )
    if settings.as_json:
        print_json(result.to_json())
        return
    _print_backup(result)
    if result.kept is not None:
        click.echo(f"the replaced store was renamed to {result.kept}")


@app.command()
@click.argument("source")
@click.argument("target")
@common
def copy(settings: Settings, source: str, target: str) -> None:
    """Copy the store SOURCE, with its history, into the store TARGET, and verify every root.

    Each is a file or an address: so a file becomes a database, and a database a file. A copy that was interrupted, or
    that is older than SOURCE, is continued. Indexes and vectors are not copied: they are made again when needed.
    """
    options: dict[str, Any] = {"key": settings.key, "timeout_s": 10.0, "durability": "full"}
    files = [each.removeprefix("sqlite:///") for each in (source, target)]
    if is_encrypted(files[0]) and not settings.key:
        rule = (
            "it would have the store key of the encrypted one, which is in no file: "
            "`recollect backup` copies it into a file; a copy without encryption (`recollect decrypt`) can be copied"
        )
        raise UnsupportedError("copying an encrypted store into another one", rule)
    encrypted = [
        is_encrypted(files[0]),
        "://" not in files[1] and (is_encrypted(files[1]) or not os.path.exists(files[1])),
    ]
    secret = settings.secret
    if secret is not None and not any(encrypted):
        raise InvalidArgumentError("secret file", settings.secret_file, "is for an encrypted file, and neither is one")
    secrets = [secret if each else None for each in encrypted]
    with (
        closing(open_store(source, create=False, read_only=True, zone=None, secret=secrets[0], **options)) as origin,
        closing(
            open_store(
                target,
                create=True,
                read_only=False,
                zone=origin.zone,
                secret=secrets[1],
                **{**options, "key": origin.key},
            )
        ) as written,
        render.progress("copying commits", quiet=settings.as_json) as update,
    ):
        result = copy_store(origin, written, update or (lambda commits: None))
    if settings.as_json:
        print_json(result.to_json())
        return
    click.echo(f"copied {result.commits} commits of {result.branches} branches; {result.there} were there already")
    click.echo("every root was verified")


@app.command()
@common
def compact(settings: Settings) -> None:
    """Give the free space of the store back to the system.

    Pages of old roots are dropped first. Every record, version and commit stays. Writers wait until it is done.
    """
    with settings.open() as memory, render.progress("compacting", quiet=settings.as_json):
        done = memory.compact()
        path = memory.stats()["store"]["path"]
    if settings.as_json:
        print_json(done.to_json())
        return
    if done.before is None:
        click.echo(f"{path}: nothing to do, the server's vacuum gives space back")
        return
    click.echo(f"{path}: {done.before} bytes before, {done.after} after")
    if not done.complete:
        click.echo("a program is still reading: the file becomes shorter when it has finished", err=True)


@app.command()
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
@common
def rescue(settings: Settings, old: Path, new: Path) -> None:
    """Copy all intact records of the corrupt store OLD into a new store NEW. OLD is only read.

    Every record whose hash still verifies is saved, and the rest is listed. The exit code is 1 if something is lost.
    """
    report = rescue_store(old, new, key=settings.key, secret=settings.secret_of(str(old)))
    if settings.as_json:
        print_json(report.to_json())
    else:
        for branch, saved in report.branches.items():
            if branch.is_reserved:
                continue  # it belongs to a namespace that is listed
            same = ", same root as the old store" if saved.same_root else ""
            click.echo(f"namespace {branch.namespace}: {saved.records} records, {saved.commits} commits{same}")
            if saved.without_history:
                later = saved.without_history
                click.echo(f"  {later} later commits are not saved one by one: one commit has their changes")
        for lost in report.lost[:_NAMED]:
            click.echo(f"  lost: {printable(str(lost))}", err=True)
        if len(report.lost) > _NAMED:
            click.echo(f"  and {len(report.lost) - _NAMED} more lost: --json lists all", err=True)
        click.echo(f"{new}: records saved {report.records}, items lost {len(report.lost)}")
    if report.lost:
        sys.exit(1)


@app.command()
@click.option("--dry-run", is_flag=True, help="Migrate a copy and leave the store unchanged.")
@common
def migrate(settings: Settings, dry_run: bool) -> None:
    """Migrate the store to the format of this release, after a verified backup next to it."""
    path = store_file(settings.db)
    done = migrate_store(path, dry_run=dry_run, key=settings.key, secret=settings.secret_of(path))
    if settings.as_json:
        print_json(done.to_json())
        return
    if done.before == done.after:
        click.echo(f"{done.path}: already has the newest format, {done.before}; nothing to do")
        return
    how = "would be migrated" if dry_run else "migrated"
    click.echo(f"{done.path}: {how} from format {done.before} to {done.after}")
    for step in done.steps:
        click.echo(f"  {step}")
    if done.backup is not None:
        click.echo(f"backup in the old format: {done.backup}")


#: Maximum number of records without a vector that are listed; the others are counted.
_NO_VECTOR = 20


@app.command()
@click.option(
    "--batch-size", type=int, default=100, show_default=True, metavar="N", help="Number of texts for each request."
)
@click.option("--status", is_flag=True, help="Say how many records have a vector, and embed nothing.")
@common
def embed(settings: Settings, batch_size: int, status: bool) -> None:
    """Compute missing vectors with the model of --embedder. Run it again to continue after an interruption."""
    done = 0
    with settings.open() as memory:
        with render.progress("embedding", quiet=settings.as_json) as show, warnings.catch_warnings():
            warnings.simplefilter("ignore", RecollectWarning)  # all failures are printed below
            if not status:
                done = memory.embed_all(batch_size, show)
        stats = memory.vector_stats()
    if settings.as_json:
        print_json({"done": done, **stats})
    else:
        if not status:
            click.echo(f"{done} texts embedded by {stats['model']}, {stats['dimensions']} dimensions")
        for each in stats.get("models", ()) if status else ():
            click.echo(f"{each['vectors']} vectors of {each['model']}, {each['dimensions']} dimensions")
        if stats["model"]:
            have = f"{stats['embedded']} of {stats['total']} records have a vector"
            click.echo(f"{have} of {stats['model']} ({stats['coverage']:g}%)")
        else:
            click.echo("no embedder is set up, so no vectors are used: --embedder or RECOLLECT_EMBEDDER names one")
        for failed in stats["failed"][:_NO_VECTOR]:
            click.echo(f"  no vector: {failed['id']}: {render.plain(failed['reason'])}", err=True)
        if len(stats["failed"]) > _NO_VECTOR:
            click.echo(f"  and {len(stats['failed']) - _NO_VECTOR} more records without a vector", err=True)
    if stats["failed"]:
        sys.exit(1)
