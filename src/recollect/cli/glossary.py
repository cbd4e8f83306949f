"""The commands of the glossary: glossary add, list, agents, recall, annotate, forget, history, import, export."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from recollect.calls.calls import zone_of_store
from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json
from recollect.cli.files import text_of, write_file
from recollect.errors import ImportFormatError, InvalidArgumentError, StoreIOError
from recollect.facets.glossary.files import from_csv, from_json

_agent = click.option("--agent", required=True, metavar="AGENT", help="The agent that knows the terms.")


@app.group()
def glossary() -> None:
    """Store, find and list the terms that an agent knows, with their aliases."""


@glossary.command()
@click.argument("key")
@click.argument("value")
@_agent
@click.option("--category", default="", metavar="TEXT", help="Its category, such as abbreviation.")
@click.option("--alias", "aliases", multiple=True, metavar="TEXT", help="Another name of it. May be repeated.")
@click.option("--description", metavar="TEXT", help="More about it.")
@common
def add(
    settings: Settings,
    key: str,
    value: str,
    agent: str,
    category: str,
    aliases: tuple[str, ...],
    description: str | None,
) -> None:
    """Store the term KEY, which means VALUE. The same key in any casing is replaced."""
    with settings.open(create=True) as memory:
        memory.glossary.memorize(key, value, category, agent, aliases, description)
        term = memory.glossary.get(key, agent)
    if settings.as_json:
        print_json(term)
    else:
        click.echo(f"stored the term {render.plain(key)} of {render.plain(agent)}")


@glossary.command("list")
@_agent
@click.option("--category", metavar="TEXT", help="Only terms of this category.")
@common
def list_(settings: Settings, agent: str, category: str | None) -> None:
    """List the terms of an agent by key."""
    with settings.open() as memory:
        terms = memory.glossary.list_all(agent, category)
    if settings.as_json:
        print_json(terms)
        return
    rows = [(each["key"], each["category"], ", ".join(each["aliases"]), each["value"]) for each in terms]
    render.show_rows(("key", "category", "aliases", "value"), rows)
    click.echo(f"terms: {len(terms)}")


@glossary.command()
@common
def agents(settings: Settings) -> None:
    """List the agents that have terms, with the number of terms of each."""
    with settings.open() as memory:
        found = memory.glossary.agents()
    if settings.as_json:
        print_json(found)
        return
    render.show_rows(("agent", "terms"), [(agent, str(count)) for agent, count in found.items()])


@glossary.command()
@click.argument("question")
@_agent
@click.option("-k", "k", type=int, default=10, show_default=True, metavar="N", help="Maximum number of terms.")
@click.option("--minimum", type=float, metavar="SCORE", help="Leave out terms with a lower score.")
@click.option("--typos", is_flag=True, help="Accept misspelt words.")
@common
def recall(settings: Settings, question: str, agent: str, k: int, minimum: float | None, typos: bool) -> None:
    """Find the terms of an agent that answer QUESTION, best first."""
    with settings.open() as memory:
        found = memory.glossary.recall(question, agent, k, minimum, typos=typos)
    if settings.as_json:
        print_json(found)
        return
    render.show_rows(
        ("score", "key", "value"), [(f"{each['score']:.2f}", each["key"], each["value"]) for each in found]
    )


@glossary.command()
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False), default="-")
@_agent
@common
def annotate(settings: Settings, path: Path, agent: str) -> None:
    """List where terms of an agent occur in the text of PATH ("-": standard input)."""
    text = text_of(path)
    with settings.open() as memory:
        found = memory.glossary.annotate(text, agent)
    if settings.as_json:
        print_json(
            [
                {"start": each.start, "end": each.end, "text": each.text, "name": each.name, "terms": list(each.terms)}
                for each in found
            ]
        )
        return
    rows = [(str(each.start), each.text, term["key"], term["value"]) for each in found for term in each.terms]
    render.show_rows(("start", "text", "key", "value"), rows)
    click.echo(f"occurrences: {len(found)}")


_FORMAT = click.option("--format", "form", type=click.Choice(["csv", "json"]), help="Default: by the name of FILE.")


@glossary.command("import")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False))
@_agent
@_FORMAT
@common
def import_(settings: Settings, path: Path, agent: str, form: str | None) -> None:
    """Store the terms of a CSV or JSON FILE ("-": standard input), all or none.

    Fields: key, value, category, aliases, description, expires. Only key and value are required. In CSV, aliases are
    one field with ";" between them.
    """
    form, text = _form(path, form), text_of(path)
    with settings.open(create=True) as memory:
        glossary = memory.glossary
        count = glossary.from_csv(text, agent) if form == "csv" else glossary.from_json(text, agent)
    if settings.as_json:
        print_json({"imported": count})
    else:
        click.echo(f"imported: {count}")


@glossary.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True, dir_okay=False), default="-")
@_agent
@_FORMAT
@common
def export(settings: Settings, path: Path, agent: str, form: str | None) -> None:
    """Write the terms of an agent to a CSV or JSON FILE ("-": standard output, as JSON)."""
    form = _form(path, form or ("json" if str(path) == "-" else None))
    with settings.open() as memory:
        store = memory.stats()["store"]["path"]
        text = memory.glossary.to_csv(agent) if form == "csv" else memory.glossary.to_json(agent) + "\n"
    if str(path) == "-":
        click.echo(text, nl=False)
        return
    write_file(
        path,
        lambda file: file.write(text),
        store,
        replaces=partial(_is_glossary, form=form),
        kind=f"a glossary in {form.upper()}",
    )
    if settings.as_json:
        print_json({"written": str(path)})
    else:
        click.echo(f"written: {render.plain(str(path))}")


def _is_glossary(path: Path, form: str) -> bool:
    """Return whether a file has the terms of a glossary, so that an export may replace it."""
    try:
        text = text_of(path)
        return bool(from_csv(text) if form == "csv" else from_json(text)) or not text
    except (ImportFormatError, InvalidArgumentError, StoreIOError):
        return False


def _form(path: Path, form: str | None) -> str:
    """Return the format that was chosen, or that the name of a file has."""
    form = form or path.suffix.lower().removeprefix(".")
    if form not in ("csv", "json"):
        raise click.UsageError("the name of FILE does not say its format: pass --format csv or --format json")
    return form


@glossary.command()
@click.argument("keys", nargs=-1, required=True)
@_agent
@common
def forget(settings: Settings, keys: tuple[str, ...], agent: str) -> None:
    """Forget terms of an agent, in one commit. Their history stays."""
    with settings.open() as memory:
        count = memory.glossary.forget(keys, agent)
    if settings.as_json:
        print_json({"forgotten": count})
    else:
        click.echo(f"forgotten: {count} of {len(keys)}")


@glossary.command()
@click.argument("key")
@_agent
@common
def history(settings: Settings, key: str, agent: str) -> None:
    """List every version of the term KEY, oldest first."""
    with settings.open() as memory:
        versions, zone = memory.glossary.history(key, agent), zone_of_store(memory)
    if settings.as_json:
        print_json(
            [
                {"seq": each.seq, "time": each.time.isoformat(), "cause": each.cause, "term": each.term}
                for each in versions
            ]
        )
        return
    rows = [
        (str(each.seq), render.moment(each.time, zone), each.cause, "" if each.term is None else each.term["value"])
        for each in versions
    ]
    render.show_rows(("commit", "time", "cause", "value"), rows)
