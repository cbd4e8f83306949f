"""Commands that put a memory in order: consolidate, learn, duplicates, contradictions, entities, entity."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from recollect.calls.calls import zone_of_store
from recollect.calls.owners import Owners
from recollect.cli import render
from recollect.cli.app import (
    Settings,
    app,
    at_option,
    common,
    filter_options,
    owner_option,
    owner_options,
    print_json,
)
from recollect.errors import InvalidArgumentError
from recollect.filters import all_of, everything
from recollect.filters.tree import Filter
from recollect.memory.manager.contradictions import may_replace
from recollect.memory.manager.duplicates import LIKENESSES, Likeness

if TYPE_CHECKING:  # loaded by the command that needs it
    from recollect.agents import LearnedFact

_ACTOR = "recollect"
#: The exit code if a model failed for a conversation.
_FAILED = 1


def _own(where: Filter | None, owners: Owners) -> Filter:
    """Return the condition of a command that writes: only records of the owners, none that is shared."""
    return all_of(everything() if where is None else where, *owners.own)


@app.command()
@click.option("--older-than", type=float, metavar="DAYS", help="Only records that are at least this old.")
@click.option("--min-count", type=int, default=10, metavar="N", show_default=True, help="Minimum size of a group.")
@click.option("--max-count", type=int, default=50, metavar="N", show_default=True, help="Maximum size of a group.")
@click.option("--model", metavar="MODEL", help="Summarise with a language model: PROVIDER/MODEL. Default: without one.")
@click.option("--strict", is_flag=True, help="Change nothing if a summary fails.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@filter_options
@common
def consolidate(
    settings: Settings,
    older_than: float | None,
    min_count: int,
    max_count: int,
    model: str | None,
    strict: bool,
    dry_run: bool,
    where: Filter | None,
    owners: Owners,
) -> None:
    """Replace groups of records by summaries: turns of a conversation, facts about an entity or a user, ...

    It is one commit, which `recollect revert` takes back. The records stay in the history.
    """
    summariser = None
    if model is not None:
        from recollect.models import ModelSummariser, as_model

        summariser = ModelSummariser(as_model(model))
    age = None if older_than is None else timedelta(days=older_than)
    with settings.open() as memory:
        done = memory.consolidate(
            age,
            min_count,
            max_count=max_count,
            where=_own(where, owners),
            summariser=summariser,
            strict=strict,
            dry_run=dry_run,
            actor=f"{_ACTOR} consolidate",
        )
    if settings.as_json:
        print_json(done.to_json())
        return
    rows = [(each.kind, each.key, str(len(each.sources)), each.reason or each.text) for each in done.groups]
    render.show_rows(("kind", "group", "records", "summary"), rows)
    commit = f" in commit {done.seq}" if done.seq is not None else ""
    click.echo(
        f"would replace {sum(len(each.sources) for each in done.groups)} records by {len(done.groups)}"
        if dry_run
        else f"replaced {done.replaced} records by {len(done.groups) - len(done.failed)}{commit}"
    )


@app.command()
@click.option("--model", metavar="MODEL", help="Language model: PROVIDER/MODEL. Default: RECOLLECT_MODEL.")
@owner_option("conversation", "Only the turns of this conversation.")
@owner_option("user", "Only the turns of this user.")
@click.option(
    "--min-turns", type=int, default=1, metavar="N", show_default=True, help="Fewest new turns that are read."
)
@click.option("--dry-run", is_flag=True, help="Ask the model, and store nothing.")
@common
def learn(
    settings: Settings, model: str | None, conversation: str | None, user: str | None, min_turns: int, dry_run: bool
) -> None:
    """Let a language model state facts out of turns that it has not read yet, and keep them current.

    Each fact is checked against its turns, and added, confirmed, or put in the place of what was true before. What a
    model states in one reply is one commit, which `recollect revert` takes back. The next call reads what came since.
    """
    from recollect.agents import Learner
    from recollect.models import model_of_environment

    asked = model if model is not None else model_of_environment()
    if asked is None:
        raise InvalidArgumentError("model", None, "must be passed, or be in RECOLLECT_MODEL: PROVIDER/MODEL")
    with settings.open() as memory:
        learner = Learner(memory, asked)
        report = learner.learn(conversation=conversation, user=user, min_turns=min_turns, dry_run=dry_run)
    if settings.as_json:
        print_json(report.to_json())
    else:
        rows = [
            (each.status, each.text, "" if each.record is None else each.record.user or "", _why(each))
            for each in report.facts
        ]
        render.show_rows(("status", "fact", "user", "reason"), rows)
        commits = f" in {'commit' if len(report.commits) == 1 else 'commits'} {', '.join(map(str, report.commits))}"
        counted = f"{report.cost.calls} calls, about {report.cost.prompt_tokens + report.cost.reply_tokens:,} tokens"
        click.echo(f"read {report.turns} turns{commits if report.commits else ''}: {counted}")
        for each in report.failed:
            click.echo(f"not read: {each.conversation}: {each.error}", err=True)
    if report.failed:
        sys.exit(_FAILED)


def _why(fact: LearnedFact) -> str:
    """Return why a fact was not simply added: the reason, and what it is put in the place of."""
    other = "" if fact.other is None else f"before: {fact.other.content!s}"
    return "; ".join(filter(None, (fact.reason, other)))


@app.command()
@click.option(
    "--likeness",
    type=click.Choice(LIKENESSES),
    default="restated",
    show_default=True,
    help="How different they may be: in case and punctuation, in a few letters, or in the order of words.",
)
@click.option("--turns", is_flag=True, help="Look at turns of conversations, too.")
@click.option("--merge", is_flag=True, help="Replace each group by its newest text. The records stay in the history.")
@filter_options
@common
def duplicates(
    settings: Settings, likeness: Likeness, turns: bool, merge: bool, where: Filter | None, owners: Owners
) -> None:
    """List records that say the same. Nothing is changed, unless --merge is passed."""
    with settings.open() as memory:
        whose: Any = {"where": _own(where, owners)} if merge else {"where": where, **owners.named}
        groups = memory.duplicates(likeness=likeness, turns=turns, **whose)
        if merge and groups:
            with memory.batch(actor=f"{_ACTOR} duplicates") as batch:
                for group in groups:
                    batch.merge(group.records, group.records[-1].content)
    if settings.as_json:
        print_json([group.to_json() for group in groups])
        return
    rows = [
        (group.likeness if at == 0 else "", record.id, str(record.content))
        for group in groups
        for at, record in enumerate(group.records)
    ]
    render.show_rows(("likeness", "id", "text"), rows)
    count = sum(len(group.records) for group in groups)
    click.echo(f"groups{' merged' if merge and groups else ''}: {len(groups)}, of {count} records")


@app.command()
@click.option("--resolve", is_flag=True, help="Let the newest fact supersede the others. They stay, as former ones.")
@filter_options
@common
def contradictions(settings: Settings, resolve: bool, where: Filter | None, owners: Owners) -> None:
    """List facts that disagree: the same attribute of the same subject, with another value.

    Nothing is changed, unless --resolve is passed.
    """
    with settings.open() as memory:
        whose: Any = {"where": _own(where, owners)} if resolve else {"where": where, **owners.named}
        found = memory.contradictions(**whose)
        replaceable = [each for each in found if may_replace(each.newer, each.older)] if resolve else []
        if replaceable:
            with memory.batch(actor=f"{_ACTOR} contradictions") as batch:
                batch.resolve(replaceable)
    if settings.as_json:
        print_json([each.to_json() for each in found])
        return
    rows = [
        (each.subject, each.attribute, value, record.id)
        for each in found
        for value, record in zip(each.values, (each.older, each.newer), strict=True)
    ]
    render.show_rows(("subject", "attribute", "value", "id"), rows)
    click.echo(f"contradictions{' resolved' if replaceable else ''}: {len(replaceable or found)}")
    if resolve and len(replaceable) < len(found):
        left = len(found) - len(replaceable)
        click.echo(f"left, since the newer fact is of a lower class of origin (recollect endorse): {left}")


@app.command()
@click.option("--type", "type_", metavar="TYPE", help="Only of this type: person, organization, place, name, ...")
@click.option("--limit", type=int, default=50, metavar="N", show_default=True, help="Maximum number of entities.")
@owner_options
@at_option
@common
def entities(settings: Settings, type_: str | None, limit: int, owners: Owners, at: str | None) -> None:
    """List the people, places and things that records mention."""
    with settings.open_at(at) as memory:
        found = memory.entities(type_, limit, **owners.named)
    if settings.as_json:
        print_json([each.to_json() for each in found])
        return
    rows = [(each.name, each.type, str(each.records), ", ".join(each.aliases)) for each in found]
    render.show_rows(("entity", "type", "records", "aliases"), rows)


@app.command()
@click.argument("name")
@click.option("--graph", "depth", type=int, metavar="DEPTH", help="Print the entities within DEPTH steps, as JSON.")
@click.option("--path", "target", metavar="NAME", help="Print the shortest paths to another entity.")
@click.option("--alias", metavar="NAME", help="Say that NAME is another name of it.")
@at_option
@common
def entity(
    settings: Settings, name: str, depth: int | None, target: str | None, alias: str | None, at: str | None
) -> None:
    """Show when NAME was mentioned, together with what, and its relations."""
    if alias is not None and at is not None:
        raise click.UsageError("--alias writes, and the past cannot be changed")
    with settings.open_at(at) as memory:
        if alias is not None:
            memory.merge_entities(alias, name)
        if depth is not None:
            print_json(memory.neighbours(name, depth).to_json())
            return
        if target is not None:
            paths = memory.paths(name, target)
            if settings.as_json:
                print_json(paths)
            for path in paths if not settings.as_json else ():
                click.echo(render.plain(" - ".join(path)))
            sys.exit(0 if paths else 1)
        view = memory.entity(name)
        records: dict[str, Any] = {}
        if view is not None:
            records = {each.id: memory.get(each.id) for each in view.timeline}
        zone = zone_of_store(memory)
    if view is None:
        click.echo(f"no record mentions {render.plain(name)}", err=True)
        sys.exit(1)
    if settings.as_json:
        print_json(view.to_json())
        return
    known = view.entity
    aliases = f", also {', '.join(known.aliases)}" if known.aliases else ""
    click.echo(render.plain(f"{known.name} ({known.type}{aliases}): {known.records} records"))
    rows = [
        (
            "" if each.time is None else each.time.astimezone(zone).date().isoformat(),
            each.id,
            str(record.content) if record else "",
        )
        for each in view.timeline
        for record in [records[each.id]]
    ]
    render.show_rows(("day", "id", "text"), rows)
    for edge in view.relations:
        click.echo(render.plain(f"  {edge.source} {edge.type} {edge.target}"))
    if view.together:
        click.echo(render.plain("  with " + ", ".join(f"{other} ({count})" for other, count in view.together)))
