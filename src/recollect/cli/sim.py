"""The commands of the simulator: sim run, list, report, check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json
from recollect.cli.files import write_file
from recollect.errors import InvalidArgumentError, RecollectError, StoreIOError

if TYPE_CHECKING:
    from recollect.sim.report import TraceReport

_TRACE = click.Path(path_type=Path, exists=True, dir_okay=False)


@app.group()
def sim() -> None:
    """Simulate agents that share memory, while messages are lost and agents lie."""


@sim.command("run")
@click.argument("scenario", metavar="FILE-or-NAME")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed. Default: that of the scenario.")
@click.option(
    "-o",
    "--output",
    metavar="TRACE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the trace. Default: that of the scenario, if it names one.",
)
@click.option(
    "--recording",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Recorded answers of a chat model, for agents whose brain is one.",
)
@common
def run_(settings: Settings, scenario: str, seed: int | None, output: Path | None, recording: Path | None) -> None:
    """Run a scenario: a YAML file, or a built-in one by its name (see `recollect sim list`)."""
    from recollect.sim import RecordedModel, Scenario, run

    _check_no_store(settings)
    read = Scenario.load(scenario)
    if recording is not None and read.brain != "chat":
        raise InvalidArgumentError("recording", str(recording), "is for agents whose brain is chat")
    chat = None if recording is None else RecordedModel(recording)
    path = output
    if path is None and read.trace is not None:
        path = Path(read.trace)
        _make_folder(path.parent)
    if path is None and read.report is not None:
        raise InvalidArgumentError(
            "output.report", read.report, "is drawn from a trace: name output.trace, or -o TRACE"
        )
    if path is None:
        result = run(read, seed, chat=chat)
    else:
        result = write_file(path, lambda file: run(read, seed, file, chat=chat), "", replaces=_is_trace, kind="a trace")
    if read.report is not None:
        assert path is not None
        _write_picture(Path(read.report), path)
    if settings.as_json:
        print_json({**result.to_json(), "trace": None if path is None else str(path)})
        return
    click.echo(f"{render.plain(result.name)}: {result.agents} agents, seed {result.seed}, {result.time:g} ticks")
    render.show_rows(("event", "count"), [(kind, str(count)) for kind, count in result.counts.items()])
    if result.ended == "time":
        click.echo("ended by its duration: more was left to happen")
    if path is not None:
        click.echo(f"trace: {render.plain(str(path))} (sha256 {result.sha256})")


@sim.command("list")
@common
def list_(settings: Settings) -> None:
    """List the built-in scenarios, and what each shows."""
    from recollect.sim import Scenario, scenario_names

    found = [Scenario.load(name) for name in scenario_names()]
    if settings.as_json:
        print_json([{"name": each.name, "description": each.description} for each in found])
    else:
        render.show_rows(("name", "description"), [(each.name, each.description) for each in found])


@sim.command()
@click.argument("trace", type=_TRACE)
@click.option(
    "-o",
    "--output",
    metavar="FOLDER or FILE.svg",
    type=click.Path(path_type=Path),
    help="Write the picture (FILE.svg), or the picture and the tables (FOLDER: memory.svg, report.json).",
)
@common
def report(settings: Settings, trace: Path, output: Path | None) -> None:
    """Show what the trace TRACE comes to: messages, losses, memory events by role, and sizes over time."""
    from recollect.sim.report import report_of

    found = report_of(trace)
    written = [] if output is None else _write_report(output, found)
    if settings.as_json:
        print_json({**found.to_json(), "written": [str(path) for path in written]})
        return
    _show(found)
    for path in written:
        click.echo(f"written: {render.plain(str(path))}")


@sim.command()
@click.argument("trace", type=_TRACE)
@click.option("--scenario", metavar="NAME", help="The task whose rules apply. Default: that of the trace.")
@common
@click.pass_context
def check(ctx: click.Context, settings: Settings, trace: Path, scenario: str | None) -> None:
    """Judge the trace TRACE by the validators of its task. Exit with 1 if one fails."""
    from recollect.sim import read_trace
    from recollect.sim.validators import validate_trace

    of_trace = str(next(read_trace(trace), {}).get("task", ""))
    if scenario is not None and of_trace and scenario != of_trace:
        raise InvalidArgumentError("--scenario", scenario, f"is not the task of this trace, which is {of_trace!r}")
    verdicts = list(validate_trace(trace, scenario or of_trace))
    if not verdicts:
        advice = "of a trace" if of_trace or scenario else "of a trace without a header: name its task with --scenario"
        raise InvalidArgumentError("task", scenario or of_trace, f"has no validators; it is that {advice}")
    if settings.as_json:
        print_json([{"name": name, "passed": passed, "detail": detail} for name, passed, detail in verdicts])
    else:
        rows = [("passed" if passed else "FAILED", name, detail) for name, passed, detail in verdicts]
        render.show_rows(("", "validator", "detail"), rows)
    if not all(passed for _, passed, _ in verdicts):
        ctx.exit(1)


def _check_no_store(settings: Settings) -> None:
    """Raise InvalidArgumentError if an option of a store was stated, which a simulation does not have."""
    for name, value in (("db", settings.db), ("embedder", settings.embedder)):
        if value:
            raise InvalidArgumentError(
                name, value, "cannot be used here: the scenario names the memory (layers.memory)"
            )


def _show(found: TraceReport) -> None:
    limits = ", ".join(f"{name} {value}" for name, value in found.limits.items()) or "none"
    click.echo(f"{render.plain(found.name)}: {len(found.agents)} agents, seed {found.seed}, limits: {limits}")
    for heading, table in (("messages", found.messages), ("memory", found.memory)):
        if table:
            click.echo()
            _show_by_role(heading, table)
    if found.losses:
        click.echo("\nlost: " + ", ".join(f"{why} {count}" for why, count in found.losses.items()))
    click.echo()
    rows = [(f"{time:g}", str(entries), str(size)) for time, entries, size in found.sampled()]
    render.show_rows(("ticks", "entries", "bytes"), rows)


def _show_by_role(heading: str, table: Mapping[str, Mapping[str, int]]) -> None:
    roles = list(table)
    kinds = sorted({kind for counts in table.values() for kind in counts})
    rows: list[Sequence[str]] = [(kind, *(str(table[role].get(kind, 0)) for role in roles)) for kind in kinds]
    render.show_rows((heading, *map(render.plain, roles)), rows)


def _write_report(output: Path, found: TraceReport) -> list[Path]:
    from recollect.sim.report import svg_of

    files: dict[Path, str] = {}
    if output.suffix.lower() == ".svg" and not output.is_dir():
        files[output] = svg_of(found)
    else:
        import json

        _make_folder(output)
        files[output / "memory.svg"] = svg_of(found)
        files[output / "report.json"] = json.dumps(found.to_json(), indent=2) + "\n"
    for path, text in files.items():
        _write_text(path, text)
    return list(files)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreIOError(str(path), error.strerror or str(error)) from None


def _write_picture(path: Path, trace: Path) -> None:
    from recollect.sim.report import report_of, svg_of

    _make_folder(path.parent)
    _write_text(path, svg_of(report_of(trace)))


def _write_text(path: Path, text: str) -> None:
    kind = "a report" if path.suffix == ".json" else "a picture"
    write_file(path, lambda file: file.write(text), "", replaces=_is_report, kind=kind)


def _is_trace(path: Path) -> bool:
    """Return whether a file may be replaced by a trace: it is empty, or is one."""
    from recollect.sim import read_trace

    try:
        return next(read_trace(path), {"kind": "scenario"})["kind"] == "scenario"
    except RecollectError:
        return False


def _is_report(path: Path) -> bool:
    """Return whether a file may be replaced by a report: it is a picture, or such a file."""
    begin: Any = b'{\n  "name"' if path.suffix == ".json" else b"<svg"
    with path.open("rb") as file:
        return file.read(len(begin)) in (begin, b"")
