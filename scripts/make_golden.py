"""Write tests/golden/format-N.db of this release's format N and a description of its contents.

Run once per format; it refuses to overwrite. The file represents the promise that stores of this
format can always be opened, so it is never written again.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import recollect
from recollect.records import codec
from recollect.stores.sqlite.schema import FORMAT

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


class Clock:
    """A second for each look."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def fill(memory: recollect.Memory) -> None:
    memory.remember(
        "Ana prefers window seats",
        kind="user_fact",
        user="ana",
        importance=0.8,
        tags=["travel"],
        metadata={"a.b": [1, 1.0]},
    )
    for speaker, text in (("Mara", "What colour is the boat?"), ("Tobias", "Red, with a white line."), ("Mara", "Ok.")):
        memory.remember(text, kind="conversation", conversation="harbour", session="s1", speaker=speaker)
    memory.remember(b"\x00\xff", media_type="application/octet-stream", id="bytes", pinned=True, trust=0.5)
    memory.remember("小王喜欢喝茶", id="zh", language="zh")
    memory.remember("draft", id="changed")
    memory.update(
        "changed", content="The lighthouse is lit at dusk", valid_from=START, valid_to=START + timedelta(days=9)
    )
    memory.remember("forgotten", id="gone")
    memory.forget("gone")
    later = recollect.Record(
        id="later", content="from a later release", time=START, unknown=(codec.RawField(900, 2, b"x"),)
    )
    with memory.batch(actor="golden", reason="a batch") as batch:
        batch.remember_all([later])
        batch.remember("to be swept", id="due", expires=START + timedelta(days=365 * 900))
    memory.glossary.memorize("tack", "turning the bow through the wind", "to go about", agent_id="bot")
    memory.outline.ingest_text("* Boats\n** Sails\ncotton\n", "org", source="boats.org")
    memory.sdr.store("the halyard is frayed")
    memory.keyed.write("plan", b"leave at dawn")


def main() -> None:
    path = GOLDEN / f"format-{FORMAT}.db"
    if path.exists():
        sys.exit(f"{path.name} is there, and is never written again")
    stored: dict[str, Any] = {}
    with recollect.open(path, clock=Clock()) as store:
        for name in ("default", "other tenant"):
            memory = store.namespace(name)
            fill(memory)
            stored[name] = {
                "root": memory.root,
                "parts": dict(memory.head().parts),
                "log_head": memory.head().log,
                "records": [record.to_json() for record in memory.find(order="id")],
                "log": [commit.to_json() for commit in memory.changes()],
            }
    text = json.dumps(stored, ensure_ascii=False, indent=1)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
