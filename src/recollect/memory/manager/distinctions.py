"""`distinguish`: a stored statement that records are not the same, so that they are not reported again.

It is a record of the kind "distinct", which recall does not find. Its `derived_from` has the ids, and its metadata the
digests of the texts: it ends with the text of which it was stated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, TypeAlias

from recollect import filters as f
from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls
from recollect.engine.scope import linked_id
from recollect.errors import InvalidArgumentError, UnknownRecordError
from recollect.records.codec import microseconds
from recollect.records.record import Record

#: The kind of the records that state it.
KIND = "distinct"
_TEXTS = "texts"

#: Returns whether two records were stated not to be the same.
Apart: TypeAlias = Callable[[Record, Record], bool]


@all_named
class Distinctions(Calls):
    """The call that states that records are not the same."""

    def distinguish(self, records: Sequence[str | Record]) -> Record:
        """State that records are not the same and do not disagree: no two of them are reported together again.

            group = memory.duplicates()[0]
            memory.distinguish(group.records)

        `duplicates` and `contradictions` follow it as long as both texts stay as they are. It is a record of the kind
        "distinct", which recall does not find, and it belongs to the user and the agent to whom all of the records
        belong. So it is in the history, `revert` takes it back, `forget` of it ends it, and what is forgotten or erased
        of a user includes it.

        Args:
            records: Two or more records, or their ids.

        Returns:
            The record that states it.

        Raises:
            UnknownRecordError: There is no live record with one of the ids; nothing was changed.
            InvalidArgumentError: There are fewer than two records.
            StoreError: The store failed.

        Cost:
            One durable commit.
        """
        if isinstance(records, (str, Record)) or not isinstance(records, Sequence):
            raise InvalidArgumentError("records", records, "must be a list of records or ids")
        ids = sorted({each.id if isinstance(each, Record) else each for each in records})
        if len(ids) < 2:
            raise InvalidArgumentError("records", records, "must have at least two different records")
        found = self.get_all(ids)
        for each, record in zip(ids, found, strict=True):
            if record is None:
                raise UnknownRecordError(each, str(self.stats()["namespace"]))
        known = [record for record in found if record is not None]
        texts = [_digest(record) for record in known]
        owners = {name: getattr(known[0], name) for name in ("user", "agent")}
        owners = {name: owner for name, owner in owners.items() if all(getattr(each, name) == owner for each in known)}
        name = sha256("\n".join(ids).encode("utf-8")).hexdigest()[:32]
        return self.remember(
            "",
            id=f"{KIND} {name}",
            kind=KIND,
            derived_from=ids,
            metadata={_TEXTS: texts},
            searchable=False,
            if_exists="update",
            **owners,
        )


def apart_in(calls: Calls) -> Apart | None:
    """Return what was stated with `distinguish` as a function; None if nothing was."""
    pairs: set[tuple[Any, ...]] = set()
    for record in calls.find(f.kind(KIND), order="id"):
        texts = record.metadata.get(_TEXTS)
        if isinstance(texts, (list, tuple)) and len(texts) == len(record.derived_from):
            ids = (linked_id(record.id, each) for each in record.derived_from)
            stated = list(zip(ids, texts, strict=True))
            pairs |= {(*one, *other) for one in stated for other in stated if one != other}
    if not pairs:
        return None
    return lambda one, other: (one.id, _digest(one), other.id, _digest(other)) in pairs


def _digest(record: Record) -> str:
    """Return the digest of a text at its time. Without the time, a guess of an erased text could be confirmed."""
    content = record.content if isinstance(record.content, bytes) else record.content.encode("utf-8")
    micros = "" if record.time is None else str(microseconds(record.time))
    return sha256(f"{micros}\n".encode() + content).hexdigest()[:32]
