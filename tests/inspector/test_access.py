"""Who sees what: without the secret path nothing, and with a token what its right and its scope allow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.http.serving import Server, served
from tests.inspector.pages import FORM, Form, Reader, filled, inspected
from tests.inspector.test_pages import LOOKS

import recollect
from recollect.server.http.routes import ROUTES
from recollect.server.ui.actions import ACTIONS
from recollect.server.ui.app import new_secret
from recollect.server.ui.pages import PAGES

#: What a user may open who may see only what is theirs.
OWNED = {name for name, page in PAGES.items() if page.of_owner}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with served(tmp_path, tokens=True, ui=True) as running:
        memory = running.memory(token=running.token("filler", "admin"))
        filled(memory)
        memory.remember("All share this", id="shared")
        yield running


def paths() -> list[str]:
    """Return every path of the server, without the secret, and some that there are not."""
    found = ["/", "/ui", "/ui/", "/openapi.json", "/healthz", "/readyz", "/metrics", "/mcp", "/favicon.ico", "//ui/"]
    found += [f"/ui/{name}" for name in [*PAGES, "do", "download", "content", "static/app.js", "overview.json"]]
    found += [f"/{new_secret()}/ui/{name}" for name in PAGES]
    names = {"{namespace}": "default", "{id:path}": "seat", "{batch}": "b"}
    for route in ROUTES:
        path = "/v1/{namespace}" + route.path
        for name, value in names.items():
            path = path.replace(name, value)
        found.append(path)
    return found


class TestSecret:
    def test_without_it_every_path_is_unknown_and_with_it_every_page_is_there(self, tmp_path: Path) -> None:
        with inspected(tmp_path, alone=True) as (reader, memory):
            filled(memory)
            secret = reader.server.ui.split("/")[1]
            assert re.fullmatch(r"[\w-]{22}", secret)
            wrong = [secret[:-1], secret + "A", secret.swapcase(), "A" * 22, "", "..", "%2e%2e"]
            tried = [
                *paths(),
                *(f"/{each}/ui/search" for each in wrong),
                f"/{secret}",
                f"/{secret}/",
                f"/{secret}/v1/x",
            ]
            for path in tried:
                for method in ("GET", "POST", "PATCH", "DELETE"):
                    answer = reader.server(method, path, b"" if method == "POST" else None)
                    assert answer.status == 404, (method, path)
                    assert secret.encode() not in answer.body or secret in path
            for name, page in PAGES.items():
                if page.has_template:
                    reader.get(name or "./", **LOOKS.get(name, {}))

    def test_control_a_server_with_other_routes_is_noticed(self, tmp_path: Path) -> None:
        with inspected(tmp_path) as (reader, _):
            assert {path for path in paths() if reader.server("GET", path).status == 200} >= {"/", "/healthz"}

    def test_beside_the_api_the_pages_are_below_it_too(self, tmp_path: Path) -> None:
        with inspected(tmp_path) as (reader, _):
            for name in PAGES:
                assert reader.server("GET", f"/ui/{name}").status == 404

    def test_it_is_new_each_time_and_in_no_answer_and_no_log(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert len({new_secret() for _ in range(1000)}) == 1000
        with inspected(tmp_path) as (reader, memory):
            filled(memory)
            secret = reader.server.ui.split("/")[1]
            for name, page in PAGES.items():
                if page.has_template:
                    shown = reader.get(name or "./", **LOOKS.get(name, {}))
                    assert secret.encode() not in shown.answer.body
                    assert shown.answer.headers["referrer-policy"] == "no-referrer"
            reader.send(Form("do", "post", {"action": "none"}), 403)
            answer = reader.server("GET", f"/{secret}/elsewhere")
            assert answer.status == 404
        assert secret not in caplog.text

    def test_another_name_of_the_server_is_refused(self, tmp_path: Path) -> None:
        with inspected(tmp_path) as (reader, _):
            assert reader.answer("search", headers={"Host": "evil.example"}).status == 421
            assert "set-cookie" not in reader.answer("search").headers

    def test_a_server_that_is_only_read_shows_no_form_and_changes_nothing(self, tmp_path: Path) -> None:
        with inspected(tmp_path, read_only=True) as (reader, memory):
            filled(memory)
            root = memory.root
            for name, page in PAGES.items():
                if page.has_template and name not in ("erase", "check"):
                    shown = reader.get(name or "./", **LOOKS.get(name, {}))
                    assert not [form for form in shown.forms if form.method == "post"], name
            for name in ACTIONS:
                assert reader.send(Form("do", "post", {"action": name, "id": "seat"}), 403).words
            assert memory.root == root


class TestTokens:
    def test_without_a_token_there_is_an_empty_page_and_no_data(self, server: Server) -> None:
        reader = Reader(server)
        pages = {reader.answer(name or "./").body for name in PAGES}
        assert len(pages) == 1
        (page,) = pages
        assert b"data-shell" in page
        assert b"ana" not in page.replace(b"banana", b"").lower()
        for path in ("do", "download", "content?id=seat"):
            answer = reader.answer(
                path, "POST" if path == "do" else "GET", b"action=forget&id=seat", {"Content-Type": FORM}
            )
            assert answer.status == 401, path
        assert server.memory(token=server.token("x", "read")).get("seat") is not None

    def test_a_token_is_no_cookie_and_no_part_of_an_address(self, server: Server) -> None:
        token = server.token("reader", "read")
        for headers in ({"Cookie": f"token={token}"}, {"Authorization": f"Basic {token}"}, {}):
            answer = Reader(server).answer(f"records?token={token}", headers=headers)
            assert b"seats" not in answer.body

    def test_one_that_only_reads_sees_no_form_and_changes_nothing(self, server: Server) -> None:
        reader = Reader(server, server.token("reader", "read"))
        for name, page in PAGES.items():
            if page.has_template and name not in ("erase", "check"):
                shown = reader.get(name or "./", **LOOKS.get(name, {}))
                assert not [form for form in shown.forms if form.method == "post"], name
        for name in ("erase", "check"):
            reader.get(name, 403, **LOOKS.get(name, {}))
        for name in ACTIONS:
            assert reader.send(Form("do", "post", {"action": name, "id": "seat"}), 403).words

    def test_one_that_writes_sets_no_quota_and_erases_nothing(self, server: Server) -> None:
        reader = Reader(server, server.token("writer", "write", origin="user"))
        forms = {form.fields.get("action") for form in reader.get("record", id="seat").forms}
        assert {"update", "forget"} <= forms
        assert not reader.get("settings").has_form("set_quota")
        for name in ("erase", "set_quota", "set_policies"):
            assert reader.send(Form("do", "post", {"action": name, "id": "seat", "confirm": "seat"}), 403).words
        done = reader.send(reader.get("record", id="seat").form("update"), content="Ana stands")
        memory = server.memory(token=server.token("admin", "admin"))
        assert memory.log(1)[0].actor == "inspector (token writer)"
        reader.send(done.form("revert"))
        assert memory.get("seat").content == "Ana prefers aisle seats"  # type: ignore[union-attr]

    def test_one_that_does_not_speak_for_the_user_proposes(self, server: Server) -> None:
        reader = Reader(server, server.token("model", "write"))
        done = reader.send(reader.get("record", id="seat").form("update"), content="Ana stands")
        assert "Stored as a proposal" in done.words
        assert "Ana prefers aisle seats" in reader.get("record", id="seat").words
        [proposal] = server.memory(token=server.token("admin", "admin")).find("supersedes=seat")
        assert proposal.text == "Ana stands"
        assert not reader.get("record", id=proposal.id).has_form("revert")

    def test_one_of_a_user_sees_nothing_of_others(self, server: Server) -> None:
        reader = Reader(server, server.token("of bob", "admin", user="bob"))
        for name, page in PAGES.items():
            look = LOOKS.get(name, {})
            if name in ("record", "entity", "mine"):
                reader.get(name, 404, **{**look, "person": ""} if name == "mine" else look)
            elif name in ("check", "receipt"):
                assert reader.answer(f"{name}.json{'?q=x' if name == 'receipt' else ''}").status == 403
            elif page.has_template:
                status = 403 if name in ("me", "diff") else 200
                shown = reader.get(name or "./", status, **look)
                if name not in ("search", "context", "conversation"):  # which repeat the question, or the name
                    assert "ana" not in re.sub("banana", "", shown.words.replace("Ana", "ana")).split(), name
                assert "Oslo" not in shown.words, name
        assert reader.json("overview")["stats"]["records"] == 1
        assert reader.json("records")["facets"]["user"] == [{"value": "bob", "records": 1}]
        assert reader.json("log")["timeline"] is None
        assert len(reader.json("log")["commits"]) == 1
        assert reader.answer("download").body.count(b"\n") == 2
        done = reader.send(reader.get("record", id="nuts").form("update"), content="Bob eats nuts")
        assert "corrected" in done.words
        assert not done.has_form("revert")  # which is about all of the namespace
        again = reader.get("erase", id="nuts")
        reader.send(again.form("erase"), confirm="nuts")
        assert reader.json("overview")["stats"]["records"] == 0

    def test_one_of_an_agent_or_a_conversation_sees_its_own(self, server: Server) -> None:
        for field, value in (("agent", "bot"), ("conversation", "moving")):
            scope: dict[str, Any] = {field: value}
            reader = Reader(server, server.token("scoped", "write", **scope))
            for name, page in PAGES.items():
                if page.has_template and page.operation != "check":
                    answer = reader.answer(name or "./")
                    assert answer.status in (200, 400, 403, 404), (name, answer.body)
            assert value in reader.get("me").words

    def test_one_of_some_namespaces_begins_with_one_of_them(self, server: Server) -> None:
        server.memory("team", server.token("team", "admin")).remember("a note")
        reader = Reader(server, server.token("of two", "read", ("team", "zoo")))
        assert reader.json("overview")["namespace"] == "team"
        assert reader.json("overview")["namespaces"] == ["team", "zoo"]
        own = Reader(server, server.token("own", "own", ("team", "zoo"), user="ana"))
        assert own.answer("./?namespace=zoo").headers["location"] == "me?namespace=zoo"

    def test_one_of_a_namespace_sees_no_other(self, server: Server) -> None:
        server.memory("other", server.token("other", "admin")).remember("a secret", id="secret")
        reader = Reader(server, server.token("of default", "admin", ("default",)))
        assert reader.json("overview")["namespaces"] == ["default"]
        reader.get("records", 403, namespace="other")
        one = Reader(server, server.token("of other", "read", ("other",)))
        assert one.json("overview")["namespace"] == "other"
        assert one.json("records")["count"] == 1


class TestOwners:
    def test_they_find_correct_forget_erase_and_download_what_is_theirs(self, server: Server) -> None:
        reader = Reader(server, server.token("ana herself", "own", user="ana"))
        assert reader.answer("./").headers["location"] == "me"
        page = reader.get("me")
        assert "What is remembered about one person: ana" in page.words
        assert "All share this" not in page.words
        assert "Bob" not in page.words
        found = reader.get("me", q="which seat?")
        link = next(link for link in found.links if link.startswith("mine?id=seat"))
        done = reader.send(reader.get(link).form("update"), content="Ana prefers the floor")
        assert "corrected" in done.words
        same = reader.send(done.form("update"))
        assert "Nothing was changed" in same.words
        assert not same.has_form("restore")
        back = reader.send(done.form("restore"))
        assert "Ana prefers aisle seats" in back.texts
        reader.send(back.form("forget"))
        memory = server.memory(token=server.token("admin", "admin"))
        assert memory.get("seat") is None
        lines = reader.answer("download").body.splitlines()
        assert len(lines) > 4
        assert b"seats" not in reader.answer("download").body
        everything = reader.get("erase", all="1")
        refused = reader.send(everything.form("erase"), 400, confirm="bob")
        assert "nothing was erased" in refused.words
        gone = reader.send(everything.form("erase"), confirm="ana")
        assert "lost" in gone.words
        assert memory.count("user=ana") == 0
        assert {"shared", "nuts"} <= {each.id for each in memory.find()}
        assert "Nothing is kept" in reader.get("me").words

    def test_they_open_no_other_page_and_make_no_other_change(self, server: Server) -> None:
        reader = Reader(server, server.token("ana herself", "own", user="ana"))
        for name, page in PAGES.items():
            if name not in OWNED and name:
                assert reader.answer(f"{name}.json").status == 403, name
                if page.has_template:
                    reader.get(name, 403)
        assert reader.answer("content?id=seat").status == 403
        for name, action in ACTIONS.items():
            if not action.of_owner:
                assert reader.send(Form("do", "post", {"action": name, "id": "seat"}), 403).words
        for other in ("nuts", "shared"):
            reader.get("mine", 404, id=other)
            for name in ("update", "forget", "erase"):
                form = Form(
                    "do", "post", {"action": name, "id": other, "content": "x", "confirm": other, "page": "mine"}
                )
                assert reader.send(form, 404).words
        reader.get("me", 403, person="bob")
        assert {action for action in ACTIONS if ACTIONS[action].of_owner} == {"update", "restore", "forget", "erase"}
        assert {"me", "mine", "erase", "erased"} == OWNED

    def test_an_administrator_acts_for_one_person_only_on_what_is_theirs(self, server: Server) -> None:
        reader = Reader(server, server.token("admin", "admin"))
        assert "Choose a person" in reader.get("me").words
        page = reader.get("me", person="bob")
        assert "nuts" in page.words
        assert "Oslo" not in page.words
        reader.get("mine", 404, person="bob", id="seat")
        done = reader.send(reader.get("mine", person="bob", id="nuts").form("forget"))
        memory = server.memory(token=reader.token)
        assert memory.get("nuts") is None
        reader.send(done.form("revert"))
        assert memory.get("nuts") is not None

    def test_a_token_without_a_user_cannot_have_the_right(self, server: Server) -> None:
        with pytest.raises(recollect.errors.TokenError):
            server.memory(token=server.token("nobody", "own")).count()
