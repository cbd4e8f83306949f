"""Translation between the ids that callers use and the ids under which records are stored, inside a transaction.

Outside of scopes they are the same. An id that was chosen within a scope is stored in a qualified form
(`Scope.qualified`). A derived id is stored as it is, since it depends on the fields that the scope fixes; so is the id
of a record that moved into the scope.

No record gets an id, or is moved, such that a scope would show two records under one id. The exception is a move out of
another scope, which must not learn of the second record: in the destination, the id then refers to the record whose id
was chosen there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256

from recollect.engine.scope import Scope, scopes_of
from recollect.engine.write.drafts import Draft
from recollect.errors import InvalidRecordError, RecordExistsError
from recollect.operations import SCOPED
from recollect.records.names import MAX_ID_BYTES
from recollect.records.record import Record

#: Room for a number that follows an id, in bytes.
_NUMBER_BYTES = 8


def first_free(is_used: Callable[[int], bool], first: int = 0) -> int:
    """Return a number that is not used although the one before it is, or `first`.

    >>> first_free({0, 1, 2, 3, 4}.__contains__), first_free({3}.__contains__, 3), first_free(set().__contains__)
    (5, 4, 0)

    Cost:
        Does not grow with the numbers, but with their logarithm.
    """
    low, high = first, first
    while is_used(high):
        low, high = high, 2 * high + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if is_used(middle) else (low, middle)
    return low


def id_beside(record_id: str, name: str) -> str:
    """Return the id of a record that is stored beside another one of the same id. If it is too long, it is a hash.

    >>> id_beside("seat", "laptop")
    'seat~laptop'
    """
    beside = f"{record_id}~{name}"
    return beside if len(beside.encode()) <= MAX_ID_BYTES - _NUMBER_BYTES else sha256(beside.encode()).hexdigest()


class Naming:
    """The ids of a scope, as the base of the writer, which provides the records."""

    _scope: Scope

    def live(self, record_id: str) -> Record | None:
        """Return the live record of a stored id, in any scope."""
        raise NotImplementedError

    def _known(self, record_id: str) -> bool:
        """Return whether a stored id was ever in use."""
        raise NotImplementedError

    def _any_qualified(self) -> bool:
        """Return whether any live record has a qualified id."""
        raise NotImplementedError

    def candidate_ids(self, draft: Draft) -> Iterator[str]:
        """Yield the stored ids that a draft is looked up under first."""
        yield draft.record.id
        if self._scope.fixed:
            with suppress(InvalidRecordError):  # the id is too long for this scope
                yield self._scope.qualified(draft.record.id)

    def stored_under(self, record_id: str) -> Iterator[str]:
        """Return the stored ids that the scope shows as this id."""
        return self._scope.stored_ids(record_id, self._known)

    def shown(self, record_id: str) -> Record | None:
        """Return the live record that the scope shows under an id; None if there is none."""
        if not self._scope.fixed:
            return self.live(record_id)
        for stored in self.stored_under(record_id):
            record = self.live(stored) if self._known(stored) else None
            if record is not None and self._scope.admits(record):
                return record
        return None

    def was_used(self, record_id: str, draft: Draft) -> bool:
        """Return whether the scope has ever shown a record under an id that a draft may get."""
        if not self._scope.fixed:
            return self._known(record_id)
        if draft.is_derived(record_id):  # only records of the scope have it
            return any(self._known(each) for each in self.stored_under(record_id))
        if any(self._known(each) for each in self.stored_under(record_id) if each != record_id):
            return True
        return self.shown(record_id) is not None

    def free(self, record_id: str, draft: Draft) -> str:
        """Return the stored id for a draft that the scope is to show under `record_id`.

        Raises:
            RecordExistsError: A narrower scope shows another record under this id.
            InvalidRecordError: The id cannot be chosen in this scope, for example because it is too long.
        """
        if not self._scope.fixed:
            if (shadowing := self.shadowing(record_id, draft)) is not None:
                raise RecordExistsError(shadowing.id, shadowing.hash)
            return record_id
        if draft.is_derived(record_id) and (not self._known(record_id) or self.live(record_id) is None):
            return record_id
        for stored in self.stored_under(record_id):
            if stored != record_id and (not self._known(stored) or self.live(stored) is None):
                return stored
        return self._scope.qualified(record_id)  # raises InvalidRecordError

    def shadowing(self, record_id: str, draft: Draft) -> Record | None:
        """Return the record that some scope would show under the same id as a draft written outside of scopes."""
        if self._scope.fixed or not draft.own_id:
            return None
        return self._other(record_id, draft.record)

    def check_move(self, existing: Record, record: Record) -> None:
        """Refuse to move a record into a scope that shows another record under its id.

        Within a scope, only narrower scopes are considered, since others must not be revealed.

        Raises:
            RecordExistsError: Such a scope shows another record.
        """
        if all(getattr(existing, name) == getattr(record, name) for name in SCOPED):
            return
        if (other := self._other(record.id, record)) is not None:
            shown = self._scope.shown(other)
            raise RecordExistsError(shown.id, shown.hash)

    def _other(self, record_id: str, record: Record) -> Record | None:
        """Return another live record that a scope of `record`, equal to or narrower than ours, shows under its id."""
        for scope in scopes_of(record) if self._any_qualified() else ():
            if not set(scope.fixed) >= set(self._scope.fixed):
                continue
            for stored in scope.stored_ids(scope.shown_id(record_id), self._known):
                existing = self.live(stored) if stored != record_id and self._known(stored) else None
                if existing is not None and scope.admits(existing):
                    return existing
        return None
