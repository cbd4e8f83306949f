"""Facts about entities in a text: the form in which a model or the rules state them, and how important they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from recollect.common.regexes import regex
from recollect.text.entities import entities
from recollect.text.summaries import sentences

#: The types of entities that the rules state facts about.
_TYPES = ("person", "organization", "place", "name", "handle")
#: Words that make a fact more important, as whole words.
_WEIGHTY = regex(r"\b(?:prefers|always|never|requires|critical|important|deadline|allergy|must)\b", re.IGNORECASE)
_WEIGHTY_TYPES = ("person", "organization", "technology", "product")
_LONG = 80
_DIGIT = regex(r"[0-9]")


class Extracted(NamedTuple):
    """A fact about an entity, as an extractor states it.

    Attributes:
        entity_name: The name of the entity.
        entity_type: Its type, such as "person".
        importance: The importance that the extractor gives it, 0 to 1; None if it gives none.
    """

    entity_name: str
    entity_type: str
    fact: str
    importance: float | None = None


def facts_in(text: str, *, speaker: str | None = None) -> list[Extracted]:
    """Return the sentences of a text that state something about an entity, once for each entity that they name.

    >>> [each[:3] for each in facts_in("Ada Lovelace moved to London. Did Bob call? It rained.")]
    [('Ada Lovelace', 'person', 'Ada Lovelace moved to London.'), ('London', 'place', 'Ada Lovelace moved to London.')]

    Args:
        speaker: Who says it.
    """
    found = []
    for sentence in sentences(text):
        if not sentence.endswith(("?", "？")):
            found += [
                Extracted(each.name, each.type, sentence)
                for each in entities(sentence, speaker=speaker)
                if each.type in _TYPES
            ]
    return distinct(found)


def distinct(facts: Iterable[Extracted]) -> list[Extracted]:
    """Return facts, of those with the same name and text the first. Case makes no difference."""
    last_first = list(facts)[::-1]
    lower = {fact: fact.lower() for fact in {each.fact for each in last_first}}  # many are about one long sentence
    return list({(each.entity_name.lower(), lower[each.fact]): each for each in last_first}.values())[::-1]


def rule_importance(fact: str, entity_type: str, default: float = 0.5) -> float:
    """Return how important a fact is by rules, 0 to 1.

    It is the default, and 0.2 more with a weighty word (prefers, always, never, requires, critical, important,
    deadline, allergy, must), 0.1 more for a person, organization, technology or product, 0.05 more with a digit, and
    0.05 more from 80 characters on.

    >>> round(rule_importance("Alice prefers tea", "person"), 2)
    0.8
    """
    total = default
    total += 0.2 if _WEIGHTY.search(fact) else 0.0
    total += 0.1 if entity_type.lower() in _WEIGHTY_TYPES else 0.0
    total += 0.05 if _DIGIT.search(fact) else 0.0
    total += 0.05 if len(fact) >= _LONG else 0.0
    return round(min(1.0, max(0.0, total)), 6)


def blended(stated: float | None, by_rule: float) -> float:
    """Return the importance of a fact to which a model gave one: 0.7 of the model's and 0.3 of the rule's.

    >>> blended(0.9, 0.8), blended(None, 0.8)
    (0.87, 0.8)
    """
    return by_rule if stated is None else round(min(1.0, max(0.0, 0.7 * stated + 0.3 * by_rule)), 6)
