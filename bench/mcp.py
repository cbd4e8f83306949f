"""The MCP server: what a call costs more than in this process, and how long its start takes.

The same questions with the same `k` are put to `memory.recall` in this process, and as calls of the tool `recall` over
stdio and over HTTP, by turns. A start is measured from spawning the process to the result of its first recall.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture.mcp_client import HttpClient, HttpServer, StdioClient, failed

import recollect
from bench import stores
from bench.corpus import corpus, questions
from bench.measuring import IMPORT_NUMPY, milliseconds, processor_seconds, versions

K, WARM_UP, STARTS = 5, 20, 5


def mcp(records: int, asked: int) -> dict[str, Any]:
    """The figures of a store of so many records."""
    source = corpus()
    path = stores.plain(source, records)
    texts = questions(source.texts(records), asked + WARM_UP)
    with (
        recollect.open(path, read_only=True) as memory,
        StdioClient(path, "--read-only").hello() as stdio,
        HttpServer(path, "--read-only") as server,
    ):
        http = HttpClient(server.url)
        calls: dict[str, Callable[[str], object]] = {
            "in_process": lambda text: memory.recall(text, K),
            "stdio": lambda text: _recalled(stdio, text),
            "http": lambda text: _recalled(http, text),
        }
        took: dict[str, list[float]] = {name: [] for name in calls}
        for number, text in enumerate(texts):
            for name, call in calls.items():
                ms = milliseconds(call, text)
                if number >= WARM_UP:
                    took[name].append(ms)
        http.close()
    medians = {f"{name}_p50_ms": statistics.median(each) for name, each in took.items()}
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.db"
        recollect.open(empty).close()
        begun = [(_start(path, texts[0]), processor_seconds(IMPORT_NUMPY)) for _ in range(STARTS + 1)][1:]
        starts = {
            "start_to_answer_ms": statistics.median(ms for (ms, _), _ in begun),
            "start_to_answer_cpu_ms": statistics.median(cpu for (_, cpu), _ in begun) * 1000,
            "in_starts_of_numpy": statistics.median(cpu / unit for (_, cpu), unit in begun),
            "start_to_answer_empty_ms": statistics.median(_start(empty, texts[0])[0] for _ in range(STARTS)),
        }
    return {
        "command": "mcp",
        "records": records,
        "questions": asked,
        **medians,
        "stdio_more_ms": medians["stdio_p50_ms"] - medians["in_process_p50_ms"],
        "http_more_ms": medians["http_p50_ms"] - medians["in_process_p50_ms"],
        **starts,
        **source.to_json(),
        "versions": versions(),
    }


def _recalled(client: StdioClient | HttpClient, question: str) -> None:
    result = client.call("recall", {"question": question, "k": K})
    assert not failed(result), result


def _start(path: Path, question: str) -> tuple[float, float]:
    """The milliseconds from spawning a server to the result of its first recall, and its processor time in seconds.

    The latter is to its end: it has nothing to do after the answer.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    with StdioClient(path, "--read-only") as client:
        client.hello()
        _recalled(client, question)
        ms = (time.perf_counter() - began) * 1000
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ms, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
