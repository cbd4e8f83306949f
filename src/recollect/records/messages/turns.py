"""Reading messages: each becomes a turn with a role, a speaker, a text, a time and metadata.

What has no field in a turn is in its metadata, under its own key; parts that are not text are under "parts". APIs
divide the same exchange into messages in different ways; the turns are the same for all of them:

- An answer that calls tools is one turn. (The Responses API gives its text and each call as an item of its own.)
- Each result of a tool is a turn with the role "tool". (Anthropic sends several in one message of the user.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from types import MappingProxyType
from typing import Any, NamedTuple

from recollect.records.messages.parts import (
    CALLS,
    NOTHING,
    THOUGHTS,
    described,
    listed,
    nonblank,
    split,
    without_base64,
)
from recollect.records.messages.values import UnreadableError, instant, kind_of, plain

_NO_METADATA: Mapping[str, Any] = MappingProxyType({})
_TIMES = ("created_at", "timestamp", "create_time")
#: The roles of a turn by the names that APIs have for them. Other names stay as they are.
_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
#: Keys of a message for its role, best first.
ROLE_KEYS = ("role", "sender")
_TOOL_RESULTS = ("tool_result", "mcp_tool_result")
_NO_OUTPUT = "[no output]"
#: Keys that only the complete answer of an API has -> where its messages are.
_ANSWERS = {"choices": "response.choices[0].message", "output": "response.output"}


class Turn(NamedTuple):
    """One turn of a conversation.

    Attributes:
        role: "user", "assistant", "system", "tool", or another name that a message has.
        speaker: The name of the author, if the message states one.
        content: The text, and a line that describes the other parts. Not empty.
        time: The time that the message states.
        metadata: What has no field here, as JSON.
    """

    role: str
    speaker: str | None
    content: str
    time: datetime | None = None
    metadata: Mapping[str, Any] = _NO_METADATA


def read_turns(messages: Iterable[Any], zone: tzinfo | None = None) -> Iterator[tuple[int, Turn | UnreadableError]]:
    """Yield the turns of messages, in order, each with the index of its (first) message.

    Args:
        zone: The time zone of times without an offset; default: that of the memory that stores the turns.

    Yields:
        A turn, or the error for a message that cannot be read.

    Cost:
        About a microsecond for a message that has only a role and a text.
    """
    answer: _Answer | None = None
    for index, message in enumerate(messages):
        if type(message) is dict and len(message) == 2:
            role, content = message.get("role"), message.get("content")
            if type(role) is str and type(content) is str and role != "tool" and content and not content.isspace():
                if answer is not None:
                    yield from answer.turns(zone)
                    answer = None
                yield index, Turn(_ROLES.get(role, role), None, content)
                continue
        value: dict[str, Any] | UnreadableError
        try:
            value = _plain_message(message)
            if _is_item(value):
                answer = answer or _Answer(index)
                answer.items.append(value)
                continue
            if answer is not None and answer.takes_text and _is_item_of_answer(value):
                answer.message = value
                continue
        except UnreadableError as error:
            value = error
        if answer is not None:
            yield from answer.turns(zone)
            answer = None
        if isinstance(value, UnreadableError):
            yield index, value
        elif _is_item_of_answer(value):
            answer = _Answer(index, value)
        else:
            yield from ((index, turn) for turn in _turns(value, zone))
    if answer is not None:
        yield from answer.turns(zone)


@dataclass
class _Answer:
    """An answer of the Responses API, which consists of several items.

    Attributes:
        index: The index of the first item.
        message: The item with its text, if it has one.
        items: The other items: thoughts and calls of tools.
    """

    index: int
    message: dict[str, Any] | None = None
    items: list[dict[str, Any]] = field(default_factory=list)

    @property
    def takes_text(self) -> bool:
        return self.message is None and all(item.get("type") in THOUGHTS for item in self.items)

    def turns(self, zone: tzinfo | None) -> Iterator[tuple[int, Turn | UnreadableError]]:
        message = self.message or {"role": "assistant"}
        if self.items:
            message = {**message, "content": [*_parts(message.get("content")), *self.items]}
        return ((self.index, turn) for turn in _turns(message, zone))


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [] if content in NOTHING else [content]


def _plain_message(message: Any) -> dict[str, Any]:
    value = plain(message)
    if not isinstance(value, dict):
        raise UnreadableError(f"is {kind_of(value)}, not an object")
    if "role" not in value and "type" not in value:
        for key, where in _ANSWERS.items():
            if isinstance(value.get(key), list):
                raise UnreadableError(f"is the complete answer of an API: pass {where}")
    return value


def is_message(value: Any) -> bool:
    """Return whether a JSON value has the form of a message."""
    return isinstance(value, dict) and (any(key in value for key in ROLE_KEYS) or _is_item(value) or _is_output(value))


def _kind(value: dict[str, Any]) -> str:
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def _is_item(value: dict[str, Any]) -> bool:
    """Return whether it is an item of an answer of the Responses API other than its text."""
    kind = _kind(value)
    return "role" not in value and (kind in CALLS or kind in THOUGHTS or kind.endswith("_call"))


def _is_output(value: dict[str, Any]) -> bool:
    """Return whether it is the result of a tool in the Responses API."""
    return "role" not in value and _kind(value).endswith("_output")


def _is_item_of_answer(value: dict[str, Any]) -> bool:
    return _kind(value) == "message" and value.get("role") == "assistant"


def _turns(message: dict[str, Any], zone: tzinfo | None) -> Iterator[Turn | UnreadableError]:
    """Yield the turns of a message: one, or one for each result of a tool and one for the rest."""
    content = message.get("content")
    results = [part for part in listed(content) if isinstance(part, dict) and part.get("type") in _TOOL_RESULTS]
    if not results:
        yield _turn(message, zone)
        return
    rest = [part for part in listed(content) if not any(part is result for result in results)]
    about = {key: value for key, value in message.items() if key != "content"}
    for number, result in enumerate(results):
        # What the message states beside its content is kept once.
        stated = about if number == 0 and not rest else {key: about[key] for key in _TIMES if key in about}
        own = {key: value for key, value in result.items() if key != "type"}
        yield _turn({"content": None, **stated, **own, "role": "tool"}, zone)
    if rest:
        yield _turn({**about, "content": rest}, zone)


def _turn(message: dict[str, Any], zone: tzinfo | None) -> Turn | UnreadableError:
    try:
        return _read(message, zone)
    except UnreadableError as error:
        return error


def _read(message: dict[str, Any], zone: tzinfo | None) -> Turn:
    rest = {key: value for key, value in message.items() if value not in NOTHING}
    role = _role(rest)
    time = next((instant(rest.pop(key), zone) for key in _TIMES if key in rest), None)
    speaker = None
    if role != "tool" and "name" in rest:  # of a tool, it is the name of the function
        speaker = rest.pop("name")
        if not isinstance(speaker, str):
            raise UnreadableError(f"its name is {kind_of(speaker)}, not text")
    texts, others = split(rest.pop("output" if _is_output(message) else "content", None))
    # Anthropic's exports have a text next to the content from which it was made. If the text has more, store both.
    if isinstance(rest.get("text"), str) and (not texts or rest["text"].strip() == "\n".join(texts).strip()):
        texts = texts or nonblank(rest["text"])
        del rest["text"]
    if role == "tool" and not texts and not others:
        texts = [_NO_OUTPUT]
    content = described(texts, others, rest)
    if others:
        rest["parts"] = others + listed(rest.get("parts"))
    return Turn(role, speaker, content, time, without_base64(rest))


def _role(rest: dict[str, Any]) -> str:
    """Remove the role from the keys of a message and return it."""
    if _is_output(rest):
        return "tool"
    role = next((rest.pop(key) for key in ROLE_KEYS if key in rest), None)
    kind = _kind(rest)
    if role is None and kind in _ROLES:
        role = rest.pop("type")
    if kind == "message":
        del rest["type"]
    if not isinstance(role, str):
        raise UnreadableError("has no role" if role is None else f"its role is {kind_of(role)}, not text")
    return _ROLES.get(role, role)
