"""Garbage collection in a server: what lives long is not traversed again and again, and what is evicted is freed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.ledger.commits import Branch
from recollect.server import collection
from recollect.server.collection import Exemptions
from recollect.testing.loopback import core_of


@pytest.fixture
def unfrozen() -> Iterator[None]:
    gc.collect()
    yield
    gc.unfreeze()
    gc.collect()


def collected(seconds: float, generation: int) -> Exemptions:
    """Return what noted a collection that took some seconds."""
    times = iter((0.0, seconds))
    exemptions = Exemptions(lambda: next(times))
    exemptions("start", {"generation": generation})
    exemptions("stop", {"generation": generation})
    return exemptions


def test_what_survives_a_long_full_collection_is_exempted(unfrozen: None) -> None:
    kept: list[list[int]] = [[] for _ in range(5000)]
    # Objects that are exempt already may be freed meanwhile, so what is added is compared.
    before = gc.get_freeze_count()
    assert (collected(0.001, 2).count, collected(1.0, 1).count) == (0, 0)
    assert gc.get_freeze_count() <= before
    assert collected(1.0, 2).count == 1
    assert gc.get_freeze_count() >= len(kept)


def test_everything_is_looked_at_again_after_many_exemptions(unfrozen: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "_MOST", 3)
    times = iter(range(100))
    exemptions = Exemptions(lambda: float(next(times)))
    counts = []
    for _ in range(5):
        exemptions("start", {"generation": 2})
        exemptions("stop", {"generation": 2})
        counts.append(gc.get_freeze_count() > 0)
    assert counts == [True, True, True, False, True]


def test_an_index_has_no_cycles_so_it_is_freed_when_it_is_evicted(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", embedder="none") as memory:
        names = [f"n{number}" for number in range(20)]
        for name in names:
            memory.namespace(name).remember_all([f"note {number} of {name}" for number in range(20)])
        keeper = core_of(memory).keeper

        def cycle() -> int:
            for name in names:
                memory.namespace(name).recall("note 7")
            for name in names:
                keeper.drop(Branch(name))
            return len(gc.get_objects())

        cycle()
        gc.collect()
        gc.disable()
        try:
            counts = [cycle() for _ in range(3)]
        finally:
            gc.enable()
        assert counts[2] - counts[1] < 100  # of 3,000 that each cycle makes
