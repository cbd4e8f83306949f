"""Replicated values under the keys of a memory: races, junk, evictions and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from recollect.compat.nest import Blackboard, SemanticMemory
from recollect.errors import ConflictError, InvalidArgumentError
from recollect.keyed import Shelf
from recollect.keyed.replicated import AddWinsSet, AwaitedKept, Chain, Counter, Kept, State, TextLog

CHAINS = [Chain(name, b"sixteen bytes of " + name.encode(), "test", most=200) for name in ("alice", "bob", "carol")]
ALICE = CHAINS[0]


class RacingShelf(Shelf):
    """A shelf on which others are faster for a number of times."""

    def __init__(self, others: list[Any]) -> None:
        super().__init__()
        self.others = others

    def cas(self, key: str, expected: bytes | None, new: bytes, *, importance: float | None = None) -> bool:
        if self.others:
            found = self.read(key)
            other = self.others.pop()
            self.write(key, (other if found is None else other.merge(type(other).from_bytes(found))).to_bytes())
        return super().cas(key, expected, new)


class TestKept:
    def test_replicas_that_share_a_key_lose_nothing(self) -> None:
        shelf = Shelf()
        kept = [Kept(shelf, "votes", Counter(), own=name) for name in "abc"]
        for turn in range(30):
            kept[turn % 3].change(lambda counter, turn=turn: counter.add(1, replica="abc"[turn % 3]))  # type: ignore[misc]
        assert [each.refresh().value for each in kept] == [30, 30, 30]
        assert Counter.from_bytes(shelf.read("votes") or b"").value == 30

    def test_a_change_is_made_once_though_others_are_faster(self) -> None:
        others = [Counter().add(number, replica=f"other{number}") for number in (1, 10, 100)]
        calls = []
        kept = Kept(RacingShelf(list(others)), "n", Counter(), own="me")

        def change(counter: Counter) -> Counter:
            calls.append(counter)
            return counter.add(1000, replica="me")

        assert kept.change(change).value == 1111
        assert len(calls) == 1

    def test_who_is_never_fast_enough_keeps_the_change_and_publishes_it_later(self) -> None:
        shelf = RacingShelf([Counter().add(1, replica=f"other{number}") for number in range(5)])
        kept = Kept(shelf, "n", Counter(), own="me", tries=3)
        with pytest.raises(ConflictError, match="changed each time"):
            kept.change(lambda counter: counter.add(10, replica="me"))
        assert kept.state.of("me") == (10, 0)
        shelf.others.clear()
        assert kept.publish().value == 13
        assert Counter.from_bytes(shelf.read("n") or b"") == kept.state

    def test_what_was_evicted_comes_back_with_the_next_change(self) -> None:
        shelf = Shelf(capacity=1)
        kept = Kept(shelf, "log", TextLog(), own="a")
        kept.change(lambda log: log.append("one", time=1, replica="a"))
        shelf.write("another", b"key")
        assert shelf.read("log") is None
        kept.change(lambda log: log.append("two", time=2, replica="a"))
        assert TextLog.from_bytes(shelf.read("log") or b"").texts == ["one", "two"]

    @pytest.mark.parametrize("junk", [b"junk", b"", b'{"counts":[["me",99,0]],"type":"counter"}'])
    def test_junk_is_refused_and_left_or_replaced(self, junk: bytes) -> None:
        shelf = Shelf()
        shelf.write("n", junk)
        careful = Kept(shelf, "n", Counter().add(1, replica="me"), own="me")
        for call in (careful.refresh, lambda: careful.change(lambda counter: counter.add(1, replica="me"))):
            with pytest.raises(InvalidArgumentError):
                call()
        assert shelf.read("n") == junk
        assert careful.state.value == 1
        bold = Kept(shelf, "n", careful.state, own="me", refused="replace")
        assert bold.change(lambda counter: counter.add(1, replica="me")).value == 2
        assert shelf.read("n") == bold.state.to_bytes()

    def test_a_replica_that_starts_again_without_a_copy_takes_its_own_past_from_the_key(self) -> None:
        shelf = Shelf()
        Kept(shelf, "set", AddWinsSet(), own=ALICE.replica).change(lambda found: found.add("x", ALICE))
        again = Kept(shelf, "set", AddWinsSet(), own=ALICE.replica)
        again.change(lambda found: found.add("y", ALICE))
        assert list(again.state) == ["x", "y"]
        assert again.state.seen(ALICE.replica) == 2

    def test_a_forged_state_in_a_message_changes_nothing(self) -> None:
        kept = Kept(Shelf(), "n", Counter(), own="me")
        kept.change(lambda counter: counter.add(1, replica="me"))
        with pytest.raises(InvalidArgumentError, match="forged"):
            kept.merge(Counter().add(5, replica="me"))
        assert kept.merge(Counter().add(5, replica="you")).value == 6

    def test_arguments_are_checked(self) -> None:
        with pytest.raises(InvalidArgumentError, match="refused"):
            Kept(Shelf(), "n", Counter(), refused="ignore")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="tries"):
            Kept(Shelf(), "n", Counter(), tries=0)
        with pytest.raises(InvalidArgumentError, match="key"):
            Kept(Shelf(), 5, Counter())  # type: ignore[arg-type]

    @pytest.mark.parametrize("make", [Blackboard, SemanticMemory])
    def test_awaited_memories_work_too_also_where_a_cas_creates_nothing(self, make: Callable[[], Any]) -> None:
        async def run() -> list[Any]:
            memory = make()
            kept = [AwaitedKept(memory, "members", AddWinsSet(), own=chain.replica) for chain in CHAINS]

            async def act(at: int) -> None:
                for name in (f"{at}-{number}" for number in range(5)):
                    await kept[at].change(lambda members, name=name: members.add(name, CHAINS[at]))  # type: ignore[misc]
                await kept[at].change(lambda members: members.remove(f"{at}-0"))

            await asyncio.gather(*(act(at) for at in range(3)))
            return [await each.refresh() for each in kept]

        states: list[State] = asyncio.run(run())
        assert len({state.to_bytes() for state in states}) == 1
        assert list(states[0]) == [f"{at}-{number}" for at in range(3) for number in range(1, 5)]  # type: ignore[call-overload]

    def test_awaited_junk_is_refused_or_replaced_and_races_end(self) -> None:
        async def run() -> None:
            memory = Blackboard()
            await memory.write("n", b"junk")
            with pytest.raises(InvalidArgumentError):
                await AwaitedKept(memory, "n", Counter()).refresh()
            bold = AwaitedKept(memory, "n", Counter(), refused="replace")
            assert (await bold.change(lambda counter: counter.add(1, replica="a"))).value == 1

            class Never(Blackboard):
                async def cas(
                    self, key: str, expected: bytes | None, new: bytes, *, importance: float | None = None
                ) -> bool:
                    return False

            never = Never()
            await never.write("n", Counter().to_bytes())
            with pytest.raises(ConflictError):
                await AwaitedKept(never, "n", Counter(), tries=2).change(lambda counter: counter.add(1, replica="a"))

        asyncio.run(run())
