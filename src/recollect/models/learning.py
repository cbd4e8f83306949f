"""Facts that a language model reads in turns of a conversation: what is sent, and the reading of the reply.

What is sent has one JSON object in each line, so no text can pass for another turn. A reply may be anything: it is read
strictly, and what it states is only a candidate. Whether its sources say so is for the caller to check.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from recollect.errors import ModelReplyError
from recollect.models.base import completed
from recollect.models.environment import Prompted
from recollect.models.extraction import json_array, text_value
from recollect.models.prompts import filled, template
from recollect.policies import redact

#: Tokens of the window that are kept for the reply, and asked for.
_REPLY_TOKENS = 2048
#: The share of the rest that the prompt may fill, and the characters of a token.
_FILLED, _CHARACTERS = Fraction(92, 100), 4
#: Maximum number of facts that are read from a reply.
MOST_FACTS = 200
#: What other programs take for the end of a line, as JSON may write it.
_LINE_ENDS = {ord(each): f"\\u{ord(each):04x}" for each in "\x85\u2028\u2029"}
_LONGEST_FACT, _LONGEST_NAME, _LONGEST_VALUE = 500, 100, 200


class PromptLine(NamedTuple):
    """What is sent of a turn or a known fact, under its number.

    Attributes:
        fields: Its fields, in the order in which they are shown, without what redaction finds.
        what: "turn" or "known".
    """

    number: int
    fields: Mapping[str, str]
    what: str

    @classmethod
    def of(cls, what: str, fields: Mapping[str, str]) -> PromptLine:
        """Return a line without a number. It is redacted here, once, and before anything is cut off."""
        return cls(0, {name: redact(value).text for name, value in fields.items()}, what)

    def shown(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps({self.what: self.number, **self.fields}, ensure_ascii=False).translate(_LINE_ENDS)

    @property
    def size(self) -> int:
        """The number of bytes of the line, for a number of three digits."""
        return len(self.shown().encode(errors="replace")) + 3


class StatedFact(NamedTuple):
    """A fact as a model states it.

    Attributes:
        fact: A sentence.
        about: "user", or the name of whom or what it is about.
        attribute: What it is the value of; "" if the model names none.
        value: The value; "" if the model names none.
        single: Whether there is only one value at a time.
        since: The day from which it is true, as written; "" for none.
        until: The day until which it is true, as written; "" for none.
        turns: The numbers of the turns that state it.
        known: The number of a known fact that it repeats, changes or ends; None for none.
    """

    fact: str
    about: str
    attribute: str
    value: str
    single: bool
    since: str
    until: str
    turns: tuple[int, ...]
    known: int | None


class FactReply(NamedTuple):
    """What a model replied.

    Attributes:
        reply: The reply.
        facts: The facts that it states.
        unread: Why items of it are no facts.
    """

    reply: str
    facts: list[StatedFact]
    unread: list[str]


class FactReader(Prompted):
    """Asks a model for the facts in turns. It takes the arguments of `Prompted`."""

    prompt = "learn-1"

    @property
    def room(self) -> int:
        """The number of bytes that the lines of turns and known facts may have together."""
        tokens = int((self._model.window - _REPLY_TOKENS) * _FILLED)
        return max(0, tokens * _CHARACTERS - len(template(self.prompt)))

    def filled(self, turns: Sequence[PromptLine], known: Sequence[PromptLine]) -> str:
        """Return the prompt that shows turns and known facts."""
        texts = ["\n".join(each.shown() for each in known) or "(none)"]
        texts.append("\n".join(each.shown() for each in turns))
        return filled(self.prompt, texts)

    def __call__(self, prompt: str) -> FactReply:
        """Return the facts that a model states when it is asked with a prompt.

        Raises:
            ModelError: The model failed.
            ModelReplyError: Its reply has no JSON array.
        """
        reply = completed(self._model, prompt, max_tokens=_REPLY_TOKENS)
        return FactReply(reply, *candidates_of(reply, self._model.name))


def candidates_of(reply: str, model: str = "") -> tuple[list[StatedFact], list[str]]:
    """Return the facts in a reply, and for each other item of it why it is none.

    >>> candidates_of('[{"fact": "Ana lives in Oslo.", "about": "Ana", "turns": [2]}, {"fact": 7}]')[1]
    ['item 2: "fact" is no text of at most 500 characters']

    Raises:
        ModelReplyError: It is not JSON, is no array, is nested too deeply, or has more than `MOST_FACTS` items.
    """
    items = json_array(reply, model)
    if len(items) > MOST_FACTS:
        raise ModelReplyError(model, f"it states {len(items)} facts, more than {MOST_FACTS}")
    facts, unread = [], []
    for number, item in enumerate(items, 1):
        found = _candidate(item)
        if isinstance(found, str):
            unread.append(f"item {number}: {found}")
        else:
            facts.append(found)
    return facts, unread


def _candidate(item: Any) -> StatedFact | str:
    if not isinstance(item, Mapping):
        return "is no object"
    fact = text_value(item.get("fact"), _LONGEST_FACT)
    if not fact:
        return f'"fact" is no text of at most {_LONGEST_FACT} characters'
    turns = item.get("turns")
    numbers: list[Any] = turns if isinstance(turns, list) else [turns]
    if not numbers or not all(isinstance(each, int) and not isinstance(each, bool) for each in numbers):
        return '"turns" has no numbers of turns'
    known = item.get("known")
    if known is not None and (not isinstance(known, int) or isinstance(known, bool)):
        return '"known" is no number'
    return StatedFact(
        fact,
        text_value(item.get("about"), _LONGEST_NAME) or "user",
        text_value(item.get("attribute"), _LONGEST_NAME),
        text_value(_written(item.get("value")), _LONGEST_VALUE),
        item.get("single") is True,
        text_value(item.get("since"), _LONGEST_NAME),
        text_value(item.get("until"), _LONGEST_NAME),
        tuple(dict.fromkeys(numbers)),
        known,
    )


def _written(value: Any) -> Any:
    """Return a number as text; anything else as it is."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
