"""Transcripts of Claude Code: `~/.claude/projects/PROJECT/SESSION.jsonl`, or a folder of them.

A line is a message of Anthropic's API with a `uuid` and that of the line before (`parentUuid`): a tree, if a session
was rewound. Each block of an answer is a line of its own, and becomes a turn. After a compaction the tree goes on from
`logicalParentUuid`; the summary itself is not imported, since what it sums up is.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from recollect.common.regexes import regex
from recollect.importers.transcripts import (
    OF_FORKED,
    OF_PROGRAM,
    OF_SUBAGENTS,
    TranscriptLine,
    Transcripts,
    TranscriptSession,
    named,
    without_thoughts,
)
from recollect.records.messages.parts import listed

#: How texts begin that the program puts into the role of the user, and what it puts into others.
_OF_PROGRAM = regex(
    r"\s*(<(command-|local-command-|bash-|task-notification|user-memory|teammate-message|agent-message)"
    r"|Caveat: The messages below|\[Request interrupted|Another Claude session sent a message"
    r"|This session is being continued from a previous conversation)"
)
_REMINDER = regex(
    r"<(system-reminder|ide_selection|ide_opened_file|ide_diagnostics)>(?:(?!<\1>).)*?</\1>\s*", re.DOTALL
)
#: The name of a command of the user, and what the user wrote after it.
_COMMAND = regex(r"<command-name>([^<]{1,200})</command-name>")
_COMMAND_ARGUMENTS = regex(r"<command-args>(.*)</command-args>", re.DOTALL)
#: Lines with the title of the session, the later ones being better, and the key of it.
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
_ABOUT = ("cwd", "gitBranch", "version")


class ClaudeCode(Transcripts):
    """Sessions of Claude Code."""

    name = "claude-code"
    summary = "Claude Code: a transcript, or the folder of a project or of all; secrets are hidden"
    program = "Claude Code"

    def session(self, lines: list[TranscriptLine], path: Path) -> TranscriptSession | None:
        if not any("sessionId" in line.value and isinstance(line.value.get("message"), dict) for line in lines):
            return None
        return _session(lines, path.stem)


def _session(lines: list[TranscriptLine], stem: str) -> TranscriptSession:
    tree = _Tree()
    about: dict[str, Any] = {}
    titles: dict[str, str] = {}
    summaries: list[tuple[str, Any]] = []  # each with the message up to which it sums up, perhaps of another session
    name = ""
    for line in lines:
        value = line.value
        kind = str(value.get("type"))
        if kind in _TITLES and isinstance(title := value.get(_TITLES[kind]), str):
            if kind == "summary":
                summaries.append((title, value.get("leafUuid")))
            else:
                titles[kind] = title
        if value.get("isSidechain") is True:
            tree.omitted[OF_SUBAGENTS] += kind in ("user", "assistant")
            continue
        name = name or str(value.get("sessionId") or "")
        about |= {key: value[key] for key in _ABOUT if isinstance(value.get(key), str) and key not in about}
        tree.add(value, kind)
    for text, leaf in summaries:
        if not isinstance(leaf, str) or leaf in tree.parents:
            titles["summary"] = text
    title = next((titles[kind] for kind in reversed(_TITLES) if kind in titles), None)
    own = {"program": ClaudeCode.name, **about, **({} if title is None else {"title": title})}
    return TranscriptSession(
        named(name, stem), own, tree.parents, tree.messages, tree.last, tree.omitted, copied=frozenset(tree.copied)
    )


class _Tree:
    """The messages of a session.

    An answer, the calls of tools in it, and their results follow each other as they are in the file: results of tools
    that ran at once each name the call before, so that all but one would be another branch.
    """

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self.last: str | None = None
        self._latest: str | None = None
        self.omitted: Counter[str] = Counter()
        self.copied: list[str] = []
        self._exchanges: dict[str, _Exchange] = {}  # uuid of a line -> the answer and results that it is one of
        self._answers: dict[str, _Exchange] = {}  # id of an answer -> the same

    def add(self, line: dict[str, Any], kind: str) -> None:
        uuid = line.get("uuid")
        if not isinstance(uuid, str) or not uuid or uuid in self.parents:
            return
        stated = line.get("parentUuid") or line.get("logicalParentUuid")
        parent = stated if isinstance(stated, str) else None
        message = line.get("message") if kind in ("user", "assistant") else _queued(line)
        kind = "user" if kind == "attachment" and message is not None else kind
        before = None if parent is None else self._exchanges.get(parent)
        if isinstance(message, dict):
            self._group(uuid, message, kind, before)
        if parent is not None and parent not in self.parents:
            parent = self._latest  # its line is damaged
        exchange = self._exchanges.get(uuid)
        if exchange is not None and exchange.last is not None:
            parent = exchange.last
        elif before is not None and kind != "user":
            parent = before.last
        if exchange is not None:
            exchange.last = uuid
        self.parents[uuid], self._latest = parent, uuid
        if isinstance(line.get("forkedFrom"), dict):
            if message is not None and self._shown(line, message) is not None:
                self.omitted[OF_FORKED] += 1
                self.copied.append(uuid)
            message = None
        shown = self._shown(line, message) if isinstance(message, dict) else None
        self.messages[uuid] = [] if shown is None else [shown]
        if isinstance(message, dict):
            self.last = uuid

    def _group(self, uuid: str, message: dict[str, Any], kind: str, before: _Exchange | None) -> None:
        """Note to which exchange a message belongs, if it is a part of an answer or the result of a tool."""
        own = message.get("id")
        if kind == "assistant" and isinstance(own, str) and own:
            self._exchanges[uuid] = self._answers.setdefault(own, _Exchange())
        elif before is not None and _has_only_results(message.get("content")):
            self._exchanges[uuid] = before

    def _shown(self, line: dict[str, Any], message: dict[str, Any]) -> dict[str, Any] | None:
        """Return a message as it is imported; None if nothing of it is."""
        content = without_thoughts(message.get("content"))
        if line.get("type") != "assistant":
            before, content = content, None if _is_of_program(line) else _said(content)
            self.omitted[OF_PROGRAM] += before is not None and content is None
        if content in (None, "", []):
            return None
        role = message.get("role") or line["type"]
        shown = {"role": role, "content": content, "timestamp": line.get("timestamp")}
        return {key: value for key, value in shown.items() if value is not None}


def _queued(line: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the user wrote while the model was working, which is an attachment; None for any other line."""
    attached = line.get("attachment")
    if not isinstance(attached, dict) or attached.get("type") != "queued_command" or not attached.get("prompt"):
        return None
    if attached.get("commandMode") == "task-notification" or _is_of_program(attached):
        return None
    return {"role": "user", "content": attached["prompt"]}


class _Exchange:
    """An answer with the results of its tools: the uuid of its last line so far."""

    last: str | None = None


def _has_only_results(content: Any) -> bool:
    parts = listed(content)
    return bool(parts) and all(isinstance(part, dict) and part.get("type") == "tool_result" for part in parts)


def _is_of_program(line: dict[str, Any]) -> bool:
    """Return whether a line in the role of the user is by the program as a whole."""
    origin = line.get("origin")
    by_other = isinstance(origin, dict) and origin.get("kind") not in (None, "human")
    return by_other or line.get("isMeta") is True or line.get("isCompactSummary") is True


def _said(content: Any) -> Any:
    """Return the content of a message of the user without what the program put into it; None if nothing is left."""
    if isinstance(content, str):
        text = _REMINDER.sub("", content).strip()
        if text.startswith("<command-") and (command := _COMMAND.search(text)) is not None:
            arguments = _COMMAND_ARGUMENTS.search(text)
            return f"{command[1]} {arguments[1].strip()}" if arguments is not None and arguments[1].strip() else None
        return None if not text or _OF_PROGRAM.match(text) else text
    if not isinstance(content, list):
        return content
    return [said for part in content if (said := _said_part(part)) is not None] or None


def _said_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if isinstance(part.get("text"), str):
        text = _said(part["text"])
        return None if text is None else {**part, "text": text}
    if part.get("type") == "tool_result":
        return {**part, "content": _without_reminders(part.get("content"))}
    return part


def _without_reminders(content: Any) -> Any:
    """Return the result of a tool without what the program reminds its model of."""
    if isinstance(content, str):
        return _REMINDER.sub("", content).strip() if _REMINDER.search(content) else content
    if isinstance(content, list):
        return list(map(_without_reminders, content))
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return {**content, "text": _without_reminders(content["text"])}
    return content
