"""The doctor: what a memory is made of, and whether it is well.

Every finding is of something that was tried or read here and now, none is assumed.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import version
from typing import NamedTuple

from recollect._version import __version__
from recollect.embedding.base import embedded
from recollect.errors import RecollectError, StoreError
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.operations import Recall
from recollect.stores.sqlite.salvage import Salvage
from recollect.stores.sqlite.schema import FORMAT
from recollect.text.unicode import UNICODE_VERSION


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    finding: str
    well: bool = True


WHAT_TO_DO = Finding(
    "what to do",
    "`recollect restore BACKUP --force` puts a backup back and keeps this aside; `recollect rescue OLD NEW` saves what "
    "is whole",
    False,
)


def examine(memory: Memory, *, check: bool = False) -> list[Finding]:
    """All findings about a memory.

    check  also read every version and every page, hash them, and compare the root: O(size of the store)
    """
    findings = [
        Finding("recollect", f"{__version__}, Python {platform.python_version()}, {platform.system()}"),
        Finding("libraries", ", ".join(f"{name} {version(name)}" for name in ("apsw", "numpy", "PyStemmer"))),
        Finding("text", f"Unicode {UNICODE_VERSION}, Snowball English, stop-words and irregular forms of our own"),
        *_store(memory),
        *_signals(),
        _dense(memory),
        _write(memory),
    ]
    if check:
        problems = memory.check()
        well = Finding("check", "every page, row, version and root is what its hash says")
        findings.extend([Finding("check", problem, False) for problem in problems] or [well])
        if problems:
            findings.append(WHAT_TO_DO)
    return findings


def examine_closed(path: str, error: RecollectError) -> list[Finding]:
    """The findings about a store that cannot even be opened: the error, and what of the file is hurt."""
    findings = [Finding("store", str(error), False)]
    with suppress(OSError):
        salvage = Salvage(path, PUBLIC_KEY)
        if not salvage.empty:
            findings.extend(Finding("check", hurt, False) for hurt in salvage.corrupt_pages())
            for _, saved in salvage.branches():
                findings.extend(Finding("check", str(lost), False) for lost in saved.lost)
            findings.append(WHAT_TO_DO)
    return findings


def _store(memory: Memory) -> list[Finding]:
    """What the store is made of, and what the namespace holds."""
    try:
        stats = memory.stats()
    except StoreError as error:
        return [Finding("store", str(error), False)]
    store = stats["store"]
    findings = [
        Finding("store", ", ".join(f"{name} {value}" for name, value in store.items())),
        Finding(
            "namespace", f"{memory.name!r}: {stats['records']} records, {stats['seq']} commits, root {stats['root']}"
        ),
    ]
    if store.get("format", FORMAT) < FORMAT:
        findings.append(Finding("format", f"{store['format']}, of {FORMAT}: see `recollect migrate`"))
    return findings


def _signals() -> list[Finding]:
    """Each signal, tried on a memory of two turns where only it can find the answer."""
    trials = (
        ("words", "lighthouse", "the word itself"),
        ("context", "lighthouse", "the turn after the word"),
        ("trigram", "lihgthouse", "the word misspelt"),
    )
    with open_memory(":memory:", embedder="none") as scratch:
        for text in ("Where is the lighthouse?", "Beyond the harbour."):
            scratch.remember(text, kind="conversation", conversation="trial")
        findings = []
        for signal, question, what in trials:
            acts = any(signal in hit.why.shares for hit in scratch.execute(Recall(question=question)))
            findings.append(Finding(f"signal {signal}", f"acts: found {what}" if acts else "does not act", acts))
    return findings


def _dense(memory: Memory) -> Finding:
    """The embedder, asked for a vector, and how many records have one."""
    what = "signal dense"
    if memory.embedder is None:
        return Finding(what, "off: no embedder is set up; the other signals need none")
    try:
        out = embedded(memory.embedder, ["a trial"])
        stats = memory.vector_stats()
    except RecollectError as error:
        return Finding(what, f"does not act: {error}; the other signals do", False)
    if out.refused:
        return Finding(what, f"does not act: {memory.embedder.name}: {out.refused[0]}", False)
    told = (
        f"{stats['model']}, {len(out.vectors[0])} dimensions, {stats['embedded']} of {stats['total']} records have a "
        f"vector ({stats['coverage']:g}%)"
    )
    watermark = f", all of them up to commit {stats['watermark']}" if stats.get("watermark") else ""
    missing = "; recollect embed makes the others" if stats["embedded"] < stats["total"] else ""
    return Finding(what, f"acts: {told}{watermark}{missing}")


def _write(memory: Memory) -> Finding:
    try:
        memory.probe()
    except RecollectError as error:
        return Finding("write and read-back", str(error), False)
    return Finding("write and read-back", "a value was written durably and read back by another connection")
