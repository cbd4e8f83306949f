"""`Merges`: one record in the place of several, and the fields that it takes over from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls, stored
from recollect.errors import InvalidArgumentError
from recollect.operations import Merge
from recollect.records.record import Fields, Record

#: The fields that a merged record has if all of its sources have the same value.
_COMMON = ("kind", "role", "speaker", "user", "agent", "conversation", "session", "entity", "source", "parent")
_COMMON_TOO = ("language", "trust", "media_type")


def merged_fields(sources: Sequence[Record]) -> dict[str, Any]:
    """Return the fields of a record that takes the place of others.

    It has what all of them have in common, the latest time, the highest importance, all tags, and of the metadata the
    first value of each name. A turn takes the last position of its sources.

    Args:
        sources: The records, in order.
    """
    fields: dict[str, Any] = {}
    for name in (*_COMMON, *_COMMON_TOO):
        values = {getattr(source, name) for source in sources}
        if len(values) == 1:
            fields[name] = values.pop()
    metadata: dict[str, Any] = {}
    for source in sources:
        for name, value in source.metadata.items():
            metadata.setdefault(name, value)
    fields |= {
        "time": max((source.time for source in sources if source.time is not None), default=None),
        "importance": max((each.importance for each in sources if each.importance is not None), default=None),
        "tags": tuple(dict.fromkeys(tag for source in sources for tag in source.tags)),
        "metadata": metadata,
        "pinned": any(source.pinned for source in sources) or None,
    }
    positions = [source.position for source in sources if source.position is not None]
    if positions and "conversation" in fields:
        fields["position"] = max(positions)
    return {name: value for name, value in fields.items() if value not in (None, (), {})}


@all_named
class Merges(Calls):
    """The call that replaces records by one."""

    def merge(self, sources: Sequence[str | Record], content: str | bytes, **fields: Unpack[Fields]) -> Record:
        """Replace records by a new one that is derived from them, and return it.

            one = memory.remember("Ana likes tea", user="ana")
            two = memory.remember("Ana likes green tea most", user="ana")
            memory.merge([one, two], "Ana likes tea, green tea most")

        The new record is stored, its `derived_from` has the ids of all sources, and the sources go, with the cause
        "superseded": one commit, which `revert` takes back. Their versions stay in the history.

        Args:
            sources: The records, or their ids. A record that was changed since it was read is a ConflictError.
            content: The text of the new record, or bytes with a `media_type`.
            **fields: Fields of the new record. Those that are not passed are taken over: what all sources have in
                common, the latest time, the highest importance, all tags, and the first value of each name in their
                metadata.

        Raises:
            UnknownRecordError: There is no live record with one of the ids.
            ConflictError: A source was changed meanwhile; nothing was changed.
            InvalidArgumentError: There is no source, or an argument is invalid.
            InvalidRecordError: A field has an invalid value or exceeds a limit.
            ScopeError: The new record would lie outside the scope.
            QuotaError: The new record does not fit in the quota.
            RejectedError: A policy of the memory does not allow the text (`set_policies`).
            StoreError: The store failed.

        Cost:
            One durable commit, in proportion to the number of sources.
        """
        if isinstance(sources, (str, Record)) or not isinstance(sources, Sequence) or not sources:
            raise InvalidArgumentError("sources", sources, "must be a list of records or ids")
        hashes: dict[str, str | None] = {}
        records = []
        for each in sources:
            record = each if isinstance(each, Record) else self.get(each)
            if record is not None:
                records.append(record)
            hashes[str(each) if record is None else record.id] = None if record is None else record.hash
        return stored(self.execute(Merge(content=content, sources=hashes, fields={**merged_fields(records), **fields})))
