"""`RecollectDocumentStore`: lossless documents, policies for duplicates, filters, retrieval, pipelines and owners."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("haystack")

from haystack import Document, Pipeline
from haystack.core.serialization import allow_deserialization_module
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.utils.filters import document_matches_filter
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.compat.haystack import RecollectBM25Retriever, RecollectDocumentStore
from recollect.compat.haystack.document_store import stated
from recollect.errors import InvalidRecordError, RejectedError, ScopeError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
EVERYTHING = Document(
    id="ü/1",
    content="Ana prefers window seats",
    meta={"n": 2**70, "of": {"x": [1.5, None, True]}, "content": "a key of its own", "ß": "\ud800"},
    blob=ByteStream(b"\x00\xff", meta={"a": 1}, mime_type="image/png"),
    embedding=[0.25, -1.5],
    sparse_embedding=SparseEmbedding([1, 3], [0.5, 1.0]),
    score=0.5,
)


@pytest.fixture
def store() -> Iterator[RecollectDocumentStore]:
    with RecollectDocumentStore() as store:
        yield store


def contents(documents: list[Document]) -> list[str | None]:
    return [document.content for document in documents]


def test_documents_come_back_as_they_were_written_oldest_first(place: recollect.Memory) -> None:
    store = RecollectDocumentStore(place)
    documents = [EVERYTHING, Document(content=""), Document(content=None, meta={"a": 1}), Document(content=" \n")]
    assert store.write_documents(documents) == 4
    store.write_documents([Document(id="later", content="x")])
    found = store.filter_documents()
    assert {document.id: document for document in found[:4]} == {document.id: document for document in documents}
    assert found[4].id == "later"


def test_documents_are_one_commit_or_none(store: RecollectDocumentStore) -> None:
    store.write_documents([Document(content="one"), Document(content="two")])
    with pytest.raises(InvalidRecordError):
        store.write_documents([Document(content="three"), Document(id="x", content="\ud800")])
    with pytest.raises(TypeError):
        store.write_documents([Document(content="three"), Document(id="x", content="four", meta={"a": object()})])
    with pytest.raises(DuplicateDocumentError):
        store.write_documents([Document(content="three"), Document(content="two")])
    assert store.count_documents() == 2
    assert [(commit.actor, commit.reason) for commit in store.memory.log()] == [("haystack", "write_documents")]


def test_a_list_with_the_same_id_twice_follows_the_policy(store: RecollectDocumentStore) -> None:
    twice = [Document(id="a", content="one"), Document(id="a", content="two")]
    with pytest.raises(DuplicateDocumentError):
        store.write_documents(twice)
    assert store.write_documents(twice, DuplicatePolicy.SKIP) == 1
    assert contents(store.filter_documents()) == ["one"]
    assert store.write_documents(twice, DuplicatePolicy.OVERWRITE) == 1
    assert contents(store.filter_documents()) == ["two"]
    (record,) = store.memory.find()
    assert len(store.memory.history(record.id)) == 2


_values: Any = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "1", "a", "2025-01-02"])
_metas = st.dictionaries(
    st.sampled_from(["a", "b", "of"]), _values | st.dictionaries(st.just("x"), _values), max_size=3
)
_fields = st.sampled_from(["meta.a", "meta.b", "meta.of.x", "a", "content", "id"])


def _comparison(name: str, values: Any) -> Any:
    return st.builds(lambda field, value: {"field": field, "operator": name, "value": value}, _fields, values)


_numbers = st.integers(-3, 3) | st.booleans() | st.none() | st.just(0.5)
_comparisons = st.one_of(
    *(_comparison(name, _values) for name in ("==", "!=")),
    *(
        _comparison(name, st.integers(-3, 3) | st.booleans() | st.none() | st.just(0.5))
        for name in (">", ">=", "<", "<=")
    ),
    *(_comparison(name, st.lists(_values, max_size=3)) for name in ("in", "not in")),
)
_filters = st.recursive(
    _comparisons,
    lambda inner: st.builds(
        lambda name, parts: {"operator": name, "conditions": parts},
        st.sampled_from(["AND", "OR", "NOT"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=5,
)


@given(st.lists(_metas, max_size=5), _filters)
def test_any_filter_selects_what_haystack_selects(metas: list[dict[str, Any]], filters: dict[str, Any]) -> None:
    documents = [Document(id=str(number), content="a", meta=meta) for number, meta in enumerate(metas)]
    try:
        wanted = {document.id for document in documents if document_matches_filter(filters, document)}
    except (FilterError, TypeError):
        return  # values that cannot be compared
    with RecollectDocumentStore() as store:
        store.write_documents(documents)
        assert {document.id for document in store.filter_documents(filters)} == wanted


@pytest.mark.parametrize(
    "wrong",
    [
        {"operator": "AND"},
        {"conditions": []},
        {"operator": "XOR", "conditions": []},
        {"field": "meta.a", "operator": "=="},
        {"field": "meta.a", "value": 1},
        {"field": "meta.a", "operator": "near", "value": 1},
        {"field": "meta.a", "operator": "in", "value": "a"},
        {"field": "meta.a", "operator": ">", "value": [1]},
        {"operator": "OR", "conditions": [{"field": "id", "operator": "!=", "value": ""}, {"operator": "AND"}]},
        {"operator": "AND", "conditions": ["a"]},
    ],
)
def test_a_wrong_filter_is_refused_even_where_there_are_no_documents(
    store: RecollectDocumentStore, wrong: dict[str, Any]
) -> None:
    with pytest.raises(FilterError):
        store.filter_documents(wrong)
    with pytest.raises(ValueError, match="dictionary"):
        store.filter_documents([wrong])  # type: ignore[arg-type]


def test_documents_that_answer_are_retrieved_best_first(place: recollect.Memory) -> None:
    store = RecollectDocumentStore(place)
    texts = ["Ana prefers window seats", "Bob has a dog", "The seats are blue"]
    store.write_documents([Document(content=text, meta={"n": n}) for n, text in enumerate(texts)])
    store.write_documents([EVERYTHING], DuplicatePolicy.OVERWRITE)
    found = store.bm25_retrieval("Which seats does Ana prefer?", {"field": "meta.n", "operator": "<", "value": 9})
    assert contents(found)[0] == "Ana prefers window seats"
    assert "Bob has a dog" not in contents(found)
    assert [document.score for document in found] == sorted((d.score or 0.0 for d in found), reverse=True)
    assert len(store.bm25_retrieval("seats", top_k=1)) == 1
    with pytest.raises(ValueError, match="blank"):
        store.bm25_retrieval(" ")
    with pytest.raises(ValueError, match="top_k"):
        store.bm25_retrieval("seats", top_k=-1)


def test_a_pipeline_is_serialized_and_runs(tmp_path: Path) -> None:
    store = RecollectDocumentStore(str(tmp_path / "agent.db"), user="ana")
    store.write_documents([Document(content="Ana prefers window seats", meta={"n": 1}), Document(content="seats")])
    pipeline = Pipeline()
    only = {"field": "meta.n", "operator": "==", "value": 1}
    pipeline.add_component("retriever", RecollectBM25Retriever(store, filters=only, top_k=3))
    text = pipeline.dumps()
    allow_deserialization_module("recollect.compat.*")
    again = Pipeline.loads(text)
    assert again.dumps() == text
    for each in (pipeline, again):
        found = each.run({"retriever": {"query": "Which seats?"}})["retriever"]["documents"]
        assert contents(found) == ["Ana prefers window seats"]
    more = {"query": "seats", "filters": {"field": "meta.n", "operator": ">", "value": 1}}
    assert again.run({"retriever": more}) == {"retriever": {"documents": []}}
    retriever = again.get_component("retriever")
    assert len(asyncio.run(retriever.run_async("Which seats?"))["documents"]) == 1
    retriever.document_store.close()
    store.close()


def test_a_store_on_an_open_memory_is_not_serialized(store: RecollectDocumentStore) -> None:
    with pytest.raises(UnsupportedError, match="pass its path"):
        RecollectDocumentStore(store.memory).to_dict()
    with pytest.raises(UnsupportedError, match="PGPASSWORD"):
        stated({"memory": "postgresql://ana:secret@localhost/x"}, "the store")
    assert stated({"memory": "postgresql://ana@localhost/x"}, "the store") == {"memory": "postgresql://ana@localhost/x"}
    with pytest.raises(ValueError, match="RecollectDocumentStore"):
        RecollectBM25Retriever("agent.db")  # type: ignore[arg-type]


def test_collections_and_owners_do_not_see_each_other(place: recollect.Memory) -> None:
    stores = [
        RecollectDocumentStore(place),
        RecollectDocumentStore(place, collection="other"),
        RecollectDocumentStore(place, user="ana"),
        RecollectDocumentStore(place.scoped(user="bob")),
    ]
    for number, store in enumerate(stores):
        store.write_documents([Document(id="a", content=f"text {number}")])
    for number, store in enumerate(stores):
        assert contents(store.filter_documents()) == [f"text {number}"]
    stores[0].delete_all_documents()
    assert [store.count_documents() for store in stores] == [0, 1, 1, 1]
    with pytest.raises(ScopeError):
        RecollectDocumentStore(place.scoped(user="bob"), user="ana")


def test_secrets_are_redacted_or_refused(store: RecollectDocumentStore) -> None:
    store.memory.set_policies(redaction="redact")
    store.write_documents([Document(id="a", content="write to ana@example.com", meta={"mail": "ana@example.com"})])
    (found,) = store.filter_documents()
    assert "ana@" not in str(found.to_dict())
    store.memory.set_policies(redaction="refuse")
    with pytest.raises(RejectedError):
        store.write_documents([Document(id="b", content="a", meta={"mail": "bob@example.com"})])
