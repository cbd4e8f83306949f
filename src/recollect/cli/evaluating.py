"""The command that evaluates on public data sets and compares two runs: eval (locomo, beam, memdaily, glossary)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from recollect.cli import render
from recollect.cli.app import Settings, app, common, print_json
from recollect.errors import StoreIOError
from recollect.evaluation.datasets import DataSet

F = TypeVar("F", bound=Callable[..., Any])
_SHOWN = ("n", "recall@5", "recall@10", "recall@25", "recall@50", "hit@10", "recall_all@10", "mrr", "ndcg@10")
_PATH = click.Path(path_type=Path)


@app.group("eval", invoke_without_command=True)
@click.option(
    "--diff", nargs=2, type=_PATH, metavar="BEFORE AFTER", help="Compare two files written by --per-question."
)
@click.option("--metric", default="recall@10", show_default=True, help="Metric that --diff compares.")
@common
@click.pass_context
def eval_(ctx: click.Context, settings: Settings, diff: tuple[Path, Path] | None, metric: str) -> None:
    """Measure recall on conversations with known evidence, in memory, with the default settings."""
    if diff is None:
        if ctx.invoked_subcommand is None:
            raise click.UsageError("name a data set (locomo, beam, memdaily, glossary), or --diff BEFORE AFTER")
        return
    from recollect.evaluation.run import differing

    changed = differing(*diff, metric)
    if settings.as_json:
        print_json([each._asdict() for each in changed])
        return
    worse = sum(each.after < each.before for each in changed)
    click.echo(f"{metric}: {len(changed) - worse} questions better, {worse} worse")
    render.table(
        (("before", {"justify": "right"}), ("after", {"justify": "right"}), ("category", {}), ("question", {})),
        (
            (
                f"{each.before:.3f}",
                f"{each.after:.3f}",
                each.category,
                render.plain(f"{each.namespace}: {each.question}"),
            )
            for each in changed
        ),
    )


def _budgets(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Parse budgets of tokens."""
    try:
        return tuple(int(part) for part in value.split(",")) if value else ()
    except ValueError:
        raise click.BadParameter("takes numbers of tokens, such as 500,2000") from None


def _measuring(command: F) -> F:
    """Add the options that all data sets have in common."""
    for option in (
        common,
        click.option("--plot", type=_PATH, metavar="FILE", help="Draw a PNG or SVG (needs matplotlib)."),
        click.option(
            "--answerability",
            is_flag=True,
            help="Also measure whether confidence separates answerable from unanswerable questions.",
        ),
        click.option(
            "--context",
            metavar="TOKENS,...",
            callback=_budgets,
            help="Also measure the share of the evidence that is in contexts of these budgets.",
        ),
        click.option("--seed", type=int, default=0, show_default=True, help="Seed for typing errors."),
        click.option(
            "--typos", type=float, default=0.0, metavar="P", help="Probability of a typing error in a long word."
        ),
        click.option(
            "--compare",
            default="",
            metavar="NAME,...",
            help="Also measure in the same run: fts5, bm25s, minilm, sdr, sdr-rule.",
        ),
        click.option("--per-question", type=_PATH, metavar="FILE", help="Write each question's result as JSON lines."),
    ):
        command = option(command)
    return command


@eval_.command()
@click.argument("file", type=_PATH)
@_measuring
def locomo(settings: Settings, file: Path, **options: Any) -> None:
    """Evaluate on LoCoMo's JSON FILE."""
    from recollect.evaluation import datasets

    _measure(settings, datasets.locomo(file), **options)


@eval_.command()
@click.argument("folder", type=_PATH)
@_measuring
def beam(settings: Settings, folder: Path, **options: Any) -> None:
    """Evaluate on a FOLDER of BEAM chats."""
    from recollect.evaluation import datasets

    _measure(settings, datasets.beam(folder), **options)


@eval_.command()
@click.argument("files", type=_PATH, nargs=-1, required=True)
@_measuring
def memdaily(settings: Settings, files: tuple[Path, ...], **options: Any) -> None:
    """Evaluate on MemDaily's JSON FILES."""
    from recollect.evaluation import datasets

    _measure(settings, datasets.memdaily(*files), **options)


@eval_.command()
@click.argument("folder", type=_PATH)
@common
def glossary(settings: Settings, folder: Path) -> None:
    """Evaluate the glossary on ambiguous abbreviations: a FOLDER of SDU@AAAI-21, with its diction.json.

    The share of sentences whose right expansion is the first, or among the first three, beside bm25s and the most
    frequent expansion, over five folds.
    """
    from recollect.evaluation.glossary import accuracies, read

    with _progress(settings.as_json) as progress:
        found = accuracies(read(folder), progress)
    if settings.as_json:
        print_json(found)
        return
    click.echo(f"sentences: {found['n']}, expansions of an abbreviation: {found['expansions']:.2f}")
    rows = [(name, *(f"{value:.3f}" for value in values.values())) for name, values in found["methods"].items()]
    render.show_rows(("method", "accuracy@1", "accuracy@3"), rows)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], object]]:
    """Show a progress bar if stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import Progress

    with Progress(console=render.console(stderr=True), transient=True) as bar:
        task = bar.add_task("asking", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _measure(
    settings: Settings,
    data: DataSet,
    per_question: Path | None,
    compare: str,
    typos: float,
    seed: int,
    answerability: bool,
    context: tuple[int, ...],
    plot: Path | None,
) -> None:
    from recollect.evaluation.answerability import answerability as measure_answerability
    from recollect.evaluation.contexts import coverage
    from recollect.evaluation.run import evaluate
    from recollect.memory.opening import open as open_memory

    for path in (per_question, plot):
        if path is not None and not path.parent.is_dir():  # checked before the long run
            raise StoreIOError(str(path), "its folder does not exist")
    peers = [name.strip() for name in compare.split(",") if name.strip()]
    with (
        open_memory(":memory:", embedder=settings.embedder or "none") as memory,
        _progress(settings.as_json) as progress,
    ):
        evaluation = evaluate(data, memory, peers=peers, typos=typos, seed=seed, progress=progress)
        result = evaluation.to_json()
        if answerability:
            result["answerability"] = measure_answerability(data, memory).to_json()
        if context:
            result["context"] = coverage(data, memory, context, peers=peers).to_json()
    if per_question is not None:
        lines = (json.dumps(answer.to_json(), ensure_ascii=False) for answer in evaluation.answers["recollect"])
        try:
            per_question.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        except OSError as error:
            raise StoreIOError(str(per_question), error.strerror or str(error)) from error
    if plot is not None:
        from recollect.evaluation.run import draw

        draw(result, plot)
    if settings.as_json:
        print_json(result)
    else:
        _show(data, result, evaluation.skipped)


def _show(data: DataSet, result: dict[str, Any], skipped: int) -> None:
    rows = {"all": result["overall"]}
    rows |= {" ".join([name, data.labels.get(name, "")]).strip(): row for name, row in result["by_category"].items()}
    for name, peer in result["compared"].items():
        rows[f"{name}: all"] = peer["overall"]
    render.table(
        (("per cent", {}), *((name, {"justify": "right"}) for name in _SHOWN)),
        (
            (label, *(str(row[name]) if name == "n" else f"{100 * row[name]:.1f}" for name in _SHOWN))
            for label, row in rows.items()
        ),
    )
    sessions = {name: value for name, value in result["overall"].items() if name.startswith("session_")}
    click.echo("sessions: " + ", ".join(f"{name[8:]} {100 * value:.1f}" for name, value in sessions.items()))
    for name, peer in result["compared"].items():
        differences = ", ".join(
            f"{metric} {100 * each['mean']:+.1f} [{100 * each['low']:+.1f}, {100 * each['high']:+.1f}]"
            for metric, each in peer["ours_minus_theirs"].items()
        )
        click.echo(f"recollect - {name}: {differences} (95 per cent interval, paired bootstrap)")
    times = [
        ("recollect", result["query_ms"]),
        *((name, each["query_ms"]) for name, each in result["compared"].items()),
    ]
    click.echo("; ".join(f"{name} {ms['p50']:.2f} ms per query (p95 {ms['p95']:.2f})" for name, ms in times))
    if (embedder := result["config"].get("embedder")) is not None:
        click.echo(f"with the vectors of {embedder}")
    if "context" in result:
        _show_coverage(result["context"])
    if "answerability" in result:
        found = result["answerability"]
        for name in ("wrong_conversation", "abstention"):
            if found[f"auroc_{name}"] is not None:
                click.echo(f"answerable against {name.replace('_', ' ')}: AUROC {found[f'auroc_{name}']:.3f}")
        kept = (
            f"at confidence {found['threshold']}: {100 * found['own_kept']:.1f} per cent of answerable questions kept"
        )
        if found["wrong_rejected"] is None:
            click.echo(f"{kept}; with one conversation, none is wrong")
        else:
            rejected = f"{100 * found['wrong_rejected']:.1f} per cent of those for a wrong conversation rejected"
            click.echo(f"{kept}, {rejected}")
    if skipped:
        click.echo(f"{skipped} questions were skipped because their evidence is not among the records", err=True)


def _show_coverage(found: dict[str, Any]) -> None:
    """Show the coverage of contexts: per cent of the evidence, and of it as whole turns where that differs."""

    def cells(row: dict[str, list[float]]) -> tuple[str, ...]:
        pairs = zip(row["covered"], row["whole"], strict=True)
        return tuple(
            f"{covered:.1f}" if covered == whole else f"{covered:.1f} ({whole:.1f})" for covered, whole in pairs
        )

    click.echo("per cent of the evidence in a context (as whole turns):")
    rows = [*found["methods"].items(), *found["by_category"].items()]
    render.table(
        (("tokens", {}), *((str(budget), {"justify": "right"}) for budget in found["budgets"])),
        ((name, *cells(row)) for name, row in rows),
    )
