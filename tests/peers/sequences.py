"""Random sequences of calls of the reference's nine tools, each determined by a seed.

Names, types and texts come from small sets, so that calls often concern the same entities. Each set has members that
differ only by case, by Unicode normalization or by surrounding white space, which are different to the reference.
"""

from __future__ import annotations

import random
from typing import Any

Call = tuple[str, dict[str, Any]]

NAMES = ["Ana", "ana", "Bob", "Zoë 猫", "Zoe\u0308 猫", "data base", "100%_a\\b", "The Hague"]
TYPES = ["person", "Person", "place", "Thing to do"]
RELATIONS = ["knows", "Knows", "works at", "lebt in"]
TEXTS = [
    "likes tea",
    "Likes Tea",
    "likes green tea",
    " likes tea ",
    "lives in KÖLN",
    "lives in Ko\u0308ln",
    "猫が好き",
    "İstanbul 2024-05-01",
    "Straße \"of\" 'quotes' \\ </b>",
    "two\nlines\tand a tab",
    "speaks in 😀 emoji",
    "a text that is somewhat longer than the others, about tea, a person and data base work",
]
QUERIES = [
    *["tea", "likes tea", "tea likes", "TEA", "green", "köln", "ko\u0308ln", "straße", "STRASSE", "ss", "İ", "i\u0307"],
    *["person", "thing TO", "猫", "data base", "base data", "a", "%", "_", "\\", "*", '"', "\n", " ", "😀", "nothing"],
    "",
]
#: Out of 1000 calls: with something repeated, with a blank text, with wrong arguments.
REPEATING, BLANK, WRONG = 20, 8, 25


def sequence(seed: int) -> list[Call]:
    """Return 5 to 15 calls."""
    dice = random.Random(seed)
    return [_call(dice) for _ in range(dice.randint(5, 15))]


def _call(dice: random.Random) -> Call:
    fate = dice.randrange(1000)
    if fate < REPEATING:
        return _repeating(dice)
    if fate < REPEATING + BLANK:
        return _blank(dice)
    if fate < REPEATING + BLANK + WRONG:
        return _wrong(dice)
    (tool,) = dice.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    return tool, _arguments(dice, tool)


_WEIGHTS = {
    "create_entities": 24,
    "create_relations": 16,
    "add_observations": 14,
    "delete_entities": 6,
    "delete_observations": 8,
    "delete_relations": 8,
    "read_graph": 6,
    "search_nodes": 12,
    "open_nodes": 8,
}


def _arguments(dice: random.Random, tool: str) -> dict[str, Any]:
    if tool == "create_entities":
        return {"entities": [_entity(dice, name) for name in _some(dice, NAMES)]}
    if tool == "create_relations":
        return {"relations": _relations(dice)}
    if tool == "add_observations":
        # The second of two items about one entity must see what the first added.
        names = _some(dice, NAMES) if dice.random() < 0.8 else [dice.choice(NAMES)] * 2
        return {"observations": [{"entityName": name, "contents": _some(dice, TEXTS)} for name in names]}
    if tool == "delete_entities":
        names = _some(dice, NAMES, most=2)
        return {"entityNames": names + names[: dice.randint(0, 1)]}
    if tool == "delete_observations":
        names = _some(dice, NAMES)
        return {"deletions": [{"entityName": name, "observations": _some(dice, TEXTS, most=5)} for name in names]}
    if tool == "delete_relations":
        return {"relations": _relations(dice)}
    if tool == "search_nodes":
        return {"query": dice.choice(QUERIES)}
    return {"names": _some(dice, NAMES)} if tool == "open_nodes" else {}


def _some(dice: random.Random, choices: list[str], most: int = 3) -> list[str]:
    """Return distinct choices, seldom none."""
    return dice.sample(choices, dice.choices(range(most + 1), [1, *[6] * most])[0])


def _entity(dice: random.Random, name: str) -> dict[str, Any]:
    return {"name": name, "entityType": dice.choice(TYPES), "observations": _some(dice, TEXTS)}


def _relation(dice: random.Random, kind: str) -> dict[str, Any]:
    # The order of the keys is not that of the answers.
    return {"to": dice.choice(NAMES), "relationType": kind, "from": dice.choice(NAMES)}


def _relations(dice: random.Random) -> list[dict[str, Any]]:
    """Return relations of distinct types, so that none is repeated."""
    return [_relation(dice, kind) for kind in _some(dice, RELATIONS)]


def _repeating(dice: random.Random) -> Call:
    """A call that creates something twice, if it is not stored."""
    name, text = dice.choice(NAMES), dice.choice(TEXTS)
    relation = _relation(dice, dice.choice(RELATIONS))
    calls: list[Call] = [
        ("create_entities", {"entities": [_entity(dice, name), _entity(dice, "Bob"), _entity(dice, name)]}),
        ("create_entities", {"entities": [{**_entity(dice, name), "observations": [text, "likes tea", text]}]}),
        ("create_relations", {"relations": [relation, _relation(dice, "knows"), relation]}),
        ("add_observations", {"observations": [{"entityName": name, "contents": [text, text]}]}),
    ]
    return dice.choice(calls)


def _blank(dice: random.Random) -> Call:
    """A call that stores a text without words, if the entity of that name permits."""
    name, texts = dice.choice(NAMES), [dice.choice(["", " ", "\n\t"]), dice.choice(TEXTS)]
    if dice.random() < 0.5:
        return "create_entities", {"entities": [{"name": name, "entityType": "person", "observations": texts}]}
    return "add_observations", {"observations": [{"entityName": name, "contents": texts}]}


def _wrong(dice: random.Random) -> Call:
    """A call whose arguments do not follow the tool's input schema."""
    calls: list[Call] = [
        ("create_entities", {}),
        ("create_entities", {"entities": "Ana"}),
        ("create_entities", {"entities": [{"name": "Ana", "entityType": "person"}]}),
        ("create_entities", {"entities": [_entity(dice, "Ana"), {**_entity(dice, "Bob"), "observations": [1]}]}),
        ("create_relations", {"relations": [{"from": "Ana", "to": "Bob"}]}),
        ("add_observations", {"observations": [{"entityName": None, "contents": []}]}),
        ("delete_entities", {"entityNames": "Ana"}),
        ("delete_observations", {"deletions": {"entityName": "Ana", "observations": []}}),
        ("delete_relations", {"relations": ["Ana"]}),
        ("search_nodes", {"query": 3}),
        ("open_nodes", {"names": [["Ana"]]}),
    ]
    return dice.choice(calls)
