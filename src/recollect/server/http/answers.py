"""The schemas of answers, for the description of the server: what the common routes return.

Further keys may be added in later releases, so no schema is closed. Times are ISO 8601 with an offset.
"""

from __future__ import annotations

from typing import Any

from recollect.arguments.tools import Schema, array, boolean, integer, mapping, number, string
from recollect.records.origins import ORIGINS

_TIME, _NAME = string("ISO 8601, with an offset"), string()


#: An object with any keys.
_OPEN: Schema = {"type": "object", "additionalProperties": True}


def or_null(schema: Schema) -> Schema:
    """Return a schema that also allows null."""
    return {**schema, "type": [schema["type"], "null"]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str) -> Schema:
    return {"type": "array", "items": _ref(name)}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> Schema:
    return mapping({**required, **(optional or {})}, required=tuple(required))


_RECORD = _object(
    {"id": string(), "kind": string(), "hash": string("Pass it as `expect` to change this very version")},
    {
        "content": string("The text; absent if it is bytes"),
        "data": string("The bytes in base64, in place of `content`"),
        **dict.fromkeys(
            "media_type role speaker user agent conversation session entity source parent language".split(), _NAME
        ),
        **dict.fromkeys(("time", "valid_from", "valid_to", "expires"), _TIME),
        **dict.fromkeys(("position", "order"), integer()),
        "origin": string("Its class of origin, where role, source and kind do not imply it", enum=list(ORIGINS)),
        **dict.fromkeys(("importance", "trust"), number()),
        **dict.fromkeys(("tags", "supersedes", "derived_from"), array(string())),
        **dict.fromkeys(("pinned", "searchable"), boolean()),
        "metadata": _OPEN,
        "unknown": {"type": "array", "items": {}},
    },
)
_STATUS = string(
    enum=["created", "updated", "unchanged", "forgotten", "rejected", "echo", "proposed", "quarantined"],
)
_OUTCOME = _object(
    {"status": _STATUS, "record": {"oneOf": [_ref("Record"), {"type": "null"}]}},
    {"differing": array(string()), "asked_id": string(), "sources": array(string()), "verdict": _OPEN},
)
_COUNT = dict.fromkeys(("created", "updated", "unchanged"), integer())
_REPORT = _object({**_COUNT, "results": _list("Outcome"), "failed": {"type": "array", "items": {}}})
_WHY = mapping(
    {
        "shares": {"type": "object", "additionalProperties": {"type": "number"}},
        "words": array(mapping({"word": string(), "score": number()})),
    }
)
_HIT = _object(
    {"record": _ref("Record"), "score": number(), "confidence": number("0 to 1"), "why": _WHY},
    {"origin": string("The class of who said it, if it is not the word of the user or the owner", enum=list(ORIGINS))},
)
_HITS = _object(
    {
        "question": string(),
        "hits": _list("Hit"),
        "standing": {"type": "array", "description": "Instructions that apply to every answer", "items": _ref("Hit")},
        "root": string(),
        "cursor": string(),
        "reference": _TIME,
        "time": _TIME,
        "plan": _OPEN,
    },
    {"watermark": integer()},
)
_ITEM = _object(
    {"record": _ref("Record"), "origin": string(), "outcome": string(), "tokens": integer()}, {"score": number()}
)
_CONTEXT = _object(
    {"text": string("For a prompt"), "tokens": integer(), "max_tokens": integer(), "style": string()},
    {"items": array(_ITEM)},
)
_CHANGE = _object(
    {"id": string(), "before": or_null(string()), "after": or_null(string()), "cause": string()}, {"part": string()}
)
_COMMIT = _object(
    {
        "namespace": string(),
        "branch": string(),
        "time": _TIME,
        "actor": or_null(string()),
        "reason": or_null(string()),
        "changes": _list("Change"),
    },
    {"seq": integer(), "root": string(), "entry": string(), "cursor": string("Pass it as `since`")},
)
_VERSION = _object(
    {"commit": _ref("Commit"), "cause": string(), "erased": boolean()},
    {"record": {"oneOf": [_ref("Record"), {"type": "null"}]}},
)

#: Name -> schema.
SCHEMAS: dict[str, Schema] = {
    "Record": _RECORD,
    "Outcome": _OUTCOME,
    "Report": _REPORT,
    "Hit": _HIT,
    "Hits": _HITS,
    "Context": _CONTEXT,
    "Records": _object({"records": _list("Record")}, {"cursor": string("Pass it as `after`"), "more": boolean()}),
    "Change": _CHANGE,
    "Commit": _COMMIT,
    "Commits": _object({"commits": _list("Commit")}, {"more": boolean()}),
    "Versions": _object({"versions": _list("Version")}),
    "Version": _VERSION,
    "Result": _object({"ok": {"const": True}}, {"result": {}}),
}
