"""Our MCP server over HTTP passes the protocol's conformance suite, as far as the suite applies to it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.peers.wire import OURS, PACKAGES, PATIENCE_S, our_variables

pytestmark = pytest.mark.peers

#: Scenarios about what any server does.
APPLIES = [
    "dns-rebinding-protection",
    "ping",
    "prompts-list",
    "resources-list",
    "resources-subscribe",
    "resources-unsubscribe",
    "server-initialize",
    "server-sse-multiple-streams",
    "tools-list",
]
_NEEDS_A_TOOL = "calls a tool of the suite's own example server"
_NEEDS_A_RESOURCE = "reads a resource of the suite's own example server"
_NEEDS_A_PROMPT = "gets a prompt of the suite's own example server"
#: The other scenarios, each with the reason why it is left out.
LEFT_OUT = {
    "completion-complete": "our server completes no arguments, and does not claim to",
    "elicitation-sep1034-defaults": _NEEDS_A_TOOL,
    "elicitation-sep1330-enums": _NEEDS_A_TOOL,
    "json-schema-2020-12": _NEEDS_A_TOOL,
    "logging-set-level": "our server sends no log messages, and does not claim to",
    "prompts-get-embedded-resource": _NEEDS_A_PROMPT,
    "prompts-get-simple": _NEEDS_A_PROMPT,
    "prompts-get-with-args": _NEEDS_A_PROMPT,
    "prompts-get-with-image": _NEEDS_A_PROMPT,
    "resources-read-binary": _NEEDS_A_RESOURCE,
    "resources-read-text": _NEEDS_A_RESOURCE,
    "resources-templates-read": _NEEDS_A_RESOURCE,
    "server-sse-polling": _NEEDS_A_TOOL,
    "tools-call-audio": _NEEDS_A_TOOL,
    "tools-call-elicitation": _NEEDS_A_TOOL,
    "tools-call-embedded-resource": _NEEDS_A_TOOL,
    "tools-call-error": "calls a tool of the suite's own example server, and takes any error for that tool's",
    "tools-call-image": _NEEDS_A_TOOL,
    "tools-call-mixed-content": _NEEDS_A_TOOL,
    "tools-call-sampling": _NEEDS_A_TOOL,
    "tools-call-simple-text": "calls a tool of the suite's own example server, and takes any text for that tool's",
    "tools-call-with-logging": _NEEDS_A_TOOL,
    "tools-call-with-progress": _NEEDS_A_TOOL,
}


def suite(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the suite's command line."""
    command = ["node", str(PACKAGES / "conformance" / "dist" / "index.js"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of our server, started over HTTP on a free port with an empty store."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder: Path = tmp_path_factory.mktemp("http")
    command = [*OURS, "--http", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, env={**os.environ, **our_variables(folder)}) as server:
        try:
            wait_for(port, server)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Return as soon as a server accepts connections."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S):
                return
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "the server does not listen"
            with suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"the server ended with status {server.wait(0.05)}") from None


def test_each_scenario_applies_or_is_left_out_for_a_reason() -> None:
    lines = suite("list", "--server").stdout.splitlines()
    listed = {line.split()[1] for line in lines if line.startswith("  - ")}
    assert listed == {*APPLIES, *LEFT_OUT}
    assert not LEFT_OUT.keys() & set(APPLIES)


@pytest.mark.parametrize("scenario", APPLIES)
def test_our_server_passes_without_a_failure_or_a_warning(scenario: str, url: str) -> None:
    done = suite("server", "--url", url, "--scenario", scenario)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed, 0 warnings" in done.stdout


def test_the_suite_fails_for_what_our_server_lacks(url: str) -> None:
    done = suite("server", "--url", url, "--scenario", "tools-call-image")
    assert done.returncode == 1
    assert "0/1, 1 failed" in done.stdout
