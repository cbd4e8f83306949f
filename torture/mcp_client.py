"""Clients of an MCP server at the level of JSON-RPC: several requests in flight, over stdio or HTTP.

They validate and retry nothing: what a server answers, how often and in which order, is what a trial looks at. A client
library would hide it.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import recollect

PROTOCOL = "2025-11-25"
#: How long an answer is waited for before a server counts as hanging.
PATIENCE_S = 60.0
HELLO = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "torture", "version": "1"}}

Message = dict[str, Any]


def start(path: Path, *options: str, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Start a server of the store at a path."""
    package = Path(recollect.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-m", "recollect", "mcp", "--db", str(path), "--tools", "recollect,reference", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, "HOME": str(path.parent), "PYTHONPATH": str(package)},
    )


def request(method: str, params: Mapping[str, Any] | None = None, number: int | str = 0) -> Message:
    """A request, as a JSON-RPC object."""
    out = {"jsonrpc": "2.0", "id": number, "method": method}
    return out if params is None else {**out, "params": params}


class StdioClient:
    """A server on stdio, and its client. Requests are numbered from 1.

    answers  id -> the answers that came, in their order: a correct server gives one
    ended    whether there will be no more
    """

    def __init__(self, path: Path, *options: str) -> None:
        self.process = start(path, *options)
        self.answers: dict[Any, list[Message]] = defaultdict(list)
        self._arrived = threading.Condition()
        self.ended = False
        self._numbers = 0
        self._reader = threading.Thread(target=self._read, daemon=True)

    def hello(self) -> Self:
        """Begin to read, and shake hands."""
        self.read()
        self.wait(self.send("initialize", HELLO))
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def read(self) -> None:
        """Begin to read the answers. Until then they stay in the pipe."""
        self._reader.start()

    def write(self, *messages: Message | bytes) -> None:
        """Send lines: messages, or any bytes. Raises: BrokenPipeError where the server is gone."""
        assert self.process.stdin is not None
        for each in messages:
            self.process.stdin.write((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request; its number."""
        self._numbers += 1
        self.write(request(method, params, self._numbers))
        return self._numbers

    def send_call(self, tool: str, arguments: Mapping[str, Any]) -> int:
        """Call a tool; the number of the request."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def wait(self, number: Any) -> Message:
        """The first answer to a request. Raises: EOFError where the server ended before."""
        with self._arrived:
            arrived = self._arrived.wait_for(lambda: self.answers.get(number) or self.ended, PATIENCE_S)
            assert arrived, f"no answer to request {number} in {PATIENCE_S} s"
            if not self.answers.get(number):
                raise EOFError(f"the server ended without an answer to request {number}")
            return self.answers[number][0]

    def wait_for(self, count: int) -> None:
        """Wait until so many answers are there, or the server has ended."""
        with self._arrived:
            done = lambda: sum(map(len, self.answers.values())) >= count or self.ended  # noqa: E731
            assert self._arrived.wait_for(done, PATIENCE_S), f"fewer than {count} answers in {PATIENCE_S} s"

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Message:
        """The result of a tool, or the error of the request."""
        return result_of(self.wait(self.send_call(tool, arguments)))

    def kill(self) -> None:
        """Kill the server, and read what it had answered."""
        self.process.kill()
        self._end()

    def close(self) -> int:
        """End the input, as a client does; the exit status of the server."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self._end()

    def _end(self) -> None:
        self.process.wait()
        if self._reader.ident is not None:
            self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith(b"\n"):
                break  # killed within an answer: the client got none
            message = json.loads(line)
            if "method" not in message:
                with self._arrived:
                    self.answers[message["id"]].append(message)
                    self._arrived.notify_all()
        with self._arrived:
            self.ended = True
            self._arrived.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class HttpServer:
    """A server on HTTP at a free port of the loopback interface.

    url  its address
    """

    def __init__(self, path: Path, *options: str) -> None:
        self.process = start(path, "--http", "127.0.0.1:0", *options, stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        line = self.process.stderr.readline().decode()
        found = re.search(r"listening on (\S+)", line)
        assert found, f"the server did not start: {line}"
        self.url = found[1]
        # What it prints later must not fill the pipe.
        self._reader = threading.Thread(target=self.process.stderr.read, daemon=True)
        self._reader.start()

    def close(self) -> None:
        """End the server."""
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join()
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                assert pipe is not None
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class HttpClient:
    """A client of a server on HTTP, one request after the other on one connection.

    session  the headers that name its session
    """

    def __init__(self, url: str) -> None:
        self._path = urlsplit(url).path
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self.session: dict[str, str] = {}
        self._numbers = 0
        self.ask("initialize", HELLO)
        self.session["mcp-protocol-version"] = PROTOCOL
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, body: Message | bytes) -> tuple[int, list[Message]]:
        """The status and the messages of the answer to a request."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._connection.request("POST", self._path, data, {**self._headers, **self.session})
        response = self._connection.getresponse()
        text = response.read().decode()
        if session := response.headers.get("mcp-session-id"):
            self.session["mcp-session-id"] = session
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            events = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
            return response.status, [json.loads(each) for each in events if each]
        is_json = response.headers.get("content-type", "").startswith("application/json")
        return response.status, [json.loads(text)] if is_json and text else []

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Message:
        """The answer to a request."""
        self._numbers += 1
        status, messages = self.post(request(method, params, self._numbers))
        answers = [each for each in messages if each.get("id") == self._numbers and "method" not in each]
        assert len(answers) == 1, f"{len(answers)} answers to a request, status {status}: {messages}"
        return answers[0]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Message:
        """The result of a tool, or the error of the request."""
        return result_of(self.ask("tools/call", {"name": tool, "arguments": arguments}))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def result_of(answer: Message) -> Message:
    """The result of an answer; where it is an error, one in the form of a tool's."""
    if "error" in answer:
        return {"isError": True, "content": [{"type": "text", "text": answer["error"]["message"]}]}
    result: Message = answer["result"]
    return result


def text_of(result: Message) -> str:
    """All texts of a tool's result."""
    return "\n".join(each["text"] for each in result["content"])


def failed(result: Message) -> bool:
    """Whether a tool answered with an error."""
    return bool(result.get("isError"))
