"""Commands that serve a memory to other programs: mcp."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from recollect.cli.app import USER_VARIABLE, Settings, app, common
from recollect.errors import InvalidArgumentError, MissingExtraError
from recollect.memory import Memory
from recollect.server.mcp.access import GRAPH_TOKENS, Access
from recollect.server.mcp.first_start import GRAPH_VARIABLE, import_graph
from recollect.server.mcp.toolsets import DEFAULT_SETS, TOOLSETS, tools_of
from recollect.stores.files import open_regular

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
    help=f"Sets of tools to offer, of {', '.join(TOOLSETS)}.",
)
@click.option(
    "--user",
    metavar="NAME",
    envvar=USER_VARIABLE,
    help=f"Clients reach the records of this user only. Default: {USER_VARIABLE}.",
)
@click.option("--read-only", is_flag=True, help="Clients can only read.")
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

    access = Access(opener, user=user, read_only=read_only, graph_tokens=graph_tokens)
    try:
        import anyio

        from recollect.server.mcp.protocol import Protocol
    except ImportError as error:
        raise MissingExtraError("recollect mcp", error.name or "mcp", "mcp") from None
    access.check()
    if path := os.environ.get(GRAPH_VARIABLE):
        import_graph(access, path, report=_say)

    async def serve() -> None:
        protocol = Protocol(access, tools)
        if http is None:
            from recollect.server.mcp.stdio import serve_stdio

            await serve_stdio(protocol)
        else:
            from recollect.server.mcp.http import address_of, serve_http

            host, port = address_of(http)
            await serve_http(protocol, host, port, token=token, ready=lambda url: _say(f"listening on {url}"))

    try:
        anyio.run(serve)
    finally:
        access.close()


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
