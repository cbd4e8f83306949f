"""Every page answers, as HTML and as JSON, in both languages and at any moment, and looking changes nothing."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner
from tests.inspector.pages import Reader, filled, inspected

import recollect
from recollect.cli.app import app
from recollect.server.ui.pages import PAGES
from recollect.server.ui.rendering import static_files

#: What each page looks at, where it needs something.
LOOKS: dict[str, dict[str, Any]] = {
    "search": {"q": "where does ana live"},
    "receipt": {"q": "where does ana live"},
    "context": {"q": "where does ana live", "glossary": "1", "outline": "1"},
    "record": {"id": "seat"},
    "forget": {"kind": "user_fact"},
    "conversation": {"name": "moving"},
    "entity": {"id": "bea"},
    "diff": {"a": "1"},
    "erase": {"user": "bob"},
    "erased": {"id": "none"},
    "me": {"person": "ana"},
    "mine": {"person": "ana", "id": "seat"},
}
#: A page must be smaller than this, in bytes, and all files that pages load together.
PAGE_BYTES, ASSET_BYTES, SCRIPT_BYTES = 60_000, 40_000, 6_000


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[Reader, recollect.Memory]]:
    with inspected(tmp_path) as (reader, memory):
        filled(memory)
        yield reader, memory


def test_every_page_is_html_and_json_in_both_languages(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, _ = opened
    german = Reader(reader.server, language="de-AT, en;q=0.5")
    for name, page in PAGES.items():
        look = LOOKS.get(name, {})
        assert isinstance(reader.json(name or "overview", **look), dict), name
        if not page.has_template:
            continue
        english, other = reader.get(name or "./", **look), german.get(name or "./", **look)
        for shown, language in ((english, "en"), (other, "de")):
            assert dict(shown.tags)["html"] == {"lang": language}
            assert [tag for tag, _ in shown.tags].count("h1") == 1
            assert shown.answer.headers["content-type"] == "text/html; charset=utf-8"
        assert english.words != other.words


def test_an_empty_memory_has_every_page(tmp_path: Path) -> None:
    with inspected(tmp_path) as (reader, _):
        for name, page in PAGES.items():
            if page.has_template:
                status = 404 if name in ("record", "entity", "mine", "diff") else 200
                reader.get(name or "./", status, **LOOKS.get(name, {}))
    assert not (tmp_path / "none").exists()


def test_all_parts_of_a_memory_can_be_looked_at(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    assert list(memory.stats()["parts"]) == ["records", "keys", "nodes", "sdrs", "terms"]
    for part in memory.stats()["parts"]:
        page = reader.json("records", part=part)
        assert page["count"] == len(page["records"]) == memory._part(part).count()
        for record in page["records"]:
            assert reader.get("record", part=part, id=record["id"]).answer.status == 200
    assert "Service Level Agreement" in reader.get("records", part="terms").words
    assert "a text with a sparse code" in reader.get("records", part="sdrs").words
    assert "Move to Oslo" in reader.get("records", part="nodes").words


def test_a_search_shows_the_shares_of_each_score_and_marks_the_words(
    opened: tuple[Reader, recollect.Memory],
) -> None:
    reader, memory = opened
    hits = memory.recall("where does ana live")
    shown = reader.json("search", q="where does ana live")
    assert [each["score"] for each in shown["hits"]] == [hit.score for hit in hits]
    assert [each["why"]["shares"] for each in shown["hits"]] == [dict(hit.why.shares) for hit in hits]
    page = reader.get("search", q="where does ana live")
    widths = [int(found["width"]) for tag, found in page.tags if tag == "rect" and "share" in found.get("class", "")]
    assert sum(widths) == pytest.approx(sum(1000 * hit.score for hit in hits), abs=len(widths))
    assert [tag for tag, _ in page.tags].count("mark") == sum(len(hit.marks) for hit in hits) > 0
    assert any("conversation?name=moving&hit=" in link for link in page.links)


def test_the_evidence_of_a_search_is_marked_in_its_conversation(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    memory.add_messages(
        [{"role": "user", "content": f"turn {number}"} for number in range(100)], user="ana", conversation="long"
    )
    hit = memory.find("conversation=long", order="position")[70]
    page = reader.get("conversation", name="long", hit=hit.id)
    marked = [found for tag, found in page.tags if tag == "li" and "evidence" in found.get("class", "")]
    assert [each.get("id") for each in marked] == ["hit"]
    assert "turn 70" in page.texts
    assert "turn 1" not in page.texts


def test_every_page_shows_any_moment_and_no_form_that_changes_it(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    record = memory.remember("Ana was in Lisbon", id="late", user="ana")
    memory.forget(record.id)
    seq = memory.seq - 1
    assert "Lisbon" in reader.get("records", at=str(seq), contains="Lisbon").words
    assert "Lisbon" not in reader.get("records", contains="Lisbon").texts
    assert [each["record"]["id"] for each in reader.json("search", q="Lisbon", at=str(seq))["hits"]] == ["late"]
    for name, page in PAGES.items():
        if page.is_present:
            assert "shows only what is now" in reader.get(name, 400, at=str(seq), **LOOKS.get(name, {})).words
        elif page.has_template and name != "diff":
            shown = reader.get(name or "./", at=str(seq), **LOOKS.get(name, {}))
            assert [each.fields for each in shown.forms if each.method == "post"] == [], name
            assert f"(commit {seq})" in shown.words
            inner = [link for link in shown.links if link.startswith(("search", "records", "log"))]
            assert inner
            assert [
                link for link in inner if f"at={seq}" not in link and "?" in link and shown.links[link] != "Back to now"
            ] == []
    assert reader.get("./", 404, at="9999").words
    assert "no such moment" in reader.get("./", 404, at="no such moment").words


def test_looking_changes_nothing_and_counts_as_no_use(tmp_path: Path) -> None:
    with inspected(tmp_path) as (reader, memory):
        memory.set_quota(records=3, when_full="least recent")
        for name in ("first", "second", "third"):
            memory.remember(f"the {name} text", id=name, user="ana", conversation="c", kind="conversation", position=1)
        head = memory.head()
        for name, page in PAGES.items():
            if page.has_template and name not in ("entity", "check"):
                reader.get(name or "./", **{**LOOKS.get(name, {}), **_first(name)})
        assert memory.head() == head
        memory.remember("the fourth text", id="fourth")
        assert memory.get("first") is None  # which every page showed, and which nothing used


def _first(name: str) -> dict[str, str]:
    return {
        "search": {"q": "first text"},
        "receipt": {"q": "first text"},
        "context": {"q": "first text"},
        "record": {"id": "first"},
        "mine": {"id": "first"},
        "conversation": {"name": "c"},
        "erase": {"id": "first", "user": ""},
    }.get(name, {})


def test_control_a_recall_counts_as_a_use(tmp_path: Path) -> None:
    with inspected(tmp_path) as (_, memory):
        memory.set_quota(records=3, when_full="least recent")
        for name in ("first", "second", "third"):
            memory.remember(f"the {name} text", id=name)
        memory.recall("first text", k=1)
        memory.remember("the fourth text", id="fourth")
        assert memory.get("first") is not None


def test_a_parameter_that_a_page_does_not_take_is_refused(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, _ = opened
    for name, page in PAGES.items():
        if page.has_template:
            shown = reader.get(name or "./", 400, **LOOKS.get(name, {}), usr="ana")
            assert "usr" in shown.words
    assert "colour" in reader.get("records", 400, where="colour=red").words


def test_pages_and_files_are_small(tmp_path: Path) -> None:
    with inspected(tmp_path) as (reader, memory):
        filled(memory)
        for number in range(80):
            memory.remember(
                f"record {number} " + "a long text about harbours and trains " * 300,
                id=f"large-{number}",
                user="ana",
                conversation=f"a conversation with quite a long name {number}",
                kind="conversation",
                tags=[f"tag {number}"],
            )
        looks = {**LOOKS, "search": {"q": "harbours and trains"}, "context": {"q": "harbours", "max_tokens": "4000"}}
        for name, page in PAGES.items():
            if page.has_template and name != "check":
                size = len(reader.get(name or "./", **looks.get(name, {})).answer.body)
                assert size < PAGE_BYTES, (name, size)
    files = static_files()
    assert sum(len(each.body) for each in files.values()) < ASSET_BYTES
    assert len(files["app.js"].body) <= SCRIPT_BYTES


def test_files_are_named_by_their_bytes_and_cached_for_ever(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, _ = opened
    page = reader.get("./")
    loaded = [found.get("src") or found.get("href", "") for tag, found in page.tags if tag in ("script", "link")]
    assert len(loaded) == 3
    for path in loaded:
        answer = reader.answer(path)
        assert answer.status == 200
        assert "immutable" in answer.headers["cache-control"]
        assert hashlib.sha256(answer.body).hexdigest()[:12] in path
    assert reader.answer("static/app.js").status == 404
    assert page.answer.headers["cache-control"] == "no-store"


def test_the_calls_of_a_search_ask_the_same(tmp_path: Path) -> None:
    with inspected(tmp_path) as (reader, memory):
        filled(memory)
        several = {"where": "not tag=old", "user": "ana", "k": "3", "concise": "1", "confident": "1"}
        for options in ({}, {"at": "1"}, several):
            shown = reader.json("search", q="where does ana's sister live?", **options)
            wanted = [each["record"]["id"] for each in shown["hits"]]
            assert [hit.record.id for hit in eval(shown["calls"]["python"], {"memory": memory})] == wanted
            command = [*shlex.split(shown["calls"]["command"])[1:], "--json", "--db", str(tmp_path / "served.db")]
            result = CliRunner().invoke(app, command)
            assert [each["record"]["id"] for each in json.loads(result.output)["hits"]] == wanted, result.output
            if "at" in options:
                assert "curl" not in shown["calls"]
                continue
            answer = subprocess.run(shlex.split(shown["calls"]["curl"]), capture_output=True, check=True).stdout
            assert [each["record"]["id"] for each in json.loads(answer)["hits"]] == wanted
    with inspected(tmp_path, alone=True) as (reader, _):
        assert "curl" not in reader.json("search", q="where?")["calls"]


def test_words_that_no_hit_has_are_named(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, _ = opened
    assert reader.json("search", q="which seat for the zeppelin?")["unmatched"] == ["zeppelin"]


def test_pages_do_not_break_on_odd_requests(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    memory.remember("odd", id="a/b c?d#e%f\"'<>&", kind="strange", metadata={"deep": {"er": [1, {"x": None}]}})
    odd = ["", "x" * 3000, "\u202e\n", "%00", "-1", "1" * 30, "a/b c?d#e%f\"'<>&"]
    for name, page in PAGES.items():
        for parameter in [*page.takes.split(), "namespace", "at", "person", "done", "seq", "of", "sign"]:
            for number, value in enumerate(odd):
                look = {**LOOKS.get(name, {}), parameter: value}
                path = f"{name or './'}?" if number % 2 else f"{name or 'overview'}.json?"
                status = reader.answer(path + urlencode(look)).status
                assert status in (200, 400, 403, 404), (name, parameter, value[:20], status)
