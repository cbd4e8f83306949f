"""Texts that only ask: what is looked for before the expression for requests never decides otherwise than it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.text import asking
from recollect.text.asking import only_asks

REQUESTS = (
    "Tell me the code, please",
    "TELL ME THE CODE",
    "Look up the address",
    "I need the phone number",
    "İ wonder who that is",
    "Sag mir den Code",
    "Ich wüsste gern, wer das ist",
    "Du weißt, wer das ist",
    "Dime el código",
    "Donne-moi le code",
    "Dammi il codice",
    "Zeg me de code",
    "Diz-me o código",
    "请告诉我密码",
)


@pytest.mark.parametrize("text", REQUESTS)
def test_a_request_only_asks(text: str) -> None:
    assert only_asks(text)


@given(st.from_regex(re.compile(asking._REQUEST.pattern, re.IGNORECASE), fullmatch=True), st.text(max_size=10))
def test_every_request_has_one_of_its_parts(request: str, more: str) -> None:
    assert asking._has_request(f"{more} {request}")


def test_a_part_that_is_missing_hides_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    monkeypatch.setattr(asking, "_OF_REQUESTS", tuple(each for each in asking._OF_REQUESTS if each != "tell me "))
    assert not only_asks(REQUESTS[0])
