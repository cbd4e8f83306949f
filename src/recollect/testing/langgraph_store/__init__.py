"""A conformance suite for LangGraph stores: what every `BaseStore` should do, as cases with the basis of each.

    from contextlib import contextmanager
    from recollect.testing.langgraph_store import validate

    @contextmanager
    def store():
        yield MyStore()

    print(validate(store))

It needs `langgraph-checkpoint` and none of the rest of this package. `python -m recollect.testing.langgraph_store
MODULE:FACTORY` runs it, and `StoreConformance` is the same as a class of tests for pytest.

A factory returns a store, or a context manager or asynchronous context manager of one. It may take by name `path` (a
folder that stays, so that a second store can open what a first one stored), `index` (an `IndexConfig`) and `ttl` (a
`TTLConfig`): cases that need what it does not take are skipped.
"""

from typing import TYPE_CHECKING

from recollect.testing.langgraph_store.calls import Factory, Mode
from recollect.testing.langgraph_store.case import Basis, Case
from recollect.testing.langgraph_store.cases import CASES
from recollect.testing.langgraph_store.report import SuiteReport, as_markdown, validate

if TYPE_CHECKING:
    from recollect.testing.langgraph_store.conformance import StoreConformance

__all__ = ["CASES", "Basis", "Case", "Factory", "Mode", "StoreConformance", "SuiteReport", "as_markdown", "validate"]


def __getattr__(name: str) -> object:
    if name == "StoreConformance":  # only this needs pytest
        from recollect.testing.langgraph_store.conformance import StoreConformance

        return StoreConformance
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
