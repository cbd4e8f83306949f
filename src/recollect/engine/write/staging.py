"""The staged writes of a transaction to one branch: what is live, what was put and dropped, and their commit.

Each write changes the heads at once, so that what follows sees its effects. At the end, the net effect determines the
Merkle root and is appended to the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from recollect.engine.read.suspicion import Suspicion
from recollect.engine.results import Outcome, Status
from recollect.engine.scope import QUALIFIED_PREFIX, Place
from recollect.engine.settings import policies_of, quota_of
from recollect.engine.trees import TrieKeeper
from recollect.engine.write.admission import Admission
from recollect.engine.write.drafts import Draft, Intake, is_turn
from recollect.engine.write.naming import Naming
from recollect.engine.write.quotas import Room, UsageTotalsCache
from recollect.engine.write.replay import KnownTurns, TurnCache, TurnSearch, find_replay, outdated
from recollect.ledger.commits import KEPT, MAIN, ROLLED_BACK, STATED, Branch, Change, Commit, Head, Parent, Stored
from recollect.ledger.entries import entry_hash
from recollect.ledger.merkle import EMPTY, Live, redacted_id, version_hash
from recollect.records.codec import microseconds
from recollect.records.origins import RANKS, USER, Origin
from recollect.records.record import Record
from recollect.stores.base import Transaction
from recollect.stores.branches import parents_of
from recollect.stores.parts import parts_after, parts_of
from recollect.stores.values import Resolved, expired

#: Maximum number of expired records that a commit removes, so that no commit takes long.
SWEPT = 1000
#: Keep up to `_WRITTEN_BYTES` of written records for the write cache, charging `_ID_BYTES` of overhead per id.
_WRITTEN_BYTES, _ID_BYTES = 2**22, 200
#: Maximum number of ids whose look-up is kept, in addition to those of a part of a bulk write.
_MAX_RESOLVED = 2000
#: Memory limit of the payloads of these, in bytes, and how many ids of a bulk write are looked up at once.
_RESOLVED_BYTES, _RESOLVED_AT_ONCE = 2**22, 50


class Comparing(Protocol):
    """Compares a record with what is stored."""

    def suspicion(self, record: Record) -> Suspicion | None:
        """Return why a record is suspect; None if it is not."""

    def of_source(self, record: Record) -> tuple[str, ...]:
        """Return the records of the same source and subject of the last day."""


class Staging(Naming):
    """The writes of one commit, without the rules of operations and of classes of origin (`writer`, `judging`).

    Attributes:
        before: The root that the commit follows, set by `commit`.
    """

    def __init__(
        self,
        transaction: Transaction,
        branch: Branch,
        key: bytes,
        now: datetime,
        place: Place,
        intake: Intake,
        tries: TrieKeeper,
        usage_totals: UsageTotalsCache,
        turns: TurnCache,
        in_part: Callable[[Branch], Any],
        comparing: Callable[[], Comparing],
    ) -> None:
        self._tx = transaction
        self._branch = branch
        self._key = key
        self._now = now
        self._micros = microseconds(now)
        self._scope = place.scope
        self._origin = place.origin
        self._actor = place.actor
        self._client = place.client
        self._notes: dict[str, None] = {}  # what the reason of the commit says in addition, in order
        self._intake = intake
        self._tries = tries
        self._usage_totals = usage_totals
        self._turns = turns
        self._in_part = in_part
        self._comparing = comparing
        self._admission: Admission | None = None
        self._room: Room | None = None
        self._room_known = False
        self._swept = False
        self._qualified: bool | None = None  # whether there is a qualified id; None if not known yet
        self._pending: dict[str, Change] = {}
        self._numbers: dict[str, int] = {}  # the number of the version of each id that was put
        self._live_before: dict[str, bytes | None] = {}
        self._journal: list[str] = []
        self.before = EMPTY
        self._written: dict[str, Record | None] = {}
        self._written_bytes = 0
        self._resolved: dict[str, Resolved] = {}  # ids that were looked up, and not written since
        self._merged: tuple[Parent, ...] = ()  # the commits of other branches that are merged
        self._erased: dict[str, tuple[Sequence[bytes], bool]] = {}  # versions to erase, and whether to redact their id

    def look_up(self, drafts: Sequence[Draft]) -> None:
        """Look up the ids of many drafts together, so that each draft need not query the store for its own."""
        ids = dict.fromkeys(stored for draft in drafts for stored in self.candidate_ids(draft))
        # Whether a turn was forgotten and its id redacted is asked before it is stored (`_unused_id`).
        turns = (draft.record for draft in drafts if is_turn(draft.record) and not draft.own_id)
        ids.update(dict.fromkeys(redacted_id(turn.id) for turn in turns))
        self._resolved, remaining, all_ids = {}, _RESOLVED_BYTES, list(ids)
        for start in range(0, len(all_ids), _RESOLVED_AT_ONCE):
            found = self._tx.resolve(self._branch, all_ids[start : start + _RESOLVED_AT_ONCE], self._micros)
            for record_id, each in found.items():
                remaining -= 0 if each.stored is None else len(each.stored.payload)
                if each.stored is None or remaining >= 0:  # else it is looked up again when it is needed
                    self._resolved[record_id] = each

    def _resolve(self, record_id: str) -> Resolved:
        """Return what is known of a stored id."""
        found = self._resolved.get(record_id)
        if found is None:
            if len(self._resolved) > _MAX_RESOLVED:
                self._resolved.clear()
            found = self._resolved[record_id] = self._tx.resolve(self._branch, [record_id], self._micros)[record_id]
        return found

    def _any_qualified(self) -> bool:
        if self._qualified is None:
            self._qualified = self._tx.any_id(self._branch, QUALIFIED_PREFIX)
        return self._qualified

    @property
    def origin(self) -> Origin:
        """The class of origin of what is written, at most."""
        return self._origin

    @property
    def touched(self) -> list[str]:
        """The ids that were written so far."""
        return list(self._pending)

    def written(self, commit: Commit) -> dict[str, Record | None] | None:
        """Return the changes of the transaction's commit for the write cache; None if they are too large."""
        if self._written_bytes > _WRITTEN_BYTES:
            return None
        return {each.id: self._written[each.id] for each in commit.changes if each.cause != KEPT}

    def newly_touched(self) -> list[str]:
        """Return the ids that were written since the last call."""
        new, self._journal = list(dict.fromkeys(self._journal)), []
        return new

    def live(self, record_id: str) -> Record | None:
        """Return the record of a stored id as this transaction sees it, in any scope; None if it has expired."""
        _, stored, due = self._resolve(record_id)
        if record_id not in self._pending:
            self._live_before[record_id] = stored.version if stored else None
        return None if stored is None or due else Record.load(stored.payload)

    def _known(self, record_id: str) -> bool:
        if record_id in self._pending:
            return True
        if self._resolve(record_id).known:
            return True
        self._live_before[record_id] = None
        return False

    def _outcome(
        self, record: Record | None, status: Status, differing: tuple[str, ...] = (), asked_id: str | None = None
    ) -> Outcome:
        return Outcome(None if record is None else self._scope.shown(record), status, differing, asked_id)

    @property
    def admission(self) -> Admission:
        """The policies of the namespace, as this transaction sees them."""
        if self._admission is None:
            self._admission = Admission(policies_of(self._tx, self._branch))
        return self._admission

    @property
    def speaks_for_the_user(self) -> bool:
        """True if the writer is the user or the owner."""
        return RANKS[self._origin] >= RANKS[USER]

    @property
    def seq(self) -> int:
        """The seq of the commit that this one follows."""
        return self._tx.head(self._branch).seq

    def _search(self) -> TurnSearch:
        return TurnSearch(
            self._tx,
            self._branch,
            self._scope,
            self._micros,
            self._known,
            self.shown,
            self._pending.keys(),
            self._turns,
        )

    def outdated(self, known: KnownTurns) -> bool:
        """Return whether other commits have changed turns of the conversations since the replay was computed."""
        return outdated(known, self._tx, self._branch)

    def find_replay(self, drafts: Sequence[Draft]) -> KnownTurns:
        """Find the drafts that repeat stored turns, because a conversation is passed again."""
        return find_replay(drafts, self._search())

    def _due(self, record_id: str) -> Record | None:
        """Return the record of a stored id if it has expired and is not removed yet."""
        stored = self._tx.get(self._branch, record_id)
        record = None if stored is None else Record.load(stored.payload)
        return record if record is not None and expired(record, self._micros) else None

    def _before(self, record_id: str) -> bytes | None:
        """Return the version that was live when the transaction began."""
        if record_id not in self._live_before:
            stored = self._tx.get(self._branch, record_id)
            self._live_before[record_id] = stored.version if stored else None
        return self._live_before[record_id]

    def _before_in_log(self, record_id: str) -> bytes | None:
        """Return the version that was live when the transaction began, which may be corrupt, from the log."""
        seq = self._tx.head(self._branch).seq
        before = self._live_before[record_id] = self._tx.versions_at(self._branch, [record_id], seq).get(record_id)
        return before

    def _put(self, record: Record, cause: str = "written") -> None:
        payload = record.to_bytes()
        room = self._room_left()
        if room is not None:
            for record_id, why in room.to_evict(record):
                self._drop(record_id, why)
            room.note(record.id, record)
        self._store(record, payload, cause)

    def put_regardless(self, record: Record) -> None:
        """Store a live record in which only a mark or its end has changed: no quota or policy applies to it."""
        room = self._room_left()
        if room is not None:
            room.note(record.id, record)
        self._store(record, record.to_bytes(), "written")

    def restore(self, record_id: str, record: Record | None) -> bool:
        """Make an earlier version the live one, or remove the record; return whether that is a change.

        No quota applies, and the commit removes no expired records.
        """
        self._swept = True
        before = self._before_in_log(record_id)
        if record is not None:
            payload = record.to_bytes()
            if before == version_hash(record_id, payload, self._key):
                return False
            self._store(record, payload, ROLLED_BACK)
        elif before is None:
            return False
        else:
            self._drop(record_id, ROLLED_BACK)
        return True

    def erase(self, record_id: str, versions: Sequence[bytes], *, redact: bool) -> None:
        """Remove the payloads of versions of a stored id, which is not live any more if its live one is among them.

        No quota applies, and the commit removes no expired records. The change is logged even if nothing of it was
        live.
        """
        self._swept = True
        before = self._before_in_log(record_id)
        self._erased[record_id] = versions, redact
        if before in versions:
            self._drop(record_id, "erased")
        else:
            self._pending[record_id] = Change(record_id, before, before, "erased")

    def state_erased(self, versions: Mapping[str, bytes]) -> None:
        """State that live versions have lost their payloads: they were erased in the branch that this one continues."""
        for record_id, version in versions.items():
            self._live_before[record_id] = version
            self._note_written(record_id, None, 0)
            self._pending[record_id] = Change(record_id, version, None, "erased")
            self._journal.append(record_id)

    def state_kept(self, record_id: str) -> None:
        """State that a record stays as it is, as somebody has decided in a merge, unless it was changed since."""
        if record_id in self._pending:
            return
        before = self._before(record_id)
        self._pending[record_id] = Change(record_id, before, before, KEPT)

    def follow(self, parent: Parent) -> None:
        """Let the commit follow one of another branch, too, which is merged."""
        self._merged += (parent,)

    @property
    def erases(self) -> bool:
        """True if payloads are removed."""
        return bool(self._erased)

    def _store(self, record: Record, payload: bytes, cause: str) -> None:
        if record.id.startswith(QUALIFIED_PREFIX):
            self._qualified = True
        version = version_hash(record.id, payload, self._key)
        change = Change(record.id, self._before(record.id), version, cause)
        self._resolved.pop(record.id, None)
        self._numbers[record.id] = self._tx.put(self._branch, record, Stored(version, payload))
        # Before adding it to `_pending`: an interruption must not leave a pending change that `written` cannot return.
        self._note_written(record.id, record if type(record) is Record else Record.load(payload), len(payload))
        self._pending[record.id] = change
        self._journal.append(record.id)

    def _drop(self, record_id: str, cause: str) -> None:
        change = Change(record_id, self._before(record_id), None, cause)
        self._resolved.pop(record_id, None)
        self._tx.drop(self._branch, record_id)
        self._note_written(record_id, None, 0)
        self._pending[record_id] = change
        self._journal.append(record_id)
        if self._room is not None:
            self._room.note(record_id, None)

    def _note_written(self, record_id: str, record: Record | None, nbytes: int) -> None:
        """Remember a change for the write cache, unless the transaction is too large for it."""
        self._written_bytes += _ID_BYTES + nbytes
        if self._written_bytes <= _WRITTEN_BYTES:
            self._written[record_id] = record
        else:
            self._written.clear()

    def _room_left(self) -> Room | None:
        """Return what may still be written under the namespace's quota; None if it has none."""
        if not self._room_known:
            quota = quota_of(self._tx, self._branch)
            if quota is not None:
                totals = self._usage_totals.current(self._tx, self._branch, quota, clean=not self._pending)
                others = self._usage_totals.of_family(self._tx, self._branch, quota)
                visible = all(name == quota.per for name, _ in self._scope.fixed)
                due = self._due_of_others
                self._room = Room(self._branch, quota, totals, others, self._micros, due, visible=visible)
                for record_id in self._pending:  # only removals precede the first `_put`
                    self._room.note(record_id, None)
            self._room_known = True
        return self._room

    def _due_of_others(self) -> list[str]:
        """Return the ids of expired records, except of those written here: the log must contain that write first."""
        due = self._tx.due(self._branch, self._micros, SWEPT)
        return [each for each in due if (own := self._pending.get(each)) is None or own.before == own.after]

    def sweep(self, limit: int) -> int:
        """Remove up to `limit` expired records in order of expiry and return how many. The commit removes no others."""
        self._swept = True
        due = self._tx.due(self._branch, self._micros, limit)
        for record_id in due:
            self._drop(record_id, "expired")
        return len(due)

    def expire(self, record_ids: Sequence[str]) -> None:
        """Remove live records whose time is over by a rule of retention. The commit removes no other expired ones."""
        self._swept = True
        for record_id in record_ids:
            self._drop(record_id, "expired")

    def commit(self, actor: str | None, reason: str | None, others: Sequence[Commit] = ()) -> Commit | None:
        """Append the net effect and the removal of expired records to the log; return None if there is no effect.

        Args:
            actor: Who makes the changes.
            reason: Why they are made.
            others: The commits to other parts of the memory in the same transaction, which the commit states.
        """
        if not self._swept and any(change.before != change.after for change in self._pending.values()):
            for record_id in self._due_of_others():
                self._drop(record_id, "expired")
        changes = tuple([each for each in self._pending.values() if each.before != each.after or each.cause in STATED])
        if not changes and not self._merged:
            return None
        head = self._tx.head(self._branch)
        self.before, last = head.root.hash, head.micros
        parts = None
        if self._branch.is_reserved:
            last = max(last, self._tx.head(self._branch.owner).micros)  # whose next commit has the same time
        elif self._tx.binds_parts:
            parts = parts_after(self._tx, self._branch, others) if others else parts_of(self._tx, self._branch)
            last = max(last, *(each.micros - 1 for each in others)) if others else last
        parents: tuple[Parent, ...] = ((self._branch.name, head.seq),) if head.seq else ()
        if self._branch.name != MAIN:
            parents = parents_of(self._tx, self._branch, head)
        parents += self._merged
        trie = self._tries.take(self._tx, self._branch, self._branch)
        commit = Commit(
            namespace=self._branch.namespace,
            branch=self._branch.name,
            seq=head.seq + 1,
            parents=parents,
            micros=max(self._micros, last + 1),
            actor=actor,
            reason="; ".join(filter(None, (reason, *self._notes))) if self._notes else reason,
            root=trie.update(
                {change.id: self._live_after(change) for change in changes if change.before != change.after}, self._tx
            ),
            changes=changes,
            parts=parts,
        )
        object.__setattr__(commit, "entry", entry_hash(commit, self._key))  # safe: nothing else has seen it yet
        self._tx.append(commit, trie.replaced)
        for record_id, (versions, redact) in self._erased.items():
            self._tx.erase(self._branch, record_id, versions, redact=redact)
        head = Head(commit.seq, commit.root, commit.micros, parts)
        self._tries.put(self._branch, trie, head)
        if self._room is not None:
            self._usage_totals.committed(self._branch, self._room, head)
        return commit

    def _live_after(self, change: Change) -> Live | None:
        return None if change.after is None else Live(change.after, self._numbers[change.id])
