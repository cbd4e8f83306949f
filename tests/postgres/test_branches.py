"""Branches of a store on a server that several nodes use."""

from __future__ import annotations

import pytest

import recollect
from recollect.errors import UnknownBranchError
from recollect.testing.loopback import core_of

pytestmark = pytest.mark.postgres


def test_a_branch_that_another_node_has_dropped_is_gone_and_no_commit_is_lost(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    with recollect.open(address, embedder="none") as one, recollect.open(address, embedder="none") as other:
        one.remember("Ana lives in Bergen", id="home")
        one.branch("what-if").update("home", content="Ana lives in Oslo")
        for memory in (one, other):
            assert memory.on("what-if").recall("Where does Ana live?")[0].record.content == "Ana lives in Oslo"
        other.merge_branch("what-if")
        other.drop_branch("what-if")
        for memory in (one, other):
            with pytest.raises(UnknownBranchError):
                memory.on("what-if")
            assert memory.recall("Where does Ana live?")[0].record.content == "Ana lives in Oslo"
            assert core_of(memory).store.facts()["lost_commits"] == 0
        assert one.check() == []
    assert "lost commits" not in caplog.text
