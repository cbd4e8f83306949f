"""`Contradictions`: facts that state the same attribute of the same subject with values that disagree.

The attribute of a fact is in its metadata ("attribute", and "value" if the text says more), or is found in its text by
rules (`recollect.text.attributes`). Nothing is superseded unless it is asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from recollect import filters as f
from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls
from recollect.common.deadlines import checked
from recollect.common.reprs import ShownTable, line, shows_itself, table
from recollect.engine.results import record_json
from recollect.errors import InvalidArgumentError, OriginError
from recollect.facets.entities.graph import entity_id
from recollect.filters.text_form import Where, check_filter
from recollect.filters.tree import Filter
from recollect.memory.manager.distinctions import apart_in
from recollect.records.factories import OTHER_BRANCH
from recollect.records.origins import RANKS
from recollect.records.record import Record
from recollect.text.attributes import Fact, same_value, stated

#: The names in the metadata of a record that states an attribute.
ATTRIBUTE, VALUE = "attribute", "value"
#: The name in its metadata that says whether the attribute has one value at a time.
SINGLE = "single"
#: The kind of the records that name the turns that a model has read (`recollect.agents.Learner`).
LEARNING = "learning"
#: The kinds that state facts.
KINDS = ("user_fact", "entity", "knowledge", "conversation")
#: Turns of these roles state nothing about the world: they are prompts and results of programs.
_MACHINES = ("assistant", "system", "developer", "tool")
#: Maximum number of facts with an attribute that a new one is compared with, the newest ones.
_MOST_COMPARED = 50
_FIRST = datetime(1, 1, 2, tzinfo=UTC)


class StatedAttribute(NamedTuple):
    """A value that a record states.

    Attributes:
        owner: The user and the agent to whom the record belongs.
        subject: The id of the subject.
    """

    owner: tuple[str, str]
    subject: str
    attribute: str
    value: str
    record: Record


@shows_itself
@dataclass(frozen=True, slots=True, repr=False)
class Contradiction:
    """Two records that disagree.

    Attributes:
        subject: The id of whom or what they are about.
        attribute: The attribute, such as "home".
        older: The record that states the earlier value.
        newer: The record that states the later value.
        values: The two values, the earlier one first.
    """

    subject: str
    attribute: str
    older: Record
    newer: Record
    values: tuple[str, str]

    def _table(self) -> ShownTable:
        records = (self.older, self.newer)
        rows = [(line(record.id, 40), line(value, 60)) for record, value in zip(records, self.values, strict=True)]
        return table(f"{line(self.attribute)} of {line(self.subject)}", ("record", "value"), rows, lambda row: row)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "subject": self.subject,
            "attribute": self.attribute,
            "values": list(self.values),
            "older": record_json(self.older),
            "newer": record_json(self.newer),
        }


@all_named
class Contradictions(Calls):
    """The calls on facts that disagree."""

    def contradictions(
        self,
        where: Where | None = None,
        *,
        record: Record | None = None,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> list[Contradiction]:
        """Return the facts that disagree: about the same subject and attribute, with another value. Nothing is changed.

            memory.record_user_fact("I live in Rome", user="ana")
            memory.record_user_fact("I live in Oslo now", user="ana")
            for found in memory.contradictions():
                print(found.attribute, found.values)  # home ('Rome', 'Oslo')

        A fact states an attribute if its metadata has "attribute" (its value is "value", or else what the text says),
        or if its text does by the rules: homes, jobs, employers, ages, favourites, phone numbers, deadlines and other
        attributes that have one value at a time, in English, German, Spanish and French. What is uncertain, past, asked
        or abandoned (a turn with the tag `other-branch`) states nothing. Facts of different users or agents never
        disagree, nor do facts of which one supersedes the other, or that are not valid any more, nor those of which
        `distinguish` stated it. Of turns that a model has read (`recollect.agents.Learner`), its facts count.

        Args:
            where: Only records that match this filter or text form of one.
            record: Only the earlier facts that disagree with this record, which need not be stored: the check that is
                made when a fact is recorded. The newest 50 valid facts of its user are compared that have its
                attribute in their metadata, as `recollect.agents.Manager` records them.
            user: Only records of this user and those without a user, as for `recall`.
            agent: Only records of this agent and those without an agent.
            conversation: Only records of this conversation and those without one.

        Returns:
            The newest record of each attribute with each earlier one that disagrees with it, ordered by subject,
            attribute and time.

        Raises:
            InvalidArgumentError: An argument is invalid.
            ScopeError: This memory is scoped to another user, agent or conversation.
            StoreError: The store failed.

        Cost:
            Reads the facts, knowledge and turns that match. With `record`, a look-up for each attribute that it
            states, once the index of words is in memory, as after a recall.
        """
        condition = self._read(where, user, agent, conversation)
        check_filter(condition)
        if record is not None:
            if not isinstance(record, Record):
                raise InvalidArgumentError("record", record, "must be a record")
            found = self._contradicting(record, condition)
        else:
            # In one read with the facts, so that both are of one moment.
            stating = f.any_of(f.kind(*KINDS) & condition, f.kind(LEARNING))
            records = self.find(stating, order="id")
            read = {turn for record in records if record.kind == LEARNING for turn in record.derived_from}
            facts = (record for record in checked(records) if record.kind != LEARNING and record.id not in read)
            found = disagreeing(each for record in facts for each in statements(record))
        apart = apart_in(self) if found else None
        return [each for each in found if not (apart and apart(each.older, each.newer))]

    def resolve(self, found: Contradiction | Sequence[Contradiction]) -> Record:
        """Let the newer of two records supersede the older one, and return the newer one.

        The older record stays, valid until the time of the newer one (`valid_to`), and `supersedes` of the newer one
        names it. What was derived only from it (`derived_from`), such as the facts that were extracted from a message,
        ends with it. This is one commit, also for several contradictions, and `revert` takes it back.

        Args:
            found: Two records, as `contradictions` returns them, or a list of such pairs.

        Returns:
            The newer record of the first contradiction.

        Raises:
            ConflictError: A record was changed meanwhile; nothing was changed.
            UnknownRecordError: A record is not there any more; nothing was changed.
            InvalidArgumentError: `found` is not a contradiction or a list of them.
            OriginError: The newer record is of a lower class of origin than the older one; nothing was changed.
            StoreError: The store failed.
        """
        records: dict[str, Record] = {}
        changes: dict[str, dict[str, Any]] = defaultdict(dict)
        pairs = [found] if isinstance(found, Contradiction) else found
        if (
            not isinstance(pairs, (list, tuple))
            or not pairs
            or not all(isinstance(each, Contradiction) for each in pairs)
        ):
            raise InvalidArgumentError("found", found, "must be what contradictions() returned")
        for each in pairs:
            older, newer = each.older, each.newer
            if not may_replace(newer, older):
                what = f"{older.id!r}, of the class {older.effective_origin},"
                raise OriginError(what, newer.effective_origin, f"endorse {newer.id!r} first, if it is right")
            records |= {older.id: older, newer.id: newer}
            ends = changes[older.id].get("valid_to", _since(newer))
            changes[older.id]["valid_to"] = min(ends, _since(newer))
            known = changes[newer.id].get("supersedes", newer.supersedes)
            changes[newer.id]["supersedes"] = tuple(dict.fromkeys((*known, older.id)))
        with self._one_commit() as calls:
            for record, ends in _derived(calls, changes):
                if record.id not in records:
                    records[record.id], changes[record.id]["valid_to"] = record, ends
            for record_id, fields in changes.items():
                records[record_id] = calls.update(record_id, expect=records[record_id], **fields)
        return records[pairs[0].newer.id]

    def _contradicting(self, record: Record, condition: Filter) -> list[Contradiction]:
        """Return the earlier facts that match a condition and disagree with one record."""
        out: list[Contradiction] = []
        for new in statements(record):
            owner = f.everything() if record.user is None else f.user(record.user)
            since = record.valid_from or record.time
            valid = f.everything() if since is None else f.valid_at(since)
            stated = f.kind(*KINDS) & valid & f.meta(ATTRIBUTE, contains=new.attribute)
            known = self.find(owner & stated & condition, limit=_MOST_COMPARED)
            others = (each for other in known if other.id != record.id for each in statements(other))
            same = [each for each in others if each[:3] == new[:3]]
            out += [each for each in disagreeing([*same, new]) if each.newer.id == record.id]
        return out

    def _one_commit(self) -> AbstractContextManager[Calls]:
        """Return a block whose calls are one commit."""
        raise NotImplementedError


def _derived(calls: Calls, changes: Mapping[str, Mapping[str, Any]]) -> list[tuple[Record, datetime]]:
    """Return the valid records that were derived from nothing but records that end, and when they end."""
    ended = {record_id: fields["valid_to"] for record_id, fields in changes.items() if "valid_to" in fields}
    found: dict[str, tuple[Record, datetime]] = {}
    waiting = list(ended)
    while waiting:
        from_these, waiting = waiting, []
        for record in calls.find(f.derived_from(*from_these)):
            if record.id in ended or any(each not in ended for each in record.derived_from):
                continue
            ends = max(ended[each] for each in record.derived_from)
            if (record.valid_to is None or record.valid_to > ends) and (record.valid_from or ends) <= ends:
                found[record.id] = record, ends
                ended[record.id] = ends
                waiting.append(record.id)
    return list(found.values())


def may_replace(newer: Record, older: Record) -> bool:
    """Return whether a record is of the class of origin of another one, or a more trusted one."""
    return RANKS[newer.effective_origin] >= RANKS[older.effective_origin]


def statements(record: Record) -> Iterator[StatedAttribute]:
    """Yield the attributes that a record states."""
    if record.role in _MACHINES or OTHER_BRANCH in record.tags or isinstance(record.content, bytes):
        return
    if not record.searchable:
        return
    owner = (record.user or "", record.agent or "")
    given, values = (record.metadata.get(name) for name in (ATTRIBUTE, VALUE))
    subject = record.entity or record.user or record.conversation or ""
    attributes = [given] if isinstance(given, str) else given if isinstance(given, (list, tuple)) else []
    named = (
        [values] * len(attributes) if isinstance(values, str) else values if isinstance(values, (list, tuple)) else []
    )
    found = facts_of(record) if not attributes or len(named) != len(attributes) else []
    for at, attribute in enumerate(attributes):
        of_text = next((fact for fact in found if fact.attribute == attribute), None)
        value = named[at] if at < len(named) else record.content if of_text is None else of_text.value
        whose = subject if of_text is None else _subject(of_text, record)
        yield StatedAttribute(owner, entity_id(whose) if whose else "", str(attribute), str(value), record)
    for fact in found if not attributes else []:
        yield StatedAttribute(owner, _subject(fact, record), fact.attribute, fact.value, record)


def facts_of(record: Record) -> list[Fact]:
    """Return the attributes that the text of a record states. A fact without a subject is about its user or entity."""
    text = str(record.content)
    name = record.metadata.get("entity_name")
    speaker = record.speaker or record.user or "user"
    if record.kind == "entity" and isinstance(name, str):
        return stated(text, speaker=name) or stated(f"I {text}", speaker=name)
    found = stated(text, speaker=speaker)
    return found or (stated(f"I {text}", speaker=speaker) if record.kind == "user_fact" else [])


def _subject(fact: Fact, record: Record) -> str:
    """Return the id of whom a fact is about. What a user says of "I" is about the subject of facts of the user."""
    subject = fact.subject if fact.subject is not None else record.entity or record.conversation or record.user or ""
    if subject.casefold() in ("user", (record.user or "user").casefold()) and record.user is not None:
        subject = record.user
    elif record.speaker is None and record.user is None and subject == "user":
        subject = record.conversation or "user"
    return entity_id(subject) if subject else ""


def disagreeing(found: Iterable[StatedAttribute]) -> list[Contradiction]:
    """Return the newest statement of each attribute with each earlier one that disagrees with it."""
    groups: dict[tuple[Any, ...], list[StatedAttribute]] = defaultdict(list)
    for each in found:
        if not _was_never_true(each.record) and each.record.metadata.get(SINGLE) is not False:
            groups[each[:3]].append(each)
    out = []
    for (_, subject, attribute), members in sorted(groups.items(), key=lambda each: each[0]):
        members.sort(key=lambda each: (_since(each.record), each.record.position or 0, each.record.id))
        newest = members[-1]
        for older in members[:-1]:
            if older.record.id != newest.record.id and _disagree(older, newest):
                values = (older.value, newest.value)
                out.append(Contradiction(subject, attribute, older.record, newest.record, values))
    return out


def _disagree(older: StatedAttribute, newer: StatedAttribute) -> bool:
    ended = any(
        one.record.valid_to is not None and one.record.valid_to <= _since(other.record)
        for one, other in ((older, newer), (newer, older))
    )
    linked = older.record.id in newer.record.supersedes
    return not ended and not linked and not same_value(older.value, newer.value, newer.attribute)


def _was_never_true(record: Record) -> bool:
    """Return whether another record took its place for all its time."""
    return record.valid_from is not None and record.valid_to is not None and record.valid_to <= record.valid_from


def _since(record: Record) -> datetime:
    """Return the time from which a record is true."""
    return record.valid_from or record.time or _FIRST
