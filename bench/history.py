"""Snapshots, differences, rollbacks and the check of a large memory, of which few records have changed."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import recollect
from bench.corpus import cache_folder
from bench.measuring import milliseconds, told, versions

#: Records that differ between the moments that are compared, edits that were undone in between, and measurements.
CHANGED, UNDONE, ROUNDS = 10, 1000, 9


def histories(records: int) -> dict[str, Any]:
    """Times of a snapshot, a difference and a rollback of ten changes among `records`, in milliseconds."""
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        path = Path(folder) / "a.db"
        with recollect.open(path) as memory:
            with told(f"{records} records"):
                memory.remember_all({"content": f"fact {number}", "id": str(number)} for number in range(records))

            def change(round_: int) -> None:
                for number in range(CHANGED):
                    memory.update(str(number * 997 % records), content=f"changed {round_}.{number}")

            def edit_and_undo() -> None:
                for number in range(UNDONE // 2):
                    memory.update(str(number), importance=0.25)
                    memory.update(str(number), importance=None)

            def measured(prepare: Callable[[], object]) -> dict[str, float]:
                times: dict[str, list[float]] = {"snapshot": [], "diff": [], "rollback": []}
                for round_ in range(ROUNDS):
                    name = f"{prepare.__name__} {round_}"
                    times["snapshot"].append(milliseconds(lambda: memory.snapshot(name)))  # noqa: B023 - called at once
                    prepare()
                    change(round_)
                    times["diff"].append(milliseconds(lambda: memory.diff(name)))  # noqa: B023
                    times["rollback"].append(milliseconds(lambda: memory.rollback(name)))  # noqa: B023
                return {f"{name}_ms": statistics.median(each) for name, each in times.items()}

            plainly, after_edits = measured(lambda: None), measured(edit_and_undo)
            checked = milliseconds(memory.check)
    return {
        "command": "history",
        "records": records,
        "changed": CHANGED,
        **plainly,
        "undone_edits": UNDONE,
        "after_undone_edits": after_edits,
        "check_ms": checked,
        "versions": versions(),
    }
