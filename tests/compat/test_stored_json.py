"""JSON values and names in metadata, which no policy of a memory may break."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect import Policies
from recollect.compat.stored_json import loaded, safe_name, stored, unlettered
from recollect.compat.storing import store_all
from recollect.errors import RejectedError
from recollect.operations import Remember
from recollect.policies import redact, redact_json

KEEP, REDACT, REFUSE = (Policies(redaction=each) for each in ("keep", "redact", "refuse"))
_SECRETS = ("ana@example.com", "4111 1111 1111 1111", "password=hunter2", "+45 22 33 44 55")
_texts = st.text(max_size=12) | st.sampled_from(_SECRETS)
_pieces = st.lists(_texts | st.sampled_from(["\\n", '"', "\n", "\\"]), max_size=4).map("".join)
_scalars = st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats() | _pieces
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_pieces, inner, max_size=3), max_leaves=8
)


def same(one: Any, other: Any) -> bool:
    """Equal to the bit, with the order of keys; NaN is NaN."""
    return repr(one) == repr(other)


@given(_values)
def test_without_a_policy_every_value_comes_back_as_it_was(value: Any) -> None:
    assert same(loaded(stored(value, KEEP)), value)


@given(_values)
def test_a_value_is_redacted_before_it_is_text_and_stays_a_value(value: Any) -> None:
    """What the memory would then find in the text is nothing: so it changes nothing any more."""
    text = stored(value, REDACT)
    assert not redact(text).found
    assert same(loaded(text), redact_json(value)[0])


def test_what_is_redacted_is_not_there_in_letters_either() -> None:
    text = stored({"k": "write to ana@example.com", "n": math.nan, "big": 2**70}, REDACT)
    assert "ana" not in str(loaded(text))


@pytest.mark.parametrize("value", [{"a": ["ana@example.com"]}, {"password": "correct horse"}])
def test_a_secret_anywhere_is_refused_if_the_policy_says_so(value: Any) -> None:
    with pytest.raises(RejectedError):
        stored(value, REFUSE)
    assert json.loads(stored({"a": 1}, REFUSE)) == {"a": 1}


@given(_pieces | st.text(st.characters(), max_size=9) | st.sampled_from([":", ":ab", ":abc", "\ud800"]))
def test_a_name_comes_back_and_no_policy_changes_it(name: str) -> None:
    kept = safe_name(name)
    assert not redact(kept).found
    assert unlettered(kept) == name


def test_what_is_not_worth_remembering_is_stored_and_not_found() -> None:
    with recollect.open(":memory:") as memory:
        memory.set_policies(salience="strict")
        with memory.batch() as batch:
            store_all(batch, [Remember(content="ok", id="a"), Remember(content="Ana moved to Oslo in May.", id="b")])
        kept = memory.get_all(["a", "b"])
        assert [record and record.searchable for record in kept] == [False, True]


def test_what_another_policy_rejects_is_an_error_and_stores_nothing() -> None:
    with recollect.open(":memory:") as memory:
        memory.set_policies(redaction="refuse")
        with pytest.raises(RejectedError), memory.batch() as batch:
            store_all(batch, [Remember(content="fine", id="a"), Remember(content="ana@example.com", id="b")])
        assert memory.count() == 0
