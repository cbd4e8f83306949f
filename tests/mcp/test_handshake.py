"""The server for clients that shake hands: it answers as the SDK does, and in the order of the calls."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION

import recollect
from recollect import Memory
from recollect.server.mcp.handshake import REQUESTS, VERSIONS, Handshake
from recollect.server.mcp.lines import MOST_BYTES, Message, Refusal, chunks_of, parsed
from recollect.server.mcp.reference import RESOURCE
from recollect.server.mcp.replies import Replies
from recollect.server.mcp.tools import Access
from recollect.server.mcp.toolsets import tools_of

#: A process that serves with the SDK, whatever the first request is: one client after another. The lines of each are
#: those of a file, and its answers are written beside it.
SDK = """
import os, sys
from functools import partial
import anyio
import recollect
from recollect.server.mcp.lines import CHUNK, split
from recollect.server.mcp.protocol import Protocol
from recollect.server.mcp.stdio import serve_stdio
from recollect.server.mcp.tools import Access
from recollect.server.mcp.toolsets import tools_of
def opener(*, create, read_only):
    return recollect.open(sys.argv[1], create=create, read_only=read_only)
async def serve(access):
    tools = tools_of(("recollect", "reference"), read_only=True, scoped=False)
    await serve_stdio(Protocol(access, tools), split(iter(partial(os.read, 0, CHUNK), b"")))
for lines in sys.argv[2:]:
    os.dup2(os.open(lines, os.O_RDONLY), 0)
    os.dup2(os.open(lines + ".answers", os.O_WRONLY | os.O_CREAT | os.O_EXCL), 1)
    sys.stdout = open(1, "w", closefd=False)
    access = Access(opener, read_only=True)
    anyio.run(serve, access)
    access.close()
"""


def hello(version: str = "2025-11-25") -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}}


def line(number: Any, method: str, params: Any = None) -> bytes:
    out = {"jsonrpc": "2.0", "id": number, "method": method}
    return json.dumps(out if params is None else {**out, "params": params}).encode()


def call(number: Any, tool: str, **arguments: Any) -> bytes:
    return line(number, "tools/call", {"name": tool, "arguments": arguments})


#: What a client may send after the handshake, right and wrong.
LINES = [
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    line(1, "ping"),
    line(2, "tools/list"),
    line(3, "resources/list", {}),
    line("four", "prompts/list", {"cursor": None}),
    line(5, "prompts/get", {"name": "recall_for_task", "arguments": {"task": "tea"}}),
    line(6, "prompts/get", {"name": "recall_for_task"}),
    line(7, "prompts/get", {"name": "other", "arguments": {}}),
    line(8, "resources/read", {"uri": RESOURCE}),
    line(9, "resources/read", {"uri": "memory://nothing"}),
    call(10, "recall", question="tea"),
    call(11, "recall", query="tea"),
    call(12, "recal", question="tea"),
    call(13, "read_graph"),
    line(14, "tools/call", {"name": "read_graph"}),
    line(15, "tools/call", {"name": "read_graph", "arguments": None}),
    line(16, "tools/call", {"name": "read_graph", "arguments": []}),
    line(17, "tools/call", {"name": 7, "arguments": {}}),
    line(18, "tools/call"),
    line(19, "tools/list", {"cursor": 5}),
    line(20, "resources/read"),
    line(21, "prompts/get", {"name": "recall_for_task", "arguments": {"task": 5}}),
    line(22, "nothing/there"),
    line(23, "logging/setLevel", {"level": "debug"}),
    line(24, "resources/subscribe", {"uri": RESOURCE}),
    line(25, "resources/unsubscribe", {"uri": RESOURCE}),
    line(26, "resources/subscribe", {"uri": 5}),
    line(27, "subscriptions/listen", {}),
    line(28, "server/discover"),
    b"this is no JSON",
    b'{"jsonrpc":"2.0","id":29,"method":"ping","params":[]}',
    b'{"jsonrpc":"1.0","id":30,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":31}',
    b'{"jsonrpc":"2.0","id":32,"method":7}',
    b'[{"jsonrpc":"2.0","id":33,"method":"ping"}]',
    b'"text"',
    b'{"jsonrpc":"2.0","id":34,"method":"ping","params":null}',
    b'{"jsonrpc":"2.0","id":"lone \\ud800","method":"ping"}',
    b'{"jsonrpc":"2.0","id":35,"result":{}}',
    b"",
    b"   ",
    line(36, "ping", {"_meta": {"io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION}}),
    line(37, "ping", {"_meta": {"progressToken": 1}}),
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
    b'{"jsonrpc":"2.0","method":"notifications/nothing"}',
    b"x" * (MOST_BYTES + 1),
    line(38, "ping"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("handshake") / "a.db"
    with recollect.open(path) as memory:
        memory.remember("Ana likes tea", id="tea")
        memory.remember("Standing next to tea", id="x", kind="entity", metadata={"entity_name": "Ines"})
    return path


def lines_of(version: str) -> bytes:
    """What a client sends that shakes hands with a version."""
    lines = [line(0, "tools/list"), line("ping", "ping"), line("hello", "initialize", hello(version)), *LINES]
    return b"\n".join(lines) + b"\n"


def comparable(answers: bytes) -> list[dict[str, Any]]:
    """The answers of a process, sorted, without what only the SDK says of an error."""
    out = [json.loads(each) for each in answers.splitlines()]
    for each in out:
        each.get("error", {}).pop("data", None)
    return sorted(out, key=lambda each: json.dumps(each.get("id")) + json.dumps(each))


def answered(command: list[str], lines: bytes) -> list[dict[str, Any]]:
    return comparable(subprocess.run(command, input=lines, capture_output=True, timeout=120, check=True).stdout)


@pytest.fixture(scope="module")
def of_the_sdk(store: Path) -> dict[str, list[dict[str, Any]]]:
    """What the SDK answers the clients of each version, in one process because it takes a second to load."""
    files = {version: store.parent / version for version in [*VERSIONS, "1999-01-01"]}
    for version, file in files.items():
        file.write_bytes(lines_of(version))
    subprocess.run([sys.executable, "-c", SDK, str(store), *map(str, files.values())], timeout=120, check=True)
    return {version: comparable(Path(f"{file}.answers").read_bytes()) for version, file in files.items()}


@pytest.mark.parametrize("version", [*VERSIONS, "1999-01-01"])
def test_it_answers_as_the_sdk_does(store: Path, of_the_sdk: dict[str, list[dict[str, Any]]], version: str) -> None:
    tools = "recollect,reference"
    own = [sys.executable, "-m", "recollect", "mcp", "--db", str(store), "--tools", tools, "--read-only"]
    expected = of_the_sdk[version]
    assert len(expected) > len(LINES) - 8
    later = "this connection"  # the SDK names its revision
    for one, other in zip(answered(own, lines_of(version)), expected, strict=True):
        if one.get("error", {}).get("message", "").startswith(later):
            assert other["error"]["code"] == one["error"]["code"]
        else:
            assert one == other


def test_it_speaks_the_revisions_of_the_sdk() -> None:
    assert VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS


@pytest.mark.parametrize(
    "params",
    [None, {}, {**hello(), "protocolVersion": 5}, {**hello(), "clientInfo": {}}, {**hello(), "capabilities": 1}],
)
def test_a_handshake_that_is_none_is_refused_and_the_next_one_is_not(store: Path, params: Any) -> None:
    with Client(store) as client:
        client.send(line(1, "initialize", params))
        assert client.answer()["error"]["code"] == -32602
        client.send(line(2, "tools/list"))
        assert client.answer()["error"]["code"] == -32602
        client.hello()
        client.send(line(3, "tools/list"))
        assert client.answer()["result"]["tools"]


class Client:
    """A server in this process, and the lines that it wrote."""

    def __init__(self, path: Path, *, write: Callable[[bytes], object] | None = None, read_only: bool = False) -> None:
        def opener(*, create: bool, read_only: bool) -> Memory:
            return recollect.open(path, create=create, read_only=read_only)

        self.access = Access(opener, read_only=read_only)
        self.written: SimpleQueue[bytes] = SimpleQueue()
        tools = tools_of(("recollect", "reference"), read_only=read_only, scoped=False)
        self.server = Handshake(Replies(self.access, tools), write or self.written.put)
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self.rest: list[bytes] | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        rest = self.server.serve(iter(self._lines.get, None))
        self.rest = None if rest is None else list(rest)

    def __enter__(self) -> Client:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.put(None)
        self._thread.join(60)
        assert not self._thread.is_alive()
        self.access.close()

    def send(self, *lines: bytes) -> None:
        for each in lines:
            self._lines.put(each)

    def answer(self) -> dict[str, Any]:
        out: dict[str, Any] = json.loads(self.written.get(timeout=60))
        return out

    def hello(self) -> None:
        self.send(line("hello", "initialize", hello()))
        assert self.answer()["result"]["serverInfo"]["name"] == "recollect"


def blocked(client: Client, monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Let calls of tools wait: events that one has begun, and that they may go on."""
    begun, go_on = threading.Event(), threading.Event()
    make = Replies.call

    def waiting(*arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return make(*arguments)

    monkeypatch.setattr(Replies, "call", waiting)
    return begun, go_on


def test_a_cancelled_call_is_not_answered_and_one_that_has_begun_runs_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(tmp_path / "a.db") as client:
        client.hello()
        begun, go_on = blocked(client, monkeypatch)
        client.send(*(call(number, "remember", content=f"fact {number}", id=str(number)) for number in (5, 2, 1)))
        assert begun.wait(60)
        for number in (5, 2, 77, "1", None, [1], True):
            client.send(
                json.dumps(
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
                ).encode()
            )
        client.send(line("ping", "ping"))
        assert client.answer()["id"] == "ping"  # the cancellations were read
        go_on.set()
        assert client.answer()["id"] == 1
        memory = client.access.reading()
        assert memory.get("5") is not None
        assert memory.get("2") is None
        client.send(call(2, "recall", question="fact"))  # the id can be used again
        assert client.answer()["id"] == 2


def test_no_more_requests_are_read_than_may_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(tmp_path / "a.db") as client:
        client.hello()
        begun, go_on = blocked(client, monkeypatch)
        client.send(*(call(number, "recall", question="x") for number in range(2 * REQUESTS)))
        client.send(call(0, "recall", question="x"), line("ping", "ping"))
        assert begun.wait(60)
        while len(client.server._open) < REQUESTS:
            pass
        assert client.written.empty()
        go_on.set()
        found = [client.answer() for _ in range(2 * REQUESTS + 2)]
        numbers = [each["id"] for each in found if "result" in each and each["id"] != "ping"]
        assert [number for number in numbers if number or number == 0][: 2 * REQUESTS] == list(range(2 * REQUESTS))


def test_an_id_that_waits_for_its_answer_cannot_be_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(tmp_path / "a.db") as client:
        client.hello()
        begun, go_on = blocked(client, monkeypatch)
        client.send(call("a", "recall", question="x"), line("a", "ping"), call("a", "recall", question="x"))
        assert begun.wait(60)
        for _ in range(2):
            assert client.answer()["error"]["code"] == -32600
        go_on.set()
        assert "result" in client.answer()


def test_a_fault_of_ours_is_an_error_without_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a secret")

    with Client(tmp_path / "a.db") as client:
        client.hello()
        monkeypatch.setattr(Replies, "call", broken)
        client.send(call(1, "recall", question="x"))
        assert client.answer()["error"] == {"code": -32603, "message": "internal error in tools/call: KeyError"}
        client.send(line(2, "ping"))
        assert client.answer()["result"] == {}
        monkeypatch.setattr(Replies, "call", lambda *_: {"content": {1, 2}})  # no JSON
        client.send(call(3, "recall", question="x"), line(4, "ping"))
        found = {answer["id"]: answer for answer in (client.answer(), client.answer())}
        assert found[3]["error"]["message"] == "internal error in tools/call: TypeError"
        assert found[4]["result"] == {}
    assert "internal error in tools/call" in caplog.text
    assert "secret" not in caplog.text


def test_a_response_of_the_client_is_ignored_and_a_method_without_a_name_is_not_known(tmp_path: Path) -> None:
    with Client(tmp_path / "a.db") as client:
        client.hello()
        client.send(b'{"jsonrpc":"2.0","id":1,"result":{}}', line(2, ""), line(3, "ping"))
        assert client.answer()["error"]["code"] == -32601
        assert client.answer()["id"] == 3


def test_changes_of_the_graph_are_notified_before_the_answer_and_those_of_others_too(tmp_path: Path) -> None:
    entity = {"name": "Ines", "entityType": "person", "observations": ["repairs boilers"]}
    updated = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": RESOURCE}}
    with recollect.open(tmp_path / "a.db") as other, Client(tmp_path / "a.db") as client:
        client.hello()
        client.send(call(1, "create_entities", entities=[entity]))
        assert client.answer()["id"] == 1
        client.send(line(2, "resources/subscribe", {"uri": RESOURCE}))
        assert client.answer() == {"jsonrpc": "2.0", "id": 2, "result": {}}
        client.send(call(3, "create_entities", entities=[{**entity, "name": "Otto"}]))
        assert [client.answer(), client.answer()["id"]] == [updated, 3]
        client.send(call(4, "create_entities", entities=[entity]))  # changes nothing
        assert client.answer()["id"] == 4
        other.forget_all([each.id for each in other.find(limit=None) if "Otto" in str(each.to_json())])
        assert client.answer() == updated
        client.send(
            line(5, "resources/unsubscribe", {"uri": RESOURCE}), call(6, "delete_entities", entityNames=["Ines"])
        )
        assert [client.answer()["id"] for _ in range(2)] == [5, 6]
        client.send(
            line(7, "resources/subscribe", {"uri": RESOURCE}),
            line(8, "resources/unsubscribe", {"uri": RESOURCE}),
            call(9, "create_entities", entities=[entity]),
        )
        assert [client.answer()["id"] for _ in range(3)] == [7, 8, 9]


def test_a_later_revision_is_left_to_the_sdk(store: Path) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION}
    first, second = line(1, "server/discover", {"_meta": meta}), line(2, "tools/list", {"_meta": meta})
    with Client(store) as client:
        client.send(b"no JSON", b'{"jsonrpc":"2.0","method":"notifications/x"}', first, second)
        assert client.answer()["error"]["code"] == -32700
    assert client.rest == [first, second]
    whole = {**meta, "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}}
    whole |= {"io.modelcontextprotocol/clientCapabilities": {}}
    command = [sys.executable, "-m", "recollect", "mcp", "--db", str(store), "--read-only"]
    discovered, listed = answered(
        command, line(1, "server/discover", {"_meta": whole}) + b"\n" + line(2, "tools/list", {"_meta": whole}) + b"\n"
    )
    assert LATEST_MODERN_VERSION in discovered["result"]["supportedVersions"]
    assert [each["name"] for each in listed["result"]["tools"]]


def test_a_client_that_is_gone_ends_the_server(tmp_path: Path) -> None:
    def gone(_line: bytes) -> None:
        raise BrokenPipeError

    with Client(tmp_path / "a.db", write=gone) as client:
        client.send(line(1, "ping"))
        client._thread.join(60)
        assert not client._thread.is_alive()


@pytest.mark.skipif(sys.platform == "win32", reason="reading a pipe cannot be interrupted there")
def test_a_client_that_only_closes_its_end_of_the_output_ends_the_server(store: Path) -> None:
    command = [sys.executable, "-m", "recollect", "mcp", "--db", str(store), "--read-only"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line(1, "initialize", hello()) + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.stdout.close()
        process.stdin.write(call(2, "recall", question="tea") + b"\n")  # answered by the other thread
        process.stdin.flush()
        assert process.wait(60) == 0  # its input is still open


@pytest.mark.skipif(sys.platform == "win32", reason="reading a pipe cannot be interrupted there")
def test_reading_a_pipe_that_does_not_wait_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    ended, end = os.pipe()
    os.set_blocking(reading, False)
    waits: list[object] = []

    def wait(descriptors: tuple[int, int], *_: object) -> tuple[list[int], list[int], list[int]]:
        waits.append(descriptors)
        if len(waits) == 2:
            os.write(writing, b"later")
        return [descriptors[len(waits) == 3]], [], []

    monkeypatch.setattr(select, "select", wait)
    assert list(chunks_of(reading, ended)) == [b"later"]
    assert len(waits) == 3
    for each in (reading, writing, ended, end):
        os.close(each)


@pytest.mark.parametrize("modules", [("mcp", "mcp_types", "anyio", "asyncio", "pydantic", "starlette")])
def test_the_sdk_is_not_loaded(store: Path, modules: tuple[str, ...]) -> None:
    code = "import atexit, sys\nfrom recollect.cli import main\n"
    code += "atexit.register(lambda: print(sorted(sys.modules), file=sys.stderr))\nmain()"
    command = [sys.executable, "-c", code, "mcp", "--db", str(store), "--read-only"]
    lines = b"\n".join([line(1, "initialize", hello()), call(2, "recall", question="tea")])
    done = subprocess.run(command, input=lines, capture_output=True, timeout=120, check=True)
    assert len(done.stdout.splitlines()) == 2
    loaded = done.stderr.decode()
    assert not [name for name in modules if f"'{name}'" in loaded]
    assert "'numpy'" in loaded  # the control


def test_lines_are_parsed_as_messages_or_refused() -> None:
    assert parsed(b" ") is None
    assert parsed(line(1, "ping")) == Message(1, "ping", {})
    assert parsed(b'{"jsonrpc":"2.0","id":1,"result":{}}') == Message(1, None, {})
    refused: Iterator[Any] = map(parsed, (b"{", b"7", b'{"jsonrpc":"2.0","id":1,"method":"x","params":3}', b"NaN"))
    assert [(each.id, each.code) for each in refused if isinstance(each, Refusal)] == [
        (None, -32700),
        (None, -32600),
        (1, -32600),
        (None, -32600),
    ]
