"""The builders of the five usual kinds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidRecordError
from recollect.records import factories
from recollect.records.record import Record


def test_a_message_has_its_role_and_conversation_as_fields_and_in_metadata() -> None:
    assert factories.conversation("Hello", role="user", conversation="c1", position=3) == {
        "kind": "conversation",
        "content": "Hello",
        "role": "user",
        "conversation": "c1",
        "position": 3,
        "importance": 0.5,
        "metadata": {"role": "user", "conversation_id": "c1"},
    }


def test_an_entity_fact_has_its_entity_from_the_name() -> None:
    assert factories.entity("likes tea", name="  extra   spaces  ") == {
        "kind": "entity",
        "content": "likes tea",
        "entity": "_extra_spaces_",
        "importance": 0.5,
        "metadata": {
            "entity_id": "_extra_spaces_",
            "entity_name": "  extra   spaces  ",
            "entity_type": "unknown",
        },
    }


def test_an_entity_fact_may_be_given_its_entity_and_type() -> None:
    made = factories.entity("likes tea", name="Ada", entity="person:1", entity_type="person")
    assert made["entity"] == "person:1"
    assert made["metadata"] == {"entity_id": "person:1", "entity_name": "Ada", "entity_type": "person"}


def test_knowledge_has_no_importance_unless_it_is_given() -> None:
    assert factories.knowledge("Water boils", source="a.md", chunk_index=0) == {
        "kind": "knowledge",
        "content": "Water boils",
        "source": "a.md",
        "metadata": {"source": "a.md", "chunk_index": 0},
    }
    assert factories.knowledge("Water boils", importance=0.9)["importance"] == 0.9


def test_a_user_fact_names_its_user() -> None:
    assert factories.user_fact("prefers windows", user="ana") == {
        "kind": "user_fact",
        "content": "prefers windows",
        "user": "ana",
        "importance": 0.5,
        "metadata": {"user_id": "ana"},
    }
    assert "user" not in factories.user_fact("prefers windows")


@pytest.mark.parametrize("success", [True, False])
def test_a_task_tells_what_was_done_and_how_it_ended(success: bool) -> None:
    assert factories.task("book a seat", "12A", success=success) == {
        "kind": "task",
        "content": "Task: book a seat\nOutcome: 12A",
        "importance": 0.5,
        "metadata": {"success": success},
    }


@pytest.mark.parametrize(
    ("given_", "kept"),
    [(-0.5, 0.0), (1.5, 1.0), (0, 0.0), (1, 1.0), (float("inf"), 1.0), (-float("inf"), 0.0), (0.3, 0.3)],
)
def test_importance_out_of_range_is_clamped(given_: float, kept: float) -> None:
    for made in (
        factories.conversation("x", role="user", importance=given_),
        factories.entity("x", name="a", importance=given_),
        factories.knowledge("x", importance=given_),
        factories.user_fact("x", importance=given_),
        factories.task("x", "y", success=True, importance=given_),
    ):
        assert made["importance"] == kept


@pytest.mark.parametrize("importance", [float("nan"), "0.5", [0.5]])
def test_importance_that_is_no_number_is_refused(importance: Any) -> None:
    with pytest.raises(InvalidRecordError, match="must be a number"):
        factories.user_fact("x", importance=importance)


def test_none_takes_the_default_importance_away() -> None:
    assert "importance" not in factories.task("x", "y", success=True, importance=None)


def test_metadata_of_the_caller_is_joined_and_wins() -> None:
    given_ = {"user_id": "mine", "more": 1}
    made = factories.user_fact("x", user="ana", metadata=given_)
    assert made["metadata"] == {"user_id": "mine", "more": 1}
    assert given_ == {"user_id": "mine", "more": 1}


@given(st.text(), st.text(), st.booleans(), st.floats())
def test_what_the_builders_give_makes_a_record_or_is_refused_as_one(
    description: str, outcome: str, success: bool, importance: float
) -> None:
    try:
        made = factories.task(description, outcome, success=success, importance=importance)
        record = Record(id="r", **made)
    except InvalidRecordError as error:
        assert importance != importance or error.field == "content"
    else:
        assert record.content == f"Task: {description}\nOutcome: {outcome}"
        assert record.metadata == {"success": success}
