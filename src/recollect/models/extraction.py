"""`ModelExtractor`: facts about entities by a language model, and the reading of its replies, which may be anything."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from recollect.arguments.checks import is_number
from recollect.common.regexes import regex
from recollect.errors import ModelError, ModelReplyError
from recollect.models.base import completed
from recollect.models.environment import Prompted
from recollect.models.prompts import filled
from recollect.policies import redact
from recollect.text.facts import Extracted, distinct
from recollect.text.pieces import SENTENCE_END
from recollect.text.summaries import LONGEST

#: Maximum depth of arrays and objects in a reply, and of facts that are read from one.
DEEPEST, _MOST = 512, 1000
_LONGEST_NAME, _LONGEST_FACT = 200, 4000
_REPLY_TOKENS = 4096
#: What a model thinks before it replies.
_THOUGHT = regex(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
#: A code fence. Its end may be missing.
_FENCE = regex(r"```[a-zA-Z]*[ \t]*\r?\n?")
_BRACKETS = regex(r'[\[{]|[\]}]|"(?:[^"\\]|\\.)*+"', re.DOTALL)


class ModelExtractor(Prompted):
    """Extracts facts about entities with a language model, for `Memory.extract_entities`.

    The text is sent without what `recollect.policies.redact` finds in it. It takes the arguments of `Prompted`.
    """

    prompt = "extract-1"

    def __call__(self, text: str) -> list[Extracted]:
        """Return the facts that a text states.

        Raises:
            ModelError: The model failed.
            ModelReplyError: Its reply is no JSON array of facts.
        """
        reply = completed(self._model, filled(self.prompt, [redact(text).text]), max_tokens=_REPLY_TOKENS)
        return facts_of(reply, self._model.name)


def facts_of(reply: str, model: str = "") -> list[Extracted]:
    """Return the facts in a reply: a JSON array of {entity_name, entity_type, fact, importance?}.

    A code fence around it is tolerated. Items without a name or a fact are left out, and of equal ones, ignoring case,
    all but the first. An importance that is no number is none; one outside of 0 to 1 is clamped.

    >>> facts_of('[{"entity_name": "Ada", "entity_type": "person", "fact": "Ada counts", "importance": 7}, {}]')
    [Extracted(entity_name='Ada', entity_type='person', fact='Ada counts', importance=1.0)]

    Raises:
        ModelReplyError: It is not JSON, is no array, or is nested too deeply.
    """
    return distinct(fact for item in json_array(reply, model)[:_MOST] if (fact := _fact(item)) is not None)


def json_array(reply: str, model: str) -> list[Any]:
    """Return the JSON array that a reply has. Words, a code fence and an object around it are tolerated.

    >>> json_array('Here you are:\\n```json\\n{"facts": [1]}\\n```\\nAnything else?', "")
    [1]

    Raises:
        ModelReplyError: It is not JSON, is no array, or is nested too deeply.
    """
    text = _THOUGHT.sub("", reply).strip()
    fence = _FENCE.search(text)
    if fence is not None and not text.startswith(("[", "{")):
        text = text[fence.end() :]
    elif not text.startswith(("[", "{")):
        text = text[min((at for at in (text.find("["), text.find("{")) if at >= 0), default=0) :]
    if _depth(text) > DEEPEST:
        raise ModelReplyError(model, f"it is nested more than {DEEPEST} levels deep")
    try:
        items, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        raise ModelReplyError(model, "it is not JSON") from None
    if isinstance(items, dict):
        lists = [each for each in items.values() if isinstance(each, list)]
        items = lists[0] if len(lists) == 1 else items
    if not isinstance(items, list):
        raise ModelReplyError(model, "it is no JSON array")
    return items


def _depth(text: str) -> int:
    """Return how deeply arrays and objects are nested in a JSON text, without building them."""
    depth = deepest = 0
    for found in _BRACKETS.finditer(text):
        if found[0][0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif found[0][0] in "]}":
            depth -= 1
    return deepest


def _fact(item: Any) -> Extracted | None:
    if not isinstance(item, Mapping):
        return None
    name, fact = (
        text_value(item.get(key), most) for key, most in (("entity_name", _LONGEST_NAME), ("fact", _LONGEST_FACT))
    )
    if not name or not fact:
        return None
    kind = text_value(item.get("entity_type"), _LONGEST_NAME) or "unknown"
    return Extracted(name, kind, fact, _number(item.get("importance")))


def text_value(value: Any, most: int) -> str:
    """Return a value as a text that a record can have; "" if it is none."""
    if not isinstance(value, str):
        return ""
    text = value.strip()
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return ""
    return text if len(text) <= most and "\0" not in text else ""


def _number(value: Any) -> float | None:
    if not is_number(value) or not math.isfinite(value):
        return None
    return float(min(1, max(0, value)))


# `ModelSummariser`: summaries by a language model, for `Memory.consolidate`.

#: Tokens of the window that are kept for the prompt's own text and for the reply.
RESERVE = 1536
#: The share of the rest that texts may fill, and the characters of a token.
_FILLED, _CHARACTERS = Fraction(92, 100), 4
#: Characters around each text: its marks and line ends.
_AROUND = 40
_SUMMARY_TOKENS = 1024


class ModelSummariser(Prompted):
    """Summarises texts with a language model, for `Memory.consolidate`. It takes the arguments of `Prompted`."""

    prompt = "summarise-1"

    def fitting(self, texts: Sequence[str]) -> int:
        """Return how many of the texts, from the first on, fit in the window of the model.

        They may fill (window - reserve) x 0.92 tokens, at four characters a token.
        """
        room = int((self._model.window - RESERVE) * _FILLED) * _CHARACTERS
        for count, text in enumerate(texts):
            room -= len(text) + _AROUND
            if room < 0:
                return count
        return len(texts)

    def __call__(self, texts: Sequence[str]) -> str:
        """Return a summary of at most 2,000 characters. A longer reply is cut after a sentence.

        Raises:
            ModelError: The model failed, or replied with something else than a text.
        """
        reply = completed(self._model, filled(self.prompt, texts), max_tokens=_SUMMARY_TOKENS).strip()
        if len(reply) <= LONGEST:
            return reply
        ends = [found.end() for found in SENTENCE_END.finditer(reply[: LONGEST + 1]) if found.end() <= LONGEST]
        cut = reply[: ends[-1]] if ends else reply[:LONGEST].rpartition(" ")[0]
        if not cut.strip():
            raise ModelError(self._model.name, f"its summary has {len(reply)} characters and no end of a sentence")
        return cut
