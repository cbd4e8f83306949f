"""The inspector of a store on PostgreSQL: every page, and a change that is undone."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect

pytest.importorskip("starlette")
from tests.http.serving import served
from tests.inspector.pages import Reader, filled
from tests.inspector.test_changes import undone
from tests.inspector.test_pages import LOOKS

from recollect.server.ui.pages import PAGES

pytestmark = pytest.mark.postgres


def test_every_page_answers_and_a_change_is_undone(address: str, tmp_path: Path) -> None:
    def opened(*, create: bool, read_only: bool) -> recollect.Memory:
        return recollect.open(address, embedder="none", read_only=read_only)

    with served(tmp_path, ui=True, opened=opened) as server, recollect.open(address, embedder="none") as memory:
        filled(memory)
        reader = Reader(server)
        for name, page in PAGES.items():
            if page.has_template:
                reader.get(name or "./", **LOOKS.get(name, {}))
        root = memory.root
        done = reader.send(reader.get("record", id="seat").form("update"), content="changed")
        undone(reader, memory, done, root)
        erased = reader.send(reader.get("erase", user="ana").form("erase"), confirm="ana")
        assert "Proved and verified" in erased.words
        assert memory.count("user=ana") == 0
