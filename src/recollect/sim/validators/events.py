"""The events of a trace as values. Fields that a trace leaves out have defaults, so traces of other simulators work."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, NamedTuple

from recollect.errors import ImportFormatError

#: Events that take an entry out of memory.
REMOVALS = ("forgotten", "evicted", "expired")


#: Fields that are integers, where they are there.
_INTEGERS = ("rank", "seq", "size", "version", "was")


class TraceEvent(NamedTuple):
    """One line of a trace.

    Attributes:
        kind: What happened.
        agent: Who did it, or the receiver of a message; "" for what memory does by itself.
        ts: When, in ticks.
        key: The key in memory; "" where a recall found nothing.
        size: The size of the value, or of the message.
        version: The number of the write in the run whose value this is; 0: absent; -1: no write of this key had it;
            None: not in the trace.
        was: For a `cas`, the version of the value that was expected, likewise.
        cas: Whether a write was a successful `cas`.
        rank: The position of a hit of a recall, from 1; 0: nothing was found.
        score: The score of the hit.
        owner: Whose memory it is, where each agent has one.
        to: The receiver of a message that is sent.
        message: The text of a message.
        fields: All fields of the line.
    """

    kind: str
    agent: str = ""
    ts: float = 0.0
    key: str = ""
    size: int = 0
    version: int | None = None
    was: int | None = None
    cas: bool = False
    rank: int = 0
    score: float = 0.0
    owner: str = ""
    to: str = ""
    message: str = ""
    fields: Mapping[str, Any] = {}

    @property
    def finds(self) -> bool:
        """True if it shows an agent a value of a key, or that there is none."""
        return self.kind == "read" or (self.kind == "recalled" and self.rank > 0)


def read_events(path: str | PathLike[str]) -> Iterator[TraceEvent]:
    """Yield the events of a trace.

    Raises:
        ImportFormatError: The file cannot be read, or a line is no event.
    """
    name = str(path)
    try:
        with open(path, encoding="utf-8") as file:
            yield from events_of(_whole(name, _lines(name, file)))
    except UnicodeDecodeError:
        raise ImportFormatError(name, "", "is not UTF-8 text") from None
    except OSError as error:
        raise ImportFormatError(name, "", f"cannot be read: {error.strerror or error}") from None


def _whole(name: str, lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a trace, and raise ImportFormatError if it is empty, or one of ours that has a gap.

    Ours begins with the line of the scenario, which names all agents; each of them stops, and its events of memory are
    counted.
    """
    number = seq = 0
    agents: dict[str, bool] = {}  # of ours -> whether it lives
    for number, fields in enumerate(lines, 1):
        kind, agent = _text(fields, "kind"), _text(fields, "agent")
        if number == 1 and isinstance(fields.get("roles"), dict):
            agents = dict.fromkeys(fields["roles"], False)
        elif agents:
            if agent and agent not in agents:
                raise ImportFormatError(name, f"line {number}", f"names the agent {agent!r}, which is none of the run")
            if kind in ("start", "restart", "crash", "stop"):
                agents[agent] = kind in ("start", "restart")
            if "seq" in fields:
                seq += 1
                if fields["seq"] != seq:
                    raise ImportFormatError(name, f"line {number}", f"is the event {seq} of memory, by its place")
        yield fields
    if not number:
        raise ImportFormatError(name, "", "has no events")
    if cut := [agent for agent, lives in agents.items() if lives]:
        raise ImportFormatError(name, "", f"is cut off: {cut[0]} does not stop")


def _lines(name: str, file: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise ImportFormatError(name, f"line {number}", "is not an event of a trace")
        if not _is_time(fields.get("ts", 0)) or not all(type(fields.get(each, 0)) is int for each in _INTEGERS):
            raise ImportFormatError(name, f"line {number}", "has a time or a number that cannot be right")
        yield fields


def events_of(lines: Iterable[Mapping[str, Any]]) -> Iterator[TraceEvent]:
    """Yield the events of the objects of a trace. Writes without a version are numbered."""
    writes = 0
    for fields in lines:
        kind = _text(fields, "kind")
        version = _integer(fields, "version")
        if kind == "written":
            writes += 1
            version = writes if version is None else version
        yield TraceEvent(
            kind=kind,
            agent=_text(fields, "agent"),
            ts=_number(fields, "ts"),
            key=_text(fields, "key"),
            size=_integer(fields, "size") or 0,
            version=version,
            was=_integer(fields, "was"),
            cas=fields.get("cas") is True,
            rank=_integer(fields, "rank") or 0,
            score=_number(fields, "score"),
            owner=_text(fields, "owner"),
            to=_text(fields, "to"),
            message=_text(fields, "msg"),
            fields=fields,
        )


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < float("inf")  # type: ignore[operator]


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _integer(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    return value if type(value) is int else None


def _number(fields: Mapping[str, Any], name: str) -> float:
    value = fields.get(name)
    return value if type(value) in (int, float) and value is not None else 0.0
