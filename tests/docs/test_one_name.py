"""One thing has one name on every surface: the table of names in docs/concepts.md is what the surfaces have."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import click
from tests.paths import ROOT

from recollect import Memory
from recollect.arguments.tools import Tool
from recollect.cli.app import RenamedOption, app
from recollect.memory.tools import TOOLS
from recollect.server.http.routes import ROUTES
from recollect.server.mcp.toolsets import tools_of

PAGE = ROOT / "docs" / "concepts.md"
SURFACES = ("Python", "command line", "tools", "MCP", "HTTP")
_CALL = re.compile(r"(\w+)\((\w+)(?:=(\w+))?\)")
_COMMAND = re.compile(r"([\w-]+) (--?[\w-]+|[A-Z]+)(?: (\w+))?")
_ROUTE = re.compile(r"([A-Z]+) (/\S*?)(?:: (\w+))?")


def table(text: str) -> dict[str, dict[str, str]]:
    """Return the rows of the table of names: thing -> surface -> cell."""
    lines = [line for line in text.partition("## Names")[2].partition("\n## ")[0].splitlines() if line[:1] == "|"]
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    head, _, *body = rows
    assert tuple(head[1:]) == SURFACES
    return {row[0]: dict(zip(SURFACES, row[1:], strict=True)) for row in body}


def in_python(cell: str) -> bool:
    call, name, default = _parts(_CALL, cell)
    found = inspect.signature(getattr(Memory, call)).parameters.get(name)
    return found is not None and (default is None or str(found.default) == default)


def on_command_line(cell: str) -> bool:
    name, shown, default = _parts(_COMMAND, cell)
    command = app.get_command(click.Context(app), name)
    if command is None:
        return False
    for each in command.params:
        if isinstance(each, click.Argument) and (each.name or "").upper().removesuffix("S") == shown:
            return True
        former = each.former if isinstance(each, RenamedOption) else ()
        if isinstance(each, click.Option) and shown in each.opts and shown not in former:
            return default is None or f"Default: {default}." in (each.help or "")
    return False


def in_tools(tools: Mapping[str, Tool[Any, Any]], cell: str) -> bool:
    name, argument, default = _parts(_CALL, cell)
    schema = tools[name].inputs.get(argument) if name in tools else None
    stated = "" if schema is None else str(schema.get("description"))
    return schema is not None and (default is None or stated.rstrip(".").endswith(f"Default: {default}"))


def over_http(cell: str) -> bool:
    method, path, field = _parts(_ROUTE, cell)
    routes = [each for each in ROUTES if each.path.replace(":path", "") == path and method in each.methods]
    return any(field is None or field in each.fields for each in routes)


def _parts(pattern: re.Pattern[str], cell: str) -> tuple[str, str, str | None]:
    found = pattern.fullmatch(cell)
    assert found is not None, cell
    first, second, third = found.groups()
    return first, second, third


def wrong(rows: dict[str, dict[str, str]]) -> list[tuple[str, str]]:
    """Return the surfaces and cells that are not what a surface has."""
    checks = {
        "Python": in_python,
        "command line": on_command_line,
        "tools": lambda cell: in_tools({tool.name: tool for tool in TOOLS}, cell),
        "MCP": lambda cell: in_tools(tools_of(["recollect"]), cell),
        "HTTP": over_http,
    }
    cells = [(surface, cell) for row in rows.values() for surface, cell in row.items() if cell]
    return [(surface, cell) for surface, cell in cells if not checks[surface](cell)]


def test_each_name_of_the_table_is_what_its_surface_has() -> None:
    rows = table(PAGE.read_text("utf-8"))
    assert len(rows) >= 20
    assert wrong(rows) == []


def test_one_thing_has_one_name_on_every_surface() -> None:
    """Apart from a cursor in MCP, a row names one thing: an argument, or a call with the id of a record."""
    for thing, row in table(PAGE.read_text("utf-8")).items():
        names = set()
        for surface, cell in row.items():
            if not cell or (thing, surface) == ("the next page", "MCP"):
                continue
            if surface == "HTTP":
                names.add(_parts(_ROUTE, cell)[2] or "id")
            else:
                name = _parts(_COMMAND if surface == "command line" else _CALL, cell)[1]
                names.add(name.lstrip("-").replace("-", "_").lower())
        assert len(names) == 1, (thing, names)


def test_a_name_that_no_surface_has_is_noticed() -> None:
    cells = {
        "Python": ("recall(limit)", "recall(k=5)"),
        "command line": ("find -k", "find --cursor", "show ID", "recall -k 5", "remember TEXT"),
        "tools": ("recall(limit)", "remember(text)", "recall(k=5)", "show(id)"),
        "MCP": ("list(where)", "recall(k=5)", "recall(limit)"),
        "HTTP": ("GET /context: time", "PUT /remember: content", "GET /show"),
    }
    every = [(surface, cell) for surface, some in cells.items() for cell in some]
    assert wrong({f"{surface} {cell}": {surface: cell} for surface, cell in every}) == every
