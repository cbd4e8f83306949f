"""`FactComparison`: adds, confirms, replaces or ends facts, by comparing what a model states with what is known.

What was said later counts, in whichever order conversations are read: of an attribute that has one value at a time, a
fact is true from when its turn says, or else from when that was said, up to the next one. What was before stays as
history. A fact that is pinned, or whose sources are trusted more, is not replaced.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from recollect import filters as f
from recollect.agents.checking import CheckedFact, TurnsToRead
from recollect.agents.learned import LearnedFact, Status, noted, refused
from recollect.errors import InvalidArgumentError, InvalidRecordError, RejectedError
from recollect.facets.entities.graph import entity_id
from recollect.memory.batch import Batch
from recollect.memory.manager.contradictions import ATTRIBUTE, SINGLE, VALUE, StatedAttribute, statements
from recollect.records import factories
from recollect.records.origins import RANKS, implied, least
from recollect.records.record import Record
from recollect.text.attributes import same_value
from recollect.text.facts import rule_importance

#: The name in the metadata of a fact that says which model and prompt stated it.
LEARNED = "learned"
_USER = "user"
_FIRST = datetime(1, 1, 2, tzinfo=UTC)
_DAY = timedelta(days=1)


class FactComparison:
    """Stores checked facts in a batch, by comparing them with what is known.

    Args:
        batch: The commit in which everything is stored.
        part: The turns that state them.
        name: The model and the version of the prompt.
        zone: The time zone in which days begin.
    """

    def __init__(self, batch: Batch, part: TurnsToRead, name: str, zone: tzinfo) -> None:
        self._batch, self._part, self._name, self._zone = batch, part, name, zone
        own = batch.find(facts_of(part))
        self._stated = [each for record in own for each in statements(record)]
        self._stored: list[str] = []
        self._changed: set[str] = set()
        self._texts = {str(record.content).casefold(): record for record in own}

    def __call__(self, fact: CheckedFact) -> LearnedFact:
        """Store a fact, and return what became of it."""
        if fact.known is not None and fact.known.id not in self._changed:
            current = self._batch.get(fact.known.id)
            if current is None or current.hash != fact.known.hash:
                return refused(fact.stated, "the known fact that it names was changed meanwhile", fact.sources)
        staged = len(self._stored), len(self._changed)
        try:
            found = self._compared(fact, self._fields(fact))
        except (RejectedError, InvalidRecordError, InvalidArgumentError) as error:
            if (len(self._stored), len(self._changed)) != staged:
                raise  # half of a change: the whole commit is given up
            return refused(fact.stated, str(error), fact.sources)
        return found if not fact.note or found.reason else noted(found, fact.note)

    def _fields(self, fact: CheckedFact) -> dict[str, Any]:
        """Return the fields of the record that it becomes."""
        stated, sources = fact.stated, fact.sources
        metadata: dict[str, Any] = {LEARNED: self._name}
        if fact.attribute:
            metadata |= {ATTRIBUTE: fact.attribute, VALUE: stated.value or stated.fact, SINGLE: stated.single}
        trusts = [each.trust for each in sources if each.trust is not None]
        common: dict[str, Any] = {
            "user": self._part.user,
            "agent": self._part.agent,
            "time": max((each.time for each in sources if each.time is not None), default=None),
            "valid_from": self._time(fact.since, sources),
            "derived_from": tuple(dict.fromkeys(each.id for each in sources)),
            "trust": min(trusts) if trusts else None,
            "metadata": metadata,
        }
        common = {name: value for name, value in common.items() if value is not None}
        origin = least(each.effective_origin for each in sources)
        if RANKS[origin] < RANKS[implied(None, None, "user_fact" if fact.about_user else "entity")]:
            common["origin"] = origin
        if fact.about_user:
            return factories.user_fact(stated.fact, importance=rule_importance(stated.fact, "person"), **common)
        name = stated.about
        importance = rule_importance(stated.fact, factories.UNKNOWN_TYPE)
        return factories.entity(stated.fact, name=name, entity=entity_id(name), importance=importance, **common)

    def _compared(self, fact: CheckedFact, fields: dict[str, Any]) -> LearnedFact:
        probe = Record(id="new", **fields)
        since, same = since_of(probe), self._alike(probe)
        value = str(fields["metadata"].get(VALUE, ""))
        equal = [each.record for each in same if same_value(each.value, value, each.attribute, exact=True)]
        if not fact.attribute and (known := self._texts.get(str(probe.content).casefold())):
            equal.append(known)
        if fact.until is not None:
            return self._ending(fact, fields, self._at(fact.until[1] + _DAY), equal)
        for each in equal:
            if ends_after(each, since) and not _is_empty(each):
                return self._result("confirmed", fact, fields, self._since_earlier(each, probe, same))
        rivals = [each.record for each in same if fact.stated.single and each.record.metadata.get(SINGLE, True)]
        return self._among(fact, fields, [each for each in rivals if not _is_empty(each)])

    def _ending(
        self, fact: CheckedFact, fields: dict[str, Any], until: datetime, equal: Sequence[Record]
    ) -> LearnedFact:
        """End the known fact that is meant, or store what was true before."""
        probe = Record(id="new", **fields)
        named = [] if fact.known is None else [self._batch.get(fact.known.id)]
        for each in [*filter(None, named), *equal]:
            ended = _ended(each, until, _said(probe))
            if ended is not None:
                if reason := _why_protected(each, probe):
                    return replace(refused(fact.stated, reason, fact.sources), other=each)
                return self._result("ended", fact, fields, self._update(each, **ended))
        fields = _without(fields, "valid_from") if until <= since_of(probe) else fields
        return self._result("added", fact, fields, self._put({**fields, "valid_to": until}))

    def _among(self, fact: CheckedFact, fields: dict[str, Any], rivals: Sequence[Record]) -> LearnedFact:
        """Store a fact among those of which only one is true at a time: from its time on, up to the next one.

        What was said later counts: it takes the place of what was said before, also where that began later, and what
        was said before is only history where something else is known of its time.
        """
        probe = Record(id="new", **fields)
        since, said = since_of(probe), _said(probe)
        for each in rivals:  # "I moved yesterday", where the old home was named yesterday
            if since <= since_of(each) < min(said, since + _DAY) and _said(each) < said:
                since = min(said, since + _DAY)
        fields = {**fields, "valid_from": since}
        wrong = [each for each in rivals if since <= since_of(each) <= said and _said(each) < said]
        later = min((since_of(each) for each in rivals if since_of(each) > since and each not in wrong), default=None)
        fields = fields if later is None else {**fields, "valid_to": later}
        before = max((each for each in rivals if _is_true_at(each, since)), key=since_of, default=None)
        others = [*wrong, *([before] if before is not None and before not in wrong else [])]
        for each in others:
            if reason := _why_kept(each, probe, since):
                if _said(each) > said:
                    fields = {**fields, "valid_to": since}
                return self._result("contradiction", fact, fields, self._put(fields), each, reason)
        if not others:
            return self._result("added", fact, fields, self._put(fields))
        record = self._instead(others, fields, since)
        for each in wrong:
            self._update(each, valid_to=since_of(each))
        return self._result("replaced", fact, fields, record, others[-1])

    def _instead(self, others: Sequence[Record], fields: dict[str, Any], since: datetime) -> Record:
        """Store a fact that takes the place of others."""
        text, old = str(fields["content"]), others[-1]
        if _is_true_at(old, since) and len(others) == 1 and text != old.content and since_of(old) < since:
            record = self._batch.supersede(old.id, text, at=since, **_without(fields, "content", "valid_from"))
            self._replace(old, self._batch.get(old.id))
            self._note(record)
            return record
        record = self._put({**fields, "supersedes": tuple(each.id for each in others)})
        if _is_true_at(old, since) and since_of(old) < since:
            self._update(old, valid_to=since)
        return record

    def _update(self, known: Record, **fields: Any) -> Record:
        changed = self._batch.update(known.id, **fields)
        self._replace(known, changed)
        return changed

    def _since_earlier(self, known: Record, probe: Record, same: Sequence[StatedAttribute]) -> Record:
        """Return a known fact, true from an earlier time on if it was stated earlier and nothing else was true then."""
        begins, since = since_of(known), since_of(probe)
        others = [each.record for each in same if each.record.id != known.id]
        if (
            _why_protected(known, probe)
            or since >= begins
            or any(since_of(each) < begins and ends_after(each, since) for each in others)
        ):
            return known
        return self._update(known, valid_from=since)

    def _alike(self, probe: Record) -> list[StatedAttribute]:
        """Return what is known of the same attribute of the same subject."""
        keys = {each[:3] for each in statements(probe)}
        return [each for each in self._stated if each[:3] in keys]

    def _put(self, fields: dict[str, Any]) -> Record:
        # An id of its own: a fact that was true before may be stored in the same words.
        fields = {**fields, "id": derived_id(*sorted(self._part.new), self._name, str(len(self._stored)))}
        (outcome,) = self._batch.remember_all([{**fields, "standing": False}], on_error="raise").results
        record = outcome.checked().record
        assert record is not None
        self._stored.append(record.id)
        self._note(record)
        return record

    def _note(self, record: Record) -> None:
        self._stated += statements(record)
        self._texts[str(record.content).casefold()] = record

    def _replace(self, old: Record, new: Record | None) -> None:
        self._changed.add(old.id)
        self._stated = [each for each in self._stated if each.record.id != old.id]
        if new is not None:
            self._note(new)

    def _result(
        self,
        status: Status,
        fact: CheckedFact,
        fields: dict[str, Any],
        record: Record,
        other: Record | None = None,
        reason: str = "",
    ) -> LearnedFact:
        value = str(fields["metadata"].get(VALUE, ""))
        return LearnedFact(
            status, fact.stated.fact, fact.attribute, value, fields["derived_from"], record, other, reason
        )

    def _time(self, since: tuple[date, date] | None, sources: Sequence[Record]) -> datetime | None:
        """Return the time from which a fact is true: the begin of its day, or when the newest of its turns was said."""
        times = [each.time for each in sources if each.role == _USER and each.time is not None]
        said = max(times, default=None)
        if since is None or (said is not None and since[0] == since[1] == said.astimezone(self._zone).date()):
            return said
        return self._at(since[0])

    def _at(self, day: date) -> datetime:
        return datetime(day.year, day.month, day.day, tzinfo=self._zone)


def facts_of(part: TurnsToRead) -> f.Filter:
    """Return what matches the facts of the owner of some turns, and no others."""
    user = ~f.has("user") if part.user is None else f.user(part.user)
    return f.kind("user_fact", "entity") & user & (~f.has("agent") if part.agent is None else f.agent(part.agent))


def derived_id(*parts: str) -> str:
    """Return an id that is the same for the same parts."""
    return str(uuid.UUID(bytes=hashlib.sha256("\0".join(parts).encode()).digest()[:16]))


def since_of(record: Record) -> datetime:
    """Return the time from which a record is true: the first one there is, if it only says when it ended."""
    since = record.valid_from or record.time
    assert since is not None  # every record that a store returns has a time, and so has every turn
    ended = record.valid_from is None and record.valid_to is not None and record.valid_to <= since
    return _FIRST if ended else since


def _said(record: Record) -> datetime:
    assert record.time is not None
    return record.time


def _is_empty(record: Record) -> bool:
    """Return whether a record was never true: another one was in its place all the time."""
    return record.valid_to is not None and record.valid_to <= since_of(record)


def _ended(known: Record, until: datetime, said: datetime) -> dict[str, datetime | None] | None:
    """Return the validity of a known fact that was said to have ended; None if it is another one that ended.

    One that ends on the day on which that is said ends at once. One that ended before it was said was true before, if
    it does not say since when, or never.
    """
    end = said if until - _DAY <= said < until else until
    if _is_true_at(known, end):
        return {"valid_to": end}
    if end > since_of(known) or not ends_after(known, since_of(known)) or _said(known) >= said:
        return None
    return {"valid_from": None, "valid_to": end} if known.valid_from == known.time else {"valid_to": since_of(known)}


def _is_true_at(record: Record, time: datetime) -> bool:
    return since_of(record) <= time and ends_after(record, time)


def ends_after(record: Record, time: datetime) -> bool:
    return record.valid_to is None or record.valid_to > time


def _why_protected(known: Record, new: Record) -> str:
    """Return why a known fact is not changed for a new one; "" if it may be."""
    if known.pinned:
        return "the known fact is pinned"
    if RANKS[new.effective_origin] < RANKS[known.effective_origin]:
        return f"it is the word of the {new.effective_origin}, and the known fact that of the {known.effective_origin}"
    if known.trust is not None and (new.trust if new.trust is not None else 1.0) < known.trust:
        return "its sources are trusted less than the known fact"
    return ""


def _why_kept(known: Record, new: Record, since: datetime) -> str:
    """Return why a known fact is not replaced by another one; "" if it is."""
    if reason := _why_protected(known, new):
        return reason
    if _said(known) > _said(new):
        return "a later turn says something else"
    if since == since_of(known) and _said(known) == _said(new):
        return "both are true from the same time on"
    return ""


def _without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}
