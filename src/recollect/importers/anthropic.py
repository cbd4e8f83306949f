"""Messages of Anthropic's API, and the conversations.json of an export of claude.ai.

The export has other names: `chat_messages` with a `sender`, "human" for the user, and a `uuid` for each conversation
and message.
"""

from __future__ import annotations

from recollect.importers.messages import Messages


class AnthropicMessages(Messages):
    """`{"role", "content"}`; content is text or a list of blocks; the value of "system" becomes the first turn."""

    name = "anthropic"
    summary = "Anthropic: messages as JSON or JSON lines, or the conversations.json of a claude.ai export"
    lists = ("messages", "chat_messages")
    names = ("uuid", "id", "conversation_id", "title")
    system = "system"
