"""Searches: pages, orders and queries, with or without an index."""

from __future__ import annotations

from langgraph.store.base import SearchItem

from recollect.testing.langgraph_store.calls import Stores
from recollect.testing.langgraph_store.case import CaseGroup
from recollect.testing.langgraph_store.cases.checks import NAMESPACE, refused, same

GROUP = CaseGroup("searches")
_case = GROUP.case


@_case("documented")
def a_search_returns_search_items(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"a": 1})
    (item,) = store.search(NAMESPACE)
    assert isinstance(item, SearchItem), f"it is a {type(item).__name__}"
    same((item.namespace, item.key, item.value, item.score), (NAMESPACE, "k", {"a": 1}, None))


@_case("documented")
def a_search_returns_ten_items_unless_it_states_a_limit(stores: Stores) -> None:
    store = stores.one()
    for number in range(12):
        store.put(NAMESPACE, f"k{number}", {})
    same((len(store.search(NAMESPACE)), len(store.search(NAMESPACE, limit=11))), (10, 11))


@_case("documented")
def pages_are_disjoint_and_complete(stores: Stores) -> None:
    store = stores.one()
    for number in range(25):
        store.put(NAMESPACE, f"k{number:02}", {"n": number})
    paged = [item.key for offset in range(0, 30, 7) for item in store.search(NAMESPACE, limit=7, offset=offset)]
    same(sorted(paged), [f"k{number:02}" for number in range(25)])


@_case("reference")
def a_page_after_the_end_is_empty(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {})
    same(store.search(NAMESPACE, offset=5), [])


@_case("recommended")
def a_limit_of_zero_returns_nothing(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {})
    same(store.search(NAMESPACE, limit=0), [])


@_case("recommended")
def a_negative_limit_or_offset_is_refused(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {})
    refused(lambda: store.search(NAMESPACE, limit=-1), ValueError)
    refused(lambda: store.search(NAMESPACE, offset=-1), ValueError)


@_case("documented")
def a_filter_and_pages_combine(stores: Stores) -> None:
    store = stores.one()
    for number in range(20):
        store.put(NAMESPACE, f"k{number:02}", {"even": number % 2 == 0})
    paged = [
        i.key for offset in (0, 4, 8) for i in store.search(NAMESPACE, filter={"even": True}, limit=4, offset=offset)
    ]
    same(sorted(paged), [f"k{number:02}" for number in range(0, 20, 2)])


@_case("documented")
def a_query_without_an_index_is_no_error(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"text": "tea"})
    (item,) = store.search(NAMESPACE, query="tea")
    same(item.key, "k")
    assert item.score is None or item.score > 0, f"the score is {item.score}"


@_case("recommended")
def a_blank_query_is_none(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"text": "tea"})
    same([item.key for item in store.search(NAMESPACE, query="")], ["k"])


@_case("recommended")
def a_get_among_ten_thousand_items_takes_no_longer(stores: Stores) -> None:
    """The time of the fastest of many gets may grow by a factor of 20: it would by 100 if all items were read."""
    from time import perf_counter

    from langgraph.store.base import PutOp

    store = stores.one()

    def fastest() -> float:
        times = []
        for number in range(50):
            start = perf_counter()
            store.get(NAMESPACE, f"k{number}")
            times.append(perf_counter() - start)
        return min(times)

    def put(first: int, last: int) -> None:
        store.batch([PutOp(NAMESPACE, f"k{number}", {"text": f"note {number}"}) for number in range(first, last)])

    put(0, 100)
    few = fastest()
    for first in range(100, 10_000, 1100):
        put(first, first + 1100)
    ratio = fastest() / few
    assert ratio < 20, f"{ratio:.0f} times as long"
