"""The intended differences between the reference server and ours, each as a rule that rewrites an answer.

A rule takes the answer of the reference server to a call, and returns the answer that ours must give. Rules compose: a
call may repeat a name and an observation. So every answer of ours is predicted in full, not merely excused.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

Result = dict[str, Any]
#: Where the results of tools contain the texts that were stored.
TEXTS = {"create_entities": ("entities", "observations"), "add_observations": ("results", "addedObservations")}
#: Where arguments contain names.
NAMES = frozenset(("name", "entityName", "entityNames", "names", "from", "to", "query"))
#: The difference that is not in answers, but in which names are one.
ONE_FORM = "a name in another Unicode form: the same name"
#: What the texts of errors about arguments that do not match a schema begin with. They are the same in both servers.
WRONG_ARGUMENTS = "MCP error -32602: Input validation error: "
#: The text of an error whose words are our own.
OWN_WORDS = "(a text of our own)"


class Difference(NamedTuple):
    """One intended difference.

    Attributes:
        name: What differs.
        reason: Why ours differs.
        rewrite: (tool, arguments, an answer) -> the answer of ours; the same answer if the rule does not apply.
    """

    name: str
    reason: str
    rewrite: Callable[[str, Mapping[str, Any], Result], Result]


def first_of_each(items: Iterable[Any], key: Callable[[Any], object] = lambda item: item) -> list[Any]:
    """Return the first item of each key, in their order."""
    found: dict[object, Any] = {}
    for item in items:
        found.setdefault(key(item), item)
    return list(found.values())


def listing(key: str, items: list[Any]) -> Result:
    """Return a result that lists items under a key."""
    text = json.dumps(items, indent=2, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "structuredContent": {key: items}, "isError": False}


def own_error() -> Result:
    return {"content": [{"type": "text", "text": OWN_WORDS}], "isError": True}


def names_once(tool: str, arguments: Mapping[str, Any], answer: Result) -> Result:
    if tool != "create_entities" or answer["isError"]:
        return answer
    entities = answer["structuredContent"]["entities"]
    return listing("entities", first_of_each(entities, lambda entity: str(entity["name"])))


def relations_once(tool: str, arguments: Mapping[str, Any], answer: Result) -> Result:
    if tool != "create_relations" or answer["isError"]:
        return answer
    relations = answer["structuredContent"]["relations"]
    return listing("relations", first_of_each(relations, lambda relation: tuple(relation.values())))


def observations_once(tool: str, arguments: Mapping[str, Any], answer: Result) -> Result:
    if tool not in TEXTS or answer["isError"]:
        return answer
    key, texts = TEXTS[tool]
    return listing(key, [{**item, texts: first_of_each(item[texts])} for item in answer["structuredContent"][key]])


def in_one_form(arguments: Any, *, named: bool = False) -> Any:
    """Return arguments with names in NFC, as the reference server is given them: here the forms are one name.

    Args:
        named: Whether a text is a name.
    """
    if isinstance(arguments, str):
        return unicodedata.normalize("NFC", arguments) if named else arguments
    if isinstance(arguments, list):
        return [in_one_form(each, named=named) for each in arguments]
    if isinstance(arguments, dict):
        return {key: in_one_form(each, named=key in NAMES) for key, each in arguments.items()}
    return arguments


def no_blanks(tool: str, arguments: Mapping[str, Any], answer: Result) -> Result:
    if answer["isError"] and answer["content"][0]["text"].startswith(WRONG_ARGUMENTS):
        return answer
    texts: list[str] = []
    if tool == "create_entities":
        texts = [text for each in arguments["entities"] for text in each["observations"]]
    elif tool == "add_observations":
        texts = [text for each in arguments["observations"] for text in each["contents"]]
    elif tool == "create_relations":
        texts = ["".join(each.values()) for each in arguments["relations"]]
    return answer if all(text.strip() for text in texts) else own_error()


DIFFERENCES = [
    Difference(
        "a new entity's name twice in a call: stored once",
        "an entity is identified by its name; the reference compares with stored entities alone, and stores both",
        rewrite=names_once,
    ),
    Difference(
        "a new relation twice in a call: stored once",
        "a relation is identified by its three fields; the reference compares with stored relations alone",
        rewrite=relations_once,
    ),
    Difference(
        "a new observation twice in a call: stored once",
        "an observation is identified by its entity and text; the reference compares with stored ones alone",
        rewrite=observations_once,
    ),
    Difference(
        "a blank observation, or a relation of blanks alone: refused",
        "a record without words can never be found; the reference stores it",
        rewrite=no_blanks,
    ),
]


def predicted(tool: str, arguments: Mapping[str, Any], reference: Result) -> tuple[Result, list[Difference]]:
    """Return the answer that ours must give, and the differences that it is due to."""
    answer = reference
    due: list[Difference] = []
    for difference in DIFFERENCES:
        rewritten = difference.rewrite(tool, arguments, answer)
        if rewritten != answer:
            answer = rewritten
            due.append(difference)
    return answer, due


def matches(answer: Result, expected: Result) -> bool:
    """Return whether an answer is the expected one. Where the text is our own, any text with words is."""
    if expected != own_error():
        return answer == expected
    texts = [part.get("text", "") for part in answer.get("content", []) if part.get("type") == "text"]
    return answer.keys() == expected.keys() and bool(answer["isError"]) and any(text.strip() for text in texts)
