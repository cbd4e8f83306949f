"""No span has a content, a question, an id, a name or the message of an error, unless contents are asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.trace import StatusCode
from tests.examples import some
from tests.observe.recorded import (
    ACTOR,
    CASES,
    CHANGED,
    CONTENT,
    ID,
    METADATA,
    NAMESPACE,
    QUESTION,
    REASON,
    SECRETS,
    USER,
    Recorded,
    filled,
    said,
)

import recollect
from recollect import operations as ops
from recollect.errors import RecollectError
from recollect.observe import traced

pytestmark = pytest.mark.in_process


def text_of(recorded: Recorded) -> str:
    """Return all that the spans say: names, attributes, events, statuses."""
    return "\n".join(span.to_json() for span in recorded.taken()).encode().decode("unicode_escape")


def leaked(text: str) -> list[str]:
    return [each for each in SECRETS if each.lower() in text.lower()]


def run(name: str, memory: recollect.Memory, folder: Path) -> None:
    filled(memory)
    CASES[name].call(memory.namespace(NAMESPACE), folder)


def opened(recorded: Recorded, folder: Path, *, contents: bool) -> recollect.Memory:
    return traced(recollect.open(folder / "qz7.db", embedder="hashed"), recorded.provider, contents=contents)


@pytest.mark.parametrize("name", CASES)
def test_no_span_of_a_call_has_contents(name: str, recorded: Recorded, tmp_path: Path) -> None:
    run(name, opened(recorded, tmp_path, contents=False), tmp_path)
    text = text_of(recorded)
    assert CASES[name].span in text
    assert leaked(text) == []


@pytest.mark.parametrize("name", CASES)
def test_with_contents_the_same_check_finds_them(name: str, recorded: Recorded, tmp_path: Path) -> None:
    memory = opened(recorded, tmp_path, contents=True)
    filled(memory)
    recorded.taken()
    CASES[name].call(memory.namespace(NAMESPACE), tmp_path)
    text = text_of(recorded)
    assert NAMESPACE in text
    assert CASES[name].in_contents in text
    assert leaked(text) != []


def _failing(record: recollect.Record) -> recollect.Record:
    raise ValueError(record.content)


def _rejected(memory: recollect.Memory) -> None:
    memory.set_policies(redaction="refuse")
    memory.remember(f"apiKey=sk-{ID}")


#: Calls that fail, and whose errors quote what was passed.
FAILURES: dict[str, Callable[[recollect.Memory], object]] = {
    "no record": lambda memory: memory.update(f"{ID}-2", content=CHANGED),
    "nothing to erase": lambda memory: memory.erase(f"{ID}-2"),
    "conflict": lambda memory: memory.remember(CHANGED, id=ID, expect="absent"),
    "exists": lambda memory: memory.remember(CONTENT, id=ID, user=USER, if_exists="error"),
    "query": lambda memory: memory.grep(f'{CONTENT} "'),
    "scope": lambda memory: memory.scoped(user=USER).execute(ops.Remember(content=CONTENT, fields={"user": "qz7"})),
    "function": lambda memory: memory.update(ID, _failing),
    "rejected": lambda memory: _rejected(memory),
}


@pytest.mark.parametrize("name", FAILURES)
def test_an_error_is_recorded_by_its_code_and_not_its_message(name: str, recorded: Recorded) -> None:
    memory = filled(recorded.memory())
    recorded.taken()
    with pytest.raises((RecollectError, ValueError)) as raised:
        FAILURES[name](memory)
    spans = recorded.taken()
    assert spans[-1].status.status_code is StatusCode.ERROR
    assert spans[-1].status.description is None
    code = raised.value.code if isinstance(raised.value, RecollectError) else "ValueError"
    assert said(spans[-1])["error.type"] == code
    assert leaked("\n".join(span.to_json() for span in spans)) == []


@pytest.mark.parametrize("name", FAILURES)
def test_with_contents_an_error_has_its_message(name: str, recorded: Recorded) -> None:
    memory = filled(recorded.memory(contents=True))
    recorded.taken()
    with pytest.raises((RecollectError, ValueError)) as raised:
        FAILURES[name](memory)
    span = recorded.taken()[-1]
    (event,) = span.events
    assert (event.attributes or {})["exception.message"] == span.status.description
    if name != "rejected":
        assert span.status.description == str(raised.value)


TEXTS = st.text(st.characters(min_codepoint=0x3B1, max_codepoint=0x3C9), min_size=6, max_size=40)


@settings(max_examples=some(100))
@given(content=TEXTS, question=TEXTS, record_id=TEXTS, user=TEXTS, key=TEXTS)
def test_whatever_is_stored_and_asked_is_in_no_span(
    content: str, question: str, record_id: str, user: str, key: str
) -> None:
    recorded = Recorded()
    memory = recorded.memory().namespace(user)
    memory.remember(content, id=record_id, user=user, metadata={key: content}, tags=[key], conversation=key)
    memory.recall(question, where=recollect.filters.user(user))
    memory.scoped(user=user).context(question)
    memory.execute(ops.Forget(id=record_id), actor=user, reason=content, idempotency_key="k")
    with pytest.raises(RecollectError):
        memory.update(f"{record_id}{record_id}", content=content)
    text = text_of(recorded)
    assert [each for each in (content, question, record_id, user, key) if each in text] == []


def test_actors_and_reasons_are_in_no_span_at_all(recorded: Recorded) -> None:
    memory = filled(recorded.memory(contents=True))
    memory.execute(ops.Remember(content="a"), actor=ACTOR, reason=REASON, idempotency_key="key-qz7")
    with memory.batch(actor=ACTOR, reason=REASON) as batch:
        batch.remember("b")
    text = text_of(recorded)
    assert [each for each in (ACTOR, REASON, "key-qz7") if each in text] == []


def test_contents_have_the_form_of_the_conventions(recorded: Recorded) -> None:
    memory = recorded.memory(contents=True)
    memory.remember(CONTENT, id=ID, metadata={"about": METADATA})
    span = said(recorded.one())
    assert span["gen_ai.memory.record.id"] == ID
    assert json.loads(span["gen_ai.memory.records"]) == [
        {"content": CONTENT, "id": ID, "metadata": {"about": METADATA}}
    ]
    hit = memory.recall(QUESTION)[0]
    span = said(recorded.one())
    assert span["gen_ai.memory.query.text"] == QUESTION
    assert json.loads(span["gen_ai.memory.records"])[0]["score"] == hit.score


def test_bytes_are_shown_by_their_media_type(recorded: Recorded) -> None:
    recorded.memory(contents=True).remember(b"\x00", id="b", media_type="image/png")
    assert json.loads(said(recorded.one())["gen_ai.memory.records"])[0]["content"] == "[image/png]"


def test_a_span_has_the_contents_of_at_most_a_hundred_records(recorded: Recorded) -> None:
    recorded.memory(contents=True).remember_all(f"text {number}" for number in range(150))
    span = said(recorded.one())
    assert (span["gen_ai.memory.record.count"], len(json.loads(span["gen_ai.memory.records"]))) == (150, 100)


@pytest.mark.parametrize("redaction", ["redact", "refuse"])
def test_what_the_policies_redact_is_redacted_in_contents(
    redaction: Literal["redact", "refuse"], recorded: Recorded
) -> None:
    memory = recorded.memory(contents=True)
    memory.remember("Ana writes from ana@example.com", id="ana@example.com", metadata={"password": "hunter22"})
    assert "ana@example.com" in text_of(recorded)
    memory.set_policies(redaction=redaction)
    memory.recall("who is ana@example.com?")
    memory.context("who is ana@example.com?")
    with memory.batch() as batch:
        batch.execute(ops.Recall(question="who is ana@example.com?"))
    with pytest.raises(RecollectError):
        memory.update("nobody@example.com", content="x")
    text = text_of(recorded)
    assert "***@***.***" in text
    assert "example.com" not in text
    assert "hunter22" not in text


def test_only_the_categories_of_the_policies_are_redacted(recorded: Recorded) -> None:
    memory = recorded.memory(contents=True)
    memory.set_policies(redaction="redact", categories=["secret"])
    memory.recall("is ana@example.com still using password=hunter22?")
    text = text_of(recorded)
    assert "ana@example.com" in text
    assert "hunter22" not in text


def test_where_the_policies_cannot_be_read_everything_is_redacted(recorded: Recorded) -> None:
    memory = recorded.memory(contents=True)
    memory.close()
    with pytest.raises(RecollectError):
        memory.recall("who is ana@example.com?")
    text = text_of(recorded)
    assert "***@***.***" in text
    assert "example.com" not in text


def test_the_path_of_a_store_is_in_no_span(recorded: Recorded, tmp_path: Path) -> None:
    with opened(recorded, tmp_path, contents=False) as memory:
        memory.remember("x")
        memory.backup(tmp_path / "copy.db")
        with pytest.raises(RecollectError):
            memory.backup(tmp_path / "nowhere" / "copy.db")
    assert str(tmp_path) not in text_of(recorded)
