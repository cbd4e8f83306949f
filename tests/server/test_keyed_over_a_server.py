"""Keyed memory over both doors of a server: the same calls, with the same results and events."""

from __future__ import annotations

import pytest
from tests.server.serving import Served

from recollect.keyed import Event


@pytest.mark.parametrize("over", ["socket", "http"])
def test_keyed_memory_is_the_same_over_a_server(served: Served, over: str) -> None:
    with served.memory(over) as memory:
        keyed = memory.keyed
        with keyed.subscribe("a") as events:
            keyed.write("a", b"one", ttl=60)
            assert keyed.cas("a", b"one", b"two")
            assert not keyed.cas("a", b"one", b"three")
            assert [each.value for each in (events.wait(30), events.wait(30)) if isinstance(each, Event)] == [
                b"one",
                b"two",
            ]
        keyed.set_limits(capacity=2)
        for key in "bc":
            keyed.write(key, b"\xff")
        assert (keyed.keys(), keyed.stats()["evictions"]) == (["b", "c"], 1)
        assert [each.kind for each in keyed.events()][-2:] == ["evicted", "written"]
        assert keyed.forget("b")
        assert keyed.history("a")[0].record is not None
