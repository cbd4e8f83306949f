"""`distinguish`: a stored statement that records are not the same, so that they are not reported again.

It is a record of the kind "distinct", which recall does not find. Its `derived_from` has the ids, and nothing of the
texts, which could be guessed after an erasure: it ends when one of the records is changed after it was stated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from hashlib import sha256
from typing import TypeAlias

from recollect import filters as f
from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls
from recollect.engine.scope import linked_id
from recollect.errors import ConflictError, InvalidArgumentError, UnknownRecordError
from recollect.operations import GetAll
from recollect.records.record import Record

#: The kind of the records that state it.
KIND = "distinct"
#: The name in the metadata that has how often it was stated.
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
            ConflictError: A record was changed since it was read; nothing was changed.
            InvalidArgumentError: There are fewer than two records.
            StoreError: The store failed.

        Cost:
            One durable commit.
        """
        if isinstance(records, (str, Record)) or not isinstance(records, Sequence):
            raise InvalidArgumentError("records", records, "must be a list of records or ids")
        seen = {each.id: each for each in records if isinstance(each, Record)}
        ids = sorted(set(GetAll(ids=records).ids))  # type: ignore[arg-type]
        if len(ids) < 2:
            raise InvalidArgumentError("records", records, "must have at least two different records")
        name = f"{KIND} {sha256(chr(10).join(ids).encode('utf-8')).hexdigest()[:32]}"
        with self._one_commit() as calls:  # so that none is changed between the look and the statement
            *found, before = calls.get_all([*ids, name])
            known = []
            for each, record in zip(ids, found, strict=True):
                if record is None:
                    raise UnknownRecordError(each, str(calls.stats()["namespace"]))
                if each in seen and seen[each].hash != record.hash:
                    raise ConflictError(f"record {each!r}", seen[each].hash, record.hash)
                known.append(record)
            owners = {owner: getattr(known[0], owner) for owner in ("user", "agent")}
            owners = {
                owner: value for owner, value in owners.items() if all(getattr(each, owner) == value for each in known)
            }
            number = 0 if before is None else before.metadata.get(_STATED)
            return calls.remember(
                "",
                id=name,
                kind=KIND,
                derived_from=ids,
                # Stated again, it is another version with a commit of its own, from which on it holds.
                metadata={_STATED: number + 1 if isinstance(number, int) else 1},
                searchable=False,
                if_exists="update",
                **owners,
            )

    def _one_commit(self) -> AbstractContextManager[Calls]:
        """Return a block whose calls are one commit."""
        raise NotImplementedError


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
