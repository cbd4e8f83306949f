"""Commands that import and export records."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import tzinfo
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource

from recollect.cli import render
from recollect.cli.app import (
    USER_VARIABLE,
    Named,
    Settings,
    app,
    at_option,
    common,
    origin_option,
    owner_option,
    part_option,
    print_json,
    zone_option,
)
from recollect.cli.files import write_file
from recollect.errors import ImportFormatError, InvalidArgumentError, StoreIOError
from recollect.evaluation import DATASET_IMPORTERS
from recollect.importers import IMPORTERS, ImportReport
from recollect.importers.jsonl import JsonLines, is_export, write_jsonl
from recollect.importers.knowledge_graph import write_graph
from recollect.importers.run import Source, import_source, library
from recollect.importers.run import watch as watch_path
from recollect.ledger.parts import RECORDS
from recollect.memory import Memory
from recollect.records.origins import ORIGINS, Origin
from recollect.stores.sealing.exports import is_sealed
from recollect.stores.sealing.keys import Unlocked

#: The importers by the name of their format.
_FORMATS = {**DATASET_IMPORTERS, **IMPORTERS}
#: The path of standard input. (A file of this name is ./-)
_INPUT = Path("-")
#: Formats whose items are named by a folder.
_FOLDERS = ("beam",)
#: Maximum size of standard input, in bytes. A pipe may never end.
_MOST_INPUT = 2**30
#: Maximum number of invalid items that are listed; the others are counted.
_NAMED = 20
#: The outcomes of items, as the report of each file names them.
_OUTCOMES = {
    "created": "remembered",
    "updated": "updated",
    "unchanged": "already there",
    "expired": "expired and omitted",
    "damaged": "not imported",
}
#: A note on a namespace's root: whether it equals the one that the export states, if it states one.
_ROOTS = {
    None: "",
    True: ", same root as the export",
    False: ", another root than the export: the namespace has other records, some were lowered, or the store has "
    "another key",
}


@contextmanager
def _standard_input() -> Iterator[Path]:
    """Copy standard input to a private file for the importers, which read their source more than once.

    Raises:
        InvalidArgumentError: It exceeds the limit.
        StoreIOError: It cannot be copied.
    """
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        path = Path(folder, "stdin")
        size = 0
        try:
            with path.open("wb") as copy:
                while part := sys.stdin.buffer.read(2**20):
                    size += len(part)
                    if size > _MOST_INPUT:
                        rule = f"standard input has more than {_MOST_INPUT} bytes: import it from a file"
                        raise InvalidArgumentError("path", "-", rule)
                    copy.write(part)
        except OSError as error:
            raise StoreIOError(str(path), error.strerror or str(error)) from error
        yield path


#: What formats are also called.
_CALLED = {
    "obsidian": "markdown", "md": "markdown", "txt": "text", "json": "jsonl", "gpt": "chatgpt", "claude.ai": "claude",
}  # fmt: skip


@app.command("import")
@click.argument("format", type=Named("format", tuple(_FORMATS), _CALLED), metavar="FORMAT")
@click.argument("paths", metavar="PATH...", type=click.Path(path_type=Path, allow_dash=True), nargs=-1, required=True)
@click.option("--follow-links", is_flag=True, help="Also read files that links in a folder point to outside of it.")
@click.option(
    "--as", "name", help="Text and Markdown: a name before the path of each file, such as that of the project."
)
@click.option(
    "--forget-deleted",
    is_flag=True,
    help="With --as: forget documents of that name whose files were deleted from the folder.",
)
@click.option("--watch", is_flag=True, help="Keep importing what changes in a folder, until Ctrl-C.")
@owner_option(
    "user", f"User of the items that have none. Default, except for jsonl: {USER_VARIABLE}.", envvar=USER_VARIABLE
)
@owner_option("agent", "Agent of the items that have none.")
@owner_option("conversation", "Conversation of the items whose source names none.")
@click.option("--session", metavar="TEXT", help="Session of the items that have none.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag for all items. May be repeated.")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="chroma, openai-sessions: import only the collection or session of this name. May be repeated.",
)
@click.option(
    "--as-origin",
    type=click.Choice(ORIGINS),
    help="Class of origin of the items, at most: instead of that of the format (docs/trust.md), and at most --origin.",
)
@part_option
@zone_option
@origin_option
@common
def import_(
    settings: Settings,
    format: str,  # noqa: A002
    paths: tuple[Path, ...],
    follow_links: bool,
    name: str | None,
    forget_deleted: bool,
    watch: bool,
    only: tuple[str, ...],
    parts: tuple[str, ...] | None,
    zone: tzinfo | None,
    as_origin: Origin | None,
    **defaults: Any,
) -> None:
    """Remember the contents of files of a FORMAT. Run it again to add only what is new.

    FORMAT is locomo, beam, openai, anthropic, chatgpt, claude, claude-code, codex, mem0, mcp-memory, langgraph,
    openai-sessions, chroma, text, markdown, csv or jsonl.

    A text or Markdown file that is imported again replaces what it was.

    PATH is a file, a folder, or "-" for standard input, up to 1 GiB.
    """
    if parts is not None and format != "jsonl":
        raise InvalidArgumentError("part", parts, "is for jsonl; other formats have records only")
    importer = JsonLines(settings.secret) if format == JsonLines.name else _FORMATS[format]
    options: dict[str, Any] = {"follow_links": follow_links, "name": name, "forget_deleted": forget_deleted}
    reports = []
    refused = []
    given = {name: value for name, value in {**defaults, "origin": as_origin}.items() if value}
    if format == "jsonl" and click.get_current_context().get_parameter_source("user") is ParameterSource.ENVIRONMENT:
        given.pop("user", None)  # records of an export come back as they were
    with ExitStack() as stack:
        copied: Path | None = None
        if _INPUT in paths:
            if format in _FOLDERS:
                raise InvalidArgumentError("path", "-", f"{format} names what it stores after a folder: pass a path")
            copied = stack.enter_context(_standard_input())

        def opened(path: Path) -> Source:
            if copied is None or path != _INPUT:
                return Source(importer, path, zone, defaults=given, only=only, **options)
            try:
                return Source(importer, copied, zone, defaults=given, only=only)
            except ImportFormatError as error:
                raise ImportFormatError("standard input", *error.args[1:]) from None

        first = next((path for path in paths if path == _INPUT or os.path.exists(path)), paths[0])
        # The first source is opened before the store, so that an invalid path creates no store.
        source: Source | None = opened(first)
        if watch:
            if len(paths) > 1 or copied is not None:
                raise InvalidArgumentError("paths", len(paths), "were passed, and --watch takes one folder")
            library()
        paths = (first, *(path for path in dict.fromkeys(paths) if path != first))
        memory = stack.enter_context(settings.open(create=True))
        if watch:
            changes = watch_path(memory, importer, first, zone=zone, defaults=given, **options)
            _watch(settings, changes, first)
            return
        for path in paths:
            try:
                source = source or opened(path)
            except ImportFormatError as error:  # the other files are still imported
                refused.append((path, error))
                continue
            with render.progress("remembering", quiet=settings.as_json) as show:
                report = import_source(memory, source, parts=parts, progress=show)
            reports.append((path, report))
            source = None
    if settings.as_json:
        done = [{"path": str(path), **report.to_json()} for path, report in reports]
        print_json(done + [{"path": str(path), **refusal.to_json()} for path, refusal in refused])
    else:
        for path, report in reports:
            _show(path, report)
        for _, refusal in refused:
            click.echo(f"error: {refusal}", err=True)
        for zone_name in dict.fromkeys(report.zone_assumed for _, report in reports if report.zone_assumed):
            click.echo(f"times without a time zone were read as times in {zone_name}")
    if refused or any(report.damaged for _, report in reports):
        sys.exit(1)


def _show(path: Path, report: ImportReport) -> None:
    """Print the report of an import."""
    click.echo(
        f"{path}: {report.created} remembered, {report.updated} updated, {report.unchanged} already there"
        + (f", {report.forgotten} forgotten" if report.forgotten else "")
        + (f", {report.expired} expired and omitted" if report.expired else "")
    )
    if report.moved:
        click.echo(f"  moved to another branch or position of their conversation: {report.moved}")
    if report.differing:
        click.echo(f"  stored with other values than those of the source, which were kept: {report.differing}")
    if report.proposed:
        click.echo(f"  stored as proposals, which `recollect endorse` lists: {report.proposed}")
    if report.quarantined:
        click.echo(f"  in quarantine (recollect quarantine): {report.quarantined}")
    if report.lowered:
        click.echo(f"  of a lower class of origin than in the export, above that of --origin: {report.lowered}")
    if report.dated:
        click.echo(f"  without a time of their own, dated by what is around them: {report.dated}")
    for name, counts in list(report.files.items())[:_NAMED] if len(report.files) > 1 else ():
        listed = ", ".join(f"{count} {_OUTCOMES[outcome]}" for outcome, count in counts.items())
        click.echo(f"  {name}: {listed or 'not read'}")
    if len(report.files) > _NAMED:
        click.echo(f"  and {len(report.files) - _NAMED} more files (--json lists all)")
    if report.replaced:
        click.echo(f"  replaced documents: {report.replaced}")
    for name, count in report.namespaces.items():
        click.echo(f"  namespace {name}: {count}{_ROOTS[report.roots.get(name)]}")
    if report.parts.keys() - {RECORDS}:
        click.echo(f"  contents: {render.counted(report.parts)}")
    if report.left_out:
        click.echo(f"  left out: {', '.join(f'{what} ({count})' for what, count in report.left_out.items())}")
    for damage in report.damaged[:_NAMED]:
        click.echo(f"  not imported: {damage.place}: {damage.reason}", err=True)
    if len(report.damaged) > _NAMED:
        click.echo(f"  and {len(report.damaged) - _NAMED} more items not imported", err=True)


def _watch(settings: Settings, reports: Iterator[ImportReport], folder: Path) -> None:
    """Print each report of a folder that is watched, until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        for report in reports:
            if settings.as_json:
                click.echo(json.dumps({"path": str(folder), **report.to_json()}, ensure_ascii=False))
            else:
                _show(folder, report)


def _keys_of(memory: Memory) -> Unlocked | None:
    """Return the data keys of the store of a memory; None if it is not encrypted, or on a server."""
    core = getattr(memory._executor, "core", None)
    keys: Unlocked | None = getattr(getattr(core, "store", None), "keys", None)
    return keys


def _is_export(path: Path, sealed: bool) -> bool:
    try:
        with path.open("rb") as file:
            beginning = file.read(20)
            return is_export(beginning) or (sealed and is_sealed(beginning))
    except OSError:
        return False


@app.command()
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--all", "everything", is_flag=True, help="Export all namespaces.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("jsonl", "mcp-memory")),
    default="jsonl",
    show_default=True,
    help="jsonl: all records; mcp-memory: the knowledge graph, in the form of the reference MCP memory server.",
)
@owner_option("user", "Only the records of this user.")
@owner_option("agent", "Only the records of this agent.")
@owner_option("conversation", "Only the records of this conversation.")
@part_option
@click.option("--redact", is_flag=True, help="Replace keys, passwords, addresses and numbers of people by asterisks.")
@click.option("--sealed", is_flag=True, help="Encrypt it with the key of the store, whose secrets open it (.rcl).")
@click.option("--force", is_flag=True, help="Replace PATH even if it is not an export.")
@at_option
@common
def export(
    settings: Settings,
    path: Path,
    everything: bool,
    form: str,
    user: str | None,
    agent: str | None,
    conversation: str | None,
    parts: tuple[str, ...] | None,
    redact: bool,
    sealed: bool,
    force: bool,
    at: str | None,
) -> None:
    """Write the memory to PATH ("-": standard output) as JSON lines. `import jsonl` restores the same root."""
    if everything and form == "mcp-memory":
        raise InvalidArgumentError("all", True, "is for jsonl; a graph is that of one namespace")
    if parts is not None and form == "mcp-memory":
        raise InvalidArgumentError("part", parts, "is for jsonl; a graph has records only")
    if redact and form == "mcp-memory":
        raise InvalidArgumentError("redact", True, "is for jsonl; recollect policies redacts what is stored")
    if sealed and str(path) == "-":
        raise InvalidArgumentError("sealed", True, "needs a file: give the PATH of one, such as memory.rcl")
    with settings.open_at(at) as present:
        store = str(present.stats()["store"]["path"])
        fields = {"user": user, "agent": agent, "conversation": conversation}
        scope = {name: value for name, value in fields.items() if value is not None}

        def scoped(memory: Memory) -> Memory:
            return memory.scoped(**scope) if scope else memory

        keys = _keys_of(present) if sealed else None
        if sealed and keys is None:
            raise InvalidArgumentError("sealed", True, "is for an encrypted store in a file that this process opens")
        memory = scoped(present)
        chosen: list[Memory] = (
            [scoped(present.namespace(name)) for name in present.namespaces()] if everything else [memory]
        )
        quiet = settings.as_json or str(path) == "-"

        written: Counter[str] = Counter()

        def write(file: TextIO) -> int:
            if form == "mcp-memory":
                return write_graph(memory, file)
            written.clear()
            with render.progress("exporting", quiet=quiet) as show:
                for each in chosen:
                    written.update(write_jsonl(each, file, parts=parts, progress=show, redact=redact).parts)
            return sum(written.values())

        if str(path) == "-":
            stdout: Any = sys.stdout
            stdout.reconfigure(encoding="utf-8", newline="\n")
            write(stdout)
            return
        count = write_file(
            path,
            write,
            store,
            replaces=lambda old: force or _is_export(old, sealed),
            kind="an export",
            force="--force",
            keys=keys,
        )
    if form == "mcp-memory":
        if settings.as_json:
            print_json({"path": str(path), "lines": count})
        else:
            click.echo(f"{path}: {count} entities and relations")
        return
    counts = {**({RECORDS: written[RECORDS]} if parts is None or RECORDS in parts else {}), **written}
    if settings.as_json:
        print_json({"path": str(path), "records": written[RECORDS], "parts": counts})
    else:
        click.echo(f"{path}: {render.counted(counts) or 'nothing'}")
