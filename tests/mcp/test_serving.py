"""`recollect mcp` over both transports: its options, the import at the first start, tokens, and several clients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPDeprecationWarning
from tests.mcp.clients import WITH_BOTH, in_process, over_http, over_stdio

import recollect
from recollect.cli import main
from recollect.errors import InvalidArgumentError
from recollect.importers import import_path, write_graph
from recollect.server.addresses import SAFE_HEADERS, address_of, is_loopback
from recollect.server.mcp.guidance import import_graph
from recollect.server.mcp.lines import MOST_BYTES, split
from recollect.server.mcp.reference import RESOURCE
from recollect.server.mcp.tools import Access

TOKEN = "a-token-of-thirty-two-characters"
LINES: list[dict[str, Any]] = [
    {"type": "entity", "name": "Ines", "entityType": "person", "observations": ["repairs boilers"]},
    {"type": "entity", "name": "Otto", "entityType": "person", "observations": []},
    {"type": "relation", "from": "Ines", "to": "Otto", "relationType": "knows"},
]
GRAPH = {
    "entities": [{key: value for key, value in line.items() if key != "type"} for line in LINES[:2]],
    "relations": [{key: value for key, value in LINES[2].items() if key != "type"}],
}


def graph_file(path: Path, *, extra: str = "") -> str:
    text = "\n".join(json.dumps(line) for line in LINES) + extra
    path.write_text(text)
    return text


@contextmanager
def http_server(store: Path, *options: str, host: str = "127.0.0.1") -> Iterator[str]:
    """Start `recollect mcp --http` and yield its address."""
    command = [
        sys.executable,
        "-m",
        "recollect",
        "mcp",
        "--db",
        str(store),
        "--http",
        f"{host}:0",
        *WITH_BOTH,
        *options,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert "listening on " in line, line + process.stderr.read()
            yield line.split("listening on ")[1].strip()
        finally:
            process.terminate()


def test_a_memory_outlasts_the_server_over_stdio(tmp_path: Path) -> None:
    store = tmp_path / "folder-that-exists.db"
    with over_stdio(store, "--user", "ana") as server:
        assert server.client.server_info is not None
        assert server.client.server_info.name == "recollect"
        assert server.ok("recall", question="seat") == {"hits": []}
        assert not store.exists()  # reading creates nothing
        server.ok("remember", content="Ana prefers window seats")
    with over_stdio(store, "--read-only") as server:
        assert server.ok("recall", question="seat")["hits"][0]["user"] == "ana"


@pytest.mark.files
def test_answers_are_written_even_if_the_input_has_ended(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {
                "jsonrpc": "2.0",
                "id": at,
                "method": "tools/call",
                "params": {"name": "remember", "arguments": {"content": f"fact {at}"}},
            }
            for at in range(2, 60)
        ),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "recollect", "mcp", "--db", str(tmp_path / "a.db"), *WITH_BOTH],
        input="".join(json.dumps(message) + "\n" for message in messages),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["id"] for each in answers] == list(range(1, 60))  # in the order of the requests
    with recollect.open(tmp_path / "a.db") as memory:
        assert memory.count() == 58


def test_a_client_that_stops_reading_and_closes_its_end_ends_the_server_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recollect", "mcp", "--db", str(tmp_path / "a.db")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write("not JSON\n")
        process.stdin.flush()
        assert "-32700" in process.stdout.readline()
        process.stdout.close()
        with suppress(BrokenPipeError):
            while process.poll() is None:
                process.stdin.write("not JSON\n")
                process.stdin.flush()
        status, said = process.wait(60), process.stderr.read()
        with suppress(BrokenPipeError):
            process.stdin.close()
    assert (status, said) == (0, "")


@given(st.lists(st.binary(max_size=5) | st.just(b"\n"), max_size=20))
def test_lines_are_the_same_however_they_arrive(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    assert list(split(iter(chunks))) == whole.removesuffix(b"\n").split(b"\n") * bool(whole)


def test_of_a_line_that_is_too_long_only_the_beginning_is_read() -> None:
    chunks = [b"a\n", *[b"x" * 2**20] * 50, b"y\nb\n"]
    first, long, last = split(iter(chunks))
    assert (first, last) == (b"a", b"b")
    assert MOST_BYTES < len(long) <= MOST_BYTES + 2**20 + 2


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_clients_over_http_share_a_memory(tmp_path: Path, mode: str) -> None:
    with (
        http_server(tmp_path / "a.db") as url,
        over_http(url, mode=mode) as one,
        over_http(url, mode=mode) as other,
    ):
        one.ok("create_entities", entities=[GRAPH["entities"][0]])
        assert other.ok("create_entities", entities=GRAPH["entities"])["entities"] == GRAPH["entities"][1:]
        assert one.ok("read_graph") == other.ok("read_graph") == {**GRAPH, "relations": []}


def test_http_requires_the_token_and_a_host_of_this_machine(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()

    def status(url: str, **headers: str) -> int:
        accept = "application/json, text/event-stream"
        request = urllib.request.Request(
            url, body, {"Content-Type": "application/json", "Accept": accept, **headers}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    with http_server(tmp_path / "a.db", host="127.0.0.2") as url:  # other names of this machine are guarded, too
        assert status(url) not in (403, 421)
        assert status(url, Host="evil.example") == 421
        assert status(url, Origin="http://evil.example") == 403
    with http_server(tmp_path / "a.db", "--token-file", str(token)) as url:
        assert status(url) == 401
        assert status(url, Authorization="Bearer wrong") == 401
        assert status(url, Authorization=f"Bearer {TOKEN}") != 401
        assert status(url, Authorization=f"Bearer {TOKEN}", Host="evil.example") == 421
        assert status(url, Authorization=f"Bearer {TOKEN}", Origin="http://evil.example") == 403


@pytest.mark.files
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--http", "0.0.0.0:0"], "--token-file"),
        (["--http", "nonsense"], "HOST:PORT"),
        (["--user", ""], "is empty: name a user"),
        (["--db", "missing/a.db"], "check the path"),
        (["--db", "TOKEN"], "not a Recollect store"),
        (["--tools", "magic"], "must be one of: daily, recollect, reference"),
        (["--tools", ","], "must name one or more"),
        (["--token-file", "TOKEN"], "is for --http"),
        (["--http", "127.0.0.1:0", "--token-file", "SHORT"], "16 to 4096"),
        (["--http", "127.0.0.1:0", "--token-file", "MISSING"], "cannot be read"),
    ],
)
def test_an_invalid_option_is_an_error_that_says_what_to_do(
    tmp_path: Path,
    arguments: list[str],
    reason: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "TOKEN").write_text(TOKEN)
    (tmp_path / "SHORT").write_text("short")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["recollect", "mcp", "--db", "a.db", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 1
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:0", ("::1", 0)), ("localhost:65535", ("localhost", 65535))],
)
def test_addresses_have_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    assert address_of(text) == expected
    assert is_loopback(expected[0])


@pytest.mark.parametrize("text", ["", ":80", "localhost", "localhost:", "localhost:x", "localhost:70000", "a:-1"])
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        address_of(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_hosts_that_others_reach_are_no_loopback(host: str) -> None:
    assert not is_loopback(host)


def opener(path: Path) -> Callable[..., recollect.Memory]:
    def opened(*, create: bool, read_only: bool) -> recollect.Memory:
        return recollect.open(path, create=create, read_only=read_only)

    return opened


def test_the_file_of_the_reference_server_is_imported_once_and_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    text = graph_file(file, extra='\nnot JSON\n{"type": "entity", "name": "half"}\n')
    said: list[str] = []
    with closing(Access(opener(tmp_path / "a.db"))) as access:
        import_graph(access, str(file), report=said.append)
        assert "imported 4 records" in said[0]
        assert [line.split(": ")[1] for line in said[1:]] == ["line 4", "line 5"]
        with in_process(access.reading(), ["reference"]) as server:
            assert server.ok("read_graph") == GRAPH
            server.ok("delete_entities", entityNames=["Ines"])
        access.writing().forget_where("kind=import")
        import_graph(access, str(file), report=said.append)
        assert [each.name for each in access.graph.refresh().entities()] == ["Otto"]
        assert len(said) == 3
    assert file.read_text() == text


def test_a_file_that_has_changed_since_its_import_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    said: list[str] = []
    with closing(Access(opener(tmp_path / "a.db"))) as access:
        for extra in ("", "", '\n{"type": "entity", "name": "new", "entityType": "t", "observations": []}\n'):
            if extra or not file.exists():
                graph_file(file, extra=extra)
            import_graph(access, str(file), report=said.append)
        assert len(said) == 2
        assert "has changed since its import" in said[1]
        assert len(access.graph.refresh().entities()) == 2


def test_a_missing_or_invalid_file_creates_no_store(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "other.json").write_text('{"some": "json"}')
    with closing(Access(opener(tmp_path / "a.db"))) as access:
        import_graph(access, str(tmp_path / "missing"), report=said.append)
        assert "there is no file" in said.pop()
        import_graph(access, str(tmp_path / "other.json"), report=said.append)
        assert "was not imported" in said[0]
    assert not (tmp_path / "a.db").exists()


def test_a_server_that_only_reads_imports_nothing(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    graph_file(file)
    said: list[str] = []
    with closing(Access(opener(tmp_path / "a.db"), read_only=True)) as access:
        import_graph(access, str(file), report=said.append)
    assert "can only read" in said[0]


@pytest.mark.parametrize("path", ["~no-such-user/x", "x" * 300, "nul\0byte"])
def test_a_path_that_cannot_be_used_is_reported(tmp_path: Path, path: str) -> None:
    said: list[str] = []
    with closing(Access(opener(tmp_path / "a.db"))) as access:
        import_graph(access, path, report=said.append)
    assert "MEMORY_FILE_PATH" in said[0]


def test_the_variable_names_the_file_for_the_command(tmp_path: Path) -> None:
    graph_file(tmp_path / "memory.jsonl")
    with over_stdio(tmp_path / "a.db", MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl")) as server:
        assert server.ok("read_graph") == GRAPH
        assert server.ok("recall", question="who repairs boilers?")["hits"][0]["entity_name"] == "Ines"


def test_an_export_is_the_file_that_was_imported(tmp_path: Path) -> None:
    file, exported = tmp_path / "memory.jsonl", tmp_path / "exported.jsonl"
    graph_file(file)
    with recollect.open(tmp_path / "a.db") as memory:
        report = import_path(memory, "mcp-memory", file)
        assert (report.created, report.damaged) == (4, ())
        assert import_path(memory, "mcp-memory", file).unchanged == 4
        with exported.open("w", encoding="utf-8", newline="\n") as out:
            assert write_graph(memory, out) == 3
    assert [json.loads(line) for line in exported.read_text().splitlines()] == LINES


def test_subscribers_are_notified_of_changes_by_other_processes(tmp_path: Path) -> None:
    with (
        recollect.open(tmp_path / "a.db") as memory,
        recollect.open(tmp_path / "a.db") as other,
        in_process(memory) as server,
    ):
        with pytest.warns(MCPDeprecationWarning):  # the newest protocol has replaced it
            server.run(server.client.subscribe_resource, RESOURCE)
        other.remember("no part of the graph")
        other.record_entity_fact("bo", "Bo", "is a cat")
        assert server.updates.get(timeout=60) == RESOURCE
        with pytest.warns(MCPDeprecationWarning):
            server.run(server.client.unsubscribe_resource, RESOURCE)
        other.record_entity_fact("bo", "Bo", "sleeps")
        server.ok("delete_entities", entityNames=["Bo"])
        assert server.updates.empty()


@pytest.mark.files
def test_subscribers_are_notified_of_changes_in_a_store_that_replaced_theirs(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    recollect.open(path).close()
    with in_process(lambda **options: recollect.open(path, create=options["create"])) as server:
        with pytest.warns(MCPDeprecationWarning):
            server.run(server.client.subscribe_resource, RESOURCE)
        with recollect.open(tmp_path / "b.db") as other:
            other.record_entity_fact("bo", "Bo", "is a cat")
        for suffix in ("", "-wal", "-shm"):
            (tmp_path / f"a.db{suffix}").unlink(missing_ok=True)
        (tmp_path / "b.db").rename(path)
        assert server.updates.get(timeout=60) == RESOURCE
        assert [each["name"] for each in server.ok("read_graph")["entities"]] == ["Bo"]


@pytest.mark.files
def test_a_call_after_the_file_was_deleted_reads_and_writes_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with in_process(lambda **options: recollect.open(path, create=options["create"])) as server:
        server.ok("remember", content="likes tea")
        for suffix in ("", "-wal", "-shm"):
            (tmp_path / f"a.db{suffix}").unlink(missing_ok=True)
        result = server.call("remember", content="likes coffee")
        if result.is_error:
            server.ok("remember", content="likes coffee")
        assert [each["content"] for each in server.ok("find")["records"]] == ["likes coffee"]
        assert path.exists()


def test_listeners_of_the_newer_protocol_are_notified_too(tmp_path: Path) -> None:
    with (
        recollect.open(tmp_path / "a.db") as memory,
        recollect.open(tmp_path / "a.db") as other,
        in_process(memory, mode="auto") as server,
    ):

        async def listen() -> str:
            async with server.client.listen(resource_subscriptions=[RESOURCE]) as events:
                other.record_entity_fact("bo", "Bo", "is a cat")
                async for event in events:
                    return str(event)
            return ""

        assert RESOURCE in server.run(listen)


def test_without_the_extra_the_command_names_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['mcp'] = None")
    done = subprocess.run(
        [sys.executable, "-m", "recollect", "mcp"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1
    assert "pip install 'recollect[mcp]'" in done.stderr


@contextmanager
def closing(access: Access) -> Iterator[Access]:
    try:
        yield access
    finally:
        access.close()


@pytest.mark.parametrize("with_token", [False, True])
def test_pages_of_other_sites_are_refused_also_without_an_origin_and_answers_protect_themselves(
    tmp_path: Path, with_token: bool
) -> None:
    token = tmp_path / "token"
    token.write_text("a" * 40)
    token.chmod(0o600)
    with http_server(tmp_path / "a.db", *(["--token-file", str(token)] if with_token else [])) as address:
        for site in ("cross-site", "same-site", None):
            request = urllib.request.Request(address, headers={} if site is None else {"Sec-Fetch-Site": site})
            if with_token:
                request.add_header("Authorization", f"Bearer {'a' * 40}")
            with pytest.raises(urllib.error.HTTPError) as refused:  # a GET without a session has no answer either
                urllib.request.urlopen(request, timeout=30)
            with refused.value as answer:
                assert (answer.code == 403) is (site is not None)
                assert [answer.headers[name] for name, _ in SAFE_HEADERS] == [value for _, value in SAFE_HEADERS]


def test_who_starts_it_in_a_terminal_reads_what_it_waits_for(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recollect", "mcp", "--db", str(tmp_path / "a.db")]
    terminal, theirs = os.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        os.close(theirs)
        assert process.stderr is not None
        assert "let an MCP client start this command" in process.stderr.readline()
        os.write(terminal, b"\x04")
        assert process.communicate()[0] == ""
    os.close(terminal)
    assert process.returncode == 0
    by_a_client = subprocess.run(command, input="", capture_output=True, text=True, check=True)
    assert (by_a_client.stdout, by_a_client.stderr) == ("", "")
