"""A client of MCP servers on stdio, at the level of JSON-RPC lines.

It checks nothing and translates nothing, so that a test sees the bytes' own values: a client library would validate
answers, and add the keys that a server left out.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import recollect

PACKAGES = Path(__file__).parent / "node_modules" / "@modelcontextprotocol"
REFERENCE = ["node", str(PACKAGES / "server-memory" / "dist" / "index.js")]
OURS = [sys.executable, "-m", "recollect", "mcp"]
#: As a client is configured that used the reference server.
OURS_AS_REFERENCE = [*OURS, "--tools", "reference"]
PROTOCOL = "2025-11-25"
#: How long a server that answers nothing is waited for.
PATIENCE_S = 60.0

Message = dict[str, Any]


def no_change(tool: str, result: Message) -> Message:
    return result


class Server:
    """A server process, after the handshake.

    Args:
        command: The command line of the server.
        variables: Environment variables of the process, in addition to those of this process.
        change: Changes a tool's result before the test sees it, for negative controls.

    Attributes:
        introduction: The server's answer to `initialize`.
        notes: Notifications in their order, as (method, params).
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        change: Callable[[str, Message], Message] = no_change,
    ) -> None:
        self._change = change
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **variables},
        )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._asked = 0
        self.notes: list[tuple[str, Message]] = []
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "peers", "version": "1"}}
        self.introduction: Message = self.ask("initialize", hello)["result"]
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Message:
        """Send a request and return the answer: an object with `result` or `error`."""
        self._asked += 1
        request = {"jsonrpc": "2.0", "id": self._asked, "method": method}
        self._send(request if params is None else {**request, "params": params})
        while "method" in (message := self._next()):
            self.notes.append((message["method"], message.get("params", {})))
        # A server that cannot read a request does not know its number.
        assert message["id"] in (self._asked, None)
        return message

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Message:
        """Call a tool and return its result, reduced to content, structuredContent and isError."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        result = answer.get("result", {"error": answer.get("error")})
        parts = {key: result[key] for key in ("content", "structuredContent", "error") if result.get(key) is not None}
        return self._change(tool, {**parts, "isError": result.get("isError", False)})

    def graph(self) -> Message:
        """Everything in the server's graph, without the negative control's changes."""
        graph: Message = self.ask("tools/call", {"name": "read_graph"})["result"]["structuredContent"]
        return graph

    def close(self) -> None:
        """End the process as a client does: close its input, then wait."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _next(self) -> Message:
        line = self._lines.get(timeout=PATIENCE_S)
        assert line is not None, f"the server ended with status {self._process.wait()}"
        message: Message = json.loads(line)
        return message

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)


def reference(folder: Path, change: Callable[[str, Message], Message] = no_change) -> Server:
    """Start the reference server, whose graph is a file of JSON lines in `folder`."""
    return Server(REFERENCE, {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}, change)


def ours(folder: Path) -> Server:
    """Start our server, whose store is in `folder`."""
    return Server(OURS_AS_REFERENCE, our_variables(folder))


def our_variables(folder: Path) -> dict[str, str]:
    """The environment variables with which our server's store, and all else that it may write, is in `folder`."""
    # A client may pass no other variables on, so that this names the package under test, too.
    package = Path(recollect.__file__).parents[1]
    return {"HOME": str(folder), "RECOLLECT_DB": str(folder / "memory.db"), "PYTHONPATH": str(package)}
