"""Filters on values."""

from __future__ import annotations

from typing import Any

from recollect.testing.langgraph_store.calls import StoreCalls, Stores
from recollect.testing.langgraph_store.case import CaseGroup
from recollect.testing.langgraph_store.cases.checks import NAMESPACE, refused, same

GROUP = CaseGroup("filters")
_case = GROUP.case


def _filled(stores: Stores) -> StoreCalls:
    store = stores.one()
    store.put(NAMESPACE, "five", {"n": 5, "c": "red", "d": {"p": 1, "q": 2}, "l": ["a", "b"], "t": True})
    store.put(NAMESPACE, "ten", {"n": 10, "c": "blue", "d": {"p": 2}, "l": ["a"], "t": 1})
    store.put(NAMESPACE, "text", {"n": "7", "c": None})
    store.put(NAMESPACE, "none", {})
    return store


def _check(stores: Stores, conditions: dict[str, Any], *keys: str) -> None:
    same(_filled(stores).keys(NAMESPACE, filter=conditions), sorted(keys))


@_case("documented")
def a_value_is_found_by_equality(stores: Stores) -> None:
    _check(stores, {"c": "red"}, "five")
    _check(stores, {"c": {"$eq": "red"}}, "five")
    _check(stores, {"n": 5}, "five")


@_case("documented")
def several_keys_must_all_fit(stores: Stores) -> None:
    _check(stores, {"c": "red", "n": 5}, "five")
    _check(stores, {"c": "red", "n": 10})


@_case("documented")
def a_comparison_of_numbers_is_numeric(stores: Stores) -> None:
    _check(stores, {"n": {"$gt": 6}}, "ten")


@_case("documented")
def two_comparisons_are_a_range(stores: Stores) -> None:
    _check(stores, {"n": {"$gte": 5, "$lt": 10}}, "five")
    _check(stores, {"n": {"$gt": 5, "$lte": 10}}, "ten")


@_case("recommended")
def texts_are_compared_in_order(stores: Stores) -> None:
    _check(stores, {"c": {"$gt": "cat"}}, "five")


@_case("recommended")
def a_comparison_of_other_types_fits_nothing_and_raises_nothing(stores: Stores) -> None:
    _check(stores, {"n": {"$gt": "6"}}, "text")
    _check(stores, {"n": {"$lt": None}})
    _check(stores, {"d": {"$gt": 0}})


@_case("recommended")
def not_equal_includes_items_without_the_key(stores: Stores) -> None:
    """https://github.com/langchain-ai/langgraph/issues/8366 asks what it should do."""
    _check(stores, {"c": {"$ne": "red"}}, "none", "ten", "text")


@_case("recommended")
def null_finds_a_null(stores: Stores) -> None:
    found = _filled(stores).keys(NAMESPACE, filter={"c": None})
    assert "text" in found, f"got {found}"


@_case("recommended")
def a_list_is_found_by_equality(stores: Stores) -> None:
    _check(stores, {"l": ["a"]}, "ten")


@_case("recommended")
def a_list_is_found_by_the_operator_of_equality(stores: Stores) -> None:
    _check(stores, {"l": {"$eq": ["a"]}}, "ten")


@_case("recommended")
def an_object_is_found_by_equality(stores: Stores) -> None:
    _check(stores, {"d": {"p": 2}}, "ten")


@_case("recommended")
def true_is_not_one(stores: Stores) -> None:
    _check(stores, {"t": True}, "five")
    _check(stores, {"t": 1}, "ten")


@_case("recommended")
def big_numbers_are_compared_exactly(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "less", {"n": 2**53})
    store.put(NAMESPACE, "more", {"n": 2**53 + 1})
    same(store.keys(NAMESPACE, filter={"n": {"$gt": 2**53}}), ["more"])
    same(store.keys(NAMESPACE, filter={"n": 2**53 + 1}), ["more"])


@_case("recommended")
def a_key_with_a_period_finds_that_key(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "a", {"d.p": 1, "d": {"p": 2}})
    same(store.keys(NAMESPACE, filter={"d.p": 1}), ["a"])


@_case("recommended")
def odd_keys_are_found(stores: Stores) -> None:
    store = stores.one()
    odd = ('a"b', "a'b", "a-b", "1a", "$x", "a b", "")
    for key in odd:
        store.put(NAMESPACE, f"k{key}", {key: 1})
    for key in odd:
        same(store.keys(NAMESPACE, filter={key: 1}), [f"k{key}"])


@_case("recommended")
def an_operator_that_there_is_not_is_refused(stores: Stores) -> None:
    store = _filled(stores)
    refused(lambda: store.search(NAMESPACE, filter={"n": {"$near": 5}}), ValueError, NotImplementedError)
    refused(lambda: store.search(NAMESPACE, filter={"$xor": [{"n": 5}]}), ValueError, NotImplementedError)


@_case("recommended")
def values_that_look_like_code_are_values(stores: Stores) -> None:
    store = _filled(stores)
    for text in ("red' OR '1'='1", "red'; --", "red\0", '"red"', "r%", "{}"):
        same(store.keys(NAMESPACE, filter={"c": text}), [])


@_case("recommended")
def an_empty_filter_is_none(stores: Stores) -> None:
    same(len(_filled(stores).search(NAMESPACE, filter={})), 4)
