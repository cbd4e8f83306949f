"""Rows of named values as items: the common part of the importers of CSV and of JSON lines without a header.

A name that is a field of a record fills that field; "content" is required. Other names go to the metadata. A row with a
role or a conversation is a turn, and without a position it gets the next one in its conversation, so that importing a
longer version of a file adds only the new turns.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from recollect.importers.base import Damage, Item, TurnImporter
from recollect.records.documents import bounded_id
from recollect.records.messages.values import UnreadableError, instant
from recollect.records.record import Fields

TIMES = ("time", "valid_from", "valid_to", "expires")
#: The names that are fields of a record. Rows have text only, so `media_type` is not among them.
FIELDS = ("id", "content", *(name for name in Fields.__annotations__ if name not in ("media_type", "metadata")))


class RowImporter:
    """The rows of a source as items.

    Args:
        importer: The importer, which may have a default conversation.
        zone: The time zone of times without an offset.
    """

    def __init__(self, importer: TurnImporter, zone: tzinfo) -> None:
        self._conversation = importer.default_conversation
        self._zone = zone
        self._turns: dict[str, int] = {}

    def item(self, values: dict[str, Any], place: str) -> Item | Damage:
        """Return the item of a row, whose values have the types of a record's fields, except for times."""
        try:
            return Item(namespace=None, fields=self._fields(values), place=place)
        except UnreadableError as error:
            return Damage(place, str(error))

    def _fields(self, values: dict[str, Any]) -> dict[str, Any]:
        fields = {name: values[name] for name in FIELDS if values.get(name) is not None}
        if not isinstance(fields.get("content"), str):
            raise UnreadableError("has no content" if "content" not in fields else "its content is not text")
        if self._conversation is not None:
            fields.setdefault("conversation", self._conversation)
        # Always stated: a mapping with a role and no kind would be read as a message of an API.
        fields.setdefault("kind", "conversation" if "conversation" in fields or "role" in fields else "knowledge")
        if isinstance(fields.get("id"), str):
            fields["id"] = bounded_id(fields["id"])
        conversation = fields.get("conversation")
        if fields["kind"] == "conversation" and isinstance(conversation, str):
            number = self._turns.get(conversation, 0)
            self._turns[conversation] = number + 1  # a damaged turn keeps its position
            fields.setdefault("position", number)
        for name in TIMES:
            if name in fields:
                fields[name] = instant(fields[name], self._zone)
        stated = values.get("metadata")
        if stated is not None and not isinstance(stated, dict):
            raise UnreadableError("its metadata is not an object")
        others = {key: value for key, value in values.items() if key not in (*FIELDS, "metadata") and value is not None}
        return {**fields, "metadata": {**others, **(stated or {})}}
