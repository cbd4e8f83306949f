"""Imports of texts with sparse codes, whose numbers are given once."""

from __future__ import annotations

import pytest
from tests.importers.test_jsonl_parts import Write, exported, imported

import recollect
from recollect import Memory


def test_an_import_gives_no_number_of_a_sparse_code_again(memory: Memory, write: Write) -> None:
    with recollect.open(":memory:") as source:
        source.sdr.store("one")
        lines = exported(source)
    given = [memory.sdr.store(text) for text in ("a", "b", "c")]
    memory.clear()
    imported(lines, write, memory)
    assert [each["text"] for each in memory.sdr.texts()] == ["one"]
    assert (given, memory.sdr.store("new")) == ([1, 2, 3], 4)


def test_numbers_go_on_after_an_import_that_has_lost_the_record_that_counts(memory: Memory, write: Write) -> None:
    with recollect.open(":memory:") as source:
        source.sdr.store_many([("one", None), ("two", None), ("three", None)])
        lines = [line for line in exported(source) if line.get("kind") != "sdr_counter"]
    assert memory.sdr.store("one") == 1
    report = imported(lines, write, memory)
    assert [each.reason for each in report.damaged] == ["the header says 4 records, but 3 lines follow it"]
    assert memory.sdr.store_many([("four", None), ("five", None)]) == [4, 5]
    assert [each["text"] for each in memory.sdr.texts()] == ["one", "two", "three", "four", "five"]


@pytest.mark.parametrize("content", ["many", "", "9" * 5000, "-3"])
def test_a_record_that_counts_nothing_changes_no_number(memory: Memory, write: Write, content: str) -> None:
    memory.sdr.store("one")
    lines = exported(memory, parts=["sdrs"])
    at = next(n for n, line in enumerate(lines) if line.get("kind") == "sdr_counter")
    lines[at] = {**{name: value for name, value in lines[at].items() if name != "hash"}, "content": content}
    imported(lines, write, memory)
    assert memory.sdr.store("two") == 2
    with recollect.open(":memory:") as target:
        imported(lines, write, target)
        assert target.sdr.store("two") == 2
