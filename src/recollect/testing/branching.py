"""Branches compared with a model: any sequence of calls on several branches must do what lists of dicts would.

The model has, for each branch, the records after each commit. Besides, what a store shows of a branch that continues
another one must be what it shows of a branch that begins empty with the same commits (`flattened`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from recollect import filters as f
from recollect.engine.engine import Engine
from recollect.engine.executor import Executor
from recollect.errors import BranchExistsError, BranchInUseError, UnknownBranchError
from recollect.filters.tree import Custom
from recollect.ledger.commits import KEPT, MAIN, Branch, Stored
from recollect.ledger.merkle import PUBLIC_KEY, Root, Trie, version_hash
from recollect.ledger.verifying import verify
from recollect.memory.memory import Memory
from recollect.operations import ORDERS
from recollect.operations.branches import OnConflict
from recollect.records.record import Record
from recollect.stores.base import Store, View
from recollect.stores.memory import MemoryStore
from recollect.stores.replaying import Replayer
from recollect.stores.values import RemovedPayload, sort_key
from recollect.testing.machine import TickingClock, memory_on

#: The records and the keys of a branch after a commit: id -> text, and key -> value.
State: TypeAlias = tuple[dict[str, str], dict[str, bytes]]
IDS = st.sampled_from([f"r{number}" for number in range(3)])
NAMES = st.sampled_from(["one", "two", "three", "four"])
_KEY = "k"
_LATE = 2**60


def flattened(view: View, branch: Branch, key: bytes) -> tuple[Store, Branch]:
    """Return a store in memory with a branch that begins empty and has the commits of another one."""
    store, flat = MemoryStore(key=key), Branch(branch.namespace)

    def version_of(version: bytes) -> Stored | RemovedPayload:
        payload = view.payload(branch, version)
        return view.removed(branch, [version])[version] if payload is None else Stored(version, payload)

    replayer = Replayer(flat, key, version_of, Trie(Root()))
    with store.write(flat) as transaction:
        for commit in view.commits(branch):
            replayer.write(transaction, replace(commit, branch=MAIN), view.redactions(branch, commit.seq))
    return store, flat


def assert_as_flattened(store: Store, branch: Branch) -> None:
    """Assert that a view shows a branch as it shows one that begins empty with the same commits."""
    with store.read() as view:
        other, flat = flattened(view, branch, store.key)
        with other.read() as plain:
            head, ids = view.head(branch), sorted({*view.changed(branch, 0), "absent"})
            now = head.micros
            assert head.root.hash == plain.head(flat).root.hash
            assert head[2:] == plain.head(flat)[2:]
            assert dict(view.versions(branch)) == dict(plain.versions(flat))
            assert view.several(branch, ids) == plain.several(flat, ids)
            assert [view.get(branch, each) for each in ids] == [plain.get(flat, each) for each in ids]
            assert [view.known(branch, each) for each in ids] == [plain.known(flat, each) for each in ids]
            assert view.resolve(branch, ids, now) == plain.resolve(flat, ids, now)
            assert view.nbytes(branch) == plain.nbytes(flat)
            assert view.due(branch, _LATE, 9) == plain.due(flat, _LATE, 9)
            assert view.next_expiry(branch, 0) == plain.next_expiry(flat, 0)
            assert [view.any_id(branch, each) for each in "rx"] == [plain.any_id(flat, each) for each in "rx"]
            for where in (f.everything(), f.kind("conversation"), Custom(lambda record: "7" in str(record.content))):
                assert view.count(branch, where, now=now) == plain.count(flat, where, now=now)
                assert view.tally(branch, where, now=now) == plain.tally(flat, where, now=now)
                for order in ORDERS:
                    found = list(view.select(branch, where, order=order, now=now))
                    assert found == list(plain.select(flat, where, order=order, now=now))
                    for first, _ in pairwise(found):
                        after = sort_key(first, order)
                        rest = list(view.select(branch, where, order=order, after=after, limit=2, now=now))
                        assert rest == list(plain.select(flat, where, order=order, after=after, limit=2, now=now))
            for conversation in ("c", "d"):
                assert view.last_position(branch, conversation) == plain.last_position(flat, conversation)
                turns = [view.turns_at(branch, conversation, position) for position in range(4)]
                assert turns == [plain.turns_at(flat, conversation, position) for position in range(4)]
            assert view.last_commits(branch, ids) == plain.last_commits(flat, ids)
            assert _log(view, branch) == _log(plain, flat)
            for record_id in ids:
                assert _log(view, branch, record_id=record_id) == _log(plain, flat, record_id=record_id)
            for seq in range(head.seq + 2):
                _assert_same_at(view, branch, plain, flat, ids, seq)
    other.close()


def _assert_same_at(view: View, branch: Branch, plain: View, flat: Branch, ids: list[str], seq: int) -> None:
    end = view.head(branch).seq
    assert view.root_at(branch, seq) == plain.root_at(flat, seq)
    assert view.head_at(branch, seq) == plain.head_at(flat, seq)
    assert _log(view, branch, since=seq, limit=3) == _log(plain, flat, since=seq, limit=3)
    backwards = {"before": seq, "newest_first": True, "limit": 2}
    assert _log(view, branch, **backwards) == _log(plain, flat, **backwards)
    assert sorted(view.changed(branch, seq)) == sorted(plain.changed(flat, seq))
    assert view.last_touched(branch, seq) == plain.last_touched(flat, seq)
    assert view.versions_at(branch, ids, seq) == plain.versions_at(flat, ids, seq)
    assert view.net_changes(branch, 0, seq) == plain.net_changes(flat, 0, seq)
    assert view.net_changes(branch, seq, end) == plain.net_changes(flat, seq, end)
    assert view.has_erased(branch, seq) == plain.has_erased(flat, seq)
    assert view.count_changes(branch, 0, seq, 9) == plain.count_changes(flat, 0, seq, 9)
    assert len(list(view.entries(branch, seq))) == len(list(plain.entries(flat, seq)))
    if (root := view.root_at(branch, seq)) is not None:
        assert view.newest_with(branch, root) == plain.newest_with(flat, root)
    for since, upto in ((0, seq), (seq, end)):
        found, expected = view.lives(branch, since, upto), plain.lives(flat, since, upto)
        versions = {each: live and live.version for each, live in found.items()}
        assert versions == {each: live and live.version for each, live in expected.items()}


def _log(view: View, branch: Branch, **arguments: Any) -> list[Any]:
    """Return commits without what differs between two stores."""
    found = view.commits(branch, **arguments)
    return [
        (each.seq, each.micros, each.actor, each.reason, each.root.hash, each.changes, each.parts) for each in found
    ]


@dataclass
class BranchModel:
    """The model of a branch.

    Attributes:
        states: What it has after each commit, from the empty one on.
        stamps: When each of these commits was made.
        base: The name of the branch that it continues, and the commit.
        own_heads: Whether it was written.
        kept: The records of which merges have stated that they stay as they are, by commit.
    """

    states: list[State] = field(default_factory=lambda: [({}, {})])
    stamps: list[int] = field(default_factory=lambda: [0])
    base: tuple[str, int] | None = None
    own_heads: bool = True
    kept: dict[int, set[str]] = field(default_factory=dict)

    def add(self, state: State, stamp: int) -> None:
        """Add a commit."""
        self.states.append(state)
        self.stamps.append(stamp)


class _Taken(NamedTuple):
    """What a branch has of another one: up to which commit, since which commit, and what both began with."""

    seq: int
    at: int
    base: tuple[str, int] | None


def _begun(common: list[str | None], before: str | None) -> tuple[str | None, bool]:
    """Return what both branches began with, and whether each has decided for itself."""
    changed = {each for each in common if each != before}
    if len(changed) > 1:
        return before, True
    return next(iter(changed), before), False


def _order(record: Record) -> tuple[datetime | None, bytes]:
    return record.time, _version(record)


def _version(record: Record) -> bytes:
    return version_hash(record.id, record.to_bytes(), PUBLIC_KEY)


def branch_machine(
    open_store: Callable[[], Store],
    reopen: Callable[[Store], Store] | None = None,
    through: Callable[[Engine], Executor] | None = None,
) -> type[RuleBasedStateMachine]:
    """Create a Hypothesis state machine for the branches of a memory on a store. See `machine.memory_machine`."""

    class BranchMachine(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.clock = TickingClock()
            self.memory = memory_on(open_store(), clock=self.clock, through=through)
            self.lines = {MAIN: BranchModel()}
            self.used = {MAIN}
            self.erased: set[tuple[str, str]] = set()  # ids and texts: each text is written once
            self.texts = 0
            self.turns: set[str] = set()  # those of turns
            self.merged: dict[tuple[str, str], _Taken] = {}  # (into, of) -> what was merged
            self.now = 0

        # What the model says

        def shown(self, state: State) -> State:
            """Return a state as it is read now: without what was erased since."""
            return {each: text for each, text in state[0].items() if (each, text) not in self.erased}, state[1]

        def commit(
            self, name: str, records: dict[str, str] | None = None, keys: dict[str, bytes] | None = None
        ) -> None:
            """Note a commit of a branch, if it is one."""
            line = self.lines[name]
            known, shown = line.states[-1], self.shown(line.states[-1])
            new = shown[0] if records is None else records, shown[1] if keys is None else keys
            line.own_heads = True
            if new != known:
                self.add(name, new)

        def add(self, name: str, state: State) -> None:
            self.now += 1
            self.lines[name].add(state, self.now)

        def on(self, name: str) -> Memory:
            return self.memory if name == MAIN else self.memory.on(name)

        def pick(self, data: st.DataObject) -> str:
            name: str = data.draw(st.sampled_from(sorted(self.lines)))
            return name

        # Rules

        @rule(data=st.data(), record_id=IDS, turn=st.booleans(), expires=st.booleans())
        def remember(self, data: st.DataObject, record_id: str, turn: bool, expires: bool) -> None:
            name, self.texts = self.pick(data), self.texts + 1
            text = f"text {self.texts} of tea and boats"
            fields: dict[str, Any] = {"ttl": 10**6} if expires else {}
            if turn:
                fields |= {"conversation": "c", "role": "user", "position": self.texts % 3}
            if turn or self.shown(self.lines[name].states[-1])[0].get(record_id) in self.turns:  # it stays one
                self.turns.add(text)
            self.on(name).remember(text, id=record_id, if_exists="update", **fields)
            self.commit(name, {**self.shown(self.lines[name].states[-1])[0], record_id: text})

        @rule(data=st.data(), record_id=IDS)
        def forget(self, data: st.DataObject, record_id: str) -> None:
            name = self.pick(data)
            self.on(name).forget(record_id, missing="ignore")
            kept = {
                each: text for each, text in self.shown(self.lines[name].states[-1])[0].items() if each != record_id
            }
            self.commit(name, kept)

        @rule(data=st.data(), value=st.sampled_from([b"1", b"2"]))
        def write_key(self, data: st.DataObject, value: bytes) -> None:
            name = self.pick(data)
            before = len(self.lines[name].states)
            self.on(name).keyed.write(_KEY, value)
            self.commit(name, keys={_KEY: value})
            if len(self.lines[name].states) == before:  # the version of a key counts up, also for an equal value
                self.add(name, self.shown(self.lines[name].states[-1]))

        @rule(data=st.data(), record_id=IDS, redact=st.booleans())
        def erase(self, data: st.DataObject, record_id: str, redact: bool) -> None:
            name = self.pick(data)
            ever = {each: {s[0].get(record_id) for s in line.states} - {None} for each, line in self.lines.items()}
            texts = {(record_id, str(text)) for texts in ever.values() for text in texts}
            if not texts - self.erased:
                return
            self.on(name).erase(record_id, redact=redact)
            written = self.lines[name]
            is_late = not written.own_heads and written.states[-1] != self.shown(written.states[-1])
            written.own_heads = True
            for each, line in self.lines.items():
                if line.own_heads and (ever[each] or each == MAIN or (each == name and is_late)):
                    self.add(each, line.states[-1])  # the commit of the erasure, also of former versions alone
            self.erased |= texts | {("", text) for _, text in texts}
            for line in self.lines.values():
                if line.own_heads:
                    line.states[-1] = self.shown(line.states[-1])
                if redact:  # what is stored under the id later has nothing to do with this
                    named = [
                        ({("" if each == record_id else each): text for each, text in s[0].items()}, s[1])
                        for s in line.states
                    ]
                    line.states = named

        @rule(data=st.data(), new=NAMES)
        def create(self, data: st.DataObject, new: str) -> None:
            name = self.pick(data)
            line = self.lines[name]
            if new in self.used:
                try:
                    self.on(name).branch(new)
                except BranchExistsError:
                    return
                raise AssertionError("a name was used again")
            seq = data.draw(st.integers(0, len(line.states) - 1))
            self.on(name).branch(new, at=seq)
            self.used.add(new)
            base = name, seq
            while (further := self.lines[base[0]].base) is not None and seq <= further[1]:
                base = further[0], seq
            self.lines[new] = BranchModel(line.states[: seq + 1], line.stamps[: seq + 1], base, own_heads=False)

        @precondition(lambda self: len(self.lines) > 1)
        @rule(data=st.data())
        def drop(self, data: st.DataObject) -> None:
            name = data.draw(st.sampled_from(sorted(self.lines.keys() - {MAIN})))
            in_use = any(line.base is not None and line.base[0] == name for line in self.lines.values())
            opened = self.on(name)
            try:
                self.memory.drop_branch(name)
                assert not in_use
            except BranchInUseError:
                assert in_use
                return
            del self.lines[name]
            try:
                opened.count()
                raise AssertionError("a branch that was dropped can be read")
            except UnknownBranchError:
                pass

        @precondition(lambda self: len(self.lines) > 1)
        @rule(data=st.data(), on_conflict=st.sampled_from(["list", "ours", "theirs"]))
        def merge(self, data: st.DataObject, on_conflict: OnConflict) -> None:
            into = self.pick(data)
            of = data.draw(st.sampled_from(sorted(self.lines.keys() - {into})))
            ours, theirs = self.lines[into], self.lines[of]
            bases, earlier, since = self.meeting(into, of)
            twice = self.kept_twice(into, of)
            merged = self.on(into).merge_branch(of, on_conflict=on_conflict)
            if since >= len(theirs.states) - 1:
                assert not merged
                return
            before, own, other = (self.shown(each)[0] for each in (earlier, ours.states[-1], theirs.states[-1]))
            common = [self.shown(each)[0] for each in bases]
            records, conflicts = dict(own), set()
            for record_id in sorted({*before, *own, *other, *(each for base in common for each in base)}):
                o, t = own.get(record_id), other.get(record_id)
                b, split = _begun([base.get(record_id) for base in common], before.get(record_id))
                if t == o or (t == b and not split) or not self.has_changed(theirs, since, record_id):
                    continue
                if (o != b or split) and b is None and {o, t} <= self.turns:
                    records |= twice[record_id]
                elif o != b or split:
                    conflicts.add(record_id)
                if (o == b and not split) or (record_id in conflicts and on_conflict == "theirs"):
                    records.pop(record_id, None)
                    records |= {} if t is None else {record_id: t}
            found = {each.id for each in merged.conflicts if each.part == "records"}
            assert found == (conflicts if on_conflict == "list" else set())
            if on_conflict == "list" and merged.conflicts:
                assert not merged
                return
            key = self.on(into).keyed.read(_KEY)
            if not merged:
                assert (records, key) == (own, ours.states[-1][1].get(_KEY))
                assert not merged.kept
                self.note(into, of, len(ours.states) - 1)
                return
            assert merged.seq == len(ours.states)
            [newest] = self.on(into).changes(limit=1, newest_first=True)
            ours.kept[merged.seq] = {each.id for each in newest.changes if each.cause == KEPT}
            assert all(records.get(each) == own.get(each) for each in ours.kept[merged.seq])
            assert key in (ours.states[-1][1].get(_KEY), theirs.states[-1][1].get(_KEY))
            self.note(into, of, merged.seq)
            ours.own_heads = True
            self.add(into, (records, {} if key is None else {_KEY: key}))

        def kept_twice(self, into: str, of: str) -> dict[str, dict[str, str]]:
            """Return what turns of two branches under one id become: the earlier one has it in both branches."""
            out = {}
            own, other = ({each.id: each for each in self.on(name).find(limit=None)} for name in (into, of))
            for record_id in own.keys() & other.keys():
                first, second = sorted((own[record_id], other[record_id]), key=_order)
                later = f"{record_id}~{_version(second).hex()[:16]}"
                out[record_id] = {record_id: str(first.content), later: str(second.content)}
            return out

        def note(self, into: str, of: str, at: int) -> None:
            """Note a merge, and with it what the other branch had merged."""
            own, seq = self.line(into), len(self.lines[of].states) - 1
            bases = self.points(into, of)
            for branch, newest in self.line(of).items():
                there = {branch: newest}
                for (taker, taken), found in self.merged.items():
                    if taker == branch and found.at <= newest:
                        there[taken] = found.seq
                for each, known in there.items():
                    before = self.merged.get((into, each))
                    if each not in (into, of) and known > max(own.get(each, 0), 0 if before is None else before.seq):
                        self.merged[into, each] = _Taken(known, at, None)
            self.merged[into, of] = _Taken(seq, at, bases[0][0] if len(bases[0]) == 1 else bases[1])

        def has_changed(self, line: BranchModel, since: int, record_id: str) -> bool:
            stated = any(record_id in ids for seq, ids in line.kept.items() if seq > since)
            return stated or len({records.get(record_id) for records, _ in line.states[since:]}) > 1

        def meeting(self, into: str, of: str) -> tuple[list[State], State, int]:
            """Return what two branches have in common: one state or two, one before, and the commit of the other."""
            points, before, since = self.points(into, of)
            states = [self.lines[name].states[seq] for name, seq in (*points, before)]
            return states[:-1], states[-1], since

        def points(self, into: str, of: str) -> tuple[list[tuple[str, int]], tuple[str, int], int]:
            own, other = self.line(into), self.line(of)
            fork = max(((each, min(own[each], other[each])) for each in own.keys() & other.keys()), key=itemgetter(1))
            taken, given = self.newest(other, own, fork[1]), self.newest(own, other, fork[1])
            since = fork[1] if taken is None else taken[0][1]
            if taken is None or given is None:
                return [each[0] for each in (taken, given) if each is not None] or [fork], fork, since
            if given[0][1] >= taken[1].at:
                return [given[0]], fork, since
            if since >= given[1].at:
                return [taken[0]], fork, since
            base = taken[1].base if taken[0] == (of, taken[1].seq) else None
            if base is None or base[1] > max(own.get(base[0], 0), other.get(base[0], 0)):
                base = fork
            return [taken[0], given[0]], base, since

        def newest(
            self, branches: dict[str, int], into: dict[str, int], after: int
        ) -> tuple[tuple[str, int], _Taken] | None:
            """Return the newest state of some branches that was merged into others, if it is newer than a commit."""
            found = [
                ((branch, min(taken.seq, seq)), taken)
                for branch, seq in branches.items()
                for other, head in into.items()
                if (taken := self.merged.get((other, branch))) is not None and taken.at <= head
            ]
            best = max(found, key=lambda each: each[0][1], default=None)
            return best if best is not None and best[0][1] > after else None

        def line(self, name: str) -> dict[str, int]:
            out, seq, following = {}, len(self.lines[name].states) - 1, name
            while True:
                out[following] = seq
                base = self.lines[following].base
                if base is None:
                    return out
                following, seq = base[0], min(seq, base[1])

        @rule(data=st.data())
        def roll_back(self, data: st.DataObject) -> None:
            name = self.pick(data)
            line = self.lines[name]
            seq = data.draw(st.integers(0, len(line.states) - 1))
            self.on(name).rollback(seq, parts=["records"])
            self.commit(name, self.shown(line.states[seq])[0])

        @rule(data=st.data())
        def mark(self, data: st.DataObject) -> None:
            name = self.pick(data)
            made = self.on(name).snapshot()
            assert made.seq == len(self.lines[name].states) - 1

        if reopen is not None:

            @rule()
            def restart(self) -> None:
                executor: Any = self.memory._executor
                while not isinstance(executor, Engine):
                    executor = executor.executor
                executor.close()
                self.memory = memory_on(reopen(executor.core.store), clock=self.clock, through=through)

        # What must be true

        @invariant()
        def each_branch_has_what_the_model_has(self) -> None:
            for name, line in self.lines.items():
                memory, (records, keys) = self.on(name), self.shown(line.states[-1])
                assert memory.seq == len(line.states) - 1, name
                assert {record.id: record.content for record in memory.find()} == records, name
                assert memory.count() == len(records)
                found = memory.keyed.read(_KEY)
                assert found == keys.get(_KEY)
                hits = memory.recall("tea and boats", k=9)
                assert {hit.record.id for hit in hits} == set(records), name

        def teardown(self) -> None:
            executor: Any = self.memory._executor
            while not isinstance(executor, Engine):
                executor = executor.executor
            store = executor.core.store
            assert store.check() == []
            for name, line in self.lines.items():
                memory = self.on(name)
                for seq in range(len(line.states)):
                    at = {record.id: record.content for record in memory.at(seq).find()}
                    assert at == self.shown(line.states[seq])[0], (name, seq)
                if line.base is not None and line.base[1]:
                    assert verify(memory.prove_log(line.base[1]), memory.head().log or "")
                for record in memory.find():
                    assert verify(memory.prove(record.id), memory.root)
                for part in Branch("default", name).family:
                    assert_as_flattened(store, part)
            executor.close()

    return BranchMachine
