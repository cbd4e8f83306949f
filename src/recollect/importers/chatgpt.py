"""An export of ChatGPT: the zip file, the folder in it, or a conversations.json.

A conversation is a tree of nodes with messages (`trees`), and `current_node` is the end of the branch that ChatGPT
shows. What ChatGPT hides in the conversation (its instructions, and messages without content) and the model's thoughts
are not imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from itertools import pairwise
from pathlib import Path
from typing import Any

from recollect.arguments.checks import is_number
from recollect.importers.base import Damage, Item, SeenIds, UnreadFile, in_file
from recollect.importers.exports import ExportedChat, exported_chats, name_of_chat
from recollect.importers.times import time_of_conversation
from recollect.importers.trees import ConversationTree, Read
from recollect.records.messages import Turn, UnreadableError, read_turns
from recollect.records.messages.parts import NOTHING, listed
from recollect.records.messages.values import kind_of

_NAMES = ("conversation_id", "id", "title")
#: A time in seconds since 1970 is below this.
_LATEST_S = 1e12
_STRUCTURE = ("mapping", "current_node")
#: Content that is no part of the conversation: thoughts of the model, and instructions that apply to all.
_OMITTED = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")


class ChatGPT:
    """A list of conversations, each with a tree of messages in "mapping"."""

    name = "chatgpt"
    summary = "ChatGPT: an export (zip, folder or conversations.json); the shown branch, and each other one apart"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | UnreadFile]:
        ids, taken = SeenIds(), dict[str, int]()
        rule = 'an object with a "mapping"'
        for number, chat in enumerate(exported_chats(path, is_tree, rule, follow_links=follow_links), 1):
            if not isinstance(chat, ExportedChat):
                yield chat
                continue
            about = chat.value
            name = name_of_chat(about, _NAMES, f"{path.stem}#{number}", taken)
            nodes = about["mapping"]
            tree = ConversationTree(
                _parents(nodes),
                about.get("current_node"),
                lambda node, nodes=nodes: _read(nodes[node], ids, zone),  # type: ignore[misc]
                name=name,
                place=chat.place,
                label=lambda node: f"message {node[:80]!r}",
                time=time_of_conversation(about, zone),
                about={
                    key: value
                    for key, value in about.items()
                    if key not in _STRUCTURE and value not in NOTHING and value != name
                },
            )
            yield from in_file(chat.file, tree.items())


def is_tree(value: Any) -> bool:
    """Return whether a JSON value is a conversation of such an export."""
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def _parents(nodes: dict[str, Any]) -> dict[str, str | None]:
    """Return the node before each node.

    Files that were made from an export may have nodes with neither parent nor children: each of these follows the one
    before, in the order of their times if all have one.
    """
    parents: dict[str, str | None] = dict.fromkeys(nodes)
    for node, value in nodes.items():
        for child in listed(value.get("children")) if isinstance(value, dict) else ():
            if isinstance(child, str) and parents.get(child, node) is None:
                parents[child] = node
    for node, value in nodes.items():
        parent = value.get("parent") if isinstance(value, dict) else None
        if isinstance(parent, str) and parent in nodes:
            parents[node] = parent
    before = set(parents.values())
    alone = [node for node, parent in parents.items() if parent is None and node not in before]
    times = [_time(nodes[node]) for node in alone]
    if None not in times:
        alone = [node for _, _, node in sorted(zip(times, range(len(alone)), alone, strict=True))]
    for one, following in pairwise(alone):
        parents[following] = one
    return parents


def _time(node: Any) -> float | None:
    message = node.get("message") if isinstance(node, dict) else None
    time = message.get("create_time") if isinstance(message, dict) else None
    return float(time) if is_number(time, 0, _LATEST_S) else None


def _read(node: Any, ids: SeenIds, zone: tzinfo) -> Read:
    """Return the turn of a node. Raises UnreadableError."""
    message = _message(node)
    if message is None:
        return Read([])
    own = ids.own(message.pop("id", None))
    turn: Turn | None = None
    for _, each in read_turns([message], zone):  # several if its parts are results of tools
        if not isinstance(each, Turn):
            raise each
        turn = each if turn is None else turn._replace(content=f"{turn.content}\n{each.content}")
    assert turn is not None
    fields = {key: value for key, value in turn._asdict().items() if value is not None}
    return Read([{**fields, **own, "kind": "conversation", "metadata": dict(turn.metadata)}])


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
    attached = about.get("attachments")
    out = {"role": author.get("role"), "name": author.get("name"), "content": parts, "id": message.get("id")}
    beside = {"attachments": attached} if isinstance(attached, list) else {}
    return {**out, **beside, "create_time": message.get("create_time"), "model": about.get("model_slug")}


def _parts(content: dict[str, Any], recipient: Any) -> list[dict[str, Any]]:
    """Return the content of a message as parts. Raises UnreadableError."""
    kind = content.get("content_type")
    raw: Any = next((content[key] for key in ("parts", "text", "result") if content.get(key) not in NOTHING), [])
    values = raw if isinstance(raw, list) else [raw]
    if kind == "tether_quote":  # of a page or a file, whose title and address are beside its text
        values = [*(content[key] for key in ("title", "url", "domain") if isinstance(content.get(key), str)), *values]
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
