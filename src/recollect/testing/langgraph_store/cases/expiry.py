"""Times to live. A store that has none refuses them; the others let items expire when they should."""

from __future__ import annotations

import time

from recollect.testing.langgraph_store.calls import Stores
from recollect.testing.langgraph_store.case import CaseGroup
from recollect.testing.langgraph_store.cases.checks import NAMESPACE, NotApplicableError, refused, same

GROUP = CaseGroup("times to live")
_case = GROUP.case
#: A short life in minutes, its wait in seconds, and the same for stores whose clock has whole seconds.
_BRIEF_MIN, _BRIEF_S = 0.01, 1.7
_LIFE_MIN, _PART_S = 0.05, 1.3


@_case("documented")
def a_store_without_times_to_live_refuses_them(stores: Stores) -> None:
    store = stores.one()
    if store.store.supports_ttl:
        raise NotApplicableError("the store has times to live")
    refused(lambda: store.put(NAMESPACE, "k", {}, ttl=1), NotImplementedError)


@_case("recommended")
def an_expired_item_is_not_returned_before_a_sweep(stores: Stores) -> None:
    store = stores.one()
    if not store.store.supports_ttl:
        raise NotApplicableError("the store has no times to live")
    store.put(NAMESPACE, "k", {}, ttl=_BRIEF_MIN)
    store.put(("other",), "k", {})
    assert store.get(NAMESPACE, "k", refresh_ttl=False) is not None, "it has expired too early"
    time.sleep(_BRIEF_S)
    same(store.get(NAMESPACE, "k", refresh_ttl=False), None)
    same(store.search(NAMESPACE, refresh_ttl=False), [])
    same(store.list_namespaces(), [("other",)])


@_case("documented", "ttl")
def the_default_time_to_live_holds_unless_a_put_states_one(stores: Stores) -> None:
    store = stores.one(ttl={"default_ttl": _BRIEF_MIN, "omit_expired": True})
    store.put(NAMESPACE, "default", {})
    store.put(NAMESPACE, "stays", {}, ttl=None)
    same(store.keys(NAMESPACE, refresh_ttl=False), ["default", "stays"])
    time.sleep(_BRIEF_S)
    same(store.keys(NAMESPACE, refresh_ttl=False), ["stays"])


@_case("documented", "ttl")
def a_put_without_a_time_to_live_ends_that_of_the_item(stores: Stores) -> None:
    store = stores.one(ttl={"omit_expired": True})
    store.put(NAMESPACE, "k", {}, ttl=_BRIEF_MIN)
    store.item(NAMESPACE, "k", refresh_ttl=False)
    store.put(NAMESPACE, "k", {})
    time.sleep(_BRIEF_S)
    store.item(NAMESPACE, "k", refresh_ttl=False)


@_case("documented", "ttl")
def a_get_renews_the_time_to_live(stores: Stores) -> None:
    store = stores.one(ttl={"omit_expired": True, "refresh_on_read": True})
    store.put(NAMESPACE, "k", {}, ttl=_LIFE_MIN)
    for _ in range(4):
        time.sleep(_PART_S)
        store.item(NAMESPACE, "k")


@_case("documented", "ttl")
def a_search_renews_the_time_to_live(stores: Stores) -> None:
    store = stores.one(ttl={"omit_expired": True, "refresh_on_read": True})
    store.put(NAMESPACE, "k", {}, ttl=_LIFE_MIN)
    for _ in range(4):
        time.sleep(_PART_S)
        same(store.keys(NAMESPACE), ["k"])


@_case("documented", "ttl")
def a_read_that_says_so_does_not_renew_it(stores: Stores) -> None:
    store = stores.one(ttl={"omit_expired": True})
    store.put(NAMESPACE, "k", {}, ttl=_LIFE_MIN)
    time.sleep(_PART_S)
    assert store.get(NAMESPACE, "k", refresh_ttl=False) is not None, "it has expired too early"
    for _ in range(3):
        time.sleep(_PART_S)
        store.get(NAMESPACE, "k", refresh_ttl=False)
    same(store.get(NAMESPACE, "k", refresh_ttl=False), None)
