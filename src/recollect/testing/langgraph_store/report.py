"""Running of the cases on a factory, and tables of the results."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recollect.testing.langgraph_store.calls import Factory, Mode, Stores
from recollect.testing.langgraph_store.case import Basis, Case
from recollect.testing.langgraph_store.cases import CASES
from recollect.testing.langgraph_store.cases.checks import NotApplicableError

PASSED, SKIPPED = "ok", "not offered"
_MOST_SHOWN = 160
_BASES: tuple[Basis, ...] = ("documented", "reference", "recommended")


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The results of a store.

    Attributes:
        name: The name of the store.
        mode: Which of its calls were made.
        results: For the name of each case "ok", "not offered" where the factory does not take what it needs, or what
            was different.
    """

    name: str
    mode: Mode
    results: Mapping[str, str]

    @property
    def failed(self) -> dict[str, str]:
        """What was different, by the name of the case."""
        return {name: result for name, result in self.results.items() if result not in (PASSED, SKIPPED)}

    @property
    def conforms(self) -> bool:
        """True if it passes every documented case and every one on which the published stores agree."""
        return not any(case.basis != "recommended" and case.name in self.failed for case in CASES)

    def count(self, basis: Basis | None = None) -> tuple[int, int]:
        """Return how many cases were passed, and how many were run; of one basis, or of all."""
        names = [case.name for case in CASES if case.name in self.results and basis in (None, case.basis)]
        run = [name for name in names if self.results[name] != SKIPPED]
        return sum(self.results[name] == PASSED for name in run), len(run)

    def __str__(self) -> str:
        passed, run = self.count()
        lines = [f"{self.name} ({self.mode}): {passed} of {run} cases"]
        lines += [f"  {basis}: {' of '.join(map(str, self.count(basis)))}" for basis in _BASES]
        by_name = {case.name: case for case in CASES}
        lines += [f"  {by_name[name].sentence} ({by_name[name].basis}): {why}" for name, why in self.failed.items()]
        return "\n".join(lines)


def validate(
    factory: Factory, *, mode: Mode = "sync", name: str | None = None, cases: Iterable[Case] = CASES
) -> SuiteReport:
    """Run cases on the stores of a factory.

    Args:
        factory: Makes a store (see the package).
        mode: "sync" makes the synchronous calls, "async" the asynchronous ones.
        name: The name of the store in the report; default: that of the factory.
        cases: The cases to run.

    Returns:
        The results. Nothing is raised, whatever a store does.

    Raises:
        ValueError: There is no such mode.
    """
    if mode not in ("sync", "async"):
        raise ValueError(f'mode is "sync" or "async", not {mode!r}')
    offered = options_of(factory)
    results = {case.name: _result(case, factory, mode) if set(case.needs) <= offered else SKIPPED for case in cases}
    return SuiteReport(name or str(getattr(factory, "__name__", "store")), mode, results)


def options_of(factory: Factory) -> frozenset[str]:
    """Return which of "path", "index" and "ttl" a factory takes."""
    parameters = inspect.signature(factory).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return frozenset(("path", "index", "ttl"))
    return frozenset(parameters)


def _result(case: Case, factory: Factory, mode: Mode) -> str:
    try:
        with Stores(factory, mode) as stores:
            case.run(stores)
    except NotApplicableError:
        return SKIPPED
    except Exception as error:  # noqa: BLE001 - whatever a store raises is its result
        text = " ".join(str(error).split()) or "see the case"
        shown = text if isinstance(error, AssertionError) else f"{type(error).__name__}: {text}"
        return shown if len(shown) <= _MOST_SHOWN else f"{shown[: _MOST_SHOWN - 3]}..."
    return PASSED


def as_markdown(reports: Sequence[SuiteReport]) -> str:
    """Return a table of the results of several stores, by topic, as Markdown."""
    heads = [f"{report.name}" + (" (async)" if report.mode == "async" else "") for report in reports]
    lines = [
        f"| case | basis | {' | '.join(heads)} |",
        f"|---|---|{'---|' * len(reports)}",
    ]
    marks = {PASSED: "yes", SKIPPED: "–"}
    group = ""
    for case in CASES:
        if case.group != group:
            group = case.group
            lines.append(f"| **{group}** | |{' |' * len(reports)}")
        found = [marks.get(report.results.get(case.name, SKIPPED), "**no**") for report in reports]
        lines.append(f"| {case.sentence} | {case.basis} | {' | '.join(found)} |")
    for basis in (*_BASES, None):
        counts = [" of ".join(map(str, report.count(basis))) for report in reports]
        lines.append(f"| **{basis or 'all'}** | | {' | '.join(counts)} |")
    return "\n".join(lines) + "\n"
