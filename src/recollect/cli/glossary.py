"""The commands of the glossary: glossary add, list, recall, annotate, forget, history."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json
from recollect.errors import InvalidArgumentError

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
@click.argument("question")
@_agent
@click.option("-k", "k", type=int, default=5, show_default=True, metavar="N", help="Maximum number of terms.")
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
    try:
        text = (sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidArgumentError("path", str(path), "is not UTF-8 text") from None
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


@glossary.command()
@click.argument("keys", nargs=-1, required=True)
@_agent
@common
def forget(settings: Settings, keys: tuple[str, ...], agent: str) -> None:
    """Forget terms of an agent, in one commit. Their history stays."""
    with settings.open() as memory:
        count = memory.glossary.forget_many(keys, agent)
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
        versions = memory.glossary.history(key, agent)
    if settings.as_json:
        print_json(
            [
                {"seq": each.seq, "time": each.time.isoformat(), "cause": each.cause, "term": each.term}
                for each in versions
            ]
        )
        return
    rows = [
        (str(each.seq), each.time.isoformat(), each.cause, "" if each.term is None else each.term["value"])
        for each in versions
    ]
    render.show_rows(("commit", "time", "cause", "value"), rows)
