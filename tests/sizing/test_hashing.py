"""The node of each of very many namespaces is that of `wire.nodes`, and few namespaces move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.sizing.hashing import column, owners
from recollect.wire.nodes import ranked

NAMES = [f"namespace {number}" for number in range(20_000)]
NODES = [f"http://node-{number}:8080" for number in range(12)]


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray]:
    return {each: column(each, NAMES) for each in NODES}


@given(
    st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=6, unique=True),
    st.lists(st.text(max_size=20), min_size=1, max_size=20),
)
def test_the_columns_name_the_node_that_clients_ask_first(addresses: list[str], namespaces: list[str]) -> None:
    found = owners({each: column(each, namespaces) for each in addresses}, addresses, addresses)
    assert found.tolist() == [ranked(addresses, each)[0] for each in namespaces]


def test_of_equal_ranks_the_greater_address_is_asked_as_clients_do() -> None:
    equal = {each: np.array([7], np.uint64) for each in ("b", "c", "a")}
    assert owners(equal, ["b", "c", "a"], ["b", "c", "a"]).tolist() == [1]


def test_of_some_nodes_only_those_that_live_are_asked(columns: dict[str, np.ndarray]) -> None:
    living = NODES[3:]
    found = owners(columns, living, NODES)
    some = range(0, len(NAMES), 97)
    assert [int(found[each]) - 3 for each in some] == [ranked(living, NAMES[each])[0] for each in some]


def test_twelve_nodes_have_nearly_the_same_number_of_namespaces(columns: dict[str, np.ndarray]) -> None:
    counts = np.bincount(owners(columns, NODES, NODES))
    # Binomial: the standard deviation is 2.3 per cent of the mean, and the greatest of twelve is 1.6 of them above it.
    assert 1.005 < counts.max() / counts.mean() < 1.08


def test_a_node_that_dies_moves_its_own_namespaces_and_one_that_joins_takes_from_all(
    columns: dict[str, np.ndarray],
) -> None:
    all_of_them, without = owners(columns, NODES, NODES), owners(columns, NODES[1:], NODES)
    moved = all_of_them != without
    assert (all_of_them[moved] == 0).all()
    assert abs(moved.mean() - 1 / 12) < 0.01  # five standard deviations


def by_remainder(columns: dict[str, np.ndarray], living: list[str], order: list[str]) -> np.ndarray:
    """Return the nodes by the remainder of a hash, as a naive client would."""
    numbers = np.array([order.index(each) for each in living], np.int32)
    return numbers[columns[order[0]] % np.uint64(len(living))]


def test_by_the_remainder_of_a_hash_nearly_all_move(columns: dict[str, np.ndarray]) -> None:
    moved = by_remainder(columns, NODES, NODES) != by_remainder(columns, NODES[1:], NODES)
    assert moved.mean() > 0.9
