"""Several threads, tasks, event loops, processes and stores at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from langgraph.store.base import GetOp, PutOp

from recollect.testing.langgraph_store.calls import Stores
from recollect.testing.langgraph_store.case import CaseGroup
from recollect.testing.langgraph_store.cases.checks import NAMESPACE, NotApplicableError, same

GROUP = CaseGroup("concurrency")
_case = GROUP.case
_MANY, _EACH = 4, 20


def _in_threads(call: Callable[[int], None]) -> None:
    errors: list[str] = []

    def run(number: int) -> None:
        try:
            call(number)
        except Exception as error:  # noqa: BLE001 - it is reported
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(_MANY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


@_case("recommended")
def threads_lose_nothing(stores: Stores) -> None:
    store = stores.one()
    if stores.mode == "async":
        raise NotApplicableError("the event loop of a case belongs to one thread")

    def put(thread: int) -> None:
        for number in range(_EACH):
            store.put(("t", str(thread)), str(number), {"n": number})

    _in_threads(put)
    same(len(store.search(("t",), limit=1000)), _MANY * _EACH)


@_case("documented")
def asynchronous_calls_do_the_same_as_synchronous_ones(stores: Stores) -> None:
    store = stores.one().store

    async def all_calls() -> tuple[Any, ...]:
        await store.aput(NAMESPACE, "a", {"x": 1})
        item = await store.aget(NAMESPACE, "a")
        found = await store.asearch(NAMESPACE, filter={"x": 1})
        listed = await store.alist_namespaces()
        await store.adelete(NAMESPACE, "a")
        return (
            None if item is None else item.value,
            [each.key for each in found],
            listed,
            await store.aget(NAMESPACE, "a"),
        )

    same(stores.run(all_calls()), ({"x": 1}, ["a"], [NAMESPACE], None))


@_case("documented")
def tasks_of_one_loop_lose_nothing(stores: Stores) -> None:
    store = stores.one().store

    async def run() -> int:
        await asyncio.gather(*(store.aput(NAMESPACE, f"k{number}", {"n": number}) for number in range(50)))
        return len(await store.asearch(NAMESPACE, limit=100))

    same(stores.run(run()), 50)


@_case("recommended")
def several_event_loops_use_one_store(stores: Stores) -> None:
    store = stores.one().store

    def put(thread: int) -> None:
        async def run() -> None:
            for number in range(5):
                await asyncio.wait_for(store.aput(("t", str(thread)), str(number), {}), 10)

        asyncio.run(run())

    _in_threads(put)
    same(len(stores.run(store.asearch(("t",), limit=100))), _MANY * 5)


@_case("recommended")
def a_cancelled_batch_is_whole_or_absent(stores: Stores) -> None:
    store = stores.one().store

    async def run() -> list[int]:
        found = []
        for turn in range(10):
            ops = [PutOp(("c", str(turn)), str(number), {"n": number}) for number in range(20)]
            task = asyncio.ensure_future(store.abatch(ops))
            for _ in range(turn):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            # A later write of the store follows the batch, if that is still under way.
            await store.aput(("after",), str(turn), {})
            found.append(len(await store.asearch(("c", str(turn)), limit=100)))
        return found

    partial = [count for count in stores.run(run()) if count not in (0, 20)]
    assert not partial, f"{partial[0]} of 20 puts were made"


@_case("documented")
def a_batch_of_two_tasks_keeps_their_results_apart(stores: Stores) -> None:
    store = stores.one().store

    async def run() -> list[list[Any]]:
        await store.aput(NAMESPACE, "a", {"n": 1})
        await store.aput(NAMESPACE, "b", {"n": 2})
        asked = [[GetOp(NAMESPACE, "a"), GetOp(NAMESPACE, "c")], [GetOp(NAMESPACE, "b")]] * 5
        got = await asyncio.gather(*(store.abatch(ops) for ops in asked))
        return [[item and item.value["n"] for item in each] for each in got]

    same(stores.run(run()), [[1, None], [2]] * 5)


@_case("recommended", "path")
def two_stores_on_one_place_lose_nothing(stores: Stores) -> None:
    folder = stores.folder()
    one, other = stores.one(path=folder), stores.one(path=folder)
    for number in range(10):
        one.put(("one",), str(number), {"n": number})
        other.put(("other",), str(number), {"n": number})
    same((len(one.search(("other",), limit=100)), len(other.search(("one",), limit=100))), (10, 10))
    one.put(NAMESPACE, "k", {"by": "one"})
    other.put(NAMESPACE, "k", {"by": "other"})
    same(one.value(NAMESPACE, "k"), {"by": "other"})
