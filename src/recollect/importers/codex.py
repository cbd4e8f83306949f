"""Transcripts of the Codex CLI: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-*.jsonl`, or a folder of them.

A line has a `type` and a `payload`. Messages, calls of tools and their results are `response_item`, in the form of
OpenAI's Responses API; the same conversation is there again as `event_msg`, which is not read but for what was rolled
back. Older files have the items themselves in their lines, after one with the id of the session.

A forked session begins with a copy of the items of the other one, with new times and no mark where the copy ends: it is
found by comparing the two files, and not imported.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from recollect.common.regexes import regex
from recollect.errors import ImportFormatError
from recollect.importers.base import parse_json
from recollect.importers.transcripts import (
    OF_FORKED,
    OF_PROGRAM,
    OF_SUBAGENTS,
    TranscriptLine,
    Transcripts,
    TranscriptSession,
    lines_of,
    named,
    texts_of,
)
from recollect.records.messages import UnreadableError
from recollect.records.messages.parts import THOUGHTS

#: How texts begin that the program puts into the role of the user.
_OF_PROGRAM = regex(
    r"\s*(<(environment_context|user_instructions|permissions|collaboration_mode|turn_aborted|subagent|skill"
    r"|INSTRUCTIONS|user_shell_command|user_action|recommended_plugins)|# AGENTS\.md instructions)"
)
#: What an editor puts before the words of the user.
_OF_EDITOR, _REQUEST = "# Context from my IDE setup:", re.compile(r"^## My request(?: for Codex)?:", re.MULTILINE)
_FOLDER = regex(r"<cwd>([^<\n]+)</cwd>")
_ITEMS = ("message", "reasoning")
#: Who else than the user may begin a session.
_OTHERS = ("guardian_review", "subagent")
_ABOUT = ("cwd", "cli_version", "originator", "forked_from_id")
#: The folders of `~/.codex` with transcripts.
_FOLDERS = ("sessions", "archived_sessions")
_ID = regex(r"[0-9A-Za-z-]{8,64}")


class Codex(Transcripts):
    """Sessions of the Codex CLI."""

    name = "codex"
    summary = "Codex CLI: a transcript (rollout), or the folder of all sessions; secrets are hidden"
    program = "the Codex CLI"

    def session(self, lines: list[TranscriptLine], path: Path) -> TranscriptSession | None:
        return _session(lines, path)


def _is_item(value: dict[str, Any]) -> bool:
    kind = str(value.get("type"))
    return kind in _ITEMS or kind.endswith(("_call", "_output"))


def _session(lines: list[TranscriptLine], path: Path) -> TranscriptSession | None:
    """Return the session of a file; None if it is none."""
    name, began, about, chain, subagent = "", "", dict[str, Any](), _chain(lines), False
    for line in lines:
        kind, payload = line.value.get("type"), line.value.get("payload")
        if kind == "session_meta" and isinstance(payload, dict) and not name:
            name = str(payload.get("id") or payload.get("session_id") or path.stem)
            about = {"program": Codex.name} | {key: payload[key] for key in _ABOUT if isinstance(payload.get(key), str)}
            source = payload.get("source")
            subagent = (isinstance(source, dict) and "subagent" in source) or payload.get("thread_source") in _OTHERS
            about |= _branch(payload)
        elif kind is None and isinstance(line.value.get("id"), str) and not name:  # the first line of an older file
            name, about = line.value["id"], {"program": Codex.name} | _branch(line.value)
            began = str(line.value.get("timestamp") or "")
    if not name and not chain.messages:
        return None
    own = named(name or path.stem, path.stem)
    if chain.folder and "cwd" not in about:
        about["cwd"] = chain.folder
    if subagent:
        return TranscriptSession(own, about, {}, {}, None, Counter({OF_SUBAGENTS: len(chain.messages)}))
    if about.get("forked_from_id") != own and (source := _transcript_of(about.get("forked_from_id", ""), path)):
        chain.leave_out_copy(source)
    parents = {f"{own}/{key}": None if before is None else f"{own}/{before}" for key, before in chain.parents.items()}
    messages = {f"{own}/{key}": each for key, each in chain.messages.items()}
    last = None if chain.last is None else f"{own}/{chain.last}"
    copied = frozenset(f"{own}/{key}" for key in chain.copied)
    return TranscriptSession(own, about, parents, messages, last, chain.omitted, began, copied)


def _branch(session: dict[str, Any]) -> dict[str, Any]:
    git = session.get("git")
    return {"gitBranch": git["branch"]} if isinstance(git, dict) and git.get("branch") else {}


def _chain(lines: list[TranscriptLine]) -> _Chain:
    """Return the messages in the lines of a file."""
    chain, identified = _Chain(), False
    for line in lines:
        kind, payload = line.value.get("type"), line.value.get("payload")
        if kind == "session_meta" or (kind is None and isinstance(line.value.get("id"), str)):
            identified = True
        elif kind == "response_item" and isinstance(payload, dict):
            chain.add(line.number, payload, line.value.get("timestamp"))
        elif kind == "event_msg" and isinstance(payload, dict) and payload.get("type") == "thread_rolled_back":
            turns = payload.get("num_turns")
            chain.roll_back(turns if isinstance(turns, int) else 1)
        elif payload is None and _is_item(line.value) and identified:  # an older file
            chain.add(line.number, line.value, line.value.get("timestamp"))
    return chain


def _transcript_of(session: str, path: Path) -> _Chain | None:
    """Return the messages of another session, whose transcript is in the same folder of Codex; None if it is not."""
    if not _ID.fullmatch(session):
        return None
    home = next((each.parent for each in path.absolute().parents if each.name in _FOLDERS), None)
    folders = [path.absolute().parent] if home is None else [home / each for each in _FOLDERS]
    for folder in folders:
        for found in sorted(folder.rglob(f"*{session}.jsonl")):
            if found.is_symlink():
                continue
            try:
                return _chain([each for each in lines_of(found) if isinstance(each, TranscriptLine)])
            except ImportFormatError:
                continue
    return None


class _Chain:
    """The messages of a session, by the numbers of their lines. What is rolled back becomes another branch."""

    def __init__(self) -> None:
        self.parents: dict[int, int | None] = {}
        self.messages: dict[int, list[dict[str, Any]]] = {}
        self.last: int | None = None
        self.folder = ""
        self.copied: list[int] = []
        self.omitted: Counter[str] = Counter()
        self._asked: list[int] = []  # messages of the user on the branch that goes on

    def add(self, number: int, item: dict[str, Any], time: Any) -> None:
        kind, role = str(item.get("type")), item.get("role")
        if kind in THOUGHTS or not _is_item(item):
            return
        shown = {key: value for key, value in item.items() if key not in ("id", "status", "timestamp")}
        if kind == "message" and role != "assistant":
            if (found := _FOLDER.search(texts_of(item.get("content")))) is not None and not self.folder:
                self.folder = found[1]
            shown["content"] = _said(item.get("content")) if role == "user" else None
            if shown["content"] is None:
                self.omitted[OF_PROGRAM] += 1
                return
        if kind.endswith("_output"):
            shown["output"] = _output(shown.get("output"))
        if isinstance(time, str):
            shown["timestamp"] = time
        self.parents[number], self.messages[number] = self.last, [shown]
        self.last = number
        if role == "user":
            self._asked.append(number)

    def leave_out_copy(self, other: _Chain) -> None:
        """Leave out the messages that were copied from the other session.

        They are its first ones, written at once: their times are new, and less than a second apart. What the user says
        later may be what was said in the other session, too.
        """
        before = ""
        for number, original in zip(list(self.messages), other.messages.values(), strict=False):
            own = self.messages[number]
            if _content(own) != _content(original):
                break
            time = _time(own)
            if own[0].get("role") == "user" and before and time != _time(original) and not _at_once(before, time):
                break
            self.messages[number], before = [], time
            self.copied.append(number)
            self.omitted[OF_FORKED] += 1
        if self.last is not None and not self.messages[self.last]:
            self.last = None

    def roll_back(self, turns: int) -> None:
        """Go on before one of the last messages of the user."""
        if not 0 < turns <= len(self._asked):
            return
        first = self._asked[-turns]
        del self._asked[-turns:]
        self.last = self.parents[first]


def _time(messages: list[dict[str, Any]]) -> str:
    return str(messages[0].get("timestamp") or "")


def _at_once(before: str, after: str) -> bool:
    """Return whether two times are less than a second apart; times that cannot be read are."""
    try:
        return abs(datetime.fromisoformat(after) - datetime.fromisoformat(before)) < timedelta(seconds=1)
    except (ValueError, TypeError):
        return True


def _said(content: Any) -> Any:
    """Return the content of a message of the user without what the program put into it; None if nothing is left."""
    if isinstance(content, list):
        return [said for part in content if (said := _said_part(part)) is not None] or None
    return _said_text(content) if isinstance(content, str) else content


def _said_part(part: Any) -> Any:
    if not isinstance(part, dict) or not isinstance(part.get("text"), str):
        return part
    text = _said_text(part["text"])
    return None if text is None else {**part, "text": text}


def _said_text(text: str) -> str | None:
    if text.lstrip().startswith(_OF_EDITOR) and "\n## " in text:
        requests = list(_REQUEST.finditer(text))
        text = text[requests[-1].end() :].strip() if requests else ""
    return None if not text.strip() or _OF_PROGRAM.match(text) else text


def _output(output: Any) -> Any:
    """Return what a tool returned, which may be in JSON with its exit code."""
    if isinstance(output, str) and output.startswith('{"output":'):
        with suppress(UnreadableError):
            read = parse_json(output)
            return read["output"] if isinstance(read.get("output"), str) else output
    return "" if output is None else output


def _content(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages without their times, which are new in a copy."""
    return [{key: value for key, value in each.items() if key != "timestamp"} for each in messages]
