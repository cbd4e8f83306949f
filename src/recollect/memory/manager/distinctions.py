"""`distinguish`: a stored statement that records are not the same, so that they are not reported again.

It is a record of the kind "distinct", which recall does not find. Its `derived_from` has the ids, and nothing of the
texts, which could be guessed after an erasure: it ends when one of the records is changed after it was stated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TypeAlias

from recollect import filters as f
from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls
from recollect.engine.scope import linked_id
from recollect.errors import InvalidArgumentError, UnknownRecordError
from recollect.records.record import Record

#: The kind of the records that state it.
KIND = "distinct"
#: How often it was stated, in the metadata.
_STATED = "stated"
#: Records that are read at a time.
_PAGE = 200

#: Returns whether two records were stated not to be the same.
Apart: TypeAlias = Callable[[Record, Record], bool]


@all_named
class Distinctions(Calls):
    """The call that states that records are not the same."""

    def distinguish(self, records: Sequence[str | Record]) -> Record:
        """State that records are not the same and do not disagree: no two of them are reported together again.

            group = memory.duplicates()[0]
            memory.distinguish(group.records)

        `duplicates` and `contradictions` follow it until one of the two records is changed. It is a record of the kind
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
        owners = {name: getattr(known[0], name) for name in ("user", "agent")}
        owners = {name: owner for name, owner in owners.items() if all(getattr(each, name) == owner for each in known)}
        name = sha256("\n".join(ids).encode("utf-8")).hexdigest()[:32]
        return self.remember(
            "",
            id=f"{KIND} {name}",
            kind=KIND,
            derived_from=ids,
            # Stated again, it is another record with a commit of its own, from which on it holds.
            metadata={_STATED: _next(self, f"{KIND} {name}")},
            searchable=False,
            if_exists="update",
            **owners,
        )


def apart_in(calls: Calls) -> Apart | None:
    """Return what was stated with `distinguish` as a function; None if nothing was."""
    stated = calls.find(f.kind(KIND), order="id", with_commit=True)
    if not stated:
        return None
    members = [[str(linked_id(record.id, each)) for each in record.derived_from] for record in stated]
    changed: dict[str, datetime | None] = {}
    ids = sorted({each for several in members for each in several})
    for begin in range(0, len(ids), _PAGE):
        found = calls.find(f.id(*ids[begin : begin + _PAGE]), order="id", with_commit=True)
        changed |= {record.id: time for record, time in zip(found, found.committed, strict=True)}
    pairs: set[tuple[str, str]] = set()
    for several, since in zip(members, stated.committed, strict=True):
        held = [each for each in several if _is_before(changed.get(each), since)]
        pairs |= {(one, other) for one in held for other in held}
    return (lambda one, other: (one.id, other.id) in pairs) if pairs else None


def _is_before(changed: datetime | None, since: datetime | None) -> bool:
    """Return whether a record was last changed when or before something was stated of it."""
    return changed is not None and (since is None or changed <= since)


def _next(calls: Calls, record_id: str) -> int:
    record = calls.get(record_id)
    number = 0 if record is None else record.metadata.get(_STATED)
    return number + 1 if isinstance(number, int) else 1
