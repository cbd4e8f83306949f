"""`python -m bench manager`: what the manager adds to a write, and how long consolidation and the finders take.

A durable `remember` is the peer, in alternating batches of the same process. Messages are sentences of this machine's
texts; every tenth states an attribute, so that contradictions are looked for.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import recollect
from bench.corpus import corpus
from recollect.agents import Manager

#: Alternating batches, and messages in each.
_BATCHES, _EACH = 20, 100
_THINGS = "tea cake book song city tree fish bird game dish hat boat road hill lake star word day hour tool".split()
_START = datetime(2026, 1, 1, tzinfo=UTC)


def measured(records: int = 10_000) -> dict[str, Any]:
    """Return the figures.

    Args:
        records: The number of records that are consolidated, indexed and searched for duplicates.
    """
    texts = corpus().texts(max(records, _BATCHES * _EACH * 2))
    with tempfile.TemporaryDirectory() as folder:
        figures = _writes(Path(folder), texts)
        figures |= _bulk(Path(folder), texts[:records])
    return figures


def _writes(folder: Path, texts: list[str]) -> dict[str, Any]:
    """Time `remember` of a turn and `Manager.record_message`, without and with extraction, by turns."""
    with (
        recollect.open(folder / "plain.db") as plain,
        recollect.open(folder / "managed.db") as managed,
        recollect.open(folder / "extracted.db") as extracted,
    ):
        manager = Manager(memory=managed)
        extracting = Manager(memory=extracted, extract=True)

        def remember(text: str) -> None:
            plain.remember(text, kind="conversation", conversation="c", role="user", user="ana")

        def record(text: str) -> None:
            manager.record_message({"role": "user", "content": text}, "c", user="ana")

        def extract(text: str) -> None:
            extracting.record_message({"role": "user", "content": text}, "c", user="ana")

        calls = {"remember": remember, "record_message": record, "with_facts": extract}
        times: dict[str, list[float]] = {name: [] for name in calls}
        for batch in range(_BATCHES):
            some = texts[batch * _EACH : (batch + 1) * _EACH]
            some = [f"My favourite {_THINGS[batch]} is {text}" if n % 10 == 0 else text for n, text in enumerate(some)]
            for name, call in calls.items():
                times[name].append(_milliseconds(partial(_each, call, some)) / _EACH)
        figures = {f"{name}_ms": statistics.median(each) for name, each in times.items()}
        for name in ("record_message", "with_facts"):
            pairs = zip(times["remember"], times[name], strict=True)
            figures[f"{name}_ratio"] = statistics.median(managed / plain for plain, managed in pairs)
        facts = extracted.count("kind=entity") / (_BATCHES * _EACH)
        return {**figures, "facts_per_message": facts}


def _bulk(folder: Path, texts: list[str]) -> dict[str, Any]:
    with recollect.open(folder / "bulk.db") as memory:
        items = [
            {
                "content": text,
                "kind": "user_fact",
                "user": f"user {n % (len(texts) // 50)}",
                "time": _START + timedelta(n),
            }
            for n, text in enumerate(texts)
        ]
        memory.remember_all(items)
        figures = {
            "entities_first_ms": _milliseconds(memory.entities),
            "entities_next_ms": _milliseconds(memory.entities),
            "duplicates_ms": _milliseconds(memory.duplicates),
            "contradictions_ms": _milliseconds(memory.contradictions),
        }
        done: list[Any] = []
        figures["consolidate_ms"] = _milliseconds(lambda: done.append(memory.consolidate()))
        return {**figures, "consolidated": done[0].replaced}


def _each(call: Callable[[str], None], texts: list[str]) -> None:
    for text in texts:
        call(text)


def _milliseconds(run: Callable[[], object]) -> float:
    gc.collect()
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1000
