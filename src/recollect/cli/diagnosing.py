"""Commands about Recollect itself: doctor, demo."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from typing import NamedTuple

import apsw
import click

from recollect._version import __version__
from recollect.cli import demo as demonstration
from recollect.cli import render
from recollect.cli.app import SERVERS, Settings, app, common, print_json
from recollect.errors import (
    DamagedStoreError,
    NotAStoreError,
    ReadOnlyStoreError,
    RecollectError,
    StoreError,
    StoreMissingError,
    UnsupportedError,
)
from recollect.indexes.kernels import choose
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.memory.opening import store_file
from recollect.models.embedding.base import Unusable, embedded
from recollect.models.embedding.environment import embedder_of_environment, ignored_variable
from recollect.operations import Probe, Recall
from recollect.stores.sealing.keys import Secret
from recollect.stores.sealing.secrets import secret_or_default
from recollect.stores.sqlite.encryption import keys_at, store_keys
from recollect.stores.sqlite.salvage import salvaged
from recollect.stores.sqlite.schema import FORMAT
from recollect.stores.values import CheckReport
from recollect.text.unicode import UNICODE_VERSION

#: Number of pages encrypted with one data key from which on it should be replaced: half of what NIST SP 800-38D allows.
_MANY_PAGES = 2**31


@app.command()
@click.option("--check", is_flag=True, help="Also read and verify everything in the store.")
@common
def doctor(settings: Settings, check: bool) -> None:
    """Examine the installation and the store: versions, active signals, the health of the file, and a test write.

    Before the first write, only the installation is examined.
    """
    try:
        with settings.open() as memory, render.progress("checking" if check else "examining", quiet=settings.as_json):
            findings = [*examine(memory, check=check), *_nodes(memory)]
    except StoreMissingError as error:
        missing = bool(error.args[1])  # the folder of a path that was chosen
        findings = [*examine_installation(), Finding("store", str(error), not missing)]
    except (DamagedStoreError, NotAStoreError) as error:
        findings = examine_closed(store_file(settings.db), error, key=settings.key, secret=settings.secret)
        if len(findings) == 1:  # the file contains no part of a store
            raise
    if settings.as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        render.table(
            (("", {}), ("what", {}), ("finding", {"overflow": "fold"})),
            (("ok" if each.well else "!!", each.what, render.plain(each.finding, 1000)) for each in findings),
        )
    if not all(finding.well for finding in findings):
        sys.exit(1)


@app.command()
@common
def demo(settings: Settings) -> None:
    """Remember a sample conversation and answer eight questions about it, with explanations."""
    if settings.db is not None and settings.db.startswith(SERVERS):
        raise UnsupportedError("the demo", "it needs a file of its own, not a server: leave --db out")
    with demonstration.Demo(settings.db, settings.key, settings.secret) as shown:
        if settings.as_json:
            print_json(shown.to_json())
            return
        click.echo(shown.introduction)
        for answer in shown.answers():
            click.echo()
            click.secho(f"{answer.question}", bold=True, nl=False)
            click.echo(f"   [{answer.kind}: {answer.note}; {answer.milliseconds:.2f} ms]")
            render.show_hits(answer.hits, shown.zone)
        click.echo()
        click.echo(shown.farewell)


# The doctor: versions, active signals and the health of a memory.
#
# Every finding results from a test or a read during the call.


class Finding(NamedTuple):
    """One result of the examination.

    Attributes:
        what: What was examined.
        finding: One line for people.
        well: Whether it is in order.
    """

    what: str
    finding: str
    well: bool = True


WHAT_TO_DO = Finding(
    "what to do",
    "`recollect restore BACKUP --force` restores a backup and keeps this file under another name; "
    "`recollect rescue OLD NEW` saves all intact records",
    False,
)


ON_A_SERVER = Finding(
    "what to do", "restore the database from a backup, or copy another store into a new schema", False
)


def _nodes(memory: Memory) -> list[Finding]:
    """Return a finding about each node, if several were given. That all have one store was checked to connect."""
    nodes = getattr(memory._executor, "nodes", None)
    if nodes is None:
        return []
    first, out = nodes.first(memory.name), []
    for state in nodes.states():
        said = state.problem or "it answers"
        asked = f"; it is asked for namespace {memory.name!r} first" if state.address == first else ""
        out.append(Finding("node", f"{state.address}: {said}{asked}", not state.problem))
    return out


def examine(memory: Memory, *, check: bool = False) -> list[Finding]:
    """Return all findings about a memory.

    Args:
        check: Also read and hash every version and every page, and compare the root: O(size of the store).
    """
    findings = [*examine_installation(), *_store(memory), _dense(memory), _write(memory)]
    if check:
        report = memory.check()
        well = Finding("check", "every page, row, version and root matches its hash")
        findings.extend([Finding("check", problem, False) for problem in report] or [well])
        findings.extend(_missing_on_purpose(report))
        if report:
            findings.append(ON_A_SERVER if "://" in memory.stats()["store"]["path"] else WHAT_TO_DO)
    return findings


def _missing_on_purpose(report: CheckReport) -> Iterator[Finding]:
    if report.dropped:
        roots = f"the pages of {report.dropped} of {report.commits} roots were dropped, and are recomputed when needed"
        yield Finding("old roots", roots)
    if report.erased or report.thinned:
        yield Finding("removed texts", f"{report.erased} versions were erased, {report.thinned} thinned")


def examine_installation() -> list[Finding]:
    """Return the findings that need no store."""
    return [
        Finding("recollect", f"{__version__}, Python {platform.python_version()}, {platform.system()}"),
        Finding("libraries", ", ".join(f"{name} {version(name)}" for name in ("apsw", "numpy", "PyStemmer", "tzdata"))),
        Finding("text", f"Unicode {UNICODE_VERSION}, Snowball English, built-in stop words and irregular forms"),
        *_signals(),
        *_variables(),
    ]


def _variables() -> Iterator[Finding]:
    """Yield what is wrong with the variables that name an embedder."""
    if ignored := ignored_variable():
        yield Finding("embedder variable", ignored)
    named = embedder_of_environment()
    if isinstance(named, Unusable):
        yield Finding("embedder variable", str(named.error), False)


def examine_closed(
    path: str, error: RecollectError, *, key: bytes | None = None, secret: Secret | None = None
) -> list[Finding]:
    """Return the findings about a store that cannot be opened: the error, and what is corrupt in the file."""
    findings = [Finding("store", str(error), False)]
    with suppress(OSError):
        keys = keys_at(path, secret_or_default(secret))
        salvage = salvaged(path, store_keys(key, keys), None if keys is None else keys.pages("db"))
        if not salvage.empty:
            findings.extend(Finding("check", page, False) for page in salvage.corrupt_pages())
            for _, saved in salvage.branches():
                findings.extend(Finding("check", str(lost), False) for lost in saved.lost)
    if len(findings) > 1 or isinstance(error, DamagedStoreError):
        findings.append(WHAT_TO_DO)
    return findings


def _store(memory: Memory) -> list[Finding]:
    """Return facts about the store and the namespace."""
    try:
        stats = memory.stats()
    except StoreError as error:
        return [Finding("store", str(error), False)]
    store = stats["store"]
    findings = [
        Finding("store", ", ".join(f"{name} {value}" for name, value in store.items() if value != "")),
        Finding(
            "namespace",
            f"{memory.name!r}: {render.counted(stats['parts'])}, {stats['seq']} commits, root {stats['root']}",
        ),
    ]
    if store.get("store") == "sqlite" and store.get("format", FORMAT) < FORMAT:
        findings.append(Finding("format", f"{store['format']}; the newest is {FORMAT}: run `recollect migrate`"))
    if store.get("encrypted_pages", 0) >= _MANY_PAGES:
        many = f"{store['encrypted_pages']} pages were encrypted with one data key, which should encrypt 2^32 at most"
        findings.append(Finding("data key", f"{many}: run `recollect key rotate --rewrite`", False))
    if uncomposed := store.get("uncomposed_names"):
        slow = "they are read as the same names in NFC, by reading every record: `recollect migrate` makes that fast"
        findings.append(Finding("names", f"{uncomposed} records have names in another Unicode form than NFC; {slow}"))
    return findings


def _signals() -> list[Finding]:
    """Test each signal, the kernels and the full-text search on a memory of two turns.

    Only the signal that is tested can find the answer.
    """
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
            active = any(signal in hit.why.shares for hit in scratch.execute(Recall(question=question)))
            finding = f"active: found {what}" if active else f"inactive: did not find {what}"
            findings.append(Finding(f"signal {signal}", finding, active))
        findings.append(_full_text(scratch))
        findings.append(_kernels(scratch.recall("lighthouse").plan.kernels))
    return findings


def _full_text(scratch: Memory) -> Finding:
    what = f"SQLite {apsw.sqlite_lib_version()}, full-text search (FTS5)"
    try:
        found = len(scratch.grep("harbour")) == 1
    except RecollectError as error:
        return Finding("full text", f"{what}: {error}", False)
    return Finding("full text", f"{what}: {'finds a word' if found else 'does not find a word'}", found)


def _kernels(active: str) -> Finding:
    """Name the kernels in use. Being without the native ones is no fault: the results are the same, slower."""
    wanted = choose.requested()
    finding = active
    if wanted != "auto":
        finding += f"; RECOLLECT_KERNELS = {wanted!r}" + ("" if wanted in choose.CHOICES else " is ignored")
    if choose.missing() and wanted != "numpy":
        finding += f"; no native kernels: {choose.missing()}; {choose.INSTALL}"
    return Finding("kernels", finding, wanted in choose.CHOICES and (wanted != "native" or active == "native"))


def _dense(memory: Memory) -> Finding:
    """Test the embedder with one text, and count the records that have a vector."""
    what, embedder = "signal dense", memory._executor.embedder
    if embedder is None:
        return Finding(what, "off: no embedder is set up; the other signals do not need one")
    try:
        out = embedded(embedder, ["a trial"])
        stats = memory.vector_stats()
    except RecollectError as error:
        return Finding(what, f"inactive: {error}; the other signals do not need it", False)
    if out.refused:
        return Finding(what, f"inactive: {embedder.name}: {out.refused[0]}", False)
    coverage = (
        f"{stats['model']}, {len(out.vectors[0])} dimensions, {stats['embedded']} of {stats['total']} records have a "
        f"vector ({stats['coverage']:g}%)"
    )
    watermark = f"; all texts up to commit {stats['watermark']} have one" if stats.get("watermark") else ""
    missing = "; `recollect embed` computes the others" if stats["embedded"] < stats["total"] else ""
    return Finding(what, f"active: {coverage}{watermark}{missing}")


def _write(memory: Memory) -> Finding:
    try:
        memory.execute(Probe())
    except ReadOnlyStoreError as error:
        return Finding("write and read-back", f"not tested: {error}")
    except RecollectError as error:
        return Finding("write and read-back", str(error), False)
    return Finding("write and read-back", "a value was written durably and read back by another connection")
