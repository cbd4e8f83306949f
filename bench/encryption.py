"""`python -m bench encryption`: what an encrypted store costs, compared with a plain one that has the same records.

Both are used in turns in one process: plain, encrypted, encrypted, plain. Each figure is the median of the ratios of
these rounds, with their quartiles.
The secret is a key of 32 bytes: a passphrase takes a tenth of a second more to open, whatever the store.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import recollect
from bench.corpus import corpus, questions
from bench.measuring import versions

_SECRET = bytes(range(32))
_OPENS, _WRITES, _BULK, _RECALLS, _GETS, _THREADS = 10, 100, 2_000, 400, 2_000, 4
#: The stores in the order of a round: each is first once and last once.
_ORDER = ("plain", "encrypted", "encrypted", "plain")
#: The figures: what is measured, and whether by the processor's time or by the clock.
_Spent = dict[str, float]


def _spent(call: Callable[[], object]) -> _Spent:
    """Return the time that a call takes, in seconds: that of the clock, and that of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


class _Store:
    """One of the stores.

    Args:
        path: Its file.
        secret: What opens it; None for the plain one.
    """

    def __init__(self, path: Path, secret: bytes | None, texts: list[str]) -> None:
        self.path = path
        self._secret = secret
        with self.open() as memory:
            memory.remember_all({"content": text, "id": f"r{number}"} for number, text in enumerate(texts))
            memory.recall("begin")  # writes the index

    def open(self) -> recollect.Memory:
        return recollect.open(self.path, embedder="none", secret=self._secret)

    def bytes(self) -> int:
        return sum(each.stat().st_size for each in self.path.parent.rglob(f"{self.path.name}*") if each.is_file())

    def opened(self) -> dict[str, _Spent]:
        """Measure opening, several times, and nothing else."""
        memories: list[recollect.Memory] = []
        spent = _spent(lambda: memories.extend(self.open() for _ in range(_OPENS)))
        for each in memories:
            each.close()
        return {"open": spent}

    def read(self, asked: list[str]) -> dict[str, _Spent]:
        """Measure the first recall after opening, those that follow it, and the same again."""
        with self.open() as memory:
            first = _spent(lambda: memory.recall(asked[0], k=5))
            following = _spent(lambda: [memory.recall(each, k=5) for each in asked[1:]])
            warm = _spent(lambda: [memory.recall(each, k=5) for each in asked[1:]])
        return {"first recall": first, "the recalls after it": following, "warm recalls": warm}

    def got(self, ids: list[str]) -> dict[str, _Spent]:
        """Measure reading records by id, in one thread and in several."""
        share = len(ids) // _THREADS
        with self.open() as memory:
            one = _spent(lambda: [memory.get(each) for each in ids])
        with self.open() as memory, ThreadPoolExecutor(_THREADS) as pool:
            parts = [ids[begin : begin + share] for begin in range(0, len(ids), share)]
            several = _spent(lambda: list(pool.map(lambda part: [memory.get(each) for each in part], parts)))
        return {"get": one, f"get in {_THREADS} threads": several}

    def written(self, number: int, texts: list[str]) -> dict[str, _Spent]:
        """Measure durable writes one by one, and a bulk write."""
        with self.open() as memory:
            memory.remember("begin")
            ids = [f"s{number}-{at}" for at in range(_WRITES)]
            single = _spent(lambda: [memory.remember(text, id=each) for text, each in zip(texts, ids, strict=False)])
            items = [{"content": text, "id": f"b{number}-{at}"} for at, text in enumerate(texts)]
            bulk = _spent(lambda: memory.remember_all(items))
        return {"durable write": single, "bulk write": bulk}


def encryption(records: int, pairs: int) -> dict[str, Any]:
    """Return the ratios of an encrypted store to a plain one."""
    source = corpus()
    texts = source.texts(records)
    asked = questions(texts, 1 + _RECALLS)
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        # Others are written to: after a write, a recall writes the index in the background.
        read, written = (
            {
                "plain": _Store(Path(folder, f"plain{number}.db"), None, texts),
                "encrypted": _Store(Path(folder, f"encrypted{number}.db"), _SECRET, texts),
            }
            for number in range(2)
        )
        sizes = {name: store.bytes() for name, store in read.items()}
        ratios: dict[str, list[float]] = {}
        for number in range(-1, pairs):  # the first round warms up
            ids = [f"r{rng.randrange(records)}" for _ in range(_GETS)]
            new = [f"{text} {number}" for text in rng.sample(texts, min(_BULK, len(texts)))]
            measures: tuple[Callable[[_Store], dict[str, _Spent]], ...] = (
                _Store.opened,
                partial(_Store.read, asked=asked),
                partial(_Store.got, ids=ids),
            )
            for measure in measures:
                _note(ratios, [(kind, measure(read[kind])) for kind in _ORDER], number)
            spent = [(kind, written[kind].written(2 * number + at // 2, new)) for at, kind in enumerate(_ORDER)]
            _note(ratios, spent, number)
    return {
        "command": "encryption",
        "records": records,
        "pairs": pairs,
        "ratios": {name: _quartiles(each) for name, each in ratios.items()},
        "size": sizes["encrypted"] / sizes["plain"],
        "versions": versions(),
    }


def _note(ratios: dict[str, list[float]], found: Sequence[tuple[str, Mapping[str, _Spent]]], number: int) -> None:
    """Note the ratios of what the encrypted and the plain store took in one round, except in the one that warms up."""
    if number < 0:
        return
    for name in found[0][1]:
        for clock in ("wall", "cpu"):
            sums = {kind: sum(spent[name][clock] for one, spent in found if one == kind) for kind in _ORDER}
            ratios.setdefault(f"{name}, {clock}", []).append(sums["encrypted"] / sums["plain"])


def _quartiles(ratios: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return {"median": round(middle, 3), "from": round(low, 3), "to": round(high, 3)}
