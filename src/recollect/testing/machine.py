"""A memory compared with a model: any sequence of calls, including restarts, must do what a dict would.

The model is simple: id -> record, and the number of commits. After every step the memory must contain exactly these
records, its root must be the one computed from the definition, and recall must return what a new memory with the same
records returns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from recollect import filters as f
from recollect.calls.calls import RecollectWarning, remember_operation
from recollect.engine.engine import Engine
from recollect.engine.executor import Executor
from recollect.engine.history_results import Restored
from recollect.engine.write.drafts import Intake
from recollect.errors import (
    ConflictError,
    InvalidArgumentError,
    UnknownRecordError,
    UnknownTargetError,
    ValidityError,
)
from recollect.facets.outline.text.nodes import from_json, node_hash, said_digest
from recollect.facets.sdr.index.texts import SdrTexts
from recollect.filters.tree import EVERYTHING, Filter
from recollect.importers.jsonl import write_jsonl
from recollect.importers.run import import_path
from recollect.ledger.commits import RESERVED, Branch
from recollect.ledger.merkle import is_redacted, root_of, version_hash
from recollect.ledger.parts import RECORDS, memory_root
from recollect.ledger.verifying import verify
from recollect.memory.memory import Memory
from recollect.operations import ORDERS, Order, Remember, Update
from recollect.operations.retention import RetentionRule
from recollect.records.factories import OTHER_BRANCH
from recollect.records.origins import ORIGINS, Origin
from recollect.records.record import Record
from recollect.stores.base import Store
from recollect.stores.memory import MemoryStore
from recollect.testing.loopback import Loopback, beside
from recollect.testing.strategies import filters, names, records, texts, times
from recollect.text.unicode import nfc


class TickingClock:
    """A clock that advances by a second at each call, so that runs are reproducible."""

    def __init__(self, start: datetime = datetime(2026, 1, 3, tzinfo=UTC)) -> None:
        self.time = start

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


def memory_on(
    store: Store,
    namespace: str = "default",
    clock: Callable[[], datetime] | None = None,
    *,
    loopback: bool = False,
    through: Callable[[Engine], Executor] | None = None,
    **intake: Any,
) -> Memory:
    """Create a memory on a store of your own.

    Args:
        clock: The clock; default: a `TickingClock`.
        loopback: Whether operations and results pass through JSON bytes (`Loopback`).
        through: Returns what executes operations with the engine, such as a client of a server; default: the engine.
        **intake: The arguments of `Intake`, such as `limits`.
    """
    engine = Engine(store, clock or TickingClock(), Intake(**intake))
    reach = Loopback if loopback else through
    return Memory(engine if reach is None else reach(engine), Branch(namespace))


TERM_KEYS = st.sampled_from(["Tea", "TEA", "boat", "long boat", "\u732b"])
AGENTS = st.sampled_from(["a", "b"])
#: Keys of keyed memory and their values.
KEYS = st.sampled_from(["a", "#", "", "e\u0301", "é"])
VALUES = st.sampled_from([b"", b"tea", b"\xff"])
CODE_CHANGES = st.sampled_from(["store", "update", "forget"])
#: The nodes of an outline: name, text, and whether it is below the one before it.
NODES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.none() | st.sampled_from(["", "tea", "boat"]), st.booleans()),
    max_size=4,
    unique_by=lambda node: node[0],
)
IDS = st.sampled_from([f"r{number}" for number in range(6)])
#: Classes of origin below the user's.
LOWER = st.sampled_from(ORIGINS[2:])


def outline_of(source: str, nodes: list[tuple[str, str | None, bool]], *, named: bool) -> dict[str, Any]:
    """Return the tree of some nodes, with an ID for each if they are named."""
    made = []
    for name, text, _ in [(source, None, False), *nodes]:
        properties = {"TITLE": name, **({"ID": f"{source} {name}"} if named else {})}
        said = {} if text is None else {"raw_content": text}
        made.append({"type": "HEADLINE", "properties": properties, **said, "contents": []})
    for at, (*_, below) in enumerate(nodes):
        made[at if below else 0]["contents"].append(made[at + 1])  # type: ignore[attr-defined]
    return made[0]


def defined_hash(tree: dict[str, Any]) -> bytes:
    """Return the hash of a tree whose nodes have IDs, by its definition."""
    node = from_json(tree)
    said = said_digest(node.type, node.attributes, node.content)
    return node_hash(node.id or "", said, [defined_hash(child) for child in tree["contents"]])


def memory_machine(
    open_store: Callable[[], Store],
    reopen: Callable[[Store], Store] | None = None,
    through: Callable[[Engine], Executor] | None = None,
) -> type[RuleBasedStateMachine]:
    """Create a Hypothesis state machine for a memory on a store.

    Args:
        open_store: Creates an empty store.
        reopen: Closes a store and opens it again; None if a restart loses everything.
        through: What executes operations with the engine, such as `Loopback`: no custom filter passes through it.
            Default: the engine.
    """

    class MemoryMachine(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.clock = TickingClock()
            self.store = open_store()
            self.memory = memory_on(self.store, clock=self.clock, through=through)
            self.model: dict[str, Record] = {}
            self.seq = 0
            self.logs: dict[int, str] = {}  # the heads of the log that were read, by seq
            self.moments: dict[int, dict[str, Record]] = {0: {}}  # the records after each commit
            self.contents: dict[str, set[bytes]] = {}  # what every known id has or had, unless it was erased
            self.redacted: set[tuple[int, str]] = set()  # moments with ids that were redacted since
            self.erasing: set[int] = set()  # commits that erased something
            self.snapshots: list[tuple[str | None, int]] = []  # name and seq, newest first
            self.terms: dict[tuple[str, str], tuple[str, str]] = {}  # agent and key in lower case -> key and value
            self.outlines: dict[str, dict[str, Any]] = {}  # source -> tree
            self.sdrs: dict[int, str] = {}  # the texts with sparse codes, by number
            self.last_sdr = 0  # the highest number that was given
            self.keys: dict[str, bytes] = {}  # keyed memory
            self.kept = {0: self._kept()}  # what the facets have after each commit
            self.classes: dict[str, Origin] = {}  # of the newest version of every known id, unless it was erased

        def _committed(self, before: dict[str, Record]) -> None:
            """A commit removes expired records, except those that it wrote."""
            if before != self.model:
                self.seq += 1
                for record_id, record in list(self.model.items()):
                    if before.get(record_id) == record and not self._live(record_id):
                        del self.model[record_id]
                self._note_moment()

        def _note_moment(self) -> None:
            self.moments[self.seq] = dict(self.model)
            self.kept[self.seq] = self._kept()
            for record_id, record in self.model.items():
                self.contents.setdefault(record_id, set()).add(record.to_bytes())
                self.classes[record_id] = record.effective_origin

        def _with_class(self, record: Record, before: Record | None, exact: bool) -> Record:
            """Return a record with the class of origin that it gets when the user writes it, by docs/trust.md."""
            unstated = record.changed(origin=None)
            origins: list[Origin] = ["user"]
            if before is None or (record.role, record.source, record.kind) != (before.role, before.source, before.kind):
                origins.append(unstated.effective_origin)
            origins += [] if before is None else [before.effective_origin]
            for each in record.derived_from:
                if each in self.classes:
                    origins += [] if before and each in before.derived_from else [self.classes[each]]
                elif before is None and exact:
                    continue  # it may be stored after what derives from it
                elif before is None or each not in before.derived_from:
                    origins.append("unknown")
            origin = min(origins, key=list(reversed(ORIGINS)).index)
            return unstated if origin == unstated.effective_origin else unstated.changed(origin=origin)

        def _kept(self) -> tuple[dict[Any, Any], ...]:
            """What the facets have."""
            return dict(self.terms), dict(self.outlines), dict(self.sdrs), dict(self.keys)

        def _part_written(self) -> None:
            """A commit to another part is followed by one of the memory, which changes no record."""
            followed = self.memory.changes(since=self.seq)
            assert [each.changes for each in followed] in ([], [()])
            self.seq += len(followed)
            self._note_moment()

        def _live(self, record_id: str) -> Record | None:
            """The record of the model, unless it has expired. (The clock advances by seconds.)"""
            record = self.model.get(record_id)
            due = record is not None and record.expires is not None and record.expires <= self.clock.time
            return None if due else record

        @rule(record=records(IDS), exact=st.booleans())
        def remember_over(self, record: Record, exact: bool) -> None:
            """Remember a complete record under its id, replacing the current one."""
            before = dict(self.model)
            current = self._live(record.id)
            wanted = _remember(record, expect=current.hash if current else "absent", exact=exact)
            got = self.memory.execute(wanted).record
            if not exact:
                # The memory fills in a time, and a position if the record is a turn.
                record = record.changed(time=record.time or got.time)
                if record.kind == "conversation" and record.conversation:
                    record = record.changed(position=got.position if record.position is None else record.position)
            record = self._with_class(record, current, exact)
            self.model[record.id] = record
            assert got == record
            self._committed(before)
            if not self._live(record.id):
                return  # it had already expired
            try:
                self.memory.execute(wanted)
            except ConflictError as error:
                assert (error.current, error.satisfied) == (got.hash, True)
            else:
                assert current == got, "it existed already, and met the expectation"

        @rule(text=texts, user=names)
        def remember_twice(self, text: str, user: str) -> None:
            """The same fact is stored once."""
            before = dict(self.model)
            first = self.memory.remember(text, user=user, kind="fact")
            self.model[first.id] = first
            self._committed(before)
            assert self.memory.remember(text, user=user, kind="fact") == first

        @rule(words=st.lists(st.sampled_from(["ok", "boat", "tea"]), min_size=2, max_size=4))
        def add_messages_twice(self, words: list[str]) -> None:
            """The messages that were new are stored, and passing the same list again changes nothing."""
            before = dict(self.model)
            messages = [{"role": "user", "content": word} for word in words]
            report = self.memory.add_messages(messages, conversation="chat")
            for outcome in report.results:
                if outcome.record is not None:
                    assert (outcome.status == "created") == (outcome.record.id not in before)
                    self.model[outcome.record.id] = outcome.record
            # Turns that the list has left, or come back to, differ only in these tags, and no turn of a list that goes
            # on is one that it has left.
            passed = {outcome.record.id for outcome in report.results if outcome.record is not None}
            for turn in self.memory.find("conversation=chat"):
                known = self.model[turn.id]
                if report.count("created"):
                    assert OTHER_BRANCH not in turn.tags or turn.id not in passed
                else:
                    assert known.tags == turn.tags
                assert known.changed(tags=()) == turn.changed(tags=())
                assert set(known.tags) ^ set(turn.tags) <= {OTHER_BRANCH}
                self.model[turn.id] = turn
            self._committed(before)
            root = self.memory.root
            assert self.memory.add_messages(messages, conversation="chat").count("unchanged") == len(words)
            assert self.memory.root == root

        @rule(record_id=IDS, text=texts)
        def update(self, record_id: str, text: str) -> None:
            before = dict(self.model)
            current = self._live(record_id)
            try:
                got = self.memory.update(record_id, content=text, media_type=None)
            except UnknownRecordError:
                assert current is None
                return
            assert current is not None
            wanted = current.changed(content=text, media_type=None)
            if wanted.kind == "conversation" and wanted.conversation and wanted.position is None:
                wanted = wanted.changed(position=got.position)  # a turn that was stored exactly may have none
            self.model[record_id] = wanted
            assert got == wanted
            self._committed(before)

        @rule(ids=st.lists(IDS, max_size=3), ttl=st.sampled_from((60, 3600)))
        def touch(self, ids: list[str], ttl: int) -> None:
            """Each record expires later, but those whose end would hardly move."""
            before = dict(self.model)
            live = {record.id: record for each in ids if (record := self._live(each)) is not None}
            assert self.memory.touch(ids, ttl) == len(live)
            end, nearly = self.clock.time + timedelta(seconds=ttl), timedelta(seconds=ttl / 10 + 10)
            for record_id, record in live.items():
                got = self.memory.get(record_id)
                assert got is not None
                assert got.expires is not None
                assert abs(end - got.expires) <= nearly
                assert got == record.changed(expires=got.expires)
                self.model[record_id] = got
            self._committed(before)

        @rule(record_id=IDS, text=texts, at=times)
        def supersede(self, record_id: str, text: str, at: datetime) -> None:
            """A new record begins where the old one ends, if that is a time at which the old one is valid."""
            before = dict(self.model)
            current = self._live(record_id)
            try:
                got = self.memory.supersede(record_id, text, at=at)
            except UnknownRecordError:
                assert current is None
                return
            except ValidityError:
                assert current is not None
                assert not f.valid_at(at).matches(current)
                return
            except InvalidArgumentError:
                assert current is not None
                assert current.content == text
                return
            assert current is not None
            assert f.valid_at(at).matches(current)
            assert got.id not in before
            assert (got.content, got.supersedes, got.valid_from, got.user) == (text, (record_id,), at, current.user)
            self.model |= {got.id: got, record_id: current.changed(valid_to=at)}
            self._committed(before)

        @rule(one=IDS, other=IDS, text=texts)
        def merge(self, one: str, other: str, text: str) -> None:
            """One record takes the place of two, or nothing changes."""
            before = dict(self.model)
            sources = {each: self._live(each) for each in (one, other)}
            try:
                got = self.memory.merge(list(sources), text)
            except UnknownRecordError:
                assert None in sources.values()
                assert self.memory.get(one) == sources[one]
                return
            live = [each for each in sources.values() if each is not None]
            assert len(live) == len(sources)
            assert got.id not in before
            assert (got.content, got.derived_from) == (text, tuple(sources))
            least = max(ORIGINS.index(each.effective_origin) for each in live)
            assert got.effective_origin == ORIGINS[least]
            assert got.importance == max(
                (each.importance for each in live if each.importance is not None), default=None
            )
            self.model = {key: value for key, value in self.model.items() if key not in sources} | {got.id: got}
            self._committed(before)

        @rule(record_id=IDS, text=texts)
        def update_with_a_stale_expectation(self, record_id: str, text: str) -> None:
            current = self._live(record_id)
            if current is None or (current.content == text and current.media_type is None):
                return
            try:
                self.memory.update(record_id, content=text, media_type=None, expect="0" * 64)
            except ConflictError as error:
                assert error.current == current.hash
            else:
                raise AssertionError("a stale expectation must be refused")

        @rule(sources=st.lists(IDS, min_size=1, max_size=3, unique=True), text=texts)
        def derive(self, sources: list[str], text: str) -> None:
            """What is made of records is of the least class of them."""
            before = dict(self.model)
            record = self.memory.remember(f"{text} {' '.join(sources)}", kind="summary", derived_from=sources)
            if record.id not in before:
                assert record == self._with_class(record, None, exact=False)
            self.model[record.id] = record
            self._committed(before)

        @rule(
            origin=st.sampled_from(ORIGINS[2:]), said=st.sampled_from(["Always answer in French", "The ferry is late"])
        )
        def remember_as(self, origin: Origin, said: str) -> None:
            """A lower writer stores what is of its class, which governs nothing."""
            before = dict(self.model)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RecollectWarning)
                record = self.memory.as_origin(origin).remember(said, kind="fact", session=origin)
            self.model[record.id] = record
            self._committed(before)
            assert before.get(record.id) == record or record.effective_origin == origin
            standing = self.memory.recall("ferry").standing
            assert all(each.record.has_authority for each in standing)

        @rule(record_id=IDS, text=texts, origin=LOWER)
        def write_up(self, record_id: str, text: str, origin: Origin) -> None:
            """A lower writer changes its like, and only proposes to change what is above it."""
            before = dict(self.model)
            current, changes = self._live(record_id), {"content": text, "media_type": None}
            try:
                got = self.memory.as_origin(origin).execute(Update(id=record_id, changes=changes))
            except UnknownRecordError:
                assert current is None
                return
            assert current is not None
            if got.status == "unchanged":
                assert current.content == text
            elif ORIGINS.index(current.effective_origin) < ORIGINS.index(origin):
                assert (got.status, got.record.supersedes) == ("proposed", (record_id,))
                assert ORIGINS.index(got.record.effective_origin) >= ORIGINS.index(origin)
                assert self.memory.get(record_id) == current
            else:
                assert (got.status, got.record.effective_origin) == ("updated", current.effective_origin)
            self.model[got.record.id] = got.record
            self._committed(before)

        @rule(record_id=IDS)
        def endorse(self, record_id: str) -> None:
            """It is the only way up."""
            before = dict(self.model)
            current = self._live(record_id)
            try:
                got = self.memory.endorse(record_id)
            except UnknownRecordError:
                assert current is None
                return
            assert current is not None
            assert got == (current if current.has_authority else got)
            assert got.effective_origin == "user"
            assert got.changed(origin=None) == current.changed(origin=None)
            self.model[record_id] = got
            self._committed(before)

        @rule(record_id=IDS)
        def forget(self, record_id: str) -> None:
            before = dict(self.model)
            current = self._live(record_id)
            try:
                forgotten = self.memory.forget(record_id)
            except UnknownRecordError:
                assert current is None
                return
            assert forgotten == (current is not None)
            self.model.pop(record_id, None)  # also if it has expired
            self._committed(before)

        @rule(where=filters(custom=through is None))
        def forget_where(self, where: Filter) -> None:
            before = dict(self.model)
            matching = [each for each in list(self.model) if self._live(each) and where.matches(self.model[each])]
            assert self.memory.forget_where(where, parts=[RECORDS]) == len(matching)
            for record_id in before:
                if where.matches(before[record_id]):  # also if it has expired
                    del self.model[record_id]
            self._committed(before)

        @rule(where=st.just(EVERYTHING) | filters(custom=False), on_hold=filters(custom=False))
        def retain(self, where: Filter, on_hold: Filter) -> None:
            """A run removes what its plan lists: what the rule applies to, unless a hold or a pin keeps it."""
            rules = [
                RetentionRule("hold", where=on_hold, action="hold"),
                RetentionRule("old", where=where, keep_newest=1, since="written"),
            ]
            plan = self.memory.apply_retention(rules, samples=None)
            due = [each for found in plan for each in found.samples]
            for each in due:
                record = self._live(each)
                assert record is not None
                assert where.matches(record)
                assert not on_hold.matches(record)
                assert not (record.pinned and record.has_authority)
            self.memory.set_retention(rules)
            assert self.memory.apply_retention(dry_run=False, samples=None) == plan
            self.memory.set_retention()
            for each in due:
                del self.model[each]
            if due:  # else there is no commit
                self.seq += 1
                self._note_moment()

        @rule(parts=st.none() | st.lists(st.sampled_from([RECORDS, *RESERVED]), min_size=1))
        def clear(self, parts: list[str] | None) -> None:
            """All parts are forgotten, or some, in one commit."""
            before, chosen = dict(self.model), set(parts or [RECORDS, *RESERVED])
            kept: dict[str, dict[Any, Any]] = {"terms": self.terms, "nodes": self.outlines}
            kept |= {"sdrs": self.sdrs, "keys": self.keys}
            wanted = {name: len(known) for name, known in kept.items() if name in chosen}
            wanted[RECORDS] = sum(self._live(each) is not None for each in before) if RECORDS in chosen else 0
            cleared = self.memory.clear(parts=parts)
            wanted["nodes"] = cleared.parts.get("nodes", 0)  # the nodes of the outlines are not counted here
            assert cleared.parts == {name: count for name, count in wanted.items() if count}
            assert cleared == sum(wanted.values())
            changes = any(kept[name] for name in kept.keys() & chosen)
            for name in kept.keys() & chosen:
                kept[name].clear()
            if RECORDS in chosen:
                self.model.clear()
            if changes and before == self.model:
                self._part_written()
            self._committed(before)

        @rule(record_id=IDS, redact=st.booleans())
        def erase(self, record_id: str, redact: bool) -> None:
            """All versions lose their contents, and redaction also hides that this id had any."""
            try:
                erased = self.memory.erase(record_id, redact=redact)
            except UnknownRecordError:
                assert record_id not in self.contents
                return
            contents = self.contents[record_id]
            assert (erased.versions, erased.pending) == (len(contents), False)
            if contents or redact:
                self.seq += 1
                self.model.pop(record_id, None)
                self.contents[record_id] = set()
                self.classes.pop(record_id, None)
                self.erasing.add(self.seq)
                self._note_moment()
            if redact:
                del self.contents[record_id]
                self.redacted |= {(seq, record_id) for seq, records in self.moments.items() if record_id in records}

        @rule(back=st.integers(0, 9))
        def read_the_past(self, back: int) -> None:
            """An earlier moment has the records that it had then, without what was erased since."""
            seq = max(self.seq - back, 0)
            past = self.memory.at(seq)
            found = {record.id: record for record in past.find()}
            wanted = self._left_of(seq)
            assert found == {record_id: record for record_id, record in wanted.items() if record_id in found}
            assert all(record.expires is not None for record_id, record in wanted.items() if record_id not in found)

        def _left_of(self, seq: int) -> dict[str, Record]:
            """The records after a commit, without what was erased since."""
            return {
                record_id: record
                for record_id, record in self.moments[seq].items()
                if record.to_bytes() in self.contents.get(record_id, ()) and (seq, record_id) not in self.redacted
            }

        def _restored(self, model: dict[str, Record], restored: Restored) -> None:
            """The model after a commit that sweeps nothing."""
            differing = {each for each in model.keys() | self.model.keys() if model.get(each) != self.model.get(each)}
            assert restored.changed == len(differing)
            if differing or any(part.changed for part in restored.parts.values()):
                self.seq += 1
                self.model = model
                self._note_moment()
            assert restored.seq == self.seq

        @rule(name=st.sampled_from((None, None, "a", "b")))
        def snapshot(self, name: str | None) -> None:
            """A snapshot is found again by its name and its age, and changes nothing."""
            try:
                made = self.memory.snapshot(name)
            except InvalidArgumentError:
                assert name in [each for each, _ in self.snapshots]
                return
            assert (made.name, made.seq, made.root) == (name, self.seq, self.memory.root)
            self.snapshots.insert(0, (name, self.seq))
            unnamed = [each for each in self.snapshots if each[0] is None]
            self.snapshots = [each for each in self.snapshots if each[0] is not None or each in unnamed[:20]]

        @rule()
        def list_snapshots(self) -> None:
            assert [(each.name, each.seq) for each in self.memory.snapshots()] == self.snapshots

        @rule(back=st.integers(0, 9))
        def rollback(self, back: int) -> None:
            """The state of a moment comes back, without what was erased since."""
            seq = max(self.seq - back, 0)
            restored = self.memory.rollback(seq)
            self._facets_are_those_of(seq)
            assert len(restored.erased) == len(self.moments[seq]) - len(self._left_of(seq))
            self._restored(self._left_of(seq), restored)

        @rule(back=st.integers(0, 9), part=st.sampled_from([RECORDS, *RESERVED]))
        def rollback_of_a_part(self, back: int, part: str) -> None:
            """The others stay as they are."""
            seq = max(self.seq - back, 0)
            restored = self.memory.rollback(seq, parts=[part])
            self._facets_are_those_of(seq, part)
            self._restored(self._left_of(seq) if part == RECORDS else self.model, restored)

        def _facets_are_those_of(self, seq: int, part: str | None = None) -> None:
            """The model after a rollback; what the facets have is compared with it by other rules."""
            known = zip(("terms", "nodes", "sdrs", "keys"), self._kept(), self.kept[seq], strict=True)
            back = (then if part in (None, name) else now for name, now, then in known)
            self.terms, self.outlines, self.sdrs, self.keys = map(dict, back)

        @rule(index=st.integers(0, 3))
        def rollback_to_a_snapshot(self, index: int) -> None:
            try:
                restored = self.memory.rollback(index=index)
            except UnknownTargetError:
                assert index >= len(self.snapshots)
                return
            self._facets_are_those_of(self.snapshots[index][1])
            self._restored(self._left_of(self.snapshots[index][1]), restored)

        @rule(seq=st.integers(1, 12))
        def revert(self, seq: int) -> None:
            """The changes of a commit are taken back, except where a record was changed or erased since.

            Not those of outlines: a part of a tree may be left at the top, which the model does not predict.
            """
            commits = self.memory.changes(seq - 1, 1) if seq <= self.seq else []
            if any(each.part == "nodes" for commit in commits for each in commit.part_commits):
                return
            try:
                restored = self.memory.revert(seq)
            except UnknownTargetError:
                assert seq > self.seq
                return
            before, after, model = self.moments[seq - 1], self.moments[seq], dict(self.model)
            conflicts, left = set(), self._left_of(seq - 1)
            for record_id in before.keys() | after.keys():
                hidden = {(seq - 1, record_id), (seq, record_id)} & self.redacted
                if hidden or before.get(record_id) == after.get(record_id):
                    continue
                if model.get(record_id) != after.get(record_id):
                    conflicts.add(record_id)
                elif record_id in left:
                    model[record_id] = left[record_id]
                else:
                    model.pop(record_id, None)
            if seq not in self.erasing:  # that of a record that was forgotten changed nothing of the moments
                assert {each for each in restored.conflicts if not is_redacted(each)} == conflicts
            if restored.parts:
                self._read_facets()
            self._restored(model, restored)

        def _read_facets(self) -> None:
            """The model after changes that it does not predict: what was written again with the same value is new."""
            outline = self.memory.outline
            agents = {agent for terms, *_ in self.kept.values() for agent, _ in terms}
            listed = [(agent, term) for agent in agents for term in self.memory.glossary.list_all(agent)]
            self.terms = {(agent, term["key"].lower()): (term["key"], term["value"]) for agent, term in listed}
            self.outlines = {str(root.title): outline.tree(root.id).to_json() for root in outline.roots()}
            self.sdrs = {each["id"]: each["text"] for each in self.memory.sdr.texts()}
            self.keys = _values_of(self.memory)

        @rule(batch=st.lists(records(IDS), max_size=4, unique_by=lambda record: record.id), fails=st.booleans())
        def batch(self, batch: list[Record], fails: bool) -> None:
            """A batch is one commit or none."""
            before = dict(self.model)
            staged: dict[str, Record] = {}
            try:
                with self.memory.batch(reason="batch") as inside:
                    for record in batch:
                        current = inside.get(record.id)
                        outcome = inside.execute(_remember(record, current.hash if current else "absent", exact=False))
                        staged[record.id] = outcome.record
                        assert inside.get(record.id) == outcome.record or outcome.record.expires is not None
                    if fails:
                        raise _GivenUp
            except _GivenUp:
                return
            self.model.update(staged)
            self._committed(before)

        @rule(changes=st.lists(st.tuples(AGENTS, TERM_KEYS, st.none() | texts), min_size=1, max_size=6))
        def change_the_glossary(self, changes: list[tuple[str, str, str | None]]) -> None:
            """Terms are stored and, where there is no text, forgotten. Each answer is that of a new glossary."""
            for agent, key, text in changes:
                if text is None:
                    known = self.terms.pop((agent, key.lower()), None) is not None
                    assert self.memory.glossary.forget(key, agent) == known
                else:
                    self.memory.glossary.memorize(key, f"means {text}", "", agent, aliases=["cup"])
                    self.terms[agent, key.lower()] = key, f"means {text}"
                self._part_written()
                self._the_glossary_is_as_a_new_one(agent)

        @rule(trees=st.lists(st.tuples(NODES, st.booleans()), min_size=1, max_size=5))
        def ingest(self, trees: list[tuple[list[tuple[str, str | None, bool]], bool]]) -> None:
            """A tree replaces that of its source, whatever was there before."""
            for nodes, named in trees:
                source = "named" if named else "plain"
                root = outline_of(source, nodes, named=named)
                self.memory.outline.ingest(root, source=source)
                self.outlines[source] = root
                self._part_written()
                self.outlines_are_those_ingested()
                assert self.memory.outline.ingest(root, source=source).unchanged == len(nodes) + 1

        @rule()
        def outlines_are_those_ingested(self) -> None:
            """Also after what other rules did: a restart, an erasure, a rollback of the records."""
            outline = self.memory.outline
            roots = {root.title: root.id for root in outline.roots()}
            trees = {title: outline.tree(node_id).to_json() for title, node_id in roots.items()}
            assert trees == self.outlines
            for tree in trees.values():
                if "ID" in tree["properties"]:  # the ids of all of its nodes are known, and so is the hash
                    assert outline.hash(tree["properties"]["ID"]) == defined_hash(tree).hex()

        @rule(
            changes=st.lists(
                st.tuples(st.sampled_from(["write", "cas", "forget"]), KEYS, st.none() | VALUES, VALUES), max_size=6
            )
        )
        def change_keys(self, changes: list[tuple[str, str, bytes | None, bytes]]) -> None:
            """Keys are written, swapped and forgotten."""
            keyed = self.memory.keyed
            for change, key, expected, value in changes:
                name = nfc(key)
                if change == "write":
                    keyed.write(key, value)
                    self.keys[name] = value
                elif change == "cas":
                    fits = self.keys.get(name) == expected
                    assert keyed.cas(key, expected, value) == fits
                    self.keys |= {name: value} if fits else {}
                else:
                    assert keyed.forget(key) == (self.keys.pop(name, None) is not None)
                self._part_written()
            self.keys_have_their_values()

        @rule()
        def keys_have_their_values(self) -> None:
            """Also after what other rules did."""
            assert _values_of(self.memory) == self.keys

        @rule(
            changes=st.lists(
                st.tuples(st.sampled_from(["store", "update", "forget"]), texts, st.integers(1, 4)), max_size=6
            )
        )
        def change_sparse_codes(self, changes: list[tuple[str, str, int]]) -> None:
            """Texts are stored under the next number, changed and forgotten."""
            for change, text, number in changes:
                if change == "store":
                    self.last_sdr += 1
                    assert self.memory.sdr.store(text) == self.last_sdr
                    self.sdrs[self.last_sdr] = text
                elif change == "update":
                    assert self.memory.sdr.update(number, text) == (number in self.sdrs)
                    self.sdrs |= {number: text} if number in self.sdrs else {}
                else:
                    assert self.memory.sdr.forget(number) == (self.sdrs.pop(number, None) is not None)
                self._part_written()
                self.sparse_codes_are_those_stored()

        @rule()
        def sparse_codes_are_those_stored(self) -> None:
            """Also after what other rules did. Each answer is that of a new index."""
            sdr, new = self.memory.sdr, SdrTexts(self.sdrs)
            assert {each["id"]: each["text"] for each in sdr.texts()} == self.sdrs
            for question in ("a cup of tea", "boat"):
                hits = new.overlapping(question, 3)
                assert [(hit["id"], hit["score"]) for hit in sdr.query(question, 3)] == [hit[:2] for hit in hits]
                hits = new.nearest(question, 3)
                assert [(hit["id"], hit["score"]) for hit in sdr.query(question, 3, rule=True)] == [
                    hit[:2] for hit in hits
                ]

        @rule(agent=AGENTS)
        def ask_the_glossary(self, agent: str) -> None:
            """Also after what other rules did: a restart, an erasure, a rollback of the records."""
            self._the_glossary_is_as_a_new_one(agent)

        def _the_glossary_is_as_a_new_one(self, agent: str) -> None:
            got, again = self.memory.glossary, memory_on(MemoryStore(), clock=TickingClock(self.clock.time))
            for (owner, _), (key, value) in self.terms.items():
                if owner == agent:
                    again.glossary.memorize(key, value, "", agent, aliases=["cup"])
            wanted, text = again.glossary, "A cup of tea means a LONG  boat"
            assert got.list_all(agent) == wanted.list_all(agent)
            assert got.agents().get(agent) == wanted.agents().get(agent)
            assert got.recall(text, agent) == wanted.recall(text, agent)
            assert got.annotate(text, agent) == wanted.annotate(text, agent)
            assert got.shared_names(agent) == wanted.shared_names(agent)
            again.close()

        @rule()
        def export_and_import(self) -> None:
            """A new memory that imports an export has the same root, and the same of each facet."""
            again = memory_on(MemoryStore(key=self.store.key), clock=TickingClock(self.clock.time))
            with TemporaryDirectory() as folder:
                path = Path(folder) / "export.jsonl"
                with path.open("w", encoding="utf-8", newline="\n") as file:
                    written = write_jsonl(self.memory, file)
                report = import_path(again, "jsonl", path)
            assert (report.damaged, report.parts, all(report.roots.values())) == ((), written.parts, True)
            assert again.outline.roots() == self.memory.outline.roots()
            assert again.sdr.texts() == self.memory.sdr.texts()
            assert _values_of(again) == self.keys
            again.close()

        @rule()
        def restart(self) -> None:
            if reopen is not None:
                self.memory.close()
                self.store = reopen(self.store)
                self.memory = memory_on(self.store, clock=self.clock, through=through)

        @rule(question=texts, where=filters(custom=through is None))
        def recall(self, question: str, where: Filter) -> None:
            """Recall is a pure function of the live records: a new memory returns the same hits and scores."""
            live = [record for record in self.model.values() if self._live(record.id)]
            again = memory_on(MemoryStore(key=self.store.key), clock=TickingClock(self.clock.time))
            again.remember_all(live)
            got, wanted = self.memory.recall(question, 20, where), again.recall(question, 20, where)
            assert [(hit.record, hit.score, hit.why) for hit in got] == [
                (hit.record, hit.score, hit.why) for hit in wanted
            ]
            again.close()

        @rule(question=texts, user=names)
        def recall_within_a_scope(self, question: str, user: str) -> None:
            """A scope behaves as if no other records existed: their words, lengths and names have no influence."""
            live = [record for record in self.model.values() if self._live(record.id) and record.user == user]
            again = memory_on(MemoryStore(key=self.store.key), clock=TickingClock(self.clock.time))
            again.remember_all(live)
            got, wanted = self.memory.scoped(user=user).recall(question, 20), again.recall(question, 20)
            assert [(hit.record, hit.score, hit.confidence, hit.why) for hit in got] == [
                (hit.record, hit.score, hit.confidence, hit.why) for hit in wanted
            ]
            again.close()

        @rule(where=filters(custom=through is None))
        def find(self, where: Filter) -> None:
            wanted = {each for each in self.model if self._live(each) and where.matches(self.model[each])}
            assert {record.id for record in self.memory.find(where, order="id")} == wanted
            assert self.memory.count(where) == len(wanted)

        @rule(order=st.sampled_from(ORDERS), limit=st.integers(1, 3))
        def pages(self, order: Order, limit: int) -> None:
            """The pages of a find are the find, cut into pieces."""
            page = self.memory.find(limit=limit, order=order)
            found = [*page]
            while page.cursor is not None:
                assert len(page) == limit
                page = self.memory.find(limit=limit, order=order, after=page.cursor)
                found += page
            assert found == self.memory.find(order=order)

        @rule(record_id=IDS, since=st.integers(0, 9))
        def prove(self, record_id: str, since: int) -> None:
            """Stored records are proved to be present, everything else to be absent, and the log only grows."""
            head, proof = self.memory.head(), self.memory.prove(record_id)
            assert ("payload" in proof) is (record_id in self.model)
            assert verify(proof, head.root)
            assert head.log is not None
            if self.seq:
                assert verify(proof, head.log)
            self.logs[self.seq] = head.log
            for seq, log in self.logs.items():
                if seq >= since:
                    assert verify(self.memory.prove_log(seq), (log, head.log))

        @invariant()
        def the_same_is_stored(self) -> None:
            if not hasattr(self, "memory"):
                return
            current = {record.id: record for record in self.memory.find(f.everything())}
            assert current == {record_id: record for record_id, record in self.model.items() if self._live(record_id)}
            head, roots = self.memory.head(), {RECORDS: self._root_of(self.model.values())}
            for name in RESERVED:
                own = beside(self.memory, name).find()
                roots |= {name: self._root_of(own)} if own else {}
            assert head.parts == {name: root.hex() for name, root in roots.items()}
            assert head.root == memory_root(roots).hex()
            assert self.memory.seq == self.seq

        def _root_of(self, records: Iterable[Record]) -> bytes:
            return root_of({each.id: version_hash(each.id, each.to_bytes(), self.store.key) for each in records})

        def teardown(self) -> None:
            if hasattr(self, "memory"):
                assert self.memory.check() == []
                log = self.memory.changes()
                assert [commit.seq for commit in log] == list(range(1, self.seq + 1))
                self.memory.close()

    return MemoryMachine


class _GivenUp(Exception):
    pass


def _values_of(memory: Memory) -> dict[str, bytes]:
    known = memory.keyed.keys()
    return {key: value for key in known if (value := memory.keyed.read(key)) is not None}


def _remember(record: Record, expect: str, exact: bool) -> Remember:
    return replace(remember_operation(record), expect=expect, exact=exact)
