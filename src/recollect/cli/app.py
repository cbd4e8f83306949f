"""The frame of every command: common options, opening the memory, and errors as exit codes.

Exit codes: 0 done; 1 an error of Recollect's own, one line of it on stderr (with --json an object); 2 the command line
cannot be read; 130 interrupted. Reading commands never make a store.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import click

from recollect._version import __version__
from recollect.errors import InvalidRecordError, RecollectError
from recollect.filters import parse
from recollect.filters.tree import Filter
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Settings:
    """The common options of a call, given before or after the command's name."""

    db: str | None = None
    namespace: str = "default"
    as_json: bool = False
    k: int | None = None
    embedder: str | None = None

    def open(self, *, create: bool = False, read_only: bool = False) -> Memory:
        """The memory that the command uses. Without `create`, a missing store is an error."""
        return open_memory(self.db, self.namespace, create=create, read_only=read_only, embedder=self.embedder)


def count_option(default: int) -> Callable[[F], F]:
    """`-k N` for a command. If it is not given there: the `-k` before the command's name, or else the default."""

    def callback(ctx: click.Context, _parameter: click.Parameter, value: int | None) -> int:
        before = ctx.ensure_object(Settings).k
        return value if value is not None else default if before is None else before

    help_ = f"Maximum number of results. Default: {default}."
    return click.option("-k", "k", type=int, metavar="N", callback=callback, help=help_)


#: Where each command is. A command's module, and what it needs, is imported when the command is asked for.
COMMANDS = {
    name: module
    for module, names in {
        "benching": "bench",
        "diagnosing": "demo doctor",
        "embedding": "embed",
        "evaluating": "eval",
        "keeping": "backup migrate rescue restore",
        "moving": "export import",
        "reading": "grep list log namespaces recall show stats",
        "writing": "forget quota remember update",
    }.items()
    for name in names.split()
}


class App(click.Group):
    """A group that turns the errors of its commands into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            importlib.import_module(f"recollect.cli.{COMMANDS[cmd_name]}")  # it registers with the app
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RecollectError as error:
            _complain(ctx, error)
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("interrupted: everything reported as saved is saved; run it again to continue", err=True)
            ctx.exit(130)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                click.echo(f"error: the output cannot be written: {error.strerror or error}", err=True)
            # The reader of our output went away; there is nobody left to tell.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(1)


def _complain(ctx: click.Context, error: RecollectError) -> None:
    if isinstance(ctx.obj, Settings) and ctx.obj.as_json:
        click.echo(json.dumps(error.to_json(), ensure_ascii=False), err=True)
    else:
        click.echo(f"error: {error}", err=True)


def _store(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """The callback of a common option: store its value in the settings."""

    def callback(ctx: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        settings = ctx.ensure_object(Settings)
        if value not in (None, False):
            setattr(settings, name, value)
        return value

    return callback


_COMMON = (
    click.option(
        "--db",
        metavar="FILE",
        callback=_store("db"),
        expose_value=False,
        help="Path of the store. Default: RECOLLECT_DB, or the user's data folder.",
    ),
    click.option(
        "-n",
        "--namespace",
        metavar="NAME",
        callback=_store("namespace"),
        expose_value=False,
        help="Namespace. Default: default.",
    ),
    click.option(
        "--embedder",
        metavar="MODEL",
        callback=_store("embedder"),
        expose_value=False,
        help="Embedder: PROVIDER/MODEL, hashed or none. Default: LLM_EMBEDDING_MODEL.",
    ),
    # Eager, so that an error in another option is printed as JSON too.
    click.option(
        "--json", is_flag=True, is_eager=True, callback=_store("as_json"), expose_value=False, help="Print JSON."
    ),
)


def common(command: F) -> F:
    """Add the common options, and pass the settings as the first argument."""

    @click.pass_obj
    @functools.wraps(command)
    def wrapped(settings: Settings, /, *args: Any, **kwargs: Any) -> Any:
        return command(settings, *args, **kwargs)

    out: Any = wrapped
    for option in reversed(_COMMON):
        out = option(out)
    return out  # type: ignore[no-any-return]


def _filter(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> Filter | None:
    """A filter from its text form."""
    return None if value is None else parse(value)


def _zone(_ctx: click.Context, _parameter: click.Parameter, value: str) -> tzinfo:
    """A time zone from its IANA name."""
    if value.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise click.BadParameter(f"{value!r} is not a time zone, such as UTC or Europe/Copenhagen") from None


where_option = click.option(
    "-w",
    "--where",
    callback=_filter,
    metavar="FILTER",
    help="Only records that match, such as: user=ana and not tag=old",
)
zone_option = click.option(
    "--tz",
    "zone",
    callback=_zone,
    default="UTC",
    metavar="ZONE",
    show_default=True,
    help="Time zone for times without one.",
)


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "-k", "k", type=int, metavar="N", callback=_store("k"), expose_value=False, help="Maximum number of results."
)
@click.version_option(__version__, prog_name="recollect")
@common
def app(settings: Settings) -> None:
    """Long-term memory for LLM agents: offline, deterministic, explained, versioned.

    Begin with `recollect demo`, or: recollect remember "Ana prefers window seats" --user ana
    """


def time_of(name: str, text: str, zone: tzinfo) -> datetime:
    """A time given as an option. Raises: InvalidRecordError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRecordError(name, text, "is not an ISO 8601 time, such as 2026-03-01T09:30") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
