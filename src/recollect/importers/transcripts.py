"""Transcripts of coding agents: the common part of `claude_code` and `codex`.

A transcript is a file of JSON lines, one for each session, in a folder with others. It is appended to, so an import of
a longer version adds only new turns. What tools returned becomes turns of the role "tool", shortened, since a file that
was read is no memory. Secrets are hidden in everything (`recollect.policies`), and counted. What the program itself
wrote into the conversation, thoughts, and the sessions of subagents are not imported, and counted.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from recollect.common.regexes import regex
from recollect.errors import ImportFormatError
from recollect.importers.base import (
    Damage,
    FoundFile,
    Item,
    Omission,
    Part,
    SeenIds,
    UnreadFile,
    files_below,
    format_error,
    in_file,
    parse_json,
    read_text,
)
from recollect.importers.messages import can_name, turn_fields
from recollect.importers.trees import ConversationTree, Read
from recollect.policies import redact, redact_json
from recollect.records.messages import Turn, UnreadableError, read_turns
from recollect.records.messages.parts import NOTHING, THOUGHTS, listed
from recollect.records.messages.values import instant

#: Characters of a tool's result, and of each text in the metadata, that are kept.
MOST_OF_RESULT, _MOST_OF_TEXT = 4000, 1000
_SECRETS = ("secret",)
#: Bytes at the start and at the end of a file in which its first and last time are looked for.
_MOST_OF_TIMES = 100_000
_TIME = regex(rb'"timestamp": ?"([0-9T:.-]{10,40}Z)"')
#: What is counted.
HIDDEN, OF_PROGRAM, OF_SUBAGENTS = "secrets, which are hidden", "texts of the program itself", "turns of subagents"
OF_FORKED = "turns of the session that was forked"


class TranscriptLine(NamedTuple):
    """A line of a transcript.

    Attributes:
        number: Its number in the file, from 1.
        value: The object that it has.
    """

    number: int
    value: dict[str, Any]


class TranscriptSession(NamedTuple):
    """One session, as its transcript has it.

    Attributes:
        name: The id of the session, which becomes the name of the conversation.
        about: What it says of the session as a whole; `title` is its title, and `cwd` the folder of the project, which
            becomes the source of its turns.
        parents: The message before each message, by key.
        messages: Messages of an API for each key; none for what is not imported.
        shown: The key of the last message of the branch that goes on.
        omitted: What was left out, with the number of it.
        began: When it began, for messages without a time; "" if nothing says so.
        copied: The keys of the messages that are a copy of another session.
    """

    name: str
    about: Mapping[str, Any]
    parents: Mapping[str, str | None]
    messages: Mapping[str, list[dict[str, Any]]]
    shown: str | None
    omitted: Counter[str]
    began: str = ""
    copied: frozenset[str] = frozenset()


class Transcripts:
    """An importer of transcripts. Subclasses know the lines of one program."""

    name: str
    summary: str
    #: The name of the program, for messages.
    program: str

    def session(self, lines: list[TranscriptLine], path: Path) -> TranscriptSession | None:
        """Return the session in the lines of a file; None if it is no transcript of this program.

        Args:
            path: The file. Its name without the suffix names a session that has no id.
        """
        raise NotImplementedError

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Part]:
        """Yield what a transcript has, or each one below a folder. See `Importer.read`."""
        if os.path.isdir(path):
            yield from self._folder(path, zone, follow_links)
            return
        read = self._read(path)
        if read is None:
            raise format_error(path, "", f"is no transcript of {self.program}")
        session, lines = read
        yield from _items(session, lines, zone)
        yield from _omissions(session.omitted)

    def _folder(self, path: Path, zone: tzinfo, follow_links: bool) -> Iterator[Part]:
        omitted, found = Counter[str](), 0
        files: list[FoundFile] = []
        for each in files_below(path, (".jsonl",), follow_links=follow_links):
            if isinstance(each, Damage):
                yield each._replace(file=each.place)
            else:
                files.append(each)
        for each in sorted(files, key=_times):
            try:
                read = self._read(each.path)
            except ImportFormatError as error:
                yield Damage(each.source, str(error.args[2]), each.source)
                continue
            if read is None:
                yield UnreadFile(each.source)
                continue
            session, lines = read
            found += 1
            yield from in_file(each.source, _items(session, lines, zone))
            omitted += session.omitted
        if not found:
            rule = f"contains no transcript of {self.program}: they are files of JSON lines, one for each session"
            raise format_error(path, "", rule)
        yield from _omissions(omitted)

    def _read(self, path: Path) -> tuple[TranscriptSession, list[TranscriptLine | Damage]] | None:
        lines = lines_of(path)
        session = self.session([each for each in lines if isinstance(each, TranscriptLine)], path)
        return None if session is None else (session, lines)


def _times(file: FoundFile) -> tuple[str, str, str]:
    """Return the first and the last time in a transcript: a session comes before those that were resumed from it."""
    try:
        with open(file.path, "rb") as opened:
            head = opened.read(_MOST_OF_TIMES)
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - _MOST_OF_TIMES))
            tail = opened.read()
    except OSError:
        head = tail = b""  # reading it says why
    first, last = _TIME.search(head), _TIME.findall(tail)
    return first[1].decode() if first else "", last[-1].decode() if last else "", file.source


def lines_of(path: Path) -> list[TranscriptLine | Damage]:
    """Return the lines of a file. A last one without an end may still be being written, and is left out.

    Raises:
        ImportFormatError: The file cannot be read.
    """
    out: list[TranscriptLine | Damage] = []
    *whole, last = read_text(path).split("\n")
    for number, line in enumerate([*whole, last], 1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except UnreadableError as error:
            if number <= len(whole):
                out.append(Damage(f"line {number}", str(error)))
            continue
        out.append(
            TranscriptLine(number, value) if isinstance(value, dict) else Damage(f"line {number}", "is not an object")
        )
    return out


def _items(session: TranscriptSession, lines: list[TranscriptLine | Damage], zone: tzinfo) -> Iterator[Item | Damage]:
    yield from (each for each in lines if isinstance(each, Damage))
    ids, folder = SeenIds(), session.about.get("cwd")

    def turns(key: str) -> Read:
        out: list[dict[str, Any]] = []
        if key in session.copied:
            return Read([], elsewhere=1)
        # Before anything is shortened, since a part of a secret is not recognised.
        clean, found = redact_json(session.messages[key], _SECRETS)
        session.omitted[HIDDEN] += sum(found.values())
        for _, turn in read_turns(clean, zone):
            if not isinstance(turn, Turn):
                raise turn
            fields = turn_fields(turn, session.name, ids)
            stated = session.messages[key][0].get("timestamp")
            if "time" not in fields and stated is not None:
                fields["time"] = instant(stated, zone)
            fields |= ids.own(f"{key}.{len(out)}" if out else key)
            if isinstance(folder, str) and folder:
                fields["source"] = os.path.normpath(folder)
            out.append(_without_secrets(_shortened(fields), session.omitted))
        return Read(out)

    stated = {key: _short(value) for key, value in session.about.items() if value not in NOTHING}
    about, _ = redact_json(stated, _SECRETS)
    tree = ConversationTree(
        session.parents,
        session.shown,
        turns,
        name=session.name,
        place=f"session {session.name}",
        label=lambda key: f"message {key}",
        time=_instant(session.began, zone),
        about=about,
    )
    # A session that was resumed in a new file begins with lines of the other one, which keep their ids.
    yield from (replace(each, stays_in=session.name) if isinstance(each, Item) else each for each in tree.items())


def _instant(stated: str, zone: tzinfo) -> datetime | None:
    with suppress(UnreadableError):
        return instant(stated, zone)
    return None


def _omissions(omitted: Counter[str]) -> Iterator[Omission]:
    yield from (Omission(what, number) for what, number in sorted(omitted.items()) if number)


def named(stated: object, stem: str) -> str:
    """Return the name of a session: its id, or the stem of its file."""
    return stated if isinstance(stated, str) and can_name(stated) else stem


def without_thoughts(content: Any) -> Any:
    """Return the content of a message without thoughts; None if nothing else is in it."""
    if not isinstance(content, list):
        return content
    return [part for part in content if not (isinstance(part, dict) and part.get("type") in THOUGHTS)] or None


def texts_of(content: Any) -> str:
    """Return the texts of the content of a message, one after the other."""
    if isinstance(content, str):
        return content
    parts = (part.get("text") for part in listed(content) if isinstance(part, dict))
    return "\n".join(text for text in parts if isinstance(text, str))


def _shortened(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a turn without the most of what a tool returned, and of long values in its metadata."""
    content, metadata = _valid(fields["content"]), _short(fields["metadata"])
    fields = {**fields, "content": content}
    if fields["role"] != "tool" or len(content) <= MOST_OF_RESULT:
        return {**fields, "metadata": metadata}
    shown = f"{content[:MOST_OF_RESULT]}\n[{len(content) - MOST_OF_RESULT:,} more characters]"
    return {**fields, "content": shown, "metadata": {**metadata, "characters": len(content)}}


def _valid(text: str) -> str:
    """Return a text with U+FFFD in place of halves of surrogate pairs, which are left where a program cut an emoji."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _short(value: Any) -> Any:
    if isinstance(value, str):
        value = _valid(value)
        return value if len(value) <= _MOST_OF_TEXT else f"{value[:_MOST_OF_TEXT]}..."
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    return list(map(_short, value)) if isinstance(value, list) else value


def _without_secrets(fields: dict[str, Any], hidden: Counter[str]) -> dict[str, Any]:
    """Return the fields of a turn without secrets that only its whole text shows, as an argument after its name."""
    content = redact(fields["content"], _SECRETS)
    hidden[HIDDEN] += sum(content.found.values())
    return {**fields, "content": content.text, "metadata": _joined(fields["metadata"])}


def _joined(value: Any) -> Any:
    """Return a value in which a list of words, such as a command, is one text if a secret is in it."""
    if isinstance(value, dict):
        return {key: _joined(each) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    if value and all(isinstance(each, str) for each in value):
        words = redact(" ".join(value), _SECRETS)
        return [words.text] if words.found else value
    return list(map(_joined, value))
