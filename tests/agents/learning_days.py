"""Thirty days of a user whose life changes, what a model answers about them, and what is true on each day.

The stub reads the prompt as a model would: it finds the turns that it knows by their text, and known facts by what they
are about, and answers with their numbers. So its answers fit whatever the learner shows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple


class Said(NamedTuple):
    """A turn of the user, and the facts that the stub states out of it; `known` names a known fact by its attribute."""

    day: int
    text: str
    facts: tuple[dict[str, Any], ...] = ()


def fact(
    text: str, attribute: str, value: str, *, about: str = "user", single: bool = True, **more: Any
) -> dict[str, Any]:
    return {"fact": text, "about": about, "attribute": attribute, "value": value, "single": single, **more}


SAID = (
    Said(1, "Hi! I live in Graz and work at Kastner as an accountant.", (
        fact("The user lives in Graz.", "home", "Graz"),
        fact("The user works at Kastner.", "employer", "Kastner"),
        fact("The user works as an accountant.", "job", "accountant"))),
    Said(2, "My dog Bruno hates thunderstorms. What can I do?", (
        fact("The user has a dog named Bruno.", "dog", "Bruno"),)),
    Said(3, "I prefer window seats on trains.", (fact("The user prefers window seats on trains.", "seat", "window"),)),
    Said(4, "Can you recommend a novel for the weekend?"),
    Said(5, "Our standup is at 9:15, remind me to prepare.", (
        fact("The user's standup is at 9:15.", "standup", "9:15"),)),
    Said(6, "I like jazz, and climbing on Sundays.", (
        fact("The user likes jazz.", "hobby", "jazz", single=False),
        fact("The user likes climbing on Sundays.", "hobby", "climbing", single=False))),
    Said(8, "My manager is Helga.", (fact("The user's manager is Helga.", "manager", "Helga"),)),
    Said(10, "As I said, I live in Graz, near the river.", (fact("The user lives in Graz.", "home", "Graz"),)),
    Said(11, "The standup was moved to 9:45.", (
        fact("The user's standup is at 9:45.", "standup", "9:45", known="standup"),)),
    Said(12, "I don't eat meat any more, I'm vegetarian now.", (
        fact("The user is vegetarian.", "diet", "vegetarian"),)),
    Said(14, "Next Monday I move to Linz!", (
        fact("The user moves to Linz.", "residence", "Linz", since="2026-11-16", known="home"),)),
    Said(17, "Ruben is my new manager, Helga has retired.", (
        fact("The user's manager is Ruben.", "boss", "Ruben", known="manager"),)),
    Said(19, "I've had enough of the window, I take aisle seats on trains now.", (
        fact("The user takes aisle seats on trains.", "seat", "aisle", known="seat"),)),
    Said(21, "I no longer work at Kastner, and I'm looking for something new.", (
        fact("The user no longer works at Kastner.", "employer", "Kastner", known="employer", until="2026-11-21"),)),
    Said(22, "Bruno turned 7 today.", (fact("Bruno is 7.", "age", "7", about="Bruno"),)),
    Said(24, "I used to live in Vienna until 2019, by the way.", (
        fact("The user lived in Vienna until 2019.", "home", "Vienna", until="2019"),)),
    Said(26, "I start at Voest on 1 December 2026, as a controller.", (
        fact("The user works at Voest from 1 December 2026.", "employer", "Voest", since="2026-12-01"),
        fact("The user works as a controller.", "job", "controller", since="2026-12-01"))),
    Said(28, "I climb on Tuesdays as well, and I like cooking.", (
        fact("The user likes cooking.", "hobby", "cooking", single=False),)),
    Said(30, "Good night!"),
)  # fmt: skip

#: Attribute -> (first day of November 2026, value) from which it is true; 31 is 1 December.
TRUE = {
    "home": ((1, {"Graz"}), (16, {"Linz"})),
    "employer": ((1, {"Kastner"}), (21, set()), (31, {"Voest"})),
    "job": ((1, {"accountant"}), (31, {"controller"})),
    "dog": ((2, {"Bruno"}),),
    "seat": ((3, {"window"}), (19, {"aisle"})),
    "standup": ((5, {"9:15"}), (11, {"9:45"})),
    "manager": ((8, {"Helga"}), (17, {"Ruben"})),
    "diet": ((12, {"vegetarian"}),),
    "age": ((22, {"7"}),),
    "hobby": ((6, {"jazz", "climbing"}), (28, {"jazz", "climbing", "cooking"})),
}


def true_on(day: int) -> dict[str, set[str]]:
    """What is true on a day, without attributes that have no value then."""
    out = {}
    for attribute, values in TRUE.items():
        value = [each for first, each in values if first <= day]
        if value and value[-1]:
            out[attribute] = value[-1]
    return out


class Stub:
    """Answers a prompt with the facts of the turns that are shown in it.

    Args:
        changed: Changes the facts before they are sent, for answers that a model should not give.
    """

    def __init__(self, changed: Callable[[list[dict[str, Any]]], Any] = lambda facts: facts) -> None:
        self.prompts: list[str] = []
        self._changed = changed

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        lines = [json.loads(line) for line in prompt.splitlines() if re.match(r'\{"(turn|known)": [0-9]', line)]
        turns = {line["text"]: line["turn"] for line in lines if "turn" in line}
        known = {line["attribute"]: line["known"] for line in reversed(lines) if "known" in line}
        out = []
        for said in SAID:
            if said.text in turns:
                for each in said.facts:
                    number = known.get(each.get("known", ""))
                    out.append({**each, "turns": [turns[said.text]], "known": number})
        return json.dumps(self._changed(out))
