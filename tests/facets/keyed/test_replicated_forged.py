"""Replicated values: forged states are refused or harmless, and malformed bytes are refused whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

from recollect.errors import InvalidArgumentError
from recollect.facets.keyed.replicated.sets import Seen
from recollect.keyed.replicated import AddTag, AddWinsSet, Chain, Counter, Line, Register, Stamp, TextLog

ALICE, BOB = (Chain(name, b"sixteen bytes of " + name.encode(), "test", most=200) for name in ("alice", "bob"))
TYPES: list[type[Any]] = [Register, AddWinsSet, Counter, TextLog]


class TestForgedStates:
    honest = AddWinsSet().add("x", ALICE).add("y", ALICE)

    def test_a_context_beyond_what_a_replica_made_is_refused_by_everyone(self) -> None:
        # Without a proof this state, which a third replica cannot tell from the truth, would remove all adds of Alice,
        # those to come as well.
        for n, proof in (
            (3, ALICE.link(2)),
            (3, "0" * 32),
            (3, ""),
            (3, "zz"),
            (3, BOB.link(3)),
            (2**16, ALICE.link(2)),
        ):
            with pytest.raises(InvalidArgumentError, match="forged"):
                AddWinsSet(context=(Seen(ALICE.replica, n, proof),))
        forged = self.honest.to_bytes().replace(b'",2,"', b'",9,"')
        assert forged != self.honest.to_bytes()
        with pytest.raises(InvalidArgumentError, match="forged"):
            AddWinsSet.from_bytes(forged)

    def test_the_negative_control_a_true_proof_is_accepted_and_removes_what_it_covers(self) -> None:
        proven = AddWinsSet(context=(Seen(ALICE.replica, 1, ALICE.link(1)),))
        assert list(self.honest.merge(proven)) == ["y"]  # a replica that has seen tag 1 may remove it, and only it

    def test_a_name_without_a_chain_has_no_tags(self) -> None:
        for replica in ("alice", "alice:", ":" + "0" * 32, "alice:" + "0" * 31, "alice:" + "G" * 32):
            with pytest.raises(InvalidArgumentError, match="forged"):
                AddWinsSet(context=(Seen(replica, 1, "0" * 32),))

    def test_a_proof_of_another_set_is_worth_nothing_here(self) -> None:
        elsewhere = Chain("alice", b"sixteen bytes of alice", "another set", most=200)
        with pytest.raises(InvalidArgumentError, match="forged"):
            AddWinsSet(context=(Seen(ALICE.replica, 5, elsewhere.link(5)),))

    def test_a_state_that_is_ahead_of_the_local_replica_is_refused_and_nothing_changes(self) -> None:
        # The secret has leaked, or this replica runs twice.
        ahead = self.honest.add("z", ALICE).remove("z").remove("x")
        before = self.honest.to_bytes()
        with pytest.raises(InvalidArgumentError, match="forged: it claims"):
            self.honest.merge(ahead, own=ALICE.replica)
        assert self.honest.to_bytes() == before
        assert list(self.honest.merge(ahead)) == ["y"]  # the negative control: this is what it would have removed

    def test_an_own_tag_on_another_element_is_refused(self) -> None:
        tag, seen = AddTag(ALICE.replica, 2), Seen(ALICE.replica, 2, ALICE.link(2))
        moved = AddWinsSet(entries=(("evil", (tag,)),), context=(seen,))
        with pytest.raises(InvalidArgumentError, match="another element"):
            self.honest.merge(moved, own=ALICE.replica)

    def test_another_replica_takes_neither_of_two_elements_under_one_tag_in_any_order(self) -> None:
        tag, seen = AddTag(ALICE.replica, 2), Seen(ALICE.replica, 2, ALICE.link(2))
        moved = AddWinsSet(entries=(("evil", (tag,)),), context=(seen,))
        ways = [self.honest.merge(moved), moved.merge(self.honest), AddWinsSet().merge(moved).merge(self.honest)]
        assert {tuple(each) for each in ways} == {()}

    def test_counts_lines_and_writes_in_the_name_of_the_local_replica_are_refused(self) -> None:
        counter = Counter().add(3, replica="a")
        for claim in (counter.add(1, replica="a"), counter.add(-1, replica="a")):
            with pytest.raises(InvalidArgumentError, match="forged"):
                counter.merge(claim, own="a")
            assert counter.merge(claim, own="b").value == claim.value
        log = TextLog().append("mine", time=1, replica="a")
        with pytest.raises(InvalidArgumentError, match="forged"):
            log.merge(log.append("not mine", time=2, replica="a"), own="a")
        register = Register().set("mine", time=1, replica="a")
        with pytest.raises(InvalidArgumentError, match="forged"):
            register.merge(register.set("not mine", time=2, replica="a"), own="a")
        assert register.merge(register.set("theirs", time=2, replica="b"), own="a").value == "theirs"

    def test_a_forged_line_displaces_no_honest_one_and_is_listed(self) -> None:
        honest = TextLog().append("the truth", time=1, replica="a").append("more", time=2, replica="b")
        lie = TextLog().append("a lie", time=1, replica="a")
        both = lie.merge(honest)
        assert both == honest.merge(lie)
        assert both.texts == ["a lie", "the truth", "more"]
        assert [line.text for line in both.disputed] == ["a lie", "the truth"]
        assert honest.disputed == []


def _samples() -> list[Any]:
    base = AddWinsSet().add("x", ALICE).add('é"', BOB)
    return [
        Register(),
        Register().set("", time=1.5, replica="a"),
        Register().set("text", time=-2, replica="b").set(None, time=0, replica="é"),
        AddWinsSet(),
        base.add("y", ALICE).merge(base.add("y", BOB)).remove("x"),
        Counter(),
        Counter().add(5, replica="a").add(-70, replica="b"),
        TextLog(),
        TextLog().append("one", time=1, replica="a").append("", time=0.25, replica="b"),
    ]


class TestMalformedStates:
    @settings(max_examples=some(3000))
    @given(st.sampled_from(_samples()), st.data())
    def test_changed_bytes_are_refused_or_are_the_one_form_of_what_they_decode_to(
        self, state: Any, data: st.DataObject
    ) -> None:
        changed_bytes = bytearray(state.to_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(changed_bytes)))
            till = at + data.draw(st.integers(0, 3))
            changed_bytes[at:till] = data.draw(
                st.one_of(
                    st.sampled_from(
                        [b"", b" ", b"0", b"1", b"-", b".0", b"e1", b"[", b"]", b",", b'"', b"null", b"true"]
                    ),
                    st.sampled_from([bytes(changed_bytes[at : at + 9]), b"\\u0061", b"\xff", b'{"a":1}', b"NaN"]),
                    st.binary(max_size=2),
                )
            )
        for kind in TYPES:
            try:
                found = kind.from_bytes(bytes(changed_bytes))
            except InvalidArgumentError:
                continue
            assert found.to_bytes() == bytes(changed_bytes)

    @pytest.mark.parametrize(
        ("kind", "data"),
        [
            (Counter, b""),
            (Counter, b"[]"),
            (Counter, b"null"),
            (Counter, b'{"counts":[]}'),
            (Counter, b'{"counts":[],"type":"set"}'),
            (Counter, b'{"counts":[],"more":1,"type":"counter"}'),
            (Counter, b'{"type":"counter","counts":[]}'),
            (Counter, b'{"counts": [],"type":"counter"}'),
            (Counter, b'{"counts":[],"counts":[],"type":"counter"}'),
            (Counter, b'{"counts":[],"type":"counter"}\n'),
            (Counter, b'\xef\xbb\xbf{"counts":[],"type":"counter"}'),
            (Counter, b'{"counts":[["a",-1,0]],"type":"counter"}'),
            (Counter, b'{"counts":[["a",0,0]],"type":"counter"}'),
            (Counter, b'{"counts":[["a",1.0,0]],"type":"counter"}'),
            (Counter, b'{"counts":[["a",true,0]],"type":"counter"}'),
            (Counter, b'{"counts":[["a",1]],"type":"counter"}'),
            (Counter, b'{"counts":[["a",9223372036854775808,0]],"type":"counter"}'),
            (Counter, b'{"counts":[["b",1,0],["a",1,0]],"type":"counter"}'),
            (Counter, b'{"counts":[["a",1,0],["a",1,0]],"type":"counter"}'),
            (Counter, b'{"counts":[["",1,0]],"type":"counter"}'),
            (Counter, b'{"counts":[["\\u0061",1,0]],"type":"counter"}'),
            (Counter, b'{"counts":[["\\ud800",1,0]],"type":"counter"}'),
            (Counter, b'{"counts":' + b"[" * 100_000),
            (Counter, b'{"counts":[["a",' + b"9" * 10_000 + b',0]],"type":"counter"}'),
            (Register, b'{"stamp":null,"type":"register","value":"x"}'),
            (Register, b'{"stamp":[1.0,0,"a"],"type":"register","value":"x"}'),
            (Register, b'{"stamp":[NaN,0,"a"],"type":"register","value":"x"}'),
            (Register, b'{"stamp":[1e999,0,"a"],"type":"register","value":"x"}'),
            (Register, b'{"stamp":[-0.0,0,"a"],"type":"register","value":"x"}'),
            (Register, b'{"stamp":[1,0],"type":"register","value":"x"}'),
            (Register, b'{"stamp":"abc","type":"register","value":"x"}'),
            (Register, b'{"stamp":[1,-1,"a"],"type":"register","value":"x"}'),
            (Register, b'{"stamp":[1,0,"a"],"type":"register","value":1}'),
            (TextLog, b'{"lines":[[1,"a",0,"x"]],"type":"log"}'),
            (TextLog, b'{"lines":[[2,"a",1,"x"],[1,"a",2,"y"]],"type":"log"}'),
            (TextLog, b'{"lines":[[1,"a",1,"x"],[1,"a",1,"x"]],"type":"log"}'),
            (TextLog, b'{"lines":["abcd"],"type":"log"}'),
            (TextLog, b'{"lines":[[1,"a",1]],"type":"log"}'),
            (AddWinsSet, b'{"context":[],"entries":[["x",[]]],"type":"set"}'),
            (AddWinsSet, b'{"context":[],"entries":[["x",[["alice",1]]]],"type":"set"}'),
            (AddWinsSet, b'{"context":[],"entries":{},"type":"set"}'),
            (AddWinsSet, b'{"context":[[]],"entries":[],"type":"set"}'),
            (AddWinsSet, b'{"context":5,"entries":[],"type":"set"}'),
            (AddWinsSet, b'{"context":[["a",{},"b"]],"entries":[],"type":"set"}'),
            (AddWinsSet, b'{"context":[],"entries":[[[],[["a",1]]]],"type":"set"}'),
            (AddWinsSet, b'{"context":[],"entries":[["x",[[[],1],[[],2]]]],"type":"set"}'),
        ],
    )
    def test_it_is_refused_whole(self, kind: type[Any], data: bytes) -> None:
        with pytest.raises(InvalidArgumentError):
            kind.from_bytes(data)

    @pytest.mark.parametrize("data", ["text", None, bytearray(b'{"counts":[],"type":"counter"}'), 5])
    def test_what_is_no_bytes_is_refused(self, data: Any) -> None:
        with pytest.raises(InvalidArgumentError, match="must be the bytes"):
            Counter.from_bytes(data)

    def test_a_tag_on_two_elements_is_refused(self) -> None:
        tag, seen = AddTag(ALICE.replica, 1), Seen(ALICE.replica, 1, ALICE.link(1))
        for entries in ((("x", (tag,)), ("y", (tag,))), (("x", (tag, tag)),), (("y", (tag,)), ("x", (tag,)))):
            with pytest.raises(InvalidArgumentError):
                AddWinsSet(entries=entries, context=(seen,))
        with pytest.raises(InvalidArgumentError):
            AddWinsSet(entries=(("x", (tag,)),), context=(seen, seen))
        with pytest.raises(InvalidArgumentError):
            AddWinsSet(entries=(("x", (AddTag(ALICE.replica, 2),)),), context=(seen,))
        AddWinsSet(entries=(("x", (tag,)),), context=(seen,))  # the negative control

    @pytest.mark.parametrize("kind", TYPES)
    def test_states_of_other_types_are_not_merged(self, kind: type[Any]) -> None:
        for other in TYPES:
            if other is not kind:
                with pytest.raises(InvalidArgumentError, match="must be a"):
                    kind().merge(other())

    def test_records_cannot_exist_in_a_broken_state(self) -> None:
        for make in (
            lambda: Counter().add(1, replica=""),
            lambda: Counter().add(2**63, replica="a"),
            lambda: Counter().add(2**63 - 1, replica="a").add(1, replica="a"),
            lambda: Counter(counts=(("a", 1),)),  # type: ignore[arg-type]
            lambda: TextLog().append("x", time=1, replica=""),
            lambda: TextLog().append("\ud800", time=1, replica="a"),
            lambda: TextLog(lines=(Line(1, "a", 1, "x"), Line(0, "a", 2, "x"))),
            lambda: TextLog(lines=("x",)),  # type: ignore[arg-type]
            lambda: Register(value="x"),
            lambda: Register(stamp=Stamp(1, 0, ""), value="x"),
            lambda: Register(stamp=(1, 2), value="x"),  # type: ignore[arg-type]
            lambda: AddWinsSet().add(b"x", ALICE),  # type: ignore[arg-type]
        ):
            with pytest.raises(InvalidArgumentError):
                make()
