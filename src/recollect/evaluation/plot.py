"""Plots of an evaluation: recall by depth, by category, and the reliability of confidence. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect.errors import StoreIOError
from recollect.evaluation.metrics import DEPTHS
from recollect.evaluation.retrievers import imported


def draw(result: dict[str, Any], path: Path) -> None:
    """Write the plot of `Evaluation.to_json()` (with "answerability", where that was asked) to a PNG or SVG file.

    Raises: UnsupportedError where matplotlib is not installed; StoreIOError where the file cannot be written.
    """
    imported("matplotlib").use("Agg")
    figure_kind = imported("matplotlib.figure").Figure
    reliability = result.get("answerability", {}).get("reliability")
    figure = figure_kind(figsize=(15 if reliability else 10, 4.2), layout="constrained")
    places = figure.subplots(1, 3 if reliability else 2)
    _depths(places[0], result)
    _categories(places[1], result["by_category"])
    if reliability:
        _reliability(places[2], reliability)
    figure.suptitle(f"{result['dataset']}: {result['overall']['n']} questions")
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise StoreIOError(str(path), str(error)) from None


def _depths(axes: Any, result: dict[str, Any]) -> None:
    curves = {"recollect": result["overall"]}
    curves |= {name: peer["overall"] for name, peer in result["compared"].items()}
    for name, overall in curves.items():
        axes.plot(DEPTHS, [100 * overall[f"recall@{k}"] for k in DEPTHS], marker="o", label=name)
    axes.set(xlabel="k", ylabel="recall@k, per cent", ylim=(0, 100), xticks=DEPTHS)
    axes.grid(alpha=0.3)
    axes.legend()


def _categories(axes: Any, categories: dict[str, Any]) -> None:
    names = list(reversed(categories))
    axes.barh(names, [100 * categories[name]["recall@10"] for name in names])
    axes.set(xlabel="recall@10, per cent", xlim=(0, 100))


def _reliability(axes: Any, bins: list[dict[str, float]]) -> None:
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
    axes.plot([each["confidence"] for each in bins], [each["answerable"] for each in bins], marker="o")
    axes.set(xlabel="confidence of the best hit", ylabel="share that is answerable", xlim=(0, 1), ylim=(0, 1))
    axes.grid(alpha=0.3)
