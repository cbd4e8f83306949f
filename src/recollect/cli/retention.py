"""The commands of retention: show and set how long records stay, show what is due, and remove it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from recollect.calls.calls import zone_of_store
from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json, where_option
from recollect.cli.files import text_of
from recollect.errors import InvalidArgumentError
from recollect.filters.text_form import Where
from recollect.filters.tree import EVERYTHING, Filter
from recollect.operations.retention import (
    ACTIONS,
    FORMER_VERSIONS,
    SINCE,
    Due,
    Retention,
    RetentionAction,
    RetentionRule,
    Since,
)

_ACTOR = "recollect retention"
_samples = click.option(
    "--samples", type=click.IntRange(0), default=3, show_default=True, metavar="N", help="Maximum number of ids listed."
)
#: What stands for no limit of the former versions.
_NONE = "none"


@app.group()
def retention() -> None:
    """Rules for how long records stay: show, set, plan, run.

    What is due is removed by `retention run`, and by a server once an hour.
    """


@retention.command()
@common
def show(settings: Settings) -> None:
    """Show the rules of the namespace. The first one that applies to a record decides about it."""
    with settings.open() as memory:
        found = memory.retention()
    _show(settings, found)


@retention.command("set")
@click.option(
    "--rules",
    "path",
    type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False),
    help='Set all rules: a JSON file as `retention show --json` prints it ("-": standard input).',
)
@click.option("--rule", "name", metavar="NAME", help="Set one rule: put in place of the one with this name, or added.")
@where_option
@click.option("--after", metavar="AGE", help="The age at which a record is due: a number and s, m, h, d or w: 90d.")
@click.option("--since", type=click.Choice(SINCE), help="From when the age counts. Default: time.")
@click.option("--keep-newest", type=click.IntRange(1), metavar="N", help="Keep the newest N that the rule applies to.")
@click.option("--action", type=click.Choice(ACTIONS), help="What happens to what is due. Default: forget.")
@click.option("--include-pinned", is_flag=True, help="Apply the rule to pinned records and to the quarantine, too.")
@click.option("--first", is_flag=True, help="Put the rule before all others, as a hold.")
@click.option("--drop", "dropped", multiple=True, metavar="NAME", help="Remove this rule. May be repeated.")
@click.option("--keep-versions", metavar="AGE", help=f'How long former versions stay, or "{_NONE}": without end.')
@click.option("--none", "removes", is_flag=True, help="Remove all rules, and keep former versions.")
@click.option("--yes", is_flag=True, help="Do not ask if something is due at once.")
@common
def set_(
    settings: Settings,
    path: Path | None,
    name: str | None,
    where: Filter | None,
    after: str | None,
    since: Since | None,
    keep_newest: int | None,
    action: RetentionAction | None,
    include_pinned: bool,
    first: bool,
    dropped: tuple[str, ...],
    keep_versions: str | None,
    removes: bool,
    yes: bool,
) -> None:
    """Set rules of the namespace. First it shows what is due by them; nothing is removed yet.

    Rules that are not named stay as they are.

        recollect retention set --rule chats --where 'kind=conversation and origin<=tool' --after 90d

        recollect retention set --rule court --where user=ana --action hold --first
    """
    of_rule = {"after": after, "since": since, "keep_newest": keep_newest, "action": action}
    stated = {key: value for key, value in of_rule.items() if value is not None}
    if name is None and (stated or where is not None or include_pinned or first):
        raise click.UsageError("--where, --after, --since, --keep-newest, --action and --first are for --rule NAME")
    if (path is not None) + (name is not None or bool(dropped)) + removes > 1:
        raise click.UsageError("pass either --rules, --rule and --drop, or --none")
    if path is None and name is None and not dropped and keep_versions is None and not removes:
        raise click.UsageError("pass --rules, --rule, --drop, --keep-versions or --none")
    rule = None
    if name is not None:
        condition: Where = EVERYTHING if where is None else where
        rule = RetentionRule(name, where=condition, include_pinned=include_pinned, **stated)  # type: ignore[arg-type]
    with settings.open(create=not removes) as memory:
        new = Retention() if removes else _of_file(path) if path is not None else memory.retention()
        new = _changed(new, rule, dropped, first=first)
        if keep_versions is not None:
            new = replace(new, keep_versions=None if keep_versions == _NONE else keep_versions)
        plan = memory.apply_retention(new.rules, keep_versions=new.keep_versions, samples=3)
        if not settings.as_json:
            _show_due(settings, plan, zone_of_store(memory))
        if any(each.count for each in plan) and not yes:
            if not sys.stdin.isatty():
                raise click.UsageError(
                    "something is due by these rules at once, as `retention plan` will show: pass --yes"
                )
            click.confirm("The next run removes this. Set the rules?", abort=True)
        memory.set_retention(new.rules, keep_versions=new.keep_versions)
        found = memory.retention()
    if settings.as_json:
        print_json({**found.to_json(), "plan": [each.to_json() for each in plan]})
    else:
        _show(settings, found)


@retention.command()
@_samples
@common
def plan(settings: Settings, samples: int) -> None:
    """Show what is due by the rules of the namespace, and change nothing."""
    with settings.open() as memory:
        due = memory.apply_retention(samples=samples)
        zone = zone_of_store(memory)
    _show_due(settings, due, zone)


@retention.command()
@_samples
@common
def run(settings: Settings, samples: int) -> None:
    """Remove what is due by the rules of the namespace, in commits of at most 1,000 records.

    What is forgotten stays in the history, and `recollect revert` takes the commit back. What is erased does not.
    """
    with settings.open() as memory:
        done = memory.apply_retention(dry_run=False, samples=samples, actor=_ACTOR)
        zone = zone_of_store(memory)
    _show_due(settings, done, zone, was_done=True)


def _of_file(path: Path) -> Retention:
    """Return the retention that a JSON file states: that of `retention show --json`, or a list of rules.

    Raises:
        InvalidArgumentError: It does not.
        InvalidOperationError: A rule is not the JSON form of one.
    """
    try:
        data = json.loads(text_of(path))
    except ValueError as error:
        raise InvalidArgumentError("--rules", str(path), f"is not JSON: {error}") from None
    return Retention.from_json({"rules": data} if isinstance(data, list) else data)


def _changed(old: Retention, rule: RetentionRule | None, dropped: tuple[str, ...], *, first: bool) -> Retention:
    """Return a retention with one rule put in its place, and without others.

    Raises:
        InvalidArgumentError: There is no rule that is to be removed.
    """
    names = [each.name for each in old.rules]
    for name in dropped:
        if name not in names:
            raise InvalidArgumentError("--drop", name, f"is not the name of a rule: {', '.join(names) or 'none'}")
    rules = [each for each in old.rules if each.name not in dropped]
    if rule is not None:
        others = [each for each in rules if each.name != rule.name]
        place = next((number for number, each in enumerate(rules) if each.name == rule.name), len(rules))
        others.insert(0 if first else place, rule)
        rules = others
    return replace(old, rules=tuple(rules))


def _show(settings: Settings, found: Retention) -> None:
    if settings.as_json:
        print_json(found.to_json())
        return
    if not found:
        click.echo(f"namespace {settings.namespace}: records stay until they are forgotten or expire")
        return
    rows = [(each.name, each.action, _when(each), _text(each.condition)) for each in found.rules]
    render.show_rows(("rule", "action", "when", "records"), rows)
    if found.keep_versions is not None:
        click.echo(f"former versions stay for {found.keep_versions}")


def _when(rule: RetentionRule) -> str:
    """Return when a rule makes records due, in words."""
    parts = [] if rule.after is None else [f"{rule.after} since {rule.since}"]
    parts += [] if rule.keep_newest is None else [f"but the newest {rule.keep_newest}"]
    parts += ["pinned too"] if rule.include_pinned else []
    return ", ".join(parts)


def _text(where: Filter) -> str:
    """Return a filter as a person reads it: its JSON form, which has no ambiguities."""
    return "all" if where == EVERYTHING else json.dumps(where.to_json(), ensure_ascii=False)


def _show_due(settings: Settings, due: Iterable[Due], zone: Any, *, was_done: bool = False) -> None:
    found = list(due)
    if settings.as_json:
        print_json([each.to_json() for each in found])
        return
    rows = [
        (
            each.rule,
            each.action,
            f"{each.count:,}{f' ({each.left:,} stay)' if each.left else ''}",
            f"{each.bytes:,}",
            "" if each.oldest is None else each.oldest.astimezone(zone).date().isoformat(),
            ", ".join(each.samples),
        )
        for each in found
    ]
    render.show_rows(("rule", "action", "count", "bytes", "oldest", "first"), rows)
    records = sum(each.count for each in found if each.rule != FORMER_VERSIONS)
    versions = sum(each.count for each in found if each.rule == FORMER_VERSIONS)
    click.echo(f"{'removed' if was_done else 'due'}: {records:,} records, {versions:,} former versions")
