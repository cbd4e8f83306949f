"""The write path: from operations to one commit.

A `Writer` lives inside one store transaction. Operations act on the heads at once, so that each sees what those before
it did; at the end the net effect becomes the Merkle root, the log entry and the commit. Ids are given here, inside the
transaction, because only here it is certain what is already held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any, NamedTuple

from recollect.engine.results import Outcome
from recollect.engine.scope import QUALIFIED_PREFIX, Scope
from recollect.engine.write.drafts import Draft, Intake, check_limits, is_turn, retagged
from recollect.engine.write.head_cache import TrieKeeper
from recollect.engine.write.naming import Naming
from recollect.engine.write.quotas import Room, UsageTotalsCache, quota_of
from recollect.errors import (
    ConflictError,
    InvalidRecordError,
    RecordExistsError,
    ScopeError,
    UnknownRecordError,
)
from recollect.filters.tree import EVERYTHING, AllOf, Filter, Is
from recollect.ledger.commits import Branch, Change, Commit, Head, Stored
from recollect.ledger.merkle import EMPTY, version_hash
from recollect.operations import ABSENT
from recollect.records.codec import encode_json, microseconds
from recollect.records.identity import derived_id, derived_ids, numbered_ids, same_fact, same_text
from recollect.records.record import FIELD_NAMES, Record
from recollect.stores.base import Transaction, expired

#: In place of an id: a turn that is told again but was forgotten, and stays so.
FORGOTTEN = ""
#: So many records that are due go with a commit, the longest due first: no commit is held up for long.
SWEPT = 1000
_ALL = 2**62
#: Of what a transaction writes, records of so many bytes are kept for those who ask what it wrote, an id and what keeps
#: it counted as so many more.
_WRITTEN_BYTES, _ID_BYTES = 2**22, 200
#: How many ordinals are looked at one by one before the first free one is searched by doubling.
_TRIED_FIRST = 3
#: The greatest position that a record can have.
LAST_POSITION = 2**63 - 1


class Replay(NamedTuple):
    """Which of some drafts are turns of a conversation that is told again, as of a commit.

    ids            place among the drafts -> id of the turn, or `FORGOTTEN`
    seq            of the commit
    conversations  those of the drafts
    turns          all of `ids`
    """

    ids: dict[int, str]
    seq: int
    conversations: frozenset[str]
    turns: frozenset[str]


class Writer:
    """The writes of one commit."""

    def __init__(
        self,
        transaction: Transaction,
        branch: Branch,
        key: bytes,
        now: datetime,
        scope: Scope,
        intake: Intake,
        tries: TrieKeeper,
        usage_totals: UsageTotalsCache,
    ) -> None:
        self._tx = transaction
        self._branch = branch
        self._key = key
        self._now = now
        self._micros = microseconds(now)
        self._scope = scope
        self._limits = intake
        self._tries = tries
        self._usage_totals = usage_totals
        self._room: Room | None = None
        self._room_known = False
        self._swept = False
        self._qualified: bool | None = None  # whether there is a qualified id; None before that was asked
        self._pending: dict[str, Change] = {}
        self._live_before: dict[str, bytes | None] = {}
        self._journal: list[str] = []
        self.before = EMPTY  # the root that the commit followed, once there is one
        self._written: dict[str, Record | None] = {}
        self._written_bytes = 0
        self._never_known: set[str] = set()  # ids that nobody had held before what is pending

    def look_up(self, drafts: Sequence[Draft]) -> None:
        """Look up the ids of many drafts in one query, so that each draft need not query the store for its own."""
        ids = [stored for draft in drafts for stored in self._naming.candidate_ids(draft)]
        self._never_known = self._tx.never_known(self._branch, ids)

    @property
    def _naming(self) -> Naming:
        # Made when it is needed: kept, it and the writer would keep each other, and the store, from being freed.
        return Naming(self._scope, self._known, self.live, self._any_qualified)

    def _any_qualified(self) -> bool:
        if self._qualified is None:
            self._qualified = self._tx.any_id(self._branch, QUALIFIED_PREFIX)
        return self._qualified

    @property
    def touched(self) -> list[str]:
        """The ids that were written so far."""
        return list(self._pending)

    def written(self, commit: Commit) -> dict[str, Record | None] | None:
        """What a commit of this transaction did to each id that it names; None where that was too much to keep."""
        if self._written_bytes > _WRITTEN_BYTES:
            return None
        return {change.id: self._written[change.id] for change in commit.changes}

    def newly_touched(self) -> list[str]:
        """The ids that were written since this was last asked."""
        new, self._journal = list(dict.fromkeys(self._journal)), []
        return new

    # Reading what is live

    def live(self, record_id: str) -> Record | None:
        """The record of an id as this transaction sees it, whatever its scope; None where it is due."""
        stored = self._tx.get(self._branch, record_id)
        if record_id not in self._pending:
            self._live_before[record_id] = stored.version if stored else None
        if stored is None:
            return None
        record = Record.load(stored.payload)
        return None if expired(record, self._micros) else record

    def _known(self, record_id: str) -> bool:
        if record_id in self._pending:
            return True
        if record_id not in self._never_known and self._tx.known(self._branch, record_id):
            return True
        self._live_before[record_id] = None
        return False

    def _outcome(
        self, record: Record | None, status: str, differing: tuple[str, ...] = (), asked_id: str | None = None
    ) -> Outcome:
        return Outcome(None if record is None else self._scope.shown(record), status, differing, asked_id)

    # Operations

    def remember(self, draft: Draft) -> Outcome:
        """Hold a record: the five cases of ids, and `expect`."""
        if draft.expect is not None:
            return self._remember_expecting(draft)
        if is_turn(draft.record) and not draft.own_id:
            return self._remember_turn(draft)
        return self._remember_fact(draft)

    def _remember_fact(self, draft: Draft) -> Outcome:
        """Walk the candidate ids to the same fact, or else to the first that is free."""
        requested = draft.record
        others = islice(numbered_ids(requested.id), 1, None) if draft.own_id else derived_ids(requested, 1)
        free = None
        # Under this id and no other, whoever says the same.
        exactly = draft.exact and draft.if_exists != "keep"
        for candidate in chain((requested.id,), others):
            used = self._naming.was_used(candidate, draft)
            existing = self._naming.find(candidate) if used else None
            if existing is None:
                hidden = self._naming.shadowing(candidate, draft) if free is None else None
                if hidden is not None and draft.if_exists != "keep" and candidate == requested.id:
                    raise self._exists(hidden)  # "update" and "error" are about this id, not the next
                if free is None and hidden is None:
                    free = candidate
                if free is not None and (exactly or not used):  # as most are not: then nothing more need be looked up
                    break
            elif draft.own_id and draft.if_exists != "keep" and candidate == requested.id:
                return self._take_over(draft, existing)
            elif self._is_same_fact(existing, draft):
                return self._remember_same(draft, existing)
        assert free is not None
        return self._create(draft, free, requested.id if draft.own_id and free != requested.id else None)

    def _is_same_fact(self, existing: Record, draft: Draft) -> bool:
        if draft.own_id:
            # The caller's id says which fact it is; the text decides whether it is still the same.
            return same_text(existing, draft.record) and existing.kind == draft.record.kind
        return same_fact(existing, draft.record)

    def _remember_turn(self, draft: Draft) -> Outcome:
        """A turn: the one that says the same at its place, where a place was given; else one more.

        One more gets the first ordinal that no live turn of its text has. Its cost does not grow with how often the
        text was said: beyond the first few, ordinals are searched by doubling.
        """
        record = draft.record
        if draft.has_position:
            assert record.conversation is not None
            assert record.position is not None
            for stored in self._tx.turns_at(self._branch, record.conversation, record.position):
                existing = self.live(Record.load(stored.payload).id)
                if existing is not None and same_fact(existing, record):
                    return self._remember_same(draft, existing)
        for ordinal in range(_TRIED_FIRST):
            candidate = derived_id(record, ordinal) if ordinal else record.id
            if self._naming.find(candidate) is None:
                return self._create(draft, candidate)
        low = high = _TRIED_FIRST
        while self._naming.was_used(derived_id(record, high), draft):
            low, high = high, high * 2
        while low < high:
            middle = (low + high) // 2
            used = self._naming.was_used(derived_id(record, middle), draft)
            low, high = (middle + 1, high) if used else (low, middle)
        return self._create(draft, derived_id(record, low))

    def _create(self, draft: Draft, record_id: str, asked_id: str | None = None) -> Outcome:
        """Store a new record."""
        record = draft.with_id(self._naming.free(record_id, draft)).record
        if not draft.exact:
            record = self._with_position(record)
        self._put(record)
        return self._outcome(record, "created", asked_id=asked_id)

    def _with_position(self, record: Record) -> Record:
        """The record; a turn that has no position gets the one after the last of its conversation."""
        if record.position is not None or not is_turn(record):
            return record
        assert record.conversation is not None
        within = self._scope.filter if any(name != "conversation" for name, _ in self._scope.fixed) else EVERYTHING
        last = self._tx.last_position(self._branch, record.conversation, within)
        # Behind a turn at the last place there is, others come by their time.
        return record.changed(position=0 if last is None else min(last + 1, LAST_POSITION))

    def _remember_same(self, draft: Draft, existing: Record) -> Outcome:
        """The same fact again."""
        if draft.if_exists == "error":
            raise self._exists(existing)
        differing = self._differing(draft, existing)
        if not differing or draft.if_exists == "keep":
            return self._outcome(existing, "unchanged", differing)
        record = existing.changed(**{name: getattr(draft.comparable_to(existing), name) for name in differing})
        self._put(record)
        return self._outcome(record, "updated")

    def _exists(self, existing: Record) -> RecordExistsError:
        shown = self._scope.shown(existing)
        return RecordExistsError(shown.id, shown.hash)

    def remember_replayed(self, draft: Draft, record_id: str) -> Outcome:
        """The same turn again, as `find_replay` found out."""
        if record_id == FORGOTTEN:
            return Outcome(None, "unchanged")
        existing = self.live(record_id)
        return self.remember(draft) if existing is None else self._remember_same(draft, existing)

    def _take_over(self, draft: Draft, existing: Record) -> Outcome:
        """`if_exists` is "update" or "error", and the caller's id is held: by whatever text."""
        if draft.if_exists == "error":
            raise self._exists(existing)
        names = {*draft.explicit, "content", "media_type"}
        record = existing.changed(**{name: getattr(draft.comparable_to(existing), name) for name in names})
        if draft.exact:
            record = record.changed(unknown=draft.record.unknown)
        else:
            record = retagged(existing, self._with_position(record), tags_given="tags" in draft.explicit)
        if record == existing:
            return self._outcome(existing, "unchanged")
        self._naming.check_move(existing, record)
        self._put(record)
        return self._outcome(record, "updated")

    def _differing(self, draft: Draft, existing: Record) -> tuple[str, ...]:
        """The fields that the caller gave and that are held otherwise."""
        return tuple(
            name
            for name in FIELD_NAMES
            if name in draft.explicit
            and name not in ("id", "content")
            and _differ(name, draft.comparable_to(existing), existing)
        )

    def _remember_expecting(self, draft: Draft) -> Outcome:
        """`expect`: only where the id is held with this hash, or not at all."""
        requested = draft.record.id
        existing = self._naming.find(requested)
        self._check_expectation(
            requested, draft.expect, existing, lambda: self._is_asked_for(draft, existing, earlier=True)
        )
        if existing is None:
            return self._create(draft, requested)
        if self._is_asked_for(draft, existing):
            return self._outcome(existing, "unchanged")
        record = draft.with_id(existing.id).record
        if not draft.exact:
            if is_turn(record) and record.position is None and record.conversation == existing.conversation:
                record = record.changed(position=existing.position)
            record = self._with_position(record)
        self._naming.check_move(existing, record)
        self._put(record)
        return self._outcome(record, "updated")

    @staticmethod
    def _is_asked_for(draft: Draft, existing: Record | None, *, earlier: bool = False) -> bool:
        """Whether a live record is what replacing it by a draft would give, but for what the memory adds by itself.

        earlier  or would have given, when it was asked for before: a `ttl` counts from another time then
        """
        if existing is None:
            return False
        added = [name for name in ("time", "position") if name not in draft.explicit]
        if earlier and draft.has_ttl and existing.expires is not None:
            added.append("expires")
        if not is_turn(draft.record):
            added = [name for name in added if name != "position"]
        replaced = draft.comparable_to(existing).changed(
            id=existing.id, **{name: getattr(existing, name) for name in added}
        )
        return replaced.hash == existing.hash

    def update(self, record_id: str, changes: Mapping[str, Any] | Any, expect: str | None) -> Outcome:
        """Change fields of a record. Raises: UnknownRecordError, ConflictError, InvalidRecordError, ScopeError."""
        existing = self._naming.find(record_id)
        if existing is None:
            self._check_expectation(record_id, expect, None)
            raise UnknownRecordError(record_id, self._branch.namespace)
        self._check_expectation(record_id, expect, existing, lambda: self._changes_nothing(existing, changes))
        record = self._with_position(self._changed(existing, changes))
        if not callable(changes):  # a function gives the record just as it is to be
            record = retagged(existing, record, tags_given="tags" in changes)
        check_limits(record, self._limits)
        if not self._scope.admits(record):
            raise ScopeError(f"an update of record {record_id!r}", str(self._scope))
        if record == existing:
            return self._outcome(existing, "unchanged")
        self._naming.check_move(existing, record)
        self._put(record)
        return self._outcome(record, "updated")

    def _check_expectation(
        self, record_id: str, expect: str | None, existing: Record | None, satisfied: Callable[[], bool] = lambda: False
    ) -> None:
        """Compare what is live with what the caller expects, before anything else is decided.

        satisfied  whether what is live already is what the call asks for, which the error then says

        Raises: ConflictError.
        """
        current = self._scope.shown(existing).hash if existing else ABSENT
        if expect is not None and expect != current:
            raise ConflictError(f"record {record_id!r}", expect, current, satisfied())

    def _changes_nothing(self, existing: Record, changes: Mapping[str, Any] | Any) -> bool:
        """Whether a record already has the fields that an update asks for. A function asks for no state."""
        if callable(changes):
            return False
        try:
            return retagged(existing, self._changed(existing, changes), tags_given="tags" in changes) == existing
        except InvalidRecordError:  # they do not go with what is there now
            return False

    def _changed(self, existing: Record, changes: Mapping[str, Any] | Any) -> Record:
        if not callable(changes):
            # None takes a field away, also one whose absence is written otherwise.
            absent: dict[str, Any] = {"tags": (), "metadata": {}, "supersedes": (), "derived_from": (), "pinned": False}
            return existing.changed(
                **{name: absent.get(name) if value is None else value for name, value in changes.items()}
            )
        shown = self._scope.shown(existing)
        record = changes(shown)
        if not isinstance(record, Record):
            raise InvalidRecordError("update", record, "the function must return a record, such as record.changed(...)")
        if record.id != shown.id:
            raise InvalidRecordError("id", record.id, "of a record cannot change; remember it anew")
        return record if record.id == existing.id else record.changed(id=existing.id)

    def forget(self, record_id: str, expect: str | None = None) -> Outcome:
        """Let a record be held no longer. Raises: UnknownRecordError where it never was; ConflictError."""
        existing = self._naming.find(record_id)
        self._check_expectation(record_id, expect, existing, lambda: existing is None)
        if existing is not None:
            self._drop(existing.id, "forgotten")
            return self._outcome(existing, "forgotten")
        # Gone already is what was asked for. A scope cannot tell whose the id was, so there it is unknown.
        for stored in self._naming.stored(record_id):
            due = self._due(stored)
            if due is not None and self._scope.admits(due):
                self._drop(stored, "expired")
                return Outcome(None, "unchanged")
        if self._scope.fixed or not self._known(record_id):
            raise UnknownRecordError(record_id, self._branch.namespace)
        return Outcome(None, "unchanged")

    def forget_where(self, where: Filter, told: Filter | None = None) -> int:
        """Forget every record in the scope that matches; how many. Those that are due go too, uncounted.

        told  a filter that the same live records match, where there is one by which they are found sooner
        """
        live = AllOf.of(self._scope.filter, where if told is None else told)
        where = AllOf.of(self._scope.filter, where)
        found = list(self._tx.select(self._branch, live, order="id", now=self._micros))
        for record in found:
            self._drop(record.id, "forgotten")
        for record_id in self._tx.due(self._branch, self._micros, _ALL):
            due = self._due(record_id)
            if due is not None and where.matches(due):
                self._drop(record_id, "expired")
        return len(found)

    def _due(self, record_id: str) -> Record | None:
        """The record of an id that is held though it is due."""
        stored = self._tx.get(self._branch, record_id)
        record = None if stored is None else Record.load(stored.payload)
        return record if record is not None and expired(record, self._micros) else None

    # The store, and the commit

    def _before(self, record_id: str) -> bytes | None:
        """The version that was live when the transaction began."""
        if record_id not in self._live_before:
            stored = self._tx.get(self._branch, record_id)
            self._live_before[record_id] = stored.version if stored else None
        return self._live_before[record_id]

    def _put(self, record: Record) -> None:
        payload = record.to_bytes()
        room = self._room_left()
        if room is not None:
            for record_id, cause in room.to_evict(record):
                self._drop(record_id, cause)
            room.note(record.id, record)
        if record.id.startswith(QUALIFIED_PREFIX):
            self._qualified = True
        version = version_hash(record.id, payload, self._key)
        change = Change(record.id, self._before(record.id), version, "written")
        self._tx.put(self._branch, record, Stored(version, payload))
        # Before it is pending: an interruption leaves no change of which it is not known what it did.
        self._note_written(record.id, record if type(record) is Record else Record.load(payload), len(payload))
        self._pending[record.id] = change
        self._journal.append(record.id)

    def _drop(self, record_id: str, cause: str) -> None:
        change = Change(record_id, self._before(record_id), None, cause)
        self._tx.drop(self._branch, record_id)
        self._note_written(record_id, None, 0)
        self._pending[record_id] = change
        self._journal.append(record_id)
        if self._room is not None:
            self._room.note(record_id, None)

    def _note_written(self, record_id: str, record: Record | None, nbytes: int) -> None:
        """Keep what was written for whoever asks for it after the commit, unless it is too much."""
        self._written_bytes += _ID_BYTES + nbytes
        if self._written_bytes <= _WRITTEN_BYTES:
            self._written[record_id] = record
        else:
            self._written.clear()

    def _room_left(self) -> Room | None:
        """What the namespace's quota leaves; None where it has none."""
        if not self._room_known:
            quota = quota_of(self._tx, self._branch)
            if quota is not None:
                totals = self._usage_totals.at(self._tx, self._branch, quota, clean=not self._pending)
                visible = all(name == quota.per for name, _ in self._scope.fixed)
                self._room = Room(self._branch, quota, totals, self._micros, self._due_of_others, visible=visible)
                for record_id in self._pending:  # dropped before
                    self._room.note(record_id, None)
            self._room_known = True
        return self._room

    def _due_of_others(self) -> list[str]:
        """The ids that are due, without those that were written here: the log is to tell of these first."""
        due = self._tx.due(self._branch, self._micros, SWEPT)
        return [each for each in due if (own := self._pending.get(each)) is None or own.before == own.after]

    def sweep(self, limit: int) -> int:
        """Drop records that are due, the longest due first; how many. The commit then drops no others."""
        self._swept = True
        due = self._tx.due(self._branch, self._micros, limit)
        for record_id in due:
            self._drop(record_id, "expired")
        return len(due)

    def commit(self, actor: str | None, reason: str | None) -> Commit | None:
        """Append the net effect to the log, and what is due with it; None, and nothing, where there is no effect."""
        if not self._swept and any(change.before != change.after for change in self._pending.values()):
            for record_id in self._due_of_others():
                self._drop(record_id, "expired")
        changes = tuple(change for change in self._pending.values() if change.before != change.after)
        if not changes:
            return None
        head = self._tx.head(self._branch)
        self.before = head.root.hash
        trie = self._tries.take(self._branch, head)
        commit = Commit(
            namespace=self._branch.namespace,
            branch=self._branch.name,
            seq=head.seq + 1,
            parents=((self._branch.name, head.seq),) if head.seq else (),
            micros=max(self._micros, head.micros + 1),
            actor=actor,
            reason=reason,
            root=trie.update({change.id: change.after for change in changes}, self._tx),
            changes=changes,
        )
        self._tx.append(commit)
        head = Head(commit.seq, commit.root, commit.micros)
        self._tries.keep(self._branch, head, trie)
        if self._room is not None:
            self._usage_totals.drop(self._branch)  # an interruption leaves none that is half brought up
            self._usage_totals.keep(self._branch, head, self._room.committed(commit.micros))
        return commit

    def outdated(self, known: Replay) -> bool:
        """Whether others have changed turns of the conversations since it was found out which are told again."""
        if self._tx.head(self._branch).seq == known.seq:
            return False
        changed = self._tx.changed(self._branch, known.seq)
        if not known.turns.isdisjoint(changed):
            return True
        records = (Record.load(stored.payload) for stored in self._tx.several(self._branch, changed).values())
        return any(record.conversation in known.conversations for record in records)

    def find_replay(self, drafts: Sequence[Draft]) -> Replay:
        """Which drafts are turns of a conversation told again from its start.

        Turns without ids and places are a conversation told again where they begin with the turns that are held, or
        (two or more of them) are the beginning of those. A turn among them that was forgotten stays so (`FORGOTTEN`).
        All else is new, as it would be one turn at a time.
        """
        told: dict[str, list[int]] = {}
        for index, draft in enumerate(drafts):
            if draft.is_appended:
                assert draft.record.conversation is not None
                told.setdefault(draft.record.conversation, []).append(index)
        out: dict[int, str] = {}
        for conversation, indexes in told.items():
            existing = list(self._turns(conversation))
            found = self._aligned(existing, [(index, drafts[index].record) for index in indexes])
            matched = sum(each != FORGOTTEN for each in found.values())
            if matched and (matched == len(existing) or (len(found) == len(indexes) and len(indexes) > 1)):
                out.update(found)
        return Replay(out, self._tx.head(self._branch).seq, frozenset(told), frozenset(out.values()))

    def _aligned(self, existing: Sequence[Record], told: Sequence[tuple[int, Record]]) -> dict[int, str]:
        """As many turns from the start as are held, in their order, or were forgotten."""
        found: dict[int, str] = {}
        said: Counter[str] = Counter()
        at = 0
        for index, record in told:
            once_held = derived_id(record, said[record.id])
            said[record.id] += 1
            if at < len(existing) and same_fact(existing[at], record):
                found[index] = existing[at].id
                at += 1
            elif self._was_forgotten(once_held):
                found[index] = FORGOTTEN
            else:
                break
        return found

    def _was_forgotten(self, record_id: str) -> bool:
        """Whether a derived id had a record in the scope, and has none now."""
        if not self._known(record_id) or self._naming.find(record_id) is not None:
            return False
        if not self._scope.fixed or record_id in self._pending:
            return True
        # Whoever is outside may have given this id to a record of their own.
        commits = self._tx.commits(self._branch, 0, None, record_id)
        versions = {change.after for commit in commits for change in commit.changes if change.id == record_id}
        payloads = (self._tx.payload(self._branch, version) for version in versions if version is not None)
        return any(payload is not None and self._scope.admits(Record.load(payload)) for payload in payloads)

    def _turns(self, conversation: str) -> Iterator[Record]:
        where = AllOf.of(self._scope.filter, Is("conversation", (conversation,)), Is("kind", ("conversation",)))
        return self._tx.select(self._branch, where, order="position", now=self._micros)


def _differ(name: str, one: Record, other: Record) -> bool:
    """Whether two records hold a field otherwise, to the bit: 1 and 1.0 in metadata do differ."""
    if name == "metadata":
        return encode_json(one.metadata) != encode_json(other.metadata)
    left, right = getattr(one, name), getattr(other, name)
    if isinstance(left, datetime) and isinstance(right, datetime):
        return left.isoformat() != right.isoformat()
    return bool(left != right)
