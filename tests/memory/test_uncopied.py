"""Objects that use an open store cannot be copied or pickled, and say what to do instead; values can."""

from __future__ import annotations

import asyncio
import copy
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect.common.uncopied import Uncopied
from recollect.errors import UnsupportedError

USES: dict[str, Callable[[Memory], Any]] = {
    "memory": lambda memory: memory,
    "scoped": lambda memory: memory.scoped(user="ana"),
    "past": lambda memory: memory.at(1),
    "async": recollect.AsyncMemory,
    "glossary": lambda memory: memory.glossary,
    "outline": lambda memory: memory.outline,
    "keyed": lambda memory: memory.keyed,
    "sdr": lambda memory: memory.sdr,
    "export": lambda memory: memory.open_export(),
    "stream": lambda memory: memory.subscribe(),
    "subscription": lambda memory: memory.listen(lambda commit: None),
    "inside of something": lambda memory: {"agent": [memory]},
}
COPIES: dict[str, Callable[[Any], object]] = {
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "an argument of a process": lambda value: multiprocessing.reduction.ForkingPickler.dumps(value),
}


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with recollect.open(tmp_path / "a.db") as opened:
        opened.remember("one")
        yield opened


@pytest.mark.in_process
@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_copy_is_refused_with_what_to_do(
    memory: Memory, use: Callable[[Memory], Any], copied: Callable[[Any], object]
) -> None:
    value = use(memory)
    with pytest.raises(UnsupportedError, match=r"open store. Where another one is needed, call recollect\.open"):
        copied(value)
    assert memory.count() == 1
    close = getattr(value, "close", None)
    if close is not None and value is not memory and not isinstance(value, Memory):
        result = close()
        if asyncio.iscoroutine(result):
            result.close()


@pytest.mark.in_process
def test_a_batch_is_not_copied_and_goes_on(memory: Memory) -> None:
    with memory.batch() as batch:
        batch.remember("two")
        with pytest.raises(UnsupportedError, match="Batch cannot be copied or pickled"):
            copy.copy(batch)
        batch.remember("three")
    assert memory.count() == 3


@pytest.mark.in_process
def test_what_a_memory_returns_can_be_copied(memory: Memory) -> None:
    hits = memory.recall("one")
    for value in (
        memory.find(),
        memory.get(hits[0].record.id),
        hits,
        memory.context("one"),
        memory.log(),
        memory.stats(),
    ):
        assert not isinstance(value, Uncopied)
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value
