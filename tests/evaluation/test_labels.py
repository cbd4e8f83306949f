"""The hand labels of the development data, and what the rules find on them. Needs the data: RECOLLECT_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bench.labels import FOLDER, labels

from bench import contradictions
from bench import entities as entity_bench
from recollect.text.attributes import Fact
from recollect.text.entities import TYPES

DATA = Path(os.environ.get("RECOLLECT_DATA", "nowhere"))
needs_data = pytest.mark.skipif(not (DATA / "locomo").is_dir(), reason="RECOLLECT_DATA names no development data")


def test_the_labels_are_of_200_turns_and_contain_no_text() -> None:
    spans, stated = labels("entities"), labels("contradictions")
    others = labels("entities-2")
    assert (len(spans), len(others), spans.keys() & others.keys()) == (200, 109, set())
    second, third = labels("facts-2"), labels("facts-3")
    assert second.keys() == others.keys()
    assert (len(third), third.keys() & (spans.keys() | others.keys())) == (150, set())
    assert all(0 <= start < end for each in (*second.values(), *third.values()) for start, end in each)
    assert all(0 <= start < end and kind in TYPES for each in others.values() for start, end, kind in each)
    assert spans.keys() == stated["turns"].keys()
    assert all(0 <= start < end and kind in TYPES for each in spans.values() for start, end, kind in each)
    assert all(turn in spans for pair in stated["pairs"] for turn in pair)
    words = {word for each in stated["turns"].values() for word in each}
    assert words <= {"age", "home", "income", "job", "name", "partner", "position"}
    assert all(path.stat().st_size < 20_000 for path in FOLDER.glob("*.json"))


@needs_data
def test_most_entities_are_found_and_most_of_what_is_found_is_right() -> None:
    found = entity_bench.measured(DATA)["all"]
    assert found.precision > 0.9
    assert found.recall > 0.9
    others = entity_bench.measured(DATA, name="entities-2")["all"]
    assert others.precision > 0.8
    assert others.recall > 0.8


@needs_data
def test_contradictions_raise_few_false_alarms() -> None:
    found = contradictions.measured(DATA)
    assert found.false_share <= 0.05
    assert found.right >= 0.9 * found.found > 0
    assert found.right >= 0.6 * found.labelled


@needs_data
@pytest.mark.parametrize("name", ["facts-2", "facts-3"])
def test_statements_in_turns_that_others_labelled_are_right(name: str) -> None:
    found = contradictions.stated_in(DATA, name)
    assert found.right >= 0.95 * found.found > 0


@needs_data
def test_a_rule_that_takes_every_value_for_another_raises_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: the count of false alarms can rise."""
    monkeypatch.setattr(contradictions, "same_value", lambda one, other: False)
    fact = Fact("mood", "any", "somebody", 0, 1)
    monkeypatch.setattr(contradictions, "stated", lambda text, speaker: [fact])
    assert contradictions.measured(DATA).false_share > 0.05
