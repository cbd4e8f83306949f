"""What calls of an MCP server should have stored, compared with what is there.

A call wants some facts to be stored, and its answer says which of them it made, or there is none. Facts are texts,
entities, observations and relations, so that one rule is for all: what was acknowledged is there once, whatever was
said to be new was said once, and a call that was not answered did all or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.records.record import Record
from torture.mcp_client import Message, failed, text_of

Fact = tuple[str, ...]
NOTHING: frozenset[Fact] = frozenset()


@dataclass(frozen=True)
class Call:
    """A call of a tool that writes.

    replaces  the facts that are not there any more once it is done
    result    the answer; None: there is none
    """

    tool: str
    arguments: Mapping[str, Any]
    replaces: frozenset[Fact] = NOTHING
    result: Message | None = None

    @property
    def wanted(self) -> frozenset[Fact]:
        """The facts that are there once it is done."""
        match self.tool:
            case "create_entities":
                return frozenset(_of_entities(self.arguments["entities"]))
            case "create_relations":
                return frozenset(_of_relations(self.arguments["relations"]))
            case "add_observations":
                pairs = (
                    (each["entityName"], text) for each in self.arguments["observations"] for text in each["contents"]
                )
                return frozenset(("observation", name, text) for name, text in pairs)
            case _:
                return frozenset({("text", self.arguments["content"])})

    @property
    def made(self) -> frozenset[Fact]:
        """The facts that the answer calls new."""
        if self.result is None or failed(self.result):
            return NOTHING
        found = self.result["structuredContent"]
        match self.tool:
            case "create_entities":
                return frozenset(_of_entities(found["entities"]))
            case "create_relations":
                return frozenset(_of_relations(found["relations"]))
            case "add_observations":
                return frozenset(_of_additions(found["results"], "addedObservations"))
            case _:
                return NOTHING if found["status"] == "unchanged" else self.wanted


def _of_entities(entities: Iterable[Mapping[str, Any]]) -> Iterator[Fact]:
    for each in entities:
        yield ("entity", each["name"], each["entityType"])
        for text in each["observations"]:
            yield ("observation", each["name"], text)


def _of_relations(relations: Iterable[Mapping[str, Any]]) -> Iterator[Fact]:
    return (("relation", each["from"], each["to"], each["relationType"]) for each in relations)


def _of_additions(additions: Iterable[Mapping[str, Any]], key: str) -> Iterator[Fact]:
    return (("observation", each["entityName"], text) for each in additions for text in each[key])


def facts_of_graph(graph: Mapping[str, Any]) -> Counter[Fact]:
    """The facts of a graph, as `read_graph` shows it."""
    return Counter([*_of_entities(graph["entities"]), *_of_relations(graph["relations"])])


def facts_of_records(records: Iterable[Record]) -> Counter[Fact]:
    """The facts that records state, read from their fields: not by the code that the server shows a graph with."""
    return Counter(map(_fact, records))


def _fact(record: Record) -> Fact:
    data = record.metadata
    match record.kind:
        case "node":
            return ("entity", str(data["entity_name"]), str(data["entity_type"]))
        case "entity":
            return ("observation", str(data["entity_name"]), str(record.content))
        case "relation":
            return ("relation", str(data["from"]), str(data["to"]), str(data["relation_type"]))
        case _:
            return ("text", str(record.content))


def problem_in(calls: Sequence[Call], stored: Counter[Fact], shown: Counter[Fact]) -> str:
    """What is wrong; "" where nothing is.

    calls   all that were made of this store
    stored  the facts of all records
    shown   the facts of the graph that a server shows
    """
    return next(_problems(calls, stored, shown), "")


def _problems(calls: Sequence[Call], stored: Counter[Fact], shown: Counter[Fact]) -> Iterator[str]:
    for call in calls:
        if call.result is not None and failed(call.result):
            yield f"{call.tool} was refused: {text_of(call.result)[:200]}"
    answered = [call for call in calls if call.result is not None]
    open_ = [call for call in calls if call.result is None]
    sure = frozenset[Fact]().union(*(call.wanted for call in answered))
    maybe = frozenset[Fact]().union(*(call.wanted for call in open_))
    done = (call for call in calls if call.result is not None or call.wanted <= stored.keys())
    replaced = frozenset[Fact]().union(*(call.replaces for call in done))
    for fact, times in stored.items():
        if times > 1:
            yield f"{fact} is stored {times} times"
        if fact not in sure and fact not in maybe:
            yield f"{fact} is stored, and no call wanted it"
    for fact in sorted(sure - replaced - stored.keys()):
        yield f"{fact} was acknowledged, and is not stored"
    made = Counter(fact for call in answered for fact in call.made)
    for fact, times in made.items():
        if times > 1:
            yield f"{fact} was said to be new {times} times"
    for fact in sorted(sure - maybe - made.keys()):
        yield f"{fact} was never said to be new"
    for call in open_:
        alone = call.wanted - sure - replaced
        if alone and not (alone <= stored.keys() or alone.isdisjoint(stored)):
            yield f"{call.tool} was done in part: {sorted(alone & stored.keys())} of {sorted(alone)}"
    graph = Counter({fact: times for fact, times in stored.items() if fact[0] != "text"})
    if graph != shown:
        differing = sorted(((graph - shown) + (shown - graph)).items())
        yield f"the graph that is shown differs from the records: {differing[:3]}"
