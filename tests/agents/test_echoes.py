"""No feedback loop: facts that only repeat what a memory returned are not stored again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import recollect
from recollect import Memory, RecollectWarning
from recollect.agents import without_echoes
from recollect.agents.echoes import EchoGuard
from recollect.operations import ExecuteBatch, Remember, RememberAll
from recollect.records.record import Record

SAID = "I live in Oslo near the harbour and I pay 900 euros of rent to Ms Berg"
ECHOES = [
    SAID,
    "Ana lives in Oslo near the harbour",
    "The user lives in Oslo, near the harbour.",
    "pays 900 euros of rent",
]
NEWS = [
    "Ana lives in Bergen near the harbour",
    "Ana does not live in Oslo near the harbour",
    "Ana pays 950 euros of rent",
    "Ana lives in Oslo near the harbour with Mr Lund",
    "Ana likes tea",
]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with recollect.open(":memory:") as opened:
        opened.add_messages([{"role": "user", "content": SAID}], user="ana", conversation="chat")
        opened.remember("The harbour of Oslo freezes in February", kind="knowledge", source="guide")
        guarded = without_echoes(opened)
        assert len(guarded.recall("where is Oslo's harbour?")) == 2
        yield guarded


def fact(text: str, **fields: Any) -> Remember:
    return Remember(content=text, fields={"kind": "user_fact", "user": "ana", **fields})


@pytest.mark.parametrize("text", ECHOES)
def test_a_fact_that_repeats_what_was_recalled_is_an_echo_of_its_source(text: str, memory: Memory) -> None:
    before = memory.count()
    outcome = memory.execute(fact(text))
    assert outcome.status == "echo"
    assert outcome.record is not None
    assert outcome.sources == (outcome.record.id,)
    assert outcome.record.content == SAID
    assert memory.count() == before
    assert recollect.Outcome.from_json(outcome.to_json()) == outcome


@pytest.mark.parametrize("text", NEWS)
def test_a_fact_that_says_something_else_is_stored(text: str, memory: Memory) -> None:
    assert memory.execute(fact(text)).status == "created"


def test_a_fact_may_repeat_several_records(memory: Memory) -> None:
    outcome = memory.execute(fact("lives in Oslo near the harbour; harbour of Oslo freezes in February"))
    assert outcome.status == "echo"
    assert len(outcome.sources) == 2


def test_the_calls_return_the_source_with_a_warning(memory: Memory) -> None:
    with pytest.warns(RecollectWarning, match="only repeats"):
        record = memory.record_user_fact("lives in Oslo near the harbour", user="ana")
    assert record.content == SAID
    with pytest.warns(RecollectWarning, match="only repeats"):
        same = memory.record_entity_fact("ana", "Ana", "Ana lives in Oslo near the harbour", "person")
    assert same == record
    with memory.batch() as batch, pytest.warns(RecollectWarning, match="only repeats"):
        batch.remember("The harbour of Oslo freezes in February!")


def test_context_counts_as_returned(memory: Memory) -> None:
    with recollect.open(":memory:") as plain:
        plain.record_user_fact("Ana collects stamps from Iceland", user="ana")
        guarded = without_echoes(plain)
        assert "stamps" in guarded.context("what does Ana collect?", user="ana")
        assert guarded.execute(fact("collects stamps from Iceland")).status == "echo"
        assert plain.execute(fact("Ana collects stamps from Iceland")).status == "unchanged"  # no guard


def test_other_scopes_and_namespaces_do_not_learn_what_was_returned() -> None:
    with recollect.open(":memory:") as plain:
        plain.remember("Ana collects stamps from Iceland", kind="knowledge", agent="one")
        guarded = without_echoes(plain)
        assert len(guarded.recall("stamps"))
        same = Remember(content="Ana collects stamps from Iceland", fields={"kind": "knowledge"})
        assert guarded.scoped(agent="two").execute(same).status == "created"
        assert guarded.namespace("other").execute(same).status == "created"
        scoped = guarded.scoped(agent="one")
        assert len(scoped.recall("stamps"))
        assert guarded.scoped(agent="one").execute(same).status == "echo"


def test_turns_are_always_stored(memory: Memory) -> None:
    report = memory.add_messages([{"role": "assistant", "content": SAID}], user="ana", conversation="chat")
    assert report.count("created") == 1
    said = [{"role": "user", "content": "Where does she live?"}, {"role": "assistant", "content": SAID}]
    again = memory.add_messages(said, user="ana", conversation="chat")
    assert again.count("created") == 2


@pytest.mark.parametrize(
    "operation",
    [
        Remember(content=SAID, id="mine", fields={"kind": "user_fact", "user": "ana"}),
        Remember(content=SAID, if_exists="update", fields={"kind": "user_fact", "user": "ana"}),
        Remember(content=SAID, fields={"kind": "task"}),
        Remember(content=SAID, fields={"kind": "user_fact", "user": "bob"}),
    ],
)
def test_what_the_caller_identifies_and_what_is_of_another_user_is_stored(operation: Remember, memory: Memory) -> None:
    assert memory.execute(operation).status == "created"


def test_many_at_once_keep_their_order_and_their_failures(memory: Memory) -> None:
    items = (fact("Ana likes tea"), fact(ECHOES[1]), fact(" "), fact("Ana likes coffee"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = memory.execute(RememberAll(items=items))
        outcomes = memory.execute(
            ExecuteBatch(operations=(fact("Ana likes milk"), fact(ECHOES[1]), fact("Ana likes juice")))
        )
    assert [outcome.status for outcome in report.results] == ["created", "echo", "created"]
    assert [each.index for each in report.failed] == [2]
    assert [outcome.status for outcome in outcomes] == ["created", "echo", "created"]


def test_what_was_not_returned_is_no_echo() -> None:
    with recollect.open(":memory:") as plain:
        plain.record_user_fact("Ana collects stamps from Iceland", user="ana")
        guarded = without_echoes(plain)
        assert guarded.execute(fact("Ana collects stamps from Iceland in winter")).status == "created"
        guarded.recall("stamps")
        assert without_echoes(plain).execute(fact("Ana does collect stamps from Iceland")).status == "created"


def test_the_guard_is_bounded_and_drops_what_was_returned_longest_ago() -> None:
    guard = EchoGuard(most=2)
    things = ("sky", "sea", "car")
    records = [Record(id=thing, content=f"the {thing} is blue", user="ana") for thing in things]
    guard.note(records[:2])
    guard.note(records[:1])
    guard.note(records[2:])
    assert [bool(guard.repeated(fact(str(record.content)))) for record in records] == [True, False, True]
