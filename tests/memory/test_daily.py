"""The daily path: six days of chats and documents, and the questions that their people ask.

The questions and their answers are in `bench/daily`; the expected numbers are a little below the measured ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench.daily import asked_otherwise
from bench.daily.__main__ import asked, fill

import recollect
from recollect import Memory


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with recollect.open(":memory:") as memory:
        fill(memory, tmp_path_factory.mktemp("documents"))
        yield memory


def test_nine_of_ten_answers_are_among_the_first_three(memory: Memory) -> None:
    results = asked(memory)
    found = {section: sum(each[1] for each in rows) / len(rows) for section, rows in results.items()}
    assert sum(len(rows) for rows in results.values()) == 100
    assert sum(each[1] for rows in results.values() for each in rows) >= 95
    assert min(found.values()) >= 0.8, found


def test_questions_as_people_put_them_are_answered() -> None:
    with recollect.open(":memory:") as other:
        asked_otherwise.fill(other)
        results = asked_otherwise.asked(other)
    found = {section: sum(each[1] for each in rows) / len(rows) for section, rows in results.items()}
    assert sum(len(rows) for rows in results.values()) == 100
    assert sum(each[1] for rows in results.values() for each in rows) >= 95
    assert min(found.values()) >= 0.9, found


def test_the_control_without_frames_fails(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.indexes.scoring import signals
    from recollect.text.frames import Frame

    monkeypatch.setattr(signals, "frame_of", lambda *arguments: Frame())
    who = asked(memory)["who said it"]
    assert sum(each[1] for each in who) < 0.7 * len(who)
