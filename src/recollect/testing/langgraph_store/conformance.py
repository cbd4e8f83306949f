"""`StoreConformance`: the suite as a class of tests for pytest.

class TestMyStore(StoreConformance):
    @pytest.fixture
    def factory(self):
        return my_factory
"""

from __future__ import annotations

import pytest

from recollect.testing.langgraph_store.calls import Factory, Mode, Stores
from recollect.testing.langgraph_store.case import Case
from recollect.testing.langgraph_store.cases import CASES
from recollect.testing.langgraph_store.cases.checks import NotApplicableError
from recollect.testing.langgraph_store.report import options_of


class StoreConformance:
    """Each case in each mode is a test. A subclass has a fixture `factory`, and may state `modes` and `left_out`."""

    #: Which calls of the stores are made.
    modes: tuple[Mode, ...] = ("sync", "async")
    #: The names of cases that are not run, each with the reason.
    left_out: dict[str, str] = {}  # noqa: RUF012 - a subclass has its own

    @pytest.mark.parametrize("mode", ["sync", "async"])
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    def test_case(self, factory: Factory, case: Case, mode: Mode) -> None:
        """The store behaves as the case says."""
        if mode not in self.modes:
            pytest.skip(f"{mode} calls are not tested")
        if case.name in self.left_out:
            pytest.skip(self.left_out[case.name])
        if not set(case.needs) <= options_of(factory):
            pytest.skip(f"the factory does not take {', '.join(case.needs)}")
        try:
            with Stores(factory, mode) as stores:
                case.run(stores)
        except NotApplicableError as error:
            pytest.skip(str(error))
