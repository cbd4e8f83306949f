"""JSON values in the metadata of records: as text, which is lossless, or as a value that a policy may change.

A policy that redacts replaces a secret inside of any text. In JSON text it could take a letter of an escape with it, so
that the text is none any more; and an escape hides what is to be replaced.
"""

from __future__ import annotations

import json
from typing import Any

from recollect import Record
from recollect.errors import InvalidRecordError
from recollect.policies import redact, redact_json


def stored(value: Any) -> Any:
    """Return what the metadata of a record has of a JSON value: its JSON text, or the value if it has a secret.

    Raises:
        TypeError: It has no JSON form.
        ValueError: It refers to itself.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # JSON can state lone surrogates as escapes, and a record has none
        text = json.dumps(value, separators=(",", ":"))
    same = json.loads(text)
    if not redact_json(same)[1] and not redact(text).found:
        return text
    try:
        Record(id="any", content="any", metadata={"value": same})
    except InvalidRecordError:  # such as an integer of more than 64 bits, which only JSON has
        return text
    return same


def loaded(value: Any) -> Any:
    """Return the value of what `stored` returned, a new object each time."""
    return json.loads(value if isinstance(value, str) else json.dumps(value))
