"""The commands of branches: branch list, new, diff, merge, drop."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from recollect.calls.calls import zone_of_store
from recollect.cli import render
from recollect.cli.app import BRANCH_VARIABLE, Settings, app, common, completion, part_option, print_json
from recollect.common.reprs import line
from recollect.engine.branch_results import Conflict, Merged
from recollect.ledger.commits import MAIN, RESERVED
from recollect.ledger.parts import RECORDS
from recollect.memory.devices import MergedCopy, merge_copy
from recollect.operations import MergeBranch, target_of
from recollect.operations.branches import CHOICES, ON_CONFLICT, Choice, OnConflict
from recollect.records.record import Record
from recollect.stores.sealing.keys import Secret
from recollect.stores.sealing.secrets import secret_in
from recollect.stores.sqlite.encryption import is_encrypted

_NAME = click.argument("name", shell_complete=completion("branches"))
#: The exit code of a merge that conflicts have prevented.
_CONFLICTS = 1


@app.group()
def branch() -> None:
    """Lines of history of a namespace that go on separately, and are merged."""


@branch.command("list")
@click.option("--sizes", is_flag=True, help="Count the records and bytes of each, too.")
@common
def list_branches(settings: Settings, sizes: bool) -> None:
    """List the branches."""
    with settings.open() as memory:
        found, zone = memory.branches(sizes=sizes), zone_of_store(memory)
    if settings.as_json:
        print_json([each.to_json() for each in found])
        return
    right = {"justify": "right"}
    columns: list[tuple[str, dict[str, Any]]] = [
        ("name", {"overflow": "fold"}),
        ("commit", right),
        ("continues", {}),
        ("created", {"no_wrap": True}),
    ]
    copies = any(each.copy_of is not None for each in found)
    columns += [("merged", {}), *([("copy of", {})] if copies else [])]
    columns += [("records", right), ("own bytes", right)] if sizes else []
    rows = []
    for each in found:
        merged = "" if each.merged_into is None else f"{each.merged_seq} into {render.plain(each.merged_into)}"
        row = [
            render.plain(each.name),
            str(each.seq),
            "" if each.base is None else f"{render.plain(each.base)}, commit {each.base_seq}",
            "" if each.created is None else render.moment(each.created, zone),
            merged,
        ]
        row += ["" if each.copy_of is None else render.plain(each.copy_of)] if copies else []
        rows.append(tuple(row + ([f"{each.records:,}", f"{each.own_bytes:,}"] if sizes else [])))
    render.table(tuple(columns), rows)


@branch.command()
@_NAME
@click.option("--at", metavar="MOMENT", help="The moment that it continues: as --at of `recollect find`. Default: now.")
@common
def new(settings: Settings, name: str, at: str | None) -> None:
    """Create the branch NAME, which continues the one of --branch. Use it with --branch NAME."""
    with settings.open() as memory:
        made = memory.branch(name, at=None if at is None else target_of(at, zone_of_store(memory)))
        info = next(each for each in memory.branches() if each.name == made.branch_name)
    if settings.as_json:
        print_json(info.to_json())
    else:
        click.echo(f"created: branch {info.name!r} continues {info.base!r} after commit {info.base_seq}")


@branch.command()
@_NAME
@click.option(
    "--on-conflict",
    type=click.Choice(ON_CONFLICT),
    default="list",
    help="What becomes of a record that both have changed. Default: list: nothing is merged, and all are shown.",
)
@click.option(
    "--resolve",
    "resolutions",
    metavar="ID=CHOICE",
    multiple=True,
    help="What becomes of the conflict of a record: ours, theirs or both. May be repeated. PART:ID=CHOICE for a part.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be merged.")
@click.option("--device", help="What branches of a copy are called here. Default: the name of its file.")
@click.option(
    "--copy-secret-file",
    metavar="FILE",
    type=click.Path(),
    help="File with the secret of an encrypted copy. Default: --secret-file, or a passphrase that is asked for.",
)
@click.option("--reason", help="Why; recorded in the commit.")
@common
def merge(
    settings: Settings,
    name: str,
    on_conflict: OnConflict,
    resolutions: tuple[str, ...],
    dry_run: bool,
    device: str | None,
    copy_secret_file: str | None,
    reason: str | None,
) -> None:
    """Merge the branch NAME into the one of --branch, or a copy of the store, which is the file NAME.

    Changes of different fields are joined. If conflicts are left, nothing is merged, and the exit code is 1.

    Of a copy that was written elsewhere since it was made, all branches of all namespaces are merged. It is only read.
    """
    if os.path.isfile(name) and not _is_branch(settings, name):
        for option, given, instead in (
            ("--resolve", resolutions, "merge the branch that has the commits of the copy afterwards"),
            ("--dry-run", dry_run, "merge it into a backup of this store"),
            ("--branch", _is_given(settings), "all branches of a copy are merged"),
        ):
            if given:
                raise click.UsageError(f"{option} is for a merge of a branch, and {name!r} is a copy: {instead}")
        secret = None if copy_secret_file is None else secret_in(copy_secret_file)
        _merge_copy(replace(settings, branch=None), name, on_conflict, device, secret, reason)
        return
    for option, value in (("--device", device), ("--copy-secret-file", copy_secret_file)):
        if value is not None:
            raise click.UsageError(f"{option} is for a copy of the store, and {name!r} is no file")
    if _is_path(name) and not _is_branch(settings, name):
        raise click.UsageError(f"there is no file {name!r}, and no branch of this name")
    operation = MergeBranch(
        branch=name,
        on_conflict=on_conflict,
        resolutions=tuple(map(_resolution, resolutions)),
        dry_run=dry_run,
    )
    with settings.open() as memory:
        merged: Merged = memory.execute(operation, reason=reason)
    if settings.as_json:
        print_json(merged.to_json())
    else:
        _print_merged(merged, dry_run)
    if merged.conflicts:
        sys.exit(_CONFLICTS)


def _is_given(settings: Settings) -> bool:
    """Return whether a branch is named by an option, and not by the variable alone."""
    return settings.branch is not None and settings.branch != os.environ.get(BRANCH_VARIABLE)


def _is_path(name: str) -> bool:
    """Return whether a name that is no file looks like the path of one."""
    return os.path.dirname(name) != "" or name.endswith((".db", ".sqlite", ".sqlite3"))


def _is_branch(settings: Settings, name: str) -> bool:
    with replace(settings, branch=None).open() as memory:
        return any(each.name == name for each in memory.branches())


def _merge_copy(
    settings: Settings,
    path: str,
    on_conflict: OnConflict,
    device: str | None,
    secret: Secret | None,
    reason: str | None,
) -> None:
    with settings.open() as memory:
        if secret is None and is_encrypted(path):
            secret = settings.secret_of(path)
        done = merge_copy(memory, path, device=device, on_conflict=on_conflict, secret=secret, reason=reason)
    if settings.as_json:
        print_json([each.to_json() for each in done])
    else:
        for each in done:
            _print_copy(each, settings)
        if not done:
            click.echo("nothing to merge: this store has all that the copy has")
    if any(each.merged is not None and each.merged.conflicts for each in done):
        sys.exit(_CONFLICTS)


def _print_copy(done: MergedCopy, settings: Settings) -> None:
    where = f"{render.plain(done.namespace)}: "
    if done.commits:
        erased = f"; records erased here, too: {done.erased}" if done.erased else ""
        click.echo(f"{where}branch {done.branch!r} has the commits of the copy: {done.commits} more{erased}")
    if done.merged is not None:
        click.echo(f"{where}into branch {done.into!r}:")
        _print_merged(done.merged, dry_run=False)
        if done.merged.conflicts:
            at = "" if done.into == MAIN else f" --branch {shlex.quote(done.into)}"
            at += "" if done.namespace == "default" else f" --namespace {shlex.quote(done.namespace)}"
            at += "" if settings.db is None else f" --db {shlex.quote(settings.db)}"
            click.echo(f"decide with: recollect branch merge {shlex.quote(done.branch)}{at} --resolve ID=ours")


def _resolution(written: str) -> tuple[str, str, Choice]:
    """Return the part, the id and the choice of a `--resolve`."""
    key, _, choice = written.rpartition("=")
    decided = next((each for each in CHOICES if each == choice), None)
    if decided is None or not key:
        raise click.UsageError(f"--resolve {written!r} must be ID=CHOICE, where a choice is {', '.join(CHOICES)}")
    part, colon, record_id = key.partition(":")
    return (part, record_id, decided) if colon and part in (RECORDS, *RESERVED) else (RECORDS, key, decided)


def _print_merged(merged: Merged, dry_run: bool) -> None:
    for each in merged.conflicts:
        click.echo(_conflict(each))
    if merged.conflicts:
        click.echo(f"nothing was merged; conflicts: {len(merged.conflicts)} (--resolve ID=ours, or --on-conflict)")
    elif merged.seq is None and not (dry_run and _would(merged)):
        click.echo(f"nothing to merge: branch {merged.branch!r} has nothing that this one lacks")
    else:
        parts = "".join(f", {count} of {name}" for name, count in merged.parts.items())
        what = "would be merged" if dry_run else f"merged in commit {merged.seq}"
        click.echo(f"{what}: {merged.taken} taken, {merged.joined} joined, {merged.kept} kept{parts}")


def _would(merged: Merged) -> bool:
    """Return whether a merge would change anything."""
    return bool(merged.taken or merged.joined or merged.kept or merged.parts)


def _conflict(conflict: Conflict) -> str:
    part = "" if conflict.part == RECORDS else f"{conflict.part}:"
    fields = f" ({', '.join(conflict.fields)})" if conflict.fields else ""
    sides = {"base": conflict.base, "ours": conflict.ours, "theirs": conflict.theirs}
    named = {str(each.metadata["key"]) for each in sides.values() if each is not None and "key" in each.metadata}
    called = "".join(f" {render.plain(each)!r}" for each in sorted(named))
    shown = "\n".join(f"  {name:<7} {_text(record, conflict.fields)}" for name, record in sides.items())
    return f"conflict: {part}{conflict.id}{called}{fields}\n{shown}"


def _text(record: Record | None, fields: Sequence[str]) -> str:
    """Return what a record is in a conflict: its text, and what else differs."""
    if record is None:
        return "(none)"
    others = (f"{each}: {render.plain(str(_value(record, each)))}" for each in fields if each != "content")
    return "; ".join([line(record.content, 100), *others])


def _value(record: Record, name: str) -> object:
    """Return a field of a record, or a value of its metadata."""
    field, _, key = name.partition(".")
    value = getattr(record, field)
    return value.get(key) if key else value


@branch.command()
@_NAME
@part_option
@common
def diff(settings: Settings, name: str, parts: tuple[str, ...] | None) -> None:
    """Show what the branch NAME has added (+), removed (-) and changed in comparison to the one of --branch."""
    with settings.open() as memory:
        found = memory.diff(branch=name, parts=parts)
    if settings.as_json:
        print_json(found.to_json())
    else:
        render.difference(found)


@branch.command()
@_NAME
@common
def drop(settings: Settings, name: str) -> None:
    """Remove the branch NAME with all that only it has. Its name is not used again."""
    with settings.open() as memory:
        dropped = memory.drop_branch(name)
    if settings.as_json:
        print_json(dropped.to_json())
    else:
        click.echo(f"dropped: branch {dropped.name!r}, whose newest commit was {dropped.seq}")
