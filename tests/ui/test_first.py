"""What CI looks at in the browser where there is one: five pages, a change and its undo, and the checks of axe once."""

from __future__ import annotations

import pytest
from tests.ui.conftest import OpenWindow, violations

import recollect

pytestmark = pytest.mark.ui
PAGES = {
    "": "What is remembered",
    "search?q=where+does+ana+live": "What does the memory answer?",
    "record?id=seat": "Record seat",
    "review": "Review: quarantine, proposals, contradictions and duplicates",
    "log": "Log",
}


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_five_pages_are_shown_without_a_complaint(window: OpenWindow, script: bool) -> None:
    with window(java_script_enabled=script) as opened:
        for path, heading in PAGES.items():
            page = opened.open(path)
            assert page.inner_text("h1") == heading


def test_a_correction_and_its_undo_need_no_script(window: OpenWindow, memory: recollect.Memory) -> None:
    root = memory.root
    with window(java_script_enabled=False) as opened:
        page = opened.open("record?id=seat")
        page.get_by_label("Text", exact=True).fill("Ana prefers standing")
        page.get_by_role("button", name="Store").click()
        assert "The record was corrected." in page.inner_text("main")
        assert memory.get("seat").content == "Ana prefers standing"  # type: ignore[union-attr]
        page.get_by_role("button", name="Undo").click()
        assert "taken back" in page.inner_text("main")
    assert memory.root == root


def test_axe_finds_nothing_on_the_search_page(window: OpenWindow) -> None:
    with window(bypass_csp=True) as opened:
        assert violations(opened.open("search?q=where+does+ana+live")) == []
