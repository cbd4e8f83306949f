"""Redaction of texts: every pattern hides its examples and leaves the others, in linear time."""

from __future__ import annotations

import io
import logging
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.linear_patterns import faults

from recollect.errors import InvalidArgumentError
from recollect.redaction import CATEGORIES, RedactingFilter, redact, redact_json
from recollect.redaction.redactor import descriptions

HIDDEN = [(each["name"], each["category"], *pair) for each in descriptions() for pair in each["hides"]]
LEFT = [(each["name"], text) for each in descriptions() for text in each["leaves"]]


@pytest.mark.parametrize(("name", "category", "text", "hidden"), HIDDEN, ids=[f"{n}-{t[:20]}" for n, _, t, _ in HIDDEN])
def test_a_pattern_hides_its_examples(name: str, category: str, text: str, hidden: str) -> None:
    assert redact(text, [category]).text == hidden
    assert list(redact(text, [category]).found) == [category]


@pytest.mark.parametrize(("name", "text"), LEFT, ids=[f"{n}-{t[:20]}" for n, t in LEFT])
def test_a_pattern_leaves_what_only_resembles_its_examples(name: str, text: str) -> None:
    category = next(each["category"] for each in descriptions() if each["name"] == name)
    assert redact(text, [category]) == (text, {})


def test_every_pattern_has_examples_of_both_kinds_and_every_category_a_pattern() -> None:
    assert all(each["hides"] and each["leaves"] for each in descriptions())
    assert {each["category"] for each in descriptions()} == set(CATEGORIES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [  # the specification's
        ("apiKey=sk-1234567890", "apiKey=***REDACTED***"),
        ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer ***REDACTED***"),
        ("mail ana@example.com", "mail ***@***.***"),
        ("4111 1111 1111 1111", "****-****-****-****"),
        ("nothing here is secret", "nothing here is secret"),
        ("", ""),
    ],
)
def test_the_forms_of_the_specification(text: str, expected: str) -> None:
    assert redact(text).text == expected


@pytest.mark.parametrize(
    "text",
    [
        "On 2026-11-24 at 10:30 we shipped version 1.12.3, build 20261124.1 of commit 9f86d081884c7d65.",
        "She ran 42.195 km in 3:05:12, and paid 1 234 567,89 kr for 10 000 shirts.",
        "See https://example.com/a/b?page=2#top, ISBN 978-3-16-148410-0, and RFC 9110.",
        "UUID 123e4567-e89b-12d3-a456-426614174000, order 20240001234, IP 192.168.0.1:8080.",
        "My phone is old, my token of thanks is small, and the key is under the mat.",
        "def password(self): return None  # reset the password",
    ],
)
def test_ordinary_text_with_numbers_stays_as_it_is(text: str) -> None:
    assert redact(text) == (text, {})


def test_only_the_chosen_categories_are_redacted() -> None:
    text = "token=abc ana@example.com"
    assert redact(text, ["email"]) == ("token=abc ***@***.***", {"email": 1})
    assert redact(text, []) == (text, {})


@pytest.mark.parametrize("categories", ["email", ["emails"], 7, None])
def test_an_unknown_category_is_an_error(categories: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        redact("text", categories)


@pytest.mark.parametrize("text", [None, b"bytes", 7])
def test_what_is_not_text_is_an_error(text: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        redact(text)


PIECES = st.lists(
    st.one_of(
        st.sampled_from([text for _, _, text, _ in HIDDEN]),
        st.sampled_from([text for _, text in LEFT]),
        st.text(max_size=8),
        st.sampled_from([" ", "\n", "=", ": ", "@", "Bearer ", "password is ", "***"]),
    ),
    max_size=6,
).map("".join)


@settings(max_examples=some(300))
@given(text=PIECES)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once.text) == (once.text, {})
    assert bool(once.found) == (once.text != text)


def test_values_in_json_are_redacted_and_keys_name_secrets() -> None:
    value = {"note": "ana@example.com", "password": "horse", "deep": [{"api_key": "x"}], "n": 5, "none": None}
    redacted = {"note": "***@***.***", "password": "***REDACTED***", "deep": [{"api_key": "***REDACTED***"}]}
    assert redact_json(value) == ({**redacted, "n": 5, "none": None}, {"email": 1, "secret": 2})
    assert redact_json(redact_json(value)[0])[1] == {}


def test_a_log_handler_with_the_filter_writes_no_secrets() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactingFilter())
    logger = logging.Logger("tested")
    logger.addHandler(handler)
    logger.warning("user %s has %s", "ana@example.com", {"password": "hunter2"})
    try:
        raise ValueError("token=abcdef")
    except ValueError:
        logger.exception("failed for %d", 7)
    written = stream.getvalue()
    assert "user ***@***.*** has {'password': '***REDACTED***'}" in written
    assert "failed for 7" in written
    assert "ValueError: token=***REDACTED***" in written
    assert not re.search("ana@|hunter2|abcdef", written)


# Linear time


@pytest.mark.parametrize("name", [each["name"] for each in descriptions()])
def test_no_pattern_can_take_more_than_linear_time(name: str) -> None:
    pattern = next(each["pattern"] for each in descriptions() if each["name"] == name)
    assert faults(pattern) == []


@pytest.mark.parametrize("pattern", ["a+b", "(a|b)*+c", "(a{0,99}){0,99}b", "(?=a*b)c", "a{1,1000}b", "(?:x.*)+"])
def test_the_check_of_patterns_finds_slow_ones(pattern: str) -> None:
    assert faults(pattern)
