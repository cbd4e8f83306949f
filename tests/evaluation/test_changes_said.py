"""Facts that change, as people say it, are found as often as docs/contradictions.md says, and few false ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bench import changed_facts

_PAGE = Path(__file__).parents[2] / "docs" / "contradictions.md"


@pytest.fixture(scope="module")
def counts() -> dict[str, changed_facts.Alarms]:
    return {name: each for (name, language), each in changed_facts.measured().items() if language == "all"}


def test_changed_facts_are_found_as_often_as_the_page_says(counts: dict[str, changed_facts.Alarms]) -> None:
    page = _PAGE.read_text("utf-8")
    unseen = [counts["held-out"], counts["held-out-2"]]
    seen = [counts[name] for name in ("tester", "open", "open-2")]
    for sets in (unseen, seen):
        pairs, found = sum(each.changed for each in sets), sum(each.found for each in sets)
        assert re.search(rf"\b{pairs} pairs\b.*?\b{found} are found", page), (pairs, found)
    misleading = counts["misleading"]
    assert f"{misleading.false} of {misleading.others}" in page


def test_what_has_not_changed_is_hardly_ever_reported(counts: dict[str, changed_facts.Alarms]) -> None:
    usual = [each for name, each in counts.items() if name != "misleading"]
    assert sum(each.false for each in usual) <= 1
    assert sum(each.found for each in usual) > 250, "control: the rules find something"


def test_the_measure_counts_false_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: a memory that reports everything has nothing but false alarms among the pairs that did not change."""

    def some() -> list[dict[str, Any]]:
        return [
            {"set": "open", "language": "en", "changed": changed, "first": "", "second": ""}
            for changed in (True, False)
        ]

    monkeypatch.setattr(changed_facts, "pairs", some)
    monkeypatch.setattr(changed_facts, "reported", lambda pair: True)
    assert changed_facts.measured()["open", "all"] == (1, 1, 1, 1)
    assert changed_facts.measured()["open", "all"].precision == 0.5
