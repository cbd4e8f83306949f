"""Redaction of texts: every pattern hides its examples and leaves the others, in linear time."""

from __future__ import annotations

import io
import logging
import re
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

from recollect.errors import InvalidArgumentError
from recollect.redaction import CATEGORIES, RedactingFilter, redact, redact_json
from recollect.redaction.redactor import descriptions

HIDDEN = [(each["name"], each["category"], *pair) for each in descriptions() for pair in each["hides"]]
LEFT = [(each["name"], text) for each in descriptions() for text in each["leaves"]]
#: More than this, and a bounded repeat is no bound in practice.
_MOST = 200


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


def _faults(pattern: str) -> list[str]:
    """Return why a pattern may take more than linear time; [] if it cannot.

    A bounded pattern takes at most a constant number of steps from each position. An unbounded repeat must be
    possessive, and all after it optional, so that what it read is consumed and not read again from another position.
    """
    return _of_sequence(parser.parse(pattern), last=True, repeated=1)


def _of_sequence(items: Any, *, last: bool, repeated: int) -> list[str]:
    found: list[str] = []
    nodes = list(items)
    for at, (op, value) in enumerate(nodes):
        tail = last and all(_is_optional(each) for each in nodes[at + 1 :])
        found += _of_node(op, value, last=tail, repeated=repeated)
    return found


def _is_optional(node: Any) -> bool:
    op, value = node
    return op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT) and value[0] == 0


def _of_node(op: Any, value: Any, *, last: bool, repeated: int) -> list[str]:
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        least, most, inner = value
        if most == ops.MAXREPEAT:
            faults = [] if op is ops.POSSESSIVE_REPEAT and last else ["an unbounded repeat that can be tried again"]
            return faults + _of_sequence(inner, last=True, repeated=1)
        ways = 1 if op is ops.POSSESSIVE_REPEAT else most - least + 1
        faults = [f"a repeat of {most}"] if most > _MOST else []
        faults += [f"{repeated * ways} ways"] if repeated * ways > 5000 else []
        once = op is ops.POSSESSIVE_REPEAT and most == 1
        return faults + _of_sequence(inner, last=last and once, repeated=repeated * ways)
    if op is ops.SUBPATTERN:
        return _of_sequence(value[3], last=last, repeated=repeated)
    if op is ops.ATOMIC_GROUP:
        return _of_sequence(value, last=last, repeated=repeated)
    if op is ops.BRANCH:
        return [fault for each in value[1] for fault in _of_sequence(each, last=last, repeated=repeated)]
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return _of_sequence(value[1], last=False, repeated=repeated)
    if op is ops.GROUPREF_EXISTS:
        return [fault for each in value[1:] if each for fault in _of_sequence(each, last=last, repeated=repeated)]
    return []


@pytest.mark.parametrize("name", [each["name"] for each in descriptions()])
def test_no_pattern_can_take_more_than_linear_time(name: str) -> None:
    pattern = next(each["pattern"] for each in descriptions() if each["name"] == name)
    assert _faults(pattern) == []


@pytest.mark.parametrize("pattern", ["a+b", "(a|b)*+c", "(a{0,99}){0,99}b", "(?=a*b)c", "a{1,1000}b", "(?:x.*)+"])
def test_the_check_of_patterns_finds_slow_ones(pattern: str) -> None:
    assert _faults(pattern)
