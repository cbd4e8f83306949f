"""The conformance suite on our stores, and what it does to stores that differ."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langgraph.store.memory import InMemoryStore
from tests.frameworks.langgraph_store import factories

from recollect.compat.langgraph import RecollectStore
from recollect.testing.langgraph_store import CASES, StoreConformance, as_markdown, validate
from recollect.testing.langgraph_store.__main__ import main


class TestOurs(StoreConformance):
    @pytest.fixture
    def factory(self) -> Any:
        return factories.ours


class TestOursWithTheNamesOfAnAsynchronousStore(StoreConformance):
    modes = ("async",)

    @pytest.fixture
    def factory(self) -> Any:
        return factories.ours_async


class TestOursOverAServer(StoreConformance):
    modes = ("sync",)

    @pytest.fixture
    def factory(self) -> Any:
        return factories.ours_on_server


class TestOursOnPostgres(StoreConformance):
    modes = ("sync",)

    @pytest.fixture
    def factory(self) -> Any:
        return factories.ours_on_postgres


class Forgetful(RecollectStore):
    """Our store, which loses each second put of a batch."""

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        kept = list(ops)
        super().batch(kept[:1])
        return [*super().batch(kept[:1]), *[None] * (len(kept) - 1)]


def test_a_store_that_loses_a_put_does_not_conform() -> None:
    report = validate(lambda: Forgetful(":memory:"), name="forgetful")
    assert not report.conforms
    assert "a_batch_of_a_thousand_operations_is_in_order" in report.failed
    assert "a_missing_item_is_none" not in report.failed


def test_what_the_store_in_memory_does_differently_is_found() -> None:
    """Each of these was reported to its owners, or is in its code: a suite that passes it would check nothing."""
    failed = validate(factories.in_memory).failed
    assert {
        "what_is_returned_is_a_copy",
        "an_update_keeps_when_the_item_was_created",
        "a_text_that_left_a_list_is_not_found",
        "true_is_not_one",
    } <= failed.keys()


def test_there_are_many_cases_with_names_of_their_own_and_a_basis() -> None:
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.basis for case in CASES} == {"documented", "reference", "recommended"}


def test_cases_that_need_what_a_factory_does_not_take_or_a_store_does_not_have_are_skipped() -> None:
    def plain() -> InMemoryStore:
        return InMemoryStore()

    report = validate(plain)
    skipped = {name for name, result in report.results.items() if result == "not offered"}
    without_ttl = {"an_expired_item_is_not_returned_before_a_sweep"}
    assert skipped == {case.name for case in CASES if case.needs} | without_ttl
    assert report.count()[1] == len(CASES) - len(skipped)


def test_the_suite_is_imported_without_the_engine() -> None:
    code = (
        "import sys, recollect.testing.langgraph_store as suite; assert suite.CASES;"
        "print([name for name in sys.modules if name.startswith(('recollect.engine', 'recollect.stores', 'numpy'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_command_fails_for_a_store_that_does_not_conform(capsys: pytest.CaptureFixture[str]) -> None:
    module = "tests.frameworks.langgraph_store.factories"
    assert main([f"{module}:in_memory=InMemoryStore", "--markdown"]) == 1
    assert "| InMemoryStore |" in capsys.readouterr().out


def test_a_table_has_a_row_for_each_case() -> None:
    report = validate(factories.in_memory, cases=CASES[:3])
    assert sum(case.sentence in as_markdown([report]) for case in CASES) == len(CASES)
