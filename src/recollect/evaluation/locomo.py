"""LoCoMo: long conversations of two people in dated sessions, with captions for pictures.

Each conversation becomes a namespace named by its `sample_id`, because each question of the data set is about one
conversation, and the ids of turns ("D1:3") recur in all. The annotations of the data set (questions, summaries,
observations, the search queries of pictures) are not part of the conversation and are not imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from recollect.common.regexes import regex
from recollect.errors import InvalidRecordError
from recollect.importers.base import Damage, Item, SeenIds, format_error, load_json, local
from recollect.quoting import printable
from recollect.records.messages.values import UnreadableError, kind_of
from recollect.records.record import record_id

_SESSION = regex(r"session_([0-9]{1,9})")
_DATE_TIME = regex(
    r"\s*([0-9]{1,2}):([0-9]{2})\s*([ap])m\s+on\s+([0-9]{1,2})\s+([a-z]+)\s*,?\s*([0-9]{4})\s*", re.IGNORECASE
)


class LoCoMo:
    """LoCoMo's JSON file: a list of conversations."""

    name = "locomo"
    summary = "LoCoMo: a JSON list of long conversations; each becomes a namespace named by its sample_id"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        samples = load_json(path)
        if not isinstance(samples, list):
            raise format_error(path, "", f"must be a list of conversations, not {kind_of(samples)}")
        if not any(isinstance(sample, dict) and isinstance(sample.get("conversation"), dict) for sample in samples):
            raise format_error(path, "", 'contains no object with a "conversation"')
        names: set[str] = set()
        for number, sample in enumerate(samples, 1):
            try:
                name, conversation = _checked(sample)
                if name in names:
                    raise UnreadableError(f"its sample_id {name!r} is that of an earlier conversation")
            except UnreadableError as error:
                yield Damage(f"conversation {number}", str(error))
                continue
            names.add(name)
            yield from _turns(name, conversation, zone)


def _checked(sample: object) -> tuple[str, dict[str, Any]]:
    if not isinstance(sample, dict):
        raise UnreadableError(f"is {kind_of(sample)}, not an object")
    conversation = sample.get("conversation")
    if not isinstance(conversation, dict):
        raise UnreadableError(f'its "conversation" is {kind_of(conversation)}, not an object')
    try:
        return record_id(sample.get("sample_id"), "sample_id"), conversation
    except InvalidRecordError as error:  # it is the namespace's name
        raise UnreadableError(f"{error.args[0]} = {error.args[1]}: {error.args[2]}") from None


def _turns(name: str, conversation: dict[str, Any], zone: tzinfo) -> Iterator[Item | Damage]:
    sessions: list[tuple[int, str]] = []
    for key, value in conversation.items():
        if read := _SESSION.fullmatch(key):
            sessions.append((int(read[1]), key))
        elif isinstance(value, list):
            yield Damage(f"{name}, {printable(key)[:80]}", "is a list, but is not named like a session (session_1)")
    ids, position = SeenIds(), 0
    for _, session in sorted(sessions):
        turns = conversation[session]
        if not isinstance(turns, list):
            yield Damage(f"{name}, {session}", f"is {kind_of(turns)}, not a list of turns")
            continue
        time = None
        try:
            time = _time(conversation.get(f"{session}_date_time"), zone)
        except UnreadableError as error:
            yield Damage(f"{name}, {session}_date_time", f"{error}; its turns are remembered without a time")
        for number, turn in enumerate(turns, 1):
            place = f"{name}, {session}, turn {number}"
            common = {"conversation": name, "session": session, "position": position, "time": time}
            # A damaged turn keeps its position, so that it is the only new one once it is repaired.
            position += 1
            try:
                yield Item(namespace=name, fields=_fields(turn, ids) | common, place=place)
            except UnreadableError as error:
                yield Damage(place, str(error))


def _fields(turn: object, ids: SeenIds) -> dict[str, Any]:
    if not isinstance(turn, dict):
        raise UnreadableError(f"is {kind_of(turn)}, not an object")
    text, caption, images = turn.get("text"), turn.get("blip_caption"), turn.get("img_url")
    if text is not None and not isinstance(text, str):
        raise UnreadableError(f'its "text" is {kind_of(text)}, not text')
    metadata: dict[str, Any] = {}
    if caption is not None and caption != "":
        metadata["caption"] = caption
    if images is not None and images != []:
        metadata["images"] = images if isinstance(images, list) else [images]
    if text is None or not text.strip():
        if not isinstance(caption, str) or not caption.strip():
            raise UnreadableError("has neither text nor a caption")
        text = f"[image: {caption}]"
    return {
        **ids.own(turn.get("dia_id")),
        "kind": "conversation",
        "content": text,
        "speaker": turn.get("speaker"),
        "metadata": metadata,
    }


def _time(value: object, zone: tzinfo) -> datetime:
    """
    >>> from datetime import UTC
    >>> _time("12:09 am on 13 September, 2023", UTC).isoformat()
    '2023-09-13T00:09:00+00:00'
    """
    read = _DATE_TIME.fullmatch(value) if isinstance(value, str) else None
    if read is None:
        raise UnreadableError("is missing" if value is None else "is not a time such as 1:56 pm on 8 May, 2023")
    hour, minute, half, day, month, year = read.groups()
    if not 1 <= int(hour) <= 12:
        raise UnreadableError(f"{hour} is not an hour of a twelve-hour clock")
    return local(int(year), month, int(day), int(hour) % 12 + 12 * (half.lower() == "p"), int(minute), zone)
