"""Hostile clients of the MCP server: each gets an error that names the fault, and the server serves the next call."""

from __future__ import annotations

import http.client
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.examples import FULL
from torture.mcp_client import HttpClient, HttpServer, Message, StdioClient, failed, request, text_of

from recollect.server.mcp.handshake import REQUESTS
from recollect.server.mcp.lines import MOST_BYTES
from recollect.server.mcp.toolsets import TOOLSETS

#: A value of each JSON type.
VALUES: dict[str, Any] = {
    "string": "x",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
OWN = {tool.name for tool in TOOLSETS["recollect"]}
PING = b'{"jsonrpc":"2.0","id":"ping","method":"ping"}'


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StdioClient]:
    """A server that all hostile messages of this module are sent to."""
    with StdioClient(tmp_path_factory.mktemp("hostile") / "memory.db") as started:
        yield started.hello()


@pytest.fixture
def client(shared: StdioClient) -> Iterator[StdioClient]:
    """The server, which must still remember and find things after the test."""
    yield shared
    result = shared.call("remember", {"content": "Ana prefers window seats", "id": "seat"})
    assert not failed(result), result
    found = shared.call("get", {"id": "seat"})["structuredContent"]
    assert found["record"]["content"] == "Ana prefers window seats"


def valid(schema: Message) -> Any:
    """A value that matches a schema."""
    if schema["type"] == "object":
        return {name: valid(schema["properties"][name]) for name in schema.get("required", ())}
    if schema["type"] == "array":
        return [valid(schema["items"])]
    return schema["enum"][0] if "enum" in schema else schema.get("minimum", VALUES[schema["type"]])


def broken(schema: Message, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what is wrong, and the value with this fault, for each fault that a value of a schema can have."""
    accepted = {schema["type"]} | ({"integer"} if schema["type"] == "number" else set())
    for kind, other in VALUES.items():
        if kind not in accepted:
            yield f"expected {schema['type']}", other
    if schema["type"] == "array":
        yield from ((fault, [value[0], wrong]) for fault, wrong in broken(schema["items"], value[0]))
    if schema["type"] == "object":
        for name, below in schema["properties"].items():
            inner = value[name] if name in value else valid(below)
            yield from ((fault, {**value, name: wrong}) for fault, wrong in broken(below, inner))
        for name in schema.get("required", ()):
            yield f"received undefined at {name}", {key: each for key, each in value.items() if key != name}
    if "minimum" in schema:
        yield ("Too small", schema["minimum"] - 1)
    if "maximum" in schema:
        yield ("Too big", schema["maximum"] + 1)
    if "enum" in schema:
        yield ("expected one of", "none of them")


def test_every_argument_of_a_wrong_type_is_named_in_an_error(client: StdioClient) -> None:
    tools = client.wait(client.send("tools/list"))["result"]["tools"]
    sent = []
    for tool in tools:
        schema = tool["inputSchema"]
        for fault, wrong in broken({**schema, "type": "object"}, valid(schema)):
            optional = wrong.keys() - set(schema.get("required", ())) if isinstance(wrong, dict) else ()
            if tool["name"] in OWN and any(wrong[name] is None for name in optional):
                continue  # null is an argument that is left out
            if isinstance(wrong, dict):  # the protocol itself refuses other arguments
                sent.append((tool["name"], fault, wrong, client.send_call(tool["name"], wrong)))
    assert len(sent) > 500
    for name, fault, wrong, number in sent:
        result = client.wait(number).get("result")
        if name in ("read_graph", "stats", "snapshot") and not wrong:
            continue
        assert result is not None, (name, wrong)
        assert failed(result), (name, wrong, result)
        assert fault.partition(" at ")[0] in text_of(result), (name, wrong, text_of(result))


def test_an_unknown_argument_is_refused_by_our_tools_and_ignored_by_those_of_the_reference_server(
    client: StdioClient,
) -> None:
    for tool in client.wait(client.send("tools/list"))["result"]["tools"]:
        result = client.call(tool["name"], {**valid(tool["inputSchema"]), "quetsion": 1})
        if tool["name"] in OWN:
            assert "Unrecognized key: 'quetsion'" in text_of(result)
        else:
            assert "quetsion" not in text_of(result)


@pytest.mark.parametrize("arguments", [[], 5, "x", True])
def test_arguments_that_are_no_object_are_an_error(client: StdioClient, arguments: object) -> None:
    answer = client.wait(client.send("tools/call", {"name": "stats", "arguments": arguments}))
    assert answer["error"]["code"] == -32602


def test_the_error_for_a_million_wrong_values_is_short(client: StdioClient) -> None:
    text = text_of(client.call("create_entities", {"entities": [1] * 1_000_000}))
    assert text.count("expected object, received number") == 20
    assert text.endswith("(further problems are not listed)")
    text = text_of(client.call("recall", {"question": "x", **{f"key {number}": 1 for number in range(100_000)}}))
    assert len(text) < 10_000


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("recall", {"question": "x", "k" * 1_000_000: 1}),
        ("recall", {"question": "x", "cursor": "1" * 1_000_000}),
        ("recall", {"question": "x " * 1_000_000}),
        ("recall", {"question": "x", "where": "(" * 50_000 + "user=a" + ")" * 50_000}),
        ("find", {"where": "not " * 25_000 + "user=a"}),
        ("find", {"where": "nope=a and " * 10_000 + "user=a"}),
        ("find", {"cursor": "x" * 1_000_000}),
        ("get", {"id": "x" * 1_000_000}),
        ("get", {"id": "\x00"}),
        ("update", {"id": "seat", "remove": ["x" * 1_000_000]}),
        ("remember", {"content": "x" * 2_000_000}),
        ("remember", {"content": ""}),
        ("remember", {"content": "x", "metadata": {"a": float("nan")}}),
        ("remember", {"content": "x", "metadata": {"a": 10**400}}),
        ("remember", {"content": "x", "time": "x" * 100_000}),
        ("create_entities", {"entities": [{"name": "n" * 2_000_000, "entityType": "t", "observations": []}]}),
        ("create_entities", {"entities": [{"name": "n", "entityType": "t", "observations": ["x" * 2_000_000]}]}),
        ("add_observations", {"observations": [{"entityName": "nobody", "contents": ["x"]}]}),
    ],
)
def test_values_that_cannot_be_used_are_refused_with_a_short_text(
    client: StdioClient, tool: str, arguments: dict[str, Any]
) -> None:
    result = client.call(tool, arguments)
    assert failed(result)
    assert 20 < len(text_of(result)) < 1000


def test_a_filter_of_a_hundred_kilobytes_is_evaluated(client: StdioClient) -> None:
    where = " or ".join(f"user=u{number}" for number in range(8000))
    assert len(where) > 100_000
    assert not failed(client.call("find", {"where": where}))


def test_thousands_of_entities_in_one_call_are_one_commit(client: StdioClient) -> None:
    entities = [
        {"name": f"many {number}", "entityType": "t", "observations": []} for number in range(10_000 if FULL else 2000)
    ]
    created = client.call("create_entities", {"entities": entities})["structuredContent"]["entities"]
    assert len(created) == len(entities)
    newest = client.call("log", {"limit": 1})["structuredContent"]["commits"][0]
    assert len(newest["changes"]) + newest["further_changes"] == len(entities)
    result = client.call("read_graph", {})
    assert text_of(result).splitlines()[-1].startswith("Incomplete:")
    client.call("delete_entities", {"entityNames": [each["name"] for each in entities]})


def test_unknown_tools_and_methods_are_errors(client: StdioClient) -> None:
    assert text_of(client.call("nope", {})) == "MCP error -32602: Tool nope not found"
    assert client.wait(client.send("nope"))["error"]["code"] == -32601


#: Lines that are no messages -> the id and the code of the answer.
LINES: list[tuple[bytes, object, int]] = [
    (b"{nope", None, -32700),
    (b"\xff\xfe", None, -32700),
    (b"null", None, -32600),
    (b"[]", None, -32600),
    (b"5", None, -32600),
    (b'{"jsonrpc":"2.0","id":"a"}', "a", -32600),
    (b'{"jsonrpc":"1.0","id":"b","method":"ping"}', "b", -32600),
    (b'{"jsonrpc":"2.0","id":"c","method":5}', "c", -32600),
    (b'{"jsonrpc":"2.0","id":"d","method":"tools/call","params":[]}', "d", -32600),
    (b'{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"\\ud800"}}', "e", -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', None, -32600),
    (b'{"jsonrpc":"2.0","id":"f","method":"ping","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}", None, -32700),
    (b'{"jsonrpc":"2.0","id":"g","method":"ping","params":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}", "g", -32600),
    (b'{"jsonrpc":"2.0","id":"h","method":"ping","params":{"a":"' + b"x" * 5_000_000 + b'"}}', None, -32600),
    (b'{"jsonrpc":"2.0","method":"' + b"x" * MOST_BYTES, None, -32600),
]


@pytest.mark.parametrize(("line", "number", "code"), LINES, ids=[str(at) for at in range(len(LINES))])
def test_a_line_that_is_no_message_is_refused_and_the_next_is_answered(
    client: StdioClient, line: bytes, number: object, code: int
) -> None:
    client.answers.clear()
    client.write(line, PING)
    assert client.wait("ping")["result"] == {}
    assert client.wait(number)["error"]["code"] == code
    assert {each: len(answers) for each, answers in client.answers.items()} == {"ping": 1, number: 1}


def test_requests_that_are_cancelled_make_room_for_others(client: StdioClient) -> None:
    cancelled = []
    for _ in range(300):
        number = client.send_call("recall", {"question": "where does Ana sit?"})
        client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        cancelled.append(number)
    # More than there is room for, so that a request that still took up room would be missed.
    assert all(client.wait(client.send("ping"))["result"] == {} for _ in range(4 * REQUESTS))
    assert all(len(client.answers[number]) < 2 for number in cancelled)


def test_the_same_id_for_several_requests_takes_up_no_room(client: StdioClient) -> None:
    client.answers.clear()
    client.write(*[PING] * (4 * REQUESTS))
    client.wait_for(4 * REQUESTS)
    assert len(client.answers["ping"]) == 4 * REQUESTS
    assert client.wait(client.send("ping"))["result"] == {}


#: Parameters that each request of the protocol without sessions has.
META = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "hostile", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
}
LISTEN = {**META, "notifications": {"resourceSubscriptions": ["memory://knowledge-graph"]}}


def test_the_id_of_an_open_subscription_is_refused_for_a_call_and_takes_up_no_room(tmp_path: Path) -> None:
    with StdioClient(tmp_path / "memory.db") as client:
        client.read()
        call = {**META, "name": "stats", "arguments": {}}
        for number in range(REQUESTS):
            client.write(request("subscriptions/listen", LISTEN, f"s{number}"))
            client.write(request("tools/call", call, f"s{number}"))
        refusals = [client.wait(f"s{number}")["error"] for number in range(REQUESTS)]
        assert all("use another id for each request" in each["message"] for each in refusals)
        for _ in range(2 * REQUESTS):
            assert not failed(client.wait(client.send("tools/call", call))["result"])
        assert client.close() == 0


def test_subscriptions_that_stay_open_leave_room_for_requests(tmp_path: Path) -> None:
    with StdioClient(tmp_path / "memory.db") as client:
        client.read()
        for _ in range(2 * REQUESTS):
            client.send("subscriptions/listen", LISTEN)
        answer = client.wait(client.send("tools/list", META))
        assert len(answer["result"]["tools"]) == sum(len(TOOLSETS[name]) for name in ("recollect", "reference"))
        assert all(answers == [answer] for answers in client.answers.values() if answers)


def test_a_client_that_does_not_read_is_answered_once_it_does_in_bounded_memory_and_delays_no_other(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    nbytes, count, pings = LARGE_BYTES, 25, 2000
    # The answer names the tool, so that it is as large as the request.
    flood = [request("tools/call", {"name": "x" * nbytes, "arguments": {}}, number) for number in range(count)]
    flood += [request("ping", None, number) for number in range(count, count + pings)]
    written = 0
    progress = threading.Condition()

    def write() -> None:
        nonlocal written
        with suppress(BrokenPipeError):
            for message in flood:
                hostile.write(message)
                with progress:
                    written += 1
                    progress.notify_all()

    with StdioClient(path) as hostile, StdioClient(path) as other, ExitStack() as stack:
        stack.callback(hostile.kill)  # if the test fails, the writer waits for it
        hostile.write(request("initialize", INITIALIZE, "hello"))
        hostile.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        writer = threading.Thread(target=write)
        writer.start()
        with progress:
            assert progress.wait_for(lambda: written >= REQUESTS, 120)
        other.hello()
        assert not failed(other.call("remember", {"content": "Bob lives in Rome", "id": "bob"}))
        assert other.call("get", {"id": "bob"})["structuredContent"]["record"]["content"] == "Bob lives in Rome"
        # Lines are larger than pipes, so that what is written was read, except a few lines.
        assert written <= AHEAD, "the server goes on reading requests while answers are not read"
        hostile.read()
        writer.join()
        hostile.wait_for(len(flood) + 1)
        assert all(len(hostile.answers[message["id"]]) == 1 for message in flood)
        if sys.platform == "linux":  # the other server is the same program without a flood
            peak, usual = _peak_bytes(hostile.process.pid), _peak_bytes(other.process.pid)
            assert peak < usual + READ_AHEAD_BYTES, (peak, usual)


def _peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "hostile", "version": "1"}}
#: Requests that are read ahead: those that are not answered, and those on their way from the pipe to them.
AHEAD = REQUESTS + 8
#: The size of a request of the flood: larger than a pipe.
LARGE_BYTES = 1_000_000
#: Each of the requests that a server reads ahead needs four times its size.
READ_AHEAD_BYTES = AHEAD * 4 * LARGE_BYTES


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with HttpServer(tmp_path_factory.mktemp("http") / "memory.db") as started:
        yield started


def test_a_client_over_http_that_never_reads_delays_no_other(server: HttpServer) -> None:
    address = urlsplit(server.url)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = json.dumps(request("tools/call", {"name": "x" * 2_000_000, "arguments": {}}, 1)).encode()
    never_reading = []
    for _ in range(20):
        hello = HttpClient(server.url)
        connection = http.client.HTTPConnection(address.netloc)
        connection.request("POST", address.path, body, {**headers, **hello.session})
        never_reading.append(connection)
        hello.close()
    client = HttpClient(server.url)
    assert not failed(client.call("remember", {"content": "Ana lives in Oslo", "id": "ana"}))
    assert client.call("get", {"id": "ana"})["structuredContent"]["record"]["content"] == "Ana lives in Oslo"
    client.close()
    for connection in never_reading:
        connection.close()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{nope", 400),
        (b"null", 400),
        (b"[]", 400),
        (b'{"jsonrpc":"2.0","id":"a"}', 400),
        (b'{"jsonrpc":"2.0","id":"f","method":"ping","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        (b'{"jsonrpc":"2.0","id":"h","method":"ping","params":{"a":"' + b"x" * 5_000_000 + b'"}}', 413),
        (b'{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"\\ud800"}}', 400),
    ],
    ids=["no JSON", "null", "list", "no method", "deep", "large", "surrogate"],
)
def test_a_body_over_http_that_is_no_message_is_refused_and_the_next_is_answered(
    server: HttpServer, body: bytes, status: int
) -> None:
    client = HttpClient(server.url)
    assert client.post(body)[0] == status
    client.close()
    client = HttpClient(server.url)
    assert not failed(client.call("stats", {}))
    client.close()
