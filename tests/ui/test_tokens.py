"""Tokens in the browser: kept by the tab, sent as a header, in no address and no cookie."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.http.serving import Server, served
from tests.inspector.pages import filled
from tests.inspector.test_pages import LOOKS
from tests.ui.conftest import OpenWindow, Window, violations

from recollect.server.ui.pages import PAGES

pytestmark = pytest.mark.ui


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("tokens"), tokens=True, ui=True) as running:
        filled(running.memory(token=running.token("filler", "admin")))
        yield running


def signed_in(opened: Window, token: str, path: str = "") -> None:
    """Open a page and type a token."""
    page = opened.open(path)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Open").click()
    page.wait_for_selector("header")


def test_a_token_is_typed_once_and_kept_by_the_tab_alone(window: OpenWindow, guarded: Server) -> None:
    token = guarded.token("ana's", "write")
    with window(guarded) as opened:
        signed_in(opened, token, "search?q=where+does+ana+live")
        page = opened.page
        page.wait_for_selector(".hit")
        page.get_by_role("link", name="Records").click()
        page.wait_for_url("**/ui/records")
        assert page.evaluate("document.activeElement.tagName") == "H1"
        page.go_back()
        page.wait_for_selector(".hit")
        page.reload()
        page.wait_for_selector(".hit")
        assert token not in page.url
        assert page.context.cookies() == []
        assert page.evaluate("Object.values(localStorage).join()") in ("", "on")
        second = page.context.new_page()
        second.goto(guarded.address + guarded.ui)
        assert second.get_by_label("Token").count() == 1


def test_a_token_in_the_fragment_is_taken_out_of_the_address(window: OpenWindow, guarded: Server) -> None:
    with window(guarded) as opened:
        page = opened.open(f"#token={guarded.token('linked', 'read')}")
        page.wait_for_selector("header")
        assert page.url == guarded.address + guarded.ui
        assert page.inner_text("h1") == "What is remembered"


def test_a_wrong_token_is_said_to_be_wrong(window: OpenWindow, guarded: Server) -> None:
    with window(guarded, checked=False) as opened:
        page = opened.open()
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Open").click()
        page.wait_for_selector("[data-refused]:not([hidden])")
        assert "does not accept" in page.inner_text("main")
        assert page.evaluate("sessionStorage.length") == 0


def test_every_page_is_shown_and_a_change_is_made_and_undone(window: OpenWindow, guarded: Server) -> None:
    memory = guarded.memory(token=guarded.token("looks", "admin"))
    with window(guarded) as opened:
        signed_in(opened, guarded.token("all", "admin"))
        for name, shown in PAGES.items():
            if shown.has_template and name != "erased":
                query = "&".join(f"{key}={value}" for key, value in LOOKS.get(name, {}).items())
                page = opened.open(f"{name}?{query}")
                page.wait_for_selector("header")
        root = memory.root
        page = opened.open("record?id=seat")
        page.wait_for_selector("header")
        page.get_by_label("Text", exact=True).fill("Ana prefers standing")
        page.get_by_role("button", name="Store").click()
        page.wait_for_selector(".done")
        assert memory.get("seat").content == "Ana prefers standing"  # type: ignore[union-attr]
        page.get_by_role("button", name="Undo").click()
        page.wait_for_selector("text=taken back")
        assert memory.root == root


def test_what_is_downloaded_is_asked_for_with_the_token(window: OpenWindow, guarded: Server) -> None:
    with window(guarded) as opened:
        signed_in(opened, guarded.token("ana herself", "own", user="ana"))
        page = opened.page
        assert "What is remembered about one person" in page.inner_text("h1")
        assert page.locator("nav").count() == 0
        with page.expect_download() as loading:
            page.get_by_role("link", name="Download all records").click()
        assert loading.value.suggested_filename == "memory.ndjson"
        lines = loading.value.path().read_bytes().splitlines()
        assert len(lines) > 4
        assert all(b'"bob"' not in line for line in lines)


def test_a_token_that_is_revoked_is_asked_for_again(window: OpenWindow, guarded: Server) -> None:
    with window(guarded, checked=False) as opened:
        signed_in(opened, guarded.token("revoked", "read"))
        path = guarded._folder / "tokens.toml"
        kept = path.read_text("utf-8")
        path.write_text("\n[[token]]".join(kept.split("[[token]]")[:-1]).replace("\n[[token]]", "[[token]]"), "utf-8")
        opened.page.wait_for_timeout(1200)
        opened.page.get_by_role("link", name="Log").click()
        opened.page.wait_for_selector("[data-sign-in]")
        path.write_text(kept, "utf-8")


def test_without_script_the_page_says_why_it_needs_it(window: OpenWindow, guarded: Server) -> None:
    with window(guarded, java_script_enabled=False) as opened:
        assert "need JavaScript" in opened.open().inner_text("main")


def test_what_fails_is_said_and_what_was_typed_stays(window: OpenWindow, guarded: Server) -> None:
    with window(guarded, checked=False) as opened:
        signed_in(opened, guarded.token("writes", "write"), "record?id=seat")
        page = opened.page
        page.get_by_label("Text", exact=True).fill("a long correction")
        page.get_by_label("Importance").fill("2")
        page.get_by_role("button", name="Store").click()
        page.wait_for_selector("#problem")
        assert page.url.endswith("record?id=seat")
        assert page.get_by_label("Text", exact=True).input_value() == "a long correction"
        page.route("**/do", lambda route: route.fulfill(status=429, json={"detail": "too many requests run"}))
        page.get_by_label("Importance").fill("0.2")
        page.get_by_role("button", name="Try again").click()
        page.wait_for_selector("text=too many requests run")
        assert page.get_by_label("Text", exact=True).input_value() == "a long correction"
        page.unroute("**/do")
        page.route("**/do", lambda route: route.abort())
        page.get_by_role("button", name="Try again").click()
        page.wait_for_selector("text=Failed to fetch")
        page.unroute("**/do")
        page.route("**/download**", lambda route: route.fulfill(status=429, json={"detail": "later"}))
        page.goto(f"{guarded.address}{guarded.ui}settings")
        page.wait_for_selector("header")
        page.get_by_role("link", name="Download everything").click()
        page.wait_for_selector("text=later")


def test_one_signs_out(window: OpenWindow, guarded: Server) -> None:
    with window(guarded) as opened:
        signed_in(opened, guarded.token("leaves", "read"))
        opened.page.get_by_role("button", name="Sign out").click()
        opened.page.wait_for_selector("[data-sign-in]")
        assert opened.page.evaluate("sessionStorage.length") == 0


def test_axe_finds_nothing_where_one_signs_in_and_on_the_page_of_a_person(window: OpenWindow, guarded: Server) -> None:
    for scheme in ("light", "dark"):
        with window(guarded, bypass_csp=True, checked=False, color_scheme=scheme) as opened:
            assert violations(opened.open()) == []
            signed_in(opened, guarded.token("ana herself", "own", user="ana"))
            for path in ("me", "mine?id=seat", "erase?all=1"):
                page = opened.open(path)
                page.wait_for_selector("header")
                assert violations(page) == []
