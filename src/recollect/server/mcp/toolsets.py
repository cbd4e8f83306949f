"""The sets of tools that a server can offer. A facet adds its tools here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from recollect.errors import InvalidArgumentError
from recollect.server.mcp import daily, glossary, history, outline, reading, reference, sdr, writing
from recollect.server.mcp.tools import McpTool

#: Name of a set -> its tools. A tool that is in two sets that are offered has the definition of the later one.
TOOLSETS: Mapping[str, tuple[McpTool, ...]] = {
    "daily": daily.TOOLS,
    "recollect": (*writing.TOOLS, *reading.TOOLS, *history.TOOLS),
    "reference": reference.TOOLS,
    "glossary": glossary.TOOLS,
    "salience": glossary.JUDGE,
    "outline": outline.TOOLS,
    "sdr": sdr.TOOLS,
}
#: The name that stands for all sets.
ALL = "all"
#: The sets that a server offers unless others are named: each further tool costs every client some of its context.
DEFAULT_SETS = ("daily",)


def tools_of(names: Iterable[str], *, read_only: bool = False, scoped: bool = False) -> dict[str, McpTool]:
    """Return the tools of some sets, by name.

    Args:
        names: The names of the sets, or "all".
        read_only: Only those that only read.
        scoped: Only those that can be used where the server fixes the user.

    Raises:
        InvalidArgumentError: There is no set of a name, or no name.
    """
    chosen, known = list(names), ", ".join((*TOOLSETS, ALL))
    for name in chosen:
        if name not in (*TOOLSETS, ALL):
            raise InvalidArgumentError("tools", name, f"must be one of: {known}")
    if not chosen:
        raise InvalidArgumentError("tools", "", f"must name one or more of: {known}")
    return {
        tool.name: tool
        for name in TOOLSETS
        if name in chosen or ALL in chosen
        for tool in TOOLSETS[name]
        if (tool.reads or not read_only) and not (tool.whole and scoped)
    }


def sets_with(name: str, *, read_only: bool, scoped: bool) -> list[str]:
    """Return the sets with which a server would offer a tool of a name, the smallest first."""
    found = [each for each in TOOLSETS if name in tools_of((each,), read_only=read_only, scoped=scoped)]
    return sorted(found, key=lambda each: len(TOOLSETS[each]))
