"""Plots of results: latency and memory by size, throughput of writes, hit rates of nodes. Needs matplotlib.

A result is the output of `--json`, or a file of `python -m bench all`; it contains the name of its command.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from bench.peers import library

Result = dict[str, Any]
Points = dict[str, list[tuple[float, float]]]


def read(paths: Iterable[Path]) -> list[Result]:
    """The results in files, and in the files of folders."""
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def latencies(results: Sequence[Result], figure: str = "p50_ms") -> Points:
    """Name -> (records, milliseconds), by rising size, of the recalls."""
    out: Points = {}
    for result in results:
        if result["command"] == "recall":
            for name, figures in result.items():
                if isinstance(figures, dict) and figure in figures:
                    out.setdefault(name, []).append((result["records"], figures[figure]))
        elif result["command"] == "once":
            for name, figures in result["peers"].items():
                if figure in figures:
                    out.setdefault(f"{name} (vectors)", []).append((result["records"], figures[figure]))
    return {name: sorted(points) for name, points in out.items()}


def stages(results: Sequence[Result]) -> Points:
    """Part of our recall -> (records, milliseconds), by rising size, of recalls over conversations."""
    out: Points = {}
    for result in results:
        if result["command"] == "recall" and result.get("corpus", "").startswith("conversations"):
            for name, ms in result["recollect"].get("stages_ms", {}).items():
                out.setdefault(name, []).append((result["records"], ms))
    return {name: sorted(points) for name, points in out.items()}


def memories(results: Sequence[Result]) -> Points:
    """Name -> (records, MiB), by rising size."""
    out: Points = {}
    for result in results:
        if result["command"] == "open":
            stored = result["rss_bytes"] - result["rss_empty_bytes"]
            out.setdefault("recollect", []).append((result["records"], stored / 2**20))
        elif result["command"] == "once":
            for name, figures in result["peers"].items():
                stored = figures.get("rss_bytes_per_record", 0.0) * result["records"]
                if stored > 0:
                    out.setdefault(name, []).append((result["records"], stored / 2**20))
    return {name: sorted(points) for name, points in out.items()}


def throughputs(results: Sequence[Result]) -> dict[str, float]:
    """What is written -> per second, of the last result of each kind; ours first."""
    ours: dict[str, float] = {}
    peers: dict[str, float] = {}
    for result in results:
        if result["command"] == "write":
            ours["recollect: one by one"] = 1000 / result["recollect_ms"]
            ours["recollect: eight threads"] = result["threads8_per_s"]
            ours["recollect: many at once"] = result["bulk_store_per_s"]
            ours["recollect: many at once, searchable"] = result["bulk_per_s"]
            peers["bare append and fdatasync"] = 1000 / result["raw_fsync_ms"]
        elif result["command"] == "once":
            for name, figures in result["peers"].items():
                if "bulk_per_s" in figures:
                    peers[f"{name}: many at once"] = figures["bulk_per_s"]
    return ours | peers


def occurrences(results: Sequence[Result]) -> Points:
    """Number of terms -> (characters, milliseconds), by rising size, of finding terms in a text."""
    out: Points = {}
    for result in results:
        for each in result["growth"] if result["command"] == "glossary" else ():
            out.setdefault(f"{each['terms']:,} terms", []).append((each["characters"], each["ms"]))
    return {name: sorted(points) for name, points in out.items()}


def swarms(results: Sequence[Result]) -> Points:
    """What is counted -> (agents, value), by the number of agents."""
    out: Points = {}
    for result in results:
        for each in result["growth"] if result["command"] == "swarm" else ():
            out.setdefault("operations a second", []).append((each["agents"], each["operations_per_s"]))
            out.setdefault("memory of the process, MiB", []).append((each["agents"], each["peak_mib"]))
    return {name: sorted(points) for name, points in out.items()}


def hit_rates(results: Sequence[Result]) -> Points:
    """Exponent of the load -> (minute, per cent of recalls that found the index in memory)."""
    out: Points = {}
    for result in results:
        if result["command"] == "size --simulate":
            load, points = result["load"], []
            for phase in result["phases"]:
                each = load["interval_s"] / len(phase["hit_rates"])
                points += [
                    ((phase["begun_s"] + at * each) / 60, 100 * rate) for at, rate in enumerate(phase["hit_rates"])
                ]
            larger = ", asked most are largest" if load["by_load"] else ""
            out[f"Zipf {load['zipf']:g}{larger}"] = points
    return out


def events_of(results: Sequence[Result]) -> dict[float, str]:
    """Minute -> what happens then, of the first simulation."""
    for result in results:
        if result["command"] == "size --simulate":
            return {phase["begun_s"] / 60: phase["event"] for phase in result["phases"][1:]}
    return {}


def plot(paths: Iterable[Path], folder: Path) -> list[Path]:
    """Write a picture for each kind of results that is there, such as latency.svg and nodes.svg; what was written.

    Raises: PeerMissingError where matplotlib is not installed.
    """
    results = read(paths)
    folder.mkdir(parents=True, exist_ok=True)
    written = [
        _against_size(latencies(results), "median of a question, ms", folder / "latency.svg"),
        _against_size(stages(results), "mean of a question, ms", folder / "stages.svg"),
        _against_size(memories(results), "resident memory, MiB", folder / "memory.svg"),
        _bars(throughputs(results), "records a second", folder / "writes.svg"),
        _against_size(occurrences(results), "finding all terms in a text, ms", folder / "annotate.svg", "characters"),
        _against_size(swarms(results), "of one process", folder / "swarm.svg", "agents"),
        _outage(results, folder / "outage.svg"),
        _against_time(hit_rates(results), events_of(results), folder / "nodes.svg"),
    ]
    return [path for path in written if path is not None]


def _figure() -> tuple[Any, Any]:
    library("matplotlib").use("Agg")
    # The same bytes for the same results: without a date, and with ids that are not random.
    library("matplotlib").rcParams["svg.hashsalt"] = "recollect"
    figure = library("matplotlib.figure").Figure(figsize=(9, 5), layout="constrained")
    return figure, figure.subplots()


def _against_size(points: Points, label: str, path: Path, size: str = "records") -> Path | None:
    if not points:
        return None
    figure, axes = _figure()
    # Ours first, and so in the first colour; more marks than colours, so that none looks like another.
    for name, mark in zip(sorted(points, key=lambda name: name != "recollect"), cycle("os^vDP*X<>p")):
        width = 3 if name == "recollect" else 1.2
        axes.plot(*zip(*points[name], strict=True), marker=mark, label=name, linewidth=width)
    axes.set(xscale="log", yscale="log", xlabel=size, ylabel=label)
    axes.grid(alpha=0.3, which="both")
    figure.legend(loc="outside right upper", fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    return path


def _outage(results: Sequence[Result], path: Path) -> Path | None:
    found = next((each for each in results if each["command"] == "outage"), None)
    if found is None:
        return None
    figure, axes = _figure()
    width = found["bar_s"]
    times = [number * width for number in range(len(found["per_bar"]))]
    axes.bar(times, found["per_bar"], width=width, align="edge")
    for name, at in found["events"].items():
        axes.axvline(at, color="black", linewidth=1)
        axes.annotate(name, (at, 1.01), xycoords=("data", "axes fraction"), rotation=20, fontsize="small")
    axes.set(xlabel="seconds", ylabel=f"answers in {width:g} s")
    figure.savefig(path, metadata={"Date": None})
    return path


def _against_time(points: Points, events: dict[float, str], path: Path) -> Path | None:
    if not points:
        return None
    figure, axes = _figure()
    for name in sorted(points):
        axes.plot(*zip(*points[name], strict=True), label=name, linewidth=1.5)
    for minute, event in events.items():
        axes.axvline(minute, color="grey", linewidth=0.8, linestyle="--")
        axes.annotate(f" {event}", (minute, 1), xycoords=("data", "axes fraction"), va="top", fontsize="small")
    axes.set(xlabel="minutes", ylabel="recalls with the index in memory, per cent")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    return path


def _bars(values: dict[str, float], label: str, path: Path) -> Path | None:
    if not values:
        return None
    figure, axes = _figure()
    bars = axes.barh(list(reversed(values)), list(reversed(values.values())))
    axes.bar_label(bars, fmt="{:,.0f}", padding=3)
    axes.set(xscale="log", xlabel=label)
    figure.savefig(path, metadata={"Date": None})
    return path
