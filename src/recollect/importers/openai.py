"""Messages of OpenAI's chat API: files of requests, of logs, and for fine-tuning."""

from __future__ import annotations

from recollect.importers.messages import Messages


class OpenAI(Messages):
    """`{"role", "content", "name", "tool_calls", ...}`; content is text, null, or a list of parts."""

    name = "openai"
    summary = "OpenAI: chat messages as JSON or JSON lines, fine-tuning files included"
