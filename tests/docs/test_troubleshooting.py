"""docs/troubleshooting.md names every error by its code, and quotes messages that the code has."""

from __future__ import annotations

import re

from tests.docs.source import texts
from tests.paths import ROOT

from recollect import errors

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
ROWS = [line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| ") and " | " in line]


def quoted_messages(rows: list[str]) -> list[str]:
    """Return the quotations of rows that begin with the code of an error, a warning or a quotation."""
    begins = re.compile(r"\| (?:`\w+`:|a `RecollectWarning`:|\")")
    return [text for row in rows if begins.match(row) for text in re.findall(r'"([^"]+)"', row)]


def missing(rows: list[str]) -> list[str]:
    return [text for text in quoted_messages(rows) if not any(text in each for each in texts())]


def test_every_error_has_a_row() -> None:
    codes = set(errors._BY_CODE) - {"error"}
    assert codes - {found for row in ROWS for found in re.findall(r"^\| `(\w+)`", row)} == set()


def test_every_quoted_message_is_one_of_the_code() -> None:
    assert len(quoted_messages(ROWS)) >= 40
    assert missing(ROWS) == []


def test_the_check_of_messages_notices_one_that_is_gone() -> None:
    assert missing(['| `busy`: "is busy with something else"', "| `store_missing`"]) == ["is busy with something else"]
