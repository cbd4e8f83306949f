"""Recall as of a past moment, compared with recall of the present in the same run.

The moment is `COMMITS` commits back: new, changed and forgotten records by turns. The first recall derives the word
index of the moment from that of the present; the following ones find it in memory, and a neighbouring moment starts
from it.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import recollect
from bench import stores
from bench.corpus import cache_folder, corpus, questions
from bench.measuring import milliseconds, versions

#: The commits that are made after the moment.
COMMITS = 1000


def pasts(records: int, asked: int) -> dict[str, Any]:
    """Times of the first recall as of a past moment and of the next ones, and of the same recalls of the present."""
    source = corpus()
    kept = stores.plain(source, records)
    queries = questions(source.texts(records), asked)
    rng = random.Random(1)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        shutil.copytree(kept.parent, folder, dirs_exist_ok=True)
        with recollect.open(Path(folder) / kept.name, durability="normal") as memory:
            moment = memory.seq
            ids = [record.id for record in memory.find(order="id")]
            rng.shuffle(ids)
            for at in range(COMMITS):
                if at % 3 == 0:
                    memory.remember(f"The harbour master wrote entry {at} into the book of the port")
                elif at % 3 == 1:
                    memory.update(ids.pop(), content=f"The harbour master changed entry {at} of the book")
                else:
                    memory.forget(ids.pop())
            for query in queries:
                memory.recall(query)
            past = memory.at(moment)
            first = milliseconds(lambda: past.recall(queries[0]))
            for query in queries:
                past.recall(query)
            times: dict[str, list[float]] = {"present": [], "past": []}
            for query in queries:
                times["present"].append(milliseconds(lambda: memory.recall(query)))  # noqa: B023 - called at once
                times["past"].append(milliseconds(lambda: past.recall(query)))  # noqa: B023
            near = memory.at(moment + 1)
            beside = milliseconds(lambda: near.recall(queries[0]))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    return {
        "command": "past",
        "records": records,
        "commits": COMMITS,
        "first_ms": first,
        "neighbour_ms": beside,
        "present_p50_ms": medians["present"],
        "past_p50_ms": medians["past"],
        "ratio": medians["past"] / medians["present"],
        **source.to_json(),
        "versions": versions(),
    }
