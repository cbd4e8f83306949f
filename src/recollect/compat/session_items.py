"""The form in which the items of a session of the OpenAI Agents SDK are stored.

This needs no SDK, so that an import can store items as `recollect.compat.openai_agents` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from recollect.compat.item_log import ItemLog, SpokenText

if TYPE_CHECKING:
    from recollect import Memory

#: The source of the records of sessions, which others of the same conversation do not have, and the actor of commits.
NAME = "openai-agents"
#: The SDK and Recollect have different names for it.
_ROLES = {"developer": "system"}


def session_log(memory: Memory, session_id: str, *, user: str | None = None, agent: str | None = None) -> ItemLog:
    """Return the items of a session. The arguments and errors are those of `ItemLog`."""
    return ItemLog(memory, session_id, source=NAME, ids="session", said=_said, user=user, agent=agent)


def _said(item: Any) -> SpokenText | None:
    role = item.get("role") if isinstance(item, Mapping) else None
    if not isinstance(role, str) or not role:
        return None
    return SpokenText(_ROLES.get(role, role), "\n".join(_texts(item)))


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts that a message says: its content, or the texts and refusals of its parts."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    for part in parts:
        if isinstance(part, Mapping):
            values = (part.get("text"), part.get("refusal"))
            yield from (value for value in values if isinstance(value, str))
