"""Run the conformance suite on LangGraph's stores and ours, and write the table into docs/langgraph-stores.md."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

from scripts.test_compat import ROOT, environment

PAGE = ROOT / "docs" / "langgraph-stores.md"
BEGIN, END = "<!-- table: make langgraph-table -->\n", "<!-- end of the table -->\n"
FACTORIES = (
    "in_memory=InMemoryStore",
    "sqlite=SqliteStore",
    "async_sqlite:async=AsyncSqliteStore",
    "postgres=PostgresStore",
    "ours=RecollectStore",
    "ours:async=RecollectStore",
    "ours_on_server=RecollectStore over a server",
    "ours_on_postgres=RecollectStore on PostgreSQL",
)


def main() -> None:
    """Write the table, and the versions of what was tested."""
    framework = tomllib.loads((ROOT / "requirements" / "compat.toml").read_text("utf-8"))["langgraph"]
    python = environment("langgraph", framework, newest=False)
    factories = [f"tests.frameworks.langgraph_store.factories:{each}" for each in FACTORIES]
    command = [str(python), "-m", "recollect.testing.langgraph_store", "--markdown", *factories]
    table = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    written(PAGE, table)


def written(page: Path, table: str) -> None:
    """Put a table into a page, between its marks."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}{table}{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
