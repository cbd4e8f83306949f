"""Replicated values: the laws of merging, one byte form for one state, and what forged states cannot do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

from recollect.errors import InvalidArgumentError
from recollect.keyed.replicated import (
    AddTag,
    AddWinsSet,
    Chain,
    Counter,
    Register,
    TextLog,
)

CHAINS = [Chain(name, b"sixteen bytes of " + name.encode(), "test", most=200) for name in ("alice", "bob", "carol")]
ALICE, BOB, MALLORY = CHAINS
TYPES: list[type[Any]] = [Register, AddWinsSet, Counter, TextLog]

# What replicas do: (which one, what, an element or text, a time), or a merge of one into another.
texts = st.text(st.sampled_from('abé鍵 "\\'), max_size=3)
times = st.one_of(st.integers(0, 3), st.sampled_from([0.5, 1.0, 2.25]))
steps = st.tuples(st.integers(0, 2), st.sampled_from(["more", "less", "merge"]), texts, times, st.integers(0, 2))
histories = st.lists(steps, max_size=14)


def changed(state: Any, at: int, more: bool, text: str, time: float) -> Any:
    """The state after what a replica did."""
    name = f"r{at}"
    if isinstance(state, Register):
        return state.set(text if more else None, time=time, replica=name)
    if isinstance(state, AddWinsSet):
        return state.add(text, CHAINS[at]) if more else state.remove(text)
    if isinstance(state, Counter):
        return state.add((1 if more else -1) * (len(text) + 1), replica=name)
    assert isinstance(state, TextLog)
    return state.append(text, time=time, replica=name)


def replicas(kind: type[Any], history: list[tuple[int, str, str, float, int]]) -> list[Any]:
    """Three replicas that began with nothing and have this history: states that can occur together."""
    states = [kind(), kind(), kind()]
    for at, what, text, time, other in history:
        if what == "merge":
            states[at] = states[at].merge(states[other])
        else:
            states[at] = changed(states[at], at, what == "more", text, time)
    return states


Merge = Callable[[Any, Any], Any]


def check_laws(kind: type[Any], merge: Merge) -> None:
    """The laws of merging, on any three replicas: also what the broken merges below are checked with."""

    @settings(max_examples=some(400), report_multiple_bugs=False)
    @given(histories)
    def laws(history: list[tuple[int, str, str, float, int]]) -> None:
        a, b, c = replicas(kind, history)
        assert merge(a, b).to_bytes() == merge(b, a).to_bytes(), "commutative"
        assert merge(merge(a, b), c).to_bytes() == merge(a, merge(b, c)).to_bytes(), "associative"
        assert merge(a, a).to_bytes() == a.to_bytes(), "idempotent"
        assert merge(merge(a, b), b).to_bytes() == merge(a, b).to_bytes(), "idempotent"

    laws()


def check_delivery(kind: type[Any], merge: Merge) -> None:
    """Messages in any order, some twice, between replicas that act: all the same in the end, and nothing is undone."""

    @settings(max_examples=some(400), report_multiple_bugs=False)
    @given(histories, st.lists(st.integers(0, 2), min_size=3, max_size=8))
    def delivery(history: list[tuple[int, str, str, float, int]], order: list[int]) -> None:
        states = replicas(kind, history)
        whole = merge(merge(states[0], states[1]), states[2])
        for at in range(3):
            got = states[at]
            for each in [*order, 0, 1, 2]:
                got = merge(got, states[each])
            assert got.to_bytes() == whole.to_bytes()
            # What one replica has removed after all had seen it is gone for good.
            if kind is AddWinsSet:
                for element in got:
                    assert element not in merge(got.remove(element), states[at])

    delivery()


@pytest.mark.parametrize("kind", TYPES)
class TestLaws:
    def test_merging_is_commutative_associative_and_idempotent(self, kind: type[Any]) -> None:
        check_laws(kind, lambda one, other: one.merge(other))

    def test_any_order_and_duplicates_give_the_same_bytes(self, kind: type[Any]) -> None:
        check_delivery(kind, lambda one, other: one.merge(other))

    @settings(max_examples=some(400))
    @given(history=histories, text=texts, time=times)
    def test_a_replica_reads_its_own_write_after_merging(
        self, kind: type[Any], history: list[tuple[int, str, str, float, int]], text: str, time: float
    ) -> None:
        states = replicas(kind, history)
        seen = states[0].merge(states[1]).merge(states[2])
        wrote = changed(seen, 0, True, text, time)
        for again in (wrote.merge(states[1]), states[2].merge(wrote), wrote.merge(seen)):
            assert again.to_bytes() == wrote.to_bytes()
        if isinstance(wrote, Register):
            assert wrote.value == text
        elif isinstance(wrote, AddWinsSet):
            assert text in wrote
        elif isinstance(wrote, Counter):
            assert wrote.value == seen.value + len(text) + 1
        else:
            assert wrote.texts.count(text) == seen.texts.count(text) + 1

    @settings(max_examples=some(400))
    @given(history=histories)
    def test_every_state_has_one_byte_form(
        self, kind: type[Any], history: list[tuple[int, str, str, float, int]]
    ) -> None:
        for state in replicas(kind, history):
            again = kind.from_bytes(state.to_bytes())
            assert again == state
            assert hash(again) == hash(state)
            assert again.to_bytes() == state.to_bytes()


def without_context(one: AddWinsSet, other: AddWinsSet) -> AddWinsSet:
    """Broken: the union of both, as if no context said what was removed."""
    both: dict[str, set[AddTag]] = {}
    for element, tags in (*one.entries, *other.entries):
        both.setdefault(element, set()).update(tags)
    used: set[AddTag] = set()
    entries = []
    for element in sorted(both):
        tags = tuple(sorted(both[element] - used))
        used.update(tags)
        entries += [(element, tags)] if tags else []
    context = {each.replica: each for each in one.context}
    for each in other.context:
        context[each.replica] = max(each, context.get(each.replica, each))
    return AddWinsSet(entries=tuple(entries), context=tuple(context[name] for name in sorted(context)))


def summed(one: Counter, other: Counter) -> Counter:
    """Broken: adds what replicas have counted, in place of the maximum."""
    for name, up, down in other.counts:
        one = one.add(up, replica=name).add(-down, replica=name)
    return one


def only_time(one: Register, other: Register) -> Register:
    """Broken: knows no tie-break."""
    return other if (other.stamp or (0,))[0] >= (one.stamp or (0,))[0] else one


def by_number(one: TextLog, other: TextLog) -> TextLog:
    """Broken: takes the longer log."""
    return one if len(one.lines) >= len(other.lines) else other


class TestTheChecksOfTheLaws:
    @pytest.mark.parametrize(
        ("kind", "merge"),
        [
            (Counter, summed),
            (Register, only_time),
            (TextLog, by_number),
            (AddWinsSet, lambda one, other: one),
        ],
    )
    def test_a_broken_merge_fails(self, kind: type[Any], merge: Merge) -> None:
        with pytest.raises(AssertionError):
            check_laws(kind, merge)

    def test_a_set_without_its_context_fails_as_removed_elements_come_back(self) -> None:
        with pytest.raises(AssertionError):
            check_delivery(AddWinsSet, without_context)


class TestRegister:
    def test_unset_is_not_empty_and_cleared_is_not_unset(self) -> None:
        unset, empty = Register(), Register().set("", time=1, replica="a")
        cleared = empty.set(None, time=2, replica="a")
        assert (unset.value, empty.value, cleared.value) == (None, "", None)
        assert len({each.to_bytes() for each in (unset, empty, cleared)}) == 3
        assert unset.merge(empty) == empty
        assert cleared.merge(empty) == cleared

    def test_the_later_time_wins_and_then_the_greater_replica(self) -> None:
        first = Register().set("first", time=1, replica="z")
        later = Register().set("later", time=2, replica="a")
        tied = Register().set("tied", time=2, replica="b")
        assert first.merge(later).value == "later"
        assert later.merge(tied).merge(first).value == "tied"

    def test_a_write_by_a_clock_that_is_behind_still_wins_over_what_it_saw(self) -> None:
        seen = Register().set("from the future", time=100, replica="b")
        assert seen.set("mine", time=3, replica="a").merge(seen).value == "mine"

    def test_whole_times_have_one_form(self) -> None:
        one, other = (Register().set("x", time=time, replica="a") for time in (1, 1.0))
        assert one.to_bytes() == other.to_bytes() == b'{"stamp":[1,0,"a"],"type":"register","value":"x"}'

    @pytest.mark.parametrize("time", [float("nan"), float("inf"), -float("inf"), 2**63, True, "1", None])
    def test_a_time_that_cannot_be_compared_is_refused(self, time: Any) -> None:
        with pytest.raises(InvalidArgumentError, match="time"):
            Register().set("x", time=time, replica="a")


class TestSet:
    def test_an_add_wins_over_a_concurrent_remove(self) -> None:
        base = AddWinsSet().add("x", ALICE)
        removed, added = base.remove("x"), base.add("x", BOB)
        assert "x" in removed.merge(added)
        assert "x" in added.merge(removed)

    def test_a_remove_that_saw_the_add_stays_when_the_old_state_is_sent_again(self) -> None:
        old = AddWinsSet().add("x", ALICE).add("y", BOB)
        removed = old.remove("x")
        assert list(removed.merge(old).merge(old)) == ["y"]
        assert list(removed.add("x", BOB).merge(old)) == ["x", "y"]

    def test_a_chain_that_is_used_up_says_so(self) -> None:
        short = Chain("short", b"0123456789abcdef", most=2)
        full = AddWinsSet().add("a", short).add("b", short)
        with pytest.raises(InvalidArgumentError, match="no tag left"):
            full.add("c", short)

    def test_a_proof_is_the_hash_of_the_next_one_down_to_the_id(self) -> None:
        import hashlib

        name, first = ALICE.replica.split(":")
        for n in (1, 63, 64, 65, 199, 200):
            link = bytes.fromhex(ALICE.link(n))
            before = hashlib.sha256(b"recollect.keyed.replicated %d %b " % (n, name.encode()) + link).digest()[:16]
            assert before.hex() == (first if n == 1 else ALICE.link(n - 1))

    def test_chains_of_other_names_sets_and_secrets_differ_and_the_secret_is_not_shown(self) -> None:
        secret = b"0123456789abcdef"
        made = [Chain("a", secret), Chain("b", secret), Chain("a", secret, "set"), Chain("a", secret[::-1])]
        assert len({each.replica for each in made}) == 4
        assert Chain("a", secret).replica == made[0].replica
        assert "0123456789abcdef" not in repr(made[0])
        with pytest.raises(InvalidArgumentError) as refused:
            Chain("a", b"short secret")
        assert "short secret" not in str(refused.value)


def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from recollect.keyed.replicated import *\n"
        "a, b = Chain('a', b'0123456789abcdef'), Chain('b', b'0123456789abcdef')\n"
        "s = AddWinsSet()\n"
        "for n in range(9): s = s.add(str(n), a).merge(s.add('x' * n, b))\n"
        "print(s.to_bytes().decode())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(found) == 1
    assert found.pop().startswith('{"context":[["a:')
