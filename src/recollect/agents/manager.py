"""`Manager`: recording with care. It rates what it records, extracts facts, notices contradictions and consolidates.

Each of these is a setting that acts, and is off or on for one manager. All of it is done with the public calls of a
memory, so it works in a scope, and what it does has a history.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args

from recollect import filters as f
from recollect.arguments.checks import check_count
from recollect.calls.calls import stored
from recollect.engine.results import Outcome, Report
from recollect.errors import InvalidArgumentError
from recollect.facets.entities.calls import Extractor, fact_operations
from recollect.memory import Memory
from recollect.memory.consolidation import LARGEST, Consolidated, Summariser
from recollect.memory.manager.contradictions import (
    ATTRIBUTE,
    KINDS,
    VALUE,
    Contradiction,
    StatedAttribute,
    disagreeing,
    facts_of,
    may_replace,
    statements,
)
from recollect.operations import Now, Remember, RememberAll, check_text
from recollect.records import factories
from recollect.records.messages import UnreadableError, read_turns
from recollect.records.record import Instant, Record
from recollect.text.facts import rule_importance


class KnownAttributes:
    """The statements of a memory, by attribute, kept up to date from the log. Safe for use by several threads.

    A new fact is compared only with those of its attribute, without a search, so that checking costs little more than
    recording. The cache is of one manager; it can be lost at any time, and is read again.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._cursor: int | str | None = None
        self._stated: dict[str, list[StatedAttribute]] = {}  # by the id of the record
        self._of: dict[str, dict[str, None]] = {}  # the ids of the records that state an attribute

    def contradicting(self, record: Record) -> list[Contradiction]:
        """Return the earlier facts that disagree with a record.

        Cost:
            The first call reads the facts with an attribute, later ones the commits since.
        """
        with self._lock:
            self._catch_up()
            out: list[Contradiction] = []
            now = self._memory.execute(Now())
            for new in statements(record):
                ids = self._of.get(new.attribute, {})
                known = (each for id_ in ids if id_ != record.id for each in self._stated[id_])
                same = [each for each in known if each[:3] == new[:3] and _is_live(each.record, now)]
                out += [each for each in disagreeing([*same, new]) if each.newer.id == record.id]
            return out

    def _catch_up(self) -> None:
        facts = f.kind(*KINDS) & f.meta(ATTRIBUTE)
        newest = self._memory.changes(limit=1, newest_first=True)
        if self._cursor is not None:
            try:
                commits = self._memory.changes(since=self._cursor)
            except InvalidArgumentError:  # the store has another history: an older copy was restored
                self._cursor = None
            else:
                changed = list(dict.fromkeys(change.id for commit in commits for change in commit.changes))
                for id_ in changed:
                    self._remove(id_)
                if changed:
                    self._put(self._memory.find(facts & f.id(*changed)))
        if self._cursor is None:
            self._stated, self._of = {}, {}
            self._put(self._memory.find(facts))
        self._cursor = newest[0].cursor if newest else 0

    def _put(self, records: list[Record]) -> None:
        for record in records:
            self._stated[record.id] = list(statements(record))
            for each in self._stated[record.id]:
                self._of.setdefault(each.attribute, {})[record.id] = None

    def _remove(self, id_: str) -> None:
        for each in self._stated.pop(id_, ()):
            self._of.get(each.attribute, {}).pop(id_, None)


def _is_live(record: Record, now: datetime) -> bool:
    return record.expires is None or record.expires > now


#: What a manager does with facts that disagree.
OnContradiction: TypeAlias = Literal["ignore", "report", "supersede"]
ON_CONTRADICTION: tuple[OnContradiction, ...] = get_args(OnContradiction)
#: Minimum number of turns that are consolidated at a time.
_FEWEST = 10


@dataclass(frozen=True)
class Recorded:
    """The result of recording.

    Attributes:
        record: The record; of an echo, what it repeats.
        status: That of the `Outcome`: "created", "unchanged" if the same fact was stored already, "echo" if it only
            repeats what the memory answered, and was not stored, "proposed" or "quarantined" (docs/trust.md). Of what
            is in quarantine, neither facts nor contradictions are looked for.
        facts: The facts that were extracted from it; None if none were looked for.
        contradictions: The earlier facts that it disagrees with.
        consolidated: What was consolidated because a conversation had become long; None if nothing was.
    """

    record: Record
    status: str
    facts: Report | None = None
    contradictions: tuple[Contradiction, ...] = ()
    consolidated: Consolidated | None = None


@dataclass(frozen=True, kw_only=True)
class Manager:
    """Records messages and facts in a memory, and does what its settings say.

    Attributes:
        memory: The memory, such as one that is scoped to a user.
        rate: Give what is recorded without an importance that of the rules (`recollect.text.facts.rule_importance`).
        extract: Store the facts about entities that messages of users state.
        extractor: What extracts them; None: rules, which need no model.
        contradictions: What to do with earlier facts that disagree with a new one. "ignore": nothing. "report": return
            them. "supersede": return them, and let the new one supersede them.
        consolidate_above: If a conversation has more turns than this, its older turns are consolidated; None: never.
        keep: The number of newest turns that stay as they are.
        summariser: What summarises; None: the built-in summary, which needs no model.
        max_count: Maximum number of turns that are summarised at a time, 2 or more.
        strict: Raise the error of a summary that fails. The message is stored all the same. Otherwise the turns stay.

    Raises:
        InvalidArgumentError: A setting is invalid.
    """

    memory: Memory
    rate: bool = True
    extract: bool = False
    extractor: Extractor | None = None
    contradictions: OnContradiction = "report"
    consolidate_above: int | None = None
    keep: int = 20
    summariser: Summariser | None = None
    max_count: int = LARGEST
    strict: bool = False
    _known: KnownAttributes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("rate", "extract", "strict"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgumentError(name, getattr(self, name), "must be true or false")
        if self.contradictions not in ON_CONTRADICTION:
            rule = f"must be one of {', '.join(ON_CONTRADICTION)}"
            raise InvalidArgumentError("contradictions", self.contradictions, rule)
        for name in ("consolidate_above", "keep"):
            value = getattr(self, name)
            if value is None and name != "keep":
                continue
            check_count(name, value)
        check_count("max_count", self.max_count, least=2)
        if self.consolidate_above is not None and self.consolidate_above < self.keep + _FEWEST:
            rule = f"must be at least {_FEWEST} more than keep, {self.keep}"
            raise InvalidArgumentError("consolidate_above", self.consolidate_above, rule)
        object.__setattr__(self, "_known", KnownAttributes(self.memory))

    def record_message(self, message: Any, conversation: str, **fields: Any) -> Recorded:
        """Append one message to a conversation, even if it repeats an earlier one.

            manager.record_message("I moved to Oslo.", "chat-1", role="user", user="ana")
            manager.record_message(response.choices[0].message, "chat-1", user="ana")

        `Memory.add_messages` instead takes the list of all messages and stores the new ones.

        Args:
            message: A message in a form that `add_messages` reads, or a text with a `role`.
            conversation: The name of the conversation.
            **fields: role, the author of a text ("user", "assistant", "system", "tool"); user, agent, session, tags;
                time, if the message does not state it (default: now); and importance, clamped to [0, 1].

        Returns:
            What was recorded. The results of several tools in one message of Anthropic's API are a turn each, stored
            in one commit; the record is that of the last turn.

        Raises:
            InvalidArgumentError: The message cannot be read, a text has no role, or a message has one already.
            InvalidRecordError: A field is invalid.
            ScopeError: A field lies outside the scope.
            QuotaError: The message does not fit in the quota.
            SummaryError: With `strict`, the older turns could not be summarised. The message is stored.
        """
        rated = fields.get("importance") is not None
        turns = [self._with_additions(turn, rated=rated) for turn in _turns_of(message, conversation, **fields)]
        outcomes, report = self._stored(turns, [self._facts(turn) for turn in turns])
        record, status = stored(outcomes[-1]), outcomes[-1].status
        if status == "quarantined":
            return Recorded(record, status)
        record, found = self._contradicted(record)
        extracted = report if self.extract and record.role == "user" else None
        return Recorded(record, status, extracted, found, self._consolidate(conversation))

    def _stored(self, turns: list[Remember], facts: list[list[Remember]]) -> tuple[list[Outcome], Report]:
        """Store turns and the facts that each states, in one commit; nothing if a policy rejects a turn."""
        if len(turns) == 1 and not any(facts):
            outcome: Outcome = self.memory.execute(turns[0])
            stored(outcome)
            return [outcome], Report()
        said: list[Outcome] = []
        derived: list[Remember] = []
        with self.memory.batch() as batch:
            for turn, stated in zip(turns, facts, strict=True):
                said.append(batch.execute(turn))
                record = stored(said[-1])
                if said[-1].status != "quarantined":  # what is kept apart gives no facts
                    derived += [replace(each, fields={**each.fields, "derived_from": (record.id,)}) for each in stated]
            report: Report = batch.execute(RememberAll(items=tuple(derived)))
        return said, report

    def record_user_fact(self, fact: str, **fields: Any) -> Recorded:
        """Record a fact about a user. See `Memory.record_user_fact` for the arguments."""
        return self._fact(factories.user_fact(fact, **fields), rated=fields.get("importance") is not None)

    def record_entity_fact(
        self, entity: str, name: str, fact: str, entity_type: str = factories.UNKNOWN_TYPE, **fields: Any
    ) -> Recorded:
        """Record a fact about an entity. See `Memory.record_entity_fact` for the arguments."""
        built = factories.entity(fact, name=name, entity=entity, entity_type=entity_type, **fields)
        return self._fact(built, rated=fields.get("importance") is not None, entity_type=entity_type)

    # Parts

    def _fact(self, built: dict[str, Any], *, rated: bool, entity_type: str = factories.UNKNOWN_TYPE) -> Recorded:
        """Store a fact with its importance and its attributes, and look for contradictions."""
        operation = self._with_additions(
            Remember(content=built.pop("content"), fields=built), rated=rated, entity_type=entity_type
        )
        outcome: Outcome = self.memory.execute(operation)
        record = stored(outcome)
        if outcome.status in ("echo", "quarantined"):
            return Recorded(record, outcome.status)
        record, found = self._contradicted(record)
        return Recorded(record, outcome.status, contradictions=found)

    def _facts(self, turn: Remember) -> list[Remember]:
        """Return the operations that store the facts that a message of a user states, if the settings say so."""
        if not self.extract or turn.fields.get("role") != "user" or not isinstance(turn.content, str):
            return []
        owner = {name: turn.fields.get(name) for name in ("user", "agent", "time")}
        return fact_operations(self.memory, turn.content, self.extractor, factories.DEFAULT_IMPORTANCE, owner)

    def _with_additions(
        self, operation: Remember, *, rated: bool, entity_type: str = factories.UNKNOWN_TYPE
    ) -> Remember:
        fields = {name: value for name, value in operation.fields.items() if value is not None}
        owner = self.memory.scope
        record = Record(id="any", content=operation.content, **{**fields, **owner})
        added = self._additions(record, rated=rated, entity_type=entity_type)
        return replace(operation, fields={**operation.fields, **added}) if added else operation

    def _additions(self, record: Record, *, rated: bool, entity_type: str = factories.UNKNOWN_TYPE) -> dict[str, Any]:
        """Return the fields that a record gets in addition: its importance by rules, and the attributes it states."""
        added: dict[str, Any] = {}
        if isinstance(record.content, bytes):
            return added
        if self.rate and not rated:
            importance = rule_importance(record.content, entity_type)
            if importance != record.importance:
                added["importance"] = importance
        if ATTRIBUTE not in record.metadata and record.role not in ("assistant", "system", "tool"):
            facts = facts_of(record)
            if facts:
                attributes, values = [each.attribute for each in facts], [each.value for each in facts]
                single = len(facts) == 1
                stated = {ATTRIBUTE: attributes[0] if single else attributes, VALUE: values[0] if single else values}
                added["metadata"] = {**record.metadata, **stated}
        return added

    def _contradicted(self, record: Record) -> tuple[Record, tuple[Contradiction, ...]]:
        """Return a record, and the earlier facts that it disagrees with; they are superseded if the settings say so."""
        if self.contradictions == "ignore" or ATTRIBUTE not in record.metadata:
            return record, ()
        found = self._known.contradicting(record)
        replaceable = [each for each in found if may_replace(each.newer, each.older)]
        if self.contradictions == "supersede" and replaceable:
            record = self.memory.resolve(replaceable)
        return record, tuple(found)

    def _consolidate(self, conversation: str) -> Consolidated | None:
        """Consolidate the older turns of a conversation that has become long."""
        if self.consolidate_above is None:
            return None
        where = f.kind("conversation") & f.conversation(conversation)
        if self.memory.count(where) <= self.consolidate_above:
            return None
        newest = self.memory.find(where, order="newest", limit=self.keep)
        until = newest[-1].time
        assert until is not None
        older = where & f.before(until)
        return self.memory.consolidate(
            min_count=min(_FEWEST, self.max_count),
            max_count=self.max_count,
            where=older,
            summariser=self.summariser,
            strict=self.strict,
            actor="manager",
        )


def _turns_of(
    message: Any,
    conversation: str,
    *,
    role: str | None = None,
    user: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    time: Instant | None = None,
    tags: Iterable[str] = (),
    importance: float | None = factories.DEFAULT_IMPORTANCE,
) -> list[Remember]:
    """Return the operations that append a message to a conversation: one for each turn that it has.

    Args and errors: those of `Manager.record_message`.
    """
    check_text("conversation", conversation)
    if isinstance(message, str):
        if role is None:
            raise InvalidArgumentError("role", role, 'must be passed with a text, such as "user" or "assistant"')
        message = {"role": role, "content": message}
    elif role is not None:
        if message is None:
            raise InvalidArgumentError("message", message, "must be a text or a message")
        raise InvalidArgumentError("role", role, "can only be passed with a text: a message states its own")
    # Read once, for all turns: it may be an iterator.
    tags = Record(id="any", content="any", tags=tags or ()).tags  # type: ignore[arg-type]
    turns = []
    for _, turn in read_turns([message]):
        if isinstance(turn, UnreadableError):
            raise InvalidArgumentError("message", message, str(turn))
        fields = factories.conversation(
            turn.content,
            role=turn.role,
            conversation=conversation,
            importance=importance,
            speaker=turn.speaker,
            metadata=turn.metadata,
            time=time if turn.time is None else turn.time,
            user=user,
            agent=agent,
            session=session,
            tags=tags or None,
        )
        turns.append(Remember(content=fields.pop("content"), fields=fields))
    return turns
