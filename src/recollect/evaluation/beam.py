"""BEAM: long chats with an assistant, in batches of turns that begin on a date.

Each chat folder becomes a namespace, "beam-" and the name of the folder. The date of the first message of a batch
applies to the messages after it. The annotations of the data set are not part of a message and are not imported: a
suffix of users' messages (" ->-> 1,1"), `index` and `question_type`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from recollect.arguments.checks import is_integer
from recollect.common.regexes import regex
from recollect.errors import ImportFormatError, InvalidRecordError
from recollect.importers.base import (
    LEADS_OUT,
    Damage,
    Item,
    SeenIds,
    format_error,
    leads_out,
    load_json,
    local,
    why_unreadable,
)
from recollect.quoting import printable
from recollect.records.messages.values import UnreadableError, kind_of
from recollect.records.record import record_id

_CHAT = "chat.json"
# Mostly "->-> 1,1"; "->-> 3,8)" and "->-> 2,N/A" occur.
_SUFFIX = regex(r"(?<!\s)\s*->->\s*[0-9]+\s*,\s*(?:[0-9]+|N/A)\)?\s*\Z")
_ANCHOR = regex(r"\s*([a-z]+)-([0-9]{1,2})-([0-9]{4})\s*", re.IGNORECASE)


class Beam:
    """A BEAM chat folder, a folder of such folders, or a chat.json."""

    name = "beam"
    summary = "BEAM: a chat folder, a folder of them, or a chat.json; each chat becomes a namespace beam-FOLDER"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        if not os.path.isdir(path):
            yield from _chat(path, zone)
        elif os.path.lexists(path / _CHAT):
            if not follow_links and leads_out(path, path / _CHAT):
                raise format_error(path / _CHAT, "", LEADS_OUT)
            yield from _chat(path / _CHAT, zone)
        else:
            yield from _chats(path, zone, follow_links)


def _chats(folder: Path, zone: tzinfo, follow_links: bool) -> Iterator[Item | Damage]:
    try:
        below = [each for each in folder.iterdir() if os.path.isdir(each) and not each.name.startswith(".")]
    except OSError as error:
        raise format_error(folder, "", why_unreadable(error)) from None
    if not any(os.path.exists(each / _CHAT) for each in below):
        raise format_error(folder, "", f"neither it nor a folder in it contains a {_CHAT}")
    for each in sorted(below, key=lambda each: (len(each.name), each.name)):  # 2 before 10
        if not follow_links and leads_out(folder, each / _CHAT):
            yield Damage(f"{printable(each.name)}/{_CHAT}", LEADS_OUT)
            continue
        try:
            yield from _chat(each / _CHAT, zone)
        except ImportFormatError as error:
            place = ", ".join(part for part in (f"{printable(each.name)}/{_CHAT}", error.args[1]) if part)
            yield Damage(place, error.args[2])


def _chat(path: Path, zone: tzinfo) -> Iterator[Item | Damage]:
    batches = load_json(path)
    if not isinstance(batches, list):
        raise format_error(path, "", f"must be a list of batches, not {kind_of(batches)}")
    if not any(isinstance(batch, dict) and isinstance(batch.get("turns"), list) for batch in batches):
        raise format_error(path, "", 'contains no batch with "turns"')
    try:
        name = record_id(f"beam-{path.resolve().parent.name}", "namespace")
    except InvalidRecordError as error:
        raise format_error(path, "its folder's name", error.args[2]) from None
    ids, position = SeenIds(), 0
    for number, batch in enumerate(batches, 1):
        if not isinstance(batch, dict) or not isinstance(batch.get("turns"), list):
            yield Damage(f"{name}, batch {number}", 'is not an object with a list of "turns"')
            continue
        dates = _Dates(zone)
        yield from dates.begin(batch.get("time_anchor"), f"{name}, batch {number}")
        own_number = batch.get("batch_number")
        session = f"batch-{own_number if isinstance(own_number, (int, str)) else number}"
        for turn_number, turn in enumerate(batch["turns"], 1):
            turn_place = f"{name}, batch {number}, turn {turn_number}"
            if not isinstance(turn, list):
                yield Damage(turn_place, f"is {kind_of(turn)}, not a list of messages")
                continue
            for message_number, message in enumerate(turn, 1):
                place = f"{turn_place}, message {message_number}"
                common = {"conversation": name, "session": session, "position": position}
                position += 1  # a damaged message keeps its position
                try:
                    fields = _fields(message, ids, dates)
                except UnreadableError as error:
                    yield Damage(place, str(error))
                else:
                    yield Item(namespace=name, fields=fields | common, place=place)


class _Dates:
    """The date of the messages of a batch: that of the last message that has one."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._date: datetime | None = None

    def begin(self, anchor: object, place: str) -> Iterator[Damage]:
        """Set the date of the batch, if it has one."""
        try:
            self.at(anchor)
        except UnreadableError as error:
            yield Damage(place, f"{error}; its messages are remembered without that date")

    def at(self, anchor: object) -> datetime | None:
        """Return the date of a message with this anchor. Raises UnreadableError, and forgets the date before it."""
        if anchor is None or anchor == "":
            return self._date
        self._date = None
        read = _ANCHOR.fullmatch(anchor) if isinstance(anchor, str) else None
        if read is None:
            raise UnreadableError("its time_anchor is not a date such as March-15-2024")
        self._date = local(int(read[3]), read[1], int(read[2]), 0, 0, self._zone)
        return self._date


def _fields(message: object, ids: SeenIds, dates: _Dates) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise UnreadableError(f"is {kind_of(message)}, not an object")
    time = dates.at(message.get("time_anchor"))
    role, content, own = message.get("role"), message.get("content"), message.get("id")
    if not isinstance(content, str):
        raise UnreadableError(f'its "content" is {kind_of(content)}, not text')
    if role == "user":
        content = _SUFFIX.sub("", content)
    if not content.strip():
        raise UnreadableError("its content is empty")
    if is_integer(own, 1 - 2**63, 2**63 - 1):
        own = str(own)
    return {**ids.own(own), "kind": "conversation", "content": content, "role": role, "time": time}
