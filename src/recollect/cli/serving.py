"""Commands that serve a memory to other programs: mcp, serve, token."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from recollect.cli.app import USER_VARIABLE, BytesText, NumberRange, Settings, app, common, print_json
from recollect.cli.browsing import open_browser, opening_file
from recollect.common.platforms import check_server
from recollect.errors import InvalidArgumentError, MissingExtraError, UnsupportedError
from recollect.ledger.commits import MAIN
from recollect.memory import Memory
from recollect.observe import traced
from recollect.policies import LEVELS
from recollect.records.origins import ORIGINS, Origin
from recollect.server.addresses import address_of, allowed_hosts, allowed_origins
from recollect.server.collection import exempt_what_lives_long
from recollect.server.limits import (
    BATCH_S,
    BODY_BYTES,
    CALL_S,
    MOST_BATCH_S,
    MOST_CALL_S,
    MOST_LEAVE_S,
    MOST_RUNNING,
    MOST_WORKERS,
    OWN,
    RIGHTS,
)
from recollect.server.mcp.guidance import GRAPH_VARIABLE, import_graph
from recollect.server.mcp.handshake import Handshake, output
from recollect.server.mcp.lines import chunks_of, split
from recollect.server.mcp.replies import Replies
from recollect.server.mcp.tools import GRAPH_TOKENS, Access, McpTool
from recollect.server.mcp.toolsets import ALL, DEFAULT_SETS, TOOLSETS, tools_of
from recollect.stores.files import open_regular

if TYPE_CHECKING:
    from recollect.wire import Allowed

#: A token is at least this long, so that it cannot be guessed.
_LEAST_TOKEN, _MOST_TOKEN = 16, 4096


@app.command()
@click.option("--http", metavar="HOST:PORT", help="Serve streamable HTTP instead of standard input and output.")
@click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE", help="With --http: what clients must send."
)
@click.option(
    "--tools",
    "sets",
    default=",".join(DEFAULT_SETS),
    show_default=True,
    metavar="SETS",
    help=f"Sets of tools to offer, of {', '.join(TOOLSETS)}; or {ALL}.",
)
@click.option(
    "--user",
    metavar="NAME",
    envvar=USER_VARIABLE,
    help=f"Clients reach the records of this user only. Default: {USER_VARIABLE}.",
)
@click.option("--read-only", is_flag=True, help="Clients can only read.")
@click.option(
    "--origin",
    type=click.Choice(ORIGINS[1:]),
    default="assistant",
    show_default=True,
    help="Whose word it is what clients write, at most (docs/trust.md).",
)
@click.option(
    "--graph-tokens",
    type=click.IntRange(min=100),
    default=GRAPH_TOKENS,
    show_default=True,
    metavar="N",
    help="Maximum size of a knowledge graph that a tool returns, in tokens.",
)
@common
def mcp(
    settings: Settings,
    http: str | None,
    token_file: Path | None,
    sets: str,
    user: str | None,
    read_only: bool,
    origin: Origin,
    graph_tokens: int,
) -> None:
    """Serve the memory to MCP clients, such as agents and editors, over standard input and output.

    The store is created by the first write. A file of the reference memory server that MEMORY_FILE_PATH names is
    imported once.
    """
    if user == "":
        raise InvalidArgumentError("user", user, "is empty: name a user, or leave the option out")
    names = (name.strip() for name in sets.split(",") if name.strip())
    tools = tools_of(names, read_only=read_only, scoped=user is not None)
    token = None if token_file is None else _token(token_file)
    if token is not None and http is None:
        raise InvalidArgumentError("token_file", str(token_file), "is for --http")

    def opener(*, create: bool, read_only: bool) -> Memory:
        return settings.open(create=create, read_only=read_only)

    access = Access(opener, user=user, read_only=read_only, graph_tokens=graph_tokens, origin=origin)
    if find_spec("mcp") is None:
        raise MissingExtraError("recollect mcp", "mcp", "mcp")
    access.check()
    if path := os.environ.get(GRAPH_VARIABLE):
        import_graph(access, path, report=_say)
        if not any(tool.graph for tool in tools.values()):
            _say(f"{GRAPH_VARIABLE} is set: --tools reference offers the tools of the reference memory server")

    exempt_what_lives_long()
    try:
        if http is None:
            _serve_mcp(access, tools)
        else:
            _serve_mcp_over_http(access, tools, http, token)
    finally:
        access.close()


def _serve_mcp(access: Access, tools: Mapping[str, McpTool]) -> None:
    """Serve the client at standard input and output."""
    if sys.stdin.isatty():
        _say("serving MCP over standard input and output: let an MCP client start this command. Ctrl-D ends it")
    # Not `sys.stdin`, whose lock a thread that reads would hold when the interpreter ends.
    ended, end = os.pipe()
    chunks = chunks_of(os.dup(sys.stdin.fileno()), ended)
    write = output(sys.stdout.fileno())
    rest = Handshake(Replies(access, tools), write, partial(os.close, end)).serve(split(chunks))
    if rest is not None:  # the SDK takes a second to load, so only for those who need it
        import anyio

        from recollect.server.mcp.protocol import Protocol
        from recollect.server.mcp.stdio import serve_stdio

        anyio.run(lambda: serve_stdio(Protocol(access, tools), rest))


def _serve_mcp_over_http(access: Access, tools: Mapping[str, McpTool], address: str, token: str | None) -> None:
    import anyio

    from recollect.server.mcp.http import serve_http
    from recollect.server.mcp.protocol import Protocol

    host, port = address_of(address)

    async def serve() -> None:
        say = lambda url: _say(f"listening on {url}")  # noqa: E731
        await serve_http(Protocol(access, tools), host, port, token=token, ready=say)

    anyio.run(serve)


def _say(text: str) -> None:
    """Print a line on stderr: stdout belongs to the protocol."""
    print(f"recollect mcp: {text}", file=sys.stderr, flush=True)


def _token(path: Path) -> str:
    """Return the token in a file.

    Raises:
        InvalidArgumentError: The file cannot be read, or does not contain a token.
    """
    try:
        with os.fdopen(open_regular(os.fspath(path), follow=True), "rb") as file:
            token = file.read(_MOST_TOKEN + 1).strip()
    except (OSError, ValueError) as error:
        raise InvalidArgumentError("token_file", str(path), f"cannot be read: {error}") from None
    if not (_LEAST_TOKEN <= len(token) <= _MOST_TOKEN and token.isascii() and token.decode("ascii").isprintable()):
        rule = f"must contain {_LEAST_TOKEN} to {_MOST_TOKEN} printable ASCII characters"
        raise InvalidArgumentError("token_file", str(path), rule)
    return token.decode("ascii")


_RIGHTS = click.Choice(RIGHTS)
#: The options of `serve` that concern only one door.
_FOR_HTTP = ("--tokens", "--allow-host", "--allow-origin", "--max-requests", "--mcp", "--ui")
_FOR_SOCKET = ("--salience",)


@app.command()
@click.option(
    "--socket",
    "socket_path",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Serve the Unix socket PATH. Default, without --http: recollect.sock in the user's runtime folder.",
)
@click.option("--http", metavar="HOST:PORT", help="Serve HTTP. Another host than this machine's needs --tokens.")
@click.option("--mcp", "with_mcp", is_flag=True, help="With --http: serve MCP clients at /mcp, too.")
@click.option("--ui", "with_ui", is_flag=True, help="With --http: serve the inspector, pages to look at the memory.")
@click.option(
    "--tools",
    "sets",
    default=",".join(DEFAULT_SETS),
    show_default=True,
    metavar="SETS",
    help=f"With --mcp: sets of tools to offer, of {', '.join(TOOLSETS)}; or {ALL}.",
)
@click.option(
    "--tokens", type=click.Path(path_type=Path), metavar="FILE", help="With --http: a file of `recollect token`."
)
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="With --http: a name that clients may use for the server."
)
@click.option(
    "--allow-origin", multiple=True, metavar="ORIGIN", help="With --http: web pages of ORIGIN may send requests."
)
@click.option("--read-only", is_flag=True, help="Clients can only read.")
@click.option(
    "--salience",
    type=click.Choice(LEVELS),
    default="normal",
    show_default=True,
    help="How strictly the action store of the socket judges texts.",
)
@click.option(
    "--batch-seconds",
    type=NumberRange(0.1, MOST_BATCH_S),
    default=BATCH_S,
    show_default=True,
    metavar="S",
    help="How long a batch of a client may stay open. It holds the write lock.",
)
@click.option(
    "--call-seconds",
    type=NumberRange(0.1, MOST_CALL_S),
    default=CALL_S,
    show_default=True,
    metavar="S",
    help="How long a call may take. A read then ends; a write goes on.",
)
@click.option(
    "--leave-seconds",
    type=NumberRange(0.0, MOST_LEAVE_S),
    default=0.0,
    show_default=True,
    metavar="S",
    help="How long to serve on after SIGTERM, while /readyz says 503, so that a proxy sends nothing more.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of processes that serve. Each has its indexes in memory.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(1024, 2**30),
    default=BODY_BYTES,
    show_default=True,
    metavar="N",
    help="Maximum size of a request.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1),
    default=MOST_RUNNING,
    show_default=True,
    metavar="N",
    help="With --http: number of requests of one token that run at the same time.",
)
@click.option("--index-bytes", type=BytesText(), metavar="SIZE", help="Memory limit of the word indexes, such as 4GiB.")
@click.option("--vector-bytes", type=BytesText(), metavar="SIZE", help="Memory limit of the vectors.")
@click.option(
    "--read-from", metavar="ADDRESS", help="Read from this standby of a PostgreSQL store, where it is new enough."
)
@click.option("--log-calls", is_flag=True, help="Log each call: its operation, time and error, never contents.")
@click.option(
    "--tracing", is_flag=True, help="Make OpenTelemetry spans, never with contents, which continue those of clients."
)
@common
def serve(settings: Settings, **options: Any) -> None:
    """Serve the memory to other programs: over a Unix socket, HTTP and MCP.

    The store is created by the first write. The first SIGTERM or SIGINT ends the server when what runs is answered, a
    second one at once. Sockets of systemd are used if there are any.
    """
    check_server("recollect serve")
    extra = "server"
    try:
        from recollect.server.options import Options
        from recollect.server.process import run

        if options["with_mcp"]:
            extra = "mcp"
            importlib.import_module("recollect.server.mcp.protocol")
        if options["with_ui"]:
            extra = "server"
            importlib.import_module("recollect.server.ui.app")
        if options["tracing"]:
            extra = "otel"
            importlib.import_module("recollect.observe.serving").check_configured()
    except ImportError as error:
        raise MissingExtraError("recollect serve", error.name or extra, extra) from None
    options["tools"] = tuple(name.strip() for name in options.pop("sets").split(",") if name.strip())
    read_from = options.pop("read_from")
    address = options.pop("http")
    host, port = (None, 0) if address is None else address_of(address)
    if str(options["socket_path"] or "").startswith("unix:"):
        raise InvalidArgumentError("socket", str(options["socket_path"]), "is an address: pass the path alone")
    _check_branch(settings)
    stated = _stated()
    if "--tools" in stated and not options["with_mcp"]:
        raise UnsupportedError("--tools", "without --mcp this has no effect: add --mcp, or leave it out")

    def opener(*, create: bool, read_only: bool) -> Memory:
        limits = {name: options[name] for name in ("index_bytes", "vector_bytes")}
        memory = settings.open(create=create, read_only=read_only, read_from=read_from, **limits)
        return traced(memory) if options["tracing"] else memory

    exempt_what_lives_long()
    run(
        opener,
        settings.namespace,
        Options(
            host=host,
            port=port,
            hosts=allowed_hosts(host or "localhost", options.pop("allow_host")),
            origins=allowed_origins(options.pop("allow_origin")),
            for_http=tuple(name for name in _FOR_HTTP if name in stated),
            for_socket=tuple(name for name in _FOR_SOCKET if name in stated),
            on_ui=click.echo,
            **options,
        ),
    )


@app.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: any free one.")
@click.option("--browser/--no-browser", default=True, help="Whether the browser is opened.")
@click.option("--read-only", is_flag=True, help="Only look: nothing can be changed.")
@common
def inspect(settings: Settings, port: int, browser: bool, read_only: bool) -> None:
    """Look at the memory in the browser: what it answers and why, its records and their history; correct and erase.

    It listens on this machine only, at an address with a random part that others cannot guess: keep it to yourself.
    Ctrl+C ends it.
    """
    check_server("recollect inspect")
    try:
        from recollect.server.options import Options
        from recollect.server.process import run
        from recollect.server.ui.app import Inspector  # noqa: F401 - so that a library that is missing is named now
    except ImportError as error:
        raise MissingExtraError("recollect inspect", error.name or "server", "server") from None

    _check_branch(settings)

    def opener(*, create: bool, read_only: bool) -> Memory:
        return settings.open(create=create, read_only=read_only)

    with opening_file() as file:

        def opened(address: str) -> None:
            click.echo(address)
            if browser:
                open_browser(file, address)

        run(
            opener,
            settings.namespace,
            Options(
                host="127.0.0.1",
                port=port,
                hosts=allowed_hosts("127.0.0.1", ()),
                with_ui=True,
                only_ui=True,
                on_ui=opened,
                read_only=read_only,
                quiet=True,
            ),
        )


def _check_branch(settings: Settings) -> None:
    """Raise UnsupportedError if a branch was stated: a server has all, and each call names its own."""
    if settings.branch is not None:
        raise UnsupportedError("--branch", "a server has all branches: name one in each call, or where you connect")


def _stated() -> frozenset[str]:
    """Return the options of the command that were stated, such as "--tokens"."""
    context = click.get_current_context()
    return frozenset(
        each.opts[0]
        for each in context.command.params
        if context.get_parameter_source(each.name or "") == ParameterSource.COMMANDLINE
    )


@app.command()
@click.argument("name")
@click.option(
    "--tokens", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The file; made if absent."
)
@click.option(
    "--right",
    type=_RIGHTS,
    default="write",
    show_default=True,
    help="What its user may do; own: find, read, correct, forget, erase and download records of --user.",
)
@click.option("--allow", "namespaces", multiple=True, metavar="NAMESPACE", help="Only this namespace. Default: all.")
@click.option(
    "--allow-branch", "branches", multiple=True, metavar="BRANCH", help='This branch; "*": all. Default: main alone.'
)
@click.option("--user", metavar="NAME", help="Only records of this user.")
@click.option("--agent", metavar="NAME", help="Only records of this agent.")
@click.option("--conversation", metavar="NAME", help="Only records of this conversation.")
@click.option(
    "--origin",
    type=click.Choice(ORIGINS),
    help="Whose word it is what it writes, at most (docs/trust.md). Default: assistant; admin: owner; own: user.",
)
@common
def token(
    settings: Settings,
    name: str,
    tokens: Path,
    right: Allowed,
    namespaces: tuple[str, ...],
    branches: tuple[str, ...],
    user: str | None,
    agent: str | None,
    conversation: str | None,
    origin: Origin | None,
) -> None:
    """Make a token for `recollect serve --tokens FILE` and print it. The file has its hash only.

    NAME says whose it is; commits name it as their actor, beside what a request states. To revoke a token, delete
    its entry: a running server notices it within a second.
    """
    from recollect.server.tokens import add_entry, default_origin, entry, new_token

    if right == OWN and user is None:
        raise InvalidArgumentError("right", right, "is that of a user on records of their own: add --user NAME")
    stated = {"NAME": name, "user": user, "agent": agent, "conversation": conversation}
    for option, value in (
        *stated.items(),
        *(("allow", each) for each in namespaces),
        *(("allow-branch", each) for each in branches),
    ):
        if value is not None and not value.strip():  # it would allow more than was meant, or be no token at all
            raise InvalidArgumentError(option, value, "is empty: name one, or leave the option out")
    scope = {key: value for key, value in (("user", user), ("agent", agent), ("conversation", conversation)) if value}
    made = new_token()
    origin = origin or default_origin(right)
    add_entry(tokens, entry(name, made, right, namespaces, scope, origin, branches))
    if settings.as_json:
        allowed = {"right": right, "namespaces": list(namespaces) or None, "scope": scope, "origin": origin}
        allowed["branches"] = list(branches) or [MAIN]
        print_json({"name": name, "token": made, **allowed})
    else:
        click.echo(made)
