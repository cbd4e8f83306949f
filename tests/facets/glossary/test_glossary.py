"""The glossary: terms of agents with aliases, by the specification's golden values and the faults that it lists."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import recollect
from recollect import Memory
from recollect.cli.app import app
from recollect.errors import (
    ImportFormatError,
    InvalidArgumentError,
    MissingExtraError,
    QuotaError,
    ReadOnlyMemoryError,
    RejectedError,
    ScopeError,
    UnsupportedError,
)
from recollect.facets.glossary.glossary import Glossary
from recollect.facets.glossary.operations import RecallTerms
from recollect.facets.glossary.records import term_id
from recollect.operations import Now
from recollect.server.mcp.tools import Access, ToolError
from recollect.server.mcp.toolsets import tools_of
from recollect.stores.memory import MemoryStore
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

pytestmark = pytest.mark.stores("memory", "sqlite")


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
    found = glossary.recall("How do we handle private data?", "compliance_bot", k=3, score_threshold=1.5)
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
    assert len(glossary.list_all("a")) == 1
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
    assert glossary.forget(["term1", "Term1", "term2", "absent"], "a") == 2
    assert keys(glossary.list_all("a")) == ["term0", "term4"]
    assert glossary.forget([], "a") == 0
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
        assert len(memory.glossary.list_all("a")) == len(memory.glossary.list_all("a")) == 10_051
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
    assert len(memory.namespace("other").glossary.list_all("a")) == 0
    assert memory.check() == []


def test_a_scope_sees_its_own_terms_only(memory: Memory) -> None:
    ana, bo = memory.scoped(user="ana").glossary, memory.scoped(user="bo").glossary
    add(ana, "one", "two")
    add(bo, "one", value="of Bo")
    assert ana.get("one", "a") != bo.get("one", "a")
    assert keys(ana.recall("one two", "a")) == ["one", "two"]
    assert keys(bo.recall("one two", "a")) == ["one"]
    assert [each.name for each in bo.annotate("one two", "a")] == ["one"]
    assert len(memory.glossary.list_all("a")) == 3
    agent = memory.scoped(agent="a").glossary
    with pytest.raises(ScopeError):
        add(agent, "x", agent="b")
    assert agent.list_all("b") == []


def test_the_past_of_a_glossary_can_be_asked(memory: Memory) -> None:
    add(memory.glossary, "alpha")
    memory.remember("between")
    before = memory.glossary.recall("alpha", "a")
    then = memory.execute(Now())
    memory.glossary.memorize("alpha", "changed", "", "a")
    add(memory.glossary, "beta")
    past = memory.at(then).glossary
    assert past.recall("alpha", "a") == before
    assert (len(past.list_all("a")), past.annotate("beta", "a"), past.shared_names("a")) == (1, [], [])
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
        assert len(await glossary.annotate("PII", "compliance_bot")) == 1
        assert len(await glossary.list_all("compliance_bot")) == 1
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
        lambda g: g.recall("q", "a", k=0),
        lambda g: g.recall("q", "a", score_threshold=float("nan")),
        lambda g: g.recall(None, "a"),
        lambda g: g.recall("q", "a", tokenizer="path"),
        lambda g: g.forget(["text", 3], "a"),
        lambda g: g.annotate(b"text", "a"),
        lambda g: g.list_all(3),
    ],
)
def test_a_wrong_argument_is_a_clear_error_and_changes_nothing(call: Any, memory: Memory) -> None:
    with pytest.raises(InvalidArgumentError):
        call(memory.glossary)
    assert memory._beside("terms").seq == 0


def test_a_shared_store_gives_every_memory_its_own_glossary() -> None:
    memory = memory_on(MemoryStore())
    add(memory.glossary, "one")
    assert memory.namespace("two").glossary.recall("one", "a") == []


def test_the_agents_are_those_that_have_terms_with_the_number_of_each(memory: Memory) -> None:
    glossary = memory.glossary
    assert glossary.agents() == {}
    for key, agent in (("PII", "bot"), ("pii", "bot"), ("JWT", "bot"), ("SLA", "Ana"), ("PII", "zoe")):
        glossary.memorize(key, "what it means", "", agent)
    memory.remember("no term", agent="other")
    before = memory.at(datetime.now(UTC))
    assert list(glossary.agents().items()) == [("Ana", 1), ("bot", 2), ("zoe", 1)]
    assert glossary.agents() == {agent: len(glossary.list_all(agent)) for agent in glossary.agents()}
    glossary.forget("SLA", "Ana")
    glossary.memorize("SLA", "what it means", "", "late", ttl=60)
    assert glossary.agents() == {"bot": 2, "late": 1, "zoe": 1}
    assert before.glossary.agents() == {"Ana": 1, "bot": 2, "zoe": 1}
    assert memory.scoped(agent="bot").glossary.agents() == {"bot": 2}
    assert memory.scoped(agent="none").glossary.agents() == {}


def test_terms_that_have_expired_and_those_of_other_namespaces_belong_to_no_agent() -> None:
    now = NOW
    with memory_on(MemoryStore(), clock=lambda: now) as memory:
        memory.glossary.memorize("PII", "what it means", "", "bot", ttl=60)
        memory.namespace("other").glossary.memorize("JWT", "what it means", "", "helper")
        assert memory.glossary.agents() == {"bot": 1}
        now = NOW + timedelta(seconds=61)
        assert memory.glossary.agents() == {}
        assert memory.namespace("other").glossary.agents() == {"helper": 1}


async def agents_awaited(memory: Memory) -> dict[str, int]:
    async with recollect.AsyncMemory(memory) as awaited:
        return await awaited.glossary.agents()


def test_the_agents_can_be_awaited(memory: Memory) -> None:
    add(memory.glossary, "PII")
    assert asyncio.run(agents_awaited(memory)) == {"a": 1}


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
    run("add", "SLA", "Service Level Agreement", "--agent", "b")
    assert run("agents") == {"a": 2, "b": 1}
    shown = CliRunner().invoke(app, ["glossary", "agents", "--db", store]).output
    assert [line.split() for line in shown.splitlines() if line][-2:] == [["a", "2"], ["b", "1"]]
    assert run("forget", "pii", "absent", "--agent", "a") == {"forgotten": 1}
    assert "is empty" in run("add", "", "v", "--agent", "a", code=1)
    plain = CliRunner().invoke(app, ["glossary", "list", "--agent", "a", "--db", store])
    assert "terms: 1" in plain.output


# Files, expiry, tokenizer.json, tools


def test_terms_are_the_same_after_export_and_import_as_csv_and_json(glossary: Glossary) -> None:
    expires = NOW + timedelta(days=3650)
    add(
        glossary,
        "plain",
        "a;b",
        'say "x"',
        "line\nbreak",
        "\u00e9\u732b",
        aliases=["one;two", 'q"', "x\ny", "w\rz", "three"],
    )
    glossary.memorize("goes", "v", "c", "a", description="d, e")
    glossary.set_expiry("goes", "a", expires - datetime.now(UTC))
    for write, read in ((glossary.to_csv, glossary.from_csv), (glossary.to_json, glossary.from_json)):
        text = write("a")
        assert read(text, "b") == 6
        strip = [{**term, "agent_id": "", "entry_id": ""} for term in glossary.list_all("a")]
        assert strip == [{**term, "agent_id": "", "entry_id": ""} for term in glossary.list_all("b")]
        assert glossary.expiry("goes", "b") == glossary.expiry("goes", "a") is not None
        assert glossary.expiry("plain", "b") is None
        assert write("b") == text
        glossary.forget(keys(glossary.list_all("b")), "b")


def test_an_import_reads_what_a_spreadsheet_writes(glossary: Glossary) -> None:
    text = "\ufeffvalue,key,aliases\r\nJSON Web Token,JWT,token;web token\r\n\r\nPersonal data,PII,\r\n"
    assert glossary.from_csv(text, "a") == 2
    assert [(term["key"], term["aliases"]) for term in glossary.list_all("a")] == [
        ("JWT", ["token", "web token"]),
        ("PII", []),
    ]
    assert glossary.from_json(json.dumps(glossary.list_all("a")), "b") == 2
    assert glossary.from_json("[]", "b") == glossary.from_csv("key,value\n", "b") == 0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1"),
        ("key\nx\n", "line 1"),
        ("key,value,value\n", "line 1"),
        ("key,value\ngood,v\nx\n", "line 3"),
        ("key,value\ngood,v\nx,\n", "line 3"),
        ("key,value\ngood,v\nGOOD,w\n", "line 3"),
        ("key,value,expires\ngood,v,\nx,y,soon\n", "line 3"),
        ("key,value,expires\ngood,v,\nx,y,2026-01-01\n", "line 3"),
        ('key,value\ngood,v\n"x,y\n', "line 3"),
        ("key,value,colour\ngood,v,red\n", "colour"),
        ('key,value,aliases\ngood,v,"""a;b"\n', "line 2"),
        ("{}", "array"),
        ("[3]", "array"),
        ("[" * 100_000, "not JSON"),
        ('[{"key": "good", "value": "v"}, {"key": "x"}]', "term 2"),
        ('[{"key": "good", "value": 3}]', "term 1"),
        ('[{"key": "good", "value": "v", "aliases": "text"}]', "term 1"),
        ('[{"key": "good", "value": "v", "category": 3}]', "term 1"),
        ('[{"key": "good", "value": "v", "expires": 3}]', "term 1"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_the_place_and_stores_nothing(
    glossary: Glossary, text: str, place: str
) -> None:
    read = glossary.from_json if text[:1] in "[{" and text else glossary.from_csv
    with pytest.raises(ImportFormatError, match=place):
        read(text, "a")
    assert len(glossary.list_all("a")) == 0


def test_an_import_that_a_policy_forbids_stores_nothing(memory: Memory) -> None:
    memory.set_policies(redaction="refuse")
    with pytest.raises(RejectedError):
        memory.glossary.from_csv("key,value\none,fine\ntwo,token=abcdef\n", "a")
    assert len(memory.glossary.list_all("a")) == 0


def test_the_expiry_of_a_term_is_set_and_removed() -> None:
    now = [NOW]
    with recollect.open(":memory:", clock=lambda: now[0]) as memory:
        add(memory.glossary, "one", aliases=["uno"])
        before = memory.glossary.get("one", "a")
        assert memory.glossary.set_expiry("ONE", "a", 60)
        assert memory.glossary.expiry("one", "a") == NOW + timedelta(seconds=60)
        assert memory.glossary.set_expiry("one", "a", None)
        assert memory.glossary.expiry("one", "a") is None
        assert memory.glossary.get("one", "a") == before
        memory.glossary.set_expiry("one", "a", timedelta(seconds=1))
        now[0] += timedelta(seconds=2)
        assert memory.glossary.get("one", "a") is None
        assert not memory.glossary.set_expiry("one", "a", 60)
        with pytest.raises(InvalidArgumentError):
            memory.glossary.set_expiry("absent", "a", -1)


def tokenizer_json(path: Path, **more: Any) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = ["[UNK]", "[CLS]", "[SEP]", "pod", "##s", "crash", "what", "is", "a"]
    tokenizer = Tokenizer(models.WordPiece({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["[CLS]", "[SEP]"])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    tokenizer.enable_truncation(2)
    tokenizer.save(str(path))
    return path


def test_a_tokenizer_json_decides_what_a_word_is_without_its_special_tokens(glossary: Glossary, tmp_path: Path) -> None:
    path = tokenizer_json(tmp_path / "tokenizer.json")
    glossary.memorize("k", "what is a crash", "", "a")
    glossary.memorize("l", "pods", "", "a")
    assert keys(glossary.recall("pod", "a", tokenizer=path)) == ["l"]
    assert keys(glossary.recall("a what crash", "a", tokenizer=str(path))) == ["k"]  # also after the file's limit of 2
    assert glossary.recall("[CLS] unheard [SEP] [UNK]", "a", tokenizer=path) == []


def test_a_missing_or_damaged_tokenizer_json_is_an_error_that_names_the_path(
    glossary: Glossary, tmp_path: Path
) -> None:
    missing, damaged = tmp_path / "missing.json", tmp_path / "damaged.json"
    damaged.write_text('{"model": ')
    for path in (missing, damaged, tmp_path):
        with pytest.raises(InvalidArgumentError, match=re.escape(str(path))):
            glossary.recall("q", "a", tokenizer=path)


def test_a_tokenizer_json_that_was_changed_is_read_again(glossary: Glossary, tmp_path: Path) -> None:
    path = tokenizer_json(tmp_path / "tokenizer.json")
    add(glossary, "pods")
    assert keys(glossary.recall("pod", "a", tokenizer=path)) == ["pods"]
    path.write_text("{}")
    with pytest.raises(InvalidArgumentError):
        glossary.recall("pod", "a", tokenizer=path)


def test_without_the_library_a_tokenizer_json_is_a_clear_error(
    glossary: Glossary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.json"
    path.write_text("{}")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"recollect\[tokenizers\]"):
        glossary.recall("q", "a", tokenizer=path)


def test_a_model_defines_and_finds_terms_by_tools(memory: Memory) -> None:
    tools = memory.tools()
    tools.call("define_term", {"key": "PII", "value": "Personal data", "aliases": ["private data"]})
    assert keys(tools.call("recall_terms", {"question": "privat data?"})) == ["PII"]
    assert keys(tools.call("terms_in_text", {"text": "PII is private data"})) == ["PII"]
    assert keys(memory.glossary.list_all("shared")) == ["PII"]
    scoped = memory.scoped(agent="bot").tools()
    scoped.call("define_term", {"key": "JWT", "value": "token"})
    assert keys(memory.glossary.list_all("bot")) == ["JWT"]
    for aliases in ("text", [3]):
        with pytest.raises(InvalidArgumentError, match="list of texts"):
            tools.call("define_term", {"key": "x", "value": "y", "aliases": aliases})
    assert tools.call("forget_term", {"key": "pii"}) == {"term": "pii", "forgotten": True}
    assert not tools.call("judge_text", {"text": "Let me check the logs..."})["accepted"]
    assert "define_term" not in memory.tools(read_only=True).names


def test_the_tools_of_the_server_name_the_client_in_the_history(memory: Memory) -> None:
    tools = tools_of(["glossary", "salience"])
    access = Access(lambda **_: memory)

    def call(name: str, **given: Any) -> dict[str, Any]:
        return tools[name].call(access, given, "a client").structured

    assert call("define_term", key="PII", value="Personal data", aliases=["private data"])["terms"] == 1
    (found,) = call("recall_terms", question="What is PII?")["terms"]
    assert found == {"key": "PII", "value": "Personal data", "aliases": ["private data"], "score": found["score"]}
    assert keys(call("terms_in_text", text="the private data")["terms"]) == ["PII"]
    assert call("forget_term", key="pii") == {"forgotten": True}
    assert call("terms_in_text", text="the private data")["terms"] == []
    assert call("judge_text", text="The outage was caused by a full disk.")["reason"] == "signal"
    changes = memory._beside("terms").changes()
    assert [(each.actor, each.reason) for each in changes] == [("a client", "define_term"), ("a client", "forget_term")]
    with pytest.raises(ToolError):
        call("define_term", key="x", value="y", aliases="text")


@pytest.mark.files
def test_the_commands_export_and_import(tmp_path: Path) -> None:
    def run(*arguments: str, text: str = "", code: int = 0) -> str:
        result = CliRunner().invoke(app, ["glossary", *arguments, "--db", str(tmp_path / "t.db")], input=text)
        assert result.exit_code == code, result.output
        return result.output

    assert (
        run("import", "-", "--format", "csv", "--agent", "a", text="key,value\nPII,Personal data\n") == "imported: 1\n"
    )
    for suffix in ("csv", "json"):
        path = tmp_path / f"terms.{suffix}"
        run("export", str(path), "--agent", "a")
        run("export", str(path), "--agent", "a")  # replaces its own
        run("import", str(path), "--agent", suffix)
        assert run("export", "--agent", suffix) == run("export", "--agent", "a")
    other = tmp_path / "notes.csv"
    other.write_text("name,age\n")
    assert "is not a glossary in CSV" in run("export", str(other), "--agent", "a", code=1)
    assert other.read_text() == "name,age\n"
    assert "pass --format" in run("import", str(tmp_path / "t.db"), "--agent", "a", code=2)
    assert "line 1" in run("import", str(other), "--agent", "a", code=1)
    assert "is not UTF-8" in run("import", str(tmp_path / "t.db"), "--format", "csv", "--agent", "a", code=1)
