"""The same on every machine: hash seeds, Python versions, orders of writing, stores."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.paths import GOLDEN

import recollect
from recollect.records.record import Record
from recollect.stores.base import Store
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import TickingClock, memory_on

SCRIPT = Path(__file__).parent / "print_results.py"


def printed_by(python: str, seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run([python, str(SCRIPT)], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.count("\n") > 20
    return done.stdout


def test_roots_ids_scores_and_reasons_are_the_same_under_any_hash_seed() -> None:
    printed = {printed_by(sys.executable, seed) for seed in ("0", "4242")}
    assert len(printed) == 1


def test_roots_ids_scores_and_reasons_are_the_same_on_every_python() -> None:
    """golden/results.txt was written by CPython 3.11; `make test-all` compares 3.12 and 3.13 with it."""
    golden = GOLDEN / "results.txt"
    assert printed_by(sys.executable, "7") == golden.read_text(encoding="utf-8")


def test_the_root_is_a_function_of_what_is_stored_and_not_of_the_order_of_writing(tmp_path: Path) -> None:
    records = [Record(id=f"id {number}", content=f"text {number % 7}") for number in range(60)]
    roots = set()
    stores: list[Store] = [MemoryStore(), MemoryStore(), SqliteStore(tmp_path / "a.db")]
    for seed, store in enumerate(stores):
        rng = random.Random(seed)
        memory = memory_on(store, clock=TickingClock())
        stamped = [record.changed(time=TickingClock()()) for record in records]
        rng.shuffle(stamped)
        extra = memory.remember("written and forgotten again")
        for start in range(0, 60, 1 + seed * 13):
            memory.remember_all(stamped[start : start + 1 + seed * 13])
        memory.update(stamped[0].id, content="for a while")
        memory.update(stamped[0].id, content=stamped[0].content)
        memory.forget(extra.id)
        roots.add(memory.root)
        memory.close()
    assert len(roots) == 1


def test_scores_do_not_depend_on_the_order_of_writing_nor_on_the_store(tmp_path: Path) -> None:
    words = "lighthouse harbour boat key tea stove roof".split()
    printed = set()
    stores: list[Store] = [MemoryStore(), SqliteStore(tmp_path / "a.db")]
    for seed, store in enumerate(stores):
        rng = random.Random(1)
        memory = memory_on(store, clock=TickingClock())
        time = TickingClock()()
        items = [
            {
                "content": " ".join(rng.choices(words, k=6)) + rng.choice(".?"),
                "id": f"id {number}",
                "kind": "conversation",
                "conversation": f"c{number % 3}",
                "position": number,
                "time": time,
            }
            for number in range(40)
        ]
        random.Random(seed).shuffle(items)
        memory.remember_all(items)
        memory.forget("id 7")
        printed.add(tuple((hit.record.id, hit.score) for hit in memory.recall("the harbour's boat and tea", k=40)))
        memory.close()
    assert len(printed) == 1


@pytest.mark.skipif(shutil.which("taskset") is None, reason="no taskset on this machine")
def test_the_number_of_cores_changes_nothing() -> None:
    one = subprocess.run(
        ["taskset", "-c", "0", sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True
    )
    assert one.stdout == printed_by(sys.executable, "3")


def test_shares_add_up_to_the_score_exactly() -> None:
    memory = recollect.open(":memory:")
    rng = random.Random(2)
    words = "lighthouse harbour boat key tea stove roof mason chimney".split()
    for _ in range(200):
        memory.remember(" ".join(rng.choices(words, k=rng.randrange(1, 30))), kind="conversation", conversation="c")
    for question in ("harbour boat", "lihgthouse tea chimny", "mason mason mason roof"):
        for hit in memory.recall(question, k=200):
            assert sum(hit.why.shares.values()) == hit.score
            matched = sum(hit.why.shares.get(name, 0) for name in ("words", "trigram", "context"))
            assert abs(sum(word.score for word in hit.why.words) - matched) < 1e-6
            assert matched > 0
