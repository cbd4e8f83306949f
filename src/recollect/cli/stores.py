"""The commands for a store on a server: store init, upgrade and check."""

from __future__ import annotations

from types import ModuleType

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json
from recollect.common.zones import name_of
from recollect.errors import InvalidArgumentError, MissingExtraError
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.memory.opening import PATH_VARIABLE, zone_of_new

_SCHEMES = ("postgresql://", "postgres://")


@app.group()
def store() -> None:
    """Create, upgrade and check a store on a PostgreSQL server."""


def _administration(address: str) -> ModuleType:
    if not address.startswith(_SCHEMES):
        rule = "must be postgresql://USER@HOST/DATABASE; a store in a file needs none of these commands"
        raise InvalidArgumentError("address", address, rule)
    try:
        from recollect.stores.postgres import administration
    except ImportError:
        raise MissingExtraError("a store on PostgreSQL", "psycopg", "postgres") from None
    return administration


@store.command()
@click.argument("address", envvar=PATH_VARIABLE)
@click.option("--grant", "roles", multiple=True, metavar="ROLE", help="A role that may use the store. May be repeated.")
@click.option("--zone", metavar="ZONE", help="The time zone of a new store; default: as of a new file.")
@click.option("--print-sql", is_flag=True, help="Print the statements and run none.")
@common
def init(settings: Settings, address: str, roles: tuple[str, ...], zone: str | None, print_sql: bool) -> None:
    """Create the tables of a store at ADDRESS, unless they are there, and grant their use to roles.

    Nodes that use the store need no right to create or change tables, and never do.
    """
    given = name_of(zone) if zone else None
    options = {"key": settings.key or PUBLIC_KEY, "zone": given or zone_of_new(), "roles": roles}
    administration = _administration(address)
    if print_sql:
        click.echo(administration.init_sql(address, **options), nl=False)
        return
    created = administration.init(address, **options, expected_zone=given)
    if settings.as_json:
        print_json({"created": created, "granted": list(roles)})
        return
    click.echo("the store was created" if created else "the store was there already")
    for role in roles:
        click.echo(f"{render.plain(role)} may use it")


@store.command()
@click.argument("address", envvar=PATH_VARIABLE)
@common
def upgrade(settings: Settings, address: str) -> None:
    """Bring the tables at ADDRESS to the format of this release. Older releases may then refuse to write to them."""
    before, after, added = _administration(address).upgrade(address, key=settings.key or PUBLIC_KEY)
    if settings.as_json:
        print_json({"before": before, "after": after, "added": list(added)})
        return
    if added:
        click.echo(f"added the tables that machines share: {', '.join(added)}")
    elif before == after:
        click.echo(f"the store has format {after}: nothing to do")
    if before != after:
        click.echo(f"the store had format {before} and has format {after} now")


@store.command()
@click.argument("address", envvar=PATH_VARIABLE)
@click.option("--quick", is_flag=True, help="Look at the server and its settings, and not at the contents.")
@common
def check(settings: Settings, address: str, quick: bool) -> None:
    """Check the store at ADDRESS and its server: contents, settings, rights and clock.

    The exit code is 1 if there are problems.
    """
    found = _administration(address).examine(address, key=settings.key or PUBLIC_KEY, contents=not quick)
    if settings.as_json:
        print_json({"facts": found.facts, "problems": found.problems, "advice": found.advice})
    else:
        for name, value in found.facts.items():
            click.echo(f"{name:28} {value}")
        for each in found.advice:
            click.echo(f"note: {render.plain(each)}")
        for each in found.problems:
            click.echo(f"problem: {render.plain(each)}")
        if not found.problems:
            click.echo("no problems" if not quick else "the contents were not checked")
    if found.problems:
        raise SystemExit(1)
