"""Lines of JSON-RPC on standard input: split, bounded in length, and parsed."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from recollect.arguments.checks import is_integer

#: Maximum length of a message, in bytes.
MOST_BYTES = 4 * 2**20
#: How many bytes are read at once.
CHUNK = 2**16
#: Maximum number of objects and lists that are in one another.
_MOST_LEVELS = 128
#: The codes of JSON-RPC.
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
#: The id of a request.
RequestId = str | int


class Refusal(NamedTuple):
    """The answer to a line that is not a message.

    Attributes:
        id: The id of the request, if that can be read.
        code: The code of the error.
        text: Its message.
    """

    id: RequestId | None
    code: int
    text: str


class Message(NamedTuple):
    """A request, or a notification, which has no id. A response has no method.

    Attributes:
        id: The id.
        method: The name of the method; None for a response.
        params: The parameters.
    """

    id: RequestId | None
    method: str | None
    params: Mapping[str, Any]


def chunks_of(descriptor: int, ended: int) -> Iterator[bytes]:
    """Yield what can be read from a file descriptor, until its end, or until something can be read from another one."""
    while True:
        try:
            if os.name == "posix" and ended in select.select((descriptor, ended), (), ())[0]:
                return
            chunk = os.read(descriptor, CHUNK)
        except BlockingIOError:  # another process has the same pipe, and does not wait for it
            continue
        if not chunk:
            return
        yield chunk


def split(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a stream, without their ends. Of a line that is too long, only the beginning is in memory."""
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join([*parts, line])
            parts, size = [], 0
        if size <= MOST_BYTES:
            parts.append(rest)
            size += len(rest)
    if size:
        yield b"".join(parts)


def refusal(line: str) -> Refusal:
    """Return the answer to a line that is not a message; "" stands for one that is too long."""
    if not line:
        return Refusal(None, INVALID_REQUEST, f"the message is longer than {MOST_BYTES} bytes, and was skipped")
    request_id: RequestId | None = None
    code, text = PARSE_ERROR, "the line is not JSON in Unicode, and was skipped"
    with suppress(ValueError, RecursionError):
        stated = json.loads(line)
        code = INVALID_REQUEST
        text = "the line is not a JSON-RPC 2.0 message in Unicode (an id is a text or an integer), and was skipped"
        found = stated.get("id") if isinstance(stated, dict) else None
        if is_integer(found) or (isinstance(found, str) and found.isprintable()):  # a lone surrogate is not
            request_id = found
    return Refusal(request_id, code, text)


def parsed(line: bytes) -> Message | Refusal | None:
    """Return the message of a line; None for a line without any."""
    if len(line) > MOST_BYTES:
        return refusal("")
    if not line.strip():
        return None
    text = line.decode("utf-8", "replace")
    try:
        data = json.loads(text, parse_constant=_refuse)
        if "\\u" in text:  # it may have a lone surrogate, which is no text
            json.dumps(data, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        return refusal(text)
    if not isinstance(data, dict) or data.get("jsonrpc") != "2.0" or _is_deep(data, text):
        return refusal(text)
    request_id, params = data.get("id"), data.get("params")
    if "id" in data and not (isinstance(request_id, str) or is_integer(request_id)):
        return refusal(text)
    if isinstance(method := data.get("method"), str) and (params is None or isinstance(params, dict)):
        return Message(request_id, method, params or {})
    if "method" not in data and ("result" in data or "error" in data):
        return Message(request_id, None, {})
    return refusal(text)


def _is_deep(data: Any, text: str) -> bool:
    """Return whether a value has more levels than `_MOST_LEVELS`, which what reads it could not bear."""
    if text.count("{") + text.count("[") <= _MOST_LEVELS:
        return False
    level = [data]
    for _ in range(_MOST_LEVELS):
        level = [
            below
            for each in level
            if isinstance(each, (dict, list))
            for below in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
