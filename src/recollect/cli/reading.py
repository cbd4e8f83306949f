"""Commands that only read: recall, context, grep, get, log, find, stats, namespaces."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import tzinfo
from functools import partial
from pathlib import Path

import click

from recollect.calls.calls import zone_of_store
from recollect.calls.owners import Owners
from recollect.cli import render
from recollect.cli.app import (
    Confidence,
    RenamedOption,
    Settings,
    app,
    at_option,
    common,
    completion,
    count_option,
    filter_options,
    part_option,
    print_json,
    time_of,
    zone_option,
)
from recollect.cli.files import write_file
from recollect.cli.render import short_ids, whole_id
from recollect.engine.facets import called
from recollect.engine.results import Hits, record_json
from recollect.errors import UnknownRecordError
from recollect.filters import all_of, everything
from recollect.filters.tree import Filter
from recollect.ledger.commits import Commit
from recollect.ledger.parts import RECORDS
from recollect.memory import Memory
from recollect.memory.context.values import PARTS, STYLES, Part, Style
from recollect.operations import ORDERS, MinConfidence, Order
from recollect.records.origins import ORIGINS, Origin
from recollect.records.record import Record

_min_origin = click.option(
    "--min-origin",
    type=click.Choice(ORIGINS),
    help="Only what is of this class of origin or a more trusted one (docs/trust.md).",
)
_min_confidence = partial(click.option, "--min-confidence", type=Confidence(), default=0.0, metavar="P")
_reference = click.option(
    "--reference", metavar="ISO8601", help='Time of the question, for words such as "yesterday". Default: now.'
)


def _show(settings: Settings, memory: Memory, found: Hits | list[Record]) -> None:
    """Print results as JSON or as a table.

    If there are none and the namespace is empty, list the namespaces of the store, because the name may be wrong.
    """
    if settings.as_json:
        print_json(found.to_json() if isinstance(found, Hits) else [record_json(record) for record in found])
    elif isinstance(found, Hits) and found:
        render.show_hits(found, zone_of_store(memory))
    elif isinstance(found, list) and found:
        render.show_records(found, zone_of_store(memory))
    else:
        click.echo("nothing found", err=True)
        names = memory.namespaces()
        if memory.name not in names and names:
            click.echo(f"namespace {memory.name!r} is empty; the store has: {', '.join(names[:20])}", err=True)
    if isinstance(found, Hits) and not settings.as_json:
        for note in found.plan.notes:
            click.echo(f"note: {note}", err=True)
        if found.left_out:
            click.echo(f"left out: {len(found.left_out)} hits that add little; without --concise they are shown")


@app.command()
@click.argument("question")
@count_option(10)
@filter_options
@click.option("--explain", is_flag=True, help="Show the share of each signal and word in each score.")
@_min_confidence(help="Omit hits with a lower confidence, 0 to 1, or auto: 0.31.")
@_min_origin
@_reference
@click.option("--language", metavar="TAG", help="Language of the question, such as de. Default: detected.")
@click.option("--wait-for-vectors", is_flag=True, help="First embed the records that have no vector yet.")
@click.option("--concise", is_flag=True, help="Omit hits that add little to the ones before them.")
@click.option(
    "--receipt",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the receipt of the answer to FILE, which is new or a receipt.",
)
@at_option
@zone_option
@common
def recall(
    settings: Settings,
    question: str,
    k: int,
    where: Filter | None,
    owners: Owners,
    explain: bool,
    min_confidence: MinConfidence,
    min_origin: Origin | None,
    reference: str | None,
    language: str | None,
    wait_for_vectors: bool,
    concise: bool,
    receipt: Path | None,
    at: str | None,
    zone: tzinfo | None,
) -> None:
    """Find the records that answer QUESTION best, with scores and explanations."""
    with_reference = None if reference is None else time_of("reference", reference, zone)
    with settings.open_at(at, zone) as memory:
        hits = memory.recall(
            question,
            k=k,
            where=where,
            reference=with_reference,
            min_confidence=min_confidence,
            min_origin=min_origin,
            language=language,
            wait_for_vectors=wait_for_vectors,
            concise=concise,
            **owners.named,
        )
        _show(settings, memory, hits)
        if receipt is not None:
            text = json.dumps(hits.receipt, indent=2, ensure_ascii=False) + "\n"
            store = str(memory.stats()["store"]["path"])
            write_file(receipt, lambda file: file.write(text), store, replaces=_is_receipt, kind="a receipt")
        lent_by = {each for hit in hits for word in hit.why.words for each in word.lent_by} if explain else set()
        lenders = {each: record for each in lent_by if (record := memory.get(each)) is not None}
    if explain and not settings.as_json:
        if hits.plan.dates:
            click.echo(f"dates: {render.plain(hits.plan.dates, 500)}")
        render.explain(hits, lenders)
    if hits.standing and not settings.as_json:
        click.echo("\nstanding instructions and preferences:")
        short = short_ids(hit.record.id for hit in hits.standing)
        for hit in hits.standing:
            click.echo(f"  {short[hit.record.id]}  {render.content(hit.record, 200)}")


#: The fields that are times.
_TIMES = ("time", "valid_from", "valid_to", "expires")


def _is_receipt(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return b'"receipt"' in file.read(2000)
    return False


@app.command()
@click.argument("question")
@click.option("--max-tokens", type=int, default=2000, show_default=True, metavar="N", help="Budget, headings included.")
@click.option("--style", type=click.Choice(STYLES), default="markdown", show_default=True, help="Format of the text.")
@filter_options
@click.option(
    "--include",
    type=click.Choice(PARTS),
    multiple=True,
    default=("records",),
    show_default=True,
    help="What to consider. Can be repeated.",
)
@_min_confidence(help="Show no hits if none has this confidence, 0 to 1, or auto: 0.31.")
@_min_origin
@click.option("--concise", is_flag=True, help="Show only those of ten hits that add to the ones before them.")
@click.option("--items", is_flag=True, help="Also list on stderr what went in, what was left out, and why.")
@_reference
@at_option
@zone_option
@common
def context(
    settings: Settings,
    question: str,
    max_tokens: int,
    style: Style,
    where: Filter | None,
    owners: Owners,
    include: tuple[Part, ...],
    min_confidence: MinConfidence,
    min_origin: Origin | None,
    concise: bool,
    items: bool,
    reference: str | None,
    at: str | None,
    zone: tzinfo | None,
) -> None:
    """Print what helps to answer QUESTION, as a text for a prompt within a budget of tokens.

    Tokens are a quarter of the bytes of UTF-8, rounded up. Control characters are shown as symbols (not with --json).
    """
    with_reference = None if reference is None else time_of("reference", reference, zone)
    with settings.open_at(at, zone) as memory:
        found = memory.context(
            question,
            max_tokens,
            where=where,
            include=include,
            min_confidence=min_confidence,
            min_origin=min_origin,
            concise=concise,
            style=style,
            reference=with_reference,
            **owners.named,
        )
        if not found.items and not settings.as_json:
            _show(settings, memory, [])
        elif not any(item.included for item in found.items):
            click.echo(f"{len(found.items)} found, and none fits in {max_tokens} tokens", err=True)
    if settings.as_json:
        print_json(found.to_json())
        return
    for line in found.rstrip("\n").split("\n") if found else ():
        click.echo(render.plain(line, len(line)))
    if items:
        click.echo(f"{found.tokens} of {max_tokens} tokens", err=True)
        short = short_ids(item.record.id for item in found.items)
        for item in found.items:
            of = f" of {item.duplicate_of}" if item.duplicate_of else ""
            text = render.content(item.record, 60)
            click.echo(f"{item.origin}: {item.outcome}{of}  {short[item.record.id]}  {text}", err=True)


@app.command()
@click.argument("query")
@count_option(20, "--limit")
@filter_options
@at_option
@common
def grep(settings: Settings, query: str, k: int, where: Filter | None, owners: Owners, at: str | None) -> None:
    """Find the records whose text matches QUERY, newest first.

    QUERY: words (all must occur), "phrases", prefix*, and, or, not, parentheses.
    """
    with settings.open_at(at) as memory:
        _show(settings, memory, memory.grep(query, limit=k, where=where, **owners.named))


@app.command()
@click.argument("id", shell_complete=completion("ids"))
@at_option
@common
def get(settings: Settings, id: str, at: str | None) -> None:  # noqa: A002 - the field's name
    """Show the record ID in full, with its history. The beginning of an id is enough if no other begins like it."""
    with settings.open_at(at) as memory:
        id = whole_id(memory, id)  # noqa: A001
        record = memory.get(id)
        if record is None:
            raise UnknownRecordError(id, memory.name)
        changes = [
            (commit, change.cause)
            for commit in memory.changes(id=record.id)
            for change in commit.changes
            if change.id == record.id
        ]
        if settings.as_json:
            history = [
                {"seq": commit.seq, "time": commit.time.isoformat(), "cause": cause, "reason": commit.reason}
                for commit, cause in changes
            ]
            print_json({**record_json(record), "history": history})
            return
        zone = zone_of_store(memory)
        shown = record_json(record) | {
            name: time.astimezone(zone).isoformat() for name in _TIMES if (time := getattr(record, name)) is not None
        }
        rows = [
            (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            for name, value in shown.items()
        ]
        rows += [
            ("history", f"{render.moment(commit.time, zone)} {cause} in commit {commit.seq}")
            for commit, cause in changes
        ]
        render.table(
            (("field", {}), ("value", {"overflow": "fold"})),
            ((name, render.plain(value, 100_000)) for name, value in rows),
        )


def _by(part: Commit, commit: Commit) -> str:
    """Return who made a commit to a part of a memory, why, and what the commit of the memory merges."""
    merged = None if commit.merged is None else f"merges {commit.merged[0]}, commit {commit.merged[1]}"
    return ": ".join(filter(None, (part.actor, part.reason, merged)))


@app.command()
@click.argument("id", required=False, shell_complete=completion("ids"))
@click.option("--since", type=int, default=0, metavar="SEQ", help="Only commits after this one.")
@count_option(20, "--limit")
@filter_options
@part_option
@at_option
@common
def log(
    settings: Settings,
    id: str | None,  # noqa: A002 - the field's name
    since: int,
    k: int,
    parts: tuple[str, ...] | None,
    where: Filter | None,
    owners: Owners,
    at: str | None,
) -> None:
    """Show the commit log, newest first. With ID, only commits that changed this record, even if it is forgotten.

    With a filter, only changes of records that match before or after.
    """
    with settings.open_at(at) as memory:
        if id is not None:
            id = whole_id(memory._part(parts[0]) if parts is not None else memory, id, in_log=True)  # noqa: A001
        condition = where if not owners.named else all_of(everything() if where is None else where, *owners.readable)
        commits = memory.changes(since, k, id, newest_first=True, where=condition, parts=parts)
        if id is not None and not commits and not since and condition is None:
            raise UnknownRecordError(id, memory.name)
        zone = zone_of_store(memory)
    if settings.as_json:
        print_json([commit.to_json() for commit in commits])
        return
    rows = [
        (commit, each, change)
        for commit in commits
        for each in (commit, *commit.part_commits)
        for change in each.changes or ((None,) if each is commit and commit.merged is not None else ())
        if id is None or (change is not None and change.id == id)
    ]
    short = short_ids(change.id for _, _, change in rows if change is not None)
    render.table(
        (
            ("commit", {"justify": "right"}),
            ("time", {"no_wrap": True}),
            ("cause", {}),
            ("part", {}),
            ("id", {"overflow": "fold"}),
            ("by", {"overflow": "fold"}),
        ),
        (
            (
                str(commit.seq),
                render.moment(commit.time, zone),
                "merged" if change is None else change.cause,
                each.part,
                ""
                if change is None
                else render.plain(short[change.id]),  # one that was redacted begins with a control character
                render.plain(_by(each, commit)),
            )
            for commit, each, change in rows
        ),
    )


@app.command()
@count_option(20, "--limit")
@click.option("--order", type=click.Choice(ORDERS), default="newest", show_default=True)
@click.option(
    "--after",
    "after",
    cls=RenamedOption,
    former=("--cursor",),
    metavar="CURSOR",
    help="Continue after the page that printed this cursor.",
)
@filter_options
@at_option
@common
def find(
    settings: Settings,
    k: int,
    order: Order,
    after: str | None,
    where: Filter | None,
    owners: Owners,
    at: str | None,
) -> None:
    """List records, newest first by default.

    A full page prints a cursor for the next one. With --json, the result has "records" and "cursor", which is null
    after the last page.
    """
    with settings.open_at(at) as memory:
        page = memory.find(where, limit=k, order=order, after=after, **owners.named)
        if settings.as_json:
            print_json(page.to_json())
            return
        _show(settings, memory, page)
        total = memory.count(where, **owners.named)
        if page.cursor is not None and total > len(page):
            click.echo(f"{len(page)} of {total} records; the next ones: --after {page.cursor}", err=True)


@app.command()
@part_option
@at_option
@common
def stats(settings: Settings, parts: tuple[str, ...] | None, at: str | None) -> None:
    """Show record counts, of each part of the memory, and facts about the store."""
    with settings.open_at(at) as memory:
        found = memory.stats(parts=parts)
    if settings.as_json:
        print_json(found)
        return
    apart = ("store", "kinds", "parts")
    rows = [(name, str(value)) for name, value in found.items() if name not in apart and value is not None]
    rows += [(called(name), str(count)) for name, count in found["parts"].items() if name != RECORDS]
    rows += [(f"kind {kind}", str(count)) for kind, count in found["kinds"].items()]
    rows += [(name.replace("_", " "), str(value)) for name, value in found["store"].items() if value != ""]
    render.table((("what", {}), ("value", {"overflow": "fold"})), ((name, render.plain(value)) for name, value in rows))


@app.command()
@common
def namespaces(settings: Settings) -> None:
    """List the namespaces of the store."""
    with settings.open() as memory:
        found = []
        for name in memory.namespaces():
            namespace = memory.namespace(name)
            found.append(
                {"namespace": name, "records": namespace.count(), "seq": namespace.seq, "root": namespace.root}
            )
    if settings.as_json:
        print_json(found)
        return
    render.table(
        (("namespace", {"overflow": "fold"}), ("records", {"justify": "right"}), ("commits", {"justify": "right"})),
        ((render.plain(str(each["namespace"])), str(each["records"]), str(each["seq"])) for each in found),
    )
