"""Policies of a namespace: what happens to texts with secrets, by every call and in every process."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.exports import exported

import recollect
from recollect import Memory
from recollect.errors import (
    ConflictError,
    DamagedStoreError,
    InvalidArgumentError,
    RecollectError,
    RejectedError,
    ScopeError,
    Verdict,
)
from recollect.operations import ExecuteBatch, GetPolicies, Remember, RememberAll, Supersede, Update
from recollect.testing.loopback import core_of

SECRET, CLEAN = "token=abcdef", "token=***REDACTED***"
VERDICT = Verdict("redaction", "contains a key, token or password", ("secret",))

pytestmark = pytest.mark.stores("memory", "sqlite")


@pytest.fixture
def refusing(memory: Memory) -> Memory:
    memory.set_policies(redaction="refuse")
    memory.remember("first", id="first", importance=0.2)
    return memory


@pytest.fixture
def redacting(memory: Memory) -> Memory:
    memory.set_policies(redaction="redact")
    return memory


# One form of refusal

WRITES: dict[str, Callable[[Any], object]] = {
    "remember": lambda calls: calls.remember(SECRET),
    "remember with an id": lambda calls: calls.remember(SECRET, id="mine"),
    "remember that updates": lambda calls: calls.remember(SECRET, id="first", if_exists="update"),
    "remember in metadata": lambda calls: calls.remember("text", metadata={"deep": [{"password": "horse"}]}),
    "update": lambda calls: calls.update("first", content=SECRET),
    "update by a function": lambda calls: calls.update("first", lambda record: record.changed(content=SECRET)),
    "supersede": lambda calls: calls.supersede("first", SECRET),
    "record_user_fact": lambda calls: calls.record_user_fact(SECRET, user="ana"),
    "record_entity_fact": lambda calls: calls.record_entity_fact("db", "Database", SECRET),
    "record_task": lambda calls: calls.record_task("log in", SECRET, True),
    "record_knowledge": lambda calls: calls.record_knowledge(SECRET, source="file"),
    "remember_all that raises": lambda calls: calls.remember_all(["fine", SECRET], on_error="raise"),
}


@pytest.mark.promise("policy.refused")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_refused_text_raises_the_verdict_and_stores_nothing(write: Callable[[Any], object], refusing: Memory) -> None:
    before = exported(refusing)
    with pytest.raises(RejectedError) as raised:
        write(refusing)
    assert raised.value.verdict == VERDICT
    assert raised.value.code == "rejected"
    assert exported(refusing) == before
    assert "abcdef" not in str(raised.value)


@pytest.mark.parametrize("write", [write for name, write in WRITES.items() if "all" not in name])
def test_a_refused_text_in_a_batch_leaves_the_rest_of_the_batch(
    write: Callable[[Any], object], refusing: Memory
) -> None:
    with refusing.batch() as batch:
        batch.remember("second", id="second")
        with pytest.raises(RejectedError):
            write(batch)
        batch.remember("third", id="third")
    assert sorted(record.id for record in refusing.find()) == ["first", "second", "third"]


@pytest.mark.parametrize(
    "operation",
    [
        Remember(content=SECRET),
        Update(id="first", changes={"content": SECRET}),
        Supersede(id="first", content=SECRET),
    ],
)
def test_execute_returns_an_outcome_with_the_verdict(operation: Any, refusing: Memory) -> None:
    outcome = refusing.execute(operation)
    assert (outcome.status, outcome.record, outcome.verdict) == ("rejected", None, VERDICT)
    assert recollect.Outcome.from_json(outcome.to_json()) == outcome
    fine, rejected = refusing.execute(ExecuteBatch(operations=(Remember(content="fine"), operation)))
    assert (fine.status, rejected.status) == ("created", "rejected")


def test_reports_list_the_refused_items_and_the_others_are_stored(refusing: Memory) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        all_of_them = refusing.remember_all(["one", SECRET, "two"])
        messages = [{"role": "user", "content": text} for text in ("hello", SECRET, "bye")]
        added = refusing.add_messages(messages, conversation="chat")
    for report in (all_of_them, added):
        assert report.count("created") == 2
        (failed,) = report.failed
        assert (failed.index, failed.reason.args) == (1, ("redaction", VERDICT.reason, "secret"))
    assert refusing.execute(RememberAll(items=(Remember(content=SECRET),))).failed[0].reason.code == "rejected"


def test_an_expectation_is_checked_before_the_policy(refusing: Memory) -> None:
    with pytest.raises(ConflictError):
        refusing.remember(SECRET, id="first", expect="absent")
    with pytest.raises(ConflictError):
        refusing.update("first", content=SECRET, expect="0" * 64)
    with pytest.raises(RejectedError):
        refusing.remember(SECRET, id="new", expect="absent")


def test_a_rejection_survives_json() -> None:
    error = RejectedError("redaction", VERDICT.reason, "secret")
    again = RecollectError.from_json(error.to_json())
    assert isinstance(again, RejectedError)
    assert again.verdict == pickle.loads(pickle.dumps(error)).verdict == VERDICT


# Redaction


def test_what_is_redacted_is_stored_with_asterisks_and_has_an_id_of_its_own(redacting: Memory) -> None:
    record = redacting.remember(SECRET, metadata={"mail": "ana@example.com", "n": 1})
    assert (record.content, record.metadata) == (CLEAN, {"mail": "***@***.***", "n": 1})
    assert record.id == redacting.remember(CLEAN).id
    assert redacting.remember("token=another").id == record.id
    assert redacting.get(record.id) == record


@pytest.mark.promise("policy.redacted")
def test_a_conversation_that_is_passed_again_is_recognised_in_its_redacted_form(redacting: Memory) -> None:
    messages = [{"role": "user", "content": "my password is hunter2"}, {"role": "assistant", "content": "noted"}]
    first = redacting.add_messages(messages)
    messages.append({"role": "user", "content": "thanks"})
    again = redacting.add_messages(messages)
    assert (first.count("created"), again.count("created"), again.count("unchanged")) == (2, 1, 2)
    items = [{**each, "conversation": "chat"} for each in messages]
    assert redacting.remember_all(items).count("created") == 3
    assert redacting.remember_all(items).count("unchanged") == 3
    assert not any("hunter2" in str(record.content) for record in redacting.find())


def test_the_name_of_a_conversation_is_derived_from_the_redacted_text_by_every_call(redacting: Memory) -> None:
    messages = [{"role": "user", "content": SECRET}, {"role": "assistant", "content": "noted"}]
    first = redacting.add_messages(messages)
    assert redacting.add_messages(messages).count("unchanged") == 2
    with redacting.batch() as batch:
        assert batch.add_messages(messages).count("unchanged") == 2
    assert first.count("created") == redacting.count() == 2


def test_a_conversation_with_a_refused_turn_is_recognised_without_it(refusing: Memory) -> None:
    messages = [{"role": "user", "content": text} for text in ("hello", "how are you?", SECRET, "bye")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refusing.add_messages(messages[:3], conversation="chat")
        report = refusing.add_messages(messages, conversation="chat")
        again = refusing.add_messages(messages, conversation="chat")
    assert (report.count("unchanged"), report.count("created"), len(report.failed)) == (2, 1, 1)
    assert (again.count("unchanged"), again.count("created")) == (3, 0)


def test_an_update_that_does_not_touch_the_text_is_allowed_whatever_is_stored(memory: Memory) -> None:
    memory.remember(SECRET, id="old")
    memory.set_policies(redaction="refuse")
    assert memory.update("old", importance=0.9).content == SECRET
    memory.set_policies(redaction="redact")
    assert memory.update("old", importance=0.8).content == SECRET
    assert memory.update("old", content=SECRET + "!").content == CLEAN


def test_only_the_chosen_categories_count(memory: Memory) -> None:
    memory.set_policies(redaction="refuse", categories=["card"])
    assert memory.remember(SECRET).content == SECRET
    with pytest.raises(RejectedError, match="the number of a payment card"):
        memory.remember("4111 1111 1111 1111")


def test_bytes_have_no_text_to_redact(redacting: Memory) -> None:
    assert redacting.remember(SECRET.encode(), media_type="text/plain").content == SECRET.encode()


# The setting


@pytest.mark.promise("policy.everyone")
def test_policies_apply_to_scopes_reserved_namespaces_and_other_handles(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "m.db") as one, recollect.open(tmp_path / "m.db") as other:
        one.set_policies(redaction="refuse")
        assert (
            other.execute(GetPolicies()).redaction
            == other.scoped(user="ana").execute(GetPolicies()).redaction
            == "refuse"
        )
        for handle in (other, other.scoped(user="ana")):
            with pytest.raises(RejectedError):
                handle.remember(SECRET)
        assert other.namespace("elsewhere").remember(SECRET).content == SECRET
        one.set_policies()
        assert other.remember(SECRET).content == SECRET


@pytest.mark.parametrize("kind", ["texts", "messages"])
@pytest.mark.parametrize("redaction", ["redact", "refuse"])
def test_a_policy_set_between_two_commits_of_a_bulk_write_applies_to_the_second(
    kind: str, redaction: Any, tmp_path: Path
) -> None:
    texts = [SECRET, *(f"text {number}" for number in range(1200)), SECRET + "9"]
    with recollect.open(tmp_path / "m.db") as other:

        def clock() -> datetime:
            if other.count() == 1000:
                other.set_policies(redaction=redaction)
            return datetime(2026, 1, 1, tzinfo=UTC)

        with recollect.open(tmp_path / "m.db", clock=clock) as memory, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "texts":
                report = memory.remember_all(texts)
            else:
                report = memory.add_messages([{"role": "user", "content": text} for text in texts], conversation="c")
        stored = [record.content for record in other.find(order="oldest")]
    assert stored[0] == SECRET
    assert stored[-1] == (CLEAN if redaction == "redact" else texts[-2])
    assert len(report.failed) == (0 if redaction == "redact" else 1)


def test_a_scope_cannot_set_policies(memory: Memory) -> None:
    with pytest.raises(ScopeError):
        memory.scoped(user="ana").set_policies(redaction="keep")


@pytest.mark.parametrize(
    "policies",
    [{"redaction": "drop"}, {"redaction": None}, {"categories": ["mail"]}, {"categories": "secret"}, {"categories": 7}],
)
def test_an_unknown_policy_is_an_error(policies: dict[str, Any], memory: Memory) -> None:
    with pytest.raises(InvalidArgumentError):
        memory.set_policies(**policies)


def test_a_policy_that_cannot_be_read_stops_writes_and_loses_nothing(memory: Memory) -> None:
    memory.remember("first")
    with core_of(memory).store.write(memory._branch) as transaction:
        transaction.set_setting(f"policies/{memory.name}", '{"redaction": "shred"}')
    with pytest.raises(DamagedStoreError, match="policies"):
        memory.remember("second")
    memory.set_policies()
    assert memory.count() == 1


def test_going_back_restores_texts_as_they_were(memory: Memory) -> None:
    memory.remember(SECRET, id="old")
    seq = memory.seq
    memory.forget("old")
    memory.set_policies(redaction="refuse")
    memory.rollback(seq)
    record = memory.get("old")
    assert record is not None
    assert record.content == SECRET
