"""`EntityCalls`: the people, places and things that records mention, what connects them, and facts about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from recollect import filters as f
from recollect.arguments.checks import check_share, check_text
from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls, kept_or_stored, warned
from recollect.engine.results import Report
from recollect.errors import InvalidArgumentError
from recollect.facets.entities.graph import ALSO_ABOUT, SAME_AS, Relation, entity_id, of_entity, relation
from recollect.facets.entities.operations import (
    Entities,
    EntityGraph,
    EntityOf,
    EntitySummary,
    EntityView,
    Neighbours,
    Paths,
)
from recollect.operations import Remember, RememberAll
from recollect.records import factories
from recollect.records.factories import DEFAULT_IMPORTANCE
from recollect.records.record import Fields, Record
from recollect.text.facts import Extracted, blended, distinct, facts_in, rule_importance

#: A function from a text to the facts that it states, such as `recollect.models.ModelExtractor`.
Extractor = Callable[[str], Sequence[Extracted]]
#: The fields that relations and extracted facts can have.
_OWNERS = ("user", "agent")
_FIELDS = ("user", "agent", "conversation", "session", "source", "tags", "time", "importance")


@all_named
class EntityCalls(Calls):
    """The calls on entities."""

    def entities(
        self,
        type: str | None = None,  # noqa: A002 - the word for it
        limit: int = 50,
        *,
        user: str | None = None,
        agent: str | None = None,
        conversation: str | None = None,
    ) -> list[EntitySummary]:
        """Return the entities that records mention, those that most records mention first.

        Names, organisations, places, handles and addresses are found in texts by rules, without a model. Speakers, the
        entities of recorded facts and the ends of relations are entities too. An entity is known by its name in lower
        case: `merge_entities` says that two names are of one.

        Args:
            type: Only entities of this type: "person", "organization", "place", "handle", "address", "name" (if no rule
                decides), or one that recorded facts state.
            limit: Maximum number of entities, 1 or more.
            user: Only what records of this user and those without a user mention, as for `recall`.
            agent: Only what records of this agent and those without an agent mention.
            conversation: Only what records of this conversation and those without one mention.

        Raises:
            InvalidArgumentError: An argument is invalid.
            ScopeError: This memory is scoped to another user, agent or conversation.
            StoreError: The store failed.

        Cost:
            The first call in a process reads all records: about 0.2 milliseconds for each. Later calls read what was
            changed since. In a batch and for a past moment, all records are read.
        """
        owners = self._owners(user, agent, conversation).named
        found: list[EntitySummary] = self.execute(Entities(type=type, limit=limit, **owners))
        return found

    def entity(self, name: str, limit: int = 20) -> EntityView | None:
        """Return what is known about an entity: when it was mentioned, together with what, and its relations.

            memory.entity("Ada Lovelace").timeline

        `find("entity=ada_lovelace")` returns the facts that were recorded about it.

        Args:
            name: Its name, its id or an alias.
            limit: Maximum number of records in the timeline, the newest ones, and of other entities.

        Returns:
            The view; None if no record mentions it.

        Raises:
            InvalidArgumentError: An argument is invalid.
            StoreError: The store failed.

        Cost:
            That of `entities`.
        """
        found: EntityView | None = self.execute(EntityOf(entity=name, limit=limit))
        return found

    def neighbours(self, name: str, depth: int = 1, limit: int = 50) -> EntityGraph:
        """Return the entities within some steps of one, as a graph: nodes nearest first, and what connects them.

        Two entities are connected by a relation, or because a record mentions both. `to_json()` exports the graph.

        Args:
            name: The name, id or an alias of the entity.
            depth: Maximum number of steps, 1 or more.
            limit: Maximum number of other entities. Of many, those with the most connections come first.

        Returns:
            The graph; empty if no record mentions the entity.

        Raises:
            InvalidArgumentError: An argument is invalid.
            StoreError: The store failed.

        Cost:
            That of `entities`, and in proportion to the records that mention the entities of the graph.
        """
        found: EntityGraph = self.execute(Neighbours(entity=name, depth=depth, limit=limit))
        return found

    def paths(self, source: str, target: str, longest: int = 3, limit: int = 10) -> list[list[str]]:
        """Return the paths between two entities as lists of ids, shortest first.

        Args:
            source: The name, id or an alias of the first entity.
            target: That of the last one.
            longest: Maximum number of steps of a path, 1 or more.
            limit: Maximum number of paths, 1 or more.

        Returns:
            The paths, each with both ends; [] if there is none.

        Raises:
            InvalidArgumentError: An argument is invalid.
            StoreError: The store failed.

        Cost:
            That of `entities`, and in proportion to the connections within that many steps. At most a million
            connections are tried.
        """
        found: list[list[str]] = self.execute(Paths(source=source, target=target, longest=longest, limit=limit))
        return found

    def relate(self, /, start: str, type: str, target: str, **fields: Unpack[Fields]) -> Record:  # noqa: A002 - its name
        """Store a relation between two entities and return its record (kind "relation").

            memory.relate("Ada Lovelace", "worked with", "Charles Babbage")

        The same relation again changes nothing. It is a record like any other: it can be forgotten, and has a history.
        The knowledge graph of the MCP server has the same relations.

        Args:
            start: The name of the entity where it starts.
            type: The type of the relation.
            target: The name of the other entity.
            **fields: Fields of the record, such as user, time, valid_from and source.

        Raises:
            InvalidArgumentError: A name or the type is not text, or is empty.
            InvalidRecordError: A field has an invalid value.
            ScopeError: A field lies outside the scope.
            QuotaError: The record does not fit in the quota.
            RejectedError: A policy of the memory does not allow the text (`set_policies`).
        """
        for argument, value in (("start", start), ("type", type), ("target", target)):
            check_text(argument, value)
        for name in ("id", "kind", "content", "entity", "metadata"):
            if name in fields:
                raise InvalidArgumentError("fields", name, "follows from the relation")
        built = relation(Relation(start, target, type))
        content, record_id = built.pop("content"), built.pop("id")
        return kept_or_stored(self.execute(Remember(content=content, id=record_id, fields={**built, **fields})))

    def merge_entities(self, alias: str, into: str, **fields: Unpack[Fields]) -> Record:
        """Say that two names are of one entity, and return the record that says so: a relation "same as".

            memory.merge_entities("Countess of Lovelace", "Ada Lovelace")

        From now on, what mentions the alias counts as mentioning the entity. Forgetting the record separates them.

        Args:
            alias: The other name.
            into: The name or id under which the entity is known.
            **fields: Fields of the record, such as user.

        Raises:
            InvalidArgumentError: A name is not text or is empty, or both are of the same id.
            InvalidRecordError: A field has an invalid value.
            ScopeError: A field lies outside the scope.
            QuotaError: The record does not fit in the quota.
            RejectedError: A policy of the memory does not allow the text (`set_policies`).
        """
        for argument, value in (("alias", alias), ("into", into)):
            check_text(argument, value)
        if entity_id(alias) == entity_id(into):
            raise InvalidArgumentError("alias", alias, f"has the same id as {into!r}: they are one entity already")
        return self.relate(alias, SAME_AS, into, **fields)

    def extract_entities(
        self,
        text: str,
        *,
        extractor: Extractor | None = None,
        default_importance: float = DEFAULT_IMPORTANCE,
        **fields: Unpack[Fields],
    ) -> Report:
        """Store the facts about entities that a text states (kind "entity"), and return the outcomes.

        A fact about several entities is stored once, for the first of them; "also_about" in its metadata has the ids of
        the others, and `entity_context` finds it for each of them.

        Facts that are stored already, of the same user and agent, about the same entity and in the same words apart
        from case, are left out. The
        importance of a fact follows from rules (`recollect.text.facts.rule_importance`); if the extractor gives one,
        it counts 0.7 and the rules 0.3.

        Args:
            extractor: A function from a text to the facts that it states, such as `recollect.models.ModelExtractor`. It
                is not called for a blank text.
                Default: rules, which take each sentence that names an entity, word for word.
            default_importance: The importance from which the rules start, 0 to 1.
            **fields: Fields of the records: user, agent, conversation, session, source, tags and time.

        Raises:
            InvalidArgumentError: An argument is invalid, or the extractor returned something else than facts.
            RecollectError: The extractor failed; nothing was stored.
            ScopeError: A field lies outside the scope.
            QuotaError: The records do not fit in the quota.

        Cost:
            One durable commit, and a look-up for each entity.
        """
        check_text("text", text, blank=True)
        check_share("default_importance", default_importance)
        for name in fields:
            if name not in _FIELDS[:-1]:
                raise InvalidArgumentError("fields", name, f"must be one of {', '.join(_FIELDS[:-1])}")
        items = fact_operations(self, text, extractor, default_importance, fields)
        if not items:
            return Report()
        report: Report = self.execute(RememberAll(items=tuple(items)))
        return warned(report)


def fact_operations(
    calls: Calls, text: str, extractor: Extractor | None, default_importance: float, fields: Mapping[str, Any]
) -> list[Remember]:
    """Return the operations that store the facts about entities that a text states and that are not stored yet.

    Args and errors: those of `EntityCalls.extract_entities`.
    """
    if not text.strip():
        return []  # a model would be paid for nothing
    found = facts_in(text) if extractor is None else _checked(extractor(text))
    items = []
    owner = {name: fields.get(name) or calls.scope.get(name) for name in _OWNERS}
    by_text: dict[str, list[Extracted]] = {}
    for each in distinct(found):
        by_text.setdefault(each.fact.lower(), []).append(each)
    for text, about in by_text.items():
        each, *others = about
        known = calls.find(f.kind("entity") & of_entity(*(entity_id(one.entity_name) for one in about)))
        own = [record for record in known if all(getattr(record, name) == value for name, value in owner.items())]
        if any(str(record.content).lower() == text for record in own):
            continue
        importance = blended(each.importance, rule_importance(each.fact, each.entity_type, default_importance))
        built = factories.entity(
            each.fact,
            name=each.entity_name,
            entity=entity_id(each.entity_name),
            entity_type=each.entity_type,
            importance=importance,
            **{name: value for name, value in fields.items() if value is not None},
        )
        if others:
            built["metadata"] = {**built["metadata"], ALSO_ABOUT: [entity_id(one.entity_name) for one in others]}
        items.append(Remember(content=built.pop("content"), fields=built))
    return items


def _checked(facts: Any) -> list[Extracted]:
    if not isinstance(facts, (list, tuple)) or not all(isinstance(each, Extracted) for each in facts):
        raise InvalidArgumentError("extractor", facts, "must return a list of recollect.text.facts.Extracted")
    return list(facts)
