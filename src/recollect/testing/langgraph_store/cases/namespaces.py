"""Namespaces: labels, prefixes and lists."""

from __future__ import annotations

from langgraph.store.base import InvalidNamespaceError

from recollect.testing.langgraph_store.calls import StoreCalls, Stores
from recollect.testing.langgraph_store.case import CaseGroup
from recollect.testing.langgraph_store.cases.checks import NAMESPACE, refused, same

GROUP = CaseGroup("namespaces")
_case = GROUP.case


def _with(stores: Stores, *namespaces: tuple[str, ...]) -> StoreCalls:
    store = stores.one()
    for number, namespace in enumerate(namespaces):
        store.put(namespace, f"k{number}", {})
    return store


@_case("documented")
def a_prefix_is_matched_by_whole_labels(stores: Stores) -> None:
    store = _with(stores, ("a", "b"), ("ab",), ("a",))
    same(store.keys(("a",)), ["k0", "k2"])


@_case("documented")
def wildcards_of_databases_in_a_prefix_are_literal(stores: Stores) -> None:
    labels = ("a%", "a_", "axb", "a*", "a?", "[a]")
    store = _with(stores, *((label,) for label in labels))
    for number, label in enumerate(labels):
        same(store.keys((label,)), [f"k{number}"])


@_case("documented")
def a_prefix_distinguishes_capitals(stores: Stores) -> None:
    store = _with(stores, ("A",), ("a",))
    same(store.keys(("a",)), ["k1"])


@_case("documented")
def an_empty_prefix_is_all_namespaces(stores: Stores) -> None:
    store = _with(stores, ("A",), ("b", "c"))
    same(store.keys(()), ["k0", "k1"])


@_case("recommended")
def odd_labels_come_back_as_they_were(stores: Stores) -> None:
    store = stores.one()
    odd = [("a b",), ("a/b",), ("a", "b\n"), ("é", "日本"), ("'", '"'), ("a:b",), (" ",), ("x" * 500,), ("%2f",)]
    for number, namespace in enumerate(odd):
        store.put(namespace, "k", {"n": number})
    for number, namespace in enumerate(odd):
        same((store.item(namespace, "k").namespace, store.value(namespace, "k")), (namespace, {"n": number}))
        assert namespace in store.list_namespaces(), f"{namespace} is not listed"


@_case("recommended")
def a_namespace_may_be_passed_as_a_list(stores: Stores) -> None:
    store = _with(stores, ("a", "b"))
    same([item.namespace for item in store.search(["a"])], [("a", "b")])


@_case("documented")
def a_put_in_no_namespace_or_that_of_the_framework_is_refused(stores: Stores) -> None:
    store = stores.one()
    refused(lambda: store.put((), "k", {}), InvalidNamespaceError)
    refused(lambda: store.put(("langgraph", "x"), "k", {}), InvalidNamespaceError)
    refused(lambda: store.put(("a", ""), "k", {}), InvalidNamespaceError)


@_case("recommended")
def a_get_makes_no_namespace(stores: Stores) -> None:
    store = stores.one()
    store.get(("ghost",), "x")
    same(store.list_namespaces(), [])


@_case("recommended")
def a_namespace_whose_last_item_was_deleted_is_not_listed(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {})
    store.delete(NAMESPACE, "k")
    same(store.list_namespaces(), [])


_SEVERAL = (("a", "x", "v1"), ("a", "y", "v2"), ("b", "x", "v1"))


@_case("documented")
def namespaces_are_listed_by_prefix(stores: Stores) -> None:
    same(sorted(_with(stores, *_SEVERAL).list_namespaces(prefix=("a",))), [("a", "x", "v1"), ("a", "y", "v2")])


@_case("documented")
def namespaces_are_listed_by_suffix(stores: Stores) -> None:
    same(sorted(_with(stores, *_SEVERAL).list_namespaces(suffix=("v1",))), [("a", "x", "v1"), ("b", "x", "v1")])


@_case("documented")
def a_prefix_and_a_suffix_must_both_match(stores: Stores) -> None:
    same(_with(stores, *_SEVERAL).list_namespaces(prefix=("a",), suffix=("v2",)), [("a", "y", "v2")])


@_case("documented")
def a_star_stands_for_one_label(stores: Stores) -> None:
    store = _with(stores, *_SEVERAL, ("a", "w", "x"))
    same(sorted(store.list_namespaces(prefix=("*", "x"))), [("a", "x", "v1"), ("b", "x", "v1")])
    same(sorted(store.list_namespaces(suffix=("x", "*"))), [("a", "x", "v1"), ("b", "x", "v1")])


@_case("recommended")
def a_label_that_is_a_star_is_found_by_a_star(stores: Stores) -> None:
    same(sorted(_with(stores, ("*", "x"), ("q", "x")).list_namespaces(prefix=("*",))), [("*", "x"), ("q", "x")])


@_case("documented")
def namespaces_of_one_depth_are_one_before_the_limit(stores: Stores) -> None:
    store = _with(stores, *(("a", str(number)) for number in range(5)), ("b", "0"))
    same(store.list_namespaces(max_depth=1, limit=2), [("a",), ("b",)])


@_case("documented")
def a_depth_is_cut_after_the_prefix_and_the_suffix_matched(stores: Stores) -> None:
    store = _with(stores, *_SEVERAL)
    same(sorted(store.list_namespaces(suffix=("v1",), max_depth=2)), [("a", "x"), ("b", "x")])
    same(sorted(store.list_namespaces(prefix=("a",), max_depth=1)), [("a",)])


@_case("documented")
def pages_of_namespaces_are_disjoint_and_complete(stores: Stores) -> None:
    every = [("n", f"{number:02}") for number in range(25)]
    store = _with(stores, *every)
    paged = [each for offset in range(0, 30, 7) for each in store.list_namespaces(limit=7, offset=offset)]
    same(sorted(paged), every)


@_case("recommended")
def namespaces_are_listed_in_order(stores: Stores) -> None:
    same(_with(stores, ("c",), ("a",), ("b",), ("a", "z")).list_namespaces(), [("a",), ("a", "z"), ("b",), ("c",)])
