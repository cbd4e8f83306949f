"""The SDK runs the tool: a local server answers as the Messages API does, so no key and no network is needed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("recollect.compat.anthropic", exc_type=ImportError)

from anthropic import Anthropic, AsyncAnthropic

import recollect
from recollect.compat.anthropic import AsyncRecollectMemoryTool, RecollectMemoryTool

COMMANDS = [
    {"command": "create", "path": "/memories/tea.md", "file_text": "green"},
    {"command": "create", "path": "/memories/tea.md", "file_text": "black"},
    {"command": "view", "path": "/memories/tea.md"},
]
ANSWERS = [
    ("File created successfully at: /memories/tea.md", False),
    ("File /memories/tea.md already exists", True),
    ("Here's the content of /memories/tea.md with line numbers:\n     1\tgreen", False),
]


class Script(BaseHTTPRequestHandler):
    """Answers each request with the next command, and the last one with a text."""

    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        step = len(self.asked)
        self.asked.append(request)
        if step < len(COMMANDS):
            use = {"type": "tool_use", "id": f"use-{step}", "name": "memory", "input": COMMANDS[step]}
            content, reason = [use], "tool_use"
        else:
            content, reason = [{"type": "text", "text": "Green tea."}], "end_turn"
        body = json.dumps(
            {
                "id": f"message-{step}",
                "type": "message",
                "role": "assistant",
                "model": request["model"],
                "content": content,
                "stop_reason": reason,
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Write nothing to stderr."""


@pytest.fixture
def api() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve the script, and return its address and the requests."""
    asked: list[dict[str, Any]] = []
    script = type("OneScript", (Script,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), script) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


def results(asked: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """Return what the model got for its commands."""
    blocks = [request["messages"][-1]["content"][0] for request in asked[1:]]
    return [(block["content"], bool(block.get("is_error"))) for block in blocks]


def test_the_runner_of_the_sdk_executes_the_commands(
    api: tuple[str, list[dict[str, Any]]], place: recollect.Memory
) -> None:
    address, asked = api
    with Anthropic(api_key="none", base_url=address) as client, RecollectMemoryTool(place, user="ana") as tool:
        last = client.beta.messages.tool_runner(
            model="claude", max_tokens=100, tools=[tool], messages=[{"role": "user", "content": "Which tea?"}]
        ).until_done()
    assert last.content[0].to_dict()["text"] == "Green tea."
    assert asked[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert results(asked) == ANSWERS


def test_the_asynchronous_runner_of_the_sdk_executes_the_commands(
    api: tuple[str, list[dict[str, Any]]], place: recollect.Memory
) -> None:
    address, asked = api

    async def run() -> None:
        async with (
            AsyncAnthropic(api_key="none", base_url=address) as client,
            AsyncRecollectMemoryTool(place, user="ana") as tool,
        ):
            await client.beta.messages.tool_runner(
                model="claude", max_tokens=100, tools=[tool], messages=[{"role": "user", "content": "Which tea?"}]
            ).until_done()

    asyncio.run(run())
    assert results(asked) == ANSWERS


def test_without_the_sdk_the_import_names_the_extra() -> None:
    code = "import sys; sys.modules['anthropic'] = None; import recollect.compat.anthropic"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtraError" in failed.stderr
    assert "pip install 'recollect[anthropic]'" in failed.stderr
