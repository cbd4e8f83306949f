"""`RecollectRetriever`: all of a memory, with reasons, filters and other arguments of recall."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.runnables import RunnablePassthrough
from pydantic import ValidationError

import recollect
from recollect import filters as f
from recollect.compat.langchain import RecollectChatMessageHistory, RecollectRetriever, RecollectVectorStore


def fill(memory: recollect.Memory) -> None:
    memory.remember("Ana prefers window seats", user="ana", kind="user_fact", time="2026-05-01", metadata={"page": 3})
    memory.remember("Bob prefers aisle seats", user="bob")
    memory.add_messages([{"role": "user", "content": "My seat was cold"}], user="ana", conversation="chat")
    RecollectVectorStore(memory, user="ana").add_texts(["The seats of this train are blue"], [{"page": 7}])


def test_records_of_any_kind_are_found_with_their_fields_and_reasons(place: recollect.Memory) -> None:
    fill(place)
    found = RecollectRetriever(memory=place, k=9, user="ana").invoke("Which window seats does Ana prefer?")
    assert {each.page_content for each in found} == {
        "Ana prefers window seats",
        "My seat was cold",
        "The seats of this train are blue",
    }
    best = found[0].metadata
    assert (best["kind"], best["user"], best["page"], best["time"][:10]) == ("user_fact", "ana", 3, "2026-05-01")
    assert best["confidence"] > 0.5
    assert "seat" in best["why"]
    assert [each.metadata["score"] for each in found] == sorted((e.metadata["score"] for e in found), reverse=True)
    (blue,) = [each for each in found if "blue" in each.page_content]
    assert (blue.metadata["page"], blue.metadata["kind"]) == (7, "document")


def test_what_adapters_keep_for_themselves_is_not_shown(place: recollect.Memory) -> None:
    RecollectChatMessageHistory("chat", place).add_user_message("My seat was cold")
    RecollectVectorStore(place).add_texts(["The seats are blue"], [{"page": 7}], ids=["a"])
    found = RecollectRetriever(memory=place).invoke("seats")
    own = {"kind", "source", "time", "score", "confidence", "why"}
    assert {each.page_content: set(each.metadata) - own for each in found} == {
        "My seat was cold": {"conversation", "role"},
        "The seats are blue": {"page"},
    }


def test_options_of_the_retriever_and_of_a_call_select(place: recollect.Memory) -> None:
    fill(place)
    retriever = RecollectRetriever(memory=place, user="bob")
    assert [each.page_content for each in retriever.invoke("seats")] == ["Bob prefers aisle seats"]
    assert len(retriever.invoke("seats", user="ana")) == 3
    assert len(retriever.invoke("seats", user="ana", k=1)) == 1
    text = RecollectRetriever(memory=place, where="kind=document")
    assert [each.page_content for each in text.invoke("seats")] == ["The seats of this train are blue"]
    assert len(RecollectRetriever(memory=place, where=f.user("ana") & ~f.kind("document")).invoke("seats")) == 2


def test_what_answers_nothing_finds_nothing(place: recollect.Memory) -> None:
    fill(place)
    retriever = RecollectRetriever(memory=place, min_confidence="auto")
    assert retriever.invoke("quantum chromodynamics") == []
    assert retriever.invoke("  ") == []


def test_any_question_is_taken_and_an_address_is_not_shown(place: recollect.Memory) -> None:
    fill(place)
    retriever = RecollectRetriever(memory=place, user="ana")
    for question in ("seats \ud800", "seats " * 20_000):
        assert retriever.invoke(question)
    assert "memory" not in repr(retriever)
    assert "memory" not in retriever.model_dump()


def test_unknown_options_are_refused(place: recollect.Memory) -> None:
    with pytest.raises(ValidationError):
        RecollectRetriever(memory=place, kk=3)
    with pytest.raises(TypeError):
        RecollectRetriever(memory=place).invoke("seats", kk=3)
    with pytest.raises(ValueError, match="must be a memory, a path, or an address"):
        RecollectRetriever(memory=7)


def test_a_path_is_opened_and_closed_and_the_retriever_is_a_part_of_chains(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with recollect.open(path) as memory:
        fill(memory)
    retriever = RecollectRetriever(memory=path, k=1, user="ana")

    def joined(documents: list[Document]) -> str:
        return "\n".join(document.page_content for document in documents)

    chain = {"known": retriever | joined, "question": RunnablePassthrough()} | RunnablePassthrough()
    answer = asyncio.run(chain.ainvoke("Which seats does Ana prefer?"))
    assert answer == {"known": "Ana prefers window seats", "question": "Which seats does Ana prefer?"}
    retriever.close()
    retriever.close()
