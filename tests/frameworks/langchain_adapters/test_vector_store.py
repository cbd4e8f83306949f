"""`RecollectVectorStore`: ids, filters, scores, diversity, commits, owners and policies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

import recollect
from recollect import filters as f
from recollect.compat.langchain import RecollectVectorStore
from recollect.errors import InvalidArgumentError, InvalidRecordError, RejectedError, ScopeError

NAMES = st.text(min_size=1, max_size=300)
_scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=8)
VALUES = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


@pytest.fixture
def store() -> Iterator[RecollectVectorStore]:
    with RecollectVectorStore() as store:
        yield store


def test_documents_come_back_with_their_ids_and_metadata(place: recollect.Memory) -> None:
    store = RecollectVectorStore(place)
    metadata = {"n": 2**70, "when": [1.5, None, {"": True}], "ß": "\ud800"}
    ids = store.add_texts(["Ana prefers window seats", "", " \n"], [metadata, {}, {"a": 1}], ids=["ü/1", "b", "c"])
    assert ids == ["ü/1", "b", "c"]
    assert store.get_by_ids(["c", "ü/1", "missing", "b", "b"]) == [
        Document(id="c", page_content=" \n", metadata={"a": 1}),
        Document(id="ü/1", page_content="Ana prefers window seats", metadata=metadata),
        Document(id="b", page_content="", metadata={}),
    ]


@given(st.dictionaries(NAMES, st.dictionaries(st.text(max_size=5), VALUES, max_size=3), min_size=1, max_size=4))
def test_any_id_and_any_json_come_back(documents: dict[str, dict[str, Any]]) -> None:
    with RecollectVectorStore() as store:
        store.add_texts(["a text"] * len(documents), list(documents.values()), ids=list(documents))
        assert {each.id: each.metadata for each in store.get_by_ids(list(documents))} == documents


def test_a_document_takes_the_place_of_the_one_with_its_id_and_keeps_its_history(store: RecollectVectorStore) -> None:
    store.add_texts(["Ana likes tea"], [{"a": 1}], ids=["x"])
    store.add_texts(["Ana likes coffee", "Ana likes cocoa"], [{"b": 1}, {"c": 1}], ids=["x", "x"])
    assert store.get_by_ids(["x"]) == [Document(id="x", page_content="Ana likes cocoa", metadata={"c": 1})]
    assert texts(store.similarity_search("tea", k=5)) == ["Ana likes cocoa"]
    (record,) = store.memory.find()
    assert [version.record and version.record.text for version in store.memory.history(record.id)] == [
        "Ana likes tea",
        "Ana likes cocoa",
    ]


def test_texts_are_one_commit_or_none(store: RecollectVectorStore) -> None:
    store.add_texts(["one", "two"])
    assert [commit.actor for commit in store.memory.log()] == ["langchain"]
    with pytest.raises(InvalidRecordError):
        store.add_texts(["three", "\ud800"])
    with pytest.raises(TypeError, match="document 'b' is not JSON"):
        store.add_texts(["three", "four"], [{}, {"when": object()}], ids=["a", "b"])
    assert store.memory.count() == 2
    assert store.memory.seq == 1


@pytest.mark.parametrize("options", [{"metadatas": [{}]}, {"ids": ["a"]}, {"metadatas": [{}] * 3}])
def test_numbers_that_differ_are_refused(store: RecollectVectorStore, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="there are 2 texts"):
        store.add_texts(["one", "two"], **options)


def test_unknown_arguments_are_refused_and_not_ignored(store: RecollectVectorStore) -> None:
    with pytest.raises(TypeError, match="namespace"):
        store.add_texts(["one"], namespace="x")
    with pytest.raises(TypeError, match="where_document"):
        store.similarity_search("one", where_document={})
    for name in ("where", "min_confidence", "user"):
        with pytest.raises(TypeError, match=f"unknown argument '{name}'"):
            store.similarity_search("one", k=4, **{name: None})
    with pytest.raises(TypeError, match="force"):
        store.delete(["one"], force=True)


def test_a_search_returns_as_many_documents_as_there_are_and_those_that_answer_first(
    place: recollect.Memory,
) -> None:
    store = RecollectVectorStore(place)
    store.add_texts(["Bob has a dog", "Ana prefers window seats", "The ferry leaves at nine", ""])
    found = store.similarity_search_with_score("Which seats does Ana prefer?", k=9)
    assert texts([document for document, _ in found])[0] == "Ana prefers window seats"
    assert len(found) == 4
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.5
    assert scores[-1] == 0.0
    assert len(store.similarity_search("", k=2)) == 2
    assert store.similarity_search("seats", k=0) == []


@pytest.mark.parametrize("k", [-1, True, 1.5, None])
def test_a_number_of_documents_that_is_none_is_refused(store: RecollectVectorStore, k: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        store.similarity_search("seats", k=k)


def test_filters_are_conditions_or_functions(place: recollect.Memory) -> None:
    store = RecollectVectorStore(place)
    of_each: list[dict[str, Any]] = [
        {"page": 1, "of": {"year": 2023}, "tags": ["a"]},
        {"page": 2, "of": {"year": 2024}, "long": "x" * 300},
        {"page": "2", "of": {"year": 2025}},
    ]
    store.add_texts(["seats one", "seats two", "seats three"], of_each)

    def found(filter: Any) -> set[str]:  # noqa: A002 - the name of LangChain
        return {each.removeprefix("seats ") for each in texts(store.similarity_search("seats", k=9, filter=filter))}

    assert found({"page": 2}) == {"two"}
    assert found({"page": {"$in": [1, "2"]}}) == {"one", "three"}
    assert found({"of.year": {"$gte": 2024}}) == {"two", "three"}
    assert found({"$or": [{"page": 1}, {"long": "x" * 300}]}) == {"one", "two"}
    assert found({"tags": ["a"]}) == {"one"}
    assert found({"tags": {"$contains": "a"}}) == {"one"}
    assert found({"long": {"$contains": "xxx"}}) == {"two"}
    assert found({"$not": {"tags": {"$contains": "a"}}}) == {"two", "three"}
    assert found({"$not": {"page": 1}}) == {"two", "three"}
    assert found({"page": 7}) == set()
    assert found(lambda document: document.metadata["page"] == "2") == {"three"}
    with pytest.raises(ValueError, match="unknown operator"):
        found({"page": {"$near": 1}})
    with pytest.raises(ValueError, match="dictionary"):
        found(["page"])


def test_a_filter_that_few_fit_finds_those_behind_many_better_hits(store: RecollectVectorStore) -> None:
    store.add_texts(["seats seats"] * 60, [{"n": n} for n in range(60)])
    store.add_texts(["Ana said a lot about trains and boats, and once about seats"], [{"n": 99}])
    (found,) = store.similarity_search("seats", k=1, filter=lambda document: document.metadata["n"] == 99)
    assert found.metadata == {"n": 99}


def test_unknown_ids_are_deleted_in_silence_and_none_deletes_the_collection(store: RecollectVectorStore) -> None:
    other = RecollectVectorStore(store.memory, collection="other")
    other.add_texts(["kept"], ids=["a"])
    note = store.memory.remember("a note")
    store.add_texts(["one", "two", "three"], ids=["a", "b", "c"])
    assert store.delete(["a", "a", "missing"])
    assert texts(store.get_by_ids(["a", "b", "c"])) == ["two", "three"]
    assert store.delete([])
    assert store.delete()
    assert store.get_by_ids(["b", "c"]) == []
    assert texts(other.get_by_ids(["a"])) == ["kept"]
    assert store.memory.get(note.id) == note


def test_collections_and_owners_do_not_see_each_other(place: recollect.Memory) -> None:
    ana, bob = RecollectVectorStore(place, user="ana"), RecollectVectorStore(place, user="bob")
    shared = RecollectVectorStore(place)
    for store, text in ((ana, "Ana's seat"), (bob, "Bob's seat"), (shared, "a seat")):
        store.add_texts([text], ids=["seat"])
    for store, text in ((ana, "Ana's seat"), (bob, "Bob's seat"), (shared, "a seat")):
        assert texts(store.get_by_ids(["seat"])) == texts(store.similarity_search("seat", k=9)) == [text]
    ana.delete()
    assert texts(bob.similarity_search("seat")) == ["Bob's seat"]
    scope = place.scoped(user="bob")
    assert texts(RecollectVectorStore(scope).similarity_search("seat", k=9)) == ["Bob's seat"]
    with pytest.raises(ScopeError):
        RecollectVectorStore(scope, user="ana")


def test_a_conversation_that_is_a_scope_has_documents_of_its_own(place: recollect.Memory) -> None:
    own, shared = RecollectVectorStore(place.scoped(conversation="chat")), RecollectVectorStore(place)
    own.add_texts(["a seat in the chat"], ids=["seat"])
    shared.add_texts(["a seat"], ids=["seat"])
    assert texts(shared.similarity_search("seat", k=9)) == ["a seat"]
    shared.delete()
    assert texts(own.get_by_ids(["seat"])) == ["a seat in the chat"]


def test_the_unicode_forms_of_a_collection_are_one(store: RecollectVectorStore) -> None:
    for form, text in (("caf\u00e9", "one"), ("cafe\u0301", "two")):
        RecollectVectorStore(store.memory, collection=form).add_texts([text], ids=["a"])
    for form in ("caf\u00e9", "cafe\u0301"):
        other = RecollectVectorStore(store.memory, collection=form)
        assert texts(other.get_by_ids(["a"])) == texts(other.similarity_search("two", k=9)) == ["two"]
    other.delete(["a"])
    assert other.get_by_ids(["a"]) == []


def test_the_memory_finds_documents_among_everything_else(store: RecollectVectorStore) -> None:
    store.add_texts(["Ana prefers window seats"], [{"page": 3}])
    (hit,) = store.memory.recall("Which seat does Ana prefer?")
    assert hit.record.kind == "document"
    assert store.memory.count(f.kind("document") & f.meta(["fields", "page"], 3)) == 1


def test_a_vector_is_refused_with_what_to_do(store: RecollectVectorStore) -> None:
    with pytest.raises(NotImplementedError, match="similarity_search"):
        store.similarity_search_by_vector([1.0])


def test_diverse_documents_are_chosen_over_repetitions(store: RecollectVectorStore) -> None:
    same = ["Ana prefers window seats on trains", "Ana prefers window seats on trains!"]
    store.add_texts([*same, "In planes, Ana takes the aisle, not window seats"])
    question = "Which window seats does Ana prefer on trains?"
    assert set(texts(store.similarity_search(question, k=2))) == set(same)
    chosen = texts(store.max_marginal_relevance_search(question, k=2, lambda_mult=0.3))
    assert len(chosen) == 2
    assert chosen[1].startswith("In planes")
    assert set(texts(store.max_marginal_relevance_search(question, k=2, lambda_mult=1.0))) == set(same)
    assert len(store.max_marginal_relevance_search(question, k=9)) == 3


def test_retrievers_of_the_store_search_filter_and_respect_a_threshold(store: RecollectVectorStore) -> None:
    store.add_texts(["Ana prefers window seats", "Bob has a dog"], [{"of": "ana"}, {"of": "bob"}])
    plain = store.as_retriever(search_kwargs={"k": 2, "filter": {"of": "bob"}})
    assert texts(plain.invoke("seats")) == ["Bob has a dog"]
    options = {"score_threshold": 0.5, "k": 9}
    careful = store.as_retriever(search_type="similarity_score_threshold", search_kwargs=options)
    assert texts(careful.invoke("Which seats does Ana prefer?")) == ["Ana prefers window seats"]
    diverse = store.as_retriever(search_type="mmr")
    assert len(diverse.invoke("seats")) == 2


def test_a_path_is_opened_once_and_documents_stay(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with RecollectVectorStore.from_texts(["Ana likes tea"], memory=path, ids=["a"]) as store:
        other = RecollectVectorStore(path)
        assert other.memory is store.memory
        other.close()
        assert len(store.get_by_ids(["a"])) == 1
    with RecollectVectorStore(path) as store:
        assert texts(store.get_by_ids(["a"])) == ["Ana likes tea"]


def test_an_embedding_model_is_one_more_signal(tmp_path: Path) -> None:
    model = DeterministicFakeEmbedding(size=8)
    with RecollectVectorStore(tmp_path / "agent.db", model) as store:
        store.add_texts(["Ana likes tea"])
        assert store.embeddings is model
        (hit,) = store.memory.recall("Ana likes tea", wait_for_vectors=True)
        assert hit.why.cosine is not None
        assert texts(store.similarity_search("Ana likes tea")) == ["Ana likes tea"]
        with pytest.raises(ValueError, match="needs a path"):
            RecollectVectorStore(store.memory, model)


def test_secrets_are_redacted_in_texts_and_metadata_or_refused(store: RecollectVectorStore) -> None:
    store.memory.set_policies(redaction="redact")
    store.add_texts(["write to ana@example.com"], [{"mail": "ana@example.com"}], ids=["a"])
    (found,) = store.get_by_ids(["a"])
    assert "ana@" not in str(found)
    store.memory.set_policies(redaction="refuse")
    with pytest.raises(RejectedError):
        store.add_texts(["a text"], [{"mail": "bob@example.com"}])


def test_asynchronous_calls_do_the_same(store: RecollectVectorStore) -> None:
    async def calls() -> None:
        await store.aadd_documents([Document(page_content="Ana likes tea", id="a"), Document(page_content="Bob")])
        assert texts(await store.asimilarity_search("tea", k=1)) == ["Ana likes tea"]
        assert texts(await store.aget_by_ids(["a"])) == ["Ana likes tea"]
        await store.adelete(["a"])
        assert await store.aget_by_ids(["a"]) == []

    asyncio.run(calls())
