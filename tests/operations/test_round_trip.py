"""The checker of `make round-trip` finds every difference that it should, and explains only white space."""

from __future__ import annotations

import pytest
from scripts.round_trip import differences, explained


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ("* A    :x:", "* A :x:", "headline"),
        ("  :ID: 1", ":ID: 1", "drawer"),
        ("  SCHEDULED: <2026-01-01>", "SCHEDULED: <2026-01-01>", "SCHEDULED"),
        ("* A :x:", "* A :y:", None),
        ("text  with blanks", "text with blanks", None),
        (":ID: 1", ":ID: 2", None),
    ],
)
def test_only_white_space_of_what_outlines_read_is_explained(before: str, after: str, word: str | None) -> None:
    reason = explained(before, after)
    assert reason is None if word is None else reason is not None and word in reason


def test_a_line_too_many_is_a_difference_without_an_explanation() -> None:
    assert list(differences("* A\n", "* A\n")) == []
    assert list(differences("* A\n", "* A\n\n")) == [None]
