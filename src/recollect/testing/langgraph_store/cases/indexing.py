"""Search with an index: what is found, and that nothing is found by a text that is there no more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from langgraph.store.base import PutOp

from recollect.testing.langgraph_store.calls import StoreCalls, Stores
from recollect.testing.langgraph_store.case import CaseGroup
from recollect.testing.langgraph_store.cases.checks import NAMESPACE, same

GROUP = CaseGroup("index")
_case = GROUP.case
_DIMENSION = 64
#: From this part of the score of an equal text on, a text counts as equal.
_EQUAL = 0.9
_OLD = "zany zebra xerxes"


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Return a vector of the pairs of letters of each text: equal texts have equal vectors."""
    out = []
    for text in texts:
        counts = [0.0] * _DIMENSION
        folded = f" {text.lower()} "
        for one, other in pairwise(folded):
            counts[(ord(one) * 31 + ord(other) * 17) % _DIMENSION] += 1.0
        norm = math.sqrt(sum(each * each for each in counts)) or 1.0
        out.append([each / norm for each in counts])
    return out


def _indexed(stores: Stores, fields: list[str] | None = None) -> StoreCalls:
    return stores.one(index={"dims": _DIMENSION, "embed": embed, "fields": fields or ["$"]})


def _score(store: StoreCalls, query: str, key: str) -> float:
    found: dict[str, Any] = {item.key: item.score for item in store.search(NAMESPACE, query=query)}
    return found.get(key) or 0.0


def _gone(store: StoreCalls, query: str, before: float | None = None) -> None:
    """Check that an item is not found any more by a text that it had, or never by one that is not indexed.

    Args:
        before: Its score when it had the text; None: that of an equal text in another item.
    """
    if before is None:
        store.put(NAMESPACE, "control", {"text": query, "title": query, "notes": [query]})
        before = _score(store, query, "control")
    score = _score(store, query, "k")
    assert before > 0.0, "no text is found"
    assert score < before * _EQUAL, f"it is found by a text that it does not have: {score:.2f} of {before:.2f}"


@_case("documented", "index")
def the_best_match_comes_first_and_scores_descend(stores: Stores) -> None:
    store = _indexed(stores, ["text"])
    for key, text in (("a", "the dog sleeps"), ("b", "apricot jam with almonds"), ("c", "rain in november")):
        store.put(NAMESPACE, key, {"text": text})
    found = store.search(NAMESPACE, query="apricot jam")
    scores = [item.score or 0.0 for item in found]
    same((found[0].key, scores), ("b", sorted(scores, reverse=True)))


@_case("documented", "index")
def a_new_text_takes_the_place_of_the_old_one(stores: Stores) -> None:
    store = _indexed(stores, ["text"])
    store.put(NAMESPACE, "k", {"text": _OLD})
    before = _score(store, _OLD, "k")
    store.put(NAMESPACE, "k", {"text": "rain in november"})
    _gone(store, _OLD, before)


@_case("documented", "index")
def an_item_that_is_not_indexed_any_more_is_not_found_by_its_old_text(stores: Stores) -> None:
    store = _indexed(stores, ["text"])
    store.put(NAMESPACE, "k", {"text": _OLD})
    before = _score(store, _OLD, "k")
    store.put(NAMESPACE, "k", {"text": "rain in november"}, index=False)
    _gone(store, _OLD, before)


@_case("documented", "index")
def a_text_whose_field_is_gone_is_not_found(stores: Stores) -> None:
    store = _indexed(stores, ["text", "title"])
    store.put(NAMESPACE, "k", {"text": _OLD, "title": "rain"})
    before = _score(store, _OLD, "k")
    store.put(NAMESPACE, "k", {"title": "rain"})
    _gone(store, _OLD, before)


@_case("documented", "index")
def a_text_that_left_a_list_is_not_found(stores: Stores) -> None:
    store = _indexed(stores, ["notes[*]"])
    store.put(NAMESPACE, "k", {"notes": ["rain in november", _OLD]})
    before = _score(store, _OLD, "k")
    store.put(NAMESPACE, "k", {"notes": ["rain in november"]})
    _gone(store, _OLD, before)


@_case("documented", "index")
def a_deleted_item_is_not_found(stores: Stores) -> None:
    store = _indexed(stores, ["text"])
    store.put(NAMESPACE, "k", {"text": _OLD})
    store.delete(NAMESPACE, "k")
    same(store.search(NAMESPACE, query=_OLD), [])


@_case("documented", "index")
def only_the_configured_fields_are_indexed(stores: Stores) -> None:
    store = _indexed(stores, ["text"])
    store.put(NAMESPACE, "k", {"text": "rain in november", "secret": _OLD})
    _gone(store, _OLD)


@_case("documented", "index")
def a_put_may_name_its_own_fields(stores: Stores) -> None:
    store = _indexed(stores, ["text"])
    store.put(NAMESPACE, "a", {"text": "rain", "other": _OLD}, index=["other"])
    store.put(NAMESPACE, "b", {"text": "rain", "other": "snow in january"}, index=["other"])
    same(store.search(NAMESPACE, query=_OLD)[0].key, "a")


@_case("documented", "index")
def a_query_and_a_filter_combine(stores: Stores) -> None:
    store = _indexed(stores, ["text"])
    for key, colour in (("a", "red"), ("b", "blue"), ("c", "red")):
        store.put(NAMESPACE, key, {"text": f"apricot jam {key}", "colour": colour})
    same(store.keys(NAMESPACE, query="apricot jam", filter={"colour": "red"}), ["a", "c"])


@_case("documented", "index")
def items_in_other_namespaces_are_not_found(stores: Stores) -> None:
    store = _indexed(stores, ["text"])
    store.put(("other",), "k", {"text": _OLD})
    store.put(NAMESPACE, "k", {"text": "rain in november"})
    same({item.namespace for item in store.search(NAMESPACE, query=_OLD)}, {NAMESPACE})


@_case("recommended", "index")
def pages_of_a_query_are_disjoint_and_complete(stores: Stores) -> None:
    """Items that are not indexed come once or not at all."""
    store = _indexed(stores, ["text"])
    store.batch([PutOp(NAMESPACE, f"i{number:02}", {"text": f"apricot jam {number}"}) for number in range(9)])
    store.batch([PutOp(NAMESPACE, f"u{number:02}", {"text": f"apricot {number}"}, index=False) for number in range(4)])
    paged = [i.key for at in range(0, 20, 4) for i in store.search(NAMESPACE, query="apricot jam", limit=4, offset=at)]
    same(len(paged), len(set(paged)))
    same(sorted(key for key in paged if key.startswith("i")), [f"i{number:02}" for number in range(9)])
    unindexed = [key for key in paged if key.startswith("u")]
    assert len(unindexed) in (0, 4), f"some items that are not indexed are missing: got {sorted(unindexed)}"
