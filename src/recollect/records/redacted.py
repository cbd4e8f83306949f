"""The redacted form of a record: what `recollect.policies.redact` finds in its content and metadata is replaced."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from recollect.policies import CATEGORIES, redact_json
from recollect.records.record import Record


def redacted(record: Record, categories: Collection[str] = CATEGORIES) -> Record:
    """Return a record without what redaction finds; the same object if it finds nothing.

    >>> redacted(Record(id="a", content="write to ana@example.com")).content
    'write to ***@***.***'
    """
    changed = redacted_texts({"content": record.content, "metadata": record.metadata}, categories)[0]
    return record.changed(**changed) if changed else record


def redacted_texts(texts: dict[str, Any], categories: Collection[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return those of some fields that redaction changes, and how many times each category was found."""
    changed: dict[str, Any] = {}
    found: dict[str, int] = {}
    for name, value in texts.items():
        new, counts = redact_json(value, categories)
        if counts:
            changed[name] = new
            for category, count in counts.items():
                found[category] = found.get(category, 0) + count
    return changed, found
