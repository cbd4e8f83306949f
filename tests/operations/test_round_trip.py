"""The checker of `make round-trip` notices a text that does not come back to the byte."""

from __future__ import annotations

import pytest
from scripts.round_trip import problems

from recollect.facets.outline.text import org

TEXT = "* A       :x:\n  :PROPERTIES:\n  :ID: 1\n  :END:\n"


def test_a_text_that_comes_back_has_no_problem() -> None:
    assert problems(TEXT, "org", "a.org") == []


def test_white_space_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(org, "_note_head", lambda *arguments: None)
    assert problems(TEXT, "org", "a.org") == [
        "another text is written",
        "with the line ends of Windows, another text is written",
    ]


def test_a_file_that_cannot_be_stored_is_noticed() -> None:
    assert "ID" in problems("* A\n:PROPERTIES:\n:ID: @user=a/1\n:END:\n", "org", "a.org")[0]
