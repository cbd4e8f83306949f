"""The command that says how large a deployment on PostgreSQL must be: size."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import click

from recollect.cli import render
from recollect.cli.app import BytesText, Settings, app, common, print_json
from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError

if TYPE_CHECKING:
    from recollect.sizing import Phase, Simulated, SizePlan

F = TypeVar("F", bound=Callable[..., Any])
_COUNT = regex(r"[0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?", re.IGNORECASE)


class CountText(click.ParamType[int]):
    """A count, which may be written as 1e9 or 1_000_000."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).replace("_", "").replace(",", "")
        if _COUNT.fullmatch(text) is None or not float(text).is_integer():
            self.fail(f"{value!r} is not a count, such as 1000000 or 1e9", param, ctx)
        return int(Decimal(text))


#: The options of both, those of a plan, and those of a simulation.
_BOTH = (
    ("--records", CountText(), "N", "Records of all namespaces together."),
    ("--namespaces", CountText(), "M", "Number of namespaces. Default: 1; with --simulate 1000000."),
    ("--text-chars", float, "N", "Mean length of a text, in characters. Default: 110."),
    ("--zipf", float, "S", "Exponent of a Zipf load, in place of --active. Default with --simulate: 1.1."),
    ("--recalls-per-second", float, "N", "Recalls a second, of all nodes. Default: 0; with --simulate 300."),
    ("--node-memory", BytesText(), "SIZE", "Memory of a node. Default: 24GiB."),
)
_OF_PLAN = (
    ("--vectors", int, "DIM", "Components of a vector. Default: no vectors."),
    ("--active", float, "SHARE", "Share of the namespaces whose indexes are in memory. Default: 1."),
    ("--hit-rate", float, "SHARE", "Share of recalls that find the index in memory, for --zipf. Default: 0.95."),
    ("--writes-per-second", float, "N", "Single writes a second. Default: 0."),
    ("--batched", bool, None, "Records are written in batches of hundreds, and not one by one."),
    ("--node-cores", int, "N", "Cores of a node, each of which has a process of its own. Default: 4."),
    ("--replicas", int, "N", "Standbys of the PostgreSQL server. Default: 1."),
    ("--spare", int, "NODES", "Nodes that may be lost without a lack. Default: 1."),
)
_OF_SIMULATION = (
    ("--nodes", int, "K", "Nodes, each of which has one process. Default: 12."),
    ("--event", str, "EVENT", "What ends each phase: die, join or nodes=K. May be repeated. Default: die, join."),
    ("--interval", float, "SECONDS", "Seconds of each phase. Default: 1800."),
    ("--by-load", bool, None, "The namespaces that are asked most have the most records."),
    ("--shared-from", int, "N", "Records from which on an index is loaded and not built. Default: 100."),
    ("--seed", int, "N", "Seed of sizes and recalls. Default: 0."),
)
#: Option -> the field of `Needs` and `Load`, where the names differ.
_FIELDS = {
    "recalls_per_second": "recalls_per_s",
    "writes_per_second": "writes_per_s",
    "event": "events",
    "interval": "interval_s",
}
_Option = tuple[str, Any, str | None, str]


def _names(options: Sequence[_Option]) -> list[str]:
    return [option[0].removeprefix("--").replace("-", "_") for option in options]


def _with(*options: _Option) -> Callable[[F], F]:
    """Add options to a command. What is not stated is None, or () or False: `Needs` and `Load` have the defaults."""

    def add(command: F) -> F:
        for name, kind, metavar, text in reversed(options):
            if kind is bool:
                command = click.option(name, is_flag=True, help=text)(command)
            else:
                several = name == "--event"
                command = click.option(name, type=kind, metavar=metavar, multiple=several, help=text)(command)
        return command

    return add


@app.command()
@_with(*_BOTH, *_OF_PLAN)
@click.option("--simulate", is_flag=True, help="Replay a load over nodes that cache indexes, die and join.")
@_with(*_OF_SIMULATION)
@common
def size(settings: Settings, simulate: bool, **options: Any) -> None:
    """Compute the disk, memory and nodes that a store on PostgreSQL needs, from measured constants.

    With --simulate, replay a load over nodes: how often an index is in memory, and what moves when a node dies.
    """
    stated = {name: value for name, value in options.items() if value not in (None, ()) and value is not False}
    _check(settings, stated, simulate)
    given = {_FIELDS.get(name, name): value for name, value in stated.items()}
    if simulate:
        _simulate(settings, given)
        return
    from recollect.sizing import Needs, plan_of

    plan = plan_of(Needs(**given))
    if settings.as_json:
        print_json(plan.to_json())
    else:
        _show_plan(plan)


def _check(settings: Settings, stated: Mapping[str, Any], simulate: bool) -> None:
    """Raise an error if an option was stated that is not used, or one is missing."""
    for name, value in (("db", settings.db), ("embedder", settings.embedder)):
        if value:
            raise InvalidArgumentError(name, value, "cannot be used here: no store is opened")
    for name in _names(_OF_PLAN if simulate else _OF_SIMULATION):
        if name in stated:
            rule = "cannot be used with --simulate" if simulate else "requires --simulate"
            raise click.UsageError(f"--{name.replace('_', '-')} {rule}.")
    if not simulate and "records" not in stated:
        raise click.UsageError("Missing option '--records'.")
    if "active" in stated and "zipf" in stated:
        raise click.UsageError("--active cannot be used with --zipf: state one of them.")
    if "hit_rate" in stated and "zipf" not in stated:
        raise click.UsageError("--hit-rate requires --zipf.")


def _simulate(settings: Settings, given: dict[str, Any]) -> None:
    from recollect.sizing import Load, index_limit, simulate

    memory = given.pop("node_memory", 24 * 2**30)
    load = Load(**given)
    limit = index_limit(memory, load.records / load.namespaces, load.text_chars)
    with render.progress("simulating", quiet=settings.as_json):
        found = simulate(replace(load, index_bytes=limit))
    if settings.as_json:
        print_json(found.to_json())
    else:
        _show_simulated(found)


def _show_plan(plan: SizePlan) -> None:
    needs, number = plan.needs, {"justify": "right"}
    click.echo(
        f"{needs.records:,} records in {needs.namespaces:,} namespaces, {needs.text_chars:g} characters a text\n"
    )
    parts = [
        (part, _bytes(nbytes), f"{nbytes / needs.records:,.0f}", _bytes(plan.compacted[part]))
        for part, nbytes in plan.postgresql.items()
    ]
    a_record = f"{plan.postgresql_bytes / needs.records:,.0f}"
    total = ("one server", _bytes(plan.postgresql_bytes), a_record, _bytes(plan.compacted_bytes))
    and_standbys = f"and {needs.replicas} standby{'' if needs.replicas == 1 else 's'}"
    servers = (and_standbys, _bytes(plan.all_servers_bytes), "", _bytes(plan.compacted_bytes * (1 + needs.replicas)))
    columns: list[tuple[str, dict[str, Any]]]
    columns = [("PostgreSQL", {}), ("bytes", number), ("a record", number), ("compacted", number)]
    render.table(columns, [*parts, total, servers])
    click.echo()
    rows = [
        ("WAL a day", _bytes(plan.wal_bytes_a_day)),
        ("namespaces in memory", f"{plan.active_namespaces:,.0f}"),
        ("memory of word indexes", f"{_bytes(plan.index_bytes)} (counted {_bytes(plan.index_bytes_counted)})"),
        ("memory of vectors", _bytes(plan.vector_bytes)),
        ("cores for recalls, for writes", f"{plan.recall_cores:.1f}, {plan.write_cores:.1f}"),
        ("cores of the PostgreSQL server", f"{plan.server_cores:.1f}"),
        ("nodes by memory, by processor", f"{plan.nodes_by_memory}, {plan.nodes_by_processor}"),
        ("nodes, with the spare ones", str(plan.nodes)),
        ("connections", f"{plan.connections:,}"),
        ("--index-bytes of each process", _bytes(plan.index_bytes_a_process)),
    ]
    if plan.vector_bytes_a_process:
        rows.append(("--vector-bytes of each process", _bytes(plan.vector_bytes_a_process)))
    at_most = f"{plan.largest_namespace_a_process:,} records, first recall {plan.largest_cold_s:.1f} s"
    rows.append(("a namespace should have at most", at_most))
    render.table((("nodes", {}), ("", number)), rows)
    for note in plan.notes:
        click.echo(f"note: {note}")


def _show_simulated(found: Simulated) -> None:
    load, number = found.load, {"justify": "right"}
    click.echo(
        f"{load.records:,} records in {load.namespaces:,} namespaces (the largest has {found.largest:,}), "
        f"Zipf {load.zipf:g}, {load.recalls_per_s:,.0f} recalls/s, seed {load.seed}\n"
        f"{_bytes(load.index_bytes)} of indexes a node, {found.cached:,} namespaces in memory at the beginning\n"
    )
    rows: dict[str, list[str]] = {}
    for phase in found.phases:
        for name, text in _of_phase(phase):
            rows.setdefault(name, []).append(text)
    phases: list[tuple[str, dict[str, Any]]] = [("", {}), *((phase.event, number) for phase in found.phases)]
    render.table(phases, [(name, *texts) for name, texts in rows.items()])
    if any(phase.busiest >= 1 for phase in found.phases):
        click.echo("note: the busiest node has more work than time: its queue grows, and so do the times of recalls")


def _of_phase(phase: Phase) -> list[tuple[str, str]]:
    """Return what is shown of a phase, as (name, value)."""
    back = "-" if phase.event == "start" else "not reached"
    return [
        ("nodes", str(phase.nodes)),
        ("namespaces, max / mean", f"{phase.namespaces_max_over_mean:.3f}"),
        ("recalls, max / mean", f"{phase.recalls_max_over_mean:.2f}"),
        ("load of the busiest node", f"{phase.busiest:.0%}"),
        ("namespaces moved", f"{phase.moved:,}"),
        ("between living nodes", f"{phase.moved_between_living:,}"),
        ("moved, in memory before", f"{phase.moved_hot:,}"),
        ("hit rate, first sixtieth", f"{phase.hit_rate_first:.1%}"),
        ("hit rate, second half", f"{phase.hit_rate:.1%}"),
        ("seconds until within a point", back if phase.recovered_s is None else f"{phase.recovered_s:,.0f}"),
        ("built / s", f"{phase.built_per_s:.1f}"),
        ("from the shared table / s", f"{phase.table_per_s:.1f}"),
        ("from the folder / s", f"{phase.file_per_s:.1f}"),
        ("cores for these", f"{phase.cold_cores:.1f}"),
        ("recall p50, ms", f"{phase.p50_ms:,.1f}"),
        ("recall p99, ms", f"{phase.p99_ms:,.0f}"),
    ]


def _bytes(number: float) -> str:
    """Return a number of bytes for people, in powers of 1,024.

    >>> _bytes(0), _bytes(1536), _bytes(2**41)
    ('0 B', '1.5 KiB', '2.0 TiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:,.1f} TiB"
