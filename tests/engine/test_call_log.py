"""Reports of calls: to `on_call`, and in the debug log."""

from __future__ import annotations

import asyncio
import logging

import pytest

import recollect
from recollect.errors import ConflictError, InvalidArgumentError, InvalidRecordError

#: With a letter: the digits of a duration may be any.
SECRET = "the code is K4711"


def of(call: recollect.Call) -> tuple[str, str, bool, int, str]:
    """A call without its time."""
    assert call.seconds >= 0
    return call.operation, call.namespace, call.scoped, call.count, call.error


def test_each_operation_is_reported_once_with_its_count_and_its_error() -> None:
    calls: list[recollect.Call] = []
    with recollect.open(":memory:", on_call=calls.append) as memory:
        memory.remember(SECRET, id="a")
        memory.remember_all([SECRET + " again", "b", ""])
        memory.recall("code")
        memory.find()
        memory.count()
        memory.get("none")
        memory.stats()
        with pytest.raises(InvalidRecordError):
            memory.remember("")
        with pytest.raises(ConflictError):
            memory.update("a", content="x", expect="0" * 64)
        memory.scoped(user="ana").forget_where(recollect.filters.everything())
        memory.namespace("other").clear()
    assert list(map(of, calls)) == [
        ("remember", "default", False, 1, ""),
        ("remember_all", "default", False, 2, ""),
        ("recall", "default", False, 2, ""),
        ("find", "default", False, 3, ""),
        ("count", "default", False, 3, ""),
        ("get", "default", False, 0, ""),
        ("stats", "default", False, 1, ""),
        ("remember", "default", False, 0, "invalid_record"),
        ("update", "default", False, 0, "conflict"),
        ("forget_where", "default", True, 0, ""),
        ("clear", "other", False, 0, ""),
    ]
    assert "K4711" not in repr(calls)


@pytest.mark.in_process
def test_a_batch_is_one_call_with_as_many_results_as_operations_succeeded() -> None:
    calls: list[recollect.Call] = []
    with recollect.open(":memory:", on_call=calls.append) as memory:
        with memory.batch() as batch:
            batch.remember("a", id="a")
            with pytest.raises(InvalidRecordError):
                batch.remember("")
            batch.get("a")
        with pytest.raises(KeyError), memory.batch():
            raise KeyError
    assert list(map(of, calls)) == [("batch", "default", False, 2, ""), ("batch", "default", False, 0, "KeyError")]


def test_a_callback_that_fails_fails_no_call(caplog: pytest.LogCaptureFixture) -> None:
    def callback(call: recollect.Call) -> None:
        raise ValueError("mine")

    with recollect.open(":memory:", on_call=callback) as memory:
        assert memory.remember("a").content == "a"
    assert "on_call failed on remember" in caplog.text


def test_calls_of_an_awaited_memory_are_reported() -> None:
    calls: list[recollect.Call] = []

    async def run() -> None:
        async with recollect.AsyncMemory(recollect.open(":memory:", on_call=calls.append)) as memory:
            await memory.remember("a")
            async with memory.batch() as batch:
                await batch.remember("b")

    asyncio.run(run())
    assert [call.operation for call in calls] == ["remember", "batch"]


def test_the_debug_log_has_a_line_for_each_call_and_no_content(caplog: pytest.LogCaptureFixture) -> None:
    with recollect.open(":memory:") as memory, caplog.at_level(logging.DEBUG, "recollect"):
        memory.remember(SECRET, id="a", user="ana")
        with pytest.raises(InvalidRecordError):
            memory.scoped(user="ana").remember(" ")
    lines = [record.getMessage() for record in caplog.records if " results" in record.getMessage()]
    assert [line.partition(":")[0] for line in lines] == ["remember in 'default'", "remember in 'default' (scoped)"]
    assert lines[1].endswith("0 results, error invalid_record")
    assert not any("K4711" in line or "ana" in line for line in lines)


def test_a_callback_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="on_call must be a function of a call"):
        recollect.open(":memory:", on_call="print")  # type: ignore[arg-type]
