"""Which kernels serve: NumPy until the compiled ones are loaded, which are then all there."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests import fresh

from recollect.indexes.kernels import choose
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.kernels.numba import kernels as numba_kernels

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
    choice = choose.choice()
    assert choice.serving(10) is numpy_kernels.KERNELS
    assert choice._loading is None
    assert choice.serving(90_000) is numpy_kernels.KERNELS
    assert choice._loading is not None
    choice._loading.join()
    assert choice.serving(10).name == "numba"
    monkeypatch.setenv("RECOLLECT_KERNELS", "numpy")
    assert choose.choice().serving(10**9) is numpy_kernels.KERNELS
