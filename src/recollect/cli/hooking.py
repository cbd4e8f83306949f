"""The commands for hooks of coding agents: hooks install, remove and run.

A client runs a hook with a JSON object on standard input. At the start of a session the hook answers with what the
memory knows of the project, and at its end it stores the transcript. Nothing leaves the machine. A file of hooks that
others have written keeps their entries, and a copy of it as it was is left beside it.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import click

from recollect import filters as f
from recollect.agents import TRUST
from recollect.cli.app import USER_VARIABLE, Settings, app, common
from recollect.errors import InvalidArgumentError, StoreIOError, StoreMissingError, UnsupportedError, without_passwords
from recollect.importers import IMPORTERS, import_path
from recollect.memory import Memory
from recollect.records.factories import OTHER_BRANCH
from recollect.records.record import Record

#: A command of ours, by which it is found again.
_OURS = re.compile(r"('[^']*'|\S+) (-P )?-m recollect hooks run (claude-code|codex)\b")
_UNCHANGED = "nothing was changed"
_START, _MOST_INPUT = "SessionStart", 2**20
#: What a session begins with: tokens of a context, and the last turns of the last session, with characters of each.
_TOKENS, _TURNS, _SHOWN = 1000, 6, 300


class Client(NamedTuple):
    """A coding agent that has hooks.

    Attributes:
        name: Its name, which is also that of the format of its transcripts.
        folder: Its folder in the home, and in a project.
        variable: The environment variable with another folder for the user.
        file: The file with its hooks.
        end: The event at which a session is stored.
        seconds: How long it waits for a hook, at the start and at the end.
    """

    name: str
    folder: str
    variable: str
    file: str
    end: str
    seconds: tuple[int, int] = (15, 120)


CLIENTS = {
    each.name: each
    for each in (
        Client("claude-code", ".claude", "CLAUDE_CONFIG_DIR", "settings.json", "SessionEnd"),
        Client("codex", ".codex", "CODEX_HOME", "hooks.json", "Stop"),
    )
}
_client = click.argument("client", type=click.Choice(list(CLIENTS)))
_project = click.option("--project", is_flag=True, help="For the project in this folder only; default: for this user.")
_dry_run = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")


@app.group()
def hooks() -> None:
    """Remember the sessions of coding agents: Claude Code and the Codex CLI."""


@hooks.command()
@_client
@_project
@_dry_run
@click.option("--user", metavar="NAME", help="Store the turns as this user's, and show only theirs.")
@common
def install(settings: Settings, client: str, project: bool, dry_run: bool, user: str | None) -> None:
    """Add hooks to CLIENT that store each session at its end, and begin each with what the memory knows.

    Other hooks stay. The store is that of --db and -n, or else that of the environment in which the client runs.
    """
    chosen = CLIENTS[client]
    command = _command(settings, client, user)
    _change(chosen, project, dry_run, lambda hooks: _with_ours(hooks, chosen, command))


@hooks.command()
@_client
@_project
@_dry_run
@common
def remove(settings: Settings, client: str, project: bool, dry_run: bool) -> None:
    """Remove the hooks that `hooks install` has added to CLIENT. What is remembered stays."""
    _change(CLIENTS[client], project, dry_run, _without_ours)


@hooks.command(hidden=True)
@_client
@click.option("--user", metavar="NAME", envvar=USER_VARIABLE)
@common
def run(settings: Settings, client: str, user: str | None) -> None:
    """Answer one hook of CLIENT, which is described by JSON on standard input."""
    event = _event(sys.stdin.buffer.read(_MOST_INPUT + 1))
    if event.get("hook_event_name") == _START:
        known = _known(settings, str(event.get("cwd") or os.getcwd()), user)
        output = {"hookEventName": _START, "additionalContext": known}
        click.echo(json.dumps({"hookSpecificOutput": output}))
        return
    path = event.get("transcript_path")
    if not isinstance(path, str) or not path:
        rule = f"{client} named no transcript: it may be set not to keep sessions"
        raise UnsupportedError("storing this session", rule)
    transcript = Path(path).expanduser()
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
    except OSError as error:
        raise StoreIOError(str(transcript), error.strerror or str(error)) from error


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
        question = f"Decisions, rules and preferences for {project}, and tasks that are left"
        others = ~f.role("tool") & (here | ~f.kind("conversation"))
        if before:
            others &= ~f.id(*(turn.id for turn in before))
        known = str(memory.context(question, _TOKENS, where=others, user=user))
    quoted = [f"- {turn.role}: {json.dumps(str(turn.content)[:_SHOWN], ensure_ascii=False)}" for turn in before]
    parts = [f"The end of the last session in this project ({TRUST}):", *quoted] if quoted else []
    return "\n".join([*parts, *([known] if known else [])])


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


# The files of clients.


def _command(settings: Settings, client: str, user: str | None) -> str:
    """Return the command line of our hooks."""
    # -P: a module in the folder of the project is not run in place of ours.
    words = [sys.executable, "-P", "-m", "recollect", "hooks", "run", client]
    if settings.db is not None and without_passwords(settings.db, whole="://" in settings.db) != settings.db:
        rule = "has a password, which a file of hooks must not have: set RECOLLECT_DB where the client runs"
        raise InvalidArgumentError("db", settings.db, rule)
    if settings.db is not None:
        words += ["--db", settings.db if "://" in settings.db else os.path.abspath(settings.db)]
    for option, value, default in (
        ("-n", settings.namespace, Settings().namespace),
        ("--key-file", os.path.abspath(settings.key_file) if settings.key_file else "", ""),
        ("--embedder", settings.embedder, None),
        ("--user", user, None),
    ):
        if value and value != default:
            words += [option, value]
    return shlex.join(words)


def _with_ours(found: Mapping[str, Any], client: Client, command: str) -> dict[str, Any]:
    """Return hooks with ours, once."""
    out = _without_ours(found)
    entries = {_START: client.seconds[0], client.end: client.seconds[1]}
    for event, seconds in entries.items():
        entry: dict[str, Any] = {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}
        if event == _START:
            entry = {"matcher": "startup|clear|compact", **entry}
        out[event] = [*out.get(event, []), entry]
    return out


def _without_ours(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return hooks without ours, and without events that have none."""
    out: dict[str, Any] = {}
    for event, entries in found.items():
        left = []
        for entry in entries:
            others = [each for each in entry["hooks"] if not _OURS.match(str(each.get("command", "")))]
            if others or not entry["hooks"]:
                left.append({**entry, "hooks": others})
        if left or not entries:
            out[event] = left
    return out


def _change(
    client: Client, project: bool, dry_run: bool, changed: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> None:
    """Change the hooks of a client, and show the difference."""
    home = os.environ.get(client.variable) or Path.home() / client.folder
    path = Path(client.folder, client.file) if project else Path(home, client.file).expanduser()
    before, content = _read(path)
    hooks = changed(content.get("hooks", {}))
    rest = {key: value for key, value in content.items() if key != "hooks"}
    try:
        after = json.dumps(
            {**rest, **({"hooks": hooks} if hooks else {})}, indent=2, ensure_ascii=False, allow_nan=False
        )
        after.encode("utf-8")
    except ValueError as error:
        raise InvalidArgumentError(
            "file", str(path), f"has a value that cannot be kept ({error}): {_UNCHANGED}"
        ) from None
    after += "\n"
    if json.loads(after) == content:
        click.echo(f"{path}: nothing to change")
        return
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="")
    click.echo("\n".join(lines))
    if dry_run:
        click.echo("nothing was changed (--dry-run)", err=True)
        return
    _write(Path(os.path.realpath(path)), before, after)
    click.echo(f"changed {path}; start {client.name} again", err=True)


def _write(path: Path, before: str, after: str) -> None:
    """Replace a file, with its permissions. The file as it was before the first change stays beside it."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    kept = path.with_name(f"{path.name}.before-recollect")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if before else 0o600
        files = [(draft, after), *([(kept, before)] if before and not kept.exists() else [])]
        for each, text in files:
            with os.fdopen(os.open(each, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
                file.write(text)
        os.replace(draft, path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise InvalidArgumentError("file", str(path), f"cannot be written ({error}): {_UNCHANGED}") from None


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """Return a file of hooks, as text and as JSON. Raise InvalidArgumentError if it has another form."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return "", {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError("file", str(path), f"cannot be read ({error}): {_UNCHANGED}") from None
    try:
        content = json.loads(text or "{}")
    except ValueError as error:
        raise InvalidArgumentError(
            "file", str(path), f"is not JSON, without comments ({error}): {_UNCHANGED}"
        ) from None
    found = content.get("hooks", {}) if isinstance(content, dict) else None
    if not isinstance(found, dict) or not all(map(_is_list_of_entries, found.values())):
        raise InvalidArgumentError("file", str(path), f"has hooks in a form that is not known: {_UNCHANGED}")
    return text, content


def _is_list_of_entries(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("hooks"), list)
        and all(isinstance(each, dict) for each in entry["hooks"])
        for entry in value
    )
