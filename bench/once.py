"""Peers with many dependencies: each in its own environment, queried through a pipe, alternating with Recollect.

They search vectors, so all get the same ones: those of our hashed embedder (256 components, no model to download). This
says nothing about the quality of their answers, only about time; no figure includes computing a vector. Recollect
answers by words, with explanations, as always. An environment is created in the cache folder at first use. If a peer
cannot be installed or fails, the result has the reason, and the others run.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

import recollect
from bench import stores
from bench.corpus import cache_folder, corpus, questions
from bench.measuring import milliseconds, percentiles, told, versions
from bench.peers import K
from bench.recall import warmed
from recollect.models.embedding.hashed import Hashed

#: Peer -> what pip installs; the first is the one whose version is told.
PACKAGES: dict[str, tuple[str, ...]] = {
    "chromadb": ("chromadb",),
    "lancedb": ("lancedb",),
    "qdrant": ("qdrant-client",),
    "mem0": ("mem0ai", "langchain"),
    "langgraph": ("langgraph-checkpoint-sqlite", "langgraph", "sqlite-vec"),
}
QUESTIONS, WARM_UP, WRITES = 100, 10, 50
#: Nobody calls home, looks for models or starts threads: they would be measured too.
_QUIET = {"MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False", "HF_HUB_OFFLINE": "1", "LANCE_CPU_THREADS": "1"}


class PeerFailedError(Exception):
    """A peer could not be installed, or went away; the message is the last that it said."""


def _python_for(name: str) -> str:
    """This Python; for the peer that loads an extension into SQLite, one that was built to do so."""
    if name != "langgraph":
        return sys.executable
    for python in (
        sys.executable,
        *filter(None, (shutil.which("python3", path=each) for each in os.defpath.split(":"))),
    ):
        able = "import ensurepip, sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)"
        if not subprocess.run([python, "-c", able], capture_output=True).returncode:
            return python
    raise PeerFailedError("there is no Python here whose sqlite3 loads extensions, which sqlite-vec is")


def environment_of(name: str) -> Path:
    """The Python of a peer's environment, made where it is not there. Raises: PeerFailedError."""
    folder = cache_folder() / "environments" / name
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        with told(f"installing {name}"):
            for command in (
                [_python_for(name), "-m", "venv", str(folder)],
                [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES[name]],
            ):
                made = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                if made.returncode:
                    raise PeerFailedError(f"cannot be installed: {_last(made.stderr)}")
        done.touch()
    return python


def _last(text: str) -> str:
    """The last line that says something."""
    return next((line.strip()[:300] for line in reversed(text.splitlines()) if line.strip()), "it said nothing")


class Worker:
    """A peer at work in its own process."""

    def __init__(self, name: str, folder: Path) -> None:
        python = environment_of(name)
        version = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
        said = subprocess.run([python, "-c", version, PACKAGES[name][0]], capture_output=True, text=True)
        self._errors: IO[str] = (folder / f"{name}.log").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(Path(__file__).with_name("once_worker.py")), name, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **_QUIET, "HOME": str(folder), "MEM0_DIR": str(folder)},
        )
        self.facts: dict[str, Any] = {"version": said.stdout.strip(), **self._heard()}
        self.rss_bytes_per_record = 0.0

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise PeerFailedError(_last(self._errors.read()))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def does(self, what: str, number: int) -> float:
        """The milliseconds of {"ask": number} or {"write": number}, by the worker's own clock."""
        assert self._process.stdin is not None
        print(json.dumps({what: number}), file=self._process.stdin, flush=True)
        answer = self._heard()
        self.rss_bytes_per_record = answer["rss_bytes_per_record"]
        if what == "ask" and not answer["hits"]:
            raise PeerFailedError("it found nothing")
        return float(answer["ms"])

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._errors.close()


def once(records: int, peers: Sequence[str]) -> dict[str, Any]:
    """Each peer after the other, its questions in turn with ours, its single writes with our durable ones."""
    source = corpus()
    path = stores.plain(source, records)
    texts = source.texts(records + WRITES)
    asked = questions(texts[:records], WARM_UP + QUESTIONS)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(dir=cache_folder()) as name, recollect.open(path, read_only=True) as memory:
        folder = Path(name)
        given = {"texts": texts[:records], "more": texts[records:], "questions": asked}
        (folder / "texts.json").write_text(json.dumps(given), encoding="utf-8")
        with told("making vectors"):
            vectors = Hashed().embed([*texts, *asked])
        (folder / "vectors.bin").write_bytes(np.asarray(vectors, dtype=np.float32).tobytes())
        warmed(memory, asked[:WARM_UP])
        for peer in peers:
            try:
                found[peer] = _beside(peer, folder, memory, asked, given["more"])
            except PeerFailedError as failed:
                found[peer] = {"failed": str(failed)}
    return {
        "command": "once",
        "records": records,
        "questions": QUESTIONS,
        "peers": found,
        "ratio": {peer: each["p50_ms"] / each["recollect_p50_ms"] for peer, each in found.items() if "p50_ms" in each},
        **source.to_json(),
        "versions": versions(),
    }


def _beside(
    peer: str, folder: Path, memory: recollect.Memory, asked: Sequence[str], more: Sequence[str]
) -> dict[str, Any]:
    """The figures of one peer, and ours of the same questions. Raises: PeerFailedError."""
    environment_of(peer)
    with told(f"setting up {peer}"):
        worker = Worker(peer, folder)
    try:
        for number in range(WARM_UP):
            worker.does("ask", number)
        numbers = range(WARM_UP, len(asked))
        theirs, ours = [], []
        for number in numbers:
            theirs.append(worker.does("ask", number))
            ours.append(milliseconds(memory.recall, asked[number], K))
        writes, our_writes = [], []
        with recollect.open(folder / f"beside-{peer}.db") as written:
            for number, text in enumerate(more):
                writes.append(worker.does("write", number))
                our_writes.append(milliseconds(written.remember, text))
    finally:
        worker.close()
    return {
        **percentiles(theirs),
        "recollect_p50_ms": statistics.median(ours),
        "write_p50_ms": statistics.median(writes),
        "recollect_write_p50_ms": statistics.median(our_writes),
        **worker.facts,
        "rss_bytes_per_record": worker.rss_bytes_per_record,
    }
