"""The calls of a memory as tools of CrewAI agents.

    from crewai import Agent
    from recollect.compat.crewai import memory_tools

    agent = Agent(role="travel agent", goal="...", backstory="...", tools=memory_tools(memory.scoped(user="ana")))

CrewAI's own memory asks its storage with a vector, and never says the question: so a memory that answers by words is a
tool, not a storage (docs/crewai.md).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from recollect import Memory
from recollect.compat.threads import completed
from recollect.errors import InvalidArgumentError, MissingExtraError

try:
    from crewai.tools import BaseTool
    from crewai.utilities.pydantic_schema_utils import create_model_from_schema
except ImportError as error:
    raise MissingExtraError("recollect.compat.crewai", "crewai", "crewai") from error

__all__ = ["memory_tools"]

#: What an agent needs to remember: the other tools of `Memory.tools` can be named.
DEFAULT = ("remember", "recall", "context", "update", "forget")


class _MemoryTool(BaseTool):
    """One tool of a `ToolSet`. Its answer is JSON, and an error is an answer that the model can read."""

    toolset: Any

    def _run(self, **arguments: Any) -> str:
        stated = {name: value for name, value in arguments.items() if value is not None}
        call = {"type": "tool_use", "id": self.name, "name": self.name, "input": stated}
        return str(self.toolset.answer(call)["content"])

    async def _arun(self, **arguments: Any) -> str:
        return await completed(self._run, **arguments)


def memory_tools(
    memory: Memory, *, only: Collection[str] | None = DEFAULT, prefix: str = "", read_only: bool = False
) -> list[BaseTool]:
    """Return calls of a memory as tools for `Agent(tools=...)`.

    A memory that is scoped to a user keeps the agent to what is that user's. The memory must stay open while the tools
    are used.

    Args:
        memory: The memory, also of `recollect.connect`.
        only: The names of the tools, of those of `Memory.tools`; None: all of them.
        prefix: What their names begin with, such as "memory_".
        read_only: Only those that change nothing.

    Raises:
        InvalidArgumentError: `memory` is no memory, there is no such tool, or the prefix has other characters than
            letters, digits, _ and -.
    """
    if not isinstance(memory, Memory):
        raise InvalidArgumentError(
            "memory", memory, "must be a Memory: open it with recollect.open or recollect.connect"
        )
    if isinstance(only, str):
        raise InvalidArgumentError("only", only, "must be a list of names of tools")
    toolset = memory.tools(prefix, only=only, read_only=read_only)
    return [
        _MemoryTool(
            name=tool["name"],
            description=tool["description"],
            args_schema=create_model_from_schema(tool["input_schema"], model_name=tool["name"]),
            toolset=toolset,
        )
        for tool in toolset.anthropic()
    ]
