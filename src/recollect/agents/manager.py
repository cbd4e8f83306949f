"""`Manager`: recording with care. It rates what it records, extracts facts, notices contradictions and consolidates.

Each of these is a setting that acts, and is off or on for one manager. All of it is done with the public calls of a
memory, so it works in a scope, and what it does has a history.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from recollect import filters as f
from recollect.agents.attributes import KnownAttributes
from recollect.arguments.checks import check_count
from recollect.engine.results import Outcome, Report
from recollect.errors import InvalidArgumentError
from recollect.facets.entities.calls import Extractor, fact_operations
from recollect.memory import Memory
from recollect.memory.consolidation import Consolidated, Summariser
from recollect.memory.manager.contradictions import ATTRIBUTE, VALUE, Contradiction, facts_of
from recollect.memory.recording import message_operations
from recollect.operations import Remember, RememberAll
from recollect.records import factories
from recollect.records.record import Record
from recollect.text.facts import rule_importance

#: What a manager does with facts that disagree.
OnContradiction: TypeAlias = Literal["ignore", "report", "supersede"]
ON_CONTRADICTION: tuple[OnContradiction, ...] = get_args(OnContradiction)
#: Minimum number of turns that are consolidated at a time.
_FEWEST = 10


@dataclass(frozen=True)
class Recorded:
    """What a manager recorded.

    Attributes:
        record: The record; of an echo, what it repeats.
        status: "created", "unchanged" if the same fact was stored already, or "echo" if it only repeats what the memory
            answered, and was not stored.
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
    _known: KnownAttributes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("rate", "extract"):
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
        if self.consolidate_above is not None and self.consolidate_above < self.keep + _FEWEST:
            rule = f"must be at least {_FEWEST} more than keep, {self.keep}"
            raise InvalidArgumentError("consolidate_above", self.consolidate_above, rule)
        object.__setattr__(self, "_known", KnownAttributes(self.memory))

    def record_message(self, message: Any, conversation: str, **fields: Any) -> Recorded:
        """Record a message of a conversation. See `Memory.record_message` for the arguments."""
        rated = fields.get("importance") is not None
        turns = [
            self._with_additions(turn, rated=rated) for turn in message_operations(message, conversation, **fields)
        ]
        outcomes, report = self._stored(turns, [self._facts(turn) for turn in turns])
        record = outcomes[-1].record
        assert record is not None
        record, found = self._contradicted(record)
        extracted = report if self.extract and record.role == "user" else None
        return Recorded(record, "created", extracted, found, self._consolidate(conversation))

    def _stored(self, turns: list[Remember], facts: list[list[Remember]]) -> tuple[list[Outcome], Report]:
        """Store turns and the facts that each states, in one commit; nothing if a policy rejects a turn."""
        if len(turns) == 1 and not any(facts):
            outcome: Outcome = self.memory.execute(turns[0])
            return [outcome.checked()], Report()
        said: list[Outcome] = []
        derived: list[Remember] = []
        with self.memory.batch() as batch:
            for turn, stated in zip(turns, facts, strict=True):
                said.append(batch.execute(turn).checked())
                record = said[-1].record
                assert record is not None
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
        outcome: Outcome = self.memory.execute(operation).checked()
        record = outcome.record
        assert record is not None
        if outcome.status == "echo":
            return Recorded(record, "echo")
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
        if self.contradictions == "supersede" and found:
            record = self.memory.resolve(found)
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
        return self.memory.consolidate(min_count=_FEWEST, where=older, summariser=self.summariser, actor="manager")
