"""The cost of a commit of another process for a reader: the time until its index has caught up.

One memory writes and another reads: a new record, a changed one, a turn of a conversation, a forgotten record. Only the
catching up is timed, not the recall.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import recollect
from bench import stores
from bench.corpus import cache_folder, corpus, questions
from bench.measuring import milliseconds, percentiles, versions
from recollect.testing.internals import core_of

ROUNDS = 100


def catching_up(records: int) -> dict[str, Any]:
    """Latencies of catching up with each kind of commit, beside those of a reader with nothing to catch up with."""
    source = corpus()
    kept = stores.plain(source, records)
    asked = questions(source.texts(records), 1)[0]
    times: dict[str, list[float]] = {"nothing": [], "remember": [], "update": [], "turn": [], "forget": []}
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        shutil.copytree(kept.parent, folder, dirs_exist_ok=True)
        path = Path(folder) / kept.name
        with recollect.open(path, durability="normal") as writer, recollect.open(path) as reader:
            reader.recall(asked)

            def catch_up() -> None:
                """Bring the index up to date, as recall does before it queries it."""
                with core_of(reader).store.read() as view:
                    core_of(reader).keeper.view(view, reader._branch)

            def caught_up(kind: str) -> None:
                times[kind].append(milliseconds(catch_up))

            for at in range(ROUNDS):
                caught_up("nothing")
                record = writer.remember(f"The harbour master wrote entry {at} into the book of the port")
                caught_up("remember")
                writer.update(record.id, content=f"The harbour master changed entry {at} of the book")
                caught_up("update")
                writer.remember(f"I said this as number {at}", kind="conversation", conversation=f"c{at % 5}")
                caught_up("turn")
                writer.forget(record.id)
                caught_up("forget")
    return {
        "command": "catch-up",
        "records": records,
        **{kind: {**percentiles(taken), "max_ms": max(taken)} for kind, taken in times.items()},
        **source.to_json(),
        "versions": versions(),
    }
