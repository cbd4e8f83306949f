"""The content of a message: its text, a line that describes its other parts, and those parts.

Pictures, sound, files and calls of tools are described in brackets, such as `[image: image/png]` or
`[calls get_weather {"city": "Oslo"}]`, in the same words for all APIs. Base64 data of more than 1000 characters is
omitted.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from recollect.common.regexes import regex
from recollect.records.frozen import MAX_DEPTH
from recollect.records.messages.values import UnreadableError, kind_of

#: Maximum number of characters of base64 data that is stored.
LONGEST_BASE64 = 1000
_BASE64 = re.compile(r"(data:[^,]{0,200};base64,)?([A-Za-z0-9+/_\-\r\n]+=*\s*)")
_DATA_URL = regex(r"data:([\w.+-]+/[\w.+-]+)[;,]")
#: Maximum characters of a description. Metadata has all of it.
_SHOWN = 500
#: Types of parts that are text; "knowledge" is what a search of Claude found.
_TEXTS = ("text", "input_text", "output_text", "knowledge")
#: Types of parts that have another name in the description.
_CALLED = {"image_url": "image", "input_image": "image", "input_audio": "audio", "input_file": "file"}
#: Types of parts that call a tool.
CALLS = (
    "tool_call", "tool_use", "server_tool_use", "mcp_tool_use", "function_call", "custom_tool_call", "mcp_call",
)  # fmt: skip
#: Types of parts that a model writes for itself. They are described only if a message has nothing else.
THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
NOTHING: tuple[Any, ...] = (None, "", [], {})


def split(content: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """Split content into its texts and its other parts, which include the further keys of text parts.

    Raises:
        UnreadableError: The content is not text or a list of parts.
    """
    if content is None:
        return [], []
    texts: list[str] = []
    others: list[dict[str, Any]] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            part = {"type": "text", "text": part}
        if not isinstance(part, dict):
            what = "its content" if part is content else "a part of its content"
            raise UnreadableError(f"{what} is {kind_of(part)}, not text")
        kind = part.get("type", "text")
        if kind not in _TEXTS:
            others.append(part)
            continue
        text = part.get("text")
        beside = {key: value for key, value in part.items() if key not in ("type", "text") and value not in NOTHING}
        if isinstance(text, dict):  # stored messages of OpenAI: {"value", "annotations"}
            beside |= {key: value for key, value in text.items() if key != "value" and value not in NOTHING}
            text = text.get("value")
        if text is not None and not isinstance(text, str):
            raise UnreadableError(f"a text of its content is {kind_of(text)}, not text")
        texts += nonblank(text or "")
        if beside:
            others.append({"type": kind, **beside})
    return texts, others


def nonblank(text: str) -> list[str]:
    """Return the text in a list, or an empty list if it is blank."""
    return [text] if text.strip() else []


def described(texts: list[str], others: list[dict[str, Any]], rest: dict[str, Any]) -> str:
    """Return the content of a turn: the texts, and a line that describes the other parts.

    Args:
        others: The other parts.
        rest: The further keys of the message, such as "tool_calls".

    Raises:
        UnreadableError: There is nothing.
    """
    parts = [part for part in others if part.get("type") not in _TEXTS]
    labels = [_label(part) for part in parts if part.get("type") not in THOUGHTS]
    for key in ("tool_calls", "function_call"):
        labels += [_label({"type": "tool_call", "call": call}) for call in listed(rest.get(key))]
    for key in ("refusal", "audio"):
        if key in rest:
            labels.append(_label({"type": key, key: rest[key]}))
    for key in ("attachments", "files"):
        labels += [_label({"type": "file", "file": file}) for file in listed(rest.get(key))]
    if not labels and not texts:
        labels = [_label(part) for part in others]
    if not labels and not texts:
        raise UnreadableError("has no content")
    return "\n".join([*texts, *([" ".join(labels)] if labels else [])])


def listed(value: Any) -> list[Any]:
    """Return the value if it is a list, otherwise a list of it; an empty list for None."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _label(part: dict[str, Any]) -> str:
    """Describe a part: `[calls get_weather {"city": "Oslo"}]`, `[image]`, `[refusal: I cannot help with that]`."""
    kind = part.get("type")
    kind = kind if isinstance(kind, str) and kind.strip() else "part"
    if kind in CALLS:
        return f"[{_one_line(_call(part.get('call', part)))}]"
    called = _CALLED.get(kind, kind)
    inner = part.get(kind)
    if called == "image":
        detail = _media_type(part)
    elif kind == "reasoning":
        detail = " ".join(split(part.get("summary"))[0]) if isinstance(part.get("summary"), list) else None
    else:
        detail = inner
        if isinstance(inner, dict) or inner is None:
            names = ("transcript", "file_name", "filename", "title", "name")
            detail = next(((inner or part)[key] for key in names if key in (inner or part)), None) or _media_type(part)
    if isinstance(detail, str) and detail.strip():
        called += f": {without_base64(detail)}"
    return f"[{_one_line(called)}]"


def _call(call: Any) -> str:
    """Describe the call of a tool. Arguments have the same form, whether an API gives them as JSON text or not."""
    call = call if isinstance(call, dict) else {"input": call}
    # OpenAI nests the name and arguments under the kind of tool.
    inner = next((call[key] for key in ("function", "custom") if isinstance(call.get(key), dict)), call)
    arguments = next((inner[key] for key in ("arguments", "input", "args") if key in inner), None)
    if isinstance(arguments, str) and arguments.lstrip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):  # a model may write invalid JSON: its text is shown
            arguments = json.loads(arguments)
    name = inner.get("name")
    words = ["calls", name if isinstance(name, str) else "?"]
    if arguments not in NOTHING:
        words.append(arguments if isinstance(arguments, str) else _compact(arguments))
    return " ".join(words)


def _media_type(part: dict[str, Any]) -> str | None:
    """Return the media type that a part states, or that its data URL has; None if there is neither."""
    kind = part.get("type")
    for about in (part.get("source"), part.get(kind) if isinstance(kind, str) else None, part):
        if isinstance(about, dict):
            stated = next((about[key] for key in ("media_type", "mime_type", "mimeType") if key in about), None)
            if isinstance(stated, str):
                return stated
        urls = (
            (about, *(about.get(key) for key in ("url", "image_url", "file_data")))
            if isinstance(about, dict)
            else (about,)
        )
        for url in urls:
            if isinstance(url, str) and (found := _DATA_URL.match(url)):
                return found[1]
    return None


def _compact(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):
        return "..."


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def without_base64(value: Any, depth: int = 0) -> Any:
    """Copy a JSON value, replacing long base64 data by a note of its length."""
    if isinstance(value, str) and len(value) > LONGEST_BASE64 and (read := _BASE64.fullmatch(value)):
        prefix, payload = read[1] or "", read[2]
        return value if len(payload) <= LONGEST_BASE64 else f"{prefix}omitted: {len(payload)} characters of base64"
    if depth > MAX_DEPTH:  # `Record` rejects it
        return value
    if isinstance(value, dict):
        return {key: without_base64(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [without_base64(item, depth + 1) for item in value]
    return value
