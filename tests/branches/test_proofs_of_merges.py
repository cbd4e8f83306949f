"""Proofs of merges, by this package and by a verifier that was written from docs/proofs.md alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from tests.engine import independent_verifier as independent

import recollect
from recollect.errors import InvalidArgumentError, UnknownBranchError
from recollect.ledger.proofs import Proof


def both(proof: Any, *trusted: str) -> bool:
    """Whether both verifiers accept a proof; they must agree."""
    heads: Any = trusted if len(trusted) == 2 else trusted[0]
    one, other = recollect.verify(proof, heads), independent.verified(json.loads(json.dumps(proof)), heads)
    assert one == other
    return one


@pytest.fixture
def merged(memory: recollect.Memory) -> tuple[recollect.Memory, recollect.Memory, Proof]:
    memory.remember("Ana prefers window seats", id="seat")
    branch = memory.branch("what-if")
    branch.update("seat", content="Ana prefers aisle seats")
    branch.keyed.write("k", b"1")
    memory.remember("Bo likes tea")
    seq = memory.merge_branch("what-if").seq
    assert seq is not None
    memory.remember("Cy sails")
    branch.remember("and goes on")
    return memory, branch, memory.prove_merge(seq)


@pytest.mark.stores("memory", "sqlite", "loopback")
def test_a_merge_is_proved_against_one_head_or_both(merged: tuple[recollect.Memory, recollect.Memory, Proof]) -> None:
    memory, branch, proof = merged
    head, other = memory.head().log or "", branch.head().log or ""
    assert proof["merge"]["log"]["seq"] == 3
    assert (proof["merged"]["branch"], proof["merged"]["log"]["seq"]) == ("what-if", 3)
    assert both(proof, head)
    assert both(proof, other, head)
    assert not both(proof, other)
    assert not both(proof, head, other)
    assert not both(proof, memory.root)
    assert not both(proof, "0" * 64)


def changed(value: Any) -> Iterator[Any]:
    """Yield a JSON value with each part of it changed in turn."""
    if isinstance(value, dict):
        for key in value:
            yield {name: each for name, each in value.items() if name != key}
            yield from ({**value, key: each} for each in changed(value[key]))
        yield {**value, "more": 1}
    elif isinstance(value, list):
        yield value[1:]
        yield [*value, value[-1] if value else 0]
        for index in range(len(value)):
            yield from ([*value[:index], each, *value[index + 1 :]] for each in changed(value[index]))
    elif isinstance(value, str):
        yield ("0" if value[:1] != "0" else "1") + value[1:]
        yield value.upper() + "X"
    elif isinstance(value, int):
        yield value + 1
        yield str(value)
    else:
        yield "0" * 64


def test_each_part_of_the_proof_is_bound(merged: tuple[recollect.Memory, recollect.Memory, Proof]) -> None:
    memory, branch, proof = merged
    head, other = memory.head().log or "", branch.head().log or ""
    count = 0
    for each in changed(deepcopy(proof)):
        assert not both(each, other, head), each
        count += 1
    assert count > 60
    assert both(proof, other, head)


def test_what_is_no_merge_is_not_proved(merged: tuple[recollect.Memory, recollect.Memory, Proof]) -> None:
    memory, branch, proof = merged
    for seq in (1, 2, 4):
        with pytest.raises(InvalidArgumentError, match="is not the number of a merge"):
            memory.prove_merge(seq)
    with pytest.raises(InvalidArgumentError):  # its first parent is of main, but it merges nothing
        branch.prove_merge(2)
    with pytest.raises(InvalidArgumentError):
        memory.prove_merge(9)
    first = {name: each for name, each in proof["merged"].items() if name != "branch"}
    assert not both({**proof, "merge": first}, first["log"]["head"])
    memory.drop_branch("what-if")
    with pytest.raises(UnknownBranchError):
        memory.prove_merge(3)
    assert both(proof, proof["merge"]["log"]["head"])  # one that was made before stays valid
