"""All parts of a memory over HTTP: exports, imports and commits of each."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.family import PARTS, changed, counts, fill, roots
from tests.http.serving import Answer, Server, served

from recollect.errors import UnsupportedError
from recollect.importers.jsonl import write_jsonl
from recollect.server.lines import ExportPages


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with served(tmp_path) as running:
        yield running


def lines_of(answer: Answer) -> list[Any]:
    return [json.loads(line) for line in answer.body.splitlines()]


def body(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def done(created: int, **counted: int) -> dict[str, Any]:
    return {"created": created, "updated": 0, "unchanged": 0, "refused": 0, "failed": [], **counted}


class TestExport:
    def test_the_first_line_says_what_follows_and_an_import_restores_the_roots(self, server: Server) -> None:
        memory = server.memory()
        fill(memory)
        memory.keyed.write("#", bytes(range(256)))
        memory.scoped(user="ana").keyed.write("plan", b"of Ana")
        answer = server("GET", "/v1/default/export")
        head, *records = lines_of(answer)
        stated = [{"name": "records", "root": head["root"], "count": head["count"]}, *head["parts"]]
        assert {each["name"]: each["root"] for each in stated} == roots(memory)
        assert [each["count"] for each in stated] == [1, 3, 1, 2, 1]
        assert len(records) == 8
        assert server("POST", "/v1/copy/import", answer.body).json == done(8)
        copy = server.memory("copy")
        assert (copy.root, roots(copy)) == (memory.root, roots(memory))
        assert copy.keyed.read("#") == bytes(range(256))
        assert server("POST", "/v1/copy/import", answer.body).json == done(0, unchanged=8)
        assert copy.root == memory.root

    @pytest.mark.parametrize("parts", [["keys"], ["records"], ["terms", "records"], ["nodes", "sdrs"]], ids=str)
    def test_parts_are_named_in_a_query_or_in_a_body(self, server: Server, parts: list[str]) -> None:
        memory = server.memory()
        fill(memory)
        answer = server("GET", f"/v1/default/export?parts={','.join(parts)}")
        assert answer.body == server("POST", "/v1/default/export", {"parts": parts}).body
        head = lines_of(answer)[0]
        assert [each["name"] for each in head["parts"]] == [each for each in PARTS[1:] if each in parts]
        assert head["count"] == int("records" in parts)
        server("POST", "/v1/copy/import", answer.body)
        assert counts(server.memory("copy")) == {part: int(part in parts) for part in PARTS}

    @pytest.mark.parametrize("query", ["parts=outlines", "parts=", "parts=keys,,terms", "parts=keys,outlines"])
    def test_parts_that_there_are_not_are_refused(self, server: Server, query: str) -> None:
        fill(server.memory())
        for path in ("export", "changes"):
            answer = server("GET", f"/v1/default/{path}?{query}")
            assert (answer.status, answer.json["code"], answer.json["args"][0]) == (400, "invalid_argument", "parts")
        events = server("GET", f"/v1/default/changes?{query}", headers={"Accept": "text/event-stream"})
        assert (events.status, events.json["args"][0]) == (400, "parts")
        for wrong in ([], "keys", ["outlines"], 7, [1], {"keys": 1}):
            answer = server("POST", "/v1/default/export", {"parts": wrong})
            assert (answer.status, answer.json["args"][0]) == (400, "parts")

    def test_a_user_gets_what_is_of_the_user_in_every_part(self, server: Server) -> None:
        memory = server.memory()
        for user in ("ana", "zoe"):
            fill(memory.scoped(user=user), user)
        answer = server("GET", "/v1/default/export?user=ana")
        head = lines_of(answer)[0]
        assert [each["root"] for each in (head, *head["parts"])] == [""] * 5
        assert b"zoe" not in answer.body

    def test_pages_of_a_part_follow_those_of_another(self, server: Server) -> None:
        memory = server.memory()
        memory.remember_all([{"content": f"fact {number}", "id": f"{number:04}"} for number in range(450)])
        memory.sdr.store_many([(f"text {number}", None) for number in range(450)])
        memory.keyed.write("last", b"x")
        lines = lines_of(server("GET", "/v1/default/export"))
        assert len(lines) == 1 + 450 + 1 + 451
        assert [line["id"] for line in lines[450:452]] == ["0449", "last"]
        with memory.open_export() as export:
            assert [each.id for each in export.records] == [f"{number:04}" for number in range(450)]
            assert [(each.name, len(list(each.records))) for each in export.parts] == [("keys", 1), ("sdrs", 451)]
        with memory.open_export() as export:  # what is passed over is lost, and no one takes it for empty
            first = next(export.records)
            assert (first.id, len(list(export.parts[1].records))) == ("0000", 451)
            for passed in (export.records, export.parts[0].records):
                with pytest.raises(UnsupportedError, match="passed over"):
                    next(passed)


class TestImport:
    def test_a_file_of_the_command_and_a_query_are_refused_before_anything_is_stored(self, server: Server) -> None:
        server.memory().keyed.write("plan", b"go")
        file = io.StringIO()
        write_jsonl(server.memory(), file)
        answer = server("POST", "/v1/copy/import", file.getvalue().encode())
        assert (answer.status, answer.json["code"]) == (400, "protocol")
        assert "recollect import jsonl" in answer.json["detail"]
        exported = server("GET", "/v1/default/export").body
        assert server("POST", "/v1/copy/import?parts=terms", exported).status == 400
        assert server.memory("copy").seq == 0
        assert server("POST", "/v1/copy/import", exported).status == 200

    def test_lines_without_a_head_and_those_of_earlier_releases_are_records(self, server: Server) -> None:
        lines: list[Any] = [{"id": "a", "content": "one"}, {"id": "b", "content": "two"}]
        assert server("POST", "/v1/plain/import", body(lines)).json == done(2)
        assert server("POST", "/v1/former/import", body([{"root": "0" * 64, "count": 2}, *lines])).json == done(2)
        for name in ("plain", "former"):
            assert counts(server.memory(name)) == {**dict.fromkeys(PARTS, 0), "records": 2}

    def test_a_part_is_replaced_by_what_is_imported(self, server: Server) -> None:
        """A key, a number or the name of a term is one thing: a second one with a counter would be another."""
        memory, other = server.memory(), server.memory("other")
        memory.keyed.write("plan", b"imported")
        memory.sdr.store("imported")
        memory.glossary.memorize("tack", "imported", "", agent_id="bot")
        other.keyed.write("plan", b"former")
        other.sdr.store_many([("former", None), ("second", None)])
        other.glossary.memorize("tack", "former", "", agent_id="bot")
        answer = server("POST", "/v1/other/import", server("GET", "/v1/default/export").body)
        assert answer.json == done(0, updated=3, unchanged=1)
        assert (other.keyed.keys(), other.keyed.read("plan")) == (["plan"], b"imported")
        assert [each["text"] for each in other.sdr.texts()] == ["imported", "second"]
        assert [each["value"] for each in other.glossary.list_all("bot")] == ["imported"]
        assert other.sdr.store("third") == 3

    @pytest.mark.parametrize(
        "parts",
        [
            [{"name": "outlines", "root": "", "count": 1}],
            [{"name": "records", "root": "", "count": 1}],
            [{"name": ["keys"], "root": "", "count": 1}],
            [{"name": "keys", "root": ""}],
            [{"name": "keys", "count": -1}],
            [{"name": "keys", "count": "1"}],
            [{"name": "keys", "count": 1.5}],
            [{"name": "keys", "count": None}],
            ["keys"],
            "keys",
            7,
            None,
        ],
        ids=str,
    )
    def test_below_a_head_that_cannot_be_read_nothing_is_stored(self, server: Server, parts: Any) -> None:
        lines = body([{"root": "", "count": 0, "parts": parts}, {"id": "a", "content": "one"}])
        for sent in (lines, b"\n" + lines):
            answer = server("POST", "/v1/default/import", sent)
            assert answer.status == 400, answer.json
            assert answer.json["code"] in ("protocol", "invalid_argument")
        assert server.memory().seq == 0

    def test_a_bad_line_in_a_part_is_listed_and_those_around_it_go_where_they_belong(self, server: Server) -> None:
        memory = server.memory()
        fill(memory)
        fill(memory, "b")
        lines = server("GET", "/v1/default/export").body.splitlines()
        lines[1] = b"nonsense"  # of the records
        lines[3] = b"{}"  # of the keys
        answer = server("POST", "/v1/copy/import", b"\n".join(lines)).json
        assert [each["line"] for each in answer["failed"]] == [2, 4]
        assert counts(server.memory("copy")) == {**counts(memory), "records": 1, "keys": 1}

    def test_parts_longer_than_what_is_stored_at_a_time_go_where_they_belong(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("recollect.server.http.streams._STORED", 3)
        memory = server.memory()
        for number in range(5):
            fill(memory, f"n{number}")
        answer = server("GET", "/v1/default/export")
        server("POST", "/v1/copy/import", answer.body)
        assert server.memory("copy").root == memory.root

    def test_a_token_that_may_not_write_imports_no_part(self, tmp_path: Path) -> None:
        with served(tmp_path, tokens=True) as server:
            write, read = server.token("ana"), server.token("bo", "read")
            fill(server.memory(token=write))
            exported = server("GET", "/v1/default/export", token=read)
            assert exported.status == 200
            assert server("POST", "/v1/copy/import", exported.body, token=read).status == 403


class TestChanges:
    def test_only_commits_to_the_parts_that_are_named_are_listed(self, server: Server) -> None:
        memory = server.memory()
        fill(memory)
        memory.clear(parts=["keys", "records"])
        listed = server("GET", "/v1/default/changes?parts=keys").json["commits"]
        assert [each["seq"] for each in listed] == [2, 6]
        assert [[part["namespace"].partition("\x1f")[2] for part in each["part_commits"]] for each in listed] == [
            ["keys"],
            ["keys"],
        ]
        assert [each["changes"] for each in listed] == [[], []]
        page = server("GET", "/v1/default/changes?parts=keys&limit=1").json
        assert ([each["seq"] for each in page["commits"]], page["more"]) == ([2], False)
        both = server("GET", f"/v1/default/changes?parts=keys,records&since={listed[0]['cursor']}").json["commits"]
        assert [each["seq"] for each in both] == [6]
        assert len(server("GET", "/v1/default/changes").json["commits"]) == 6

    def test_events_are_of_the_parts_that_are_named(self, server: Server) -> None:
        memory = server.memory()
        fill(memory)
        with memory.subscribe(since=0, parts=["sdrs", "keys"]) as stream:
            found = [next(stream), next(stream)]
        assert changed(found) == [("keys",), ("sdrs",)]


def test_a_client_of_an_earlier_server_gets_the_records_alone(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = ExportPages.__init__

    def former(pages: ExportPages, *args: Any) -> None:
        begun(pages, *args)
        del pages.head["parts"]

    monkeypatch.setattr(ExportPages, "__init__", former)
    memory = server.memory()
    memory.remember("a fact", id="a")
    for parts in (None, ["keys"], ["keys", "records"]):
        with pytest.raises(UnsupportedError, match="of an earlier release"), memory.open_export(parts=parts):
            pass
    with memory.open_export(parts=["records"]) as export:
        assert ([each.id for each in export.records], export.parts) == (["a"], ())
