"""Random sequences of calls of the reference's nine tools, each determined by a seed.

Names, types and texts come from small sets, so that calls often concern the same entities. Each set has members that
differ only by case, by Unicode normalization or by surrounding white space, which are different to the reference.
A name and a type may be empty.
"""

from __future__ import annotations

import random
from typing import Any

Call = tuple[str, dict[str, Any]]

NAMES = ["Ana", "ana", "", "Zoë 猫", "Zoe\u0308 猫", "data base", "100%_a\\b", "The Hague"]
TYPES = ["person", "Person", "", "Thing to do"]
RELATIONS = ["knows", "Knows", "works at", "lebt in Köln"]
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
#: How often the tools are called.
WEIGHTS = {
    "create_entities": 16,
    "create_relations": 18,
    "add_observations": 16,
    "delete_entities": 5,
    "delete_observations": 9,
    "delete_relations": 7,
    "read_graph": 5,
    "search_nodes": 16,
    "open_nodes": 8,
}
#: Out of 1000 calls: with something repeated, with a blank text, with wrong arguments.
REPEATING, BLANK, WRONG = 20, 8, 25


def sequence(seed: int) -> list[Call]:
    """Return 5 to 15 calls, the first of which creates entities."""
    dice = random.Random(seed)
    caller = _Caller(dice, dice.sample(NAMES, 4))
    return [caller.valid("create_entities"), *(caller.any() for _ in range(dice.randint(4, 14)))]


class _Caller:
    """Makes random calls about a few entities."""

    def __init__(self, dice: random.Random, names: list[str]) -> None:
        self._dice = dice
        self._names = names

    def any(self) -> Call:
        fate = self._dice.randrange(1000)
        if fate < REPEATING:
            return self._repeating()
        if fate < REPEATING + BLANK:
            return self._blank()
        if fate < REPEATING + BLANK + WRONG:
            return self._wrong()
        return self.valid(*self._dice.choices(list(WEIGHTS), list(WEIGHTS.values())))

    def valid(self, tool: str) -> Call:
        """A call without a listed difference."""
        return tool, self._arguments(tool)

    def _arguments(self, tool: str) -> dict[str, Any]:
        if tool == "create_entities":
            return {"entities": [self._entity(name) for name in self._some(self._names)]}
        if tool in ("create_relations", "delete_relations"):
            # Of distinct types, so that none is repeated.
            return {"relations": [self._relation(kind) for kind in self._some(RELATIONS)]}
        if tool == "add_observations":
            # The second of two items about one entity must see what the first added.
            names = self._some(self._names, most=2) if self._dice.random() < 0.8 else [self._name()] * 2
            return {"observations": [{"entityName": name, "contents": self._some(TEXTS)} for name in names]}
        if tool == "delete_entities":
            names = self._some(self._names, most=2)
            return {"entityNames": names + names[: self._dice.randint(0, 1)]}
        if tool == "delete_observations":
            return {
                "deletions": [
                    {"entityName": name, "observations": self._some(TEXTS, most=8)} for name in self._some(self._names)
                ]
            }
        if tool == "search_nodes":
            return {"query": self._dice.choice(QUERIES)}
        return {"names": self._some(self._names)} if tool == "open_nodes" else {}

    def _some(self, choices: list[str], most: int = 3) -> list[str]:
        """Return distinct choices, seldom none."""
        (count,) = self._dice.choices(range(most + 1), [1, *[6] * most])
        return self._dice.sample(choices, count)

    def _name(self) -> str:
        return self._dice.choice(self._names)

    def _entity(self, name: str) -> dict[str, Any]:
        return {"name": name, "entityType": self._dice.choice(TYPES), "observations": self._some(TEXTS)}

    def _relation(self, kind: str) -> dict[str, Any]:
        # The order of the keys is not that of the answers.
        return {"to": self._name(), "relationType": kind, "from": self._name()}

    def _repeating(self) -> Call:
        """A call that creates something twice, unless it is stored already."""
        name, text = self._name(), self._dice.choice(TEXTS)
        relation = self._relation(self._dice.choice(RELATIONS))
        calls: list[Call] = [
            ("create_entities", {"entities": [self._entity(name), self._entity("Cleo"), self._entity(name)]}),
            ("create_entities", {"entities": [{**self._entity(name), "observations": [text, "has a cat", text]}]}),
            ("create_relations", {"relations": [relation, self._relation("likes"), relation]}),
            ("add_observations", {"observations": [{"entityName": name, "contents": [text, text]}]}),
        ]
        return self._dice.choice(calls)

    def _blank(self) -> Call:
        """A call with an observation or a relation without words."""
        name, blank = self._name(), self._dice.choice(["", " ", "\n\t"])
        texts = [self._dice.choice(TEXTS), blank]
        calls: list[Call] = [
            ("create_entities", {"entities": [{"name": name, "entityType": "person", "observations": texts}]}),
            ("add_observations", {"observations": [{"entityName": name, "contents": texts}]}),
            ("create_relations", {"relations": [{"from": blank, "to": "", "relationType": " "}]}),
        ]
        return self._dice.choice(calls)

    def _wrong(self) -> Call:
        """A call whose arguments do not match the tool's input schema."""
        entity = self._entity("Ana")
        calls: list[Call] = [
            ("create_entities", {}),
            ("create_entities", {"entities": "Ana"}),
            ("create_entities", {"entities": [{"name": "Ana", "entityType": "person"}]}),
            ("create_entities", {"entities": [entity, {**entity, "name": "Bob", "observations": [1]}]}),
            ("create_relations", {"relations": [{"from": "Ana", "to": "Bob"}]}),
            ("add_observations", {"observations": [{"entityName": None, "contents": []}]}),
            ("delete_entities", {"entityNames": "Ana"}),
            ("delete_observations", {"deletions": {"entityName": "Ana", "observations": []}}),
            ("delete_relations", {"relations": ["Ana"]}),
            ("search_nodes", {"query": 3}),
            ("open_nodes", {"names": [["Ana"]]}),
        ]
        return self._dice.choice(calls)
