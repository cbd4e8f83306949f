"""Plans are the sums that the constants give by hand, and every constant says how it is measured."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
from bench.__main__ import _parser
from bench.sizes import parts_of

from recollect.engine.index.keeper import KEPT_FROM
from recollect.errors import InvalidArgumentError
from recollect.sizing import CONSTANTS, Needs, index_limit, plan_of
from recollect.sizing.constants import SHARED_FROM, cold_s, counted_bytes, recall_s, resident_bytes, value
from recollect.stores.postgres.address import Address
from recollect.stores.postgres.pages import PAGE_BYTES

GIB = 2**30
BILLION = Needs(records=10**9, namespaces=10**6, vectors=384, active=0.05, spare=2)


def test_bytes_in_postgresql_are_the_constants_times_the_records() -> None:
    plan = plan_of(replace(BILLION, text_chars=210.0))
    # versions 330 + 100 characters at 1.2; segments 780 + 100 at 3.8; vectors 650 + 384 components of 4 bytes.
    assert plan.postgresql == {
        "versions": 450e9,
        "heads": 200e9,
        "trie pages": 1500e9,
        "log": 360e9,
        "indexes": 670e9,
        "segments": 1160e9,
        "vectors": 2186e9,
    }
    assert plan.postgresql_bytes == 6526e9
    assert plan.all_servers_bytes == 2 * 6526e9
    assert plan.compacted_bytes == (440 + 200 + 270 + 280 + 450 + 1160 + 2186) * 1e9


def test_the_wal_of_a_day_is_that_of_its_writes() -> None:
    assert plan_of(replace(BILLION, writes_per_s=200.0)).wal_bytes_a_day == 200 * 86_400 * 5300


def test_memory_is_that_of_the_active_namespaces() -> None:
    plan = plan_of(BILLION)
    assert plan.active_namespaces == 50_000
    assert plan.index_bytes == 50_000 * (98_000 + 1000 * 850)
    assert plan.index_bytes_counted == 50_000 * (125_000 + 1000 * 760)
    assert plan.vector_bytes == 50_000 * 1000 * 768
    # 85.8 GB in nodes with 0.8 of 24 GiB, less 85 MB and a page cache of 64 MiB for each of four processes.
    usable = 0.8 * 24 * GIB - 4 * (85e6 + 2**26)
    assert 4 * usable < plan.index_bytes + plan.vector_bytes < 5 * usable
    assert (plan.nodes_by_memory, plan.nodes_by_processor, plan.nodes) == (5, 1, 7)
    assert plan.connections == 7 * 4 * 10


def test_nodes_by_processor_are_those_of_recalls_and_writes() -> None:
    plan = plan_of(replace(BILLION, active=0.001, recalls_per_s=10_000.0, writes_per_s=2000.0))
    assert plan.recall_cores == pytest.approx(10_000 * 0.0017)
    assert plan.write_cores == pytest.approx(2000 * 0.0017)
    assert plan.server_cores == pytest.approx(10_000 * 0.0005 + 2000 * 0.0015)
    # 20.4 cores, of 2.4 used on each node.
    assert (plan.nodes_by_memory, plan.nodes_by_processor, plan.nodes) == (1, 9, 11)


def test_a_zipf_load_keeps_fewer_namespaces_in_memory_the_more_it_favours_some() -> None:
    needs = replace(BILLION, namespaces=100_000, zipf=1.0)
    flat, steep = plan_of(needs), plan_of(replace(needs, zipf=1.2))
    assert 0 < steep.active_namespaces < flat.active_namespaces < 100_000
    # A tenth of the recalls must build or load an index, and all of them do the rest.
    missing = plan_of(replace(needs, recalls_per_s=100.0, hit_rate=0.9)).recall_cores
    sizes = np.array([10_000.0])
    assert missing == pytest.approx(100 * (recall_s(sizes)[0] + 0.1 * cold_s("table", sizes)[0]))


def test_the_largest_namespace_fills_half_of_a_process() -> None:
    plan = plan_of(replace(BILLION, node_memory=4 * GIB, node_cores=1))
    half = (0.8 * 4 * GIB - 85e6 - 2**26) / 2
    assert plan.largest_namespace_a_process == int(half / (850 + 768))


def test_the_limit_of_indexes_is_in_the_bytes_that_the_engine_counts() -> None:
    usable = 0.8 * 4 * GIB - 85e6 - 2**26
    assert index_limit(4 * GIB, 1000, 110.0) == int(usable * 885_000 / 948_000)
    assert counted_bytes(1000.0, 110.0) == 885_000
    assert resident_bytes(1000.0, 110.0) == 948_000


def test_times_are_those_that_were_measured_at_both_sizes() -> None:
    sizes = np.array([1000, 100_000])
    assert recall_s(sizes).tolist() == pytest.approx([0.0017, 0.0035])
    for kind in ("built", "table", "file"):
        measured = [value(f"{kind}.small") / 1000, value(f"{kind}.large") / 1000]
        assert cold_s(kind, sizes).tolist() == pytest.approx(measured)
    assert (cold_s("built", np.array([0, 1, 20])) >= 0).all()


def test_short_texts_never_give_less_than_half_and_a_plan_without_memory_has_a_node() -> None:
    plan = plan_of(Needs(records=1, text_chars=1.0, active=0.0, spare=0, node_memory=GIB // 2))
    assert plan.postgresql["versions"] == pytest.approx(330 - 109 * 1.2)
    assert (plan.nodes, plan.index_bytes, plan.postgresql["segments"]) == (1, 0.0, 0.0)


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"writes_per_s": 10_000.0}, "10,000 writes/s"),
        ({"spare": 20}, "more than 500 connections"),
        ({"namespaces": 100}, "larger than one process should have"),
        ({"node_memory": GIB // 2}, "need most of its memory themselves"),
        ({"records": 10**6, "namespaces": 20_000, "zipf": 1.1}, "built again whenever"),  # 50 records in each
    ],
)
def test_a_plan_says_what_to_know_about_what_was_changed(changed: dict[str, object], note: str) -> None:
    assert any(note in each for each in plan_of(replace(BILLION, **changed)).notes)  # type: ignore[arg-type]


def test_a_plan_says_what_to_know() -> None:
    notes = plan_of(BILLION).notes
    for note in ("one primary of 2 to 4 TB", "state --zipf"):
        assert any(note in each for each in notes)


def test_a_small_store_needs_no_warning() -> None:
    assert len(plan_of(Needs(records=100_000)).notes) == 1  # that texts differ


@pytest.mark.parametrize(
    "wrong",
    [
        {"records": 0},
        {"namespaces": 0},
        {"records": 10, "namespaces": 11},
        {"active": 1.1},
        {"active": float("nan")},
        {"vectors": -1},
        {"hit_rate": 1.0},
        {"node_memory": 1000},
        {"spare": -1},
        {"zipf": 9.0},
    ],
)
def test_a_wrong_need_is_an_error(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"must be (a number from|at least one)"):
        Needs(**{"records": 100, **wrong})  # type: ignore[arg-type]


def test_every_constant_has_a_unit_and_a_command_that_exists() -> None:
    assert [name for name, each in CONSTANTS.items() if not each.unit or not each.command or each.value <= 0] == []
    parser = _parser()
    for command in {each.command for each in CONSTANTS.values() if each.machine}:
        assert isinstance(parser.parse_args(shlex.split(command)[3:]), argparse.Namespace)
        assert re.match("python -m bench ", command)


def test_what_is_defined_elsewhere_is_what_is_defined_there() -> None:
    assert SHARED_FROM == KEPT_FROM
    assert value("page cache") == PAGE_BYTES
    assert Address("", "").pool <= value("pool")


def test_parts_are_the_sums_of_their_tables() -> None:
    figures = {
        "versions": {"table": 300.0, "indexes": 100.0},
        "commits": {"table": 200.0, "indexes": 60.0},
        "changes": {"table": 130.0, "indexes": 140.0},
        "segments": {"table": 700.0, "indexes": 1.0},
    }
    expected = {"versions": 300.0, "heads": 0.0, "trie pages": 0.0, "log": 330.0, "indexes": 300.0}
    assert parts_of(figures) == expected
