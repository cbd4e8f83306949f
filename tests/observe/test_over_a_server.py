"""A client's span and the spans of its server are one trace, and clients and servers of any release work together."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode
from tests.http.serving import Server
from tests.http.serving import served as served_over_http
from tests.observe.recorded import CONTENT, QUESTION, Recorded, is_child, said
from tests.paths import ROOT
from tests.server.serving import Served

import recollect
from recollect import errors
from recollect import operations as ops
from recollect.observe import traced
from recollect.observe.serving import continued

DOORS = ("socket", "http")
_PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
_TRACE, _SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331


@pytest.fixture
def of_server() -> Recorded:
    """The spans of the server. Those of the client have a provider of their own."""
    return Recorded()


@pytest.fixture
def served(tmp_path: Path, of_server: Recorded) -> Iterator[Served]:
    """A server that makes spans."""
    with Served(tmp_path, calls_continued=continued) as server:
        server.served._view = lambda memory: traced(memory, of_server.provider)
        yield server
        problems = list(server.problems)
    assert problems == []


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Served]:
    """A server that makes no spans."""
    with Served(tmp_path) as server:
        yield server


@pytest.mark.parametrize("door", DOORS)
def test_the_span_of_the_server_is_a_child_of_the_clients(
    door: str, served: Served, recorded: Recorded, of_server: Recorded
) -> None:
    with traced(served.memory(door), recorded.provider) as memory:
        memory.remember(CONTENT, id="note")
        memory.recall(QUESTION)
        memory.forget("note")
    sent, executed = recorded.taken(), of_server.taken()
    assert [span.name for span in sent] == ["upsert_memory", "search_memory", "delete_memory"]
    assert [span.name for span in executed] == [span.name for span in sent]
    for own, other in zip(sent, executed, strict=True):
        assert (own.kind, other.kind) == (SpanKind.CLIENT, SpanKind.SERVER)
        assert is_child(other, own)


@pytest.mark.parametrize("door", DOORS)
def test_a_batch_is_one_trace(door: str, served: Served, recorded: Recorded, of_server: Recorded) -> None:
    with traced(served.memory(door), recorded.provider) as memory, memory.batch() as batch:
        batch.remember(CONTENT)
        batch.get("note")
    whole, remember = recorded.taken()
    executed = {span.name: span for span in of_server.taken()}
    assert executed.keys() == {"recollect.batch", "upsert_memory"}
    assert is_child(remember, whole)
    assert is_child(executed["recollect.batch"], whole)
    assert is_child(executed["upsert_memory"], remember)


@pytest.mark.parametrize("door", DOORS)
def test_a_context_is_one_span_of_the_client_and_its_searches_are_the_servers(
    door: str, served: Served, recorded: Recorded, of_server: Recorded
) -> None:
    with traced(served.memory(door), recorded.provider) as memory:
        memory.remember(CONTENT)
        recorded.taken(), of_server.taken()
        memory.context(QUESTION)
    span = recorded.one()
    assert said(span)["recollect.operation"] == "context"
    searches = of_server.taken()
    assert searches
    assert all(is_child(each, span) for each in searches)


@pytest.mark.parametrize("door", DOORS)
def test_the_address_of_the_server_is_stated_without_a_folder(door: str, served: Served, recorded: Recorded) -> None:
    with traced(served.memory(door), recorded.provider) as memory:
        memory.remember(CONTENT)
    attributes = said(recorded.one())
    address = (
        {"server.address": "127.0.0.1", "server.port": served.http[1]} if door == "http" else {"server.address": "s"}
    )
    assert {key: value for key, value in attributes.items() if key.startswith("server.")} == address
    assert "gen_ai.memory.store.id" not in attributes
    assert served.socket_path.name == "s"


@pytest.mark.parametrize("door", DOORS)
def test_an_error_has_the_same_code_on_both_sides(
    door: str, served: Served, recorded: Recorded, of_server: Recorded
) -> None:
    with traced(served.memory(door), recorded.provider) as memory, pytest.raises(errors.UnknownRecordError):
        memory.update("nowhere", content=CONTENT)
    for span in (recorded.one(), of_server.one()):
        assert (span.status.status_code, said(span)["error.type"]) == (StatusCode.ERROR, "unknown_record")


@pytest.mark.parametrize("door", DOORS)
def test_an_untraced_client_begins_a_trace_on_the_server(door: str, served: Served, of_server: Recorded) -> None:
    with served.memory(door) as memory:
        memory.remember(CONTENT)
    span = of_server.one()
    assert (span.kind, span.parent) == (SpanKind.INTERNAL, None)


@pytest.mark.parametrize("door", DOORS)
def test_requests_do_not_inherit_the_trace_of_those_before_them(
    door: str, served: Served, recorded: Recorded, of_server: Recorded
) -> None:
    with served.memory(door) as memory:
        traced(memory, recorded.provider).remember(CONTENT)
        memory.remember(f"{CONTENT} again")
    first, second = of_server.taken()
    assert first.parent is not None
    assert second.parent is None


@pytest.mark.parametrize("door", DOORS)
def test_a_traced_client_works_with_a_server_that_makes_no_spans(door: str, plain: Served, recorded: Recorded) -> None:
    with traced(plain.memory(door), recorded.provider) as memory:
        memory.remember(CONTENT)
        with memory.batch() as batch:
            batch.remember("another")
        assert len(memory.recall(QUESTION)) >= 1
    assert [span.name for span in recorded.taken()] == [
        *("upsert_memory", "recollect.batch", "upsert_memory", "search_memory")
    ]


def test_a_client_sends_no_trace_to_a_socket_that_does_not_say_that_it_reads_traces(
    plain: Served, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier release refuses a line with a key that it does not know, as this server is made to do here."""

    def earlier(data: object) -> dict[str, str]:
        if data is not None:
            raise errors.InvalidOperationError("trace", "is not a field of recall")
        return {}

    monkeypatch.setattr("recollect.server.socket.connection.read_trace", earlier)
    with traced(plain.memory("socket"), recorded.provider) as memory:
        memory.remember(CONTENT)
        assert len(memory.recall(QUESTION)) == 1
    with plain.line_client() as client:
        assert "traces" not in client.ask({"action": "ping"})
        assert client.code({"op": "count", "trace": {}}) == "invalid_operation"


def test_a_socket_that_makes_spans_says_so(served: Served) -> None:
    with served.line_client() as client:
        assert client.ask({"action": "ping"})["traces"] is True


def test_a_line_can_have_a_trace_beside_any_request(served: Served, of_server: Recorded) -> None:
    trace = {"traceparent": _PARENT, "tracestate": "a=1"}
    with served.line_client() as client:
        assert client.ask({"op": "remember", "content": CONTENT, "trace": trace})["ok"]
        assert client.ask({"action": "store", "text": "a text about birds", "trace": trace})["ok"]
        assert client.ask({"op": "count", "trace": trace})["ok"]
    spans = of_server.taken()
    remote = [span.parent for span in spans if span.parent is not None and span.parent.is_remote]
    assert len(remote) >= 2
    assert {(each.trace_id, each.span_id, each.trace_state.to_header()) for each in remote} == {(_TRACE, _SPAN, "a=1")}
    assert all(span.parent is not None and span.parent.trace_id == _TRACE for span in spans)


@pytest.mark.parametrize("trace", [1, [], "00-1", {"traceparent": 1}, {"baggage": "user=ana"}])
def test_a_line_whose_trace_has_another_form_is_refused(trace: Any, served: Served) -> None:
    with served.line_client() as client:
        assert client.code({"op": "count", "trace": trace}) == "protocol"
        assert client.ask({"op": "count"})["ok"]


@pytest.mark.parametrize("header", ["", "garbage", f"{_PARENT[:-3]}", "00-" + "0" * 32 + _PARENT[35:], "x" * 10_000])
def test_an_invalid_trace_is_ignored_and_the_request_answered(header: str, served: Served, of_server: Recorded) -> None:
    with served.line_client() as client:
        assert client.ask({"op": "remember", "content": CONTENT, "trace": {"traceparent": header}})["ok"]
    assert of_server.one().parent is None


def test_routes_of_http_continue_the_header_and_contexts_are_one_span(tmp_path: Path, of_server: Recorded) -> None:
    def opened(*, create: bool, read_only: bool) -> recollect.Memory:
        return traced(recollect.open(tmp_path / "a.db", create=create, embedder="none"), of_server.provider)

    with served_over_http(tmp_path, opened=opened) as server:
        server.calls.continued = continued
        headers = {"traceparent": _PARENT}
        assert server("POST", "/v1/default/remember", {"content": CONTENT}, headers=headers).status == 201
        assert server("GET", "/v1/default/context?question=birds", headers=headers).status == 200
        assert server("GET", "/v1/default/records", headers=headers).status == 200
        _metrics_have_indexes(server)
    remember, context = of_server.taken()
    assert (remember.name, said(context)["recollect.operation"]) == ("upsert_memory", "context")
    for span in (remember, context):
        assert span.kind is SpanKind.SERVER
        assert span.parent is not None
        assert (span.parent.trace_id, span.parent.span_id) == (_TRACE, _SPAN)


def _metrics_have_indexes(server: Server) -> None:
    """The metrics read what is below the spans."""
    assert b'recollect_index_builds_total{index="words"}' in server("GET", "/metrics").body


def test_a_span_of_an_instrumentation_of_http_is_the_parent(recorded: Recorded) -> None:
    """What runs around a handler, such as opentelemetry-instrumentation-asgi, has a span of the event loop."""
    tracer = recorded.provider.get_tracer("test")

    def call() -> None:
        tracer.start_span("inside").end()

    with tracer.start_as_current_span("request"):
        made = continued(call)
    made()
    request, inside = recorded.taken()
    assert is_child(inside, request)


def test_spans_of_a_server_have_no_contents_of_its_clients(served: Served, of_server: Recorded) -> None:
    with served.memory("socket", namespace="tenant-qz7") as memory:
        memory.remember(CONTENT, user="ximena")
        memory.recall(QUESTION)
        memory.execute(ops.Forget(id="note-qz7", missing="ignore"), actor="ximena")
    text = "\n".join(span.to_json() for span in of_server.taken())
    assert [each for each in (CONTENT, QUESTION, "ximena", "qz7", str(served.path)) if each in text] == []


#: What an SDK's auto-configuration does before the command runs: a tracer provider, here one that writes to a file.
CONFIGURED = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from recollect.cli import main

provider = TracerProvider()
file = open(sys.argv.pop(1), "w")
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=file)))
trace.set_tracer_provider(provider)
main()
"""


@pytest.mark.parametrize("options", [["--tracing"], []], ids=["with", "without"])
def test_the_command_makes_spans_only_if_it_is_asked_to(options: list[str], tmp_path: Path, recorded: Recorded) -> None:
    spans = tmp_path / "spans.json"
    socket = f"{tempfile.mkdtemp(prefix='recollect-')}/s"  # a path of a socket must be short
    command = [sys.executable, "-c", CONFIGURED, str(spans), "serve", "--socket", socket, *options]
    environment = {**os.environ, "RECOLLECT_DB": str(tmp_path / "a.db"), "RECOLLECT_EMBEDDER": "none"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as server:
        assert server.stderr is not None
        assert any("listening" in line for line in server.stderr)
        with traced(recollect.connect(f"unix://{socket}"), recorded.provider) as memory:
            memory.remember(CONTENT)
        server.terminate()
        server.stderr.read()
    shutil.rmtree(Path(socket).parent, ignore_errors=True)
    sent, written = recorded.one(), spans.read_text()
    context = sent.get_span_context()
    assert context is not None
    assert (f"0x{context.trace_id:032x}" in written) == (f"0x{context.span_id:016x}" in written) == bool(options)
