"""`python -m bench.redaction`: how many forms of secrets redaction finds, and how many harmless texts it changes.

The forms are in tests/labels, by kind. secrets.txt and harmless.txt were looked at while the patterns were written;
secrets-2.txt and harmless-2.txt were written after them, and no pattern was changed because of them. A form counts as
found if no three characters in a row of a secret survive that are not elsewhere in the text, so one of which half is
hidden does not count. To measure another version, name its source: `PYTHONPATH=/path/to/src python -m bench.redaction`.

    --list    also print the forms that are not found, and the harmless texts that are changed
    --speed   the time for a text of a conversation instead, to compare two versions alternately
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from recollect.policies import redact

#: Where the forms are.
FOLDER = Path(__file__).parent.parent / "tests" / "labels"
_SIGNS = str.maketrans({"⏎": "\n", "⇥": "\t", "⍽": "\u00a0"})
_SECRET = re.compile("⟦(.*?)⟧", re.DOTALL)
#: What `redact` writes: no trace of a secret.
_MARKS = ("***REDACTED***", "***@***.***", "****-****-****-****", "****IBAN****", "***-***-****", "***-**-****")


class Form(NamedTuple):
    """A text, its kind, the parts of it that must not survive, and the text without them."""

    kind: str
    text: str
    secrets: tuple[str, ...]
    rest: str


class Count(NamedTuple):
    """How many texts of a kind there are, and which of them were found (secrets) or changed (harmless texts)."""

    texts: int
    found: tuple[str, ...]


def forms(name: str) -> Iterator[Form]:
    """Read the forms of a file: "secrets" or "harmless"."""
    kind = ""
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"\[([\w ,-]+)\]", line):
            kind = heading[1]
        elif line and not line.startswith("# "):
            marked = line.translate(_SIGNS)
            rest = _SECRET.sub("\0", marked)
            yield Form(kind, _SECRET.sub(r"\1", marked), tuple(_SECRET.findall(marked)), rest)


def survives(form: Form, redacted: str) -> bool:
    """Return whether a part of a secret is still in a redacted text."""
    for mark in _MARKS:
        redacted = redacted.replace(mark, "\0")
    parts = {secret[at : at + 3] for secret in form.secrets for at in range(max(1, len(secret) - 2))}
    return redacted == form.text or any(part in redacted for part in parts if part not in form.rest)


def measured(name: str, redacting: Callable[[str], str] = lambda text: redact(text).text) -> dict[str, Count]:
    """Return the counts of a file by kind: of secrets that are found, or of harmless texts that are changed."""
    counts: dict[str, Count] = {}
    for form in forms(name):
        redacted = redacting(form.text)
        hit = not survives(form, redacted) if form.secrets else redacted != form.text
        texts, found = counts.get(form.kind, Count(0, ()))
        counts[form.kind] = Count(texts + 1, (*found, form.text) if hit else found)
    return counts


def total(counts: dict[str, Count]) -> Count:
    """Return the counts of all kinds together."""
    return Count(
        sum(each.texts for each in counts.values()), tuple(text for each in counts.values() for text in each.found)
    )


def _table(title: str, verb: str, counts: dict[str, Count]) -> None:
    print(f"| {title} | texts | {verb} | share |\n|---|---:|---:|---:|")
    for kind, count in [*counts.items(), ("**all**", total(counts))]:
        print(f"| {kind} | {count.texts} | {len(count.found)} | {100 * len(count.found) / count.texts:.1f} % |")
    print()


def _speed() -> None:
    """Print the median time for ordinary texts of 1,500 characters: pages of the documentation, and chat about keys."""
    pages = [path.read_text(encoding="utf-8") for path in sorted((FOLDER.parents[1] / "docs").glob("*.md"))]
    lines = [form.text for form in forms("harmless") if form.kind == "prose, English"]
    for name, texts in {
        "documentation": [page[at : at + 1500] for page in pages for at in range(0, min(len(page), 4500), 1500)],
        "chat about passwords": [" ".join(lines[at:] + lines[:at])[:1500] for at in range(0, len(lines), 4)],
    }.items():
        ordinary = [text for text in texts if not redact(text).found]
        times = []
        for _ in range(15):
            start = time.process_time()
            for text in ordinary:
                redact(text)
            times.append((time.process_time() - start) / len(ordinary))
        print(f"{name}: {1e6 * statistics.median(times):.0f} microseconds for each of {len(ordinary)} texts")


def main() -> None:
    if "--speed" in sys.argv:
        _speed()
        return
    for name in ("secrets", "secrets-2"):
        _table(name, "found", measured(name))
    for name in ("harmless", "harmless-2"):
        _table(name, "changed", measured(name))
    if "--list" in sys.argv:
        for name in ("secrets", "secrets-2", "harmless", "harmless-2"):
            hits = set(total(measured(name)).found)
            for form in forms(name):
                if (form.text in hits) != bool(form.secrets):
                    print(f"{name}: {form.kind}: {form.text!r} -> {redact(form.text).text!r}")


if __name__ == "__main__":
    main()
