"""The simulation repeats by its seed, agrees with what is known of such caches, and shows what an event costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.sizing.test_hashing import by_remainder

from recollect.errors import InvalidArgumentError
from recollect.sizing import Load, simulate
from recollect.sizing.constants import counted_bytes
from recollect.sizing.load import hits_of, sizes_of, zipf

LOAD = Load(
    records=3_000_000,
    namespaces=10_000,
    recalls_per_s=400,
    index_bytes=60 * 2**20,
    interval_s=120,
    zipf=1.0,
    events=("die", "join"),
    seed=5,
)


def test_the_same_seed_gives_the_same_result_and_another_one_another() -> None:
    assert simulate(LOAD) == simulate(LOAD)
    assert simulate(LOAD) != simulate(replace(LOAD, seed=6))


def test_a_node_that_dies_moves_a_twelfth_of_the_namespaces_and_none_between_living_nodes() -> None:
    start, died, joined = simulate(LOAD).phases
    assert [each.nodes for each in (start, died, joined)] == [12, 11, 12]
    assert died.moved / LOAD.namespaces == pytest.approx(1 / 12, abs=0.015)
    assert joined.moved / LOAD.namespaces == pytest.approx(1 / 12, abs=0.015)
    assert died.moved_between_living == joined.moved_between_living == 0
    assert 0 < died.moved_hot < died.moved
    assert died.hit_rate_first < start.hit_rate < died.hit_rate_first + 0.15


def test_by_the_remainder_of_a_hash_a_death_moves_nearly_all_and_the_hits_with_them() -> None:
    start, died, _ = simulate(LOAD, placed=by_remainder).phases  # type: ignore[arg-type]
    assert died.moved > 0.85 * LOAD.namespaces
    assert died.moved_between_living > 0.7 * LOAD.namespaces
    assert died.hit_rate_first < start.hit_rate - 0.15


def test_nodes_begin_as_they_are_after_a_long_time() -> None:
    found = simulate(replace(LOAD, events=())).phases[0]
    # The first minute is as the last one: nothing has to be warmed up. (Nor does the rate drift.)
    assert np.mean(found.hit_rates[:30]) == pytest.approx(found.hit_rate, abs=0.01)


def test_the_rate_of_hits_is_that_of_ches_approximation_on_each_node() -> None:
    one = replace(LOAD, nodes=1, events=(), index_bytes=400 * 2**20, recalls_per_s=2000)
    sizes = sizes_of(one.records, one.namespaces, np.random.Generator(np.random.PCG64(one.seed)))
    expected = hits_of(zipf(one.namespaces, one.zipf), counted_bytes(sizes, 110.0), one.index_bytes)
    assert simulate(one).phases[0].hit_rate == pytest.approx(expected, abs=0.01)
    assert expected < 0.95


def test_where_all_fits_nothing_is_loaded_and_the_first_recall_on_another_node_loads() -> None:
    roomy = replace(LOAD, namespaces=1000, records=500_000, index_bytes=2**40, events=("die",), zipf=0.5)
    start, died = simulate(roomy).phases
    assert start.hit_rate == 1.0
    assert start.built_per_s == start.table_per_s == start.file_per_s == start.cold_cores == 0.0
    # Each namespace that moved is loaded once, if it is asked at all.
    loads = (died.built_per_s + died.table_per_s + died.file_per_s) * roomy.interval_s
    assert 0.9 * died.moved < loads <= died.moved
    assert died.moved == died.moved_hot
    assert died.file_per_s == 0.0 < died.table_per_s
    assert died.recovered_s is not None
    assert died.hit_rate > 0.99


def test_loading_small_indexes_takes_less_processor_time_than_building_them() -> None:
    built = simulate(replace(LOAD, shared_from=1000)).phases[0]
    loaded = simulate(replace(LOAD, shared_from=1)).phases[0]
    assert loaded.hit_rate == built.hit_rate
    assert loaded.built_per_s == 0.0
    assert loaded.cold_cores < built.cold_cores / 3


def test_nodes_that_join_take_over_and_those_that_are_left_are_asked() -> None:
    *_, last = simulate(replace(LOAD, events=("nodes=16", "nodes=4"))).phases
    assert last.nodes == 4
    assert last.moved_between_living == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"events": ("explode",)}, "must be die, join or nodes=K"),
        ({"nodes": 1}, "nodes after die must be a number from 1 to 200, got 0"),
        ({"events": ("nodes=0",)}, "nodes after nodes=0"),
        ({"records": 10}, "records must be at least one for each of 10,000 namespaces"),
        ({"zipf": float("nan")}, "zipf must be a number from 0 to 3"),
        ({"interval_s": 1e6, "recalls_per_s": 1e6}, "at most 50000000 recalls in a phase"),
    ],
)
def test_a_wrong_load_is_an_error(values: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        replace(LOAD, **values)  # type: ignore[arg-type]
