"""The command that finds the commit which changed an answer: bisect."""

from __future__ import annotations

import json
import os
import subprocess

import click

from recollect.calls.calls import zone_of_store
from recollect.calls.owners import Owners
from recollect.cli import render
from recollect.cli.app import (
    BRANCH_VARIABLE,
    NAMESPACE_VARIABLE,
    Settings,
    app,
    common,
    count_option,
    filter_options,
    print_json,
    time_of,
)
from recollect.engine.results import Hits
from recollect.errors import InvalidArgumentError
from recollect.filters.tree import Filter
from recollect.memory import Memory
from recollect.memory.bisection.calls import SAMPLES
from recollect.memory.bisection.values import Bisected
from recollect.memory.opening import PATH_VARIABLE
from recollect.operations import target_of

#: The environment variable of a command that judges an answer: the seq of the commit.
_AT_VARIABLE = "RECOLLECT_AT"
#: Exit codes of such a command, as `git bisect run` has them: cannot say, and the first of those that stop everything.
_SKIP, _STOP = 125, 128
#: How git names the newest commit.
_NEWEST = "HEAD"


@app.command()
@click.argument("question")
@click.option("--good", required=True, metavar="MOMENT", help="A moment with a good answer: HEAD, or as for --at.")
@click.option("--bad", metavar="MOMENT", help="A moment with a bad answer. Default: HEAD, the newest commit.")
@click.option("--expect", metavar="TEXT", help="An answer is good if one of its hits contains TEXT.")
@click.option("--command", metavar="CMD", help="A shell command that judges the hits, which it gets as JSON on stdin.")
@click.option("--last", is_flag=True, help="Search back from the end, for the newest change.")
@click.option("--all", "every", is_flag=True, help="Search all changes between the commits that are judged.")
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Number of commits at equal distances that are judged before. Default: {SAMPLES} with --all, else 0.",
)
@count_option(1)
@filter_options
@click.option(
    "--reference", metavar="ISO8601", help="Time of the question. Default: of each answer, the time of its commit."
)
@click.option("--language", metavar="TAG", help="Language of the question, such as de. Default: detected.")
@common
def bisect(
    settings: Settings,
    question: str,
    good: str,
    bad: str | None,
    expect: str | None,
    command: str | None,
    last: bool,
    every: bool,
    samples: int | None,
    k: int,
    where: Filter | None,
    owners: Owners,
    reference: str | None,
    language: str | None,
) -> None:
    """Find the commit that changed the answer to QUESTION from good to bad, and why.

    Without --expect and --command, an answer is good if its first hit is that at the good moment, with the same text.
    If the good moment is later than the bad one, the commit that made the answer good is found.

    CMD says by its exit code what the answer is, as for `git bisect run`: 0 good, 125 cannot say, 1 to 127 bad; any
    other one stops. Its environment has RECOLLECT_AT, the number of the commit, RECOLLECT_DB, RECOLLECT_NAMESPACE and
    RECOLLECT_BRANCH.
    """
    with settings.open() as memory:
        zone = zone_of_store(memory)
        found = memory.bisect(
            question,
            memory.seq if good == _NEWEST else target_of(good, zone),
            None if bad is None or bad == _NEWEST else target_of(bad, zone),
            expect=expect,
            judge=None if command is None else _Command(command, settings, memory),
            k=k,
            last=last,
            all=every,
            samples=samples,
            where=where,
            reference=None if reference is None else time_of("reference", reference, None),
            language=language,
            **owners.named,
        )
        if settings.as_json:
            print_json(found.to_json())
            return
        _show(found, memory)


class _Command:
    """A shell command that judges answers.

    Args:
        command: The command.
        settings: Those of the command line: they name the store.
        memory: The memory.
    """

    def __init__(self, command: str, settings: Settings, memory: Memory) -> None:
        self._command = command
        store = settings.db or os.environ.get(PATH_VARIABLE) or str(memory.stats()["store"]["path"])
        place = {NAMESPACE_VARIABLE: settings.namespace, BRANCH_VARIABLE: memory.branch_name}
        self._environment = {**os.environ, PATH_VARIABLE: store, **place}

    def __call__(self, hits: Hits) -> bool | None:
        """Return whether the hits are good; None if the command cannot say.

        Raises:
            InvalidArgumentError: Its exit code is none of a verdict, or a signal ended it.
        """
        done = subprocess.run(
            self._command,
            shell=True,
            check=False,
            input=json.dumps(hits.to_json(), ensure_ascii=False).encode(),
            stdout=2,  # what it prints is no part of the result
            env={**self._environment, _AT_VARIABLE: str(hits.watermark)},
        )
        if not 0 <= done.returncode < _STOP:
            rule = f"ended with {done.returncode} at commit {hits.watermark}: 0 is good, 125 skips, 1 to 127 are bad"
            raise InvalidArgumentError("command", self._command, rule)
        return None if done.returncode == _SKIP else done.returncode == 0


def _show(found: Bisected, memory: Memory) -> None:
    click.echo(str(found))
    if found.commit is not None:
        by = ": ".join(render.plain(each) for each in (found.commit.actor, found.commit.reason) if each)
        click.echo(f"  {render.moment(found.commit.time, zone_of_store(memory))}  {by}".rstrip())
    short = render.short_ids(each.id for each in found.why)
    for each in found.why:
        click.echo(f"  {short[each.id]}  {render.plain(str(each), 300)}")
    click.echo(f"recalls: {found.calls}{f', skipped commits: {len(found.skipped)}' if found.skipped else ''}")
    if found.flips_seen > 1:
        changes = ", ".join(str(flip.seq or f"{min(flip) + 1} to {max(flip)}") for flip in found.flips)
        click.echo(f"the answer changed {found.flips_seen} times: at {changes}")
