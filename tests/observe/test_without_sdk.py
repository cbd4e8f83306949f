"""Without an SDK nothing is recorded and nothing is different; without the API, the error says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, NoOpTracerProvider, SpanContext, TraceFlags, use_span
from tests.observe.recorded import CASES, CONTENT, NAMESPACE, QUESTION, filled
from tests.paths import ROOT
from tests.server.serving import Served

import recollect
from recollect.observe import attributes, executor, traced
from recollect.wire.trace import TRACE

pytestmark = pytest.mark.in_process


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of what computes attributes."""
    calls: list[str] = []

    def noted(name: str) -> Callable[..., dict[str, Any]]:
        return lambda *_: calls.append(name) or {}  # type: ignore[func-returns-value]

    for name in ("asked", "answered", "contents"):
        assert hasattr(attributes, name)
        monkeypatch.setattr(executor, name, noted(name))
    return calls


@pytest.mark.parametrize("name", CASES)
def test_without_an_sdk_a_call_does_its_work_and_no_attribute_is_computed(
    name: str, described: list[str], tmp_path: Path
) -> None:
    memory = traced(recollect.open(tmp_path / "a.db", embedder="hashed"), NoOpTracerProvider(), contents=True)
    filled(memory)
    CASES[name].call(memory.namespace(NAMESPACE), tmp_path)
    assert described == []


def test_the_fixture_notices_attributes(described: list[str]) -> None:
    from tests.observe.recorded import Recorded

    Recorded().memory(contents=True).remember(CONTENT)
    assert described == ["asked", "answered", "contents"]


def test_without_an_sdk_batches_and_contexts_work() -> None:
    memory = traced(recollect.open(":memory:"), NoOpTracerProvider())
    with memory.batch() as batch:
        batch.remember(CONTENT)
        batch.context(QUESTION)
    assert CONTENT in memory.context(QUESTION)
    assert memory.at(1).count() == 1


def test_without_an_sdk_a_client_passes_on_the_trace_that_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    parent = SpanContext(trace_id=7, span_id=8, is_remote=True, trace_flags=TraceFlags(1))

    def noted(call: Callable[[], Any]) -> Callable[[], Any]:
        seen.append(TRACE.get().get("traceparent"))
        return call

    with Served(tmp_path, calls_continued=noted) as server, server.memory("socket") as remote:
        memory = traced(remote, NoOpTracerProvider())
        seen.clear()
        memory.remember(CONTENT)
        with use_span(NonRecordingSpan(parent)):
            memory.remember(f"{CONTENT} again")
    assert seen == [None, f"00-{7:032x}-{8:016x}-01"]


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, with this folder's modules."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )


NO_API = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError("No module named 'opentelemetry'", name="opentelemetry")

sys.meta_path.insert(0, Absent())
"""


SERVE = "import sys; from recollect.cli import main; sys.argv = ['recollect', 'serve', '--tracing']; main()"


def test_without_the_api_the_error_says_what_to_install() -> None:
    done = run(NO_API + "import recollect; recollect.observe.traced(recollect.open(':memory:'))")
    assert "recollect.errors.MissingExtraError" in done.stderr
    assert "pip install 'recollect[otel]'" in done.stderr


def test_a_server_with_traces_needs_the_api(tmp_path: Path) -> None:
    done = run(NO_API + SERVE, RECOLLECT_DB=str(tmp_path / "a.db"))
    assert done.returncode != 0
    assert "pip install 'recollect[otel]'" in done.stderr


def test_a_server_with_traces_needs_a_tracer_provider(tmp_path: Path) -> None:
    done = run(SERVE, RECOLLECT_DB=str(tmp_path / "a.db"))
    assert done.returncode != 0
    assert "no tracer provider is configured" in done.stderr
    assert "opentelemetry-instrument" in done.stderr


def test_a_memory_that_is_not_traced_imports_no_opentelemetry() -> None:
    code = (
        "import sys, recollect; memory = recollect.open(':memory:'); memory.remember('x'); memory.context('x');"
        "import recollect.observe, recollect.wire.client, recollect.cli.serving;"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    assert run(code).stdout.strip() == "[]"


def test_the_provider_of_the_process_may_be_configured_after_the_memory_is_traced() -> None:
    """The API's proxy finds it, so the order of the imports of an application makes no difference."""
    code = (
        "import recollect; from opentelemetry import trace; from tests.observe.recorded import Recorded;"
        "memory = recollect.observe.traced(recollect.open(':memory:')); memory.remember('x');"
        "recorded = Recorded(); trace.set_tracer_provider(recorded.provider);"
        "memory.remember('y'); print([span.name for span in recorded.taken()])"
    )
    assert run(code, PYTHONPATH=str(ROOT)).stdout.strip() == "['upsert_memory']"
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)  # of this process: no test set one
