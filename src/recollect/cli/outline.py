"""The commands of outlines: outline import, show, search, focus, export, remove, snapshot, snapshots, rollback."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from recollect.calls.calls import zone_of_store
from recollect.cli import render
from recollect.cli.app import NumberRange, Settings, app, common, print_json
from recollect.cli.files import text_of, write_file
from recollect.cli.versions import DROP, NAME, print_restored, print_snapshots, take_snapshot
from recollect.errors import ImportFormatError, InvalidArgumentError, StoreIOError, UnknownRecordError
from recollect.facets.outline.outline import Outline
from recollect.facets.outline.reading import FORMATS, format_named, source_ids
from recollect.facets.outline.values import OutlineNode, OutlineView
from recollect.operations import target_of

_SUFFIXES = {".org": "org", ".md": "markdown", ".markdown": "markdown", ".json": "json"}
_FORMAT = click.option("--format", "form", type=click.Choice(list(FORMATS)), help="Default: by the name of FILE.")
_FILE = click.Path(path_type=Path, allow_dash=True, dir_okay=False)


@app.group()
def outline() -> None:
    """Store, search and export outlines: trees of headlines and texts."""


@outline.command("import")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False))
@_FORMAT
@click.option("--source", metavar="NAME", help="The name of the outline. Default: FILE as it is written here.")
@click.option("--parent", metavar="NODE", help="Store it as the last child of NODE, an id or the name of an outline.")
@click.option("--snapshot", is_flag=True, help="Take a snapshot of the outlines before.")
@common
def import_(
    settings: Settings, path: Path, form: str | None, source: str | None, parent: str | None, snapshot: bool
) -> None:
    """Store an outline in Org, Markdown or JSON. Of one that was imported before, only what differs is written."""
    form, text = _form(path, form), text_of(path)
    if source is None and str(path) == "-":
        raise click.UsageError("standard input has no name: pass --source NAME")
    with settings.open(create=True) as memory:
        above = None if parent is None else _id(memory.outline, parent)
        done = memory.outline.ingest_text(text, form, source or str(path), parent=above, snapshot=snapshot)
    counts = {name: len(ids) for name, ids in zip(done._fields[1:5], done[1:5], strict=True)}
    if settings.as_json:
        print_json({"root": done.root, **counts, "unchanged": done.unchanged})
    else:
        said = ", ".join(f"{name}: {count}" for name, count in {**counts, "unchanged": done.unchanged}.items())
        click.echo(f"outline {done.root}\n{said}")


@outline.command()
@click.argument("node", required=False)
@click.option("--depth", type=click.IntRange(0), metavar="N", help="Show at most N levels below. Default: all.")
@common
def show(settings: Settings, node: str | None, depth: int | None) -> None:
    """Show the titles below NODE, an id or the name of an outline; default: the outlines."""
    with settings.open() as memory:
        view = memory.outline.view(None if node is None else _id(memory.outline, node))
    shown = [(each, level) for each, level in _levels(view) if depth is None or level <= depth]
    if settings.as_json:
        print_json(_trees(each for each, _ in shown))
        return
    rows = []
    for each, level in shown:
        title = each.title if each.title is not None else f"({each.type.lower()})"
        rows.append((each.id, f"{'  ' * level}{title}", str(each.attributes.get("TODO", ""))))
    render.show_rows(("id", "title", "state"), rows)
    click.echo(f"nodes: {len(view)}")


@outline.command()
@click.argument("node")
@click.argument("path", metavar="FILE", type=_FILE, default="-")
@_FORMAT
@click.option("--force", is_flag=True, help="Replace FILE even if it is no outline by its name or its text.")
@common
def export(settings: Settings, node: str, path: Path, form: str | None, force: bool) -> None:
    """Write the subtree of NODE, an id or the name of an outline, to FILE ("-": standard output, as Org)."""
    form = _form(path, form or ("org" if str(path) == "-" else None))
    with settings.open() as memory:
        store = memory.stats()["store"]["path"]
        text = memory.outline.to_text(_id(memory.outline, node), form)
    if str(path) == "-":
        click.echo(text, nl=False)
        return
    write_file(
        path,
        lambda file: file.write(text),
        store,
        replaces=lambda old: force or _is_outline(old, form),
        kind=f"an outline in {form} by its name and its text",
        force="--force",
    )
    if settings.as_json:
        print_json({"written": str(path)})
    else:
        click.echo(f"written: {render.plain(str(path))}")


@outline.command()
@click.argument("text")
@click.option("--under", metavar="NODE", help="Search NODE, an id or the name of an outline, and what is below it.")
@click.option("-k", "--limit", type=click.IntRange(1), default=10, show_default=True, help="Maximum number of nodes.")
@click.option("--minimum", type=NumberRange(0, 1), default=0.0, help="The least similarity, inclusive.")
@click.option("--all", "every", is_flag=True, help="Search all nodes, also where some are marked with EMBED.")
@common
def search(settings: Settings, text: str, under: str | None, limit: int, minimum: float, every: bool) -> None:
    """Show the nodes that are most similar to QUERY: by the embedder's vectors, or else by their words."""
    with settings.open() as memory:
        top = None if under is None else _id(memory.outline, under)
        found = memory.outline.search(text, limit, under=top, minimum=minimum, marked=False if every else None)
        titles = [" / ".join(filter(None, memory.outline.path(each.node.id))) for each in found]
        paths = [path or f"({each.node.type.lower()})" for each, path in zip(found, titles, strict=True)]
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    if settings.as_json:
        nodes = [
            {"id": node.id, "path": path, "text": node.text, "similarity": similarity}
            for (node, similarity), path in zip(found, paths, strict=True)
        ]
        print_json({"measure": found.measure, "nodes": nodes})
    else:
        rows = [(f"{each.similarity:.3f}", each.node.id, path) for each, path in zip(found, paths, strict=True)]
        render.show_rows((found.measure, "id", "path"), rows)


@outline.command()
@click.argument("node", required=False)
@click.option("--max-tokens", type=click.IntRange(1), default=2000, show_default=True, help="Size of the text.")
@click.option("--question", metavar="TEXT", help="What other nodes are compared with. Default: the text of NODE.")
@click.option(
    "--private", metavar="TAG", multiple=True, default=("private",), show_default=True, help="Leave these tags out."
)
@click.option("--show-private", is_flag=True, help="Leave nothing out.")
@common
def focus(
    settings: Settings,
    node: str | None,
    max_tokens: int,
    question: str | None,
    private: tuple[str, ...],
    show_private: bool,
) -> None:
    """Write the outline of NODE for a prompt: NODE and what is similar to it in full, the rest by title.

    Without NODE, the titles of all outlines are written, and in full what is similar to the question, if there is one.
    """
    with settings.open() as memory:
        hidden = () if show_private else private
        focused = None if node is None else _id(memory.outline, node)
        text = memory.outline.focus(focused, max_tokens, question=question, private=hidden)
    for note in text.notes:
        click.echo(f"note: {note}", err=True)
    if settings.as_json:
        about = {name: getattr(text, name) for name in ("tokens", "full", "titles", "omitted", "private", "measure")}
        print_json({"text": str(text), **about})
    else:
        click.echo(text)


@outline.command()
@click.argument("node")
@common
def remove(settings: Settings, node: str) -> None:
    """Remove NODE, an id or the name of an outline, with all below it. The history stays."""
    with settings.open() as memory:
        count = memory.outline.remove(_id(memory.outline, node), reason="removed on the command line")
    if settings.as_json:
        print_json({"removed": count})
    else:
        click.echo(f"removed: {count}")


@outline.command()
@NAME
@DROP
@common
def snapshot(settings: Settings, name: str | None, drop: bool) -> None:
    """Mark the state of all outlines as a snapshot, called NAME. Of those without a name, the newest 20 stay."""
    take_snapshot(settings, lambda memory: memory.outline, name, drop)


@outline.command()
@common
def snapshots(settings: Settings) -> None:
    """List the snapshots of the outlines, newest first."""
    with settings.open() as memory:
        print_snapshots(settings, memory.outline.snapshots(), zone_of_store(memory))


@outline.command()
@click.argument("to")
@click.option("--reason", metavar="TEXT", help="Why; recorded in the commit.")
@common
def rollback(settings: Settings, to: str, reason: str | None) -> None:
    """Restore all outlines as they were at the moment TO, in a new commit. The records of the memory stay as they are.

    TO is the name of a snapshot of outlines, an ISO 8601 time, or a root or the number of a commit of outlines. Nothing
    is lost: rolling back to the commit before takes it back.
    """
    command = "recollect outline rollback"
    with settings.open() as memory:
        restored = memory.outline.rollback(target_of(to, zone_of_store(memory)), actor=command, reason=reason)
    print_restored(settings, restored, command)


def _id(outline: Outline, node: str) -> str:
    """Return the id of a node that is named by it, or by the name of its outline."""
    for each in (node, *source_ids(node)):
        if outline.get(each) is not None:
            return each
    raise UnknownRecordError(node, "the outlines")


def _levels(view: OutlineView) -> Iterator[tuple[OutlineNode, int]]:
    """Yield the nodes, each before its children, with the number of nodes above it."""
    levels: dict[str | None, int] = {}
    for node in view:
        levels[node.id] = levels.get(node.parent, -1) + 1
        yield node, levels[node.id]


def _trees(nodes: Iterable[OutlineNode]) -> list[dict[str, Any]]:
    """Return nodes, each before its children, as JSON objects with their ids and what is below them."""
    made: dict[str | None, dict[str, Any]] = {}
    tops: list[dict[str, Any]] = []
    for node in nodes:
        named = {"ID": node.id if node.named else None, "TITLE": node.title}
        properties = {name: value for name, value in named.items() if value is not None}
        shown = {"id": node.id, "type": node.type, "properties": {**properties, **node.attributes}}
        shown |= {"contents": []} if node.text is None else {"raw_content": node.text, "contents": []}
        made[node.id] = shown
        (made[node.parent]["contents"] if node.parent in made else tops).append(shown)
    return tops


def _is_outline(path: Path, form: str) -> bool:
    """Return whether a file is an outline in a format, so that an export may replace it.

    Its name must say so, too: any text can be read as Org or Markdown.
    """
    if _SUFFIXES.get(path.suffix.lower()) != form:
        return False
    try:
        format_named(form)[0](text_of(path))
    except (ImportFormatError, InvalidArgumentError, StoreIOError):
        return False
    return True


def _form(path: Path, form: str | None) -> str:
    """Return the format that was chosen, or that the name of a file has."""
    form = form or _SUFFIXES.get(path.suffix.lower())
    if form is None:
        raise click.UsageError("the name of FILE does not say its format: pass --format org, markdown or json")
    return form
