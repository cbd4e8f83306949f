"""A bulk write in one call: its rate and memory, and how both grow from a tenth of the records to all.

Turns of conversations (`bench.dialogues`) are written by one `remember_all` and are durable and searchable after the
first recall. Each size is measured in a process of its own, whose greatest resident memory includes the list of the
caller, and each has FTS5 beside it, which gets the same texts in one durable transaction.
"""

from __future__ import annotations

import json
import resource
import tempfile
from pathlib import Path
from typing import Any

import recollect
from bench.corpus import cache_folder
from bench.dialogues import dialogues
from bench.measuring import in_fresh_process, milliseconds, versions
from bench.writing import fts5_ms

_SIZE = """
import json, sys
from bench.bulk import one_call
print(json.dumps(one_call(int(sys.argv[1]))))
"""


def one_call(records: int) -> dict[str, float]:
    """The figures of so many turns, in this process."""
    source = dialogues()
    turns = [
        {
            "kind": "conversation",
            "content": turn.text,
            "conversation": turn.conversation,
            "session": turn.session,
            "speaker": turn.speaker,
        }
        for turn in source.turns(records)
    ]
    with tempfile.TemporaryDirectory(dir=cache_folder()) as name:
        folder = Path(name)
        with recollect.open(folder / "bulk.db") as memory:
            store_ms = milliseconds(memory.remember_all, turns)
            recall_ms = milliseconds(memory.recall, source.questions(1)[0])
            assert memory.count() == records
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        other_ms = fts5_ms(folder / "fts5.db", [turn["content"] for turn in turns])
    return {
        "records": records,
        "per_s": records / (store_ms + recall_ms) * 1000,
        "store_per_s": records / store_ms * 1000,
        "first_recall_s": recall_ms / 1000,
        "peak_bytes": peak,
        "fts5_per_s": records / other_ms * 1000,
    }


def bulk(records: int) -> dict[str, Any]:
    """The figures of a tenth of so many turns, and of all."""
    sizes = [json.loads(in_fresh_process(_SIZE, str(size))) for size in (records // 10, records)]
    return {
        "command": "bulk",
        "sizes": sizes,
        "rate_of_all_to_that_of_a_tenth": sizes[1]["per_s"] / sizes[0]["per_s"],
        "corpus": dialogues().origin,
        "versions": versions(),
    }
