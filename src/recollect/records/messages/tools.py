"""Whose words a turn has that a tool had a part in: which tool a result is of, and what an answer has heard.

An answer that follows the results of tools may repeat them, and often does: it is the word of the least trusted of
them, up to the next turn of the user.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from recollect.common.regexes import regex
from recollect.records.messages.turns import Turn
from recollect.records.origins import ASSISTANT, RANKS, TOOL, USER, WEB, Origin, least, of_role
from recollect.records.record import Record

#: How words begin that name tools which bring in texts of the web, in "web_search", "WebFetch" and "open-url".
_OF_THE_WEB = regex(
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:search|fetch|brows|web|crawl|scrap|http|url|navigat|visit)"
)
#: The keys with the id of a call, in what calls a tool and in its result, and those with the name of the tool.
_CALL_IDS, _RESULT_IDS = ("call_id", "id"), ("tool_call_id", "tool_use_id", "call_id")
#: The roles of prompts, which nobody says.
_PROMPTS = ("system", "developer")
#: Parts of an answer that are results of tools which the provider of the model runs.
_SERVED = regex(r"server_tool_use|web_search_call|file_search_call|mcp_call|web_search_tool_result|web_fetch")


def origins_of(
    turns: Sequence[Turn],
    tools: Mapping[str, Origin],
    before: Sequence[Record] = (),
    known: Container[int] = frozenset(),
) -> list[Origin | None] | None:
    """Return the class of origin of each turn, where it is not what its role implies; None if that is so of all.

    Args:
        turns: The turns, in order.
        tools: The classes of tools by their names. Another one is of the web if its name says so, or else a tool.
        before: The last stored turns, as of `exchange`.
        known: The indexes of the turns that are stored. Those that the next ones may repeat are in `before`: a list
            may leave out the messages of tools.
    """
    if not before and not any(of_role(turn.role) == TOOL or turn.metadata.get("parts") for turn in turns):
        return None
    hearing = Hearing(tools, before)
    out: list[Origin | None] = []
    for index, turn in enumerate(turns):
        if index in known:
            hearing.note_calls(turn.metadata)
            out.append(None)
        else:
            out.append(hearing.of(turn.role, turn.speaker, turn.metadata))
    return out


def exchange(turns: Iterable[Record]) -> tuple[Record, ...]:
    """Return the last turns of a conversation that the next one may repeat, in order; () if no tool is among them.

    Args:
        turns: The turns, the last one first. They are read down to the last answer, whose class says what it has heard
            itself, or to the last turn of the user.
    """
    found: list[Record] = []
    for turn in turns:
        if (
            found
            and begins(found[-1].role, found[-1].effective_origin)
            and not _has_next_text(turn.role, turn.metadata)
        ):
            break
        found.append(turn)
        if _answers(turn.role):
            break
    if all(_says(turn.role) == USER for turn in found):
        return ()
    return tuple(reversed(found))


class Hearing:
    """What the turns of a conversation have heard of tools, which are passed in their order.

    Args:
        tools: The classes of tools by their names.
        before: The stored turns before them, as of `exchange`.
    """

    def __init__(self, tools: Mapping[str, Origin], before: Iterable[Record] = ()) -> None:
        self._tools = tools
        self._heard: Origin | None = None
        self._names: dict[str, str] = {}
        self._continues = False  # a turn of the user that comes now is of the same message as a result
        for turn in before:
            self.of(turn.role, turn.speaker, turn.metadata, turn.effective_origin)
            if _says(turn.role) == TOOL or (_answers(turn.role) and turn.effective_origin != ASSISTANT):
                self._hear(turn.effective_origin)

    def note_calls(self, metadata: Mapping[str, Any]) -> None:
        """Note the tools that a turn calls."""
        self._names.update(_calls(metadata))

    def of(
        self, role: str | None, speaker: str | None, metadata: Mapping[str, Any], writer: Origin = USER
    ) -> Origin | None:
        """Return the class of the next turn; None if it is what its role implies.

        Args:
            role: Its role.
            speaker: Its speaker.
            metadata: Its metadata.
            writer: The class of who stores it, or of the stored turn.
        """
        self.note_calls(metadata)
        continues, self._continues = self._continues, _has_next_text(role, metadata)
        if begins(role, writer):
            if not continues:
                self._heard = None
        elif _says(role) == TOOL:
            own = origin_of_tool(_tool(speaker, metadata, self._names), self._tools)
            self._hear(own)
            return None if own == TOOL else own
        elif _answers(role):
            for name in _served(metadata):
                self._hear(origin_of_tool(name, self._tools))
            return self._heard
        return None

    def _hear(self, origin: Origin) -> None:
        self._heard = origin if self._heard is None else least((self._heard, origin))


def _says(role: str | None) -> Origin | None:
    """Return whose word a turn of a role is."""
    return of_role(role) if isinstance(role, str) else None  # an importer has not checked it


def begins(role: str | None, origin: str) -> bool:
    """Return whether a turn begins an exchange: one of the user, which no page or tool has written."""
    return _says(role) == USER and RANKS[origin] >= RANKS[ASSISTANT]


def _answers(role: str | None) -> bool:
    """Return whether a turn is an answer of a model, and no prompt."""
    return _says(role) == ASSISTANT and role not in _PROMPTS


def _has_next_text(role: str | None, metadata: Mapping[str, Any]) -> bool:
    """Return whether the text of a user after a turn is of the same message: in Anthropic's API, results come first."""
    return _says(role) == TOOL and "tool_use_id" in metadata


def origin_of_tool(name: str | None, tools: Mapping[str, Origin]) -> Origin:
    """Return the class of what a tool returns.

    >>> origin_of_tool("calendar", {}), origin_of_tool("web_search", {}), origin_of_tool("wiki", {"wiki": "document"})
    ('tool', 'web', 'document')
    >>> origin_of_tool("openUrl", {}), origin_of_tool("research_db", {})
    ('web', 'tool')
    """
    if name is None:
        return TOOL
    return tools.get(name) or (WEB if _OF_THE_WEB.search(name) else TOOL)


def _calls(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the id and the name of each tool that a turn calls."""
    for key in ("tool_calls", "parts"):
        for each in _listed(metadata.get(key)):
            function = each.get("function")
            name = function.get("name") if isinstance(function, Mapping) else each.get("name")
            if isinstance(name, str):
                yield from ((each[id_], name) for id_ in _CALL_IDS if isinstance(each.get(id_), str))


def _tool(speaker: str | None, metadata: Mapping[str, Any], names: Mapping[str, str]) -> str | None:
    """Return the name of the tool whose result a turn is, if that is known."""
    name = metadata.get("name") or metadata.get("tool_name") or speaker
    if isinstance(name, str):
        return name
    ids = (metadata.get(key) for key in _RESULT_IDS)
    return next((names[each] for each in ids if isinstance(each, str) and each in names), None)


def _served(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the tools that the provider has run within an answer."""
    for each in _listed(metadata.get("parts")):
        kind = each.get("type")
        if isinstance(kind, str) and _SERVED.match(kind):
            name = each.get("name")
            yield name if isinstance(name, str) else kind


def _listed(value: Any) -> Iterator[Mapping[str, Any]]:
    return (each for each in value if isinstance(each, Mapping)) if isinstance(value, (list, tuple)) else iter(())
