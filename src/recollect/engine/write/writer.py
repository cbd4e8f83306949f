"""The write path: turns the operations of a transaction into one commit.

Ids are assigned here, inside the transaction, because only here it is certain which ids are in use. What is written is
staged in `staging`, and `judging` decides whose word it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, count, islice
from typing import Any

from recollect.common.deadlines import checked
from recollect.engine.family import goes_back
from recollect.engine.results import Outcome, Status
from recollect.engine.write.classes import with_class
from recollect.engine.write.drafts import Draft, check_limits, is_turn, on_branch, retagged
from recollect.engine.write.judging import Judging
from recollect.engine.write.messages import Addition
from recollect.engine.write.naming import first_free, id_beside
from recollect.engine.write.replay import Repeated
from recollect.errors import (
    ConflictError,
    InvalidRecordError,
    OriginError,
    RecordExistsError,
    RejectedError,
    ScopeError,
    UnknownRecordError,
)
from recollect.filters.tree import AllOf, Filter
from recollect.operations import ABSENT
from recollect.records.codec import encode_json
from recollect.records.identity import derived_ids, numbered_ids, same_fact, same_text
from recollect.records.origins import RANKS, USER, Origin, least
from recollect.records.record import FIELD_NAMES, Record, located_fields, stored_names, with_stored_names
from recollect.stores.values import expired

#: No limit of expired records.
_ALL = 2**62
#: Number of ordinals that are tried one by one before the first free one is searched by doubling.
_TRIED_FIRST = 3
#: The fields that say whose record it is.
_OWNERS = ("user", "agent")
#: What an update to None makes of fields whose absence is another value.
_REMOVED: dict[str, Any] = {
    "tags": (),
    "metadata": {},
    "supersedes": (),
    "derived_from": (),
    "pinned": False,
    "searchable": True,
}


class Writer(Judging):
    """The writes of one commit, as the operations ask for them."""

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
                if free is None and hidden is None and not (used and self._is_of_higher(candidate)):
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
        return draft.derived_id(first_free(lambda number: self.was_used(draft.derived_id(number), draft), _TRIED_FIRST))

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
        status: Status = "created"
        if (record.tags or record.pinned or record.supersedes) and not draft.exact and self.is_proposal(record):
            status = "proposed"
        return self._stored(record, self._outcome(record, status, asked_id=asked_id))

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
            record = self._changed_class(existing, record, copied=draft.exact or draft.is_quoted, heard=draft.heard)
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
            replaced = self._changed_class(existing, replaced, copied=draft.exact or draft.is_quoted)
        elif replaced.origin == existing.effective_origin:
            replaced = replaced.changed(origin=existing.origin)
        return replaced.hash == existing.hash

    def take(self, record_id: str, record: Record | None, cause: str = "forgotten") -> None:
        """Make what another branch has under an id the live record here, as the policies and the quota allow it.

        Args:
            record_id: The stored id.
            record: The record; None: it is removed.
            cause: Why it was removed there.

        Raises:
            QuotaError: It does not fit in the quota.
            RejectedError: The policies of the namespace do not allow it.
        """
        before = self.live(record_id)
        if record is None:
            self._drop(record_id, cause)
        else:
            admitted = self.admission.record(record, before)
            if (room := self._room_left()) is not None:
                room.take_over(admitted)
            self._stored(admitted, self._outcome(admitted, "updated"))

    def add_beside(self, record: Record, branch: str) -> None:
        """Store a record of another branch under a free id: its own one, followed by the name of the branch.

        If that is too long, its hash takes its place. If the record was stored so before, it is left as it is.

        Raises:
            QuotaError: It does not fit in the quota.
            RejectedError: The policies of the namespace do not allow it.
        """
        beside = id_beside(record.id, branch)
        for number in count(1):
            named = record.changed(id=beside if number == 1 else f"{beside}~{number}")
            if not self._known(named.id):
                self.take(named.id, named)
                return
            if self.live(named.id) == named:
                return

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
        outcome = self._outcome(record, "updated")
        if self.speaks_for_the_user:  # what the user corrects is not kept apart
            self._put(record)
            return outcome
        return self._stored(record, outcome)

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

    def endorse(self, record_id: str, origin: Origin, expect: str | None = None) -> Outcome:
        """Raise the class of a record.

        Raises:
            ConflictError: `expect` is not met.
            UnknownRecordError: There is no live record with this id.
            OriginError: The class is above the writer's.
        """
        existing = self.find(record_id, expect)
        if RANKS[origin] > RANKS[self._origin]:
            raise OriginError(f"the class {origin!r}", self._origin)
        if RANKS[origin] <= RANKS[existing.effective_origin]:
            return self._outcome(existing, "unchanged")
        record = with_class(existing, origin)
        self._put(record)
        return self._outcome(record, "updated")

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
        return replace(outcome, status="created")

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
            outcome = self._create(proposal, record_id, sources=sources)
            above = next(id_ for id_, source in zip(ids, sources, strict=True) if not self.may_change(source))
            return outcome if outcome.status == "quarantined" else replace(outcome, status="proposed", asked_id=above)
        for source in sources:
            self._drop(source.id, "superseded")
        outcome = self._create(draft, record_id, sources=sources)
        if outcome.status == "quarantined":
            for source in sources:
                self.put_regardless(source)
            return outcome
        return replace(outcome, status="created")

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

    def move_to_branch(self, record_id: str, *, other: bool) -> None:
        """Mark a turn as one of an abandoned branch, or as one of the conversation again."""
        existing = self.live(record_id)
        if existing is not None and self.may_change(existing):
            self.put_regardless(on_branch(existing, other=other))

    def known_turns(self, addition: Addition, start: int = 0) -> dict[int, Outcome]:
        """Return the outcomes of the turns from `start` on that are stored or were forgotten, by their index."""
        apart = self._apart()._search() if self.admission.keeps_away else None
        return addition.known(self._search(), self._is_apart, start, apart)

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
