"""Opening an address with a secret in the browser.

The arguments of a command can be read by every user of a machine, so the browser is given a file that only its owner
can read, and that leads to the address.
"""

from __future__ import annotations

import html
import os
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={0}">
<title>Recollect</title>
<p><a href="{0}">Recollect</a></p>
"""


@contextmanager
def opening_file() -> Iterator[Path]:
    """Return the path of a file that can lead to an address. It is deleted at the end, with its folder."""
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:  # which only its owner can enter
        yield Path(folder) / "inspect.html"


def open_browser(file: Path, address: str) -> None:
    """Open an address in the browser, by way of a file."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
        opened.write(_PAGE.format(html.escape(address)))
    # In a thread: some browsers return when they end, and the caller serves the pages meanwhile.
    threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
