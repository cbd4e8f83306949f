"""A batch: its results in order, its reads before its writes, and all of it or nothing."""

from __future__ import annotations

from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, PutOp, SearchOp

from recollect.testing.langgraph_store.calls import Stores
from recollect.testing.langgraph_store.case import CaseGroup
from recollect.testing.langgraph_store.cases.checks import NAMESPACE, refused, same

GROUP = CaseGroup("batches")
_case = GROUP.case


@_case("documented")
def results_come_in_the_order_of_the_operations(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "a", {"x": 1})
    ops = [GetOp(NAMESPACE, "zz"), SearchOp(NAMESPACE), PutOp(NAMESPACE, "b", {"x": 2}), GetOp(NAMESPACE, "a")]
    none, found, put, got, listed = store.batch([*ops, ListNamespacesOp()])
    same((none, [item.key for item in found], put, got.key, listed), (None, ["a"], None, "a", [NAMESPACE]))


@_case("reference")
def reads_see_the_state_before_the_batch(stores: Stores) -> None:
    store = stores.one()
    same(store.batch([PutOp(NAMESPACE, "a", {"x": 1}), GetOp(NAMESPACE, "a")]), [None, None])
    same(store.value(NAMESPACE, "a"), {"x": 1})


@_case("reference")
def the_last_put_of_a_key_wins(stores: Stores) -> None:
    store = stores.one()
    store.batch([PutOp(NAMESPACE, "a", {"x": 1}), PutOp(NAMESPACE, "a", {"x": 2})])
    same(store.value(NAMESPACE, "a"), {"x": 2})


@_case("reference")
def a_put_and_then_a_deletion_leaves_nothing(stores: Stores) -> None:
    store = stores.one()
    store.batch([PutOp(NAMESPACE, "a", {"x": 1}), PutOp(NAMESPACE, "a", None)])
    same(store.get(NAMESPACE, "a"), None)


@_case("reference")
def a_deletion_and_then_a_put_leaves_the_item(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "a", {"x": 1})
    store.batch([PutOp(NAMESPACE, "a", None), PutOp(NAMESPACE, "a", {"x": 2})])
    same(store.value(NAMESPACE, "a"), {"x": 2})


@_case("recommended")
def a_batch_with_a_value_that_is_refused_writes_nothing(stores: Stores) -> None:
    store = stores.one()
    refused(lambda: store.batch([PutOp(NAMESPACE, "a", {"x": 1}), PutOp(NAMESPACE, "b", {"x": {1, 2}})]))
    same(store.get(NAMESPACE, "a"), None)


@_case("documented")
def a_batch_with_an_invalid_namespace_writes_nothing(stores: Stores) -> None:
    store = stores.one()
    for op in (PutOp(("a.b",), "k", {}), GetOp(("",), "k"), SearchOp(("a", "b.c"))):
        refused(lambda op=op: store.batch([PutOp(NAMESPACE, "first", {}), op]), InvalidNamespaceError)  # type: ignore[misc]
    same(store.get(NAMESPACE, "first"), None)


@_case("documented")
def a_batch_may_be_empty_or_an_iterator(stores: Stores) -> None:
    store = stores.one()
    same(list(store.batch([])), [])
    store.batch(iter([PutOp(NAMESPACE, "a", {})]))
    same(store.value(NAMESPACE, "a"), {})


@_case("documented")
def a_batch_of_a_thousand_operations_is_in_order(stores: Stores) -> None:
    store = stores.one()
    store.batch([PutOp(NAMESPACE, f"k{number}", {"n": number}) for number in range(1000)])
    found = store.batch([GetOp(NAMESPACE, f"k{number}") for number in range(1000)])
    same([item.value["n"] for item in found], list(range(1000)))
