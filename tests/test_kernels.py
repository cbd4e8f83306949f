"""Which kernels serve: NumPy until the compiled ones are loaded, which are then all there."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from tests import fresh

import recollect
from recollect.doctor import examine
from recollect.indexes.kernels import choose, compile_apart
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.kernels.numba import compiling as numba_compiling
from recollect.indexes.kernels.numba import kernels as numba_kernels
from recollect.locks import lock_now

#: Asks for the kernel of vectors, which compiles fastest, and waits until another process has begun to compile it.
_ENDS_WHILE_COMPILING = """
from recollect.indexes.scoring import dense
dense._serving(10**9)
open("begun").close()
"""
#: Runs in every Python process of the test, and stops the one that compiles until the test lets it go on.
_STOPPED = """
import sys
if "recollect.indexes.kernels.numba.dot_products" in sys.orig_argv:
    open("begun", "w").close()
    open("go on").close()
    ended = open("ended", "w")  # closed when the process ends
"""
_LOADS = """
from recollect.indexes.kernels import compile_apart
from recollect.indexes.scoring import dense
compile_apart.start = None
assert dense._serving(10**9) is dense.products
dense._serving.__self__._loading.join()
print(dense._serving(10**9).__module__)
"""
#: Two steps; the end of the process begins during the first.
_STEPS = """
import sys, threading, types
from recollect.indexes.kernels import choose

def loading():
    began.set()
    assert choose._ending.wait(60)
    print("first step", flush=True)
    yield
    print("second step", flush=True)
    yield

began = threading.Event()
sys.modules["steps"] = types.SimpleNamespace(loading=loading)
choice = choose.Choice(lambda: "numpy", "steps")
from recollect.indexes.kernels.numba import kernels  # tells the folder of the cache
assert choice.serving(10**9) == "numpy"
assert began.wait(60)
"""
#: A process that was forked while another thread was inside a step ends, too.
_FORKED = (
    _STEPS
    + """
import os
child = os.fork()
if not child:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
)
#: What an installation without the extra `fast` does, where the compiled kernels would repay at once.
_WITHOUT_NUMBA = """
import logging, os, sys
sys.modules["llvmlite"] = sys.modules["numba"] = None
os.environ["RECOLLECT_KERNELS"] = "{wanted}"
logging.basicConfig(stream=sys.stdout, format="%(message)s")
import recollect
from recollect.doctor import examine
from recollect.indexes.kernels import choose
choose._REPAID = 0
memory = recollect.open(":memory:")
memory.remember("The boat lies in the harbour")
kernels = {{memory.recall("boat").plan.kernels for _ in range(3)}}
if choose._CHOICE._loading:
    choose._CHOICE._loading.join()
print(*kernels | {{memory.recall("boat").plan.kernels}})
print(choose._CHOICE.failure)
print(*[each.finding for each in examine(memory) if each.what == "kernels"])
"""
#: All that changes what the kernels are called with: turns or none, what stands, a tail, dead documents, filters,
#: dates, a speaker, kinds of answers, scopes, vectors.
_ALL_KINDS = """
import os
os.environ["RECOLLECT_KERNELS"] = "numba"
from datetime import UTC, datetime
import recollect
from recollect import filters as f
from recollect.embedding.hashed import Hashed
from recollect.indexes.kernels.numba import dot_products as numba_dense
from recollect.indexes.kernels.numba import kernels as numba_kernels
from recollect.indexes.kernels.numba import independent as numba_plain
from recollect.indexes.kernels.numba import top_k as numba_ranking
from recollect.indexes.kernels.numba import neighbours as numba_walking

def compiled():
    return {
        f"{module.__name__}.{name}": len(each.signatures)
        for module in (numba_dense, numba_plain, numba_ranking, numba_walking)
        for name, each in vars(module).items()
        if hasattr(each, "signatures")
    }

def ask(memory):
    for question in ("boat harbour", "When did Ana see the boat on 3 May 2021?", "yesterday", "nothing of it", "who?"):
        for k in (1, 10, 1000):
            memory.recall(question, k=k)
            memory.recall(question, k=k, where=f.tag("red"), min_confidence=0.1)
            memory.recall(question, k=k, where=f.before(datetime(2021, 5, 2, tzinfo=UTC)))
            memory.scoped(user="ann").recall(question, k=k)

numba_kernels.loaded(), numba_dense.loaded()
before = compiled()
said = [
    {"content": f"The boat {at} lies in the {'harbour' if at % 3 else 'bay'}", "user": "ann" if at % 2 else "bob",
     "tags": ("red",) if at % 5 else ("standing:instruction",), "time": datetime(2021, 5, 1 + at % 20, tzinfo=UTC)}
    for at in range(60)
]
turns = [
    {**each, "kind": "conversation", "conversation": "c", "position": at, "speaker": "Ana", "session": str(at // 9)}
    for at, each in enumerate(said)
]
for embedder in (None, Hashed()):
    for place, items in enumerate((said, turns)):
        path = folder / f"{place}{embedder is not None}.db"
        with recollect.open(path, embedder=embedder) as memory:
            held = [outcome.record.id for outcome in memory.remember_all(items).results]
            ask(memory)
            memory.remember("A late boat")
            memory.forget(held[7])
            ask(memory)
        with recollect.open(path, embedder=embedder) as memory:
            ask(memory)
print({name: count - before[name] for name, count in compiled().items() if count != before[name]})
"""


def test_no_answer_waits_for_a_compiler_once_the_kernels_are_loaded(tmp_path: Path) -> None:
    assert fresh.run(_ALL_KINDS, tmp_path) == "{}"


@pytest.mark.parametrize("wanted", ["numba", "auto"])
def test_without_numba_numpy_serves_and_a_warning_and_the_doctor_name_the_extra(wanted: str, tmp_path: Path) -> None:
    printed = fresh.run(_WITHOUT_NUMBA.format(wanted=wanted), tmp_path).splitlines()
    assert printed.pop(0) == printed[1]  # the warning of the log
    assert printed[0] == "numpy"
    assert "cannot be loaded (numba is not installed: pip install 'recollect[fast]')" in printed[1]
    assert printed[2].startswith("numpy; ")
    assert "recollect[fast]" in printed[2]


def test_the_doctor_names_the_version_of_numba() -> None:
    with recollect.open(":memory:") as memory:
        found = {each.what: each.finding for each in examine(memory)}
    assert f"numba {version('numba')}" in found["kernels"]


def test_a_missing_compiler_is_said_and_numpy_serves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ImportError("no compiler here")

    monkeypatch.setenv("RECOLLECT_KERNELS", "numba")
    monkeypatch.setattr(numba_kernels, "loaded", broken)
    choice = choose.choice()
    with caplog.at_level(logging.WARNING):
        assert choice.serving(10) is numpy_kernels.KERNELS
        assert choice.serving(10) is numpy_kernels.KERNELS
    assert caplog.text.count("cannot be loaded") == 1
    assert choice.failure


def test_the_kernels_are_loaded_when_that_is_repaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_KERNELS", "auto")
    monkeypatch.setattr(choose, "_REPAID", 100_000)
    numba_kernels.loaded()  # so that they are in numba's cache
    choice = choose.choice()
    assert choice.serving(10) is numpy_kernels.KERNELS
    assert choice._loading is None
    assert choice.serving(90_000) is numpy_kernels.KERNELS
    assert choice._loading is not None
    choice._loading.join()
    assert choice.serving(10).name == "numba"
    monkeypatch.setenv("RECOLLECT_KERNELS", "numpy")
    assert choose.choice().serving(10**9) is numpy_kernels.KERNELS


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_process_ends_while_its_kernels_are_compiled_and_the_next_one_loads_them(tmp_path: Path) -> None:
    for name in ("begun", "go on", "ended"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "sitecustomize.py").write_text(_STOPPED)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "RECOLLECT_KERNELS": "auto"}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])

    def run(code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert not run(_ENDS_WHILE_COMPILING)
    open(tmp_path / "go on", "w").close()  # the other process waits for this: it has outlived the first
    with open(tmp_path / "ended") as ended:
        assert not ended.read()
    assert run(_LOADS) == "recollect.indexes.kernels.numba.dot_products\n"


def test_the_end_of_a_process_waits_for_the_step_in_progress_only(tmp_path: Path) -> None:
    assert fresh.run(_STEPS, tmp_path) == "first step"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_wait_for_a_step_of_its_parent(tmp_path: Path) -> None:
    assert fresh.run(_FORKED, tmp_path) == "7\nfirst step"


def test_nothing_is_compiled_in_this_process_unless_it_is_requested(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Ended:
        def __init__(self, status: int) -> None:
            self.status = status

        def wait(self) -> int:
            return self.status

    monkeypatch.setenv("RECOLLECT_KERNELS", "auto")
    monkeypatch.setattr(choose, "_REPAID", 100_000)
    monkeypatch.setattr(numba_kernels, "loading", _uncached)
    started: list[str] = []

    def start(module: str) -> Ended:
        started.append(module)
        return Ended(compile_apart.BUSY if len(started) == 1 else 0)

    monkeypatch.setattr(compile_apart, "start", start)
    choice = choose.choice()
    assert choice.serving(90_000) is numpy_kernels.KERNELS
    _join()
    assert choice._loading is None  # another process compiles: it is tried again after as much work
    assert choice.serving(10) is numpy_kernels.KERNELS
    assert len(started) == 1
    with caplog.at_level(logging.WARNING):
        assert choice.serving(90_000) is numpy_kernels.KERNELS
        _join()
    assert started == ["recollect.indexes.kernels.numba.kernels"] * 2
    assert "RECOLLECT_KERNELS=numba compiles them in this one" in choice.failure
    assert caplog.text.count("cannot be loaded") == 1


@pytest.mark.parametrize("program", ["", "/usr/sbin/httpd"])
def test_a_program_that_is_no_python_is_not_started_again(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(sys, "executable", program)
    with pytest.raises(RuntimeError, match="is no Python interpreter"):
        compile_apart.start("recollect.indexes.kernels.numba.dot_products")


def test_a_frozen_program_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(RuntimeError, match="is no Python interpreter"):
        compile_apart.start("recollect.indexes.kernels.numba.dot_products")


def test_without_a_folder_for_the_cache_numpy_serves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RECOLLECT_KERNELS", "auto")
    monkeypatch.setattr(numba_compiling, "cache_folder", None)
    choice = choose.choice()
    with caplog.at_level(logging.WARNING):
        assert choice.serving(10**9) is numpy_kernels.KERNELS
        _join()
        assert choice.serving(10**9) is numpy_kernels.KERNELS
    assert caplog.text.count("NUMBA_CACHE_DIR") == 1


def test_one_process_compiles_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    numba_dense = pytest.importorskip("recollect.indexes.kernels.numba.dot_products")
    monkeypatch.setattr(numba_compiling, "cache_folder", str(tmp_path))
    monkeypatch.setattr(os, "nice", lambda by: by)
    compiled: list[bool] = []
    monkeypatch.setattr(numba_dense, "loaded", lambda: compiled.append(True))
    with open(tmp_path / "recollect.lock", "wb") as lock:
        assert lock_now(lock.fileno())
        assert compile_apart.compile_all(numba_dense.__name__) == compile_apart.BUSY
        assert not compiled
    assert compile_apart.compile_all(numba_dense.__name__) == 0
    assert compiled


def _uncached() -> Iterator[None]:
    """Load a function that no cache has."""
    made = numba_compiling.compiled(lambda number: number + 1)
    made(1)
    yield


def _join() -> None:
    for thread in threading.enumerate():
        if thread.name == "recollect-kernels":
            thread.join(60)
            assert not thread.is_alive()


def test_cached_code_belongs_to_all_files_that_were_compiled_into_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A constant of another file changes the name under which numba caches a function."""

    def double(number: int) -> int:
        return 2 * number

    def cached_name() -> str:
        numba_compiling._digest.cache_clear()
        double.__qualname__ = "double"
        made = numba_compiling.compiled(double)
        return str(made._cache._cache_file._index_name)  # type: ignore[attr-defined]

    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)
    constants = tmp_path / "parameters.py"
    constants.write_text("SPEAKER = 5")
    first = cached_name()
    assert cached_name() == first
    constants.write_text("SPEAKER = 6")
    assert cached_name() != first
    monkeypatch.undo()
    numba_compiling._digest.cache_clear()
