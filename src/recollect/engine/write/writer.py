"""The write path: turns the operations of a transaction into one commit.

A `Writer` works inside one store transaction. Operations change the heads at once, so that each sees the effects of
those before it. At the end, the net effect determines the Merkle root and is appended to the log as a commit. Ids are
assigned here, inside the transaction, because only here it is certain which ids are in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Protocol

from recollect.common.deadlines import checked
from recollect.engine.facets import SHARED
from recollect.engine.family import goes_back
from recollect.engine.read.suspicion import Suspicion
from recollect.engine.results import Outcome, Status
from recollect.engine.scope import QUALIFIED_PREFIX, Place
from recollect.engine.settings import policies_of, quota_of
from recollect.engine.trees import TrieKeeper
from recollect.engine.write.admission import Admission
from recollect.engine.write.classes import QUARANTINED, check_stated, class_after, class_of, may_change, with_class
from recollect.engine.write.drafts import Draft, Intake, check_limits, is_turn, on_branch, retagged
from recollect.engine.write.hearing import with_heard
from recollect.engine.write.messages import Addition
from recollect.engine.write.naming import Naming
from recollect.engine.write.quotas import Room, UsageTotalsCache
from recollect.engine.write.replay import KnownTurns, Repeated, TurnCache, TurnSearch, find_replay, outdated
from recollect.errors import (
    ConflictError,
    InvalidRecordError,
    OriginError,
    RecordExistsError,
    RejectedError,
    ScopeError,
    UnknownRecordError,
)
from recollect.filters.tree import EVERYTHING, AllOf, Filter
from recollect.ledger.commits import ROLLED_BACK, Branch, Change, Commit, Head, Stored
from recollect.ledger.entries import entry_hash
from recollect.ledger.merkle import EMPTY, Live, redacted_id, version_hash
from recollect.operations import ABSENT
from recollect.operations.upkeep import HANDLINGS
from recollect.records.codec import encode_json, microseconds
from recollect.records.identity import derived_ids, identified, numbered_ids, same_fact, same_text
from recollect.records.origins import ASSISTANT, ORIGINS, RANKS, UNKNOWN, USER, Origin, least
from recollect.records.record import FIELD_NAMES, Record, located_fields, stored_names, with_stored_names
from recollect.stores.base import Transaction
from recollect.stores.parts import parts_after, parts_of
from recollect.stores.values import Resolved, expired

#: Maximum number of expired records that a commit removes, so that no commit takes long.
SWEPT = 1000
_ALL = 2**62
#: Keep up to `_WRITTEN_BYTES` of written records for the write cache, charging `_ID_BYTES` of overhead per id.
_WRITTEN_BYTES, _ID_BYTES = 2**22, 200
#: Maximum number of ids whose look-up is kept, in addition to those of a part of a bulk write.
_MAX_RESOLVED = 2000
#: Memory limit of the payloads of these, in bytes, and how many ids of a bulk write are looked up at once.
_RESOLVED_BYTES, _RESOLVED_AT_ONCE = 2**22, 50
#: Number of ordinals that are tried one by one before the first free one is searched by doubling.
_TRIED_FIRST = 3
#: The fields that a proposal to change a turn does not have, since it is none.
_OF_TURNS = ("role", "speaker", "conversation", "session", "position")
#: The fields that say whose record it is.
_OWNERS = ("user", "agent")
#: Maximum number of positions that are read to find what a turn may repeat.
_TURNS_BEFORE = 100
#: What an update to None makes of fields whose absence is another value.
_REMOVED: dict[str, Any] = {
    "tags": (),
    "metadata": {},
    "supersedes": (),
    "derived_from": (),
    "pinned": False,
    "searchable": True,
}
#: The greatest position that a record can have.
LAST_POSITION = 2**63 - 1


class Comparing(Protocol):
    """Compares a record with what is stored."""

    def suspicion(self, record: Record) -> Suspicion | None:
        """Return why a record is suspect; None if it is not."""

    def of_source(self, record: Record) -> tuple[str, ...]:
        """Return the records of the same source and subject of the last day."""


class Writer(Naming):
    """The writes of one commit.

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
        in_part: Callable[[Branch], Writer],
        comparing: Callable[[], Comparing],
    ) -> None:
        self._tx = transaction
        self._branch = branch
        self._key = key
        self._now = now
        self._micros = microseconds(now)
        self._scope = place.scope
        self._origin = place.origin
        self._client = place.actor if place.is_client and place.origin == ASSISTANT else None
        self._exceeded: set[Origin] = set()  # the classes above the writer's of what it has removed
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
        return {change.id: self._written[change.id] for change in commit.changes}

    def newly_touched(self) -> list[str]:
        """Return the ids that were written since the last call."""
        new, self._journal = list(dict.fromkeys(self._journal)), []
        return new

    # Reading what is live

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

    # Policies

    @property
    def admission(self) -> Admission:
        """The policies of the namespace, as this transaction sees them."""
        if self._admission is None:
            self._admission = Admission(policies_of(self._tx, self._branch))
        return self._admission

    def admitted(self, draft: Draft) -> Draft:
        """Return a draft as the policies of the namespace allow it.

        Raises:
            ConflictError: Its `expect` is not met, which is checked before anything else.
            RejectedError: They do not allow it.
        """
        try:
            return self.admission.draft(draft)
        except RejectedError:
            requested = draft.record.id
            self._check_expectation(requested, draft.expect, self.shown(requested) if draft.expect else None)
            raise

    # Operations

    def remember(self, draft: Draft) -> Outcome:
        """Store a draft. docs/concepts.md lists the five cases of ids."""
        if draft.expect is not None:
            return self._remember_expecting(draft)
        if is_turn(draft.record) and not draft.own_id:
            return self._remember_turn(draft)
        return self._remember_fact(draft)

    def _remember_fact(self, draft: Draft) -> Outcome:
        """Search the candidate ids for the same fact, or else store the draft under the first free one."""
        requested = draft.record
        others = (
            islice(numbered_ids(requested.id), 1, None) if draft.own_id else derived_ids(requested, 1, draft.id_key)
        )
        free = None
        # Store it under this id only, even if another record states the same fact.
        exactly = draft.exact and draft.if_exists != "keep"
        for candidate in chain((requested.id,), others):
            used = self.was_used(candidate, draft)
            existing = self.shown(candidate) if used else None
            if existing is None:
                hidden = self.shadowing(candidate, draft) if free is None else None
                if hidden is not None and draft.if_exists != "keep" and candidate == requested.id:
                    raise self._exists(hidden)  # "update" and "error" apply to this id, not to the next candidate
                if free is None and hidden is None:
                    free = candidate
                if free is not None and (exactly or not used):  # usually the first candidate was never used
                    break
            elif draft.own_id and draft.if_exists != "keep" and candidate == requested.id:
                return self._take_over(draft, existing)
            elif self._is_same_fact(existing, draft):
                return self._remember_same(draft, existing)
        assert free is not None
        return self._create(draft, free, requested.id if draft.own_id and free != requested.id else None)

    def _is_same_fact(self, existing: Record, draft: Draft) -> bool:
        if draft.own_id:
            # The caller's id identifies the fact; the text decides whether it is still the same. What is stored for
            # another user or agent is another fact.
            return (
                same_text(existing, draft.record)
                and existing.kind == draft.record.kind
                and all(
                    getattr(existing, name) == getattr(draft.record, name) for name in _OWNERS if name in draft.explicit
                )
            )
        return same_fact(existing, draft.record)

    def _remember_turn(self, draft: Draft) -> Outcome:
        """Store a turn. With an explicit position, an equal turn at that position is the same fact.

        A new turn gets the first ordinal that no live turn with its text has. The cost does not grow with the number
        of equal turns: beyond the first few ordinals, the first free one is searched by doubling.
        """
        record = draft.record
        if draft.has_position:
            assert record.conversation is not None
            assert record.position is not None
            for stored in self._tx.turns_at(self._branch, record.conversation, record.position):
                existing = self.live(Record.load(stored.payload).id)
                if existing is not None and same_fact(existing, record):
                    return self._remember_same(draft, existing)
        return self._create(draft, self._unused_id(draft))

    def _unused_id(self, draft: Draft) -> str:
        """Return a derived id for a draft that is a new record even if another one states the same fact."""
        search = self._search()
        for ordinal in range(_TRIED_FIRST):
            candidate = draft.derived_id(ordinal) if ordinal else draft.record.id
            # A list that is passed again has the forgotten turn with this text at its own ordinal.
            if self.shown(candidate) is None and not search.was_forgotten(candidate):
                return candidate
        low = high = _TRIED_FIRST
        while self.was_used(draft.derived_id(high), draft):
            low, high = high, high * 2
        while low < high:
            middle = (low + high) // 2
            used = self.was_used(draft.derived_id(middle), draft)
            low, high = (middle + 1, high) if used else (low, middle)
        return draft.derived_id(low)

    def _create(
        self,
        draft: Draft,
        record_id: str,
        asked_id: str | None = None,
        sources: Sequence[Record] | None = None,
    ) -> Outcome:
        """Store a new record.

        Args:
            sources: The records that it derives from, if they were read already.
        """
        record = draft.with_id(self.free(record_id, draft)).record
        if not draft.exact:
            record = self._with_position(record)
        record = self._classed(record, draft, sources)
        return self._stored(record, self._outcome(record, "created", asked_id=asked_id))

    def _stored(self, record: Record, outcome: Outcome) -> Outcome:
        """Store a record, unless a policy keeps it away, and return the outcome.

        Raises:
            RejectedError: A policy refuses it.
        """
        if self.admission.keeps_away and self._is_kept_away(record):
            return self._quarantined(record, outcome.asked_id)
        self._put(record)
        return outcome

    # Quarantine

    def _is_kept_away(self, record: Record) -> bool:
        """Return whether a record goes to quarantine.

        Raises:
            RejectedError: A policy refuses it, or it belongs to a facet and would go to quarantine.
        """
        if self._branch.reserved_name in SHARED:
            return False
        handling, why, *found = self.admission.handling(record.effective_origin, record.text)
        flagged = self.admission.policies.flagged
        if HANDLINGS.index(flagged) > HANDLINGS.index(handling) and not record.has_authority:
            suspicion = self._comparing().suspicion(record)
            if suspicion is not None:
                handling, why, found = flagged, f"is suspect ({suspicion.signal}), and {why}", [suspicion.signal]
                if suspicion.signal == "burst" and handling == "quarantine":
                    self._take_along(suspicion.ids)
        if handling == "quarantine" and found and not self._branch.is_reserved:
            self._take_along(self._comparing().of_source(record))
        if handling == "refuse" or (handling == "quarantine" and self._branch.is_reserved):
            raise RejectedError("origin", why, *found)
        return handling == "quarantine"

    def _take_along(self, ids: Iterable[str]) -> None:
        """Put stored records into quarantine with one that is their like."""
        kept = self._apart()
        for each in ids:
            record = self.shown(each)
            if record is not None and not record.has_authority:
                self._drop(record.id, "superseded")
                kept.put_regardless(record)  # it is only moved: the quota has room for it

    def _quarantined(self, record: Record, asked_id: str | None = None) -> Outcome:
        """Keep a record apart. One that was rejected from there is not kept again."""
        kept = self._apart()
        for candidate in chain((record.id,), derived_ids(record, 0, self._intake.id_key)):
            existing = kept.live(candidate)
            if existing is None and not kept._was_rejected(candidate, record):
                existing = record.changed(id=candidate)
                kept._put(existing)
            elif existing is None:
                return Outcome(None, "quarantined", asked_id=asked_id)
            if same_text(existing, record):
                return Outcome(self._scope.shown(existing), "quarantined", asked_id=asked_id)
        raise AssertionError("there is always another id")

    def _was_rejected(self, record_id: str, record: Record) -> bool:
        """Return whether the last thing that became of an id is that the text of a record was forgotten."""
        change = self._pending.get(record_id)
        if change is None:
            newest = next(iter(self._tx.commits(self._branch, record_id=record_id, newest_first=True, limit=1)), None)
            change = None if newest is None else next(each for each in newest.changes if each.id == record_id)
        if change is None or change.after is not None or change.cause != "forgotten" or change.before is None:
            return False
        payload = self._tx.payload(self._branch, change.before)
        return payload is not None and same_text(Record.load(payload), record)

    def release(self, record_id: str) -> Outcome:
        """Store a record that is in quarantine.

        Raises:
            OriginError: The writer is less than the user.
            UnknownRecordError: There is none with this id.
        """
        if RANKS[self._origin] < RANKS[USER]:
            raise OriginError("the release of what is in quarantine", self._origin)
        kept = self._apart()
        record = kept.shown(record_id)
        if record is None:
            raise UnknownRecordError(record_id, self._branch.owner.namespace)
        kept._drop(record.id, "superseded")
        existing = self.live(record.id)
        if existing is not None and same_text(existing, record):
            return self._outcome(existing, "unchanged")
        if existing is not None or self._known(record.id):
            names = derived_ids(record, 0, self._intake.id_key)
            replaced = {} if existing is None or is_turn(record) else {"supersedes": (existing.id,)}
            record = record.changed(id=next(each for each in names if self.live(each) is None), **replaced)
        self.put_regardless(record)  # it is only moved: the quota has room for it
        return self._outcome(record, "created")

    # Classes of origin (`write.classes`)

    def _classed(self, record: Record, draft: Draft, sources: Sequence[Record] | None = None) -> Record:
        """Return a new record with its class of origin.

        Args:
            record: The record.
            draft: Its draft.
            sources: The records that it derives from; None: they are looked up.

        Raises:
            OriginError: The caller states a higher one.
        """
        if self._origin == USER and record.origin is None and not record.derived_from and draft.heard is None:
            return record  # of the class that its fields imply: as most are
        if not self._has_classes or (draft.keeps_origin and record.origin is None and self._origin == USER):
            return record
        if draft.keeps_origin:
            return with_class(record, least((record.effective_origin, self._origin)))
        if sources is None:
            classes = self._classes(record.derived_from, draft.exact)
        else:
            classes = [each.effective_origin for each in sources]
        if draft.heard is not None:
            classes.append(draft.heard)
        if draft.exact:
            return with_class(record, least((record.effective_origin, self._origin, *classes)))
        origin = class_of(record, self._origin, classes)
        check_stated(record, origin, self._origin)
        return with_class(record, origin)

    @property
    def _has_classes(self) -> bool:
        """Whether classes of origin are stored: a policy of the namespace can turn that off."""
        return self.admission.policies.record_origins

    def _classes(self, ids: Iterable[str], known_only: bool = False) -> list[Origin]:
        """Return the classes of the records with some ids, live or not; that of one that is not there is unknown.

        Args:
            ids: The ids, as the scope shows them.
            known_only: Leave out those that are not there: a copy may be stored before what it derives from.
        """
        found = [self.shown(each) or self._last_version(each) for each in ids]
        return [UNKNOWN if each is None else each.effective_origin for each in found if each or not known_only]

    def _last_version(self, record_id: str) -> Record | None:
        """Return the last version of a record that is no longer live; None if it is not there, or was erased."""
        for stored in self.stored_under(record_id):
            for commit in self._tx.commits(self._branch, record_id=stored, newest_first=True, limit=1):
                for change in commit.changes:
                    version = change.before if change.after is None else change.after
                    if change.id == stored and version is not None:
                        payload = self._tx.payload(self._branch, version)
                        record = None if payload is None else Record.load(payload)
                        if record is not None and self._scope.admits(record):
                            return record
        return None

    def may_change(self, record: Record) -> bool:
        """Return whether the writer may change a live record."""
        if may_change(record, self._origin) or self._branch.reserved_name in SHARED or self._wrote(record):
            return True
        return not self._has_classes

    def _wrote(self, record: Record) -> bool:
        """Return whether the writer is the client that made each version of a record, before there were classes."""
        if self._client is None or record.origin is not None:
            return False
        versions = self._tx.commits(self._branch, record_id=record.id)
        first = next(versions, None)
        return (
            first is not None and first.actor == self._client and all(each.actor == self._client for each in versions)
        )

    def _changed_class(self, before: Record, record: Record, *, copied: bool = False) -> Record:
        """Return a changed record with its class of origin.

        Args:
            before: The record as it was.
            record: The record as it is to be.
            copied: It is the copy of a record: what it states of its class may be above this one's.

        Raises:
            OriginError: The caller states a higher one.
        """
        if not self._has_classes:
            return record
        new = [each for each in record.derived_from if each not in before.derived_from]
        origin = class_after(before, record, self._origin, self._classes(new))
        if record.origin != before.origin and not copied:
            check_stated(record, origin, self._origin)
        return with_class(record, origin)

    def check_restoring(self, count: int) -> None:
        """Raise OriginError if `count` records of this part cannot be restored by the writer.

        Raises:
            OriginError: A policy keeps them apart, and the writer is less than the user.
        """
        if count and self._branch.reserved_name == QUARANTINED and RANKS[self._origin] < RANKS[USER]:
            raise OriginError("what a policy has kept apart or a person has released", self._origin)

    def propose(self, existing: Record, record: Record) -> Outcome:
        """Store what would change a record of a higher class as a record of its own, which an endorsement makes true.

        It names the other in `supersedes`, which has no effect before that. Within what a facet keeps, where nothing
        can be proposed, this is an error.

        Raises:
            OriginError: This is what a facet keeps.
        """
        shown = self._scope.shown(existing)
        if self._branch.is_reserved:
            raise OriginError(f"{shown.id!r}, of the class {existing.effective_origin},", self._origin)
        about = dict.fromkeys(_OF_TURNS) if is_turn(record) else {}
        kind = {"kind": "knowledge"} if is_turn(record) else {}
        fields = {name: getattr(record, name) for name in FIELD_NAMES if name not in ("id", "origin")}
        sources = tuple(each for each in record.derived_from if each not in existing.derived_from)
        proposal = identified(
            self._intake.id_key,
            **{**fields, **about, **kind, "supersedes": (shown.id,), "derived_from": sources},
        )
        stated = () if record.origin == existing.origin or record.origin not in RANKS else (record.origin,)
        proposal = with_class(proposal, class_of(proposal, self._origin, (*self._classes(sources), *stated)))
        for candidate in derived_ids(proposal, 0, self._intake.id_key):
            other = self.shown(candidate)
            if other is not None and other == proposal.changed(id=other.id):
                return self._outcome(other, "proposed", asked_id=shown.id)
            if other is None and not self._known(candidate):
                break
        stored = proposal.changed(id=candidate)
        return self._stored(stored, self._outcome(stored, "proposed", asked_id=shown.id))

    def endorse(self, record_id: str, origin: Origin) -> Outcome:
        """Raise the class of a record.

        Raises:
            UnknownRecordError: There is no live record with this id.
            OriginError: The class is above the writer's.
        """
        existing = self.find(record_id)
        if RANKS[origin] > RANKS[self._origin]:
            raise OriginError(f"the class {origin!r}", self._origin)
        if RANKS[origin] <= RANKS[existing.effective_origin]:
            return self._outcome(existing, "unchanged")
        record = with_class(existing, origin)
        self._put(record)
        return self._outcome(record, "updated")

    def _with_position(self, record: Record) -> Record:
        """Return the record; a turn without a position gets the one after the last of its conversation."""
        if record.position is not None or not is_turn(record):
            return record
        assert record.conversation is not None
        within = self._scope.filter if any(name != "conversation" for name, _ in self._scope.fixed) else EVERYTHING
        last = self._tx.last_position(self._branch, record.conversation, within)
        if self.admission.keeps_away and not self._branch.is_reserved:
            apart = self._tx.last_position(self._branch.reserved(QUARANTINED), record.conversation, within)
            last = apart if last is None else max(last, apart or 0)
        # Turns that share the greatest position are ordered by time.
        return record.changed(position=0 if last is None else min(last + 1, LAST_POSITION))

    def _remember_same(self, draft: Draft, existing: Record) -> Outcome:
        """Handle a draft that states the same fact as a stored record, according to `if_exists`."""
        if draft.if_exists == "error":
            raise self._exists(existing)
        differing = self._differing(draft, existing)
        names = [name for name in differing if name != "origin" or draft.keeps_origin]
        if not names or draft.if_exists == "keep" or not self.may_change(existing):
            return self._outcome(existing, "unchanged", differing)
        record = existing.changed(**{name: getattr(draft.comparable_to(existing), name) for name in names})
        record = self._classed(record, draft) if draft.keeps_origin else self._changed_class(existing, record)
        if record == existing:
            return self._outcome(existing, "unchanged", differing)
        self._put(record)
        return self._outcome(record, "updated")

    def _exists(self, existing: Record) -> RecordExistsError:
        shown = self._scope.shown(existing)
        return RecordExistsError(shown.id, shown.hash)

    def _take_over(self, draft: Draft, existing: Record) -> Outcome:
        """Handle `if_exists` "update" or "error" if the caller's id is in use, with the same or a different text."""
        if draft.if_exists == "error":
            raise self._exists(existing)
        if draft.exact and goes_back(existing, draft.record, self._branch):
            return self._outcome(existing, "unchanged")
        names = {*draft.explicit, "content", "media_type"}
        record = existing.changed(**{name: getattr(draft.comparable_to(existing), name) for name in names})
        if draft.exact:
            record = record.changed(unknown=draft.record.unknown)
            record = with_stored_names(record, stored_names(draft.record))
        else:
            record = retagged(existing, self._with_position(record), tags_given="tags" in draft.explicit)
        return self._change(draft, existing, record)

    def _change(self, draft: Draft, existing: Record, record: Record) -> Outcome:
        """Put a record in the place of an existing one, as a draft states it; or propose that."""
        if record == existing:
            return self._outcome(existing, "unchanged")
        if not self.may_change(existing):
            return self.propose(existing, record)
        if draft.keeps_origin:
            record = self._classed(record, draft)
            record = with_class(record, least((record.effective_origin, existing.effective_origin)))
        else:
            record = self._changed_class(existing, record, copied=draft.exact)
        if record == existing:
            return self._outcome(existing, "unchanged")
        self.check_move(existing, record)
        return self._stored(record, self._outcome(record, "updated"))

    def _differing(self, draft: Draft, existing: Record) -> tuple[str, ...]:
        """Return the fields that the caller passed and whose stored values differ."""
        return tuple(
            name
            for name in FIELD_NAMES
            if (name in draft.explicit or name == "origin")
            and name not in ("id", "content")
            and (
                self._is_of_other_class(draft, existing)
                if name == "origin"
                else _differ(name, draft.comparable_to(existing), existing)
            )
        )

    def _is_of_other_class(self, draft: Draft, existing: Record) -> bool:
        """Return whether a draft that states the same fact as a stored record has another class of origin."""
        if self._origin == USER and draft.record.origin is existing.origin:  # both are what their fields imply
            return False
        return self._classed(draft.record, draft).effective_origin != existing.effective_origin

    def _remember_expecting(self, draft: Draft) -> Outcome:
        """Store a draft with `expect`: only if the id has this hash, or is absent."""
        requested = draft.record.id
        existing = self.shown(requested)
        self._check_expectation(
            requested, draft.expect, existing, lambda: self._is_satisfied(draft, existing, earlier=True)
        )
        if existing is None:
            return self._create(draft, requested)
        if self._is_satisfied(draft, existing):
            return self._outcome(existing, "unchanged")
        record = draft.with_id(existing.id).record
        if not draft.exact:
            if is_turn(record) and record.position is None and record.conversation == existing.conversation:
                record = record.changed(position=existing.position)
            record = self._with_position(record)
        return self._change(draft, existing, record)

    def _is_satisfied(self, draft: Draft, existing: Record | None, *, earlier: bool = False) -> bool:
        """Return whether replacing a live record by a draft would change nothing, except for default values.

        Args:
            existing: The live record.
            earlier: Ignore `expires` if it was computed from a `ttl`: an earlier attempt computed another value.
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
        if draft.keeps_origin:
            replaced = self._classed(replaced, draft)
        elif draft.exact or replaced.origin is None:
            replaced = self._changed_class(existing, replaced, copied=draft.exact)
        elif replaced.origin == existing.effective_origin:
            replaced = replaced.changed(origin=existing.origin)
        return replaced.hash == existing.hash

    def update(self, record_id: str, changes: Mapping[str, Any] | Any, expect: str | None) -> Outcome:
        """Change fields of a record.

        Raises:
            UnknownRecordError: There is no live record with this id.
            ConflictError: `expect` is not met.
            InvalidRecordError: The changed record would be invalid.
            ScopeError: The changed record would lie outside the scope.
            RecordExistsError: The record would move into a scope that shows another record under its id.
            QuotaError: The changed record does not fit in the quota.
            RejectedError: The policies of the namespace do not allow its text.
        """
        existing = self.shown(record_id)
        if existing is None:
            self._check_expectation(record_id, expect, None)
            raise UnknownRecordError(record_id, self._branch.owner.namespace)
        self._check_expectation(record_id, expect, existing, lambda: self._changes_nothing(existing, changes))
        record = self._with_position(self._changed(existing, changes))
        if not callable(changes):  # a function returns the complete record, tags included
            record = retagged(existing, record, tags_given="tags" in changes)
        record = self.admission.record(record, existing)
        check_limits(record, self._intake)
        if not self._scope.admits(record):
            raise ScopeError(f"an update of record {record_id!r}", str(self._scope))
        if record == existing:
            return self._outcome(existing, "unchanged")
        if not self.may_change(existing):
            return self.propose(existing, record)
        record = self._changed_class(existing, record)
        if record == existing:
            return self._outcome(existing, "unchanged")
        self.check_move(existing, record)
        return self._stored(record, self._outcome(record, "updated"))

    def find(self, record_id: str, expect: str | None = None) -> Record:
        """Return the live record that the scope shows under an id, in its stored form.

        Raises:
            ConflictError: `expect` is not met.
            UnknownRecordError: There is none.
        """
        existing = self.shown(record_id)
        self._check_expectation(record_id, expect, existing)
        if existing is None:
            raise UnknownRecordError(record_id, self._branch.owner.namespace)
        return existing

    def replace(self, existing: Record, draft: Draft, at: datetime) -> Outcome:
        """Store a draft as a new record, and end the validity of a live one at a time.

        The same text may have been true before, as another record. If the second write is refused, the first one is
        staged already, so the transaction must not be committed.

        Raises:
            QuotaError: They do not fit in the quota.
        """
        may_change = self.may_change(existing)
        outcome = self._create(draft, self._unused_id(draft))
        if outcome.status == "quarantined":
            return outcome
        if not may_change:  # its `supersedes` has no effect before it is endorsed
            return replace(outcome, status="proposed", asked_id=self._scope.shown_id(existing.id))
        self._put(existing.changed(valid_to=at), "superseded")
        return outcome

    def merge(self, sources: Sequence[Record], draft: Draft) -> Outcome:
        """Store a draft as a new record in the place of live ones.

        They are removed first, so that a full quota has room. If storing is refused, the transaction must not be
        committed.

        Raises:
            QuotaError: It does not fit in the quota.
        """
        record_id = self._unused_id(draft)
        if not all(map(self.may_change, sources)):
            ids = tuple(self._scope.shown_id(source.id) for source in sources)
            proposal = draft._replace(record=draft.record.changed(supersedes=ids))
            return replace(self._create(proposal, record_id, sources=sources), status="proposed")
        for source in sources:
            self._drop(source.id, "superseded")
        outcome = self._create(draft, record_id, sources=sources)
        if outcome.status == "quarantined":
            for source in sources:
                self.put_regardless(source)
        return outcome

    def _check_expectation(
        self, record_id: str, expect: str | None, existing: Record | None, satisfied: Callable[[], bool] = lambda: False
    ) -> None:
        """Compare the live record with what the caller expects, before anything else is decided.

        Args:
            record_id: The id that the caller named.
            expect: The expected hash or "absent"; None for no expectation.
            existing: The live record.
            satisfied: Returns whether the live record already is as the call requests; it is called on conflict.

        Raises:
            ConflictError: They differ.
        """
        current = self._scope.shown(existing).hash if existing else ABSENT
        if expect is not None and expect != current:
            raise ConflictError(f"record {record_id!r}", expect, current, satisfied())

    def _changes_nothing(self, existing: Record, changes: Mapping[str, Any] | Any) -> bool:
        """Return whether a record already has the values of an update; always False for a function."""
        if callable(changes):
            return False
        try:
            return retagged(existing, self._changed(existing, changes), tags_given="tags" in changes) == existing
        except InvalidRecordError:  # the changes are invalid for the current record
            return False

    def _changed(self, existing: Record, changes: Mapping[str, Any] | Any) -> Record:
        if not callable(changes):
            stated = located_fields(changes, self._intake.zone)
            return existing.changed(
                **{name: _REMOVED.get(name) if value is None else value for name, value in stated.items()}
            )
        shown = self._scope.shown(existing)
        record = changes(shown)
        if not isinstance(record, Record):
            raise InvalidRecordError("update", record, "the function must return a record, such as record.changed(...)")
        if record.id != shown.id:
            raise InvalidRecordError("id", record.id, "cannot change: remember a new record instead")
        return record if record.id == existing.id else record.changed(id=existing.id)

    def forget(self, record_id: str, expect: str | None = None, *, may_be_missing: bool = False) -> Outcome:
        """Forget a record.

        Args:
            record_id: Its id.
            expect: The hash that it must have.
            may_be_missing: An id without any record, now or before, is no error.

        Raises:
            UnknownRecordError: There has never been a record with this id; within a scope, also if it was forgotten.
            ConflictError: `expect` is not met.
        """
        existing = self.shown(record_id)
        self._check_expectation(record_id, expect, existing, lambda: existing is None)
        if existing is not None:
            self._note_class(existing)
            self._drop(existing.id, "forgotten")
            return self._outcome(existing, "forgotten")
        # Already forgotten or expired is success. Within a scope the former owner of an id is not visible, so a
        # forgotten id is unknown there.
        for stored in self.stored_under(record_id):
            due = self._due(stored)
            if due is not None and self._scope.admits(due):
                self._drop(stored, "expired")
                return Outcome(None, "unchanged")
        if not may_be_missing and (self._scope.fixed or not self._known(record_id)):
            raise UnknownRecordError(record_id, self._branch.owner.namespace)
        return Outcome(None, "unchanged")

    def _note_class(self, record: Record) -> None:
        """Note that a record is forgotten, which any writer may do, for the reason that its commit states."""
        if self._origin != USER and RANKS[record.effective_origin] > RANKS[self._origin]:
            self._exceeded.add(record.effective_origin)

    def _reason(self, reason: str | None) -> str:
        """Return the reason of the commit, which says that records of a higher class than the writer's went."""
        which = " and ".join(each for each in ORIGINS if each in self._exceeded)
        note = f"a writer of the class {self._origin} has forgotten records of the class {which}"
        return f"{reason}; {note}" if reason else note

    def matching(self, where: Filter, prefiltered: Filter | None = None) -> tuple[list[str], list[str]]:
        """Return the ids of the records in the scope that match, and of the expired ones among the others.

        Args:
            where: The filter.
            prefiltered: A filter that matches the same live records and is faster.
        """
        live = AllOf.of(self._scope.filter, where if prefiltered is None else prefiltered)
        where = AllOf.of(self._scope.filter, where)
        found = [each.id for each in checked(self._tx.select(self._branch, live, order="id", now=self._micros))]
        due = self._tx.due(self._branch, self._micros, _ALL)
        return found, [each for each in due if (record := self._due(each)) is not None and where.matches(record)]

    def forget_matching(self, found: list[str], expired_ids: list[str]) -> int:
        """Forget what `matching` has found and return how many. Expired records are removed but not counted."""
        for record_id in checked(found):
            if self._origin != USER and (record := self.live(record_id)) is not None:
                self._note_class(record)
            self._drop(record_id, "forgotten")
        for record_id in expired_ids:
            self._drop(record_id, "expired")
        return len(found)

    def _due(self, record_id: str) -> Record | None:
        """Return the record of a stored id if it has expired and is not removed yet."""
        stored = self._tx.get(self._branch, record_id)
        record = None if stored is None else Record.load(stored.payload)
        return record if record is not None and expired(record, self._micros) else None

    # The store, and the commit

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

    def move_to_branch(self, record_id: str, *, other: bool) -> None:
        """Mark a turn as one of an abandoned branch, or as one of the conversation again."""
        existing = self.live(record_id)
        if existing is not None and self.may_change(existing):
            self.put_regardless(on_branch(existing, other=other))

    def put_regardless(self, record: Record) -> None:
        """Store a live record in which only a mark or its end has changed: no quota or policy applies to it."""
        room = self._room_left()
        if room is not None:
            room.note(record.id, record)
        self._store(record, record.to_bytes(), "written")

    @property
    def speaks_for_the_user(self) -> bool:
        """True if the writer is the user or the owner."""
        return RANKS[self._origin] >= RANKS[USER]

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
        changes = tuple(
            [each for each in self._pending.values() if each.before != each.after or each.cause == "erased"]
        )
        if not changes:
            return None
        head = self._tx.head(self._branch)
        self.before, last = head.root.hash, head.micros
        parts = None
        if self._branch.is_reserved:
            last = max(last, self._tx.head(self._branch.owner).micros)  # whose next commit has the same time
        elif self._tx.binds_parts:
            parts = parts_after(self._tx, self._branch, others) if others else parts_of(self._tx, self._branch)
            last = max(last, *(each.micros - 1 for each in others)) if others else last
        trie = self._tries.take(self._tx, self._branch, self._branch)
        commit = Commit(
            namespace=self._branch.namespace,
            branch=self._branch.name,
            seq=head.seq + 1,
            parents=((self._branch.name, head.seq),) if head.seq else (),
            micros=max(self._micros, last + 1),
            actor=actor,
            reason=self._reason(reason) if self._exceeded else reason,
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

    # Replays

    def outdated(self, known: KnownTurns) -> bool:
        """Return whether other commits have changed turns of the conversations since the replay was computed."""
        return outdated(known, self._tx, self._branch)

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

    def find_replay(self, drafts: Sequence[Draft]) -> KnownTurns:
        """Find the drafts that repeat stored turns, because a conversation is passed again."""
        return find_replay(drafts, self._search())

    @property
    def seq(self) -> int:
        """The seq of the commit that this one follows."""
        return self._tx.head(self._branch).seq

    def known_turns(self, addition: Addition, start: int = 0) -> dict[int, Outcome]:
        """Return the outcomes of the turns from `start` on that are stored or were forgotten, by their index."""
        apart = self._apart()._search() if self.admission.keeps_away else None
        return addition.known(self._search(), self._is_apart, start, apart)

    def listened(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Return drafts, of which the turns of tools, and those that may repeat them, have the class of these."""
        if not self._has_classes:
            return list(drafts)
        return with_heard(drafts, self._turns_before)

    def _turns_before(self, draft: Draft) -> Iterator[Record]:
        """Yield the turns before one, the last first, also those in quarantine."""
        position = self._with_position(draft.record).position
        assert draft.record.conversation is not None
        assert position is not None
        owner = attrgetter(*_OWNERS)
        writers = [self, self._apart()] if self.admission.keeps_away else [self]
        for at in range(position - 1, max(position - _TURNS_BEFORE, 0) - 1, -1):
            for each in writers:
                for stored in each._tx.turns_at(each._branch, draft.record.conversation, at):
                    record = each.live(Record.load(stored.payload).id)
                    if record is not None and owner(record) == owner(draft.record):
                        yield record

    def _is_apart(self, record_id: str) -> bool:
        """Return whether a record was put into quarantine, and was not released."""
        return self._apart()._known(record_id) and self.live(record_id) is None

    def _apart(self) -> Writer:
        """Return the writes to what is in quarantine."""
        return self._in_part(self._branch.reserved(QUARANTINED))

    def remember_replayed(self, draft: Draft, repeated: Repeated) -> Outcome:
        """Handle a draft that repeats a stored turn, as found by `find_replay`."""
        stored = repeated.record
        if stored is None:
            return Outcome(None, "unchanged")
        existing: Record | None = stored
        if stored.id in self._pending or self._tx.head(self._branch) != repeated.head:
            existing = self.live(stored.id)
        elif expired(stored, self._micros):
            existing = None
        return self.remember(draft) if existing is None else self._remember_same(draft, existing)


def _differ(name: str, one: Record, other: Record) -> bool:
    """Return whether a field of two records differs in its encoding: 1 and 1.0 in metadata differ."""
    if name == "metadata":
        return encode_json(one.metadata) != encode_json(other.metadata)
    left, right = getattr(one, name), getattr(other, name)
    if isinstance(left, datetime) and isinstance(right, datetime):
        return left.isoformat() != right.isoformat()
    return bool(left != right)
