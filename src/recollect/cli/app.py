"""The parts that all commands share: common options, opening the memory, and the translation of errors to exit codes.

Exit codes: 0 success; 1 an error of Recollect, printed as one line on stderr (with --json as an object); 2 an invalid
command line; 130 interrupted. Commands that only read never create a store.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import Any, TypeVar

import click

from recollect._version import __version__
from recollect.calls.calls import zone_of_store
from recollect.calls.owners import Owners
from recollect.common.regexes import regex
from recollect.common.zones import zone_of
from recollect.errors import InvalidArgumentError, RecollectError, SecretNeededError, StoreMissingError
from recollect.filters import parse
from recollect.filters.tree import Filter
from recollect.memory import Memory, RecollectWarning
from recollect.memory.opening import PATH_VARIABLE
from recollect.memory.opening import open as open_memory
from recollect.operations import target_of
from recollect.records.origins import ORIGINS, Origin
from recollect.records.record import located, unlocated
from recollect.stores.files import open_regular
from recollect.stores.sealing.keys import Secret
from recollect.stores.sealing.secrets import SECRET_VARIABLE, secret_in
from recollect.stores.sqlite.encryption import is_encrypted

F = TypeVar("F", bound=Callable[..., Any])
#: The environment variables with the defaults of --namespace, --user and --key-file.
NAMESPACE_VARIABLE = "RECOLLECT_NAMESPACE"
BRANCH_VARIABLE = "RECOLLECT_BRANCH"
USER_VARIABLE = "RECOLLECT_USER"
KEY_FILE_VARIABLE = "RECOLLECT_KEY_FILE"
#: The environment variable with the token for a server that --db names.
TOKEN_VARIABLE = "RECOLLECT_TOKEN"
#: How the addresses of servers begin (`recollect serve`).
SERVERS = ("unix://", "http://", "https://")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_BYTES = regex(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_MIN_KEY_BYTES, _MAX_KEY_BYTES = 16, 4096


@dataclass
class Settings:
    """The common options of a call, before or after the name of the command.

    Attributes:
        db: The path of the store; None means the default.
        as_json: Whether to print JSON.
        k: The `-k` before the name of the command; None if there is none.
        embedder: The embedder; None means the default.
        key_file: The path of the file with the store's key; "" means the default key.
        error_code: The exit code of an error.
        origin: The class of origin of what is written; None: "user".
        secret_file: The path of the file with the secret of an encrypted store; None means the default.
        branch: The name of the branch; None means the main one.
    """

    db: str | None = None
    # Not the default of the option, which would override the same option before the name of the command.
    namespace: str = field(default_factory=lambda: os.environ.get(NAMESPACE_VARIABLE) or "default")
    as_json: bool = False
    k: int | None = None
    embedder: str | None = None
    key_file: str = field(default_factory=lambda: os.environ.get(KEY_FILE_VARIABLE, ""))
    error_code: int = 1
    origin: Origin | None = None
    secret_file: str | None = None
    branch: str | None = field(default_factory=lambda: os.environ.get(BRANCH_VARIABLE) or None)

    @property
    def secret(self) -> Secret | None:
        """The secret of an encrypted store: that of the secret file. None if there is none.

        Raises:
            InvalidArgumentError: The file cannot be read, or has no secret. The message never contains it.
        """
        return None if self.secret_file is None else secret_in(self.secret_file)

    def secret_of(self, path: str) -> Secret | None:
        """Return the secret of a file: that of the settings, or a passphrase that the user types in a terminal."""
        if self.secret is not None or os.environ.get(SECRET_VARIABLE) or not sys.stdin.isatty():
            return self.secret
        return typed("Passphrase") if is_encrypted(path) else None

    @property
    def key(self) -> bytes | None:
        """The store's key: the bytes of the key file. None if there is none.

        Raises:
            InvalidArgumentError: The file cannot be read, or is no key. The message never contains its bytes.
        """
        if not self.key_file:
            return None
        try:
            with os.fdopen(open_regular(self.key_file, follow=True), "rb") as file:
                key = file.read(_MAX_KEY_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidArgumentError("key file", self.key_file, f"cannot be read: {reason}") from None
        if not _MIN_KEY_BYTES <= len(key) <= _MAX_KEY_BYTES:
            rule = f"must contain {_MIN_KEY_BYTES} to {_MAX_KEY_BYTES} bytes"
            raise InvalidArgumentError("key file", self.key_file, rule)
        return key

    def open(
        self, *, create: bool = False, read_only: bool = False, read_from: str | None = None, **budgets: int | None
    ) -> Memory:
        """Open the memory that the command uses, as a writer of the class of origin that it states. See `_opened`."""
        memory = self._opened(create=create, read_only=read_only, read_from=read_from, **budgets)
        try:
            opened = memory if self.branch is None else memory.on(self.branch)
            opened = opened if self.origin is None else opened.as_origin(self.origin)
        except BaseException:
            memory.close()
            raise
        opened._is_view = False  # the command closes it
        return opened

    def _opened(
        self, *, create: bool = False, read_only: bool = False, read_from: str | None = None, **budgets: int | None
    ) -> Memory:
        """Open the memory that the command uses. Raise StoreMissingError if there is no store and `create` is false.

        Args:
            create: Create the store if there is none.
            read_only: Write nothing.
            read_from: The address of a standby that is read.
            **budgets: `index_bytes` and `vector_bytes` of `recollect.open`.
        """
        address = self.db or os.environ.get(PATH_VARIABLE, "")
        if address.startswith(SERVERS):
            self._check_local_options({**budgets, "read_from": read_from})
            from recollect.wire.client import connect  # only where it is used: it loads the wire

            nodes, token = address.split(","), os.environ.get(TOKEN_VARIABLE) or None
            if not all(nodes):
                raise InvalidArgumentError("address", address, "has a comma without an address: remove it")
            return connect(nodes if len(nodes) > 1 else address, self.namespace, token=token)
        options: dict[str, Any] = {"embedder": self.embedder, "key": self.key, "read_from": read_from, **budgets}
        options.update(create=create, read_only=read_only, secret=self.secret)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RecollectWarning)  # the log says the same on stderr
                try:
                    return open_memory(self.db, self.namespace, **options)
                except SecretNeededError:
                    if not sys.stdin.isatty():
                        raise
                options["secret"] = typed("Passphrase")
                return open_memory(self.db, self.namespace, **options)
        except StoreMissingError as error:
            if self.db or os.environ.get(PATH_VARIABLE):
                raise
            # The first write creates the default folder, so its absence is no mistake in a path.
            raise StoreMissingError(error.args[0]) from None

    def _check_local_options(self, stated: Mapping[str, int | str | None]) -> None:
        """Raise InvalidArgumentError if an option was stated that a server has decided already."""
        key_file = "" if self.key_file == os.environ.get(KEY_FILE_VARIABLE, "") else self.key_file
        own = {"embedder": self.embedder, "key file": key_file, "secret file": self.secret_file}
        for name, value in {**own, **stated}.items():
            if value:
                raise InvalidArgumentError(name, value, "cannot be used with a server, which has its own: leave it out")

    @contextmanager
    def open_at(self, at: str | None, zone: tzinfo | None = None) -> Iterator[Memory]:
        """Open the memory that a command reads, as of a moment (`at_option`), and close it at the end.

        Args:
            at: The moment; None: the present.
            zone: The time zone of a time without one; None: that of the store.
        """
        with self.open() as memory:
            yield memory if at is None else memory.at(target_of(at, zone or zone_of_store(memory)))


def typed(what: str, *, new: bool = False) -> str:
    """Return a passphrase that the user types, twice if it is a new one."""
    answer: str = click.prompt(what, hide_input=True, confirmation_prompt=new, err=True)
    return answer


class NumberRange(click.FloatRange):
    """A number between two others. Unlike its base, it refuses "nan"."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        out = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number.", param, ctx) if math.isnan(out) else out


class BytesText(click.ParamType[int]):
    """A number of bytes, such as 24GiB or 512M; units are powers of 1,024."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = _BYTES.fullmatch(str(value))
        out = 0 if found is None else int(Decimal(found[1]) * _UNITS[found[2].upper()])
        if not out:
            self.fail(f"{value!r} is not a number of bytes above 0, such as 24GiB or 512M", param, ctx)
        return out


class Confidence(click.ParamType[Any]):
    """A least confidence: a number, or "auto". The call says which numbers are valid."""

    name = "confidence"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "auto" else click.FLOAT.convert(value, param, ctx)


class RenamedOption(click.Option):
    """An option with former names, which are accepted and not shown.

    Args:
        names: The names, as of `click.Option`.
        former: The former names.
    """

    def __init__(self, names: Sequence[str], *, former: Sequence[str], **settings: Any) -> None:
        super().__init__([*former, *names], **settings)
        self.former = former

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        every, self.opts = self.opts, [each for each in self.opts if each not in self.former]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every


def count_option(default: int, name: str = "-k") -> Callable[[F], F]:
    """Add `-k N`, or `--limit N`, to a command. Its default is the `-k` before the name of the command, then `default`.

    Args:
        name: "-k" for the hits of a question, "--limit" for what is listed.
    """

    def callback(ctx: click.Context, _parameter: click.Parameter, value: int | None) -> int:
        before = ctx.ensure_object(Settings).k
        return value if value is not None else default if before is None else before

    help_ = f"Maximum number of results. Default: {default}."
    former = () if name == "-k" else ("-k",)
    return click.option(
        name, "k", cls=RenamedOption, former=former, type=int, metavar="N", callback=callback, help=help_
    )


#: The module of each command. It is imported, with its dependencies, when the command is used.
COMMANDS = {
    name: module
    for module, names in {
        "benching": "bench",
        "bisecting": "bisect",
        "branching": "branch",
        "diagnosing": "demo doctor",
        "encrypting": "decrypt encrypt key",
        "evaluating": "eval",
        "glossary": "glossary",
        "hooking": "hooks",
        "keeping": "backup compact copy embed migrate rescue restore",
        "managing": "consolidate contradictions duplicates entities entity learn",
        "moving": "export import",
        "outline": "outline",
        "sdr": "sdr",
        "sim": "sim",
        "sizing": "size",
        "proving": "prove replay verify",
        "policies": "policies redact salience",
        "retention": "retention",
        "serving": "inspect mcp serve token",
        "reading": "context find get grep log namespaces recall stats",
        "stores": "store",
        "trusting": "audit endorse lineage quarantine taint",
        "versions": "diff history revert rollback snapshot snapshots",
        "writing": "erase forget quota remember supersede update",
    }.items()
    for name in names.split()
}


#: The commands of each section of the help, those of every day first.
SECTIONS = {
    "Every day": "remember recall context find get grep update supersede forget stats demo",
    "History": "history log diff bisect branch snapshot snapshots rollback revert",
    "Keep in order": "learn consolidate duplicates contradictions entities entity policies quota retention redact "
    "salience erase",
    "Beside the records": "glossary outline sdr",
    "Share": "import export inspect serve mcp hooks token namespaces",
    "Who said what": "endorse lineage taint quarantine audit",
    "Proofs": "prove verify replay",
    "Look after the store": "doctor backup restore copy compact migrate rescue embed store",
    "Who may read it": "encrypt decrypt key",
    "Measure": "bench eval sim size",
}
#: What `recollect` alone shows: the commands that are used most.
FIRST = ("remember", "recall", "context", "update", "forget")
#: The former name of a command, which is accepted and not shown -> its name.
_FORMER_NAMES = {"list": "find", "show": "get"}
#: What other tools call a command -> its name here.
_OTHER_NAMES = {
    "add": "remember",
    "ask": "recall",
    "delete": "forget",
    "drop-snapshot": "snapshot --drop",
    "remove": "forget",
    "restore-to": "rollback",
    "search": "recall",
    "undo": "revert",
    "vacuum": "compact",
}


class App(click.Group):
    """A command group that prints an error of its commands as one line and exits with its exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            self._show_first(ctx)
            ctx.exit()
        return super().parse_args(ctx, args)

    def _show_first(self, ctx: click.Context) -> None:
        """Print the commands that are used most, and where the others are."""
        formatter = ctx.make_formatter()
        formatter.write_usage(ctx.command_path, "COMMAND ...")
        commands = [(name, command) for name in FIRST if (command := self.get_command(ctx, name)) is not None]
        with formatter.section("Long-term memory for LLM agents"):
            room = formatter.width - 6 - max(map(len, FIRST))
            formatter.write_dl([(name, command.get_short_help_str(room)) for name, command in commands])
        click.echo(formatter.getvalue())
        click.echo('Begin with `recollect demo`, or: recollect remember "Ana prefers window seats" --user ana')
        click.echo(
            f"`recollect inspect` shows a memory in the browser; `recollect --help` lists all {len(COMMANDS)} commands."
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, names in SECTIONS.items():
            shown = [(name, command) for name in names.split() if (command := self.get_command(ctx, name)) is not None]
            with formatter.section(section):
                room = formatter.width - 6 - max(map(len, names.split()))  # a line for each
                formatter.write_dl([(name, command.get_short_help_str(room)) for name, command in shown])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            importlib.import_module(f"recollect.cli.{COMMANDS[cmd_name]}")  # it registers with the app
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = _FORMER_NAMES.get(args[0], args[0])
        args = [name, *args[1:]]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            similar = [_OTHER_NAMES[name]] if name in _OTHER_NAMES else difflib.get_close_matches(name, COMMANDS, 1)
            ctx.fail(f"no such command {name!r}" + (f": did you mean {similar[0]!r}?" if similar else ""))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RecollectError as error:
            _print_error(ctx, error)
            ctx.exit(ctx.ensure_object(Settings).error_code)
        except KeyboardInterrupt:
            click.echo("interrupted: everything reported as saved is saved; run it again to continue", err=True)
            ctx.exit(130)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                click.echo(f"error: the output cannot be written: {error.strerror or error}", err=True)
            # The output was closed by its reader: without this, Python would report the error again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(1)


def _print_error(ctx: click.Context, error: RecollectError) -> None:
    if isinstance(ctx.obj, Settings) and ctx.obj.as_json:
        click.echo(json.dumps(error.to_json(), ensure_ascii=False), err=True)
    else:
        click.echo(f"error: {error}", err=True)


def _store(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return the callback of a common option, which stores its value in the settings."""

    def callback(ctx: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        settings = ctx.ensure_object(Settings)
        if value not in (None, False):
            setattr(settings, name, value)
        return value

    return callback


def _secret_file(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value == "":  # of a variable that is not set: a store that is created would not be encrypted
        raise click.BadParameter("the path is empty", ctx, parameter)
    stored: str | None = _store("secret_file")(ctx, parameter, value)
    return stored


def completion(name: str) -> Callable[[click.Context, click.Parameter, str], Any]:
    """Return a completion of `completing`, which is imported when a shell asks."""

    def complete(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> Any:
        from recollect.cli import completing

        return getattr(completing, name)(ctx.ensure_object(Settings), incomplete)

    return complete


#: The class of origin of what a command writes.
origin_option = click.option(
    "--origin",
    type=click.Choice(ORIGINS),
    callback=_store("origin"),
    expose_value=False,
    help="Whose word it is (docs/trust.md). Default: user.",
)

_COMMON = (
    click.option(
        "--db",
        metavar="FILE",
        type=click.Path(),  # for completion
        callback=_store("db"),
        expose_value=False,
        help="Path of the store, or address of a server. Default: RECOLLECT_DB, or the user's data folder.",
    ),
    click.option(
        "-n",
        "--namespace",
        metavar="NAME",
        shell_complete=completion("namespaces"),
        callback=_store("namespace"),
        expose_value=False,
        help="Namespace. Default: RECOLLECT_NAMESPACE, or default.",
    ),
    click.option(
        "--branch",
        metavar="NAME",
        shell_complete=completion("branches"),
        callback=_store("branch"),
        expose_value=False,
        help="Branch of the namespace (docs/branches.md). Default: RECOLLECT_BRANCH, or main.",
    ),
    click.option(
        "--embedder",
        metavar="MODEL",
        callback=_store("embedder"),
        expose_value=False,
        help="Embedder: minilm, static, multilingual, PROVIDER/MODEL, hashed or none. Default: RECOLLECT_EMBEDDER.",
    ),
    click.option(
        "--key-file",
        metavar="FILE",
        type=click.Path(),
        callback=_store("key_file"),
        expose_value=False,
        help=f"File whose bytes are the store's key. Default: {KEY_FILE_VARIABLE}, or the public key.",
    ),
    click.option(
        "--secret-file",
        metavar="FILE",
        type=click.Path(),
        callback=_secret_file,
        expose_value=False,
        help=f"File with the passphrase or key of an encrypted store. Default: {SECRET_VARIABLE}.",
    ),
    # Eager, so that an error in another option is printed as JSON too.
    click.option(
        "--json", is_flag=True, is_eager=True, callback=_store("as_json"), expose_value=False, help="Print JSON."
    ),
)


def common(command: F) -> F:
    """Add the common options to a command, and pass the settings as its first argument."""

    @click.pass_obj
    @functools.wraps(command)
    def wrapped(settings: Settings, /, *args: Any, **kwargs: Any) -> Any:
        return command(settings, *args, **kwargs)

    out: Any = wrapped
    for option in reversed(_COMMON):
        out = option(out)
    return out  # type: ignore[no-any-return]


def _filter(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> Filter | None:
    """Parse the text form of a filter."""
    return None if value is None else parse(value)


def _zone(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> tzinfo | None:
    """Return a time zone from its name."""
    try:
        return None if value is None else zone_of(value)
    except InvalidArgumentError:
        raise click.BadParameter(f"{value!r} is not a time zone, such as UTC, Europe/Copenhagen or +05:30") from None


where_option = click.option(
    "-w",
    "--where",
    callback=_filter,
    metavar="FILTER",
    shell_complete=completion("filters"),
    help="Only records that match, such as: user=ana and not tag=old",
)

at_option = click.option(
    "--at",
    metavar="MOMENT",
    help="Read the memory as it was: the number of a commit, an ISO 8601 time, a root, or the name of a snapshot.",
)


part_option = click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="PART",
    callback=lambda _context, _parameter, names: names or None,
    help="Only this part of the memory: records, terms, nodes, sdrs or keys. May be repeated. Default: all.",
)


class Named(click.Choice[str]):
    """One of some names. What is none of them is answered with the one that it resembles.

    Args:
        what: What they are names of, such as "format".
        called: What some of them are also called.
    """

    def __init__(self, what: str, names: Sequence[str], called: Mapping[str, str] | None = None) -> None:
        super().__init__(names)
        self._what, self._called = what, called or {}

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return value
        begun = [name for name in self.choices if value and name.startswith(value.lower())]
        similar = difflib.get_close_matches(value.lower(), self.choices, 1)
        meant = [*filter(None, [self._called.get(value.lower())]), *begun, *similar]
        hint = f"did you mean {meant[0]}?" if meant else f"it must be one of {', '.join(self.choices)}"
        raise click.BadParameter(f"{value!r} is no {self._what}: {hint}", ctx, param)


def owner_option(name: str, help: str, *, envvar: str | None = None) -> Callable[[F], F]:  # noqa: A002
    """Return the option for a user, an agent or a conversation, which a shell completes by those of the store."""
    complete = completion(f"{name}s")
    return click.option(f"--{name}", metavar="NAME", help=help, envvar=envvar, shell_complete=complete)


_OF_ONE = "Only records of this {0}, and those without {1} {0}.{2}"


def owner_options(command: F) -> F:
    """Add options that say whose records are read to a command, and pass them as `owners`."""

    @functools.wraps(command)
    def wrapped(*args: Any, user: str | None, agent: str | None, conversation: str | None, **options: Any) -> Any:
        if user == "" and os.environ.get(USER_VARIABLE):
            user = None  # `--user ""` is how to read all where the variable names a user; else it is a mistake
        return command(*args, owners=Owners.checked({}, user, agent, conversation), **options)

    out: Any = wrapped
    default = f" Default: {USER_VARIABLE}."
    for name, article in (("conversation", "a"), ("agent", "an")):
        out = owner_option(name, _OF_ONE.format(name, article, ""))(out)
    return owner_option("user", _OF_ONE.format("user", "a", default), envvar=USER_VARIABLE)(out)  # type: ignore[no-any-return]


def filter_options(command: F) -> F:
    """Add --where and options that say whose records are read, and pass them as `where` and `owners`."""
    return where_option(owner_options(command))


zone_option = click.option(
    "--tz",
    "zone",
    callback=_zone,
    metavar="ZONE",
    help="Time zone for times without one, such as Europe/Copenhagen. Default: that of the store.",
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


def time_of(name: str, text: str, zone: tzinfo | None) -> datetime:
    """Parse the time passed as an option. Raise InvalidRecordError if it is invalid.

    Args:
        name: The option, for the message.
        text: The value.
        zone: The time zone of a time without one; None: that of the store, which reads it.
    """
    time = unlocated(name, text)
    return time if zone is None else located(name, time, zone)


def print_json(value: object) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
