"""Calls in threads that are completed, whatever becomes of the coroutine that awaits them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from recollect.compat.threads import completed


def test_the_result_and_the_error_are_those_of_the_call() -> None:
    assert asyncio.run(completed(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(completed(divmod, 7, 0))


@pytest.mark.parametrize("cancellations", [1, 3])
def test_a_cancelled_caller_goes_on_when_the_call_has_ended(cancellations: int) -> None:
    begun, may_end, events = threading.Event(), threading.Event(), list[str]()

    def call() -> None:
        begun.set()
        assert may_end.wait(60)
        events.append("the call has ended")

    async def run() -> None:
        task = asyncio.ensure_future(completed(call))
        await asyncio.to_thread(begun.wait, 60)
        for _ in range(cancellations):
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        events.append("the caller goes on")

    asyncio.run(run())
    assert events == ["the call has ended", "the caller goes on"]


def test_an_error_of_a_call_whose_caller_was_cancelled_is_not_reported_as_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, may_fail = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        assert may_fail.wait(60)
        raise ValueError("late")

    async def run() -> None:
        task = asyncio.ensure_future(completed(call))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        await asyncio.sleep(0)
        may_fail.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert caplog.records == []
