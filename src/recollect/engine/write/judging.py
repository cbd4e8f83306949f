"""Whose word a new version of a record is, and where it goes for that: to its place, beside it, or into quarantine."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain

from recollect.engine.facets import SHARED
from recollect.engine.read.log import last_effect
from recollect.engine.results import Outcome
from recollect.engine.scope import MCP
from recollect.engine.write.classes import QUARANTINED, check_stated, class_after, class_of, may_change, with_class
from recollect.engine.write.drafts import CONVERSATION, Draft, is_turn
from recollect.engine.write.hearing import with_heard
from recollect.engine.write.naming import first_free
from recollect.engine.write.staging import Staging
from recollect.errors import (
    OriginError,
    RejectedError,
    UnknownRecordError,
)
from recollect.filters.tree import EVERYTHING, AllOf, Is
from recollect.ledger.commits import Branch, Commit
from recollect.operations.upkeep import HANDLINGS
from recollect.records.identity import derived_id, derived_ids, identified, same_text
from recollect.records.origins import ASSISTANT, RANKS, UNKNOWN, USER, Origin, least
from recollect.records.record import FIELD_NAMES, Record
from recollect.text.manner import STANDING_TAGS

#: The fields that a proposal to change a turn does not have, since it is none.
_OF_TURNS = ("role", "speaker", "conversation", "session", "position")
#: Number of positions before a turn that are looked up one by one.
_NEAR = 16
#: The greatest position that a record can have.
LAST_POSITION = 2**63 - 1


class Judging(Staging):
    """The writes of one commit, with classes of origin (`write.classes`) and the policies on them."""

    _in_part: Callable[[Branch], Judging]

    @property
    def _has_classes(self) -> bool:
        """Whether classes of origin are stored: a policy of the namespace can turn that off."""
        return self.admission.policies.record_origins

    def may_change(self, record: Record) -> bool:
        """Return whether the writer may change a live record."""
        if may_change(record, self._origin) or self._branch.reserved_name in SHARED or self._wrote(record):
            return True
        return not self._has_classes

    def may_make(self, record: Record) -> bool:
        """Return whether the writer may make a former version of a record live again: it is of no higher class."""
        return may_change(record, self._origin) or self._branch.reserved_name in SHARED or not self._has_classes

    def _wrote(self, record: Record) -> bool:
        """Return whether the writer is the client that made each version of a record that states no class.

        So are those from before there were classes: the commits of a client that speaks for the user name it otherwise.
        """
        if not self._client or self._actor is None or self._origin != ASSISTANT or record.origin is not None:
            return False

        def is_own(commit: Commit) -> bool:
            return commit.actor == self._actor and (self._client != MCP or commit.reason is not None)

        versions = self._tx.commits(self._branch, record_id=record.id)
        first = next(versions, None)
        return first is not None and is_own(first) and all(map(is_own, versions))

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
        if not draft.is_quoted:
            check_stated(record, origin, self._origin)
        return with_class(record, origin)

    def _changed_class(
        self, before: Record, record: Record, *, copied: bool = False, heard: Origin | None = None
    ) -> Record:
        """Return a changed record with its class of origin.

        Args:
            before: The record as it was.
            record: The record as it is to be.
            copied: It is a copy, or was imported: what it states of its class may be above this one's.
            heard: The class of what a turn may repeat of tools, if it is not what its role implies.

        Raises:
            OriginError: The caller states a higher one.
        """
        if not self._has_classes:
            return record
        new = [each for each in record.derived_from if each not in before.derived_from]
        classes = self._classes(new) if heard is None else [*self._classes(new), heard]
        origin = class_after(before, record, self._origin, classes)
        if record.origin != before.origin and not copied:
            check_stated(record, origin, self._origin)
        return with_class(record, origin)

    def _classes(self, ids: Iterable[str], known_only: bool = False) -> list[Origin]:
        """Return the classes of the records with some ids, live or not; that of one that is not there is unknown.

        Args:
            ids: The ids, as the scope shows them.
            known_only: Leave out those that are not there: a copy may be stored before what it derives from.
        """
        found = [self.shown(each) or self._last_version(each) for each in ids]
        return [UNKNOWN if each is None else each.effective_origin for each in found if each or not known_only]

    def _is_of_higher(self, record_id: str) -> bool:
        """Return whether an id was that of a record above the writer, which is gone: its place stays free for that."""
        if RANKS[self._origin] >= RANKS[USER] or not self._has_classes:
            return False
        last = self._last_version(record_id)
        return last is not None and RANKS[last.effective_origin] > RANKS[self._origin]

    def _last_version(self, record_id: str) -> Record | None:
        """Return the last version of a record that is no longer live; None if it is not there, or was erased."""
        for stored in self.stored_under(record_id):
            found = last_effect(self._tx, self._branch, stored)
            version = None if found is None else found[1].after or found[1].before
            payload = None if version is None else self._tx.payload(self._branch, version)
            record = None if payload is None else Record.load(payload)
            if record is not None and self._scope.admits(record):
                return record
        return None

    def check_restoring(self, count: int) -> None:
        """Raise OriginError if `count` records of this part cannot be restored by the writer.

        Raises:
            OriginError: A policy keeps them apart, and the writer is less than the user.
        """
        if count and self._branch.reserved_name == QUARANTINED and RANKS[self._origin] < RANKS[USER]:
            raise OriginError("what a policy has kept apart or a person has released", self._origin)

    def _note_class(self, record: Record) -> None:
        """Note that a record is forgotten, which any writer may do, for the reason that its commit states."""
        if self._origin != USER and RANKS[record.effective_origin] > RANKS[self._origin]:
            forgotten = f"a writer of the class {self._origin} has forgotten records of the class"
            self._notes[f"{forgotten} {record.effective_origin}"] = None

    def listened(self, drafts: Sequence[Draft], known: Container[int] = frozenset()) -> list[Draft]:
        """Return drafts, of which the turns of tools, and those that may repeat them, have the class of these.

        Args:
            drafts: The drafts.
            known: The numbers of those that are stored already.
        """
        if not self._has_classes:
            return list(drafts)
        return with_heard(drafts, self._turns_before, self._origin, known)

    def _turns_before(self, draft: Draft) -> Iterator[Record]:
        """Yield the turns before one that the scope shows, the last first, also those in quarantine.

        Cost:
            A look-up for each of the last positions, which nearly always have what is asked for; then a search.
        """
        position, conversation = self._with_position(draft.record).position, draft.record.conversation
        assert conversation is not None
        assert position is not None
        has_apart = self.admission.keeps_away or self._tx.head(self._branch.reserved(QUARANTINED)).seq
        writers = [self, self._apart()] if has_apart else [self]
        for at in range(position, max(position - _NEAR, -1), -1):
            for each in writers:
                for stored in each._tx.turns_at(each._branch, conversation, at):
                    record = each.live(Record.load(stored.payload).id)
                    if record is not None and self._scope.admits(record):
                        yield record
        of_conversation = Is("conversation", (conversation,)), Is("kind", (CONVERSATION,))
        turns = AllOf.of(self._scope.filter, *of_conversation)

        def of(writer: Judging) -> Iterator[Record]:
            return self._tx.select(writer._branch, turns, order="last", now=self._micros)

        for record in heapq.merge(*map(of, writers), key=lambda turn: -(turn.position or 0)):
            if record.position is None or record.position <= position - _NEAR:
                yield record

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

    def _stored(self, record: Record, outcome: Outcome) -> Outcome:
        """Store a record, unless a policy keeps it away, and return the outcome.

        Raises:
            RejectedError: A policy refuses it.
        """
        if self.admission.keeps_away and self._is_kept_away(record):
            return self._quarantined(record, outcome.asked_id)
        self._put(record)
        return outcome

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
            found = last_effect(self._tx, self._branch, record_id)
            change = None if found is None else found[1]
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
        if existing is not None and existing.supersedes and self._are_one_proposal(existing, record):
            self.put_regardless(record)  # its next version
            return self._outcome(record, "updated")
        if existing is not None or self._known(record.id):
            own, id_key = record, self._intake.id_key
            replaced = {} if existing is None or is_turn(record) else {"supersedes": (*record.supersedes, existing.id)}
            number = first_free(lambda number: self.live(derived_id(own, number, id_key)) is not None)
            record = record.changed(id=derived_id(own, number, id_key), **replaced)
        self.put_regardless(record)  # it is only moved: the quota has room for it
        return self._outcome(record, "created")

    def _is_apart(self, record_id: str) -> bool:
        """Return whether a record was put into quarantine, and was not released."""
        return self._apart()._known(record_id) and self.live(record_id) is None

    def _apart(self) -> Judging:
        """Return the writes to what is in quarantine."""
        return self._in_part(self._branch.reserved(QUARANTINED))

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
        # What a writer proposes in the place of one record is one record: a new proposal is its next version.
        writer = f"{proposal.effective_origin}\n{self._actor or ''}\n{shown.id}"
        of_writer = identified(self._intake.id_key, content=writer, user=existing.user, agent=existing.agent)

        def candidate(number: int) -> str:
            return derived_id(of_writer, number, self._intake.id_key)

        number = first_free(lambda number: self._known(candidate(number)))
        pending = self.shown(candidate(number - 1)) if number else None
        if pending is not None and self._are_one_proposal(pending, proposal):
            number -= 1
        stored = proposal.changed(id=candidate(number))
        outcome = self._outcome(stored, "proposed", asked_id=shown.id)
        return outcome if stored == pending else self._stored(stored, outcome)

    def _are_one_proposal(self, pending: Record, proposal: Record) -> bool:
        """Return whether a proposal is a version of a stored one, which was not endorsed."""
        return (pending.supersedes, pending.effective_origin) == (proposal.supersedes, proposal.effective_origin)

    def is_proposal(self, record: Record) -> bool:
        """Return whether a record asks for what its class may not: to govern, or the place of one of a higher class."""
        if record.has_authority or is_turn(record) or not self._has_classes:
            return False
        if record.pinned or any(tag in STANDING_TAGS for tag in record.tags):
            return True
        return any(RANKS[each] > RANKS[record.effective_origin] for each in self._classes(record.supersedes, True))
