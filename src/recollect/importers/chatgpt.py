"""The conversations.json of an export of ChatGPT.

A conversation is a tree of messages: an edited question or a regenerated answer is a sibling of the former one, and
`current_node` is the end of the branch that ChatGPT shows. The turns of that branch, from the root, are the
conversation. Every other branch is a conversation of its own, from the message at which it leaves: its name is that of
the conversation and of this message, its turns have the tag `other-branch`, and their positions go on from the turn
before. A record's id is that of its message, so an import of a later export adds only new messages, also if another
branch is shown by then.

What ChatGPT hides in the conversation (its instructions, and messages without content) and the model's thoughts are not
imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from recollect.importers.base import Damage, Item, SeenIds, format_error, load_json
from recollect.importers.messages import can_name, untaken
from recollect.importers.times import dated, time_of_conversation
from recollect.records.factories import OTHER_BRANCH
from recollect.records.messages import Turn, UnreadableError, read_turns
from recollect.records.messages.parts import NOTHING, without_base64
from recollect.records.messages.values import kind_of

_NAMES = ("conversation_id", "id", "title")
_STRUCTURE = ("mapping", "current_node")
#: Content that is no part of the conversation: thoughts of the model, and instructions that apply to all.
_OMITTED = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")


class ChatGPT:
    """A list of conversations, each with a tree of messages in "mapping"."""

    name = "chatgpt"
    summary = "ChatGPT: the conversations.json of an export; the shown branch, and each other branch apart"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        data = load_json(path)
        conversations = [data] if is_tree(data) else data
        if not isinstance(conversations, list) or (conversations and not any(map(is_tree, conversations))):
            raise format_error(path, "", 'must be a list of conversations with a "mapping"')
        ids, taken = SeenIds(), dict[str, int]()
        for number, conversation in enumerate(conversations, 1):
            place = f"conversation {number}"
            if not is_tree(conversation):
                yield Damage(place, 'is not an object with a "mapping"')
                continue
            named = [conversation[key] for key in _NAMES if isinstance(conversation.get(key), str)]
            name = next(filter(can_name, named), f"{path.stem}#{number}")
            yield from _Tree(conversation, untaken(name, taken), place, ids, zone).items()


def is_tree(value: Any) -> bool:
    """Return whether a JSON value is a conversation of such an export."""
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


class _Tree:
    """The messages of one conversation."""

    def __init__(self, conversation: dict[str, Any], name: str, place: str, ids: SeenIds, zone: tzinfo) -> None:
        self._nodes: dict[str, Any] = conversation["mapping"]
        self._current = conversation.get("current_node")
        self._about = {
            key: value
            for key, value in conversation.items()
            if key not in _STRUCTURE and value not in NOTHING and value != name
        }
        self._name, self._place, self._ids, self._zone = name, place, ids, zone
        self._time = time_of_conversation(conversation, zone)
        #: Node -> the time of the last turn up to and including it.
        self._times: dict[str, datetime] = {}
        #: Node -> the number of turns up to and including it.
        self._turns: dict[str, int] = {}

    def items(self) -> Iterator[Item | Damage]:
        parents = {self._parent(node) for node in self._nodes}
        leaves = [node for node in self._nodes if node not in parents]
        shown = self._current if isinstance(self._current, str) and self._current in self._nodes else None
        shown = shown or (leaves[-1] if leaves else None)
        if shown is not None:
            yield from self._dated(self._up(shown), self._name, ())
        # Also each node, so that a circle of nodes, which has no leaf, is imported too.
        for end in (*leaves, *self._nodes):
            if branch := self._up(end):
                yield from self._dated(branch, f"{self._name}/{branch[0]}", (OTHER_BRANCH,))

    def _dated(self, nodes: list[str], conversation: str, tags: tuple[str, ...]) -> Iterator[Item | Damage]:
        """Yield the turns of a branch, each with a time; the turn before the first is where it leaves."""
        parent = self._parent(nodes[0]) if nodes else None
        before = self._times.get(parent) if parent is not None else None
        yield from dated(self._branch(nodes, conversation, tags), self._time, before)

    def _parent(self, node: str) -> str | None:
        value = self._nodes[node]
        parent = value.get("parent") if isinstance(value, dict) else None
        return parent if isinstance(parent, str) and parent in self._nodes else None

    def _up(self, end: str) -> list[str]:
        """Return the nodes from the first one that was not read yet down to `end`."""
        nodes: dict[str, None] = {}
        at: str | None = end
        while at is not None and at not in self._turns and at not in nodes:
            nodes[at] = None
            at = self._parent(at)
        return list(nodes)[::-1]

    def _branch(self, nodes: list[str], conversation: str, tags: tuple[str, ...]) -> Iterator[Item | Damage]:
        parent = self._parent(nodes[0]) if nodes else None
        position = self._turns.get(parent, 0) if parent is not None else 0
        at = self._times.get(parent) if parent is not None else None
        for node in nodes:
            place = f"{self._place}, message {node[:80]!r}"
            try:
                message = _message(self._nodes[node])
                if message is not None:
                    fields = self._fields(message) | {"conversation": conversation, "position": position, "tags": tags}
                    position += 1
                    at = fields.get("time", at)
                    yield Item(namespace=None, fields=fields, place=place)
            except UnreadableError as error:
                position += 1  # a damaged turn keeps its position
                yield Damage(place, str(error))
            self._turns[node] = position
            if at is not None:
                self._times[node] = at

    def _fields(self, message: dict[str, Any]) -> dict[str, Any]:
        own = self._ids.own(message.pop("id", None))
        turn: Turn | None = None
        for _, each in read_turns([message], self._zone):  # several if its parts are results of tools
            if not isinstance(each, Turn):
                raise each
            turn = each if turn is None else turn._replace(content=f"{turn.content}\n{each.content}")
        assert turn is not None
        fields = {key: value for key, value in turn._asdict().items() if value is not None}
        metadata = dict(turn.metadata)
        if self._about:  # facts about the conversation are stored with its first turn
            metadata["conversation"], self._about = without_base64(self._about), {}
        return {**fields, **own, "kind": "conversation", "metadata": metadata}


def _message(node: Any) -> dict[str, Any] | None:
    """Return the message of a node in the form of an API; None if the conversation does not show it.

    Raises:
        UnreadableError: It has another form than a message of an export.
    """
    message = node.get("message") if isinstance(node, dict) else node
    if message is None:
        return None
    if not isinstance(message, dict):
        raise UnreadableError(f"is {kind_of(message)}, not an object")
    about = message.get("metadata")
    about = about if isinstance(about, dict) else {}
    author, content = message.get("author"), message.get("content")
    if about.get("is_visually_hidden_from_conversation") is True or content in NOTHING:
        return None
    if not isinstance(author, dict) or not isinstance(content, dict):
        raise UnreadableError('has no "author" and "content" that are objects')
    if content.get("content_type") in _OMITTED or not (parts := _parts(content, message.get("recipient"))):
        return None
    out = {"role": author.get("role"), "name": author.get("name"), "content": parts, "id": message.get("id")}
    return {**out, "create_time": message.get("create_time"), "model": about.get("model_slug")}


def _parts(content: dict[str, Any], recipient: Any) -> list[dict[str, Any]]:
    """Return the content of a message as parts. Raises UnreadableError."""
    kind = content.get("content_type")
    raw: Any = next((content[key] for key in ("parts", "text", "result") if content.get(key) not in NOTHING), [])
    values = raw if isinstance(raw, list) else [raw]
    if kind == "code" and isinstance(recipient, str) and recipient != "all":
        return [{"type": "tool_call", "name": recipient, "input": value} for value in values]
    out = []
    for part in values:
        if isinstance(part, str):
            out += [{"type": "text", "text": part}] if part.strip() else []
        elif not isinstance(part, dict):
            raise UnreadableError(f"a part of its content is {kind_of(part)}, not text")
        elif part.get("content_type") == "audio_transcription" and isinstance(part.get("text"), str):
            out.append({"type": "text", "text": part["text"]})
        else:
            named, asset = str(part.get("content_type")), "_asset_pointer"
            out.append({**part, "type": named.removesuffix(asset) if named.endswith(asset) else "part"})
    return out
