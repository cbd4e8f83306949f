"""The inspector in a real browser: Chromium, driven by Playwright. `make test-ui` installs what this needs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.http.serving import Server, served
from tests.inspector.pages import filled

import recollect

#: How Debian and others call it.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-quic", "--disable-gpu"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests with the marker `ui` unless they are selected by it; then a missing browser is a failure."""
    if config.getoption("-m") == "ui":
        return
    for item in items:
        if item.get_closest_marker("ui"):
            item.add_marker(pytest.mark.skip(reason="run make test-ui"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with something on every page."""
    with served(tmp_path_factory.mktemp("ui"), ui=True) as running:
        with recollect.open(running._folder / "served.db", embedder="none") as memory:
            filled(memory)
        yield running


@pytest.fixture
def memory(server: Server) -> Iterator[recollect.Memory]:
    """Its memory, which is as it was after the test."""
    with recollect.open(server._folder / "served.db", embedder="none") as opened:
        seq = opened.seq
        yield opened
        if opened.seq != seq:
            opened.rollback(seq)


class Window:
    """A page in the browser, and what it complained about.

    Attributes:
        page: The page of Playwright.
        problems: Lines of the console, errors, dialogs, and requests to other origins.
    """

    def __init__(self, page: Any, server: Server) -> None:
        self.page = page
        self.server = server
        self.problems: list[str] = []
        host = urlsplit(server.address).netloc
        page.on("console", lambda line: self.problems.append(f"console: {line.text}"))
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))

        def asked(dialog: Any) -> None:
            self.problems.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        page.on("dialog", asked)

        def requested(request: Any) -> None:
            parts = urlsplit(request.url)
            if parts.scheme not in ("blob", "file") and parts.netloc != host:
                self.problems.append(f"request: {request.url}")

        page.on("request", requested)

    def open(self, path: str = "") -> Any:
        """Open a page of the inspector."""
        self.page.goto(f"{self.server.address}{self.server.ui}{path}")
        return self.page

    def check(self) -> None:
        """Check that nothing complained."""
        assert self.problems == []


OpenWindow = Callable[..., Any]


@pytest.fixture
def window(browser: Any, server: Server) -> OpenWindow:
    """Return what opens a window: a block, at whose end nothing must have been complained about."""

    @contextmanager
    def opened(at: Server = server, *, checked: bool = True, **options: Any) -> Iterator[Window]:
        context = browser.new_context(**{"locale": "en", "viewport": {"width": 1100, "height": 800}, **options})
        try:
            made = Window(context.new_page(), at)
            yield made
            if checked:
                made.check()
        finally:
            context.close()

    return opened


def violations(page: Any) -> list[str]:
    """Return what axe finds on a page."""
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
    return [f"{each['id']}: {node['html'][:200]}" for each in found["violations"] for node in each["nodes"]]
