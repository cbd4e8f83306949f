"""The glossary on Qdrant: the library in local mode, a server that speaks its REST, and a real one if there is one."""

from __future__ import annotations

import os
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient, models
from tests.examples import FULL
from tests.facets.glossary.qdrant_server import QdrantServer, Refusal, qdrant_server
from tests.facets.glossary.test_glossary import NOW, PII, keys, tokenizer_json  # noqa: F401

import recollect
from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    InvalidRecordError,
    MissingExtraError,
    StoreServerError,
    UnsupportedError,
)
from recollect.facets.glossary.index.index import K1, B
from recollect.facets.glossary.qdrant.points import LENGTH, point_of, token_number, weights
from recollect.facets.glossary.stored import words
from recollect.facets.glossary.values import stated
from recollect.qdrant import QdrantGlossary, check_server

REAL = os.environ.get("RECOLLECT_QDRANT_URL")
pytestmark = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
#: Opens a glossary; called with the arguments of `QdrantGlossary`.
Open = Callable[..., QdrantGlossary]


@pytest.fixture
def server() -> Iterator[QdrantServer]:
    with qdrant_server() as running:
        yield running


@pytest.fixture(params=["local", "rest", pytest.param("real", marks=pytest.mark.skipif(not REAL, reason="no server"))])
def open_one(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Open glossaries of one collection."""
    name = f"test_{uuid.uuid4().hex}"
    opened: list[QdrantGlossary] = []

    def opener(**settings: Any) -> QdrantGlossary:
        opened.append(QdrantGlossary(**{"collection": name, **place, **settings}))
        return opened[-1]

    if request.param == "local":
        place: dict[str, Any] = {"client": QdrantClient(":memory:")}
        yield opener
    elif request.param == "rest":
        with qdrant_server() as running:
            place = {"url": running.url}
            yield opener
            for each in opened:
                each.close()
    else:
        assert REAL
        place = {"url": REAL}
        yield opener
        QdrantClient(url=REAL).delete_collection(name)


@pytest.fixture
def glossary(open_one: Open) -> QdrantGlossary:
    return open_one()


def add(glossary: QdrantGlossary, *names: str, agent: str = "a", **fields: Any) -> None:
    for key in names:
        glossary.memorize(key, **{"value": f"what {key} means", "category": "", "agent_id": agent, **fields})


# What the embedded engine does, too


def test_the_example_of_the_specification_finds_the_term(glossary: QdrantGlossary) -> None:
    glossary.memorize(**PII)  # type: ignore[arg-type]
    found = glossary.recall("How do we handle private data?", "compliance_bot", k=3, score_threshold=1.5)
    assert found == [{**PII, "entry_id": "31a291a0-e30d-5413-bc06-d7748a4c8b49", "score": found[0]["score"]}]
    assert found[0]["score"] >= 3.0
    assert glossary.recall("[CLS] weather [SEP]", "compliance_bot") == []


def test_the_ids_are_those_of_the_specification(glossary: QdrantGlossary) -> None:
    for agent, key in (("compliance_bot", "data"), ("A", "JWT \u0130"), ("a::b", "c"), ("a", "b::c")):
        glossary.memorize(key, f"{agent} {key}", "", agent)
        assert glossary.get(key.lower(), agent)["value"] == f"{agent} {key}"  # type: ignore[index]
    ids = [glossary.list_all(agent)[0]["entry_id"] for agent in ("compliance_bot", "A", "a::b", "a")]
    assert ids[:2] == ["f3b63249-432c-5cf3-9210-5ab1111dd236", "22a0b724-ad1d-55cc-9638-f63a6426e0e0"]
    assert ids[2] != ids[3]


def test_a_key_again_in_any_casing_replaces_the_term(glossary: QdrantGlossary) -> None:
    glossary.memorize("jwt", "old", "x", "a", aliases=["token"], description="more")
    glossary.memorize("JWT", "new", "y", "a")
    (only,) = glossary.list_all("a")
    assert (only["key"], only["value"], only["aliases"], only["description"]) == ("JWT", "new", [], "")
    assert len(glossary.list_all("a")) == 1
    assert glossary.recall("old token more", "a") == []


def test_a_term_is_there_as_soon_as_it_is_stored_and_gone_as_soon_as_it_is_forgotten(glossary: QdrantGlossary) -> None:
    for number in range(5):
        add(glossary, f"term{number}")
        assert keys(glossary.recall(f"term{number}", "a")) == [f"term{number}"]
    assert glossary.forget("TERM3", "a")
    assert not glossary.forget("term3", "a")
    assert glossary.get("term3", "a") is None
    assert glossary.recall("term3", "a") == []
    assert glossary.forget(["term1", "Term1", "term2", "absent"], "a") == 2
    assert glossary.forget([], "a") == 0
    assert keys(glossary.list_all("a")) == ["term0", "term4"]


def test_lists_are_sorted_by_key_without_case_and_by_category(glossary: QdrantGlossary) -> None:
    add(glossary, "b", "C", "a", category="x")
    add(glossary, "d", category="y")
    add(glossary, "e", category="x", agent="other")
    assert keys(glossary.list_all("a")) == ["a", "b", "C", "d"]
    assert keys(glossary.list_all("a", "x")) == ["a", "b", "C"]
    assert glossary.list_all("a", "z") == glossary.list_all("none") == []


def test_an_agent_changes_no_score_of_another(glossary: QdrantGlossary) -> None:
    add(glossary, "pod", "node", "cluster", value="runs a container")
    question = "what runs in a pod?"
    before = glossary.recall(question, "a")
    add(glossary, *(f"pod {number}" for number in range(20)), agent="b", value="runs and runs")
    assert glossary.recall(question, "a") == before
    assert len(glossary.recall(question, "b", k=50)) == 20


def test_what_was_forgotten_or_replaced_counts_no_more(glossary: QdrantGlossary) -> None:
    add(glossary, "pod", "node", value="runs a container")
    before = glossary.recall("container", "a")
    add(glossary, *(f"other {number}" for number in range(10)), value="a container")
    glossary.forget([f"other {number}" for number in range(10)], "a")
    add(glossary, "node", value="container container")
    add(glossary, "node", value="runs a container")
    assert glossary.recall("container", "a") == before


def test_terms_whose_name_occurs_are_above_those_that_share_words(glossary: QdrantGlossary) -> None:
    add(glossary, "IT", value="Information Technology")
    add(glossary, "noise", value="data data private private handle handle")
    add(glossary, "PII", value="facts of persons", aliases=["private data"])
    add(glossary, "long", aliases=["one two three four five six seven eight nine ten"])
    found = glossary.recall("how to handle private data and noisy data", "a")
    assert keys(found)[:2] == ["PII", "noise"]
    assert found[0]["score"] > max(3.0, found[1]["score"])
    assert keys(glossary.recall("What is IT?", "a")) == ["IT"]  # a stop word, which BM25 has not
    assert glossary.recall("What is IT?", "a")[0]["score"] == 3.0
    long = "say one two three four five six seven eight nine"
    assert glossary.recall(f"{long} ten now", "a")[0]["score"] >= 3.0
    assert glossary.recall(long, "a")[0]["key"] == "long"
    assert glossary.recall(f"x {long} eleven", "a", score_threshold=60) == []


def test_a_name_in_a_long_question_is_found(glossary: QdrantGlossary) -> None:
    add(glossary, "project athena", "nothing")
    text = " ".join(f"word{number}" for number in range(400))
    assert keys(glossary.recall(f"{text} Project  Athena {text}", "a")) == ["project athena"]


def test_equal_scores_are_ordered_by_key_also_at_the_limit(glossary: QdrantGlossary) -> None:
    add(glossary, *(f"key{number:02}" for number in reversed(range(40))), value="alike")
    for limit in (1, 5, 30):
        assert keys(glossary.recall("alike", "a", k=limit)) == [f"key{number:02}" for number in range(limit)]


def test_a_threshold_is_inclusive(glossary: QdrantGlossary) -> None:
    add(glossary, "x", value="blue sky")
    add(glossary, "y", value="blue blue sea")
    first, second = glossary.recall("blue", "a")
    assert keys(glossary.recall("blue", "a", score_threshold=first["score"])) == [first["key"]]
    assert keys(glossary.recall("blue", "a", score_threshold=second["score"])) == [first["key"], second["key"]]


def test_a_second_process_finds_the_terms_of_the_first(open_one: Open) -> None:
    add(open_one(), "pod")
    assert keys(open_one().list_all("a")) == ["pod"]


def test_a_tokenizer_json_decides_what_a_word_is_without_its_special_tokens(open_one: Open, tmp_path: Path) -> None:
    glossary = open_one(tokenizer=tokenizer_json(tmp_path / "tokenizer.json"))
    add(glossary, "k", value="crash pod")
    add(glossary, "l", value="pod")
    assert keys(glossary.recall("crash", "a")) == ["k"]
    assert glossary.recall("[CLS] unheard [SEP] [UNK]", "a") == []


def test_terms_of_another_tokenizer_are_refused_and_not_searched_in_vain(open_one: Open) -> None:
    open_one()
    with pytest.raises(UnsupportedError, match="have the tokenizer words, not a function"):
        open_one(tokenizer=str.split)
    with pytest.raises(InvalidArgumentError, match="must return a list of texts"):
        open_one(collection=f"test_{uuid.uuid4().hex}", tokenizer=lambda text: text).recall("q", "a")


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.memorize("", "v", "", "a"),
        lambda g: g.memorize("k", " ", "", "a"),
        lambda g: g.memorize("k", "v", "", ""),
        lambda g: g.memorize("k", "v", "", "a", aliases="alias"),
        lambda g: g.memorize("k", "v", "", "a", aliases=[1]),
        lambda g: g.memorize("k", "v", "", "a\n"),
        lambda g: g.memorize("\ud800", "v", "", "a"),
        lambda g: g.recall("q", "a", k=0),
        lambda g: g.recall("q", "a", k=True),
        lambda g: g.recall("q", "a", score_threshold="1"),
        lambda g: g.recall("q", "a", score_threshold=float("nan")),
        lambda g: g.recall(1, "a"),
        lambda g: g.forget(["abc", 3], "a"),
        lambda g: g.list_all(""),
    ],
)
def test_invalid_arguments_are_refused_before_anything_is_sent(call: Callable[[QdrantGlossary], Any]) -> None:
    with qdrant_server() as server, QdrantGlossary(server.url) as glossary:
        server.asked.clear()
        with pytest.raises((InvalidArgumentError, InvalidRecordError)):
            call(glossary)
        assert server.asked == []


# Where its ranking differs


def embedded(terms: dict[str, str]) -> Any:
    memory = recollect.open(":memory:")
    for key, value in terms.items():
        memory.glossary.memorize(key, value, "", "a")
    return memory.glossary


def test_terms_of_sixteen_words_have_the_scores_of_the_embedded_engine(glossary: QdrantGlossary) -> None:
    """The length that the server takes for the mean of all terms."""
    colours = "amber azure beige black brown coral cream green".split()
    terms = {
        f"zk{n}": " ".join([*(f"w{n}x{m}" for m in range(LENGTH - 4)), colours[n], colours[-n - 1], colours[0]])
        for n in range(8)
    }
    other = embedded(terms)
    for key, value in terms.items():
        assert len(words(f"{key} {value}")) == LENGTH
        glossary.memorize(key, value, "", "a")
    for question in ("amber", "green and azure", "black brown coral coral", "cream w3x1 w4x2"):
        got, wanted = glossary.recall(question, "a", 8), other.recall(question, "a", 8)
        assert keys(got) == keys(wanted)
        assert [each["score"] for each in got] == pytest.approx([each["score"] for each in wanted], rel=1e-4)


def test_lengths_are_compared_with_sixteen_words_and_not_with_the_mean(glossary: QdrantGlossary) -> None:
    terms = {"aa": "blue sky high", "bb": "green sea deep"}
    other = embedded(terms)
    for key, value in terms.items():
        glossary.memorize(key, value, "", "a")
    (got,), (wanted,) = glossary.recall("blue", "a"), other.recall("blue", "a")
    # Four words each, so the mean is 4: the embedded engine neither rewards nor penalizes them.
    assert got["score"] / wanted["score"] == pytest.approx((1 + K1) / (1 + K1 * (1 - B + B * 4 / LENGTH)), rel=1e-5)


def test_so_terms_of_unlike_lengths_can_be_in_another_order(glossary: QdrantGlossary) -> None:
    terms = {"aa": "blue", "bb": "blue blue " + "x1 x2 x3 x4 x5", **{f"c{n}": "y" * (n + 3) for n in range(6)}}
    other = embedded(terms)
    for key, value in terms.items():
        glossary.memorize(key, value, "", "a")
    assert keys(other.recall("blue", "a")) == ["aa", "bb"]
    assert keys(glossary.recall("blue", "a")) == ["bb", "aa"]


def test_the_weights_of_a_text_are_those_of_bm25() -> None:
    tokens = ["tea"] * 2 + ["cup"] * 6
    got = weights(tokens)
    norm = 1.2 * (1 - 0.75 + 0.75 * 8 / 16)
    assert got == {
        token_number("tea"): pytest.approx(2 * 2.2 / (2 + norm)),
        token_number("cup"): pytest.approx(6 * 2.2 / (6 + norm)),
    }
    assert list(got) == sorted(got)


# What it asks the server


def test_writes_are_waited_for_numbers_are_exact_and_idf_is_that_of_the_agent(server: QdrantServer) -> None:
    with QdrantGlossary(server.url, api_key="secret") as glossary:
        add(glossary, "pod", "node")
        glossary.recall("pod", "a")
        glossary.forget("pod", "a")
        len(glossary.list_all("a"))
        glossary.list_all("a", "x")
    writes = [each for each in server.asked if each.method == "PUT" or each.what == "/points/delete"]
    assert {each.what for each in writes} == {"/", "/index", "/points", "/points/delete"}
    assert all(each.query.get("wait") == ["true"] for each in writes if each.what != "/")
    assert {each.key for each in server.asked} == {"secret"}
    (created,) = (each.body for each in writes if each.what == "/")
    assert created["sparse_vectors"] == {"words": {"modifier": "idf"}}
    indexes = {each.body["field_name"]: each.body["field_schema"] for each in writes if each.what == "/index"}
    assert set(indexes) == {"agent_id", "category", "names"}
    assert indexes["agent_id"]["is_tenant"] is True
    counted = [each.body for each in server.asked if each.what == "/points/count"]
    assert counted
    assert all(body["exact"] is True for body in counted)
    mine = {"must": [{"key": "agent_id", "match": {"value": "a"}}]}
    queries = [each.body for each in server.asked if each.what == "/points/query"]
    assert queries
    assert all(body["params"]["idf"] == {"corpus": mine} for body in queries)
    filters = [each.body["filter"] for each in server.asked if each.what.endswith(("query", "scroll", "count"))]
    assert all(each["must"][0] == mine["must"][0] for each in filters)


def test_more_terms_than_a_page_has_are_listed_and_counted(server: QdrantServer) -> None:
    with QdrantGlossary(server.url) as glossary:
        # A page of the listing has a thousand; the full run has more than the ten thousand that the page promises.
        number, vector = 10_050 if FULL else 2_050, models.SparseVector(indices=[1], values=[1.0])
        points = [point_of(stated(f"key {at:05}", "v", ""), "a", str.split) for at in range(number)]
        server.local.upsert(
            "recollect_terms",
            [models.PointStruct(id=each.id, payload=each.payload, vector={"words": vector}) for each in points],
        )
        assert len(glossary.list_all("a")) == number
        assert keys(glossary.list_all("a")) == [f"key {at:05}" for at in range(number)]
        assert glossary.forget([f"key {at:05}" for at in range(600)], "a") == 600
        assert len(glossary.list_all("a")) == number - 600


# Servers that are not there, are old, refuse, or have other contents


def test_a_server_that_cannot_be_reached_is_an_error_and_nothing_is_stored_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with qdrant_server() as server:
        glossary = QdrantGlossary(server.url, api_key="secret")
        add(glossary, "pod")
    calls: list[Callable[[], object]] = [
        lambda: QdrantGlossary(server.url),
        lambda: check_server(server.url),
        lambda: add(glossary, "node"),
        lambda: glossary.get("pod", "a"),
        lambda: glossary.recall("pod", "a"),
        lambda: glossary.forget("pod", "a"),
        lambda: glossary.list_all("a"),
        lambda: len(glossary.list_all("a")),
    ]
    for call in calls:
        with pytest.raises(StoreServerError, match="cannot be reached or refused") as raised:
            call()
        assert server.url in str(raised.value)
        assert "secret" not in str(raised.value)
    glossary.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [401, 404, 500, 503])
def test_a_refusal_is_an_error_with_the_reason_and_the_next_call_is_answered(status: int, server: QdrantServer) -> None:
    with QdrantGlossary(server.url) as glossary:

        def refuse(asked: Any) -> None:
            raise Refusal(status, "not now")

        for call in (lambda: add(glossary, "pod"), lambda: glossary.recall("pod", "a"), lambda: glossary.list_all("a")):
            server.before = refuse
            with pytest.raises(StoreServerError, match=f"{status}.*not now"):
                call()
            server.before = lambda asked: None
            call()
        assert len(glossary.list_all("a")) == 1


def test_a_connection_that_breaks_is_an_error(server: QdrantServer) -> None:
    with QdrantGlossary(server.url) as glossary:

        def drop(asked: Any) -> None:
            raise ConnectionAbortedError

        server.before = drop
        with pytest.raises(StoreServerError):
            add(glossary, "pod")


@pytest.mark.parametrize(
    ("version", "works"), [("1.18.3", False), ("1.9.0", False), ("1.19.0", True), ("2.0.0-dev", True)]
)
def test_a_server_that_takes_the_idf_of_all_agents_is_refused(version: str, works: bool) -> None:
    with qdrant_server(version) as server:
        if works:
            check_server(server.url)
            QdrantGlossary(server.url).close()
            return
        for call in (check_server, QdrantGlossary):
            with pytest.raises(UnsupportedError, match=f"version {version}.*1.19"):
                call(server.url)
        assert all(each.method == "GET" for each in server.asked)


def test_a_collection_of_another_program_is_refused_and_not_touched(server: QdrantServer) -> None:
    server.local.create_collection("theirs", {}, sparse_vectors_config={"words": models.SparseVectorParams()})
    with pytest.raises(UnsupportedError, match=r"theirs.*not that of a glossary"):
        QdrantGlossary(server.url, collection="theirs")
    assert all(each.method == "GET" for each in server.asked)


def test_two_that_create_the_collection_at_once_both_use_it(server: QdrantServer) -> None:
    there = server.answer
    barrier = threading.Barrier(2)

    def late(name: str | None, asked: Any) -> Any:
        if asked.what == "/exists":
            return {"exists": False}
        return there(name, asked)

    server.answer = late  # type: ignore[method-assign]
    made: list[QdrantGlossary] = []

    def make() -> None:
        barrier.wait()
        made.append(QdrantGlossary(server.url))

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    add(made[0], "pod")
    assert keys(made[1].list_all("a")) == ["pod"]
    for each in made:
        each.close()


def test_a_point_that_is_no_term_is_said_to_be_damaged(server: QdrantServer) -> None:
    with QdrantGlossary(server.url) as glossary:
        vector = {"words": models.SparseVector(indices=[1], values=[1.0])}
        point = models.PointStruct(id=str(uuid.uuid4()), payload={"agent_id": "a", "key": 1}, vector={**vector})
        server.local.upsert("recollect_terms", [point])
        with pytest.raises(DamagedStoreError, match="is not a term"):
            glossary.list_all("a")


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtraError, match=r"recollect\[qdrant\]"):
        QdrantGlossary("http://127.0.0.1:1")


@pytest.mark.parametrize("url", ["", "localhost:6333", "ftp://host", 1, None])
def test_an_invalid_address_is_refused(url: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="url"):
        QdrantGlossary(url)
