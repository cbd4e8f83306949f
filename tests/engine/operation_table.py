"""The table of operations in docs/server.md, from the classes. `python -m tests.engine.operation_table` prints it."""

from __future__ import annotations

import recollect.facets.registration  # noqa: F401 - which adds the operations of facets
from recollect.operations.base import RIGHTS, all_operations


def table() -> str:
    """Return the rows of Markdown, by right and name."""
    lines = ["| operation | right | result | in a batch | in the past |", "|---|---|---|---|---|"]
    for kind in sorted(all_operations().values(), key=lambda kind: (RIGHTS.index(kind.right), kind.name)):
        result = f"`{kind.result}`" if kind.result else "those of the operations in it"
        flags = " | ".join("yes" if each else "" for each in (kind.in_batch, kind.in_past))
        lines.append(f"| `{kind.name}` | {kind.right} | {result.replace('|', chr(92) + '|')} | {flags} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
