"""A traced memory answers what the memory answers, and each call makes the span that the conventions name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    get_current_span,
    use_span,
)
from tests.observe.recorded import CASES, CONTENT, ID, QUESTION, Recorded, filled, is_child, said

import recollect
from recollect import errors
from recollect import operations as ops
from recollect.agents import without_echoes
from recollect.observe import conventions, traced
from recollect.operations.base import READ, all_operations

pytestmark = pytest.mark.in_process  # the executor of a memory is looked at


@pytest.mark.parametrize("name", CASES)
def test_a_call_makes_one_span_by_the_conventions(name: str, recorded: Recorded, tmp_path: Path) -> None:
    if name in ("backup", "erase", "check", "compact"):
        memory = filled(traced(recollect.open(tmp_path / "a.db", embedder="none"), recorded.provider))
    else:
        memory = filled(recorded.memory())
    recorded.taken()
    case = CASES[name]
    case.call(memory, tmp_path)
    span = recorded.one()
    attributes = said(span)
    assert (span.name, span.kind, span.status.status_code) == (case.span, SpanKind.INTERNAL, StatusCode.UNSET)
    assert attributes.pop("recollect.operation") == name
    assert attributes.pop("gen_ai.operation.name", case.span) == case.span
    assert len(attributes.pop("gen_ai.memory.store.id")) == 32
    assert attributes.pop("recollect.scoped") is False
    expected = {key: attributes.get(key) if value is ... else value for key, value in case.says.items()}
    assert attributes == expected
    assert None not in expected.values()


def test_there_is_a_case_for_each_operation_with_a_span() -> None:
    assert {name for name in all_operations() if conventions.span_name(name)} == CASES.keys() - {"context"}


def test_what_writes_has_a_span_and_of_what_reads_only_searches() -> None:
    for name, kind in all_operations().items():
        is_search = conventions.MEMORY_OPERATIONS.get(name) == conventions.SEARCH
        assert (conventions.span_name(name) is not None) == (kind.right != READ or is_search)


def test_reads_that_search_nothing_make_no_span(recorded: Recorded) -> None:
    memory = filled(recorded.memory())
    recorded.taken()
    memory.get(ID)
    memory.find()
    memory.head()
    memory.stats()
    assert recorded.taken() == []


def test_a_traced_memory_gives_equal_answers(recorded: Recorded) -> None:
    now = datetime(2026, 11, 1, tzinfo=UTC)
    plain = recollect.open(":memory:", embedder="none", clock=lambda: now)
    memory = traced(plain, recorded.provider, contents=True)
    memory.remember(CONTENT, id=ID, user="ana")
    assert type(memory) is recollect.Memory
    assert memory.recall(QUESTION) == plain.recall(QUESTION)
    assert memory.recall(QUESTION).receipt == plain.recall(QUESTION).receipt
    assert memory.context(QUESTION) == plain.context(QUESTION)
    assert memory.context(QUESTION).items == plain.context(QUESTION).items
    assert (memory.get(ID), memory.head(), memory.name) == (plain.get(ID), plain.head(), plain.name)
    with pytest.raises(errors.UnknownRecordError):
        memory.update("nowhere", content="new")


@pytest.mark.parametrize(
    "view",
    [
        lambda memory: memory.scoped(user="ximena"),
        lambda memory: memory.at(1),
        lambda memory: memory.scoped(user="ximena").at(memory.log(limit=1)[0].time),
    ],
    ids=["scope", "past", "past of a scope"],
)
def test_views_of_a_traced_memory_are_traced(
    view: Callable[[recollect.Memory], recollect.Memory], recorded: Recorded
) -> None:
    memory = filled(recorded.memory())
    seen = view(memory)
    recorded.taken()
    assert len(seen.recall(QUESTION)) == 1
    span = recorded.one()
    assert said(span)["recollect.scoped"] is bool(seen.scope)
    assert ("recollect.past" in said(span)) is (" as of " in repr(seen))
    seen.context(QUESTION)
    context = recorded.one()
    assert context.name == "search_memory"
    assert ("recollect.past" in said(context)) is ("recollect.past" in said(span))


def test_namespaces_of_a_traced_memory_are_traced_under_ids_of_their_own(recorded: Recorded) -> None:
    memory = recorded.memory()
    for each in (memory, memory.namespace("b"), memory.namespace("b"), memory.namespace("b").glossary):
        each.remember("x") if isinstance(each, recollect.Memory) else each.memorize("T", "x", "y", agent_id="bot")
    ids = [said(span)["gen_ai.memory.store.id"] for span in recorded.taken()]
    assert len(set(ids)) == 2
    assert ids[1] == ids[2] == ids[3]


def test_the_store_has_the_id_that_the_caller_states(recorded: Recorded) -> None:
    recorded.memory(store_id="support").remember("x")
    assert said(recorded.one())["gen_ai.memory.store.id"] == "support"


def test_the_id_of_a_store_stays_when_it_is_opened_again(recorded: Recorded, tmp_path: Path) -> None:
    for _ in range(2):
        with traced(recollect.open(tmp_path / "a.db"), recorded.provider) as memory:
            memory.remember("x")
    first, second = (said(span)["gen_ai.memory.store.id"] for span in recorded.taken())
    assert first == second


def test_the_calls_of_a_batch_are_children_of_its_span(recorded: Recorded) -> None:
    memory = recorded.memory()
    with memory.batch() as batch:
        batch.remember(CONTENT)
        batch.get(ID)
        batch.context(QUESTION)
    whole, *calls = recorded.taken()
    assert [whole.name, *(each.name for each in calls)] == ["recollect.batch", "upsert_memory", "search_memory"]
    assert all(is_child(each, whole) for each in calls)


def test_a_span_that_the_caller_opens_in_a_batch_is_nearer(recorded: Recorded) -> None:
    tracer = recorded.provider.get_tracer("test")
    memory = recorded.memory()
    with memory.batch() as batch, tracer.start_as_current_span("step"):
        batch.remember(CONTENT)
    _, step, call = recorded.taken()
    assert is_child(call, step)


def test_the_operations_of_a_batch_operation_are_children_with_its_times(recorded: Recorded) -> None:
    memory = recorded.memory()
    memory.execute(
        ops.ExecuteBatch(operations=(ops.Remember(content="a"), ops.Get(id="b"), ops.Forget(id="c", missing="ignore")))
    )
    spans = {span.name: span for span in recorded.taken()}
    whole = spans.pop("recollect.batch")
    assert spans.keys() == {"upsert_memory", "delete_memory"}
    for span in spans.values():
        assert is_child(span, whole)
        assert (whole.start_time or 0) <= (span.start_time or 0) <= (span.end_time or 0) <= (whole.end_time or 0)


def test_a_batch_that_is_undone_has_an_error(recorded: Recorded) -> None:
    memory = recorded.memory()
    with pytest.raises(ZeroDivisionError), memory.batch() as batch:
        batch.remember(CONTENT)
        raise ZeroDivisionError(CONTENT)
    whole, call = recorded.taken()
    assert (whole.status.status_code, said(whole)["error.type"]) == (StatusCode.ERROR, "ZeroDivisionError")
    assert call.status.status_code == StatusCode.UNSET
    assert memory.recall(CONTENT).hits == ()


def test_a_batch_that_cannot_be_opened_has_an_error(recorded: Recorded) -> None:
    memory = recorded.memory()
    with pytest.raises(errors.ConflictError), memory.batch(expect_head=7):
        raise AssertionError
    assert said(recorded.one())["error.type"] == "conflict"


def test_an_error_sets_the_status_and_its_stable_code(recorded: Recorded) -> None:
    memory = recorded.memory()
    with pytest.raises(errors.UnknownRecordError):
        memory.update("nowhere", content="new")
    span = recorded.one()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert said(span)["error.type"] == "unknown_record"
    (event,) = span.events
    assert (event.name, dict(event.attributes or {})) == (
        "exception",
        {"exception.type": "recollect.errors.UnknownRecordError"},
    )


def test_a_call_on_a_closed_memory_has_an_error(recorded: Recorded) -> None:
    memory = recorded.memory()
    memory.close()
    with pytest.raises(errors.ClosedError):
        memory.recall(QUESTION)
    assert said(recorded.one())["error.type"] == "closed"


def test_the_span_of_the_caller_is_the_parent_also_in_asyncio(recorded: Recorded) -> None:
    tracer = recorded.provider.get_tracer("test")
    memory = recorded.memory()

    async def agent() -> None:
        awaited = recollect.AsyncMemory(memory)
        with tracer.start_as_current_span("agent"):
            await awaited.remember(CONTENT)
            await awaited.context(QUESTION)
            async with awaited.batch() as batch:
                await batch.remember("another")
        await awaited.close()

    asyncio.run(agent())
    first, remember, context, batch, inside = recorded.taken()
    assert first.name == "agent"
    assert all(is_child(each, first) for each in (remember, context, batch))
    assert is_child(inside, batch)


def test_the_span_of_an_operation_is_the_current_one_while_it_runs(recorded: Recorded) -> None:
    tracer = recorded.provider.get_tracer("test")

    class Embedder:
        name, dimension = "test/one", 1

        def embed(self, texts: list[str], *, asking: bool = False) -> list[list[float]]:
            tracer.start_span("request to a model").end()
            return [[1.0] for _ in texts]

    memory = traced(recollect.open(":memory:", embedder=Embedder()), recorded.provider)  # type: ignore[arg-type]
    memory.remember(CONTENT)
    recorded.taken()
    memory.recall(QUESTION, wait_for_vectors=True)
    recall, *requests = recorded.taken()
    assert requests
    assert all(is_child(each, recall) for each in requests)


def test_a_span_that_is_not_sampled_has_no_children_that_are(recorded: Recorded) -> None:
    class First(Sampler):
        """Samples what is no child, from the second span on; of children, those whose parent is sampled."""

        def __init__(self) -> None:
            self.asked = 0

        def should_sample(self, parent_context: Any, *arguments: Any, **named: Any) -> SamplingResult:
            self.asked += 1
            parent = get_current_span(parent_context).get_span_context()
            sampled = parent.trace_flags.sampled if parent.is_valid else self.asked > 1
            return SamplingResult(Decision.RECORD_AND_SAMPLE if sampled else Decision.DROP)

        def get_description(self) -> str:
            return "first"

    calls: tuple[Callable[[recollect.Memory], object], ...] = (
        lambda memory: memory.context(QUESTION),
        lambda memory: memory.execute(ops.ExecuteBatch(operations=(ops.Remember(content="a"),))),
    )
    for call in calls:
        unsampled = Recorded(sampler=First())
        call(traced(recollect.open(":memory:"), unsampled.provider))
        assert unsampled.taken() == []


def test_a_memory_in_process_continues_the_trace_of_another_process_as_a_server(recorded: Recorded) -> None:
    remote = SpanContext(trace_id=7, span_id=8, is_remote=True, trace_flags=TraceFlags(1))
    memory = recorded.memory()
    with use_span(NonRecordingSpan(remote)):
        memory.remember(CONTENT)
    span = recorded.one()
    assert span.kind is SpanKind.SERVER
    assert span.parent == remote


def test_what_cannot_be_traced_is_refused_with_what_to_do(recorded: Recorded) -> None:
    memory = recorded.memory()
    memory.remember(CONTENT)
    for wrong, message in (
        (memory, "is traced already"),
        (memory.scoped(user="ana"), "is traced already"),
        (memory.at(1), r"traced\(memory\)\.at"),
        (recollect.AsyncMemory(memory), r"AsyncMemory\(traced\(memory\)\)"),
        (None, "must be a Memory"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            traced(wrong, recorded.provider)  # type: ignore[arg-type]


def test_closing_a_traced_memory_closes_the_store(recorded: Recorded) -> None:
    plain = recollect.open(":memory:")
    with traced(plain, recorded.provider):
        pass
    with pytest.raises(errors.ClosedError):
        plain.count()


def test_a_context_is_one_span_also_beside_a_guard_against_echoes(recorded: Recorded) -> None:
    inner = recorded.memory()
    for memory in (without_echoes(inner), traced(without_echoes(recollect.open(":memory:")), recorded.provider)):
        memory.context(QUESTION)
        assert said(recorded.one())["recollect.operation"] == "context"
