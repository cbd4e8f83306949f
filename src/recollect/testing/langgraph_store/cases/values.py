"""What is put is what is got: values, keys, times and deletions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from langgraph.store.base import Item, PutOp

from recollect.testing.langgraph_store.calls import Stores
from recollect.testing.langgraph_store.case import CaseGroup
from recollect.testing.langgraph_store.cases.checks import NAMESPACE, next_tick, refused, same

GROUP = CaseGroup("values and keys")
_case = GROUP.case


@_case("documented")
def a_missing_item_is_none(stores: Stores) -> None:
    same(stores.one().get(NAMESPACE, "x"), None)


@_case("documented")
def json_values_come_back_as_they_were(stores: Stores) -> None:
    store = stores.one()
    value: dict[str, object] = {
        "text": "æ 😀",
        "none": None,
        "float": 1.5,
        "int": 2**53 + 1,
        "list": [1, [2, {"a": []}]],
        "o": {},
        "t": True,
    }
    store.put(NAMESPACE, "k", value)
    same(store.value(NAMESPACE, "k"), value)


@_case("documented")
def an_item_has_its_namespace_key_and_type(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {})
    item = store.item(NAMESPACE, "k")
    assert isinstance(item, Item), f"it is a {type(item).__name__}"
    same((item.namespace, item.key), (NAMESPACE, "k"))


@_case("documented")
def big_integers_survive(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"i": 2**70})
    same(store.value(NAMESPACE, "k"), {"i": 2**70})


@_case("recommended")
def floats_survive_to_the_last_bit(stores: Stores) -> None:
    store = stores.one()
    value = {"tenth": 0.1, "large": 1.7e308, "small": 5e-324, "whole": 1.0, "minus zero": -0.0}
    store.put(NAMESPACE, "k", value)
    found = store.value(NAMESPACE, "k")
    same(found, value)
    same(str(found["minus zero"]), "-0.0")


@_case("recommended")
def a_nul_character_in_a_value_survives(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"text": "a\0b"})
    same(store.value(NAMESPACE, "k"), {"text": "a\0b"})


@_case("recommended")
def deep_values_survive(stores: Stores) -> None:
    value: dict[str, object] = {"leaf": 1}
    for _ in range(100):
        value = {"below": value}
    store = stores.one()
    store.put(NAMESPACE, "k", value)
    same(store.value(NAMESPACE, "k"), value)


@_case("recommended")
def large_values_survive(stores: Stores) -> None:
    store = stores.one()
    value = {"text": "words " * 50_000}
    store.put(NAMESPACE, "k", value)
    same(store.value(NAMESPACE, "k"), value)


@_case("recommended")
def the_order_of_keys_in_a_value_is_kept(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"z": 1, "a": {"y": 2, "b": 3}})
    found = store.value(NAMESPACE, "k")
    same([*found, *found["a"]], ["z", "a", "y", "b"])


@_case("recommended")
def keys_of_a_value_that_are_no_texts_become_texts_or_are_refused(stores: Stores) -> None:
    store = stores.one()
    try:
        store.put(NAMESPACE, "k", {1: "a"})
    except Exception:  # noqa: BLE001 - a store may refuse it as it likes
        return
    same(store.value(NAMESPACE, "k"), {"1": "a"})


@_case("documented")
def a_value_that_is_not_json_is_refused(stores: Stores) -> None:
    store = stores.one()
    refused(lambda: store.put(NAMESPACE, "k", {"x": object()}))
    refused(lambda: store.put(NAMESPACE, "k", {"x": {1, 2}}))


@_case("recommended")
def what_is_returned_is_a_copy(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"a": [1]})
    store.value(NAMESPACE, "k")["a"].append(2)
    store.search(NAMESPACE)[0].value["a"].append(3)
    same(store.value(NAMESPACE, "k"), {"a": [1]})


@_case("recommended")
def what_is_stored_is_a_copy(stores: Stores) -> None:
    store = stores.one()
    value = {"a": [1]}
    store.put(NAMESPACE, "k", value)
    value["a"].append(2)
    same(store.value(NAMESPACE, "k"), {"a": [1]})


@_case("documented")
def a_second_put_replaces_the_whole_value(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"a": 1, "b": 2})
    store.put(NAMESPACE, "k", {"a": 3})
    same(store.value(NAMESPACE, "k"), {"a": 3})
    same(len(store.search(NAMESPACE)), 1)


@_case("documented")
def one_key_in_two_namespaces_is_two_items(stores: Stores) -> None:
    store = stores.one()
    store.put(("a",), "k", {"x": 1})
    store.put(("a", "b"), "k", {"x": 2})
    same((store.value(("a",), "k"), store.value(("a", "b"), "k")), ({"x": 1}, {"x": 2}))
    store.delete(("a",), "k")
    same(store.value(("a", "b"), "k"), {"x": 2})


@_case("documented")
def deleting_a_missing_item_is_silent(stores: Stores) -> None:
    store = stores.one()
    store.delete(NAMESPACE, "x")
    store.put(NAMESPACE, "y", {})
    store.delete(NAMESPACE, "y")
    store.delete(NAMESPACE, "y")
    same(store.get(NAMESPACE, "y"), None)


@_case("documented")
def putting_none_deletes(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"a": 1})
    store.batch([PutOp(NAMESPACE, "k", None)])
    same(store.get(NAMESPACE, "k"), None)


@_case("documented")
def an_update_keeps_when_the_item_was_created(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"a": 1})
    created = store.item(NAMESPACE, "k").created_at
    next_tick()
    store.put(NAMESPACE, "k", {"a": 2})
    same(store.item(NAMESPACE, "k").created_at, created)


@_case("documented")
def an_update_moves_when_the_item_was_updated(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"a": 1})
    before = store.item(NAMESPACE, "k").updated_at
    next_tick()
    store.put(NAMESPACE, "k", {"a": 2})
    after = store.item(NAMESPACE, "k").updated_at
    assert after > before, f"{after} is not after {before}"


@_case("documented")
def an_item_is_not_updated_before_it_is_created(stores: Stores) -> None:
    store = stores.one()
    for number in range(20):
        store.put(NAMESPACE, f"k{number}", {})
    for item in store.search(NAMESPACE, limit=20):
        assert item.created_at <= item.updated_at, f"{item.created_at} is after {item.updated_at}"


@_case("recommended")
def an_item_created_again_after_its_deletion_is_new(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {"a": 1})
    created = store.item(NAMESPACE, "k").created_at
    store.delete(NAMESPACE, "k")
    next_tick()
    store.put(NAMESPACE, "k", {"a": 1})
    again = store.item(NAMESPACE, "k").created_at
    assert again > created, f"{again} is not after {created}"


@_case("recommended")
def times_have_a_time_zone(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "k", {})
    item = store.item(NAMESPACE, "k")
    for time in (item.created_at, item.updated_at):
        assert time.tzinfo is not None, f"{time!r} has none"
        assert abs(datetime.now(UTC) - time) < timedelta(minutes=5), f"{time!r} is not now"


@_case("recommended")
def odd_keys_come_back_as_they_were(stores: Stores) -> None:
    store = stores.one()
    keys = ["a.b", "a/b", " ", "é😀", "'; DROP TABLE store; --", "x" * 2000, "a\nb", "*", "k ", "%", "a//b", '"', "\\"]
    for key in keys:
        store.put(NAMESPACE, key, {"key": key})
    for key in keys:
        same((store.item(NAMESPACE, key).key, store.value(NAMESPACE, key)), (key, {"key": key}))
    same(store.keys(NAMESPACE, limit=100), sorted(keys))


@_case("recommended")
def keys_in_other_unicode_forms_are_other_keys(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, "\u00e9", {"form": "composed"})
    store.put(NAMESPACE, "e\u0301", {"form": "decomposed"})
    store.put(NAMESPACE, "E\u0301", {"form": "capital"})
    same(store.value(NAMESPACE, "\u00e9"), {"form": "composed"})
    same(len(store.search(NAMESPACE)), 3)


@_case("reference")
def a_key_that_is_no_text_is_taken_as_one(stores: Stores) -> None:
    store = stores.one()
    store.put(NAMESPACE, 5, {"a": 1})  # type: ignore[arg-type]
    same(store.item(NAMESPACE, "5").key, "5")


@_case("recommended", "path")
def items_are_there_when_the_store_is_opened_again(stores: Stores) -> None:
    folder = stores.folder()
    with stores.opened(path=folder) as store:
        store.put(NAMESPACE, "k", {"a": [1, None]})
        before = store.item(NAMESPACE, "k")
    with stores.opened(path=folder) as store:
        after = store.item(NAMESPACE, "k")
        same((after.value, after.created_at, after.updated_at), (before.value, before.created_at, before.updated_at))
        same(store.list_namespaces(), [NAMESPACE])
