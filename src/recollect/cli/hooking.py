"""The commands for hooks of coding agents: hooks install, remove and run.

A client runs a hook with a JSON object on standard input. At the start of a session the hook answers with what the
memory knows of the project, and at its end it stores the transcript. Nothing leaves the machine. `hook_files` has the
files in which clients find their hooks.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from recollect import filters as f
from recollect.agents import TRUST
from recollect.cli.app import USER_VARIABLE, Named, Settings, app, common
from recollect.cli.hook_files import CLIENTS, START, HookFile, with_ours, without_ours
from recollect.errors import InvalidArgumentError, StoreIOError, StoreMissingError, UnsupportedError
from recollect.importers import IMPORTERS, import_path
from recollect.memory import Memory
from recollect.quoting import without_passwords
from recollect.records.factories import OTHER_BRANCH
from recollect.records.record import Record
from recollect.text.manner import standing_tags

_MOST_INPUT = 2**20
#: What a session begins with: tokens of a context, the last turns of the last session, wishes in earlier ones and what
#: is known of the project, and characters of each of these.
_TOKENS, _TURNS, _WISHES, _SHOWN = 700, 6, 5, 200
#: Number of earlier turns among which wishes are looked for.
_MOST_READ = 500


_client = click.argument("client", type=Named("client", list(CLIENTS)), metavar="CLIENT")
_project = click.option("--project", is_flag=True, help="For the project in this folder only; default: for this user.")
_dry_run = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")


@app.group()
def hooks() -> None:
    """Remember the sessions of coding agents: Claude Code and the Codex CLI."""


@hooks.command()
@_client
@_project
@_dry_run
@click.option("--user", metavar="NAME", help="Store the turns as this user's, and show no other user's.")
@common
def install(settings: Settings, client: str, project: bool, dry_run: bool, user: str | None) -> None:
    """Add hooks to CLIENT that store each session at its end, and begin each with what the memory knows.

    CLIENT is claude-code or codex. Other hooks stay. The store is that of --db and -n, or else that of the environment
    in which the client runs.
    """
    chosen = CLIENTS[client]
    command = _command(settings, client, user)
    _change(HookFile.of(chosen, project=project), lambda hooks: with_ours(hooks, chosen, command), dry_run=dry_run)


@hooks.command()
@_client
@_project
@_dry_run
@common
def remove(settings: Settings, client: str, project: bool, dry_run: bool) -> None:
    """Remove the hooks that `hooks install` has added to CLIENT. What is remembered stays."""
    _change(HookFile.of(CLIENTS[client], project=project), without_ours, dry_run=dry_run)


@hooks.command(hidden=True)
@_client
@click.option("--user", metavar="NAME", envvar=USER_VARIABLE)
@common
def run(settings: Settings, client: str, user: str | None) -> None:
    """Answer one hook of CLIENT, which is described by JSON on standard input."""
    event = _event(sys.stdin.buffer.read(_MOST_INPUT + 1))
    if event.get("hook_event_name") == START:
        known = _known(settings, str(event.get("cwd") or os.getcwd()), user)
        output = {"hookEventName": START, "additionalContext": known}
        click.echo(json.dumps({"hookSpecificOutput": output}))
        return
    path = event.get("transcript_path")
    if not isinstance(path, str) or not path:
        rule = f"{client} named no transcript: it may be set not to keep sessions"
        raise UnsupportedError("storing this session", rule)
    transcript = Path(os.path.expanduser(path))
    if _has_messages(transcript):
        with settings.open(create=True) as memory:
            given = None if user is None else {"user": user}
            report = import_path(memory, IMPORTERS[client], transcript, defaults=given)
        for each in report.damaged:
            click.echo(f"not stored: {each.place}: {each.reason}", err=True)
    click.echo("{}")


def _has_messages(transcript: Path) -> bool:
    """Return whether anything was said in a session: one that was only opened has no file, or one without messages."""
    try:
        with open(transcript, "rb") as file:
            return any(mark in line for line in file for mark in (b'"message"', b'"response_item"'))
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise StoreIOError(str(transcript), str(error)) from error


def _event(raw: bytes) -> dict[str, Any]:
    try:
        event = json.loads(raw) if len(raw) <= _MOST_INPUT else None
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise InvalidArgumentError("standard input", raw[:40], "must be the JSON object that a client gives to a hook")
    return event


def _known(settings: Settings, folder: str, user: str | None) -> str:
    """Return what the memory knows of the project in a folder: its last session, and what else matters."""
    project = os.path.basename(folder.rstrip("/")) or folder
    try:
        memory = settings.open()
    except StoreMissingError:  # nothing is remembered yet
        return ""
    with memory:
        here = f.source(_nearest(memory, folder, user))
        last = memory.find(here & f.kind("conversation") & ~f.tag(OTHER_BRANCH), order="newest", limit=1, user=user)
        before = [] if not last or last[0].conversation is None else _newest(memory, last[0].conversation, user)
        said = here & f.kind("conversation") & f.role("user") & ~f.tag(OTHER_BRANCH) & _not(before)
        asked = memory.find(said, limit=_MOST_READ, user=user)
        wishes = [turn for turn in asked if standing_tags(str(turn.content))][:_WISHES]
        valid = f.valid_at(datetime.now(UTC))
        own = memory.find(here & ~f.kind("conversation") & valid, limit=_WISHES, user=user)
        shown = [*before, *wishes, *own]
        question = f"Decisions, rules and preferences for {project}, and tasks that are left"
        others = ((here & f.role("user")) | ~f.kind("conversation")) & _not(shown)
        known = str(memory.context(question, _TOKENS, where=others, user=user))
    parts: list[str] = []
    for title, records in (
        ("The end of the last session in this project", before),
        ("What was asked for in earlier sessions in this project", wishes),
        ("Known of this project", own),
    ):
        if records:
            parts += [f"{title} ({TRUST}):", *map(_quoted, records)]
    return "\n".join([*parts, *([known] if known else [])])


def _not(records: Iterable[Record]) -> f.Filter:
    ids = [each.id for each in records]
    return ~f.id(*ids) if ids else f.everything()


def _quoted(record: Record) -> str:
    text = json.dumps(str(record.content)[:_SHOWN], ensure_ascii=False)
    return f"- {record.role or record.kind}: {text}"


def _nearest(memory: Memory, folder: str, user: str | None) -> str:
    """Return the folder, or the nearest above it, in which there was a session."""
    folder = os.path.normpath(folder)
    for each in (folder, *map(str, Path(folder).parents)):
        if memory.find(f.source(each) & f.kind("conversation"), limit=1, user=user):
            return each
    return folder


def _newest(memory: Memory, conversation: str, user: str | None) -> list[Record]:
    """Return the last turns of a conversation that somebody said, in their order."""
    spoken = f.conversation(conversation) & f.role("user", "assistant") & ~f.tag(OTHER_BRANCH)
    turns = memory.find(spoken, order="newest", limit=3 * _TURNS, user=user)
    said = [turn for turn in turns if not str(turn.content).startswith("[calls ")]
    return sorted(said[:_TURNS], key=lambda turn: turn.position or 0)


def _command(settings: Settings, client: str, user: str | None) -> str:
    """Return the command line of our hooks."""
    # -P: a module in the folder of the project is not run in place of ours.
    words = [sys.executable, "-P", "-m", "recollect", "hooks", "run", client]
    if settings.db is not None and without_passwords(settings.db, whole="://" in settings.db) != settings.db:
        rule = "has a password, which a file of hooks must not have: set RECOLLECT_DB where the client runs"
        raise InvalidArgumentError("db", settings.db, rule)
    if settings.db is not None:
        file = settings.db.removeprefix("sqlite:///")
        words += ["--db", settings.db if "://" in file else os.path.abspath(file)]
    for option, value, default in (
        ("-n", settings.namespace, Settings().namespace),
        ("--key-file", os.path.abspath(settings.key_file) if settings.key_file else "", ""),
        ("--secret-file", os.path.abspath(settings.secret_file) if settings.secret_file else "", ""),
        ("--branch", settings.branch, None),
        ("--embedder", settings.embedder, None),
        ("--user", user, None),
    ):
        if value and value != default:
            words += [option, value]
    return shlex.join(words)


def _change(file: HookFile, changed: Callable[[Mapping[str, Any]], dict[str, Any]], *, dry_run: bool) -> None:
    """Change the hooks of a client, and show the difference."""
    lines = file.change(changed)
    if not lines:
        click.echo(f"{file.path}: nothing to change")
        return
    click.echo("\n".join(lines))
    if dry_run:
        click.echo("nothing was changed (--dry-run)", err=True)
        return
    file.write()
    click.echo(f"changed {file.path}; start {file.client.name} again", err=True)
