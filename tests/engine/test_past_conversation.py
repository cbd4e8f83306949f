"""Recall as of each moment of a real conversation, compared to the bit with what it gave when it was the present."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.examples import FULL

import recollect
from recollect import filters as f

#: Moments and questions that are compared; `make test-all` compares all of them.
MOMENTS = 200 if FULL else 30
QUESTIONS = 20
TURNS_PER_COMMIT = 2


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2023, 5, 8, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


def answers(memory: recollect.Memory, questions: list[str]) -> list[Any]:
    """The ids, scores, confidences, explanations and plans of the hits: every other question has a filter."""
    out = []
    for number, question in enumerate(questions):
        where = f.speaker("Caroline") & ~f.tag("old") if number % 2 else None
        hits = memory.recall(question, k=10, where=where).to_json()
        del hits["plan"]["kernels"], hits["time"], hits["reference"]
        out.append(hits)
    return out


def test_every_moment_of_a_conversation_gives_what_it_gave_then(data_folder: Path, tmp_path: Path) -> None:
    source = json.loads((data_folder / "locomo" / "locomo5-dev.json").read_text(encoding="utf-8"))[0]
    sessions = [(key, each) for key, each in source["conversation"].items() if isinstance(each, list)]
    turns = [(key, turn) for key, session in sessions for turn in session]
    questions = [each["question"] for each in source["qa"]][: QUESTIONS * 5 : 5]
    assert len(turns) >= MOMENTS * TURNS_PER_COMMIT / 2
    rng, clock = random.Random(7), Clock()
    recorded: list[tuple[int, list[Any]]] = []
    with recollect.open(tmp_path / "a.db", clock=clock) as memory:
        for moment in range(MOMENTS):
            clock.time += timedelta(hours=rng.randint(1, 9))
            stored = [record.id for record in memory.find(order="id")]
            with memory.batch() as batch:
                for key, turn in turns[moment * TURNS_PER_COMMIT :][:TURNS_PER_COMMIT]:
                    expires = clock.time + timedelta(hours=rng.randint(2, 60)) if rng.random() < 0.2 else None
                    batch.remember(
                        turn["text"],
                        id=turn["dia_id"],
                        kind="conversation",
                        conversation=source["sample_id"],
                        session=key,
                        speaker=turn["speaker"],
                        expires=expires,
                    )
                if stored:
                    batch.update(rng.choice(stored), tags=["old"])
                    batch.update(rng.choice(stored), content=f"{rng.choice(turns)[1]['text']} (changed)")
                if stored and rng.random() < 0.5:
                    batch.forget(rng.choice(stored))
            recorded.append((memory.seq, answers(memory, questions)))
        assert any(change.cause == "expired" for commit in memory.changes() for change in commit.changes)
        rng.shuffle(recorded)
        for seq, expected in recorded:
            assert answers(memory.at(seq), questions) == expected, f"commit {seq}"
