"""The glossary: terms of agents with aliases, by the specification's golden values and the faults that it lists."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import recollect
from recollect import Memory
from recollect.cli.app import app
from recollect.errors import (
    InvalidArgumentError,
    QuotaError,
    ReadOnlyMemoryError,
    RejectedError,
    ScopeError,
    UnsupportedError,
)
from recollect.memory.glossary.glossary import Glossary
from recollect.operations import RecallTerms
from recollect.records.terms import term_id
from recollect.testing import memory_on
from recollect.testing.loopback import Loopback

PII = {
    "key": "PII",
    "value": "Personally Identifiable Information",
    "category": "abbreviation",
    "agent_id": "compliance_bot",
    "aliases": ["private data", "sensitive info"],
    "description": "Any data that could be used to identify a specific individual.",
}
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(params=["memory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with recollect.open(":memory:" if request.param == "memory" else tmp_path / "m.db") as opened:
        yield opened


@pytest.fixture
def glossary(memory: Memory) -> Glossary:
    return memory.glossary


def add(glossary: Glossary, *keys: str, agent: str = "a", **fields: Any) -> None:
    for key in keys:
        glossary.memorize(key, **{"value": f"what {key} means", "category": "", "agent_id": agent, **fields})


def keys(found: Any) -> list[str]:
    return [each["key"] for each in found]


# Golden values


def test_the_example_of_the_specification_finds_the_term(glossary: Glossary) -> None:
    glossary.memorize(**PII)  # type: ignore[arg-type]
    found = glossary.recall("How do we handle private data?", "compliance_bot", top_k=3, score_threshold=1.5)
    assert found == [{**PII, "entry_id": "31a291a0-e30d-5413-bc06-d7748a4c8b49", "score": found[0]["score"]}]
    assert 3.0 <= found[0]["score"] < 4.0


def test_ids_are_those_of_the_specification() -> None:
    assert term_id("compliance_bot", "pii") == "31a291a0-e30d-5413-bc06-d7748a4c8b49"
    assert term_id("compliance_bot", "data") == "f3b63249-432c-5cf3-9210-5ab1111dd236"
    assert term_id("A", "JWT \u0130") == "22a0b724-ad1d-55cc-9638-f63a6426e0e0"
    assert term_id("a", " b") != term_id("a", "b")


def test_ids_of_agents_and_keys_with_the_separator_differ(glossary: Glossary) -> None:
    pairs = [("a::b", "c"), ("a", "b::c"), ("a:", "b"), ("a", ":b"), ("a", "b"), ("a::", "b"), ("a", "::b")]
    assert len({term_id(*pair) for pair in pairs}) == len(pairs)
    for agent, key in pairs:
        glossary.memorize(key, f"{agent} {key}", "", agent)
    assert [glossary.get(key, agent)["value"] for agent, key in pairs] == [f"{a} {k}" for a, k in pairs]  # type: ignore[index]


def test_a_key_again_in_any_casing_replaces_the_term(glossary: Glossary) -> None:
    glossary.memorize("jwt", "old", "x", "a", aliases=["token"], description="more")
    glossary.memorize("JWT", "new", "y", "a")
    only = {"key": "JWT", "value": "new", "category": "y", "aliases": [], "description": "", "agent_id": "a"}
    assert glossary.list_all("a") == [{**only, "entry_id": term_id("a", "jwt")}] == [glossary.get("jWt", "a")]
    assert glossary.entry_count("a") == 1
    assert glossary.recall("old token more", "a") == []
    assert [each.term["value"] for each in glossary.history("Jwt", "a") if each.term] == ["old", "new"]


def test_a_term_is_there_as_soon_as_it_is_stored_and_gone_as_soon_as_it_is_forgotten(glossary: Glossary) -> None:
    for number in range(5):
        add(glossary, f"term{number}")
        assert keys(glossary.recall(f"term{number}", "a")) == [f"term{number}"]
        assert [each.name for each in glossary.annotate(f"a term{number}!", "a")] == [f"term{number}"]
    assert glossary.forget("TERM3", "a")
    assert not glossary.forget("term3", "a")
    assert glossary.recall("term3", "a") == []
    assert glossary.forget_many(["term1", "Term1", "term2", "absent"], "a") == 2
    assert keys(glossary.list_all("a")) == ["term0", "term4"]
    assert glossary.forget_many([], "a") == 0
    assert glossary.history("term3", "a")[-1].term is None


def test_lists_are_sorted_by_key_without_case_and_by_category(glossary: Glossary) -> None:
    add(glossary, "b", "C", "a", category="x")
    add(glossary, "D", category="y")
    assert keys(glossary.list_all("a")) == ["a", "b", "C", "D"]
    assert keys(glossary.list_all("a", "x")) == ["a", "b", "C"]
    assert glossary.list_all("a", category="") == glossary.list_all("nobody") == []
    assert glossary.categories("a") == {"x": 3, "y": 1}
    assert "score" not in glossary.list_all("a")[0]


# Faults that the specification lists


def test_a_long_repetitive_definition_does_not_win(glossary: Glossary) -> None:
    glossary.memorize("one", "latency of a request", "", "a")
    glossary.memorize("two", "latency " * 40 + "of many other things " * 40, "", "a")
    assert keys(glossary.recall("request latency", "a")) == ["one", "two"]


def test_what_one_agent_stores_changes_nothing_for_another(glossary: Glossary) -> None:
    add(glossary, "alpha", "beta")
    before = glossary.recall("alpha means", "a"), glossary.annotate("alpha", "a")
    add(glossary, *(f"alpha{number}" for number in range(30)), "alpha", agent="b", value="alpha alpha means")
    assert (glossary.recall("alpha means", "a"), glossary.annotate("alpha", "a")) == before
    glossary.forget("alpha", "b")
    assert glossary.get("alpha", "a") is not None


def test_a_name_in_the_question_is_above_words_of_a_description(glossary: Glossary) -> None:
    add(glossary, "token")
    glossary.memorize("other", "token of a token", "", "a", description="a token, a token and a token")
    assert keys(glossary.recall("a token", "a")) == ["token", "other"]


def test_nothing_is_guessed_and_misspelt_words_find_on_request(glossary: Glossary) -> None:
    add(glossary, "kubernetes")
    assert glossary.recall("kuberntes", "a") == glossary.recall("weather", "a", typos=True) == []
    assert keys(glossary.recall("kuberntes", "a", typos=True)) == ["kubernetes"]
    assert glossary.recall("", "a") == []


def test_the_threshold_is_inclusive_and_the_limit_counts(glossary: Glossary) -> None:
    add(glossary, "one", "two", "three")
    found = glossary.recall("one means", "a")
    assert glossary.recall("one means", "a", score_threshold=found[0]["score"]) == found[:1]
    assert glossary.recall("one means", "a", score_threshold=found[0]["score"] + 1e-9) == []
    assert glossary.recall("one means", "a", 2) == found[:2]


def test_more_than_ten_thousand_terms_are_listed_and_counted() -> None:
    with recollect.open(":memory:") as memory:
        terms = memory._beside("terms")
        memory.glossary.memorize("k", "v", "", "a")
        (record,) = terms.find()
        copies = [
            {
                "id": term_id("a", f"k{n}"),
                "content": "v",
                "kind": "term",
                "agent": "a",
                "metadata": {**record.metadata, "key": f"k{n}"},
            }
            for n in range(10_050)
        ]
        terms.remember_all(copies)
        assert len(memory.glossary.list_all("a")) == memory.glossary.entry_count("a") == 10_051
        assert keys(memory.glossary.recall("k10049", "a")) == ["k10049"]


# Annotate, shared names, expiry


def test_annotate_finds_terms_and_aliases_with_their_definitions(glossary: Glossary) -> None:
    glossary.memorize(**PII)  # type: ignore[arg-type]
    glossary.memorize("data", "facts", "", "compliance_bot")
    text = "Pii and PRIVATE\n data, database and data."
    found = glossary.annotate(text, "compliance_bot")
    assert [(each.text, each.name) for each in found] == [
        ("Pii", "PII"),
        ("PRIVATE\n data", "private data"),
        ("data", "data"),
    ]
    assert all(text[each.start : each.end] == each.text for each in found)
    assert found[1].terms == (glossary.get("PII", "compliance_bot"),)
    assert glossary.annotate(text, "a") == []


def test_names_that_two_terms_share_are_reported_and_annotated_with_both(glossary: Glossary) -> None:
    add(glossary, "one", aliases=["same"])
    add(glossary, "two", aliases=["SAME"])
    (shared,) = glossary.shared_names("a")
    assert shared.keys == ("one", "two")
    (found,) = glossary.annotate("the same", "a")
    assert keys(found.terms) == ["one", "two"]
    glossary.forget("one", "a")
    assert glossary.shared_names("a") == []


def test_a_term_expires_and_stops_counting() -> None:
    now = [NOW]
    with recollect.open(":memory:", clock=lambda: now[0]) as memory:
        add(memory.glossary, "stays")
        alone = memory.glossary.recall("stays means", "a")
        add(memory.glossary, "goes", ttl=60)
        add(memory.glossary, "kept", ttl=timedelta(minutes=1))
        add(memory.glossary, "kept")
        memory.glossary.forget("kept", "a")
        assert memory.glossary.recall("stays means", "a") != alone
        now[0] += timedelta(minutes=2)
        assert memory.glossary.recall("stays means", "a") == alone
        assert memory.glossary.get("goes", "a") is None
        assert memory.glossary.annotate("goes", "a") == []
        add(memory.glossary, "goes")
        assert keys(memory.glossary.recall("goes", "a")) == ["goes"]


def test_a_tokenizer_decides_what_a_word_is(glossary: Glossary) -> None:
    add(glossary, "abc", value="xyz")

    def letters(text: str) -> list[str]:
        return list(text)

    assert keys(glossary.recall("zzz", "a", tokenizer=letters)) == ["abc"]
    assert glossary.recall("zzz", "a") == []
    with pytest.raises(InvalidArgumentError, match="must return a list of texts"):
        glossary.recall("zzz", "a", tokenizer=lambda text: text)
    with pytest.raises(UnsupportedError):
        RecallTerms(agent="a", question="q", tokenizer=letters).to_json()


# One engine: scopes, history, policies, quotas, other memories


def test_terms_are_no_records_of_the_memory(memory: Memory) -> None:
    add(memory.glossary, "alpha")
    memory.remember("alpha is a letter")
    assert (memory.count(), len(memory.recall("alpha")), memory.namespaces()) == (1, 1, ["default"])
    assert memory.namespace("other").glossary.entry_count("a") == 0
    assert memory.check() == []


def test_a_scope_sees_its_own_terms_only(memory: Memory) -> None:
    ana, bo = memory.scoped(user="ana").glossary, memory.scoped(user="bo").glossary
    add(ana, "one", "two")
    add(bo, "one", value="of Bo")
    assert ana.get("one", "a") != bo.get("one", "a")
    assert keys(ana.recall("one two", "a")) == ["one", "two"]
    assert keys(bo.recall("one two", "a")) == ["one"]
    assert [each.name for each in bo.annotate("one two", "a")] == ["one"]
    assert memory.glossary.entry_count("a") == 3
    agent = memory.scoped(agent="a").glossary
    with pytest.raises(ScopeError):
        add(agent, "x", agent="b")
    assert agent.list_all("b") == []


def test_the_past_of_a_glossary_can_be_asked(memory: Memory) -> None:
    add(memory.glossary, "alpha")
    memory.remember("between")
    before = memory.glossary.recall("alpha", "a")
    then = memory.now()
    memory.glossary.memorize("alpha", "changed", "", "a")
    add(memory.glossary, "beta")
    past = memory.at(then).glossary
    assert past.recall("alpha", "a") == before
    assert (past.entry_count("a"), past.annotate("beta", "a"), past.shared_names("a")) == (1, [], [])
    with pytest.raises(ReadOnlyMemoryError):
        add(past, "gamma")


def test_policies_and_quotas_of_the_namespace_apply_to_terms(memory: Memory) -> None:
    memory.set_policies(redaction="refuse", salience="strict")
    add(memory.glossary, "PII")  # a term is not judged by its salience
    with pytest.raises(RejectedError):
        add(memory.glossary, "key", value="token=abcdef")
    memory.set_quota(records=1)
    with pytest.raises(QuotaError):
        add(memory.glossary, "more")
    assert keys(memory.glossary.list_all("a")) == ["PII"]


def test_terms_are_as_stored_after_the_store_is_opened_again(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "m.db") as memory:
        memory.glossary.memorize(**PII)  # type: ignore[arg-type]
        found = memory.glossary.recall("sensitive info", "compliance_bot")
        with recollect.open(tmp_path / "m.db") as other:
            add(other.glossary, "sensitive", agent="compliance_bot")
        assert keys(memory.glossary.recall("sensitive info", "compliance_bot")) == ["PII", "sensitive"]
        memory.glossary.forget("sensitive", "compliance_bot")
    with recollect.open(tmp_path / "m.db") as memory:
        assert memory.glossary.recall("sensitive info", "compliance_bot") == found


def test_what_is_erased_is_in_no_answer(memory: Memory) -> None:
    add(memory.glossary, "alpha", "beta")
    memory.glossary.recall("alpha", "a")
    memory._beside("terms").erase(term_id("a", "alpha"))
    assert memory.glossary.recall("alpha", "a") == []
    assert memory.glossary.annotate("alpha", "a") == []
    assert memory.glossary.history("alpha", "a")[0].term is None


def test_the_calls_of_an_async_memory_are_the_same() -> None:
    async def run() -> None:
        memory = recollect.AsyncMemory(recollect.open(":memory:"))
        glossary = memory.glossary
        await glossary.memorize(**PII)  # type: ignore[arg-type]
        assert keys(await glossary.recall("private data", "compliance_bot")) == ["PII"]
        assert (
            len(await glossary.annotate("PII", "compliance_bot")) == await glossary.entry_count("compliance_bot") == 1
        )
        assert await glossary.categories("compliance_bot") == {"abbreviation": 1}
        assert await glossary.forget("pii", "compliance_bot")
        await memory.close()

    asyncio.run(run())


def test_the_answers_over_a_wire_are_the_same(memory: Memory) -> None:
    memory.glossary.memorize(**PII)  # type: ignore[arg-type]
    wire = Memory(Loopback(memory._executor), memory._branch).glossary
    for ask in (
        lambda one: one.recall("private data", "compliance_bot"),
        lambda one: one.annotate("PII of PII", "compliance_bot"),
        lambda one: one.shared_names("compliance_bot"),
        lambda one: one.history("PII", "compliance_bot"),
    ):
        assert ask(wire) == ask(memory.glossary)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.memorize("", "v", "c", "a"),
        lambda g: g.memorize("k", "", "c", "a"),
        lambda g: g.memorize("k", "v", None, "a"),
        lambda g: g.memorize("k", "v", "c", ""),
        lambda g: g.memorize("k", "v", "c", "a", aliases="text"),
        lambda g: g.memorize("k", "v", "c", "a", aliases=[3]),
        lambda g: g.memorize("k", "v", "c", "a", ttl=0),
        lambda g: g.recall("q", "a", top_k=0),
        lambda g: g.recall("q", "a", score_threshold=float("nan")),
        lambda g: g.recall(None, "a"),
        lambda g: g.recall("q", "a", tokenizer="path"),
        lambda g: g.forget_many("text", "a"),
        lambda g: g.annotate(b"text", "a"),
        lambda g: g.list_all(3),
    ],
)
def test_a_wrong_argument_is_a_clear_error_and_changes_nothing(call: Any, memory: Memory) -> None:
    with pytest.raises(InvalidArgumentError):
        call(memory.glossary)
    assert memory._beside("terms").seq == 0


def test_a_shared_store_gives_every_memory_its_own_glossary() -> None:
    from recollect.stores.memory import MemoryStore

    memory = memory_on(MemoryStore())
    add(memory.glossary, "one")
    assert memory.namespace("two").glossary.recall("one", "a") == []


def test_the_commands_store_find_list_and_forget(tmp_path: Path) -> None:
    store = str(tmp_path / "t.db")

    def run(*arguments: str, text: str = "", code: int = 0) -> Any:
        result = CliRunner().invoke(app, ["glossary", *arguments, "--db", store, "--json"], input=text)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout) if code == 0 else result.output

    added = run("add", "PII", "Personal data", "--alias", "private data", "--category", "c", "--agent", "a")
    assert (added["key"], added["aliases"], added["category"]) == ("PII", ["private data"], "c")
    run("add", "pii", "Personal information", "--agent", "a")
    run("add", "JWT", "JSON Web Token", "--category", "c", "--agent", "a")
    assert keys(run("list", "--agent", "a")) == ["JWT", "pii"]
    assert keys(run("list", "--agent", "a", "--category", "c")) == ["JWT"]
    (found,) = run("recall", "What is a JWT?", "--agent", "a", "--minimum", "3")
    assert found["key"] == "JWT"
    (place,) = run("annotate", "--agent", "a", text="the pii report")
    assert (place["start"], place["end"], keys(place["terms"])) == (4, 7, ["pii"])
    assert [each["term"]["value"] for each in run("history", "PII", "--agent", "a")] == [
        "Personal data",
        "Personal information",
    ]
    assert run("forget", "pii", "absent", "--agent", "a") == {"forgotten": 1}
    assert "is empty" in run("add", "", "v", "--agent", "a", code=1)
    plain = CliRunner().invoke(app, ["glossary", "list", "--agent", "a", "--db", store])
    assert "terms: 1" in plain.output
