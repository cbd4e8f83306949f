"""docs/observability.md lists the spans and the attributes that there are."""

from __future__ import annotations

import re

from tests.paths import ROOT

from recollect.observe import conventions
from recollect.observe.conventions import MEMORY_OPERATIONS, span_name
from recollect.operations.base import all_operations

PAGE = (ROOT / "docs" / "observability.md").read_text("utf-8")


def cells(column: int) -> list[str]:
    """Return the pieces of code in a column of the tables of the page."""
    rows = [line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| ")]
    return [piece for row in rows for piece in re.findall(r"`([^`]+)`", row[column])]


def test_the_page_lists_the_attributes_that_there_are() -> None:
    there = {
        value for name, value in vars(conventions).items() if name.isupper() and isinstance(value, str) and "." in value
    }
    listed = {each for each in cells(0) if "." in each.rstrip(".")}
    assert listed == there - {conventions.EXCEPTION_TYPE}  # which a sentence names
    assert conventions.EXCEPTION_TYPE in PAGE


def test_the_page_lists_the_operations_of_each_span() -> None:
    for row in PAGE.splitlines():
        if (found := re.match(r"\| `(\w+_memory)` \|", row)) is not None:
            listed = re.findall(r"`(\w+)`", row)[1:]
            assert set(listed) == {call for call, name in MEMORY_OPERATIONS.items() if name == found[1]}


def test_the_page_names_no_operation_as_a_span_that_has_none() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `recollect.` and"))
    for call in re.findall(r"`(\w+)`", row):
        assert span_name(call) == f"recollect.{call}"
    assert {"get", "find", "count", "head", "changes"} <= {each for each in all_operations() if span_name(each) is None}
