"""Messages as Anthropic's API takes them, and the conversations.json of an export of claude.ai.

The export names things otherwise: `chat_messages` with a `sender`, "human" for the user, a `uuid` for each
conversation and message.
"""

from __future__ import annotations

from recollect.importers.messages import Messages


class Anthropic(Messages):
    """`{"role", "content"}`; content is text or a list of blocks; what stands under "system" is the first turn."""

    name = "anthropic"
    summary = "Anthropic: messages as JSON or JSON lines, or the conversations.json of a claude.ai export"
    lists = ("messages", "chat_messages")
    names = ("uuid", "id", "conversation_id", "title")
    system = "system"
    roles = ("role", "sender")
    other_roles = {"human": "user"}  # noqa: RUF012 - a constant
