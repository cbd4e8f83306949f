"""Access to the internals of a memory, for tests and benchmarks of Recollect itself."""

from __future__ import annotations

from recollect.engine.core import Core
from recollect.engine.engine import Engine
from recollect.indexes.words.index import WordIndex
from recollect.ledger.commits import Branch
from recollect.memory.memory import Memory
from recollect.stores.derived.fulltext import FullText


def core_of(memory: Memory) -> Core:
    """Return the core of the engine that a memory uses in this process."""
    executor = memory._executor
    while not isinstance(executor, Engine):  # a wrapper, such as `Loopback`
        executor = executor.executor  # type: ignore[attr-defined]
    return executor.core


def beside(memory: Memory, what: str) -> Memory:
    """Return what a facet stores beside the records of a memory, such as "terms", as a memory."""
    return memory._beside(what)


def full_text_of(memory: Memory) -> FullText:
    """Return the full-text index of a memory."""
    return core_of(memory).fulltext


def index_of(memory: Memory, branch: Branch | None = None) -> WordIndex:
    """Return the word index of a branch, which must be loaded; default: that of the memory."""
    entry = core_of(memory).keeper.entries.get(branch or memory._branch)
    assert entry is not None
    assert entry.value is not None
    return entry.value.index
