"""Every page in the browser: policies, scripts and keys, sizes of windows, colours, and the checks of axe."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.http.serving import Server, served
from tests.inspector.test_pages import LOOKS
from tests.inspector.test_texts import hostile, unescaped
from tests.ui.conftest import OpenWindow, Window, violations

import recollect
from recollect.cli.browsing import open_browser, opening_file
from recollect.server.ui import rendering
from recollect.server.ui.pages import PAGES

pytestmark = pytest.mark.ui
#: Every page, and what it looks at.
ADDRESSES = [f"{name}?{urlencode(LOOKS.get(name, {}))}" for name, page in PAGES.items() if page.has_template] + [
    "record?id=seat&v=1",
    "review?n=2",
    "records?part=terms",
    "?at=2",
    "search?q=oslo&at=3",
    "erase",
    "me",
    "nowhere",
]
LOOKED = pytest.mark.parametrize("address", ADDRESSES)
FORMS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "forced colours": {"forced_colors": "active"},
    "320 px": {"viewport": {"width": 320, "height": 640}},
    "German": {"locale": "de"},
}


def quiet(opened: Window, address: str) -> None:
    """Leave out what the browser itself says of a page that there is not."""
    if address == "nowhere":
        opened.problems[:] = [each for each in opened.problems if "404" not in each]


@LOOKED
@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_every_page_is_shown_without_a_complaint(window: OpenWindow, address: str, script: bool) -> None:
    with window(java_script_enabled=script) as opened:
        page = opened.open(address)
        assert page.locator("h1").count() == 1
        quiet(opened, address)


def test_control_a_line_of_the_console_and_a_refused_policy_are_noticed(window: OpenWindow) -> None:
    with window(checked=False) as opened:
        page = opened.open()
        page.evaluate("console.log('x')")
        page.evaluate("try { document.body.innerHTML = '<b>x</b>' } catch { }")
        page.evaluate("document.head.append(Object.assign(document.createElement('img'), {src: '//127.0.0.2/x.png'}))")
        page.evaluate("document.body.setAttribute('style', 'color: red')")
        page.wait_for_timeout(100)
        said = " ".join(opened.problems)
        assert "console: x" in said
        assert "TrustedHTML" in said
        assert "Content Security Policy" in said


@pytest.mark.parametrize("form", FORMS)
def test_axe_finds_nothing_on_any_page(window: OpenWindow, form: str) -> None:
    found = {}
    with window(bypass_csp=True, checked=False, reduced_motion="reduce", **FORMS[form]) as opened:
        for address in ADDRESSES:
            found[address] = violations(opened.open(address))
    assert {address: lines for address, lines in found.items() if lines} == {}


def test_control_axe_finds_what_is_wrong(window: OpenWindow) -> None:
    with window(bypass_csp=True, checked=False) as opened:
        page = opened.open("search?q=oslo")
        page.evaluate("document.querySelector('svg.bar').removeAttribute('aria-label')")
        page.evaluate("document.documentElement.removeAttribute('lang')")
        page.evaluate("document.querySelector('.facts').setAttribute('style', 'color: #ddd')")
        rules = {line.partition(":")[0] for line in violations(page)}
        assert {"html-has-lang", "svg-img-alt", "color-contrast"} <= rules


@LOOKED
def test_no_page_is_wider_than_320_pixels(window: OpenWindow, address: str) -> None:
    with window(viewport={"width": 320, "height": 640}) as opened:
        page = opened.open(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        quiet(opened, address)


def test_with_reduced_motion_nothing_scrolls_smoothly(window: OpenWindow) -> None:
    for motion, behaviour in (("reduce", "auto"), ("no-preference", "smooth")):
        with window(reduced_motion=motion) as opened:
            page = opened.open()
            assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == behaviour


def test_a_search_finds_while_one_types_and_the_address_has_it(window: OpenWindow) -> None:
    with window() as opened:
        page = opened.open("search")
        page.keyboard.press("/")
        page.keyboard.type("where does ana live", delay=5)
        page.wait_for_selector(".hit")
        page.wait_for_url("**q=where+does+ana+live**")
        assert page.evaluate("document.activeElement.id") == "q"
        assert page.locator("[aria-live]").inner_text().endswith("hits")
        before = page.inner_text("#results")
        page.reload()
        assert page.inner_text("#results") == before


def test_search_hit_evidence_and_difference_need_no_mouse(window: OpenWindow) -> None:
    with window() as opened:
        page = opened.open("search")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.keyboard.press("/")
        page.keyboard.type("aisle seats")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        reach(opened, "Open, correct")
        page.keyboard.press("Enter")
        page.wait_for_url("**/record?id=seat")
        reach(opened, "commit")
        page.keyboard.press("Enter")
        page.wait_for_url("**/diff?**")
        assert page.inner_text("h1") == "What changed"
        page.go_back()
        page.wait_for_url("**/record?id=seat")


def reach(opened: Window, text: str) -> None:
    """Press Tab until a link with a text has the focus, which must be seen."""
    for _ in range(80):
        opened.page.keyboard.press("Tab")
        if opened.page.evaluate("document.activeElement.textContent").strip().startswith(text):
            assert opened.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            return
    raise AssertionError(f"{text} cannot be reached")


def calm(page: Any) -> None:
    """Wait until a page takes keys that decide something."""
    page.wait_for_function("shown => performance.now() - shown > 300", arg=page.evaluate("performance.now()"))


def test_a_key_that_stays_down_decides_nothing(window: OpenWindow, memory: recollect.Memory) -> None:
    with window() as opened:
        page = opened.open("review")
        calm(page)
        seq = memory.seq
        for key in "drmu":
            held = f"new KeyboardEvent('keydown', {{key: '{key}', repeat: true, bubbles: true}})"
            page.evaluate(f"document.body.dispatchEvent({held})")
        assert memory.seq == seq


def test_a_filter_that_is_half_typed_leaves_the_hits_and_says_what_is_wrong(window: OpenWindow) -> None:
    with window(checked=False) as opened:
        page = opened.open("search?q=seats&where=user%3Dana")
        hits = page.inner_text("#results")
        field = page.locator("input[name=where]")
        field.press("End")
        field.press_sequentially(" and", delay=5)
        page.wait_for_function("() => document.getElementById('found').textContent.includes('filter')")
        assert page.inner_text("#results") == hits
        assert "and" not in page.url.partition("where=")[2]
        field.press_sequentially(" not tag=old", delay=5)
        page.wait_for_url("**tag%3Dold**")
        assert page.inner_text("#found") == "1 hit"
        assert not [each for each in opened.problems if "400" not in each]


def test_a_review_needs_one_key_for_each_case(window: OpenWindow, memory: recollect.Memory) -> None:
    with window() as opened:
        page = opened.open("review")
        page.keyboard.press("j")
        page.wait_for_url("**n=2**")
        page.keyboard.press("k")
        page.wait_for_url("**n=1**")
        page.keyboard.press("r")  # at once, so it may have been meant for the page before
        calm(page)
        assert len(memory.contradictions()) == 1
        page.keyboard.press("r")
        page.wait_for_selector(".done")
        assert memory.contradictions() == []
        calm(page)
        page.keyboard.press("u")
        page.wait_for_selector("text=taken back")
        assert len(memory.contradictions()) == 1
        calm(page)
        page.keyboard.press("r")
        page.wait_for_selector("text=supersedes the older")
        calm(page)
        page.keyboard.press("d")
        page.wait_for_selector("text=Nothing to review")
        assert memory.duplicates() == []


def test_keys_can_be_switched_off_and_stay_off(window: OpenWindow) -> None:
    with window() as opened:
        page = opened.open("review")
        page.get_by_label("Keyboard shortcuts").uncheck()
        page.reload()
        assert not page.get_by_label("Keyboard shortcuts").is_checked()
        page.keyboard.press("j")
        page.keyboard.press("/")
        assert "n=2" not in page.url
        page.get_by_label("Keyboard shortcuts").check()
        page.keyboard.press("j")
        page.wait_for_url("**n=2**")


def test_ids_and_calls_are_copied(window: OpenWindow) -> None:
    with window(permissions=["clipboard-read", "clipboard-write"]) as opened:
        page = opened.open("record?id=seat")
        page.get_by_role("button", name="Copy id").click()
        page.wait_for_function("navigator.clipboard.readText().then(text => text === 'seat')")


def test_the_time_slider_shows_the_past(window: OpenWindow) -> None:
    with window() as opened:
        page = opened.open("log")
        slider = page.get_by_role("slider")
        slider.focus()
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        assert page.inner_text("output") == "1"
        page.get_by_role("button", name="Show that moment").click()
        page.wait_for_url("**at=1")
        assert "As of" in page.inner_text("aside")
        page.get_by_role("link", name="Back to now").click()
        assert page.locator("aside").count() == 0


def all_are_text(window: OpenWindow, tmp_path: Path) -> None:
    """Store hostile contents and look at each: its text is what is stored, and nothing complains or runs."""
    texts = hostile()
    with served(tmp_path, ui=True) as server:
        with recollect.open(tmp_path / "served.db", embedder="none") as memory:
            items = ({"content": text, "id": f"h{number:03}", "kind": "x"} for number, text in enumerate(texts))
            memory.remember_all(items)
            memory.remember("long " * 200_000, id="h-long", kind="x")
        with window(server) as opened:
            shown = []
            page = opened.open("records?order=id&limit=100")
            while True:
                shown += page.eval_on_selector_all(".content", "found => found.map(each => each.textContent)")
                if page.locator("a[rel=next]").count() == 0:
                    break
                page.locator("a[rel=next]").click()
            assert len(shown) == 501
            for text, seen in zip(texts, shown[1:], strict=True):
                expected = text.replace("\0", "\u2400")
                assert seen == expected or (len(text) > 400 and expected.startswith(seen.rstrip("…")))
            for number in range(0, 500, 25):
                page = opened.open(f"record?id=h{number:03}")
                assert page.eval_on_selector(".content", "each => each.textContent") == texts[number].replace(
                    "\0", "\u2400"
                )
            opened.open("record?id=h-long")
            opened.open("search?q=alert")


def test_500_hostile_contents_are_text_and_nothing_runs(window: OpenWindow, tmp_path: Path) -> None:
    all_are_text(window, tmp_path)


def test_control_without_escaping_they_are_not(
    window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "environment", unescaped)
    with pytest.raises(AssertionError):
        all_are_text(window, tmp_path)


def test_german_readers_read_german(window: OpenWindow) -> None:
    with window(locale="de-CH") as opened:
        page = opened.open()
        assert page.inner_text("h1") == "Was gespeichert ist"
        assert page.evaluate("document.documentElement.lang") == "de"


@pytest.fixture
def foreign(server: Server) -> Iterator[str]:
    """The address of a page of another port, which asks the server for a change."""
    body = (
        f'<form method="post" action="{server.address}{server.ui}do"><input name="action" value="forget">'
        '<input name="id" value="seat"></form><script>document.forms[0].submit()</script>'
    )

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{other.server_port}/"
        other.shutdown()
        thread.join()


def test_a_page_of_another_port_changes_nothing(window: OpenWindow, foreign: str, memory: recollect.Memory) -> None:
    with window(checked=False) as opened:
        with opened.page.expect_response(lambda answer: answer.url.endswith("/do")) as answered:
            opened.page.goto(foreign)
        assert answered.value.status == 403
    assert memory.get("seat") is not None


def test_the_file_that_the_browser_is_given_leads_to_the_pages(
    window: OpenWindow, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda address: None)
    with opening_file() as file, window() as opened:
        open_browser(file, server.address + server.ui)
        opened.page.goto(file.as_uri())
        opened.page.wait_for_url(f"{server.address}{server.ui}")
        assert opened.page.inner_text("h1") == "What is remembered"
        assert opened.page.evaluate("document.referrer") == ""
