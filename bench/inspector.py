"""The inspector: its search page compared with the recall that it shows, and the sizes of its pages.

`recollect inspect` serves a store in a process of its own. This process asks it for the search page, over a connection
that is kept, and recalls the same questions on the same store with `recollect.open`, by turns.
"""

from __future__ import annotations

import http.client
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import recollect
from bench.cost import filled, questions
from bench.measuring import ROOT, first_core, milliseconds, percentiles, versions

#: The pages whose sizes are measured, with what they look at.
PAGES = (
    "", "search?q=train", "records", "conversations", "conversation?name=c7", "entities", "review", "context?q=train",
    "log", "diff?a=1&b=2", "erase?user=user+1", "settings", "health", "me?person=user+1",
)  # fmt: skip


@contextmanager
def inspected(store: Path) -> Iterator[str]:
    """`recollect inspect` of a store, on the first core: the address of its first page."""
    command = [sys.executable, "-m", "recollect", "inspect", "--db", str(store), "--no-browser"]
    with first_core():
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(timeout=60)


def inspector(records: int = 100_000, asked: int = 200) -> dict[str, Any]:
    """Return milliseconds of a recall and of the search page, their ratio, and bytes of pages."""
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        path = Path(folder) / "bench.db"
        filled(path, records).close()
        with recollect.open(path, embedder="none") as memory, inspected(path) as address:
            parts = urlsplit(address)
            connection = http.client.HTTPConnection(parts.netloc, timeout=300)

            def get(page: str) -> bytes:
                connection.request("GET", parts.path + page)
                answer = connection.getresponse()
                body = answer.read()
                assert answer.status == 200, (page, answer.status)
                return body

            recalls, pages, ratios = [], [], []
            for number, question in enumerate(questions(asked + 20)):
                recall = milliseconds(lambda question=question: memory.recall(question))
                page = milliseconds(lambda question=question: get(f"search?{urlencode({'q': question})}"))
                if number >= 20:  # both are warm
                    recalls.append(recall)
                    pages.append(page)
                    ratios.append(page / recall)
            sizes = {page or "overview": len(get(page)) for page in PAGES}
            connection.close()
    return {
        "records": records,
        "recall_ms": percentiles(recalls),
        "page_ms": percentiles(pages),
        "ratio_of_medians": round(statistics.median(pages) / statistics.median(recalls), 2),
        "ratios": {"least": round(min(ratios), 2), "median": round(statistics.median(ratios), 2)},
        "bytes": sizes,
        **versions(),
    }
