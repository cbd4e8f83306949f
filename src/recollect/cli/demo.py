"""The demo: it remembers a sample conversation and answers eight questions of different kinds.

It uses only the public API. Without a path it uses a temporary file that is deleted at the end.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from recollect.calls.calls import zone_of_store
from recollect.engine.results import Hits
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.stores.sealing.keys import Secret

NAMESPACE = "demo"
#: Number of hits for each question.
SHOWN = 3


class Answer(NamedTuple):
    """A question of the demo with its hits.

    Attributes:
        kind: The kind of question.
        note: What it demonstrates.
        evidence: The ids of the turns that answer it.
        milliseconds: The time that the recall took.
    """

    question: str
    kind: str
    note: str
    evidence: tuple[str, ...]
    hits: Hits
    milliseconds: float


#: The time zone of the sample conversation.
ZONE = "Europe/Copenhagen"


class Demo:
    """The sample conversation, remembered in the store at `path`, or in a temporary file if `path` is None."""

    def __init__(self, path: str | None = None, key: bytes | None = None, secret: Secret | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="recollect-demo-") if path is None else None
        self._path = path if self._folder is None else str(Path(self._folder.name) / "demo.db")
        zone = None if path is not None else ZONE
        self._memory: Memory = open_memory(self._path, NAMESPACE, embedder="none", key=key, zone=zone, secret=secret)
        self._kept = path is not None
        began = time.perf_counter()
        self._report = self._memory.remember_all(self._turns())
        self._seconds = time.perf_counter() - began
        self._memory.recall("anything at all")  # builds the index before the questions are timed

    @cached_property
    def _script(self) -> dict[str, Any]:
        script: dict[str, Any] = json.loads(Path(__file__).with_name("demo.json").read_text(encoding="utf-8"))
        return script

    def _turns(self) -> Iterator[dict[str, Any]]:
        position = 0
        for session in self._script["sessions"]:
            start = datetime.fromisoformat(session["start"])
            for minutes, turn in enumerate(session["turns"]):
                yield {
                    "id": turn["id"],
                    "content": turn["text"],
                    "kind": "conversation",
                    "conversation": self._script["conversation"],
                    "session": session["session"],
                    "speaker": turn["speaker"],
                    "position": position,
                    "time": start + timedelta(minutes=minutes),
                }
                position += 1

    @property
    def zone(self) -> tzinfo:
        """The time zone of the store."""
        return zone_of_store(self._memory)

    @property
    def root(self) -> str:
        """The root hash of the conversation."""
        return self._memory.root

    @property
    def turns(self) -> int:
        """The number of turns."""
        return len(self._report.results)

    @property
    def introduction(self) -> str:
        """A text about what was remembered."""
        turns, sessions = self.turns, len(self._script["sessions"])
        return (
            f"{self._script['title']}\n{turns} turns in {sessions} sessions, remembered in "
            f"{self._seconds * 1000:.0f} ms (durable, with history); root {self.root[:16]}..."
        )

    @property
    def farewell(self) -> str:
        """A text about what to try next."""
        db = self._path if self._kept else "demo.db"
        return "\n".join(
            (
                "Each line is a turn of the conversation; --json shows the shares that add up to its score. Try next:",
                *([] if self._kept else ["  recollect --db demo.db demo        (keeps the store for the next line)"]),
                f"  recollect --db {db} -n {NAMESPACE} recall 'who is the mason for the chimney?'",
                '  recollect remember "Ana prefers window seats" --kind user_fact --user ana',
                '  recollect recall "which seat should I book for Ana?"',
                "  recollect import text NOTES.txt        (also: markdown, openai, anthropic, ...)",
                "  python -c 'import recollect; help(recollect.open)'",
            )
        )

    def answers(self) -> Iterator[Answer]:
        """Ask the questions one by one and yield the answers."""
        for question in self._script["questions"]:
            began = time.perf_counter()
            hits = self._memory.recall(question["question"], k=SHOWN)
            took = (time.perf_counter() - began) * 1000
            yield Answer(
                question["question"], question["kind"], question["note"], tuple(question["evidence"]), hits, took
            )

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self._script["title"],
            "turns": len(self._report.results),
            "sessions": len(self._script["sessions"]),
            "remembered_ms": self._seconds * 1000,
            "root": self.root,
            "answers": [
                {
                    "kind": answer.kind,
                    "evidence": list(answer.evidence),
                    "milliseconds": answer.milliseconds,
                    **answer.hits.to_json(),
                }
                for answer in self.answers()
            ],
        }

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *exc: object) -> None:
        self._memory.close()
        if self._folder is not None:
            self._folder.cleanup()
