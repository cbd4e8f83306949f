"""Draw the screenshots of docs/inspector.md: five pages of the sample conversation in Chromium. `make screenshots`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

import recollect
from recollect.cli.demo import NAMESPACE, Demo

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "inspector"
_QUESTION = "in which boot was the brass key of the lantern room?"


@contextmanager
def inspected(store: Path) -> Iterator[str]:
    """Start `recollect inspect` and return the address of its first page."""
    command = [sys.executable, "-m", "recollect", "inspect", "--no-browser"]
    command += ["--db", str(store), "--namespace", NAMESPACE]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def fill(store: Path) -> None:
    """Store the sample conversation, and two facts that disagree."""
    with Demo(str(store)):
        pass
    with recollect.open(store, NAMESPACE, embedder="none") as memory:
        memory.record_user_fact("I live in Porto", user="ana", time=datetime(2026, 3, 2, 9, tzinfo=UTC))
        memory.record_user_fact("I live in Lisbon now", user="ana", time=datetime(2026, 5, 4, 9, tzinfo=UTC))
        began = datetime(2026, 3, 2, 9, tzinfo=UTC)
        memory.remember("I prefer window seats", id="seat", kind="user_fact", user="ana", time=began)
        memory.update("seat", content="I prefer aisle seats near the door", tags=["travel"])


def draw(page: Any, address: str) -> None:
    """Open the pages, and write a picture of each."""
    for name, path in PAGES.items():
        page.goto(address + path)
        page.screenshot(path=FOLDER / f"{name}.png")


#: The name of each picture, and what it shows.
PAGES = {
    "search": f"search?{urlencode({'q': _QUESTION})}",
    "record": "record?id=seat&v=2#version",
    "review": "review",
    "log": "log",
    "context": "context?q=where+does+ana+live%3F&user=ana&max_tokens=300&style=markdown&records=1",
}


def main() -> None:
    """Draw all pictures."""
    FOLDER.mkdir(exist_ok=True)
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "sample.db"
        fill(store)
        with inspected(store) as address, sync_playwright() as playwright:
            started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            draw(started.new_page(viewport={"width": 1000, "height": 640}, locale="en"), address)
            started.close()


if __name__ == "__main__":
    main()
