"""`python -m recollect.testing.langgraph_store MODULE:FACTORY ...` runs the suite on the stores of factories."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from recollect.testing.langgraph_store.calls import Factory, Mode
from recollect.testing.langgraph_store.report import SuiteReport, as_markdown, validate


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite; return 0 if every store passes what is documented and what the published stores agree on."""
    parser = argparse.ArgumentParser(prog="python -m recollect.testing.langgraph_store", description=__doc__)
    parser.add_argument(
        "factories",
        nargs="+",
        metavar="MODULE:FACTORY[=NAME]",
        help="makes a store; ':async' after it makes its asynchronous calls, and =NAME names it in the report",
    )
    parser.add_argument("--markdown", action="store_true", help="print one table instead of reports")
    parser.add_argument("--all", action="store_true", help="fail on recommended cases, too")
    stated = parser.parse_args(arguments)
    sys.path.insert(0, os.getcwd())
    reports = [_report(each) for each in stated.factories]
    print(as_markdown(reports) if stated.markdown else "\n\n".join(map(str, reports)))
    good = all(not report.failed if stated.all else report.conforms for report in reports)
    return 0 if good else 1


def _report(stated: str) -> SuiteReport:
    place, _, name = stated.partition("=")
    mode: Mode = "async" if place.endswith(":async") else "sync"
    module, _, attribute = place.removesuffix(":async").partition(":")
    try:
        factory: Factory = getattr(importlib.import_module(module), attribute)
    except (ModuleNotFoundError, AttributeError, ValueError) as error:
        raise SystemExit(f"{stated}: no such factory ({error}); it is stated as MODULE:FACTORY") from None
    return validate(factory, mode=mode, name=name or None)


if __name__ == "__main__":
    sys.exit(main())
